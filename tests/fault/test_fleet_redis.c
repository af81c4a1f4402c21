/* SPDX-License-Identifier: MIT
 * tests/fault/test_fleet_redis.c - two hundred members over one connection to a server that is
 * restarted.
 */
#include "brokers/redis.h"
#include "tests/support/many.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

static struct redis_server server;

static void restart(void)
{
    redis_server_kill(&server);
    redis_server_again(&server);
}

static void test_fleet_redis__two_hundred_live_through_a_restart(void **state)
{
    static const char *const options[] = {NULL};
    static const struct coord_bus_scheme schemes[] = {{"redis+unix", coord_redis_broker, NULL},
                                                      {NULL, NULL, NULL}};
    (void)state;
    redis_server_needed();
    redis_server_start(&server, options);
    many_live_through(schemes, server.uri, restart);
}

static int stop(void **state)
{
    (void)state;
    if (server.folder[0] != '\0') {
        redis_server_stop(&server);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_fleet_redis__two_hundred_live_through_a_restart, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
