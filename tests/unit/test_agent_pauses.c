/* SPDX-License-Identifier: MIT
 * tests/unit/test_agent_pauses.c - agents that were stopped for a while, with messages that wait.
 */
#include "tests/unit/agents.h"

static void test_agent_pauses__an_observer_reads_what_waits_before_it_judges(void **state)
{
    (void)state;
    /* Shorter than what counts as slept: it came at most half a T after its deadline. */
    for (coord_ms pause = AGENT_T / 2; pause < 2 * AGENT_T; pause += 500) {
        struct world w = {0};
        world_of_three(&w);
        struct agent_node *o = world_add(&w, "o", NULL);
        node_start(o, false, true);
        world_run(&w, 20000);
        o->stopped = true;
        world_run(&w, pause);
        o->stopped = false;
        world_run(&w, 10000);
        assert_false(world_said(&w, "SILENT"));
        assert_int_equal(node_sees(o, "b"), COORD_PEER_HEALTHY);
        world_end(&w);
    }
}

static void test_agent_pauses__a_bus_that_pushes_what_waited_kills_nobody(void **state)
{
    struct world w = {0};
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    struct coord_agent_event event;
    struct coord_agent *agent = NULL;
    (void)state;
    struct agent_node *self = world_add(&w, "s", NULL);
    config.coordinator.instance_id = "s";
    config.role = COORD_AGENT_OBSERVER;
    config.bus = (struct coord_agent_bus){.publish = node_publish, .ctx = self};
    config.coordinator.timeout = AGENT_T;
    assert_int_equal(coord_agent_new(&config, w.now, &agent, NULL), COORD_OK);
    for (uint64_t seq = 1; seq <= 2; seq++) {
        for (unsigned i = 0; i < 5; i++) {
            const char *const ids[] = {"p", "q", "r", "t", "u"};
            unsigned char bytes[1024];
            size_t count = 0;
            struct coord_message beat = {.type = COORD_MESSAGE_HEARTBEAT,
                                         .instance_id = coord_text(ids[i], 1),
                                         .at_us = AGENT_WALL,
                                         .seq = seq,
                                         .incarnation = coord_text("1", 1)};
            assert_int_equal(
                coord_message_encode(&beat, COORD_FORM_MSGPACK, bytes, sizeof bytes, &count),
                COORD_OK);
            assert_int_equal(
                coord_agent_take(agent, coord_agent_topic(agent, beat.type), bytes, count, w.now),
                COORD_OK);
            while (coord_agent_step(agent, w.now, AGENT_WALL, &event)) {
                assert_int_not_equal(event.fleet->kind, COORD_EVENT_PEER_SILENT);
            }
        }
        (void)coord_agent_deadline(agent);
        w.now += AGENT_T + 500; /* late by less than what counts as slept */
    }
    assert_true(coord_agent_step(agent, w.now, AGENT_WALL, &event)); /* and now they are dead */
    assert_int_equal(event.fleet->kind, COORD_EVENT_PEER_SILENT);
    coord_agent_free(agent);
    world_end(&w);
}

static bool rubbish_without_end(void *ctx, struct coord_broker_message *out)
{
    *out = (struct coord_broker_message){.topic = ctx, .bytes = "x", .count = 1};
    return true;
}

static enum coord_err count_published(void *ctx, const char *topic, const void *bytes, size_t count,
                                      coord_ms now)
{
    (void)ctx;
    (void)topic;
    (void)bytes;
    (void)count;
    (void)now;
    return COORD_OK;
}

static void test_agent_pauses__a_flood_keeps_no_heartbeat_back(void **state)
{
    char topic[] = "__eventsource_coordination.heartbeat";
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    struct coord_agent_event event;
    struct coord_agent *agent = NULL;
    coord_ms now = AGENT_START;
    (void)state;
    config.coordinator.instance_id = "s";
    config.coordinator.timeout = AGENT_T;
    config.bus = (struct coord_agent_bus){
        .publish = count_published, .next = rubbish_without_end, .ctx = topic};
    assert_int_equal(coord_agent_new(&config, now, &agent, NULL), COORD_OK);
    for (int i = 0; i < 60; i++, now += 1000) {
        assert_false(coord_agent_step(agent, now, AGENT_WALL, &event));
    }
    assert_true(coord_agent_counts(agent).published >= 12); /* in 16 times T / 4 */
    coord_agent_free(agent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_pauses__an_observer_reads_what_waits_before_it_judges),
        cmocka_unit_test(test_agent_pauses__a_bus_that_pushes_what_waited_kills_nobody),
        cmocka_unit_test(test_agent_pauses__a_flood_keeps_no_heartbeat_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
