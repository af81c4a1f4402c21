/* SPDX-License-Identifier: MIT
 * tests/unit/test_agent.c - joining, and the way out of a fleet: each step bounded.
 */
#include "tests/unit/agents.h"

/* ---- joining ---- */

static void test_agent__one_leads_and_all_know_each_other(void **state)
{
    struct world w = {0};
    (void)state;
    world_of_three(&w);
    assert_false(node_leads(&w.node[1]));
    assert_int_equal(node_sees(&w.node[1], "a"), COORD_PEER_HEALTHY);
    struct coord_peer peer;
    assert_true(
        coord_coordinator_find_peer(coord_agent_coordinator(w.node[1].agent), "a", 1, &peer));
    assert_true(peer.is_leader);
    world_end(&w);
}

static void test_agent__an_observer_hears_and_says_nothing(void **state)
{
    struct world w = {0};
    (void)state;
    world_of_three(&w);
    struct agent_node *o = world_add(&w, "o", NULL);
    node_start(o, false, true);
    world_run(&w, 40000);
    assert_int_equal(coord_agent_counts(o->agent).published, 0);
    assert_int_equal(node_sees(o, "c"), COORD_PEER_HEALTHY);
    assert_int_equal(node_sees(&w.node[0], "o"), COORD_PEER_UNKNOWN);
    world_end(&w);
}

static void test_agent__the_leaders_fence_stays_told_over_renewals(void **state)
{
    struct world w = {0};
    const char *names = "orders";
    struct coord_agent_work work = {.target = "b", .names = &names, .count = 1};
    (void)state;
    struct agent_node *a = world_of_three(&w);
    world_run(&w, 600000);
    assert_int_equal(coord_agent_assign(a->agent, &work, w.now, AGENT_WALL), COORD_OK);
    assert_int_equal(coord_agent_assign(w.node[1].agent, &work, w.now, AGENT_WALL),
                     COORD_E_NOT_LEADER);
    world_run(&w, 10);
    assert_true(world_said(&w, "b hears ASSIGNMENT"));
    world_end(&w);
}

static void test_agent__what_makes_no_sense_is_refused(void **state)
{
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    struct coord_agent *agent = NULL;
    struct coord_error error;
    struct world w = {0};
    (void)state;
    struct agent_node *a = world_of_three(&w);
    config.coordinator.instance_id = "x";
    assert_int_equal(coord_agent_new(&config, 1, &agent, &error), COORD_E_BAD_ARGUMENT);
    config.bus.publish = node_publish;
    config.topic_prefix = "no blanks";
    assert_int_equal(coord_agent_new(&config, 1, &agent, &error), COORD_E_BAD_ARGUMENT);
    config.topic_prefix = NULL;
    config.publishes_only = true;
    config.elector = a->elector;
    assert_int_equal(coord_agent_new(&config, 1, &agent, &error), COORD_E_BAD_ARGUMENT);
    config.size = 1;
    assert_int_equal(coord_agent_new(&config, 1, &agent, &error), COORD_E_VERSION_MISMATCH);
    assert_null(agent);
    world_end(&w);
}

static void test_agent__who_only_publishes_hears_what_is_for_itself(void **state)
{
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    struct coord_agent *agent = NULL;
    struct agent_node quiet = {.id = "q"};
    struct world w = {0};
    (void)state;
    quiet.world = &w;
    config.coordinator.instance_id = "q";
    config.publishes_only = true;
    config.bus = (struct coord_agent_bus){.publish = node_publish, .ctx = &quiet};
    assert_int_equal(coord_agent_new(&config, AGENT_START, &agent, NULL), COORD_OK);
    assert_null(coord_agent_topic(agent, COORD_MESSAGE_HEARTBEAT));
    assert_null(coord_agent_topic(agent, COORD_MESSAGE_ORPHANS));
    assert_string_equal(coord_agent_topic(agent, COORD_MESSAGE_SHUTDOWN),
                        "__eventsource_coordination.shutdown");
    assert_non_null(coord_agent_topic(agent, COORD_MESSAGE_FINISHED));
    coord_agent_free(agent);
}

/* ---- leaving ---- */

static void test_agent__a_leader_leaves_in_order(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *a = world_of_three(&w);
    a->drains_for = 5000;
    node_leave(a, COORD_INTENT_PREEMPTION, 120000);
    world_run(&w, 4000);
    assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_DRAINING);
    assert_false(node_leads(a));
    /* Another leads while it drains: nobody holds leadership through a drain. */
    assert_true(node_leads(&w.node[1]) || node_leads(&w.node[2]));
    const char *order[] = {"a says shutdown preemption", "a leaves, preemption", "a stops leading",
                           "a leads no more", "a drains"};
    const char *at = w.log;
    for (unsigned i = 0; i < 5; i++) {
        const char *found = strstr(at, order[i]);
        assert_non_null(found);
        at = found;
    }
    world_run(&w, 2000);
    assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_LEFT);
    assert_true(a->last.drained && a->last.heard && a->last.released);
    assert_true(world_said(&w, "a says finished"));
    assert_int_equal(node_sees(&w.node[1], "a"), COORD_PEER_FINISHED);
    world_end(&w);
}

static void test_agent__a_slow_acknowledgement_ends_with_the_term(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *a = world_add(&w, "a", "orders");
    a->explicit_ack = true;
    a->acks_for = COORD_NEVER;
    node_start(a, true, false);
    world_join(&w, "b", NULL);
    world_run(&w, 40000);
    assert_true(node_leads(a));
    a->drains_for = 1000;
    node_leave(a, COORD_INTENT_PREEMPTION, 120000);
    world_run(&w, 10);
    assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_RELEASING);
    assert_true(node_leads(a));
    world_run(&w, AGENT_TTL + AGENT_TTL / 5);
    assert_false(node_leads(a));
    assert_true(coord_agent_phase(a->agent) >= COORD_AGENT_DRAINING);
    /* Drained says that the work of the term has ended too. */
    world_run(&w, 2000);
    assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_LEFT);
    assert_true(a->last.released);
    world_end(&w);
}

static void test_agent__a_deadline_ends_every_step(void **state)
{
    static const struct {
        bool acknowledges;
        bool drains;
        bool bus_cut;
        bool store_cut;
        bool drained;
    } cases[] = {{false, true, false, false, false}, /* releasing */
                 {true, false, false, false, false}, /* draining */
                 {true, true, true, false, true},    /* finishing: its last word is not heard */
                 {true, true, false, true, true}};   /* finishing: the store does not answer */
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w = {0};
        struct agent_node *a = world_add(&w, "a", "orders");
        a->explicit_ack = true;
        a->acks_for = cases[i].acknowledges ? 10 : COORD_NEVER;
        a->drains_for = cases[i].drains ? 10 : COORD_NEVER;
        node_start(a, true, false);
        world_run(&w, 40000);
        a->bus_cut = cases[i].bus_cut;
        a->store_cut = cases[i].store_cut;
        node_leave(a, COORD_INTENT_PREEMPTION, 3000);
        world_run(&w, 2999);
        assert_int_not_equal(coord_agent_phase(a->agent), COORD_AGENT_LEFT);
        world_run(&w, 2);
        assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_LEFT);
        assert_int_equal(a->last.kind, COORD_AGENT_EVENT_LEFT);
        assert_int_equal(a->last.drained, cases[i].drained);
        world_end(&w);
    }
}

static void test_agent__no_time_left_still_says_it_and_stops(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *a = world_of_three(&w);
    node_leave(a, COORD_INTENT_HEALTH_FAILURE, 0);
    world_run(&w, 10);
    assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_LEFT);
    assert_true(world_said(&w, "a says shutdown health_failure"));
    assert_true(world_said(&w, "a stops leading"));
    assert_false(world_said(&w, "a says finished"));
    world_end(&w);
}

static void test_agent__an_overrun_beats_on_until_its_work_ends(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *b = &w.node[1];
    world_of_three(&w);
    b->drains_for = 30000;
    node_leave(b, COORD_INTENT_PREEMPTION, 10000);
    world_run(&w, 20000);
    assert_true(world_said(&w, "b has left, overrun"));
    assert_int_equal(node_sees(&w.node[0], "b"), COORD_PEER_OVERRUN);
    world_run(&w, 40000); /* the work ended after 30 s: no more beats, and no last word */
    assert_int_equal(node_sees(&w.node[0], "b"), COORD_PEER_SILENT);
    assert_false(world_said(&w, "b says finished"));
    world_end(&w);
}

static void test_agent__a_drain_ends_before_the_deadline(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *b = &w.node[1];
    world_of_three(&w);
    b->drains_for = COORD_NEVER;
    node_leave(b, COORD_INTENT_PREEMPTION, 10000);
    coord_ms deadline = w.now + 10000;
    world_run(&w, 10);
    assert_int_equal(b->last.kind, COORD_AGENT_EVENT_DRAIN);
    assert_int_equal(b->last.deadline, deadline);
    assert_int_equal(b->last.drain_by, deadline - 1000);
    world_end(&w);
}

static void test_agent__work_that_ended_early_needs_no_drain(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *a = world_of_three(&w);
    node_leave(a, COORD_INTENT_GRACEFUL, 30000);
    coord_agent_drained(a->agent, w.now);
    world_run(&w, 100);
    assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_LEFT);
    assert_true(a->last.drained && a->last.heard && a->last.released);
    assert_false(world_said(&w, "a drains"));
    world_end(&w);
}

static void test_agent__drained_without_a_notice_is_nothing(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *a = world_of_three(&w);
    coord_agent_drained(a->agent, w.now);
    world_run(&w, 1000);
    assert_true(node_leads(a));
    assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_STAYING);
    world_end(&w);
}

/* ---- the bus ---- */

static void test_agent__a_bus_that_pushes_hands_messages_in(void **state)
{
    struct world w = {0};
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    struct coord_agent_event event;
    struct coord_agent *agent = NULL;
    unsigned char bytes[1024];
    size_t count = 0;
    struct agent_node *self = world_add(&w, "s", NULL);
    struct coord_message beat = {.type = COORD_MESSAGE_HEARTBEAT,
                                 .instance_id = coord_text("p", 1),
                                 .at_us = AGENT_WALL,
                                 .seq = 1,
                                 .incarnation = coord_text("1", 1)};
    (void)state;
    assert_int_equal(coord_message_encode(&beat, COORD_FORM_MSGPACK, bytes, sizeof bytes, &count),
                     COORD_OK);
    config.coordinator.instance_id = "s";
    config.bus = (struct coord_agent_bus){.publish = node_publish, .ctx = self};
    config.topic_prefix = "ours";
    assert_int_equal(coord_agent_new(&config, w.now, &agent, NULL), COORD_OK);
    assert_int_equal(coord_agent_take(agent, "ours.heartbeat", bytes, count, w.now), COORD_OK);
    assert_int_equal(coord_agent_take(agent, "ours.heartbeat", bytes, count, w.now), COORD_E_BUSY);
    assert_true(coord_agent_deadline(agent) <= w.now);
    assert_true(coord_agent_step(agent, w.now, AGENT_WALL, &event));
    assert_int_equal(event.fleet->kind, COORD_EVENT_PEER_APPEARED);
    coord_agent_free(agent);
    world_end(&w);
}

static void test_agent__rubbish_is_counted_and_harmless(void **state)
{
    struct world w = {0};
    static unsigned char big[COORD_MESSAGE_MAX + 10];
    (void)state;
    struct agent_node *a = world_of_three(&w);
    struct coord_agent_counts before = coord_agent_counts(a->agent);
    post(a, "something.else", "x", 1);
    post(a, "__eventsource_coordination.heartbeat", "\xdd\xff\xff\xff\xff", 5);
    post(a, "__eventsource_coordination.heartbeat", big, sizeof big);
    post(a, "__eventsource_coordination.heartbeat", "", 0);
    world_run(&w, 10);
    struct coord_agent_counts after = coord_agent_counts(a->agent);
    struct coord_coordinator_counts counts =
        coord_coordinator_counts(coord_agent_coordinator(a->agent));
    assert_int_equal(after.strange - before.strange, 1);
    assert_int_equal(counts.fault[COORD_FAULT_TOO_LONG], 1);
    assert_true(after.received - before.received >= 3);
    assert_int_equal(counts.healthy, 2);
    world_end(&w);
}

static void test_agent__a_dead_bus_is_counted_and_recovers(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *a = world_of_three(&w);
    for (unsigned i = 0; i < 3; i++) {
        w.node[i].bus_cut = true;
    }
    world_run(&w, 60000);
    assert_true(coord_agent_counts(a->agent).unsent > 5);
    for (unsigned i = 0; i < 3; i++) {
        w.node[i].bus_cut = false;
    }
    world_run(&w, 60000);
    assert_false(world_said(&w, "SILENT")); /* nobody died of it */
    assert_int_equal(node_sees(a, "b"), COORD_PEER_HEALTHY);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent__one_leads_and_all_know_each_other),
        cmocka_unit_test(test_agent__an_observer_hears_and_says_nothing),
        cmocka_unit_test(test_agent__the_leaders_fence_stays_told_over_renewals),
        cmocka_unit_test(test_agent__what_makes_no_sense_is_refused),
        cmocka_unit_test(test_agent__who_only_publishes_hears_what_is_for_itself),
        cmocka_unit_test(test_agent__a_leader_leaves_in_order),
        cmocka_unit_test(test_agent__a_slow_acknowledgement_ends_with_the_term),
        cmocka_unit_test(test_agent__a_deadline_ends_every_step),
        cmocka_unit_test(test_agent__no_time_left_still_says_it_and_stops),
        cmocka_unit_test(test_agent__an_overrun_beats_on_until_its_work_ends),
        cmocka_unit_test(test_agent__a_drain_ends_before_the_deadline),
        cmocka_unit_test(test_agent__work_that_ended_early_needs_no_drain),
        cmocka_unit_test(test_agent__drained_without_a_notice_is_nothing),
        cmocka_unit_test(test_agent__a_bus_that_pushes_hands_messages_in),
        cmocka_unit_test(test_agent__rubbish_is_counted_and_harmless),
        cmocka_unit_test(test_agent__a_dead_bus_is_counted_and_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
