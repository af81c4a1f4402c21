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

static void kill_server(void)
{
    redis_server_kill(&server);
}

static void again(void)
{
    redis_server_again(&server);
}

static struct fleet_scene scene = {.kill = kill_server, .again = again};

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
    redis_server_start(&server, (const char *const[]){"--save", "", NULL});
    const struct fleet_store store = {
        .name = "redis", .buses = buses, .electors = electors, .uri = server.uri};
    fleet_scene_play(&scene, &store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_fleet_redis__loses_nobody_over_a_restart, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
