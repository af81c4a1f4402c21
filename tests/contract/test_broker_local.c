/* SPDX-License-Identifier: MIT
 * tests/contract/test_broker_local.c - the contract of all buses over local.
 */
#include "brokers/local.h"
#include "tests/contract/broker_suite.h"
#include "tests/support/scratch.h"

#include <stdlib.h>

static char folder[64];
static char text[128];

static void start(void)
{
    scratch_make("bus", folder, sizeof folder);
    snprintf(text, sizeof text, "local:%s/bus", folder);
}

/* What is left in it fails the test: each member removes its socket. */
static void stop(void)
{
    assert_int_equal(rmdir(text + strlen("local:")), 0);
    scratch_remove(folder);
}

static const char *uri(void)
{
    return text;
}

int main(void)
{
    const struct bus_store store = {
        .name = "local", .ops = coord_local_broker, .start = start, .stop = stop, .uri = uri};
    return bus_suite_run(&store);
}
