/* SPDX-License-Identifier: MIT
 * tests/unit/test_coordinator_rules.c - more of the strict rules: what starts anew and what does
 * not, what is kept, what is said how often, and whose clock counts.
 */
#include "tests/unit/fleet.h"

static void test_coordinator_rules__deadlines_of_notices_do_not_start_anew(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    run(f, 2 * T);
    const coord_ms deadline = f->now + 4 * T;
    coord_coordinator_leave(b->c, COORD_INTENT_PREEMPTION, deadline, f->now);
    run(f, T);
    const uint64_t before = coord_coordinator_counts(a->c).anew;
    f->now += 2 * T; /* all of us were stopped */
    settle(f);
    assert_true(coord_coordinator_counts(a->c).anew > before);
    run(f, deadline - f->now - 1);
    assert_int_equal(seen(a, "OVERRUN b"), 0);
    run(f, 2);
    assert_int_equal(seen(a, "OVERRUN b"), 1);
}

static void test_coordinator_rules__the_dead_are_kept_while_their_work_is_open(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    crash(b);
    run(f, 30 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_SILENT);
    assert_int_equal(open_reports(a), 1);
    join(f, "c", "x");
    run(f, 2 * T);
    assert_int_equal(open_reports(a), 0);
    assert_int_equal(status_of(a, "b"), COORD_PEER_UNKNOWN);
}

static void test_coordinator_rules__the_last_word_is_repeated_until_it_comes_back(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    run(f, 2 * T);
    coord_coordinator_leave(b->c, COORD_INTENT_GRACEFUL, f->now + 60 * T, f->now);
    run(f, I);
    b->mute = true; /* what it says is lost */
    coord_coordinator_finish(b->c, f->now);
    run(f, T / 2);
    assert_false(coord_coordinator_finished(b->c));
    assert_int_equal(status_of(a, "b"), COORD_PEER_LEAVING);
    b->mute = false;
    run(f, 2 * I);
    assert_true(coord_coordinator_finished(b->c));
    assert_int_equal(status_of(a, "b"), COORD_PEER_FINISHED);
    assert_int_equal(seen(a, "FINISHED b"), 1);
}

static void test_coordinator_rules__no_last_word_when_the_deadline_won(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    run(f, 2 * T);
    coord_coordinator_leave(b->c, COORD_INTENT_GRACEFUL, f->now + T, f->now);
    run(f, 2 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_OVERRUN);
    coord_coordinator_finish(b->c, f->now);
    run(f, T / 2);
    assert_true(coord_coordinator_finished(b->c));
    assert_int_equal(seen(a, "FINISHED b"), 0);
}

/* The wall clocks are ten minutes wrong, one each way: no instant of a report moves. */
static void test_coordinator_rules__a_wrong_wall_clock_moves_no_report(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *o = join(f, "o", NULL);
    a->skew_us = INT64_C(600000000);
    b->skew_us = INT64_C(-600000000);
    elect(f, a, 7);
    const coord_ms deadline = f->now + 5 * T;
    coord_coordinator_leave(b->c, COORD_INTENT_PREEMPTION, deadline, f->now);
    run(f, T);
    assert_int_equal(seen(o, "ORPHAN_OPENED b/x draining"), 1);
    assert_int_equal(a->last.deadline, deadline);
    assert_int_equal(o->last.deadline, deadline);
    assert_int_equal(o->last.safe_after, deadline + T);
    assert_int_equal(o->last.since, a->last.since);
}

static coord_ms listed(const struct node *node)
{
    struct coord_orphan orphan;
    uint32_t at = 0;
    assert_true(coord_coordinator_next_orphan(node->c, &at, &orphan));
    return orphan.listed;
}

/* A consumer acts only on what the present leader listed within the last T. */
static void test_coordinator_rules__an_orphan_shows_when_a_leader_listed_it(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *o = join(f, "o", NULL);
    run(f, 2 * T);
    crash(b);
    run(f, 2 * T);
    assert_int_equal(listed(o), 0); /* it sees it by itself, and nobody leads */
    lead(f, a, 7);
    run(f, 5 * T);
    assert_true(f->now - listed(a) <= T);
    assert_true(f->now - listed(o) <= T);
    const coord_ms last = f->now;
    crash(a);
    run(f, 5 * T);
    assert_true(listed(o) <= last);
}

/* Somebody still holds a report that was resolved, and asks. */
static void test_coordinator_rules__a_hint_of_what_was_resolved_is_answered(void **state)
{
    struct fleet *f = *state;
    static unsigned char list[1024];
    struct coord_writer writer;
    struct coord_report_wire wire = {.since_us = WALL, .safe_after_us = WALL};
    struct coord_message hint = {.type = COORD_MESSAGE_ORPHANS,
                                 .kind = COORD_ORPHANS_HINT,
                                 .fence = 7,
                                 .at_us = WALL,
                                 .sent_at_us = WALL};
    size_t bytes = 0;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    crash(b);
    run(f, 2 * T);
    join(f, "c", "x");
    run(f, T);
    assert_int_equal(seen(a, "RESOLVED b/x"), 1);
    const uint64_t before = a->last.seq;
    memcpy(wire.id, a->last.report_id, sizeof wire.id);
    wire.instance_id = coord_text("b", 1);
    wire.subscription = coord_text("x", 1);
    coord_writer_begin(&writer, COORD_FORM_MSGPACK, list, sizeof list);
    coord_write_array(&writer, 1);
    coord_report_write(&writer, &wire);
    coord_write_end(&writer);
    assert_int_equal(coord_writer_finish(&writer, &bytes), COORD_OK);
    assert_int_equal(coord_view(list, bytes, &hint.reports), COORD_FAULT_NONE);
    hint.instance_id = coord_text("o", 1);
    say(f, a, &hint);
    run(f, 1);
    assert_int_equal(seen(a, "RESOLVED b/x"), 2);
    assert_int_equal(a->last.seq, before + 1);
    assert_int_equal(open_reports(a), 0);
}

/* ---- limits ---- */

static void test_coordinator_rules__names_beyond_the_limit_are_refused_and_the_peer_lives(
    void **state)
{
    struct fleet *f = *state;
    struct coord_coordinator_config config = config_of("o", 9);
    config.subscriptions_max = 1;
    struct node *o = observe(f, config);
    say_beat(f, o, "b", "i", 1, "x");
    say_beat(f, o, "b", "i", 2, "y");
    assert_int_equal(refused(o, COORD_REFUSED_SUBSCRIPTIONS_FULL), 1);
    assert_int_equal(status_of(o, "b"), COORD_PEER_HEALTHY);
    const char *name = NULL;
    size_t bytes = 0;
    assert_true(coord_coordinator_subscription(o->c, "b", 1, 0, &name, &bytes));
    assert_memory_equal(name, "x", 1); /* the last one that could be kept */
}

static void test_coordinator_rules__a_resolved_report_makes_way_for_an_open_one(void **state)
{
    struct fleet *f = *state;
    struct coord_coordinator_config config = config_of("o", 9);
    config.reports_max = 1;
    struct node *o = observe(f, config);
    say_beat(f, o, "b", "i", 1, "x");
    run(f, T + I);
    assert_int_equal(open_reports(o), 1);
    say_beat(f, o, "b", "i", 2, "x"); /* back, and its report is resolved */
    say_beat(f, o, "c", "i", 1, "y");
    say_beat(f, o, "d", "i", 1, "z");
    for (uint64_t seq = 3; seq < 12; seq++) { /* b stays, the others do not */
        say_beat(f, o, "b", "i", seq, "x");
        run(f, I);
    }
    assert_int_equal(open_reports(o), 1);
    assert_int_equal(refused(o, COORD_REFUSED_REPORTS_FULL), 1); /* for one there was room */
}

/* ---- handing leadership over ---- */

struct lead_of {
    enum coord_err renews;
    bool leads;
    unsigned released;
};

static enum coord_err renew_it(void *ctx)
{
    return ((struct lead_of *)ctx)->renews;
}

static bool leads_it(void *ctx, uint64_t *fence)
{
    *fence = 7;
    return ((struct lead_of *)ctx)->leads;
}

static enum coord_err release_it(void *ctx)
{
    ((struct lead_of *)ctx)->released++;
    return COORD_OK;
}

static void test_coordinator_rules__only_who_leads_at_that_instant_hands_over(void **state)
{
    struct fleet *f = *state;
    struct lead_of of = {.renews = COORD_OK, .leads = true};
    const struct coord_leadership leadership = {
        .renew = renew_it, .is_leader = leads_it, .release = release_it, .ctx = &of};
    struct node *a = join(f, "a", NULL);
    assert_int_equal(coord_coordinator_hand_over(a->c, &leadership, f->now), COORD_E_NOT_LEADER);
    coord_coordinator_lead(a->c, true, 7, f->now + T, f->now);
    of.renews = COORD_E_UNREACHABLE;
    assert_int_equal(coord_coordinator_hand_over(a->c, &leadership, f->now), COORD_E_NOT_LEADER);
    of.renews = COORD_OK;
    of.leads = false;
    assert_int_equal(coord_coordinator_hand_over(a->c, &leadership, f->now), COORD_E_NOT_LEADER);
    of.leads = true;
    assert_int_equal(coord_coordinator_hand_over(a->c, &leadership, f->now + T),
                     COORD_E_NOT_LEADER);
    assert_int_equal(of.released, 0);
    coord_coordinator_lead(a->c, true, 7, f->now + 3 * T, f->now + T);
    assert_int_equal(coord_coordinator_hand_over(a->c, &leadership, f->now + T), COORD_OK);
    assert_int_equal(of.released, 1);
}

#define TEST(name) \
    cmocka_unit_test_setup_teardown(test_coordinator_rules__##name, fleet_begin, fleet_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(deadlines_of_notices_do_not_start_anew),
        TEST(the_dead_are_kept_while_their_work_is_open),
        TEST(the_last_word_is_repeated_until_it_comes_back),
        TEST(no_last_word_when_the_deadline_won),
        TEST(a_wrong_wall_clock_moves_no_report),
        TEST(an_orphan_shows_when_a_leader_listed_it),
        TEST(a_hint_of_what_was_resolved_is_answered),
        TEST(names_beyond_the_limit_are_refused_and_the_peer_lives),
        TEST(a_resolved_report_makes_way_for_an_open_one),
        TEST(only_who_leads_at_that_instant_hands_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
