/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_fleet_buses.c - the verbs about a fleet over the buses of real
 * servers, and over one that fleets share.
 */
#include "tests/support/fleet_calls.h"
#include "tests/support/postgres_server.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <signal.h>

static struct redis_server redis;
static struct postgres_server postgres;

static int set_up(void **state)
{
    static struct fleet_calls fleet;
    memset(&redis, 0, sizeof redis);
    memset(&postgres, 0, sizeof postgres);
    fleet_calls_open(&fleet);
    *state = &fleet;
    return 0;
}

static int tear_down(void **state)
{
    /* Before the scene, which ends every process. */
    if (redis.folder[0] != '\0') {
        redis_server_stop(&redis);
    }
    if (postgres.folder[0] != '\0') {
        postgres_server_stop(&postgres);
    }
    fleet_calls_close(*state);
    return 0;
}

/* ---------------------------------------------------------------- over each bus */

/* Heard, assigned to, crashed, reported, and ordered to leave. */
static void live_through_it(struct fleet_calls *fleet)
{
    struct coordctl leader;
    struct coordctl worker;
    struct coordctl follow;
    char out[COORDCTL_TEXT];
    static const char *const none[] = {NULL};
    const char *const assigned[] = {"--elector", fleet->scene.uri,  "--name",     "jobs", "--to",
                                    "w-1",       "--subscriptions", "audit,mail", NULL};
    static const char *const ordered[] = {"--id",       "leader", "--intent", "maintenance",
                                          "--deadline", "20s",    NULL};
    fleet_start(fleet, &follow, "orphans", WORDS("--follow", "--json"));
    fleet_start_agent(fleet, &leader, "leader", WORDS("--subscriptions", "ledger"));
    wait_for_text(leader.err, "leading jobs");
    fleet_start_agent(fleet, &worker, "w-1", WORDS("--subscriptions", "orders"));
    do { /* until the first heartbeat with its work came */
        assert_true(fleet_call(fleet, out, "peers", WORDS("--for", "1500ms", "--json")) <= 1);
    } while (strstr(out, "orders") == NULL || strstr(out, "ledger") == NULL);
    assert_int_equal(fleet_call(fleet, out, "assign", assigned), 0);
    wait_for_text(worker.err, "assigned: mail, fence ");
    kill(worker.pid, SIGKILL);
    coordctl_wait(&worker);
    wait_for_text(follow.out, "\"opened\"");
    json_t *opened = fleet_line_with(coordctl_output(follow.out, out), "\"opened\"");
    assert_string_equal(fleet_text_of(opened, "subscription"), "orders");
    assert_string_equal(fleet_text_of(opened, "cause"), "silent");
    json_decref(opened);
    assert_int_equal(fleet_call(fleet, out, "orphans", none), 0);
    assert_non_null(strstr(out, "orders: open, of w-1, silent, suspected, fence "));
    assert_int_equal(fleet_call(fleet, out, "announce", ordered), 0);
    assert_int_equal(coordctl_wait(&leader), 0);
    wait_for_text(leader.err, "leaving, maintenance");
}

static void test_cli_fleet_buses__redis_under_a_prefix(void **state)
{
    static const char *const options[] = {NULL};
    struct fleet_calls *fleet = *state;
    redis_server_needed();
    redis_server_start(&redis, options);
    fleet->bus = redis.uri;
    fleet->prefix = "jobs";
    live_through_it(fleet);
}

static void test_cli_fleet_buses__postgres(void **state)
{
    struct fleet_calls *fleet = *state;
    postgres_server_needed();
    postgres_server_start(&postgres, NULL);
    fleet->bus = postgres.uri;
    live_through_it(fleet);
}

static void test_cli_fleet_buses__an_agent_tells_of_one_that_is_down(void **state)
{
    static const char *const none[] = {NULL};
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    redis_server_needed();
    redis_server_start(&redis, none);
    redis_server_end(&redis);
    fleet->bus = redis.uri;
    fleet_start_agent(fleet, &agent, "w-1", none);
    wait_for_text(agent.err, "the bus is down: UNREACHABLE: ");
    redis_server_again(&redis);
    wait_for_text(agent.err, "the bus is up again");
    kill(agent.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&agent), 0);
}

/* ---------------------------------------------------------------- fleets that share a bus */

static void test_cli_fleet_buses__who_has_another_prefix_is_not_heard(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl watch;
    struct coordctl agent;
    char out[COORDCTL_TEXT];
    static const char *const none[] = {NULL};
    static const char *const ordered[] = {"--id", "w-1", "--intent", "graceful", NULL};
    static const char *const bad[] = {"--topic-prefix", "a b", "--for", "100ms", NULL};
    fleet->prefix = "jobs";
    fleet_start(fleet, &watch, "peers", WORDS("--watch"));
    fleet_start_agent(fleet, &agent, "w-1", none);
    wait_for_text(watch.out, "w-1 PEER_APPEARED");
    fleet->prefix = NULL;
    assert_int_equal(fleet_call(fleet, out, "peers", WORDS("--for", "1s")), 1);
    assert_int_equal(fleet_call(fleet, out, "announce", ordered), 0); /* to nobody */
    assert_int_equal(fleet_call(fleet, out, "peers", bad), 2);
    fleet->prefix = "jobs";
    assert_int_equal(fleet_call(fleet, out, "announce", ordered), 0);
    assert_int_equal(coordctl_wait(&agent), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_cli_fleet_buses__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(redis_under_a_prefix),
        TEST(postgres),
        TEST(an_agent_tells_of_one_that_is_down),
        TEST(who_has_another_prefix_is_not_heard),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
