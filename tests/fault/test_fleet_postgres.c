/* SPDX-License-Identifier: MIT
 * tests/fault/test_fleet_postgres.c - two hundred whole agents over one PostgreSQL, which crashes
 * and comes back; some processes are stopped, some killed, and somebody says what he should not.
 */
#include "brokers/postgres.h"
#include "electors/postgres.h"
#include "tests/support/fleet_scene.h"
#include "tests/support/postgres_world.h"
#include "tests/support/support.h"

#include <signal.h>

static const struct coord_bus_scheme buses[] = {{"postgresql", coord_postgres_broker, NULL},
                                                {NULL, NULL, NULL}};
static const struct coord_scheme electors[] = {{"postgresql", coord_postgres_elector, NULL},
                                               {NULL, NULL, NULL}};
static struct postgres_server server;

static void kill_server(void)
{
    postgres_server_end(&server, SIGQUIT);
}

static void again(void)
{
    postgres_server_again(&server);
}

static struct fleet_scene scene = {.kill = kill_server, .again = again};

static int tear_down(void **state)
{
    (void)state;
    fleet_scene_end(&scene);
    postgres_server_stop(&server);
    return 0;
}

static void test_fleet_postgres__loses_nobody_over_a_restart(void **state)
{
    (void)state;
    postgres_server_start(&server, (const char *const[]){"max_connections=30", NULL});
    world_prepare(&server);
    const struct fleet_store store = {
        .name = "postgres", .buses = buses, .electors = electors, .uri = server.uri};
    fleet_scene_play(&scene, &store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_fleet_postgres__loses_nobody_over_a_restart, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
