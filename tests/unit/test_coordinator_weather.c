/* SPDX-License-Identifier: MIT
 * tests/unit/test_coordinator_weather.c - what the simulator of whole agents found in the
 * coordinator, each named after its cause.
 */
#include "tests/unit/fleet.h"

enum {
    A = 1 << 0, /* the nodes in the order in which they joined, to be deaf to */
    B = 1 << 1,
    D = 1 << 3
};

/* It had been resolved at the very instant of the beat, which did not count as heard since. */
static void test_coordinator_weather__one_beat_between_two_silences_hides_neither(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    b->mute = true;
    run(f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x silent"), 1);
    b->mute = false;
    run(f, I);
    assert_int_equal(seen(a, "ORPHAN_RESOLVED b/x"), 1);
    b->mute = true;
    run(f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x silent"), 2);
}

/* A follower resolved it when it heard the leader say so, which is later than the beat. */
static void test_coordinator_weather__a_follower_knows_as_well_that_it_was_the_owner(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    elect(f, a, 7);
    b->mute = true;
    run(f, 2 * T);
    b->mute = false;
    run(f, I);
    b->mute = true;
    crash(a);
    run(f, 1);
    lead(f, c, 8);
    run(f, 3 * T);
    assert_int_equal(seen(c, "ORPHAN_OPENED b/x silent"), 2);
    assert_int_equal(open_reports(c), 1);
}

/* Who does not hear it hints at one who is well, and is told so; then it dies without a word. */
static void test_coordinator_weather__a_hint_about_the_living_does_not_hide_their_death(
    void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    elect(f, a, 7);
    c->deaf_to = B;
    run(f, 3 * T);
    assert_int_equal(seen(c, "SILENT b"), 1);
    assert_int_equal(seen(a, "SILENT b"), 0);
    assert_int_equal(seen(a, "ORPHAN_RESOLVED b/x"), 1); /* the answer to the hint */
    assert_int_equal(open_reports(c), 0);
    b->mute = true;
    run(f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x silent"), 1);
    assert_int_equal(open_reports(a), 1);
}

/* It counts by local receipt, and so a survivor that was stopped took it for younger than the
 * leader's ears; nobody told it, nobody hinted at it. */
static void test_coordinator_weather__a_report_that_nobody_told_is_hinted_at_however_young(
    void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    a->deaf_to = B; /* the leader listens all the time and never hears b */
    elect(f, a, 7);
    crash(b);
    run(f, 4 * T);
    assert_int_equal(seen(c, "SILENT b"), 1);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x silent"), 1);
    assert_int_equal(open_reports(a), 1);
}

/* The leader of before told it; the next one missed that, and b. One reminder brings it back. */
static void test_coordinator_weather__what_is_absent_is_closed_after_a_reminder_only(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    struct node *d = join(f, "d", NULL);
    d->deaf_to = A | B;
    elect(f, a, 7);
    crash(b);
    run(f, 2 * T);
    assert_int_equal(seen(c, "ORPHAN_OPENED b/x silent"), 1);
    crash(a);
    lead(f, d, 8);
    run(f, 4 * T);
    assert_int_equal(open_reports(d), 1);
    assert_int_equal(seen(c, "RESOLVED"), 0);
}

/* Its event had the number of the one before, and was dropped as a copy of that. */
static void test_coordinator_weather__what_is_closed_by_its_absence_has_a_number_of_its_own(
    void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    elect(f, a, 7);
    crash(b);
    run(f, 2 * T);
    assert_int_equal(c->last.seq, 1);
    c->deaf = true; /* it misses that the leader takes the work up */
    serve(a, "x");
    run(f, I);
    assert_int_equal(seen(a, "ORPHAN_RESOLVED b/x"), 1);
    c->deaf = false;
    c->mute = true; /* and cannot remind it */
    run(f, 3 * T);
    assert_int_equal(seen(c, "ORPHAN_RESOLVED b/x"), 1);
    assert_int_equal(c->last.fence, 7);
    assert_int_equal(c->last.seq, 2);
}

/* The leader had it closed, by the word of one who heard the owner; it answered that it is
 * resolved to those who had seen the owner die since. */
static void test_coordinator_weather__a_hint_with_later_news_opens_what_was_resolved(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    elect(f, a, 7);
    a->deaf_to = B;
    run(f, 2 * T);
    assert_int_equal(open_reports(a), 1); /* b is dead for it */
    coord_coordinator_lead(a->c, false, 7, 0, f->now);
    lead(f, c, 8); /* which hears b, and says so */
    run(f, 2 * T);
    assert_int_equal(open_reports(a), 0);
    coord_coordinator_lead(c->c, false, 8, 0, f->now);
    crash(b);
    lead(f, a, 9);
    run(f, 4 * T);
    assert_int_equal(open_reports(a), 1);
}

/* Its list was read before its notice, and so for a moment somebody looked after the work. */
static void test_coordinator_weather__a_beat_that_lists_and_leaves_resolves_nothing(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    elect(f, a, 7);
    crash(b);
    run(f, 2 * T);
    assert_int_equal(seen(a, "ORPHAN_OPENED b/x silent"), 1);
    serve(c, "x");
    coord_coordinator_leave(c->c, COORD_INTENT_PREEMPTION, f->now + 5 * T, f->now);
    run(f, 2 * T);
    assert_int_equal(status_of(a, "c"), COORD_PEER_LEAVING);
    assert_int_equal(seen(a, "RESOLVED"), 0);
}

/* Likewise with a last word, where the beat that listed the work was lost. */
static void test_coordinator_weather__a_last_word_that_lists_resolves_nothing(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    elect(f, a, 7);
    crash(b);
    run(f, 2 * T);
    serve(c, "x");
    coord_coordinator_finish(c->c, f->now);
    run(f, T);
    assert_int_equal(status_of(a, "c"), COORD_PEER_FINISHED);
    assert_int_equal(seen(a, "RESOLVED"), 0);
}

/* An outage shorter than T/2 did not show in its own echo; others came back later than it did. */
static void test_coordinator_weather__who_was_cut_off_starts_anew_and_beats_at_once(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    (void)join(f, "b", NULL);
    struct node *c = join(f, "c", NULL);
    run(f, 2 * T);
    coord_ms heard = 0;
    c->mute = true;
    run(f, T - I);
    coord_coordinator_connected(a->c, false, f->now);
    assert_false(coord_coordinator_judging(a->c, f->now, &heard));
    run(f, I / 2);
    coord_coordinator_connected(a->c, true, f->now);
    assert_int_equal(coord_coordinator_deadline(a->c), f->now); /* the beat */
    run(f, T - 1);
    assert_int_equal(seen(a, "SILENT"), 0);
    run(f, I);
    assert_int_equal(seen(a, "SILENT c"), 1);
}

/* The last word of the start before came late, and counted as a second life. */
static void test_coordinator_weather__a_late_last_word_makes_no_twin(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct coord_message last = {.type = COORD_MESSAGE_FINISHED, .at_us = WALL, .seq = 3};
    last.instance_id = coord_text("b", 1);
    last.incarnation = coord_text("one", 3);
    uint64_t seq = 1;
    say_beat(f, a, "b", "one", 1, NULL);
    say_beat(f, a, "b", "two", seq, NULL);
    say_beat(f, a, "b", "one", 2, NULL);
    while (seq <= 2 * T / I) {
        run(f, I);
        say_beat(f, a, "b", "two", ++seq, NULL);
    }
    say(f, a, &last);
    assert_int_equal(seen(a, "FINISHED b"), 1);
    run(f, I);
    say_beat(f, a, "b", "two", ++seq, NULL);
    assert_int_equal(seen(a, "DUPLICATE_IDENTITY"), 0);
}

/* It listed what the leader before had said, who did not hear the owner leave. */
static void test_coordinator_weather__a_new_leader_knows_better_when_work_is_safe(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    elect(f, a, 7);
    a->deaf_to = B;
    run(f, I / 3); /* so that b beats at other times than a looks */
    const coord_ms deadline = f->now + 9 * T;
    coord_coordinator_leave(b->c, COORD_INTENT_PREEMPTION, deadline, f->now);
    struct coord_orphan orphan;
    uint32_t at = 0;
    while (seen(a, "ORPHAN_OPENED b/x") == 0) {
        run(f, 1);
    }
    assert_true(coord_coordinator_next_orphan(c->c, &at, &orphan));
    assert_true(orphan.safe_after < deadline); /* as it was told just now */
    coord_coordinator_lead(a->c, false, 7, 0, f->now);
    lead(f, c, 8);
    at = 0;
    assert_true(coord_coordinator_next_orphan(c->c, &at, &orphan));
    assert_int_equal(orphan.safe_after, deadline + T);
}

/* What a leader had said of it in another message counted as listed in the table behind it. */
static void test_coordinator_weather__only_a_table_lists(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    struct node *d = join(f, "d", NULL);
    elect(f, a, 7);
    run(f, 1); /* tables are each T from here on */
    c->deaf_to = D;
    coord_coordinator_leave(b->c, COORD_INTENT_PREEMPTION, f->now + T / 2, f->now);
    run(f, T);
    assert_int_equal(seen(c, "ORPHAN_OPENED b/x"), 1);
    serve(d, "x");
    coord_coordinator_withdraw(d->c, f->now); /* beats at once */
    run(f, I);
    assert_int_equal(seen(c, "ORPHAN_RESOLVED b/x"), 1);
    assert_int_equal(open_reports(c), 1); /* it still hears b, and not d */
    run(f, T);
    assert_int_equal(seen(a, "ORPHAN_RESOLVED b/x"), 2); /* so it has asked */
}

/* Who hinted had heard the owner less lately than the leader has. */
static void test_coordinator_weather__a_hint_makes_nothing_safe_earlier(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    struct node *c = join(f, "c", NULL);
    struct node *d = join(f, "d", "x");
    c->deaf_to = D;
    elect(f, a, 7);
    c->deaf_to = B | D;
    c->mute = true;
    run(f, 3 * I);
    const coord_ms last = f->now;
    crash(b); /* while d serves the same, so that the leader has no report of b */
    crash(d);
    run(f, T + I);
    c->mute = false;
    run(f, 3 * T);
    struct coord_orphan orphan;
    uint32_t at = 0;
    unsigned of_b = 0;
    while (coord_coordinator_next_orphan(a->c, &at, &orphan)) {
        if (orphan.instance_id[0] == 'b') {
            of_b++;
            assert_true(orphan.safe_after > last + 2 * T - I);
        }
    }
    assert_int_equal(of_b, 1);
}

/* Each beat was due one interval after the one before was really sent: late ones added up. */
static void test_coordinator_weather__being_late_does_not_add_up_over_beats(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct coord_outgoing out;
    for (unsigned i = 0; i < 50; i++) {
        f->now = START + i * I + 9;
        pull(f, a);
        assert_true(coord_coordinator_next_message(a->c, f->now, WALL, &out));
        assert_int_equal(out.type, COORD_MESSAGE_HEARTBEAT);
        assert_false(coord_coordinator_next_message(a->c, f->now, WALL, &out));
        assert_int_equal(coord_coordinator_deadline(a->c), START + (i + 1) * I);
    }
    /* What was slept through is not made up for. */
    f->now += 10 * T;
    pull(f, a);
    assert_true(coord_coordinator_next_message(a->c, f->now, WALL, &out));
    assert_false(coord_coordinator_next_message(a->c, f->now, WALL, &out));
}

#define TEST(name) \
    cmocka_unit_test_setup_teardown(test_coordinator_weather__##name, fleet_begin, fleet_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_beat_between_two_silences_hides_neither),
        TEST(a_follower_knows_as_well_that_it_was_the_owner),
        TEST(a_hint_about_the_living_does_not_hide_their_death),
        TEST(a_report_that_nobody_told_is_hinted_at_however_young),
        TEST(what_is_absent_is_closed_after_a_reminder_only),
        TEST(what_is_closed_by_its_absence_has_a_number_of_its_own),
        TEST(a_hint_with_later_news_opens_what_was_resolved),
        TEST(a_beat_that_lists_and_leaves_resolves_nothing),
        TEST(a_last_word_that_lists_resolves_nothing),
        TEST(who_was_cut_off_starts_anew_and_beats_at_once),
        TEST(a_late_last_word_makes_no_twin),
        TEST(a_new_leader_knows_better_when_work_is_safe),
        TEST(only_a_table_lists),
        TEST(a_hint_makes_nothing_safe_earlier),
        TEST(being_late_does_not_add_up_over_beats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
