/* SPDX-License-Identifier: MIT
 * tests/unit/test_member.c - members of a fleet in this process: on helper threads, in a loop of
 * one's own, over a broker and over an application's own bus.
 */
#include "tests/unit/members.h"

#include "runtime/member.h"

/* ---- together ---- */

static void test_member__a_fleet_knows_itself_and_reports_a_death(void **state)
{
    struct host a;
    struct host b;
    struct host o;
    const char *orders = "orders";
    struct coord_member_peers *peers = NULL;
    struct coord_member_orphans *orphans = NULL;
    (void)state;
    open_host(&a, &(struct plan){
                      .id = "a", .bus = "memory:m1", .election = "memory:m1", .threads = true});
    open_host(&b, &(struct plan){.id = "b", .bus = "memory:m1", .threads = true});
    open_host(&o,
              &(struct plan){
                  .id = "o", .bus = "memory:m1", .threads = true, .role = COORD_AGENT_OBSERVER});
    assert_int_equal(coord_member_serve(b.member, &orders, 1, 3, 0.25), COORD_OK);
    wait_said(&a, "LEADS");
    wait_said(&a, "PEER_APPEARED b");
    wait_said(&b, "PEER_APPEARED a");
    const coord_ms start = coord_clock_now();
    size_t listed = 0; /* its first heartbeat may have come before it served anything */
    while (listed == 0) {
        assert_true(within(start));
        assert_int_equal(coord_member_peers(a.member, &peers), COORD_OK);
        for (size_t i = 0; i < peers->count; i++) {
            if (strcmp(peers->peer[i].id, "b") == 0 && peers->subscriptions[i][0] != NULL) {
                assert_string_equal(peers->subscriptions[i][0], "orders");
                assert_null(peers->subscriptions[i][1]);
                assert_int_equal(peers->peer[i].in_flight_count, 3);
                listed++;
            }
        }
        coord_member_peers_free(peers);
    }
    assert_int_equal(coord_member_assign(a.member, "b", &orders, 1, 5), COORD_OK);
    assert_int_equal(coord_member_assign(b.member, "a", &orders, 1, 5), COORD_E_NOT_LEADER);
    wait_said(&b, "ASSIGNMENT orders");
    close_host(&b); /* without a word */
    wait_said(&a, "PEER_SILENT b");
    wait_said(&a, "ORPHAN_OPENED orders");
    wait_said(&o, "ORPHAN_OPENED orders");
    assert_int_equal(coord_member_orphans(o.member, &orphans), COORD_OK);
    assert_int_equal(orphans->count, 1);
    assert_string_equal(orphans->orphan[0].subscription, "orders");
    assert_string_equal(orphans->orphan[0].instance_id, "b");
    coord_member_orphans_free(orphans);
    struct coord_member_view view;
    assert_int_equal(coord_member_look(a.member, &view), COORD_OK);
    assert_true(view.bus_up && view.judging);
    assert_int_equal(view.fleet.orphans, 1);
    close_host(&o);
    close_host(&a);
}

/* ---- leaving ---- */

static void test_member__a_leader_leaves_in_order(void **state)
{
    struct host a;
    struct coord_agent_event left;
    (void)state;
    open_host(&a, &(struct plan){
                      .id = "a", .bus = "memory:m2", .election = "memory:m2", .threads = true});
    wait_said(&a, "LEADS");
    assert_int_equal(coord_member_leave(a.member, COORD_INTENT_PREEMPTION, LONG), COORD_OK);
    assert_int_equal(coord_member_wait(a.member, LONG, &left), COORD_OK);
    assert_true(left.drained && left.heard && left.released);
    assert_int_equal(left.intent, COORD_INTENT_PREEMPTION);
    const char *stops = strstr(a.said, "STOPS");
    const char *drain = strstr(a.said, "DRAIN");
    assert_true(strstr(a.said, "LEAVING") != NULL && stops != NULL && drain != NULL);
    assert_true(stops < drain);
    assert_int_equal(coord_member_stay(a.member), COORD_E_CLOSED);
    close_host(&a);
}

static void test_member__without_threads_waiting_drives_it(void **state)
{
    struct host a;
    struct coord_agent_event left;
    (void)state;
    open_host(&a, &(struct plan){.id = "a", .bus = "memory:", .election = "memory:"});
    assert_int_equal(coord_election_wait(a.election, LONG, NULL), COORD_OK);
    assert_int_equal(coord_member_leave(a.member, COORD_INTENT_MAINTENANCE, LONG), COORD_OK);
    assert_int_equal(coord_member_wait(a.member, LONG, &left), COORD_OK);
    assert_true(left.drained && left.heard && left.released);
    close_host(&a);
}

static void test_member__who_has_no_function_has_nothing_to_end(void **state)
{
    struct host a;
    struct coord_agent_event left;
    (void)state;
    open_host(&a, &(struct plan){.id = "a", .bus = "memory:", .deaf = true, .threads = true});
    assert_int_equal(coord_member_wait(a.member, 10, NULL), COORD_E_TIMEOUT);
    assert_int_equal(coord_member_leave(a.member, COORD_INTENT_GRACEFUL, LONG), COORD_OK);
    assert_int_equal(coord_member_wait(a.member, LONG, &left), COORD_OK);
    assert_true(left.drained && left.heard);
    close_host(&a);
}

static void test_member__the_drain_may_end_by_a_call(void **state)
{
    struct host a;
    struct coord_agent_event left;
    (void)state;
    open_host(&a,
              &(struct plan){.id = "a", .bus = "memory:", .explicit_drain = true, .threads = true});
    assert_int_equal(coord_member_leave(a.member, COORD_INTENT_GRACEFUL, LONG), COORD_OK);
    wait_said(&a, "DRAIN");
    assert_int_equal(coord_member_wait(a.member, 20, NULL), COORD_E_TIMEOUT);
    assert_int_equal(coord_member_stay(a.member), COORD_OK);
    wait_said(&a, "STAYING");
    assert_int_equal(coord_member_leave(a.member, COORD_INTENT_GRACEFUL, LONG), COORD_OK);
    assert_int_equal(coord_member_drained(a.member), COORD_OK);
    assert_int_equal(coord_member_wait(a.member, LONG, &left), COORD_OK);
    assert_true(left.drained);
    close_host(&a);
}

static void test_member__a_deadline_ends_it_all(void **state)
{
    struct host a;
    struct coord_agent_event left;
    (void)state;
    open_host(&a,
              &(struct plan){.id = "a", .bus = "memory:", .explicit_drain = true, .threads = true});
    assert_int_equal(coord_member_leave(a.member, COORD_INTENT_PREEMPTION, 50), COORD_OK);
    assert_int_equal(coord_member_wait(a.member, LONG, &left), COORD_OK);
    assert_false(left.drained);
    close_host(&a);
}

static int signal_fd;

static void on_term(int number)
{
    (void)number;
    coord_member_leave_signal(signal_fd);
}

static void test_member__a_signal_starts_it(void **state)
{
    struct host a;
    struct coord_agent_event left;
    struct sigaction action = {.sa_handler = on_term};
    struct sigaction before;
    (void)state;
    open_host(&a, &(struct plan){.id = "a", .bus = "memory:", .threads = true});
    signal_fd = coord_member_signal_fd(a.member);
    assert_int_equal(sigaction(SIGTERM, &action, &before), 0);
    raise(SIGTERM);
    assert_int_equal(coord_member_wait(a.member, LONG, &left), COORD_OK);
    assert_int_equal(left.intent, COORD_INTENT_GRACEFUL);
    assert_int_equal(sigaction(SIGTERM, &before, NULL), 0);
    close_host(&a);
}

static void test_member__its_election_may_go_first(void **state)
{
    struct host a;
    struct coord_agent_event left;
    (void)state;
    open_host(&a,
              &(struct plan){.id = "a", .bus = "memory:", .election = "memory:", .threads = true});
    wait_said(&a, "LEADS");
    coord_election_close(a.election);
    a.election = NULL;
    assert_int_equal(coord_member_assign(a.member, "b", NULL, 0, 0), COORD_E_NOT_LEADER);
    assert_int_equal(coord_member_leave(a.member, COORD_INTENT_GRACEFUL, LONG), COORD_OK);
    assert_int_equal(coord_member_wait(a.member, LONG, &left), COORD_OK);
    close_host(&a);
}

static void test_member__may_be_closed_inside_its_callback(void **state)
{
    struct host a;
    (void)state;
    open_host(&a, &(struct plan){.id = "a", .bus = "memory:"});
    a.close_inside = true;
    assert_int_equal(coord_member_leave(a.member, COORD_INTENT_GRACEFUL, LONG), COORD_OK);
    const coord_ms start = coord_clock_now();
    while (a.events == 0) {
        assert_true(within(start));
        assert_int_equal(coord_runtime_process(a.runtime), COORD_OK);
    }
    a.member = NULL;
    assert_int_equal(coord_runtime_process(a.runtime), COORD_OK);
    assert_int_equal(a.events, 1);
    close_host(&a);
}

static void test_member__a_forked_child_leaves_the_parents_alone(void **state)
{
    struct host a;
    (void)state;
    open_host(&a,
              &(struct plan){.id = "a", .bus = "memory:", .election = "memory:", .threads = true});
    wait_said(&a, "LEADS");
    const pid_t child = fork();
    if (child == 0) {
        bool ok = coord_member_leave(a.member, COORD_INTENT_GRACEFUL, 1) == COORD_E_FORKED;
        coord_member_close(a.member);
        coord_bus_close(a.bus);
        coord_election_close(a.election);
        coord_runtime_free(a.runtime);
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(coord_election_is_leader(a.election));
    close_host(&a);
}

static void test_member__its_bus_may_go_first(void **state)
{
    struct host a;
    struct coord_member_view view;
    (void)state;
    open_host(&a, &(struct plan){.id = "a", .bus = "memory:", .threads = true});
    coord_bus_close(a.bus);
    a.bus = NULL;
    assert_int_equal(coord_member_leave(a.member, COORD_INTENT_GRACEFUL, 50), COORD_OK);
    assert_int_equal(coord_member_wait(a.member, LONG, NULL), COORD_OK);
    assert_int_equal(coord_member_look(a.member, &view), COORD_OK);
    assert_false(view.bus_up);
    close_host(&a);
}

/* ---- an application's own bus ---- */

struct own {
    struct coord_bus *bus[2];
};

/* It delivers at once, from within the call, as a bus in one process may. */
static bool carry(void *ctx, const struct coord_broker_message *message)
{
    struct own *own = ctx;
    for (unsigned i = 0; i < 2; i++) {
        if (own->bus[i] != NULL) {
            assert_int_equal(
                coord_bus_deliver(own->bus[i], message->topic, message->bytes, message->count),
                COORD_OK);
        }
    }
    return true;
}

static void test_member__an_own_bus_is_two_functions(void **state)
{
    struct own own = {.bus = {NULL, NULL}};
    struct coord_runtime *runtime = NULL;
    struct coord_member *member[2] = {NULL, NULL};
    struct host h = {.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    assert_int_equal(coord_runtime_new(NULL, &runtime, NULL), COORD_OK);
    for (unsigned i = 0; i < 2; i++) {
        struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
        assert_int_equal(coord_bus_open_own(runtime, carry, &own, NULL, &own.bus[i], NULL),
                         COORD_OK);
        config.bus = own.bus[i];
        config.topic_prefix = "ours";
        config.timeout = 1000;
        config.id = i == 0 ? "a" : "b";
        config.fn = i == 0 ? hear : NULL;
        config.ctx = &h;
        assert_int_equal(coord_member_open(runtime, &config, &member[i], NULL), COORD_OK);
    }
    const coord_ms start = coord_clock_now();
    while (!said(&h, "PEER_APPEARED b")) {
        assert_true(within(start));
        assert_int_equal(coord_runtime_process(runtime), COORD_OK);
    }
    struct coord_agent_event left;
    assert_int_equal(coord_member_leave(member[1], COORD_INTENT_GRACEFUL, LONG), COORD_OK);
    assert_int_equal(coord_member_wait(member[1], LONG, &left), COORD_OK);
    assert_true(left.heard);
    coord_member_close(member[1]);
    coord_runtime_free(runtime); /* closes the other, and both buses */
}

/* ---- sinks ---- */

static void count_report(void *ctx, const struct coord_report *report)
{
    assert_string_equal(report->fleet, "fleet");
    assert_string_equal(report->reporter, "a");
    atomic_fetch_add((atomic_uint *)ctx, 1);
}

static void test_member__sinks_hear_of_reports(void **state)
{
    struct host a;
    struct host b;
    atomic_uint heard = 0;
    const char *orders = "orders";
    struct coord_sink *sink = NULL;
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    (void)state;
    config.leader_only = true;
    assert_int_equal(coord_sink_function(count_report, &heard, &config, &sink, NULL), COORD_OK);
    open_host(&a, &(struct plan){
                      .id = "a", .bus = "memory:m9", .election = "memory:m9", .threads = true});
    assert_int_equal(coord_member_add_sink(a.member, sink), COORD_OK);
    open_host(
        &b, &(struct plan){.id = "b", .bus = "memory:m9", .threads = true, .explicit_drain = true});
    assert_int_equal(coord_member_serve(b.member, &orders, 1, 0, 0), COORD_OK);
    wait_said(&a, "LEADS");
    wait_said(&a, "PEER_APPEARED b");
    assert_int_equal(coord_member_leave(b.member, COORD_INTENT_PREEMPTION, LONG), COORD_OK);
    wait_said(&a, "ORPHAN_OPENED orders");
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(heard, 1);
    assert_true(coord_member_remove_sink(a.member, sink));
    assert_false(coord_member_remove_sink(a.member, sink));
    close_host(&b);
    close_host(&a);
    coord_sink_free(sink);
}

static void test_member__what_makes_no_sense_is_refused(void **state)
{
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_runtime *runtime = NULL;
    struct coord_member *member = NULL;
    struct coord_error error;
    (void)state;
    assert_int_equal(coord_runtime_new(NULL, &runtime, NULL), COORD_OK);
    struct coord_bus *bus = NULL;
    config.id = "a";
    assert_int_equal(coord_member_open(runtime, &config, &member, &error), COORD_E_BAD_ARGUMENT);
    assert_int_equal(coord_bus_open(runtime, buses, "memory:", NULL, &bus, NULL), COORD_OK);
    config.bus = bus;
    config.interval = 9000; /* two lost heartbeats would kill */
    assert_int_equal(coord_member_open(runtime, &config, &member, &error), COORD_E_BAD_ARGUMENT);
    config.id = NULL;
    assert_int_equal(coord_member_open(runtime, &config, &member, &error), COORD_E_BAD_NAME);
    config.size = 1;
    assert_int_equal(coord_member_open(runtime, &config, &member, &error),
                     COORD_E_VERSION_MISMATCH);
    assert_null(member);
    coord_member_close(NULL);
    coord_runtime_free(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_member__a_fleet_knows_itself_and_reports_a_death),
        cmocka_unit_test(test_member__a_leader_leaves_in_order),
        cmocka_unit_test(test_member__without_threads_waiting_drives_it),
        cmocka_unit_test(test_member__who_has_no_function_has_nothing_to_end),
        cmocka_unit_test(test_member__the_drain_may_end_by_a_call),
        cmocka_unit_test(test_member__a_deadline_ends_it_all),
        cmocka_unit_test(test_member__a_signal_starts_it),
        cmocka_unit_test(test_member__its_election_may_go_first),
        cmocka_unit_test(test_member__its_bus_may_go_first),
        cmocka_unit_test(test_member__may_be_closed_inside_its_callback),
        cmocka_unit_test(test_member__a_forked_child_leaves_the_parents_alone),
        cmocka_unit_test(test_member__an_own_bus_is_two_functions),
        cmocka_unit_test(test_member__sinks_hear_of_reports),
        cmocka_unit_test(test_member__what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
