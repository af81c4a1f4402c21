/* SPDX-License-Identifier: MIT
 * tests/unit/test_coordinator_regress.c - faults that readers found, each by what it did.
 */
#include "tests/unit/fleet.h"

static void test_coordinator_regress__a_crash_loop_does_not_shut_its_own_last_start_out(
    void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    elect(f, a, 7);
    for (char i = 0; i < 8; i++) { /* as many as are known of one id, all within a T */
        const char incarnation[] = {'i', (char)('0' + i), '\0'};
        say_beat(f, a, "b", incarnation, 1, "x");
    }
    for (uint64_t seq = 1; seq <= 20; seq++) { /* the ninth stays up */
        say_beat(f, a, "b", "last", seq, "x");
        run(f, I);
    }
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 1);
    assert_int_equal(open_reports(a), 0);
}

static void test_coordinator_regress__many_dead_are_forgotten_as_fast_as_few(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    run(f, 2 * T);
    for (int i = 0; i < 1000; i++) {
        char id[16];
        snprintf(id, sizeof id, "w%d", i);
        say_beat(f, a, id, "i", 1, NULL);
        a->log[0] = '\0';
    }
    for (int i = 0; i < 13; i++) {
        run(f, T);
        a->log[0] = '\0';
    }
    assert_int_equal(coord_coordinator_counts(a->c).peers, 0);
}

static void test_coordinator_regress__a_forgotten_report_that_comes_again_has_a_new_number(
    void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    elect(f, a, 7);
    say_beat(f, a, "b", "i", 1, "x");
    run(f, 2 * T);
    assert_int_equal(seen(a, "OPENED b/x"), 1);
    say_beat(f, a, "b", "i", 2, "x"); /* it was stopped only */
    run(f, 1);
    assert_int_equal(seen(a, "RESOLVED b/x"), 1);
    const uint64_t before = a->last.seq;
    for (uint64_t seq = 3; seq <= 122; seq++) {
        say_beat(f, a, "b", "i", seq, "x");
        run(f, T / 8);
    }
    run(f, 2 * T);
    assert_int_equal(seen(a, "OPENED b/x"), 2);
    assert_int_equal(a->last.fence, 7);
    assert_true(a->last.seq > before);
}

static void test_coordinator_regress__a_replay_of_our_own_beat_proves_no_hearing(void **state)
{
    struct fleet *f = *state;
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_outgoing out;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    assert_true(coord_coordinator_next_message(a->c, f->now, WALL, &out));
    const size_t count = out.count;
    memcpy(bytes, out.bytes, count);
    deliver(f, a, COORD_MESSAGE_HEARTBEAT, bytes, count);
    run(f, 2 * T);
    a->mute = b->mute = true; /* the bus is down, and somebody plays to us what he kept */
    for (int i = 0; i < 20; i++) {
        run(f, T / 4);
        deliver(f, a, COORD_MESSAGE_HEARTBEAT, bytes, count);
    }
    assert_int_equal(seen(a, "SILENT b"), 0);
}

static void test_coordinator_regress__a_beat_without_incarnation_is_not_ours(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    crash(b);
    run(f, 2 * T);
    assert_int_equal(open_reports(a), 1);
    say_beat(f, a, "a", NULL, 1000, "x");
    run(f, T);
    assert_int_equal(open_reports(a), 1); /* nobody looks after x */
    assert_int_equal(refused(a, COORD_REFUSED_FORGED_SELF), 1);
}

static void test_coordinator_regress__who_takes_its_time_leaves_once(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    coord_coordinator_leave(b->c, COORD_INTENT_GRACEFUL, COORD_NEVER, f->now);
    run(f, 10 * T);
    assert_int_equal(seen(a, "LEAVING b"), 1);
    assert_int_equal(seen(a, "OPENED b/x"), 1);
    assert_int_equal(seen(a, "UPDATED"), 0);
    assert_true(a->last.deadline == COORD_NEVER);
    assert_true(a->last.safe_after == COORD_NEVER);
    crash(b);
    run(f, 3 * T);
    assert_int_equal(seen(a, "UPDATED b/x silent"), 1);
    assert_true(a->last.safe_after <= f->now); /* it will not come to an end any more */
}

static void test_coordinator_regress__a_copy_of_an_order_puts_nothing_off(void **state)
{
    struct fleet *f = *state;
    struct node *b = join(f, "b", "x");
    run(f, 2 * T);
    struct coord_message order = order_for("b", WALL, 8000);
    say(f, b, &order);
    const coord_ms until = b->order;
    run(f, 3 * T);
    say(f, b, &order);
    assert_int_equal(seen(b, "ORDER"), 1);
    assert_int_equal(b->order, until);
    assert_int_equal(refused(b, COORD_REFUSED_OLD_TIME), 1);
    order.at_us += 1; /* another one */
    order.completion_us += 1;
    say(f, b, &order);
    assert_int_equal(seen(b, "ORDER"), 2);
}

/* Say all that is due at this instant. @return how many parts of a table; `*listed` in them. */
static unsigned say_all(struct fleet *f, struct node *a, unsigned *listed)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_outgoing out;
    struct coord_message message;
    unsigned parts = 0;
    pull(f, a);
    while (coord_coordinator_next_message(a->c, f->now, WALL, &out)) {
        const size_t count = out.count;
        memcpy(bytes, out.bytes, count);
        assert_int_equal(coord_message_decode(out.type, bytes, count, &message), COORD_FAULT_NONE);
        if (message.type == COORD_MESSAGE_ORPHANS && message.kind == COORD_ORPHANS_TABLE) {
            parts++;
            *listed += message.reports.count;
        }
        deliver(f, a, message.type, bytes, count);
    }
    a->log[0] = '\0';
    return parts;
}

static void test_coordinator_regress__a_very_long_table_leaves_a_few_parts_at_a_time(void **state)
{
    const unsigned many = 3000;
    struct fleet *f = *state;
    unsigned listed = 0;
    struct node *a = join(f, "a", NULL);
    elect(f, a, 7);
    for (unsigned i = 0; i < many; i++) {
        char id[16];
        snprintf(id, sizeof id, "w%u", i);
        say_beat(f, a, id, "i", 1, id);
        a->log[0] = '\0';
    }
    const coord_ms until = f->now + 3 * T;
    while (open_reports(a) < many) {
        (void)say_all(f, a, &listed);
        f->now = coord_coordinator_deadline(a->c);
        assert_true(f->now < until);
    }
    /* Of the table that was begun, and of a whole one after it. */
    unsigned listed_each_t = 0;
    for (const coord_ms end = f->now + 2 * T; f->now < end;
         f->now = coord_coordinator_deadline(a->c)) {
        assert_true(say_all(f, a, &listed_each_t) <= 8);
    }
    assert_true(listed_each_t >= many);
}

static void test_coordinator_regress__what_a_heartbeat_cannot_carry_is_refused_at_once(void **state)
{
    (void)state;
    static unsigned char buffer[COORD_MESSAGE_MAX];
    const char *names[100];
    char name[201];
    struct coord_value list;
    struct coord_outgoing out;
    struct coord_coordinator *c = NULL;
    struct coord_coordinator_config config = config_of("a", 1);
    config.form = COORD_FORM_JSON;
    memset(name, 1, sizeof name - 1); /* six bytes of JSON each */
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 100; i++) {
        names[i] = name;
    }
    assert_int_equal(coord_texts(names, 100, buffer, sizeof buffer, &list), COORD_OK);
    assert_int_equal(coord_coordinator_new(&config, START, &c, NULL), COORD_OK);
    assert_int_equal(coord_coordinator_serve(c, &list, 0, 0.0), COORD_E_BAD_ARGUMENT);
    assert_true(coord_coordinator_next_message(c, START, WALL, &out));
    coord_coordinator_free(c);
}

static void test_coordinator_regress__the_dead_take_no_place_from_the_living(void **state)
{
    struct fleet *f = *state;
    struct coord_coordinator_config config = config_of("o", 9);
    config.peers_max = 3;
    struct node *o = observe(f, config);
    for (char i = 0; i < 9; i++) { /* three at a time, and each lives for less than a T */
        const char id[] = {'w', (char)('0' + i), '\0'};
        say_beat(f, o, id, "i", 1, id);
        if (i % 3 == 2) {
            run(f, T + I);
        }
    }
    assert_int_equal(refused(o, COORD_REFUSED_PEERS_FULL), 0);
    assert_int_equal(coord_coordinator_counts(o->c).peers, 3);
    assert_int_equal(seen(o, "SILENT"), 9);
    assert_int_equal(open_reports(o), 9); /* what they left is known */
}

/* Whose messages nobody can read would be called dead by all, and not know it. */
static void test_coordinator_regress__what_nobody_could_read_is_refused_at_once(void **state)
{
    (void)state;
    char name[257];
    struct coord_outgoing out;
    struct coord_coordinator *c = NULL;
    struct coord_coordinator_config config = config_of("w\xff", 1);
    assert_int_equal(coord_coordinator_new(&config, START, &c, NULL), COORD_E_BAD_NAME);
    config.instance_id = "a";
    assert_int_equal(coord_coordinator_new(&config, START, &c, NULL), COORD_OK);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct coord_value list = list_of(name);
    assert_int_equal(coord_coordinator_serve(c, &list, 0, 0.0), COORD_E_BAD_ARGUMENT);
    list = list_of("");
    assert_int_equal(coord_coordinator_serve(c, &list, 0, 0.0), COORD_E_BAD_ARGUMENT);
    coord_coordinator_lead(c, true, 7, COORD_NEVER, START);
    assert_int_equal(coord_coordinator_assign(c, "w\xff", &list, 0, START, WALL, &out),
                     COORD_E_BAD_ARGUMENT);
    coord_coordinator_free(c);
}

/* A table in which nothing is open, from the leader of that fence. */
static void say_empty_table(struct fleet *f, struct node *to, uint64_t fence)
{
    struct coord_message table = {.type = COORD_MESSAGE_ORPHANS,
                                  .kind = COORD_ORPHANS_TABLE,
                                  .fence = fence,
                                  .at_us = WALL,
                                  .sent_at_us = WALL,
                                  .timeout = T,
                                  .interval = I,
                                  .judging = true,
                                  .heard = 100 * T,
                                  .reports = list_of(NULL)};
    table.instance_id = coord_text("a", 1);
    memset(table.last, 0xff, sizeof table.last);
    say(f, to, &table);
}

static void assign(struct fleet *f, struct node *to, uint64_t fence)
{
    struct coord_message message = {.type = COORD_MESSAGE_WORK_ASSIGNMENT,
                                    .at_us = WALL,
                                    .fence = fence,
                                    .subscriptions = list_of(NULL)};
    message.instance_id = coord_text("a", 1);
    message.target = coord_text("o", 1);
    say(f, to, &message);
}

static void test_coordinator_regress__who_heard_the_next_leader_takes_no_work_of_the_last(
    void **state)
{
    struct fleet *f = *state;
    struct node *o = join(f, "o", NULL);
    run(f, T);
    assign(f, o, 0); /* of an eventsource-py leader, which has no fence */
    assign(f, o, 7);
    assert_int_equal(seen(o, "ASSIGNMENT"), 2);
    say_empty_table(f, o, 9);
    assign(f, o, 7);
    assert_int_equal(seen(o, "ASSIGNMENT"), 2);
    assert_int_equal(refused(o, COORD_REFUSED_STALE_FENCE), 1);
    assign(f, o, 9);
    assert_int_equal(seen(o, "ASSIGNMENT"), 3);
}

/* The bus keeps no order: a table that was said before an opening may come behind it. */
static void test_coordinator_regress__a_table_that_was_overtaken_closes_nothing(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *o = join(f, "o", NULL);
    elect(f, a, 7);
    run(f, T);
    crash(b);
    while (seen(o, "ORPHAN_OPENED b/x") == 0) {
        run(f, 10);
    }
    say_empty_table(f, o, 7);
    assert_int_equal(open_reports(o), 1);
    assert_int_equal(seen(o, "RESOLVED"), 0);
}

static void test_coordinator_regress__what_a_table_lists_again_is_open_again(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    crash(b);
    run(f, 2 * T);
    struct node *o = join(f, "o", NULL); /* knows it from hearsay alone */
    run(f, 2 * T);
    assert_int_equal(open_reports(o), 1);
    o->deaf_to = 1 << 0; /* the leader */
    o->mute = true;
    for (unsigned i = 0; i < 4; i++) {
        run(f, T);
        say_empty_table(f, o, 7); /* very late, and its hints get lost */
    }
    assert_int_equal(open_reports(o), 0);
    o->deaf_to = 0;
    run(f, 2 * T);
    assert_int_equal(open_reports(a), 1);
    assert_int_equal(open_reports(o), 1);
}

static void test_coordinator_regress__after_an_outage_suspected_work_is_not_safe_at_once(
    void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    a->mute = b->mute = true; /* the bus is down, and b needs long to come back */
    run(f, 20 * T);
    a->mute = false;
    while (seen(a, "ORPHAN_OPENED b/x silent") == 0) {
        run(f, I / 4);
    }
    assert_true(a->last.safe_after >= f->now + T - I);
}

/* The seed library says its notice once; a heartbeat that was made later may come before it. */
static void test_coordinator_regress__a_notice_that_was_overtaken_still_holds(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    run(f, T);
    struct coord_message b = beat("b", NULL, 0);
    b.at_us = WALL + 2000;
    say(f, a, &b);
    /* Half a second behind the heartbeat. */
    const struct coord_message notice = order_for("b", WALL, 502);
    say(f, a, &notice);
    assert_int_equal(status_of(a, "b"), COORD_PEER_LEAVING);
    struct coord_peer peer;
    assert_true(coord_coordinator_find_peer(a->c, "b", 1, &peer));
    assert_int_equal(peer.deadline, f->now + 500);
}

static void test_coordinator_regress__a_notice_of_long_ago_does_not(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    run(f, T);
    for (int i = 0; i < 3; i++) {
        struct coord_message b = beat("b", NULL, 0);
        b.at_us = WALL + i * 1000;
        say(f, a, &b);
    }
    /* Of an earlier life of b, by its own clock. */
    const struct coord_message notice = order_for("b", WALL - 9000000, 8999);
    say(f, a, &notice);
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
}

static void test_coordinator_regress__an_order_to_the_dead_makes_no_drain(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    crash(b);
    run(f, 2 * T);
    assert_int_equal(seen(a, "OPENED b/x silent"), 1);
    const struct coord_message order = order_for("b", WALL, 9000);
    say(f, a, &order);
    run(f, I);
    assert_int_equal(seen(a, "UPDATED"), 0);
    assert_int_equal(a->last.certainty, COORD_SUSPECTED);
}

static void test_coordinator_regress__a_question_does_not_hide_that_we_slept(void **state)
{
    struct fleet *f = *state;
    coord_ms heard = 0;
    struct node *o = observe(f, config_of("o", 9));
    say_beat(f, o, "b", "i1", 1, NULL);
    (void)coord_coordinator_deadline(o->c);
    f->now += T / 2;
    assert_true(coord_coordinator_judging(o->c, f->now, &heard));
    assert_int_equal(heard, T / 2);
    f->now += 5 * T; /* stopped, and what was said meanwhile is lost */
    pull(f, o);
    assert_int_equal(seen(o, "SILENT"), 0);
}

/* Places of names, lists and reports are used again, and none is ever two things. */
static void test_coordinator_regress__lists_that_change_all_the_time_stay_apart(void **state)
{
    struct fleet *f = *state;
    enum {
        PEERS = 40,
        ROUNDS = 30
    };
    struct coord_coordinator_config config = config_of("o", 9);
    unsigned char buffer[256];
    config.subscriptions_max = 2 * PEERS + 2;
    struct node *o = observe(f, config);
    for (int round = 1; round <= ROUNDS; round++) {
        for (int k = 0; k < PEERS; k++) {
            char id[16];
            char name[32];
            const char *names[] = {"common", name, "common"};
            const int i = k * 7 % PEERS;
            snprintf(id, sizeof id, "w%d", i);
            snprintf(name, sizeof name, "job-%d-%d", i, round);
            struct coord_message message = beat(id, "i", (uint64_t)round);
            assert_int_equal(coord_texts(names, 3, buffer, sizeof buffer, &message.subscriptions),
                             COORD_OK);
            say(f, o, &message);
            o->log[0] = '\0';
        }
    }
    for (int i = 0; i < PEERS; i++) {
        char id[16];
        char expected[32];
        const char *name = NULL;
        size_t bytes = 0;
        const int length = snprintf(id, sizeof id, "w%d", i);
        snprintf(expected, sizeof expected, "job-%d-%d", i, ROUNDS);
        assert_true(coord_coordinator_subscription(o->c, id, (size_t)length, 1, &name, &bytes));
        assert_int_equal(bytes, strlen(expected));
        assert_memory_equal(name, expected, bytes);
    }
    assert_int_equal(refused(o, COORD_REFUSED_SUBSCRIPTIONS_FULL), 0);
    /* All fall silent: their own work is open, and what the last one had with them. */
    run(f, 2 * T);
    assert_int_equal(open_reports(o), PEERS + 1);
    say_beat(f, o, "new", "i", 1, "common");
    assert_int_equal(open_reports(o), PEERS);
}

#define TEST(name) \
    cmocka_unit_test_setup_teardown(test_coordinator_regress__##name, fleet_begin, fleet_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_crash_loop_does_not_shut_its_own_last_start_out),
        TEST(many_dead_are_forgotten_as_fast_as_few),
        TEST(a_forgotten_report_that_comes_again_has_a_new_number),
        TEST(a_replay_of_our_own_beat_proves_no_hearing),
        TEST(a_beat_without_incarnation_is_not_ours),
        TEST(who_takes_its_time_leaves_once),
        TEST(a_copy_of_an_order_puts_nothing_off),
        TEST(a_very_long_table_leaves_a_few_parts_at_a_time),
        TEST(what_a_heartbeat_cannot_carry_is_refused_at_once),
        TEST(the_dead_take_no_place_from_the_living),
        TEST(what_nobody_could_read_is_refused_at_once),
        TEST(who_heard_the_next_leader_takes_no_work_of_the_last),
        TEST(a_table_that_was_overtaken_closes_nothing),
        TEST(what_a_table_lists_again_is_open_again),
        TEST(after_an_outage_suspected_work_is_not_safe_at_once),
        TEST(a_notice_that_was_overtaken_still_holds),
        TEST(a_notice_of_long_ago_does_not),
        TEST(an_order_to_the_dead_makes_no_drain),
        TEST(a_question_does_not_hide_that_we_slept),
        TEST(lists_that_change_all_the_time_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
