/* SPDX-License-Identifier: MIT
 * tests/unit/test_agent_notices.c - notices that change or are withdrawn, and orders.
 */
#include "tests/unit/agents.h"

/* ---- notices that change ---- */

static void test_agent_notices__withdrawn_while_stopping_still_releases(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *a = world_add(&w, "a", "orders");
    a->explicit_ack = true;
    a->acks_for = 2000;
    node_start(a, true, false);
    world_join(&w, "b", NULL);
    world_run(&w, 40000);
    node_leave(a, COORD_INTENT_PREEMPTION, 120000);
    world_run(&w, 500);
    assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_RELEASING);
    assert_int_equal(coord_agent_stay(a->agent, w.now), COORD_OK);
    world_run(&w, 500);
    assert_true(world_said(&w, "a stays"));
    assert_true(node_leads(a)); /* its work has not ended yet */
    world_run(&w, 2000);
    assert_true(world_said(&w, "a leads no more"));
    assert_true(world_said(&w, "leads, fence 2")); /* a new term, whoever's */
    assert_int_equal(node_sees(&w.node[1], "a"), COORD_PEER_HEALTHY);
    /* And it stands again. */
    node_kill(&w.node[1]);
    world_run(&w, 2 * AGENT_TTL);
    assert_true(node_leads(a));
    world_end(&w);
}

static void test_agent_notices__withdrawn_while_draining_is_healthy_again(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *b = &w.node[1];
    world_of_three(&w);
    b->drains_for = COORD_NEVER;
    node_leave(b, COORD_INTENT_PREEMPTION, 120000);
    world_run(&w, 100);
    assert_int_equal(node_sees(&w.node[0], "b"), COORD_PEER_LEAVING);
    assert_int_equal(coord_agent_stay(b->agent, w.now), COORD_OK);
    world_run(&w, 100);
    assert_int_equal(node_sees(&w.node[0], "b"), COORD_PEER_HEALTHY);
    node_leave(b, COORD_INTENT_MAINTENANCE, 120000);
    world_run(&w, 100);
    assert_int_equal(b->last.kind, COORD_AGENT_EVENT_DRAIN);
    assert_int_equal(b->last.intent, COORD_INTENT_MAINTENANCE);
    world_end(&w);
}

static void test_agent_notices__after_the_last_word_there_is_no_staying(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *b = &w.node[1];
    world_of_three(&w);
    node_leave(b, COORD_INTENT_PREEMPTION, 120000);
    world_run(&w, 100);
    assert_int_equal(coord_agent_phase(b->agent), COORD_AGENT_LEFT);
    assert_int_equal(coord_agent_stay(b->agent, w.now), COORD_E_CLOSED);
    world_end(&w);
}

static void test_agent_notices__a_signal_keeps_the_reason_and_the_nearer_deadline(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *b = &w.node[1];
    world_of_three(&w);
    b->drains_for = COORD_NEVER;
    node_leave(b, COORD_INTENT_PREEMPTION, 20000);
    coord_ms deadline = w.now + 20000;
    world_run(&w, 100);
    node_leave(b, COORD_INTENT_GRACEFUL, 30000);
    world_run(&w, 100);
    assert_int_equal(b->last.intent, COORD_INTENT_PREEMPTION);
    assert_int_equal(b->last.deadline, deadline);
    node_leave(b, COORD_INTENT_GRACEFUL, 5000);
    deadline = w.now + 5000;
    world_run(&w, 100);
    assert_int_equal(b->last.kind, COORD_AGENT_EVENT_LEAVING);
    assert_int_equal(b->last.deadline, deadline);
    node_leave(b, COORD_INTENT_MAINTENANCE, 60000); /* a reason of its own moves it */
    deadline = w.now + 60000;
    world_run(&w, 100);
    assert_int_equal(b->last.intent, COORD_INTENT_MAINTENANCE);
    assert_int_equal(b->last.deadline, deadline);
    world_end(&w);
}

/* ---- orders ---- */

static void order(struct world *w, const char *id, bool json)
{
    unsigned char bytes[1024];
    size_t count = 0;
    struct coord_message message = {.type = COORD_MESSAGE_SHUTDOWN,
                                    .intent = COORD_INTENT_MAINTENANCE,
                                    .instance_id = coord_text(id, strlen(id)),
                                    .at_us = AGENT_WALL,
                                    .completion_us = AGENT_WALL + 60000000};
    assert_int_equal(coord_message_encode(&message, json ? COORD_FORM_JSON : COORD_FORM_MSGPACK,
                                          bytes, sizeof bytes, &count),
                     COORD_OK);
    for (unsigned i = 0; i < w->count; i++) {
        post(&w->node[i], "__eventsource_coordination.shutdown", bytes, count);
    }
}

static void test_agent_notices__an_order_starts_it_too(void **state)
{
    struct world w = {0};
    (void)state;
    struct agent_node *a = world_of_three(&w);
    a->drains_for = 3000;
    order(&w, "a", true);
    world_run(&w, 1000);
    assert_int_equal(a->last.kind, COORD_AGENT_EVENT_DRAIN);
    assert_int_equal(a->last.intent, COORD_INTENT_MAINTENANCE);
    assert_int_equal(coord_agent_phase(w.node[1].agent), COORD_AGENT_STAYING);
    world_run(&w, 5000);
    assert_int_equal(coord_agent_phase(a->agent), COORD_AGENT_LEFT);
    world_end(&w);
}

static void test_agent_notices__an_order_may_be_refused(void **state)
{
    struct world w = {0};
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    struct coord_agent_event event;
    struct coord_agent *agent = NULL;
    struct agent_node *self = world_add(&w, "s", NULL);
    (void)state;
    config.coordinator.instance_id = "s";
    config.coordinator.refuses_orders = true;
    config.bus = (struct coord_agent_bus){.publish = node_publish, .next = node_next, .ctx = self};
    assert_int_equal(coord_agent_new(&config, w.now, &agent, NULL), COORD_OK);
    order(&w, "s", false);
    w.now += 10;
    while (coord_agent_step(agent, w.now, AGENT_WALL, &event)) {
    }
    assert_int_equal(coord_agent_counts(agent).received, 1);
    assert_int_equal(coord_agent_phase(agent), COORD_AGENT_STAYING);
    coord_agent_free(agent);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_notices__withdrawn_while_stopping_still_releases),
        cmocka_unit_test(test_agent_notices__withdrawn_while_draining_is_healthy_again),
        cmocka_unit_test(test_agent_notices__after_the_last_word_there_is_no_staying),
        cmocka_unit_test(test_agent_notices__a_signal_keeps_the_reason_and_the_nearer_deadline),
        cmocka_unit_test(test_agent_notices__an_order_starts_it_too),
        cmocka_unit_test(test_agent_notices__an_order_may_be_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
