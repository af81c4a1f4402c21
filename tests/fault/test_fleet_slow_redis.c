/* SPDX-License-Identifier: MIT
 * tests/fault/test_fleet_slow_redis.c - a slow reader on Redis grows no memory without bound:
 * neither its own, nor the server's.
 */
#include "brokers/redis.h"
#include "tests/support/fleet_slow.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

static const struct coord_bus_scheme buses[] = {{"redis+unix", coord_redis_broker, NULL},
                                                {NULL, NULL, NULL}};
static struct redis_server server;
static struct fleet_slow scene;
static struct fleet_store store = {.name = "redis", .buses = buses, .uri = server.uri};

static void begin(void)
{
    redis_server_start(
        &server, (const char *const[]){"--client-output-buffer-limit", "pubsub 4mb 0 0", NULL});
}

static int tear_down(void **state)
{
    (void)state;
    fleet_slow_end(&scene);
    redis_server_stop(&server);
    return 0;
}

static void test_fleet_slow_redis__who_does_not_read_is_cut_off_and_comes_back(void **state)
{
    (void)state;
    begin();
    fleet_slow_begin(&scene, &store);
    const uint64_t ups = fleet_slow_status(&scene.slow).ups;
    fleet_slow_flood(&scene);
    fleet_slow_recover(&scene, ups + 1); /* the server let go of it, and of what it held for it */
    assert_true(scene.most - scene.memory < FLEET_SLOW_MOST);
    assert_true(fleet_slow_status(&scene.slow).inbox_bytes <= FLEET_SLOW_KEPT);
    assert_int_equal(fleet_slow_status(&scene.fast).ups, 1); /* nobody else was cut off */
    assert_int_equal(scene.slow.news.wrongly_silent, 0);     /* it knows that it slept */
}

static void test_fleet_slow_redis__a_stuck_callback_loses_events_and_not_memory(void **state)
{
    (void)state;
    begin();
    fleet_slow_stuck(&scene, &store);
}

static void again(void)
{
    redis_server_again(&server);
}

static void test_fleet_slow_redis__agents_begin_without_a_server(void **state)
{
    (void)state;
    begin();
    redis_server_kill(&server);
    fleet_slow_down_at_start(&scene, &store, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_teardown(test_fleet_slow_redis__##name, tear_down)
        T(who_does_not_read_is_cut_off_and_comes_back),
        T(a_stuck_callback_loses_events_and_not_memory),
        T(agents_begin_without_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
