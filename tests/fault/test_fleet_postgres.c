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
static struct fleet_scene scene;

static void kill_server(void)
{
    postgres_server_end(&server, SIGQUIT);
}

static void again(void)
{
    postgres_server_again(&server);
}

static int set_up(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof scene);
    scene.kill = kill_server;
    scene.again = again;
    return 0;
}

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
    postgres_server_needed();
    postgres_server_start(&server, (const char *const[]){"max_connections=30", NULL});
    world_prepare(&server);
    const struct fleet_store store = {
        .name = "postgres", .buses = buses, .electors = electors, .uri = server.uri};
    fleet_scene_begin(&scene, &store);
    fleet_scene_hostile(&scene, false);
    fleet_scene_outage(&scene);
    fleet_scene_return(&scene);
    fleet_scene_reports(&scene);
    fleet_scene_hostile(&scene, true);
    fleet_scene_resolution(&scene);
    fleet_scene_departure(&scene);
    fleet_scene_verdict(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_fleet_postgres__##name, set_up, tear_down)
        T(loses_nobody_over_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
