/* SPDX-License-Identifier: MIT
 * tests/fault/test_fleet_redis.c - two hundred whole agents over one Redis, which is killed and
 * comes back empty; some processes are stopped, some killed, and somebody says what he should not.
 */
#include "brokers/redis.h"
#include "electors/redis.h"
#include "tests/support/fleet_scene.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

static const struct coord_bus_scheme buses[] = {{"redis+unix", coord_redis_broker, NULL},
                                                {NULL, NULL, NULL}};
static const struct coord_scheme electors[] = {{"redis+unix", coord_redis_elector, NULL},
                                               {NULL, NULL, NULL}};
static struct redis_server server;
static struct fleet_scene scene;

static void kill_server(void)
{
    redis_server_kill(&server);
}

static void again(void)
{
    redis_server_again(&server);
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
    redis_server_stop(&server);
    return 0;
}

static void test_fleet_redis__loses_nobody_over_a_restart(void **state)
{
    (void)state;
    redis_server_needed();
    redis_server_start(&server, (const char *const[]){"--save", "", NULL});
    const struct fleet_store store = {
        .name = "redis", .buses = buses, .electors = electors, .uri = server.uri};
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
#define T(name) cmocka_unit_test_setup_teardown(test_fleet_redis__##name, set_up, tear_down)
        T(loses_nobody_over_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
