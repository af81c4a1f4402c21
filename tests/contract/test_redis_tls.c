/* SPDX-License-Identifier: MIT
 * tests/contract/test_redis_tls.c - the contract of all electors over a redis-server that is
 * reached over TLS. In a foreign loop, which waits for nothing but what the connection asks for.
 */
#include "electors/redis.h"
#include "tests/contract/redis_tls.h"
#include "tests/contract/suite.h"

static void lose(const char *name)
{
    redis_server_do(&tls.server, "DEL coord:{%s}:lease", name);
}

int main(void)
{
    static const struct coord_scheme schemes[] = {{"rediss", coord_redis_elector, NULL},
                                                  {NULL, NULL, NULL}};
    const struct suite_store store = {.name = "redis",
                                      .schemes = schemes,
                                      .ttl = 1000,
                                      .start = start,
                                      .stop = stop,
                                      .uri = uri,
                                      .bad_option = "prefix={x}",
                                      .contends = true,
                                      .lose = lose,
                                      .terms = 100,
                                      .modes = SUITE_LOOP};
    return suite_run(&store);
}
