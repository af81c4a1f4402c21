/* SPDX-License-Identifier: MIT
 * tests/unit/test_coordinator_reports.c - what becomes of work that is nobody's.
 */
#include "tests/unit/fleet.h"

/* ---- reports ---- */

static void test_coordinator_reports__a_crash_is_reported_and_resolved_by_who_lists_it(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    elect(f, a, 7);
    run(f, 1);
    coord_ms last = f->now;
    crash(b);
    run(f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x silent"), 1);
    assert_int_equal(seen(c, "ORPHAN_OPENED b/x silent"), 1);
    assert_int_equal(c->last.certainty, COORD_SUSPECTED);
    assert_int_equal(c->last.fence, 7);
    assert_int_equal(c->last.seq, 1);
    assert_true(a->last.safe_after > last + T && a->last.safe_after <= last + 2 * T);
    serve(c, "x");
    run(f, T);
    assert_int_equal(seen(a, "ORPHAN_RESOLVED b/x"), 1);
    assert_int_equal(seen(c, "ORPHAN_RESOLVED b/x"), 1);
    /* The later owner dies: its own report opens, the old one does not. */
    crash(c);
    run(f, 3 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED c/x"), 1);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x"), 1);
}

static void test_coordinator_reports__draining_work_is_offered_and_its_own_beats_resolve_nothing(
    void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    coord_ms deadline = f->now + 5 * T;
    coord_coordinator_leave(b->c, COORD_INTENT_PREEMPTION, deadline, f->now);
    run(f, 3 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x draining"), 1);
    assert_int_equal(seen(a, "RESOLVED"), 0);
    assert_int_equal(a->last.certainty, COORD_ANNOUNCED);
    assert_int_equal(a->last.safe_after, deadline + T);
    /* Cut off while it drains: it may be at work until its deadline. */
    crash(b);
    run(f, T + I);
    assert_int_equal(seen(a, "ORPHAN_UPDATED b/x silent"), 1);
    assert_int_equal(a->last.safe_after, deadline + T);
}

static void test_coordinator_reports__what_a_healthy_peer_lists_is_no_orphan(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    join(f, "c", "x");
    elect(f, a, 7);
    crash(b);
    run(f, 3 * T);
    assert_int_equal(seen(a, "SILENT b"), 1);
    assert_int_equal(seen(a, "ORPHAN"), 0);
}

static void test_coordinator_reports__our_own_listing_counts_once_it_came_back(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    crash(b);
    run(f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x"), 1);
    a->mute = true;
    serve(a, "x");
    run(f, I * 2);
    assert_int_equal(seen(a, "RESOLVED"), 0);
    a->mute = false;
    run(f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_RESOLVED b/x"), 1);
}

/* X dies and is reported; C joins; the leader dies; C leads and has never heard X. */
static void test_coordinator_reports__no_report_is_lost_over_a_late_joiner_that_leads(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *x = join(f, "x", "work");
    struct node *observer = join(f, "o", NULL);
    elect(f, a, 7);
    crash(x);
    run(f, 3 * T);
    assert_int_equal(seen(observer, "ORPHAN_OPENED x/work"), 1);
    struct node *c = join(f, "c", NULL);
    run(f, I);
    crash(a);
    run(f, T / 2);
    lead(f, c, 9);
    run(f, 6 * T);
    assert_int_equal(seen(observer, "RESOLVED"), 0);
    assert_int_equal(open_reports(c), 1);
    assert_int_equal(open_reports(observer), 1);
    assert_int_equal(observer->last.fence, 9);
}

/* The new leader missed every table; who knows the report hints. */
static void test_coordinator_reports__a_hint_brings_a_report_back(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *x = join(f, "x", "work");
    struct node *b = join(f, "b", NULL);
    elect(f, a, 7);
    crash(x);
    run(f, 3 * T);
    crash(a);
    struct node *c = join(f, "c", NULL);
    run(f, 2 * T);
    assert_int_equal(open_reports(c), 0);
    lead(f, c, 9);
    run(f, 4 * T);
    assert_int_equal(seen(c, "ORPHAN_OPENED x/work silent"), 1);
    assert_int_equal(seen(b, "RESOLVED"), 0);
    assert_int_equal(open_reports(b), 1);
}

static void test_coordinator_reports__a_leader_that_lost_its_term_is_not_heard(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", NULL);
    struct node *x = join(f, "x", "work");
    elect(f, a, 7);
    lead(f, b, 9);
    crash(x);
    run(f, 3 * T);
    assert_true(refused(b, COORD_REFUSED_STALE_FENCE) > 0);
    assert_int_equal(b->last.fence, 9);
}

static void test_coordinator_reports__only_who_leads_now_assigns_and_lower_fences_are_dropped(
    void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", NULL);
    struct coord_outgoing out;
    static unsigned char copy[COORD_MESSAGE_MAX];
    const struct coord_value list = list_of("x");
    run(f, T);
    assert_int_equal(coord_coordinator_assign(a->c, "b", &list, 1, f->now, WALL, &out),
                     COORD_E_NOT_LEADER);
    coord_coordinator_lead(a->c, true, 7, f->now + 10, f->now);
    assert_int_equal(coord_coordinator_assign(a->c, "b", &list, 1, f->now, WALL, &out), COORD_OK);
    memcpy(copy, out.bytes, out.count);
    deliver(f, b, out.type, copy, out.count);
    assert_int_equal(seen(b, "ASSIGNMENT"), 1);
    f->now += 10;
    assert_int_equal(coord_coordinator_assign(a->c, "b", &list, 1, f->now, WALL, &out),
                     COORD_E_NOT_LEADER);
    struct coord_message old = {.type = COORD_MESSAGE_WORK_ASSIGNMENT, .at_us = WALL, .fence = 6};
    old.instance_id = coord_text("z", 1);
    old.target = coord_text("b", 1);
    say(f, b, &old);
    assert_int_equal(seen(b, "ASSIGNMENT"), 1);
    assert_int_equal(refused(b, COORD_REFUSED_STALE_FENCE), 1);
}

/* ---- many reports ---- */

static void test_coordinator_reports__a_long_table_comes_in_parts(void **state)
{
    const unsigned many = 700;
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *o = join(f, "o", NULL);
    elect(f, a, 7);
    run(f, 1);
    a->log[0] = o->log[0] = '\0';
    for (unsigned i = 0; i < many; i++) {
        char id[16];
        char name[16];
        snprintf(id, sizeof id, "w%u", i);
        snprintf(name, sizeof name, "s%u", i);
        say_beat(f, a, id, "i", 1, name);
        say_beat(f, o, id, "i", 1, name);
        a->log[0] = o->log[0] = '\0';
    }
    o->deaf = true; /* misses every opening */
    run(f, T + I);
    o->deaf = false;
    run(f, 3 * T);
    assert_int_equal(open_reports(a), many);
    assert_int_equal(open_reports(o), many);
    assert_int_equal(seen(o, "RESOLVED"), 0);
}

#define TEST(name) \
    cmocka_unit_test_setup_teardown(test_coordinator_reports__##name, fleet_begin, fleet_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_crash_is_reported_and_resolved_by_who_lists_it),
        TEST(draining_work_is_offered_and_its_own_beats_resolve_nothing),
        TEST(what_a_healthy_peer_lists_is_no_orphan),
        TEST(our_own_listing_counts_once_it_came_back),
        TEST(no_report_is_lost_over_a_late_joiner_that_leads),
        TEST(a_hint_brings_a_report_back),
        TEST(a_leader_that_lost_its_term_is_not_heard),
        TEST(only_who_leads_now_assigns_and_lower_fences_are_dropped),
        TEST(a_long_table_comes_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
