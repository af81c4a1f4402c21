/* SPDX-License-Identifier: MIT
 * tests/unit/test_hostile.c - hostile bytes on any topic: each is counted by its reason, none takes
 * memory, and no peer is another one afterwards.
 */
#include "coord/agent.h"
#include "tests/support/fleet_hostile.h"
#include "tests/support/memory_use.h"
#include "tests/unit/fleet.h"

/* `a` hears `b` and `c`, and keeps a heartbeat of `b` that it has heard. */
struct scene {
    struct fleet fleet;
    struct node *a;
    unsigned char beat[COORD_MESSAGE_MAX];
    size_t beat_bytes;
};

/* All that may not change. */
struct snapshot {
    struct coord_coordinator_counts counts;
    struct coord_peer peer[3];
    size_t events; /* bytes of the log */
    size_t memory;
};

static void keep_beat(struct scene *s, struct node *from)
{
    struct coord_outgoing out;
    s->fleet.now += I;
    while (s->beat_bytes == 0) {
        pull(&s->fleet, from);
        assert_true(coord_coordinator_next_message(from->c, s->fleet.now, WALL, &out));
        if (out.type == COORD_MESSAGE_HEARTBEAT) {
            memcpy(s->beat, out.bytes, out.count);
            s->beat_bytes = out.count;
        }
    }
    for (unsigned i = 0; i < s->fleet.count; i++) {
        deliver(&s->fleet, &s->fleet.node[i], COORD_MESSAGE_HEARTBEAT, s->beat, s->beat_bytes);
    }
}

static struct scene *begin(void)
{
    struct scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->fleet.now = START;
    s->a = join(&s->fleet, "a", "ledger");
    struct node *b = join(&s->fleet, "b", "orders");
    join(&s->fleet, "c", "mail");
    lead(&s->fleet, b, 7);
    run(&s->fleet, 3 * T);
    keep_beat(s, b);
    return s;
}

static void end(struct scene *s)
{
    leave_all(&s->fleet);
    free(s);
}

static struct snapshot look(const struct scene *s)
{
    static const char *const ids[] = {"a", "b", "c"};
    struct snapshot now = {.counts = coord_coordinator_counts(s->a->c)};
    for (unsigned i = 0; i < 3; i++) {
        assert_true(coord_coordinator_find_peer(s->a->c, ids[i], 1, &now.peer[i]));
    }
    now.events = strlen(s->a->log);
    now.memory = memory_in_use();
    return now;
}

/* Nothing but one counter, which has risen by `count`. */
static void assert_counted(const struct scene *s, const struct snapshot *before,
                           const uint64_t *counter, uint64_t count)
{
    struct snapshot now = look(s);
    const size_t offset = (size_t)((const char *)counter - (const char *)&before->counts);
    uint64_t *risen = (uint64_t *)(void *)((char *)&now.counts + offset);
    assert_int_equal(*risen, *counter + count);
    *risen = *counter;
    assert_memory_equal(&now.counts, &before->counts, sizeof now.counts);
    assert_int_equal(now.events, before->events);
    assert_true(now.memory <= before->memory);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(now.peer[i].status, before->peer[i].status);
        assert_int_equal(now.peer[i].last_heard, before->peer[i].last_heard);
        assert_int_equal(now.peer[i].deadline, before->peer[i].deadline);
        assert_int_equal(now.peer[i].subscription_count, before->peer[i].subscription_count);
    }
}

/* Is it a fault of the bytes, whatever type of message they are meant to be? */
static bool is_of_form(enum coord_message_fault fault)
{
    return fault <= COORD_FAULT_NOT_A_MAP;
}

/* Every kind of bytes with that fault, on each topic where it is one. */
static void all_are_counted(enum coord_message_fault fault)
{
    struct fleet_hostile hostile[FLEET_HOSTILE_MAX];
    struct scene *s = begin();
    const size_t count = fleet_hostile_bytes(hostile);
    const struct snapshot before = look(s);
    uint64_t sent = 0;
    for (size_t i = 0; i < count; i++) {
        for (unsigned type = 0; hostile[i].fault == fault && type < COORD_MESSAGE_TYPES; type++) {
            if (is_of_form(fault) || type == (unsigned)hostile[i].type) {
                assert_int_equal(coord_coordinator_handle(s->a->c, (enum coord_message_type)type,
                                                          hostile[i].bytes, hostile[i].count,
                                                          s->fleet.now),
                                 COORD_E_BAD_MESSAGE);
                sent++;
            }
        }
    }
    assert_true(sent > 0);
    assert_counted(s, &before, &before.counts.fault[fault], sent);
    run(&s->fleet, 3 * T);
    assert_int_equal(strlen(s->a->log), before.events);
    end(s);
}

/* ---- bytes ---- */

static void test_hostile__five_bytes_that_declare_gigabytes(void **state)
{
    (void)state;
    all_are_counted(COORD_FAULT_TRUNCATED);
}

static void test_hostile__a_thousand_levels(void **state)
{
    (void)state;
    all_are_counted(COORD_FAULT_DEPTH);
}

static void test_hostile__too_many_values(void **state)
{
    (void)state;
    all_are_counted(COORD_FAULT_COUNT);
}

static void test_hostile__numbers_that_are_none(void **state)
{
    (void)state;
    all_are_counted(COORD_FAULT_BAD_NUMBER);
}

static void test_hostile__a_time_without_offset(void **state)
{
    (void)state;
    all_are_counted(COORD_FAULT_NAIVE_TIME);
}

static void test_hostile__a_time_that_is_none(void **state)
{
    (void)state;
    all_are_counted(COORD_FAULT_BAD_TIME);
}

static void test_hostile__an_unknown_intent(void **state)
{
    (void)state;
    all_are_counted(COORD_FAULT_BAD_INTENT);
}

static void test_hostile__an_id_that_is_too_long(void **state)
{
    (void)state;
    all_are_counted(COORD_FAULT_BAD_ID);
}

static void test_hostile__an_id_of_a_mebibyte(void **state)
{
    (void)state;
    all_are_counted(COORD_FAULT_TOO_LONG);
}

static void test_hostile__words_and_types_and_texts(void **state)
{
    static const enum coord_message_fault faults[] = {
        COORD_FAULT_TRAILING,    COORD_FAULT_SYNTAX,     COORD_FAULT_BAD_TEXT,
        COORD_FAULT_NOT_A_MAP,   COORD_FAULT_WRONG_TYPE, COORD_FAULT_OUT_OF_RANGE,
        COORD_FAULT_MISSING_KEY, COORD_FAULT_BAD_WORD};
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        all_are_counted(faults[i]);
    }
}

/* ---- messages ---- */

/* Those replays whose name holds `what`. */
static void replays_are_counted(const char *what)
{
    struct fleet_hostile hostile[FLEET_HOSTILE_MAX];
    struct scene *s = begin();
    const size_t count = fleet_hostile_replays(s->beat, s->beat_bytes, hostile);
    const struct snapshot before = look(s);
    uint64_t sent = 0;
    for (size_t i = 0; i < count; i++) {
        if (strstr(hostile[i].what, what) != NULL) {
            deliver(&s->fleet, s->a, hostile[i].type, hostile[i].bytes, hostile[i].count);
            sent++;
        }
    }
    assert_true(sent > 0);
    assert_counted(s, &before, &before.counts.refused[COORD_REFUSED_OLD_SEQ], sent);
    run(&s->fleet, 3 * T);
    assert_int_equal(strlen(s->a->log), before.events);
    end(s);
}

static void test_hostile__a_duplicate(void **state)
{
    (void)state;
    replays_are_counted("duplicate");
}

static void test_hostile__a_replay_of_long_ago(void **state)
{
    (void)state;
    replays_are_counted("long ago");
}

static void test_hostile__a_message_of_the_future(void **state)
{
    (void)state;
    replays_are_counted("year 9000");
}

/* A peer is judged by when it was heard: a clock that is wrong by millennia does nothing. */
static void test_hostile__a_beat_of_the_future_that_is_new_is_a_beat(void **state)
{
    struct coord_message m;
    (void)state;
    struct scene *s = begin();
    assert_int_equal(coord_message_decode(COORD_MESSAGE_HEARTBEAT, s->beat, s->beat_bytes, &m),
                     COORD_FAULT_NONE);
    m.seq += 100;
    m.at_us += INT64_C(200000000000000000);
    m.sent_at_us = m.at_us;
    crash(&s->fleet.node[1]);
    say(&s->fleet, s->a, &m);
    const coord_ms said = s->fleet.now;
    run(&s->fleet, T - 1);
    assert_int_equal(status_of(s->a, "b"), COORD_PEER_HEALTHY);
    run(&s->fleet, 2);
    assert_int_equal(status_of(s->a, "b"), COORD_PEER_SILENT);
    assert_int_equal(s->fleet.now, said + T + 1);
    end(s);
}

static void test_hostile__a_table_of_one_who_led_long_ago(void **state)
{
    (void)state;
    struct scene *s = begin();
    crash(&s->fleet.node[2]);
    run(&s->fleet, 3 * T);
    assert_int_equal(coord_coordinator_counts(s->a->c).orphans, 1);
    const struct fleet_hostile table = fleet_hostile_table();
    const struct snapshot before = look(s);
    deliver(&s->fleet, s->a, table.type, table.bytes, table.count);
    assert_counted(s, &before, &before.counts.refused[COORD_REFUSED_STALE_FENCE], 1);
    end(s);
}

/* ---- the agent ---- */

static enum coord_err swallow(void *ctx, const char *topic, const void *bytes, size_t count,
                              coord_ms now)
{
    (void)ctx;
    (void)topic;
    (void)bytes;
    (void)count;
    (void)now;
    return COORD_OK;
}

static void test_hostile__an_agent_counts_it_and_goes_on(void **state)
{
    struct fleet_hostile hostile[FLEET_HOSTILE_MAX];
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    struct coord_agent *agent = NULL;
    struct coord_agent_event event;
    uint64_t expected[COORD_FAULTS] = {0};
    (void)state;
    config.coordinator = config_of("a", 1);
    config.bus.publish = swallow;
    assert_int_equal(coord_agent_new(&config, START, &agent, NULL), COORD_OK);
    const size_t count = fleet_hostile_bytes(hostile);
    assert_false(coord_agent_step(agent, START, WALL, &event));
    const size_t memory = memory_in_use();
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(coord_agent_take(agent, coord_agent_topic(agent, hostile[i].type),
                                          hostile[i].bytes, hostile[i].count, START),
                         COORD_OK);
        assert_false(coord_agent_step(agent, START, WALL, &event));
        expected[hostile[i].fault]++;
    }
    const struct coord_coordinator_counts counts =
        coord_coordinator_counts(coord_agent_coordinator(agent));
    assert_memory_equal(counts.fault, expected, sizeof expected);
    assert_int_equal(coord_agent_counts(agent).received, count);
    assert_int_equal(counts.peers, 0);
    assert_true(memory_in_use() <= memory);
    coord_agent_free(agent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile__five_bytes_that_declare_gigabytes),
        cmocka_unit_test(test_hostile__a_thousand_levels),
        cmocka_unit_test(test_hostile__too_many_values),
        cmocka_unit_test(test_hostile__numbers_that_are_none),
        cmocka_unit_test(test_hostile__a_time_without_offset),
        cmocka_unit_test(test_hostile__a_time_that_is_none),
        cmocka_unit_test(test_hostile__an_unknown_intent),
        cmocka_unit_test(test_hostile__an_id_that_is_too_long),
        cmocka_unit_test(test_hostile__an_id_of_a_mebibyte),
        cmocka_unit_test(test_hostile__words_and_types_and_texts),
        cmocka_unit_test(test_hostile__a_duplicate),
        cmocka_unit_test(test_hostile__a_replay_of_long_ago),
        cmocka_unit_test(test_hostile__a_message_of_the_future),
        cmocka_unit_test(test_hostile__a_beat_of_the_future_that_is_new_is_a_beat),
        cmocka_unit_test(test_hostile__a_table_of_one_who_led_long_ago),
        cmocka_unit_test(test_hostile__an_agent_counts_it_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
