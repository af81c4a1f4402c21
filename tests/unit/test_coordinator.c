/* SPDX-License-Identifier: MIT
 * tests/unit/test_coordinator.c - the strict rules, each by what would break without it.
 */
#include "coord/coordinator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    T = 1000,
    I = 200,
    START = 100000,
    NODES = 4,
    LOG_MAX = 65536
};

#define WALL INT64_C(1772366400000000)

/* A coordinator and what came out of it. */
struct node {
    struct coord_coordinator *c;
    char log[LOG_MAX]; /* events, such as "SILENT b; " */
    struct coord_orphan last;
    coord_ms order;
    bool deaf; /* hears nothing */
    bool mute; /* sends nothing */
    int64_t skew_us;
};

struct fleet {
    struct node node[NODES];
    coord_ms now;
    unsigned count;
};

static void note(struct node *node, const struct coord_event *event)
{
    size_t used = strlen(node->log);
    const char *name = coord_event_name(event->kind);
    name = strncmp(name, "PEER_", 5) == 0 ? name + 5 : name;
    if (event->kind >= COORD_EVENT_ORPHAN_OPENED) {
        snprintf(node->log + used, LOG_MAX - used, "%s %.*s/%.*s %s; ", name,
                 (int)event->orphan.instance_id_bytes, event->orphan.instance_id,
                 (int)event->orphan.subscription_bytes, event->orphan.subscription,
                 coord_cause_name(event->orphan.cause));
        node->last = event->orphan;
    } else {
        snprintf(node->log + used, LOG_MAX - used, "%s%s%.*s; ", name,
                 event->peer.id != NULL ? " " : "", (int)event->peer.id_bytes,
                 event->peer.id != NULL ? event->peer.id : "");
    }
    if (event->kind == COORD_EVENT_ORDER) {
        node->order = event->deadline;
    }
}

static void pull(struct fleet *f, struct node *node)
{
    struct coord_event event;
    while (node->c != NULL && coord_coordinator_next_event(node->c, f->now, &event)) {
        note(node, &event);
    }
}

static void deliver(struct fleet *f, struct node *node, enum coord_message_type type,
                    const void *bytes, size_t count)
{
    if (node->c != NULL && !node->deaf) {
        pull(f, node);
        assert_int_equal(coord_coordinator_handle(node->c, type, bytes, count, f->now), COORD_OK);
        pull(f, node);
    }
}

/* Everything that is due is said, and heard by all, the speaker included. */
static void settle(struct fleet *f)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_outgoing out;
    for (unsigned i = 0; i < f->count; i++) {
        struct node *node = &f->node[i];
        pull(f, node);
        while (node->c != NULL &&
               coord_coordinator_next_message(node->c, f->now, WALL + node->skew_us, &out)) {
            memcpy(bytes, out.bytes, out.count);
            for (unsigned j = 0; j < f->count && !node->mute; j++) {
                deliver(f, &f->node[j], out.type, bytes, out.count);
            }
        }
        pull(f, node);
    }
}

/* Nobody comes late, and nothing is due after it was done. */
static void run(struct fleet *f, coord_ms length)
{
    coord_ms end = f->now + length;
    for (;;) {
        settle(f);
        settle(f);
        coord_ms next = COORD_NEVER;
        for (unsigned i = 0; i < f->count; i++) {
            if (f->node[i].c != NULL) {
                coord_ms at = coord_coordinator_deadline(f->node[i].c);
                assert_true(at > f->now);
                next = coord_ms_min(next, at);
            }
        }
        if (next > end) {
            f->now = end;
            return;
        }
        f->now = next;
    }
}

static struct coord_coordinator_config config_of(const char *id, unsigned char incarnation)
{
    struct coord_coordinator_config config = COORD_COORDINATOR_CONFIG_INIT;
    config.instance_id = id;
    config.timeout = T;
    config.interval = I;
    config.tick = 10;
    config.seed = incarnation;
    memset(config.incarnation, incarnation, sizeof config.incarnation);
    return config;
}

static struct node *join(struct fleet *f, const char *id, const char *subscription)
{
    struct node *node = &f->node[f->count++];
    struct coord_coordinator_config config = config_of(id, (unsigned char)(id[0] + f->count));
    static unsigned char buffer[1024];
    struct coord_value list;
    if (f->now == 0) {
        f->now = START;
    }
    assert_int_equal(coord_coordinator_new(&config, f->now, &node->c, NULL), COORD_OK);
    if (subscription != NULL) {
        const char *names[] = {subscription};
        assert_int_equal(coord_texts(names, 1, buffer, sizeof buffer, &list), COORD_OK);
        assert_int_equal(coord_coordinator_serve(node->c, &list, 1, 0.5), COORD_OK);
    }
    return node;
}

static void leave_all(struct fleet *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        coord_coordinator_free(f->node[i].c);
    }
}

static void lead(struct fleet *f, struct node *node, uint64_t fence)
{
    coord_coordinator_lead(node->c, true, fence, COORD_NEVER, f->now);
}

static void crash(struct node *node)
{
    coord_coordinator_free(node->c);
    node->c = NULL;
}

static enum coord_peer_status status_of(const struct node *node, const char *id)
{
    struct coord_peer peer;
    return coord_coordinator_find_peer(node->c, id, strlen(id), &peer) ? peer.status
                                                                       : COORD_PEER_UNKNOWN;
}

static unsigned seen(const struct node *node, const char *what)
{
    unsigned count = 0;
    for (const char *at = node->log; (at = strstr(at, what)) != NULL; at++) {
        count++;
    }
    return count;
}

/* A message made by hand, as a stranger would send it. */
static struct coord_message beat(const char *id, const char *incarnation, uint64_t seq)
{
    struct coord_message message = {.type = COORD_MESSAGE_HEARTBEAT, .at_us = WALL, .seq = seq};
    message.instance_id = coord_text(id, strlen(id));
    if (incarnation != NULL) {
        message.incarnation = coord_text(incarnation, strlen(incarnation));
    }
    return message;
}

static void say(struct fleet *f, struct node *node, const struct coord_message *message)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    size_t count = 0;
    assert_int_equal(coord_message_encode(message, COORD_FORM_MSGPACK, bytes, sizeof bytes, &count),
                     COORD_OK);
    deliver(f, node, message->type, bytes, count);
}

static uint64_t refused(const struct node *node, enum coord_refusal why)
{
    return coord_coordinator_counts(node->c).refused[why];
}

/* ---- silence ---- */

static void test_coordinator__two_lost_beats_have_to_fit_into_the_timeout(void **state)
{
    (void)state;
    struct coord_coordinator *c = NULL;
    struct coord_error error;
    struct coord_coordinator_config config = config_of("a", 1);
    config.interval = T / 3;
    assert_int_equal(coord_coordinator_new(&config, 0, &c, &error), COORD_E_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "beat oftener"));
    config.interval = 0; /* T / 4 */
    assert_int_equal(coord_coordinator_new(&config, 0, &c, &error), COORD_OK);
    coord_coordinator_free(c);
    config.instance_id = "";
    assert_int_equal(coord_coordinator_new(&config, 0, &c, &error), COORD_E_BAD_NAME);
}

static void test_coordinator__a_death_is_told_once_and_the_return_too(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 1);
    b->mute = true;
    run(&f, T - I - 1);
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    run(&f, 4 * T);
    assert_int_equal(seen(a, "SILENT b"), 1);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 0);
    b->mute = false;
    run(&f, T);
    assert_int_equal(seen(a, "RECOVERED b"), 1);
    assert_int_equal(seen(a, "SILENT"), 1);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 1);
    leave_all(&f);
}

static void test_coordinator__nobody_dies_while_the_bus_is_down_or_at_its_return(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", "x");
    struct node *b = join(&f, "b", "y");
    struct node *c = join(&f, "c", "z");
    run(&f, 2 * T);
    a->mute = b->mute = c->mute = true;
    run(&f, 60 * T);
    a->mute = b->mute = c->mute = false;
    run(&f, 3 * T);
    assert_int_equal(seen(a, "SILENT") + seen(b, "SILENT") + seen(c, "SILENT"), 0);
    leave_all(&f);
}

static void test_coordinator__the_echo_comes_before_the_others_and_nobody_dies(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", NULL);
    run(&f, 2 * T);
    a->mute = b->mute = true;
    run(&f, 10 * T);
    a->mute = false; /* ours comes back at once, the other's a moment later */
    run(&f, T / 2);
    b->mute = false;
    run(&f, 2 * T);
    assert_int_equal(seen(a, "SILENT"), 0);
    leave_all(&f);
}

static void test_coordinator__who_slept_starts_anew(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", NULL);
    run(&f, 2 * T);
    uint64_t before = coord_coordinator_counts(a->c).anew;
    f.now += 5 * T; /* all of us were stopped */
    settle(&f);
    run(&f, T / 2);
    assert_int_equal(seen(a, "SILENT") + seen(b, "SILENT"), 0);
    assert_true(coord_coordinator_counts(a->c).anew > before);
    leave_all(&f);
}

static void test_coordinator__an_observer_that_wakes_at_its_deadline_has_not_slept(void **state)
{
    (void)state;
    struct fleet f = {.now = START, .count = 1};
    struct coord_coordinator_config config = config_of("o", 9);
    config.observer = true;
    assert_int_equal(coord_coordinator_new(&config, f.now, &f.node[0].c, NULL), COORD_OK);
    coord_coordinator_connected(f.node[0].c, true, f.now);
    struct coord_message message = beat("b", "i1", 1);
    say(&f, &f.node[0], &message);
    for (int i = 0; i < 20 && coord_coordinator_deadline(f.node[0].c) != COORD_NEVER; i++) {
        f.now = coord_coordinator_deadline(f.node[0].c);
        pull(&f, &f.node[0]);
    }
    assert_int_equal(seen(&f.node[0], "SILENT b"), 1);
    leave_all(&f);
}

static void test_coordinator__an_observer_without_connection_judges_nobody(void **state)
{
    (void)state;
    struct fleet f = {.now = START, .count = 1};
    struct node *o = &f.node[0];
    struct coord_coordinator_config config = config_of("o", 9);
    config.observer = true;
    assert_int_equal(coord_coordinator_new(&config, f.now, &o->c, NULL), COORD_OK);
    coord_coordinator_connected(o->c, true, f.now);
    struct coord_message message = beat("b", "i1", 1);
    say(&f, o, &message);
    coord_coordinator_connected(o->c, false, f.now);
    f.now += 10 * T;
    pull(&f, o);
    coord_coordinator_connected(o->c, true, f.now);
    f.now += T / 4;
    pull(&f, o);
    assert_int_equal(seen(o, "SILENT"), 0);
    leave_all(&f);
}

static void test_coordinator__a_replay_revives_nobody(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    run(&f, T);
    for (uint64_t seq = 1; seq <= 12; seq++) {
        struct coord_message message = beat("b", "i1", seq);
        say(&f, a, &message);
        run(&f, I);
    }
    run(&f, 2 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_SILENT);
    struct coord_message old = beat("b", "i1", 3);
    say(&f, a, &old);
    assert_int_equal(status_of(a, "b"), COORD_PEER_SILENT);
    assert_int_equal(refused(a, COORD_REFUSED_OLD_SEQ), 1);
    leave_all(&f);
}

static void test_coordinator__a_clock_that_is_set_back_kills_no_seed_peer(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    run(&f, T);
    for (int64_t i = 0; i < 40; i++) {
        struct coord_message message = beat("b", NULL, 0);
        /* An hour back in the middle. */
        message.at_us = WALL + i * I * 1000 - (i >= 20 ? INT64_C(3600000000) : 0);
        say(&f, a, &message);
        run(&f, I);
    }
    assert_int_equal(seen(a, "SILENT"), 0);
    struct coord_message copy = beat("b", NULL, 0);
    copy.at_us = WALL + 39 * I * 1000 - INT64_C(3600000000);
    say(&f, a, &copy);
    assert_int_equal(refused(a, COORD_REFUSED_OLD_TIME), 1);
    leave_all(&f);
}

/* ---- incarnations ---- */

static void test_coordinator__a_late_beat_of_the_old_one_harms_no_new_one(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    run(&f, T);
    struct coord_message new = beat("b", "new", 1);
    say(&f, a, &new);
    struct coord_message old = beat("b", "old", 77);
    say(&f, a, &old);
    for (uint64_t seq = 2; seq < 20; seq++) {
        run(&f, I);
        new = beat("b", "new", seq);
        say(&f, a, &new);
    }
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    assert_int_equal(seen(a, "DUPLICATE"), 0);
    assert_int_equal(seen(a, "SILENT b"), 1); /* the old one */
    leave_all(&f);
}

static void test_coordinator__two_that_both_go_on_are_a_duplicate(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    run(&f, T);
    for (uint64_t seq = 1; seq < 20; seq++) {
        struct coord_message one = beat("b", "one", seq);
        struct coord_message two = beat("b", "two", seq);
        say(&f, a, &one);
        say(&f, a, &two);
        run(&f, I);
    }
    assert_int_equal(seen(a, "DUPLICATE_IDENTITY b"), 1);
    leave_all(&f);
}

/* ---- leaving ---- */

static void test_coordinator__leaving_is_in_each_beat_and_a_beat_without_withdraws(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    coord_coordinator_leave(b->c, COORD_INTENT_PREEMPTION, f.now + 4 * T, f.now);
    run(&f, T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_LEAVING);
    assert_int_equal(seen(a, "LEAVING b"), 1);
    coord_coordinator_withdraw(b->c, f.now);
    run(&f, T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    assert_int_equal(seen(a, "WITHDREW b"), 1);
    leave_all(&f);
}

static void test_coordinator__past_its_deadline_it_is_overrun_and_then_silent(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    coord_coordinator_leave(b->c, COORD_INTENT_GRACEFUL, f.now + T, f.now);
    run(&f, 3 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_OVERRUN);
    assert_int_equal(seen(a, "OVERRUN b"), 1);
    crash(b);
    run(&f, 2 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_SILENT);
    leave_all(&f);
}

static void test_coordinator__finished_is_the_last_word(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    lead(&f, a, 7);
    coord_coordinator_leave(b->c, COORD_INTENT_GRACEFUL, f.now + 60 * T, f.now);
    run(&f, T);
    coord_coordinator_finish(b->c, f.now);
    run(&f, T);
    assert_true(coord_coordinator_finished(b->c));
    assert_int_equal(status_of(a, "b"), COORD_PEER_FINISHED);
    assert_int_equal(seen(a, "ORPHAN_UPDATED b/x finished"), 1);
    assert_true(a->last.safe_after <= f.now);
    struct coord_message late = beat("b", "ignored", 1);
    late.incarnation = coord_text("64646464646464646464646464646464", 32);
    late.seq = 1000;
    say(&f, a, &late);
    assert_int_equal(refused(a, COORD_REFUSED_AFTER_FINISHED), 1);
    leave_all(&f);
}

static void test_coordinator__a_notice_for_us_from_somebody_else_is_an_order(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", "x");
    run(&f, T);
    struct coord_message order = {.type = COORD_MESSAGE_SHUTDOWN};
    order.instance_id = coord_text("a", 1);
    /* The clock of the sender is wrong by an hour: only the difference counts. */
    order.at_us = WALL + INT64_C(3600000000);
    order.completion_us = order.at_us + 5000 * INT64_C(1000);
    say(&f, a, &order);
    assert_int_equal(seen(a, "ORDER"), 1);
    assert_int_equal(a->order, f.now + 5000);
    assert_false(coord_coordinator_is_leaving(a->c)); /* that is the host's to do */
    leave_all(&f);
}

static void test_coordinator__an_order_without_incarnation_speaks_of_the_one_heard_last(
    void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    struct coord_message order = {.type = COORD_MESSAGE_SHUTDOWN, .at_us = WALL};
    order.instance_id = coord_text("b", 1);
    order.completion_us = WALL + 8000 * INT64_C(1000);
    say(&f, a, &order);
    say(&f, b, &order);
    assert_int_equal(status_of(a, "b"), COORD_PEER_LEAVING);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 1); /* no second b */
    assert_int_equal(seen(b, "ORDER"), 1);
    leave_all(&f);
}

/* ---- reports ---- */

static void test_coordinator__a_crash_is_reported_and_resolved_by_who_lists_it(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    struct node *c = join(&f, "c", NULL);
    run(&f, 2 * T);
    lead(&f, a, 7);
    run(&f, 1);
    coord_ms last = f.now;
    crash(b);
    run(&f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x silent"), 1);
    assert_int_equal(seen(c, "ORPHAN_OPENED b/x silent"), 1);
    assert_int_equal(c->last.certainty, COORD_SUSPECTED);
    assert_int_equal(c->last.fence, 7);
    assert_int_equal(c->last.seq, 1);
    assert_true(a->last.safe_after > last + T && a->last.safe_after <= last + 2 * T);
    static unsigned char buffer[64];
    struct coord_value list;
    const char *names[] = {"x"};
    assert_int_equal(coord_texts(names, 1, buffer, sizeof buffer, &list), COORD_OK);
    assert_int_equal(coord_coordinator_serve(c->c, &list, 0, 0), COORD_OK);
    run(&f, T);
    assert_int_equal(seen(a, "ORPHAN_RESOLVED b/x"), 1);
    assert_int_equal(seen(c, "ORPHAN_RESOLVED b/x"), 1);
    /* The later owner dies: its own report opens, the old one does not. */
    crash(c);
    run(&f, 3 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED c/x"), 1);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x"), 1);
    leave_all(&f);
}

static void test_coordinator__draining_work_is_offered_and_its_own_beats_resolve_nothing(
    void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    lead(&f, a, 7);
    coord_ms deadline = f.now + 5 * T;
    coord_coordinator_leave(b->c, COORD_INTENT_PREEMPTION, deadline, f.now);
    run(&f, 3 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x draining"), 1);
    assert_int_equal(seen(a, "RESOLVED"), 0);
    assert_int_equal(a->last.certainty, COORD_ANNOUNCED);
    assert_int_equal(a->last.safe_after, deadline + T);
    /* Cut off while it drains: it may be at work until its deadline. */
    crash(b);
    run(&f, T + I);
    assert_int_equal(seen(a, "ORPHAN_UPDATED b/x silent"), 1);
    assert_int_equal(a->last.safe_after, deadline + T);
    leave_all(&f);
}

static void test_coordinator__what_a_healthy_peer_lists_is_no_orphan(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    join(&f, "c", "x");
    run(&f, 2 * T);
    lead(&f, a, 7);
    crash(b);
    run(&f, 3 * T);
    assert_int_equal(seen(a, "SILENT b"), 1);
    assert_int_equal(seen(a, "ORPHAN"), 0);
    leave_all(&f);
}

static void test_coordinator__our_own_listing_counts_once_it_came_back(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", "x");
    run(&f, 2 * T);
    lead(&f, a, 7);
    crash(b);
    run(&f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x"), 1);
    static unsigned char buffer[64];
    struct coord_value list;
    const char *names[] = {"x"};
    assert_int_equal(coord_texts(names, 1, buffer, sizeof buffer, &list), COORD_OK);
    a->mute = true;
    assert_int_equal(coord_coordinator_serve(a->c, &list, 0, 0), COORD_OK);
    run(&f, I * 2);
    assert_int_equal(seen(a, "RESOLVED"), 0);
    a->mute = false;
    run(&f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_RESOLVED b/x"), 1);
    leave_all(&f);
}

/* X dies and is reported; C joins; the leader dies; C leads and has never heard X. */
static void test_coordinator__no_report_is_lost_over_a_late_joiner_that_leads(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *x = join(&f, "x", "work");
    struct node *observer = join(&f, "o", NULL);
    run(&f, 2 * T);
    lead(&f, a, 7);
    crash(x);
    run(&f, 3 * T);
    assert_int_equal(seen(observer, "ORPHAN_OPENED x/work"), 1);
    struct node *c = join(&f, "c", NULL);
    c->deaf = false;
    run(&f, I);
    crash(a);
    run(&f, T / 2);
    lead(&f, c, 9);
    run(&f, 6 * T);
    assert_int_equal(seen(observer, "RESOLVED"), 0);
    assert_int_equal(coord_coordinator_counts(c->c).orphans, 1);
    assert_int_equal(coord_coordinator_counts(observer->c).orphans, 1);
    assert_int_equal(observer->last.fence, 9);
    leave_all(&f);
}

/* The new leader missed every table; who knows the report hints. */
static void test_coordinator__a_hint_brings_a_report_back(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *x = join(&f, "x", "work");
    struct node *b = join(&f, "b", NULL);
    run(&f, 2 * T);
    lead(&f, a, 7);
    crash(x);
    run(&f, 3 * T);
    crash(a);
    struct node *c = join(&f, "c", NULL);
    run(&f, 2 * T);
    assert_int_equal(coord_coordinator_counts(c->c).orphans, 0);
    lead(&f, c, 9);
    run(&f, 4 * T);
    assert_int_equal(seen(c, "ORPHAN_OPENED x/work silent"), 1);
    assert_int_equal(seen(b, "RESOLVED"), 0);
    assert_int_equal(coord_coordinator_counts(b->c).orphans, 1);
    leave_all(&f);
}

static void test_coordinator__a_leader_that_lost_its_term_is_not_heard(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", NULL);
    struct node *x = join(&f, "x", "work");
    run(&f, 2 * T);
    lead(&f, a, 7);
    lead(&f, b, 9);
    crash(x);
    run(&f, 3 * T);
    assert_true(refused(b, COORD_REFUSED_STALE_FENCE) > 0);
    assert_int_equal(b->last.fence, 9);
    leave_all(&f);
}

static void test_coordinator__only_who_leads_now_assigns_and_lower_fences_are_dropped(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", NULL);
    struct coord_outgoing out;
    static unsigned char buffer[64];
    static unsigned char copy[COORD_MESSAGE_MAX];
    struct coord_value list;
    const char *names[] = {"x"};
    assert_int_equal(coord_texts(names, 1, buffer, sizeof buffer, &list), COORD_OK);
    run(&f, T);
    assert_int_equal(coord_coordinator_assign(a->c, "b", &list, 1, f.now, WALL, &out),
                     COORD_E_NOT_LEADER);
    coord_coordinator_lead(a->c, true, 7, f.now + 10, f.now);
    assert_int_equal(coord_coordinator_assign(a->c, "b", &list, 1, f.now, WALL, &out), COORD_OK);
    memcpy(copy, out.bytes, out.count);
    deliver(&f, b, out.type, copy, out.count);
    assert_int_equal(seen(b, "ASSIGNMENT"), 1);
    f.now += 10;
    assert_int_equal(coord_coordinator_assign(a->c, "b", &list, 1, f.now, WALL, &out),
                     COORD_E_NOT_LEADER);
    struct coord_message old = {.type = COORD_MESSAGE_WORK_ASSIGNMENT, .at_us = WALL, .fence = 6};
    old.instance_id = coord_text("z", 1);
    old.target = coord_text("b", 1);
    say(&f, b, &old);
    assert_int_equal(seen(b, "ASSIGNMENT"), 1);
    assert_int_equal(refused(b, COORD_REFUSED_STALE_FENCE), 1);
    leave_all(&f);
}

/* ---- limits and bad input ---- */

static void test_coordinator__limits_are_refused_by_name(void **state)
{
    (void)state;
    struct fleet f = {.now = START, .count = 1};
    struct node *a = &f.node[0];
    struct coord_coordinator_config config = config_of("a", 1);
    config.peers_max = 3;
    config.incarnations_max = 2;
    assert_int_equal(coord_coordinator_new(&config, f.now, &a->c, NULL), COORD_OK);
    for (int i = 0; i < 3; i++) {
        char incarnation[] = "i0";
        incarnation[1] = (char)('0' + i);
        struct coord_message message = beat("b", incarnation, 1);
        say(&f, a, &message);
    }
    assert_int_equal(refused(a, COORD_REFUSED_INCARNATIONS_FULL), 1);
    struct coord_message c = beat("c", "i", 1);
    struct coord_message d = beat("d", "i", 1);
    say(&f, a, &c);
    say(&f, a, &d);
    assert_int_equal(refused(a, COORD_REFUSED_PEERS_FULL), 1);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 3);
    assert_int_equal(
        coord_coordinator_handle(a->c, COORD_MESSAGE_HEARTBEAT, "\xdd\x01\0\0\0", 5, f.now),
        COORD_E_BAD_MESSAGE);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 3);
    leave_all(&f);
}

static void test_coordinator__the_dead_are_forgotten_after_ten_timeouts(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *b = join(&f, "b", NULL);
    run(&f, 2 * T);
    crash(b);
    run(&f, 5 * T);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 1);
    run(&f, 10 * T);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 0);
    assert_int_equal(status_of(a, "b"), COORD_PEER_UNKNOWN);
    leave_all(&f);
}

static void test_coordinator__a_peer_can_be_removed(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    join(&f, "b", "x");
    run(&f, 2 * T);
    assert_true(coord_coordinator_remove_peer(a->c, "b", 1));
    assert_false(coord_coordinator_remove_peer(a->c, "b", 1));
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 0);
    run(&f, T);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 1);
    leave_all(&f);
}

/* ---- many reports ---- */

static void test_coordinator__a_long_table_comes_in_parts(void **state)
{
    (void)state;
    enum {
        MANY = 700
    };
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct node *o = join(&f, "o", NULL);
    run(&f, 2 * T);
    lead(&f, a, 7);
    run(&f, 1);
    a->log[0] = o->log[0] = '\0';
    for (int i = 0; i < MANY; i++) {
        char id[16];
        char name[16];
        static unsigned char buffer[64];
        const char *names[] = {name};
        snprintf(id, sizeof id, "w%d", i);
        snprintf(name, sizeof name, "s%d", i);
        struct coord_message message = beat(id, "i", 1);
        assert_int_equal(coord_texts(names, 1, buffer, sizeof buffer, &message.subscriptions),
                         COORD_OK);
        say(&f, a, &message);
        say(&f, o, &message);
        a->log[0] = o->log[0] = '\0';
    }
    o->deaf = true; /* misses every opening */
    run(&f, T + I);
    o->deaf = false;
    run(&f, 3 * T);
    assert_int_equal(coord_coordinator_counts(a->c).orphans, MANY);
    assert_int_equal(coord_coordinator_counts(o->c).orphans, MANY);
    assert_int_equal(seen(o, "RESOLVED"), 0);
    leave_all(&f);
}

/* ---- registered functions ---- */

static void count_event(void *ctx, const struct coord_event *event)
{
    (void)event;
    ++*(int *)ctx;
}

static void test_coordinator__registered_functions_are_called_until_removed(void **state)
{
    (void)state;
    struct fleet f = {0};
    struct node *a = join(&f, "a", NULL);
    struct coord_dispatcher *dispatcher = NULL;
    static unsigned char bytes[512];
    size_t count = 0;
    int calls = 0;
    struct coord_message message = beat("b", "i", 1);
    assert_int_equal(coord_message_encode(&message, COORD_FORM_JSON, bytes, sizeof bytes, &count),
                     COORD_OK);
    assert_int_equal(coord_dispatcher_new(&dispatcher), COORD_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            coord_dispatcher_on(dispatcher, COORD_EVENT_PEER_APPEARED, count_event, &calls),
            COORD_OK);
    }
    assert_true(
        coord_dispatcher_remove(dispatcher, COORD_EVENT_PEER_APPEARED, count_event, &calls));
    assert_false(coord_dispatcher_remove(dispatcher, COORD_EVENT_PEER_SILENT, count_event, &calls));
    assert_int_equal(coord_coordinator_handle(a->c, COORD_MESSAGE_HEARTBEAT, bytes, count, f.now),
                     COORD_OK);
    assert_int_equal(coord_dispatcher_run(dispatcher, a->c, f.now), 1);
    assert_int_equal(calls, 1);
    coord_dispatcher_free(dispatcher);
    leave_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coordinator__two_lost_beats_have_to_fit_into_the_timeout),
        cmocka_unit_test(test_coordinator__a_death_is_told_once_and_the_return_too),
        cmocka_unit_test(test_coordinator__nobody_dies_while_the_bus_is_down_or_at_its_return),
        cmocka_unit_test(test_coordinator__the_echo_comes_before_the_others_and_nobody_dies),
        cmocka_unit_test(test_coordinator__who_slept_starts_anew),
        cmocka_unit_test(test_coordinator__an_observer_that_wakes_at_its_deadline_has_not_slept),
        cmocka_unit_test(test_coordinator__an_observer_without_connection_judges_nobody),
        cmocka_unit_test(test_coordinator__a_replay_revives_nobody),
        cmocka_unit_test(test_coordinator__a_clock_that_is_set_back_kills_no_seed_peer),
        cmocka_unit_test(test_coordinator__a_late_beat_of_the_old_one_harms_no_new_one),
        cmocka_unit_test(test_coordinator__two_that_both_go_on_are_a_duplicate),
        cmocka_unit_test(test_coordinator__leaving_is_in_each_beat_and_a_beat_without_withdraws),
        cmocka_unit_test(test_coordinator__past_its_deadline_it_is_overrun_and_then_silent),
        cmocka_unit_test(test_coordinator__finished_is_the_last_word),
        cmocka_unit_test(test_coordinator__a_notice_for_us_from_somebody_else_is_an_order),
        cmocka_unit_test(
            test_coordinator__an_order_without_incarnation_speaks_of_the_one_heard_last),
        cmocka_unit_test(test_coordinator__a_crash_is_reported_and_resolved_by_who_lists_it),
        cmocka_unit_test(
            test_coordinator__draining_work_is_offered_and_its_own_beats_resolve_nothing),
        cmocka_unit_test(test_coordinator__what_a_healthy_peer_lists_is_no_orphan),
        cmocka_unit_test(test_coordinator__our_own_listing_counts_once_it_came_back),
        cmocka_unit_test(test_coordinator__no_report_is_lost_over_a_late_joiner_that_leads),
        cmocka_unit_test(test_coordinator__a_hint_brings_a_report_back),
        cmocka_unit_test(test_coordinator__a_leader_that_lost_its_term_is_not_heard),
        cmocka_unit_test(test_coordinator__only_who_leads_now_assigns_and_lower_fences_are_dropped),
        cmocka_unit_test(test_coordinator__limits_are_refused_by_name),
        cmocka_unit_test(test_coordinator__the_dead_are_forgotten_after_ten_timeouts),
        cmocka_unit_test(test_coordinator__a_peer_can_be_removed),
        cmocka_unit_test(test_coordinator__a_long_table_comes_in_parts),
        cmocka_unit_test(test_coordinator__registered_functions_are_called_until_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
