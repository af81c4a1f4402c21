/* SPDX-License-Identifier: MIT
 * tests/unit/test_coordinator_regress.c - faults that readers found, each by what it did.
 */
#include "tests/unit/fleet.h"

static struct coord_message beat_of(const char *id, const char *incarnation, uint64_t seq,
                                    const char *subscription, void *buffer, size_t room)
{
    struct coord_message message = beat(id, incarnation, seq);
    assert_int_equal(coord_texts(&subscription, 1, buffer, room, &message.subscriptions), COORD_OK);
    return message;
}

static void test_coordinator_regress__a_crash_loop_does_not_shut_its_own_last_start_out(
    void **state)
{
    (void)state;
    struct fleet f = {0};
    unsigned char buffer[64];
    struct node *a = join(&f, "a", NULL);
    run(&f, 2 * T);
    lead(&f, a, 7);
    for (char i = 0; i < 8; i++) { /* as many as are known of one id, all within a T */
        const char incarnation[] = {'i', (char)('0' + i), '\0'};
        struct coord_message message = beat_of("b", incarnation, 1, "x", buffer, sizeof buffer);
        say(&f, a, &message);
    }
    for (uint64_t seq = 1; seq <= 20; seq++) { /* the ninth stays up */
        struct coord_message message = beat_of("b", "last", seq, "x", buffer, sizeof buffer);
        say(&f, a, &message);
        run(&f, I);
    }
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 1);
    assert_int_equal(coord_coordinator_counts(a->c).orphans, 0);
    leave_all(&f);
}

static void test_coordinator_regress__many_dead_are_forgotten_as_fast_as_few(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    run(&f, 2 * T);
    for (int i = 0; i < 1000; i++) {
        char id[16];
        snprintf(id, sizeof id, "w%d", i);
        struct coord_message message = beat(id, "i", 1);
        say(&f, a, &message);
        a->log[0] = '\0';
    }
    for (int i = 0; i < 13; i++) {
        run(&f, T);
        a->log[0] = '\0';
    }
    assert_int_equal(coord_coordinator_counts(a->c).peers, 0);
    leave_all(&f);
}

static void test_coordinator_regress__a_forgotten_report_that_comes_again_has_a_new_number(
    void **state)
{
    (void)state;
    struct fleet f = {0};
    unsigned char buffer[64];
    struct node *a = join(&f, "a", NULL);
    run(&f, 2 * T);
    lead(&f, a, 7);
    struct coord_message b = beat_of("b", "i", 1, "x", buffer, sizeof buffer);
    say(&f, a, &b);
    run(&f, 2 * T);
    assert_int_equal(seen(a, "OPENED b/x"), 1);
    b.seq = 2;
    say(&f, a, &b); /* it was stopped only */
    run(&f, 1);
    assert_int_equal(seen(a, "RESOLVED b/x"), 1);
    const uint64_t before = a->last.seq;
    for (int i = 0; i < 120; i++) {
        b.seq++;
        say(&f, a, &b);
        run(&f, T / 8);
    }
    run(&f, 2 * T);
    assert_int_equal(seen(a, "OPENED b/x"), 2);
    assert_int_equal(a->last.fence, 7);
    assert_true(a->last.seq > before);
    leave_all(&f);
}

static void test_coordinator_regress__a_replay_of_our_own_beat_proves_no_hearing(void **state)
{
    (void)state;
    struct fleet f = {0};
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_outgoing out;
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    assert_true(coord_coordinator_next_message(a->c, f.now, WALL, &out));
    const size_t count = out.count;
    memcpy(bytes, out.bytes, count);
    deliver(&f, a, COORD_MESSAGE_HEARTBEAT, bytes, count);
    run(&f, 2 * T);
    a->mute = b->mute = true; /* the bus is down, and somebody plays to us what he kept */
    for (int i = 0; i < 20; i++) {
        run(&f, T / 4);
        deliver(&f, a, COORD_MESSAGE_HEARTBEAT, bytes, count);
    }
    assert_int_equal(seen(a, "SILENT b"), 0);
    leave_all(&f);
}

static void test_coordinator_regress__a_beat_without_incarnation_is_not_ours(void **state)
{
    (void)state;
    struct fleet f = {0};
    unsigned char buffer[64];
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    lead(&f, a, 7);
    crash(b);
    run(&f, 2 * T);
    assert_int_equal(coord_coordinator_counts(a->c).orphans, 1);
    struct coord_message forged = beat_of("a", NULL, 1000, "x", buffer, sizeof buffer);
    say(&f, a, &forged);
    run(&f, T);
    assert_int_equal(coord_coordinator_counts(a->c).orphans, 1); /* nobody looks after x */
    assert_int_equal(refused(a, COORD_REFUSED_FORGED_SELF), 1);
    leave_all(&f);
}

static void test_coordinator_regress__who_takes_its_time_leaves_once(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    lead(&f, a, 7);
    coord_coordinator_leave(b->c, COORD_INTENT_GRACEFUL, COORD_NEVER, f.now);
    run(&f, 10 * T);
    assert_int_equal(seen(a, "LEAVING b"), 1);
    assert_int_equal(seen(a, "OPENED b/x"), 1);
    assert_int_equal(seen(a, "UPDATED"), 0);
    assert_true(a->last.deadline == COORD_NEVER);
    assert_true(a->last.safe_after == COORD_NEVER);
    crash(b);
    run(&f, 3 * T);
    assert_int_equal(seen(a, "UPDATED b/x silent"), 1);
    assert_true(a->last.safe_after <= f.now); /* it will not come to an end any more */
    leave_all(&f);
}

static void test_coordinator_regress__a_copy_of_an_order_puts_nothing_off(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    struct coord_message order = {.type = COORD_MESSAGE_SHUTDOWN, .at_us = WALL};
    order.instance_id = coord_text("b", 1);
    order.completion_us = WALL + 8000 * INT64_C(1000);
    say(&f, b, &order);
    const coord_ms until = b->order;
    run(&f, 3 * T);
    say(&f, b, &order);
    assert_int_equal(seen(b, "ORDER"), 1);
    assert_int_equal(b->order, until);
    assert_int_equal(refused(b, COORD_REFUSED_OLD_TIME), 1);
    order.at_us += 1; /* another one */
    order.completion_us += 1;
    say(&f, b, &order);
    assert_int_equal(seen(b, "ORDER"), 2);
    leave_all(&f);
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
    (void)state;
    enum {
        MANY = 3000
    };
    struct fleet f = {0};
    unsigned char buffer[64];
    unsigned listed = 0;
    struct node *a = join(&f, "a", NULL);
    run(&f, 2 * T);
    lead(&f, a, 7);
    for (int i = 0; i < MANY; i++) {
        char id[16];
        snprintf(id, sizeof id, "w%d", i);
        struct coord_message message = beat_of(id, "i", 1, id, buffer, sizeof buffer);
        say(&f, a, &message);
        a->log[0] = '\0';
    }
    const coord_ms until = f.now + 3 * T;
    while (coord_coordinator_counts(a->c).orphans < MANY) {
        (void)say_all(&f, a, &listed);
        f.now = coord_coordinator_deadline(a->c);
        assert_true(f.now < until);
    }
    /* Of the table that was begun, and of a whole one after it. */
    unsigned listed_each_t = 0;
    for (const coord_ms end = f.now + 2 * T; f.now < end;
         f.now = coord_coordinator_deadline(a->c)) {
        assert_true(say_all(&f, a, &listed_each_t) <= 8);
    }
    assert_true(listed_each_t >= MANY);
    leave_all(&f);
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
    (void)state;
    struct fleet f = {.now = START, .count = 1};
    struct node *o = &f.node[0];
    unsigned char buffer[64];
    struct coord_coordinator_config config = config_of("o", 9);
    config.observer = true;
    config.peers_max = 3;
    assert_int_equal(coord_coordinator_new(&config, f.now, &o->c, NULL), COORD_OK);
    coord_coordinator_connected(o->c, true, f.now);
    for (char i = 0; i < 9; i++) { /* three at a time, and each lives for less than a T */
        const char id[] = {'w', (char)('0' + i), '\0'};
        struct coord_message message = beat_of(id, "i", 1, id, buffer, sizeof buffer);
        say(&f, o, &message);
        if (i % 3 == 2) {
            run(&f, T + I);
        }
    }
    assert_int_equal(refused(o, COORD_REFUSED_PEERS_FULL), 0);
    assert_int_equal(coord_coordinator_counts(o->c).peers, 3);
    assert_int_equal(seen(o, "SILENT"), 9);
    assert_int_equal(coord_coordinator_counts(o->c).orphans, 9); /* what they left is known */
    leave_all(&f);
}

/* Whose messages nobody can read would be called dead by all, and not know it. */
static void test_coordinator_regress__what_nobody_could_read_is_refused_at_once(void **state)
{
    (void)state;
    char name[257];
    static unsigned char buffer[512];
    const char *names[] = {name};
    struct coord_value list;
    struct coord_outgoing out;
    struct coord_coordinator *c = NULL;
    struct coord_coordinator_config config = config_of("w\xff", 1);
    assert_int_equal(coord_coordinator_new(&config, START, &c, NULL), COORD_E_BAD_NAME);
    config.instance_id = "a";
    assert_int_equal(coord_coordinator_new(&config, START, &c, NULL), COORD_OK);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(coord_texts(names, 1, buffer, sizeof buffer, &list), COORD_OK);
    assert_int_equal(coord_coordinator_serve(c, &list, 0, 0.0), COORD_E_BAD_ARGUMENT);
    name[0] = '\0';
    assert_int_equal(coord_texts(names, 1, buffer, sizeof buffer, &list), COORD_OK);
    assert_int_equal(coord_coordinator_serve(c, &list, 0, 0.0), COORD_E_BAD_ARGUMENT);
    coord_coordinator_lead(c, true, 7, COORD_NEVER, START);
    assert_int_equal(coord_coordinator_assign(c, "w\xff", &list, 0, START, WALL, &out),
                     COORD_E_BAD_ARGUMENT);
    coord_coordinator_free(c);
}

/* A table in which nothing is open, from the leader of that fence. */
static void say_empty_table(struct fleet *f, struct node *to, uint64_t fence)
{
    static unsigned char empty[8];
    struct coord_message table = {.type = COORD_MESSAGE_ORPHANS,
                                  .kind = COORD_ORPHANS_TABLE,
                                  .fence = fence,
                                  .at_us = WALL,
                                  .sent_at_us = WALL,
                                  .timeout = T,
                                  .interval = I,
                                  .judging = true,
                                  .heard = 100 * T};
    table.instance_id = coord_text("a", 1);
    memset(table.last, 0xff, sizeof table.last);
    assert_int_equal(coord_texts(NULL, 0, empty, sizeof empty, &table.reports), COORD_OK);
    say(f, to, &table);
}

static void assign(struct fleet *f, struct node *to, uint64_t fence)
{
    static unsigned char empty[8];
    struct coord_message message = {
        .type = COORD_MESSAGE_WORK_ASSIGNMENT, .at_us = WALL, .fence = fence};
    message.instance_id = coord_text("a", 1);
    message.target = coord_text("o", 1);
    assert_int_equal(coord_texts(NULL, 0, empty, sizeof empty, &message.subscriptions), COORD_OK);
    say(f, to, &message);
}

static void test_coordinator_regress__who_heard_the_next_leader_takes_no_work_of_the_last(
    void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *o = join(&f, "o", NULL);
    run(&f, T);
    assign(&f, o, 0); /* of an eventsource-py leader, which has no fence */
    assign(&f, o, 7);
    assert_int_equal(seen(o, "ASSIGNMENT"), 2);
    say_empty_table(&f, o, 9);
    assign(&f, o, 7);
    assert_int_equal(seen(o, "ASSIGNMENT"), 2);
    assert_int_equal(refused(o, COORD_REFUSED_STALE_FENCE), 1);
    assign(&f, o, 9);
    assert_int_equal(seen(o, "ASSIGNMENT"), 3);
    leave_all(&f);
}

/* The bus keeps no order: a table that was said before an opening may come behind it. */
static void test_coordinator_regress__a_table_that_was_overtaken_closes_nothing(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    struct node *o = join(&f, "o", NULL);
    run(&f, 2 * T);
    lead(&f, a, 7);
    run(&f, T);
    crash(b);
    while (seen(o, "ORPHAN_OPENED b/x") == 0) {
        run(&f, 10);
    }
    say_empty_table(&f, o, 7);
    assert_int_equal(coord_coordinator_counts(o->c).orphans, 1);
    assert_int_equal(seen(o, "RESOLVED"), 0);
    leave_all(&f);
}

static void test_coordinator_regress__what_a_table_lists_again_is_open_again(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    lead(&f, a, 7);
    crash(b);
    run(&f, 2 * T);
    struct node *o = join(&f, "o", NULL); /* knows it from hearsay alone */
    run(&f, 2 * T);
    assert_int_equal(coord_coordinator_counts(o->c).orphans, 1);
    o->deaf_to = 1 << 0; /* the leader */
    o->mute = true;
    for (unsigned i = 0; i < 4; i++) {
        run(&f, T);
        say_empty_table(&f, o, 7); /* very late, and its hints get lost */
    }
    assert_int_equal(coord_coordinator_counts(o->c).orphans, 0);
    o->deaf_to = 0;
    run(&f, 2 * T);
    assert_int_equal(coord_coordinator_counts(a->c).orphans, 1);
    assert_int_equal(coord_coordinator_counts(o->c).orphans, 1);
    leave_all(&f);
}

static void test_coordinator_regress__after_an_outage_suspected_work_is_not_safe_at_once(
    void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    lead(&f, a, 7);
    a->mute = b->mute = true; /* the bus is down, and b needs long to come back */
    run(&f, 20 * T);
    a->mute = false;
    while (seen(a, "ORPHAN_OPENED b/x silent") == 0) {
        run(&f, I / 4);
    }
    assert_true(a->last.safe_after >= f.now + T - I);
    leave_all(&f);
}

/* The seed library says its notice once; a heartbeat that was made later may come before it. */
static void test_coordinator_regress__a_notice_that_was_overtaken_still_holds(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    run(&f, T);
    struct coord_message b = beat("b", NULL, 0);
    b.at_us = WALL + 2000;
    say(&f, a, &b);
    struct coord_message notice = {.type = COORD_MESSAGE_SHUTDOWN, .at_us = WALL};
    notice.instance_id = coord_text("b", 1);
    notice.completion_us = WALL + 502 * 1000; /* half a second behind the heartbeat */
    say(&f, a, &notice);
    assert_int_equal(status_of(a, "b"), COORD_PEER_LEAVING);
    struct coord_peer peer;
    assert_true(coord_coordinator_find_peer(a->c, "b", 1, &peer));
    assert_int_equal(peer.deadline, f.now + 500);
    leave_all(&f);
}

static void test_coordinator_regress__a_notice_of_long_ago_does_not(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    run(&f, T);
    for (int i = 0; i < 3; i++) {
        struct coord_message b = beat("b", NULL, 0);
        b.at_us = WALL + i * 1000;
        say(&f, a, &b);
    }
    struct coord_message notice = {.type = COORD_MESSAGE_SHUTDOWN, .at_us = WALL - 9000000};
    notice.instance_id = coord_text("b", 1);
    notice.completion_us = WALL - 1000; /* of an earlier life of b, by its own clock */
    say(&f, a, &notice);
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    leave_all(&f);
}

static void test_coordinator_regress__an_order_to_the_dead_makes_no_drain(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    lead(&f, a, 7);
    crash(b);
    run(&f, 2 * T);
    assert_int_equal(seen(a, "OPENED b/x silent"), 1);
    struct coord_message order = {.type = COORD_MESSAGE_SHUTDOWN, .at_us = WALL};
    order.instance_id = coord_text("b", 1);
    order.completion_us = WALL + 9000 * INT64_C(1000);
    say(&f, a, &order);
    run(&f, I);
    assert_int_equal(seen(a, "UPDATED"), 0);
    assert_int_equal(a->last.certainty, COORD_SUSPECTED);
    leave_all(&f);
}

static void test_coordinator_regress__a_question_does_not_hide_that_we_slept(void **state)
{
    (void)state;
    struct fleet f = {.now = START, .count = 1};
    struct node *o = &f.node[0];
    coord_ms heard = 0;
    struct coord_coordinator_config config = config_of("o", 9);
    config.observer = true;
    assert_int_equal(coord_coordinator_new(&config, f.now, &o->c, NULL), COORD_OK);
    coord_coordinator_connected(o->c, true, f.now);
    struct coord_message message = beat("b", "i1", 1);
    say(&f, o, &message);
    (void)coord_coordinator_deadline(o->c);
    f.now += T / 2;
    assert_true(coord_coordinator_judging(o->c, f.now, &heard));
    assert_int_equal(heard, T / 2);
    f.now += 5 * T; /* stopped, and what was said meanwhile is lost */
    pull(&f, o);
    assert_int_equal(seen(o, "SILENT"), 0);
    leave_all(&f);
}

/* Places of names, lists and reports are used again, and none is ever two things. */
static void test_coordinator_regress__lists_that_change_all_the_time_stay_apart(void **state)
{
    (void)state;
    enum {
        PEERS = 40,
        ROUNDS = 30
    };
    struct fleet f = {.now = START, .count = 1};
    struct node *o = &f.node[0];
    struct coord_coordinator_config config = config_of("o", 9);
    unsigned char buffer[256];
    config.observer = true;
    config.subscriptions_max = 2 * PEERS + 2;
    assert_int_equal(coord_coordinator_new(&config, f.now, &o->c, NULL), COORD_OK);
    coord_coordinator_connected(o->c, true, f.now);
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
            say(&f, o, &message);
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
    run(&f, 2 * T);
    assert_int_equal(coord_coordinator_counts(o->c).orphans, PEERS + 1);
    struct coord_message one = beat_of("new", "i", 1, "common", buffer, sizeof buffer);
    say(&f, o, &one);
    assert_int_equal(coord_coordinator_counts(o->c).orphans, PEERS);
    leave_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_coordinator_regress__a_crash_loop_does_not_shut_its_own_last_start_out),
        cmocka_unit_test(test_coordinator_regress__many_dead_are_forgotten_as_fast_as_few),
        cmocka_unit_test(
            test_coordinator_regress__a_forgotten_report_that_comes_again_has_a_new_number),
        cmocka_unit_test(test_coordinator_regress__a_replay_of_our_own_beat_proves_no_hearing),
        cmocka_unit_test(test_coordinator_regress__a_beat_without_incarnation_is_not_ours),
        cmocka_unit_test(test_coordinator_regress__who_takes_its_time_leaves_once),
        cmocka_unit_test(test_coordinator_regress__a_copy_of_an_order_puts_nothing_off),
        cmocka_unit_test(test_coordinator_regress__a_very_long_table_leaves_a_few_parts_at_a_time),
        cmocka_unit_test(
            test_coordinator_regress__what_a_heartbeat_cannot_carry_is_refused_at_once),
        cmocka_unit_test(test_coordinator_regress__the_dead_take_no_place_from_the_living),
        cmocka_unit_test(test_coordinator_regress__what_nobody_could_read_is_refused_at_once),
        cmocka_unit_test(
            test_coordinator_regress__who_heard_the_next_leader_takes_no_work_of_the_last),
        cmocka_unit_test(test_coordinator_regress__a_table_that_was_overtaken_closes_nothing),
        cmocka_unit_test(test_coordinator_regress__what_a_table_lists_again_is_open_again),
        cmocka_unit_test(
            test_coordinator_regress__after_an_outage_suspected_work_is_not_safe_at_once),
        cmocka_unit_test(test_coordinator_regress__a_notice_that_was_overtaken_still_holds),
        cmocka_unit_test(test_coordinator_regress__a_notice_of_long_ago_does_not),
        cmocka_unit_test(test_coordinator_regress__an_order_to_the_dead_makes_no_drain),
        cmocka_unit_test(test_coordinator_regress__a_question_does_not_hide_that_we_slept),
        cmocka_unit_test(test_coordinator_regress__lists_that_change_all_the_time_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
