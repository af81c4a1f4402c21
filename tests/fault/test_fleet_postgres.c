/* SPDX-License-Identifier: MIT
 * tests/fault/test_fleet_postgres.c - two hundred members over one connection to a server that is
 * restarted.
 */
#include "brokers/postgres.h"
#include "tests/support/many.h"
#include "tests/support/postgres_server.h"
#include "tests/support/support.h"

#include <signal.h>

static struct postgres_server server;

static void restart(void)
{
    postgres_server_end(&server, SIGQUIT);
    postgres_server_again(&server);
}

static void test_fleet_postgres__two_hundred_live_through_a_restart(void **state)
{
    static const char *const options[] = {NULL};
    static const struct coord_bus_scheme schemes[] = {{"postgresql", coord_postgres_broker, NULL},
                                                      {NULL, NULL, NULL}};
    (void)state;
    postgres_server_needed();
    postgres_server_start(&server, options);
    many_live_through(schemes, server.uri, restart);
}

static int stop(void **state)
{
    (void)state;
    if (server.folder[0] != '\0') {
        postgres_server_stop(&server);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_fleet_postgres__two_hundred_live_through_a_restart, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
