/* SPDX-License-Identifier: MIT
 * tests/contract/test_redis.c - the contract over a redis-server that the test starts.
 */
#include "electors/redis.h"
#include "tests/contract/suite.h"
#include "tests/support/redis_server.h"

static struct redis_server server;

static void start(void)
{
    redis_server_start(&server, NULL);
}

static void stop(void)
{
    redis_server_stop(&server);
}

static const char *uri(void)
{
    return server.uri;
}

static void lose(const char *name)
{
    redis_server_do(&server, "DEL coord:{%s}:lease", name);
}

int main(void)
{
    static const struct coord_scheme schemes[] = {{"redis+unix", coord_redis_elector, NULL},
                                                  {NULL, NULL, NULL}};
    const struct suite_store store = {.name = "redis",
                                      .schemes = schemes,
                                      .ttl = 1000,
                                      .start = start,
                                      .stop = stop,
                                      .uri = uri,
                                      .bad_option = "prefix={x}",
                                      .contends = true,
                                      .lose = lose};
    return suite_run(&store);
}
