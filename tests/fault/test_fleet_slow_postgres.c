/* SPDX-License-Identifier: MIT
 * tests/fault/test_fleet_slow_postgres.c - a slow reader on PostgreSQL grows no memory without
 * bound. What it has not read stays in the queue of the server, which can be looked at.
 */
#include "brokers/postgres.h"
#include "tests/support/fleet_slow.h"
#include "tests/support/postgres_server.h"
#include "tests/support/support.h"

#include <signal.h>

static const struct coord_bus_scheme buses[] = {{"postgresql", coord_postgres_broker, NULL},
                                                {NULL, NULL, NULL}};
static struct postgres_server server;
static struct fleet_slow scene;
static struct fleet_store store = {.name = "postgres", .buses = buses, .uri = server.uri};

static void begin(void)
{
    if (server.pid == 0) {
        postgres_server_start(&server, (const char *const[]){"log_lock_waits=on", NULL});
    }
}

static int tear_down(void **state)
{
    (void)state;
    fleet_slow_end(&scene);
    return 0;
}

static int end_all(void **state)
{
    (void)state;
    postgres_server_stop(&server);
    return 0;
}

static bool queue_is_empty(void)
{
    return postgres_server_ask(&server, "select pg_notification_queue_usage() = 0") == 1;
}

static void test_fleet_slow_postgres__who_does_not_read_catches_up(void **state)
{
    (void)state;
    begin();
    fleet_slow_begin(&scene, &store);
    fleet_slow_flood(&scene);
    assert_false(queue_is_empty()); /* as docs/buses.md says, this is where to look */
    fleet_slow_recover(&scene, 1);
    assert_true(scene.most - scene.memory < FLEET_SLOW_MOST);
    assert_true(fleet_slow_status(&scene.slow).inbox_bytes <= FLEET_SLOW_KEPT);
    assert_int_equal(fleet_slow_status(&scene.fast).ups, 1);
    assert_int_equal(scene.slow.news.wrongly_silent, 0);
}

static void test_fleet_slow_postgres__a_stuck_callback_loses_events_and_not_memory(void **state)
{
    (void)state;
    begin();
    fleet_slow_stuck(&scene, &store);
}

static void again(void)
{
    postgres_server_again(&server);
}

static void test_fleet_slow_postgres__agents_begin_without_a_server(void **state)
{
    (void)state;
    begin();
    postgres_server_end(&server, SIGQUIT);
    fleet_slow_down_at_start(&scene, &store, again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_teardown(test_fleet_slow_postgres__##name, tear_down)
        T(who_does_not_read_catches_up),
        T(a_stuck_callback_loses_events_and_not_memory),
        T(agents_begin_without_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, end_all);
}
