/* SPDX-License-Identifier: MIT
 * tests/contract/test_memory.c - the contract over a named state of this process.
 */
#include "electors/memory.h"
#include "tests/contract/suite.h"

static const char *uri(void)
{
    return "memory:contract";
}

static void lose(const char *name)
{
    struct coord_memory_state *state = coord_memory_state_named("contract");
    assert_non_null(state);
    assert_true(coord_memory_state_revoke(state, name));
    coord_memory_state_free(state);
}

int main(void)
{
    static const struct coord_scheme schemes[] = {{"memory", coord_memory_elector, NULL},
                                                  {NULL, NULL, NULL}};
    const struct suite_store store = {.name = "memory",
                                      .schemes = schemes,
                                      .ttl = 600,
                                      .uri = uri,
                                      .contends = true,
                                      .lose = lose};
    return suite_run(&store);
}
