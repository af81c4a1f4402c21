/* SPDX-License-Identifier: MIT
 * tests/unit/test_coordinator.c - the strict rules of life, each by what would break without it.
 */
#include "tests/unit/fleet.h"

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
    config.tick = UINT64_MAX;
    assert_int_equal(coord_coordinator_new(&config, 0, &c, &error), COORD_E_BAD_ARGUMENT);
    config.tick = 0;
    config.instance_id = "";
    assert_int_equal(coord_coordinator_new(&config, 0, &c, &error), COORD_E_BAD_NAME);
}

static void test_coordinator__a_death_is_told_once_and_the_return_too(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    run(f, 2 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 1);
    b->mute = true;
    run(f, T - I - 1);
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    run(f, 4 * T);
    assert_int_equal(seen(a, "SILENT b"), 1);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 0);
    b->mute = false;
    run(f, T);
    assert_int_equal(seen(a, "RECOVERED b"), 1);
    assert_int_equal(seen(a, "SILENT"), 1);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 1);
}

static void test_coordinator__nobody_dies_while_the_bus_is_down_or_at_its_return(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", "x");
    struct node *b = join(f, "b", "y");
    struct node *c = join(f, "c", "z");
    run(f, 2 * T);
    a->mute = b->mute = c->mute = true;
    run(f, 60 * T);
    a->mute = b->mute = c->mute = false;
    run(f, 3 * T);
    assert_int_equal(seen(a, "SILENT") + seen(b, "SILENT") + seen(c, "SILENT"), 0);
}

static void test_coordinator__the_echo_comes_before_the_others_and_nobody_dies(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", NULL);
    run(f, 2 * T);
    a->mute = b->mute = true;
    run(f, 10 * T);
    a->mute = false; /* ours comes back at once, the other's a moment later */
    run(f, T / 2);
    b->mute = false;
    run(f, 2 * T);
    assert_int_equal(seen(a, "SILENT"), 0);
}

static void test_coordinator__who_slept_starts_anew(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", NULL);
    run(f, 2 * T);
    uint64_t before = coord_coordinator_counts(a->c).anew;
    f->now += 5 * T; /* all of us were stopped */
    settle(f);
    run(f, T / 2);
    assert_int_equal(seen(a, "SILENT") + seen(b, "SILENT"), 0);
    assert_true(coord_coordinator_counts(a->c).anew > before);
}

static void test_coordinator__an_observer_that_wakes_at_its_deadline_has_not_slept(void **state)
{
    struct fleet *f = *state;
    struct node *o = observe(f, config_of("o", 9));
    say_beat(f, o, "b", "i1", 1, NULL);
    for (int i = 0; i < 20 && coord_coordinator_deadline(o->c) != COORD_NEVER; i++) {
        f->now = coord_coordinator_deadline(o->c);
        pull(f, o);
    }
    assert_int_equal(seen(o, "SILENT b"), 1);
}

static void test_coordinator__an_observer_without_connection_judges_nobody(void **state)
{
    struct fleet *f = *state;
    struct node *o = observe(f, config_of("o", 9));
    say_beat(f, o, "b", "i1", 1, NULL);
    coord_coordinator_connected(o->c, false, f->now);
    f->now += 10 * T;
    pull(f, o);
    coord_coordinator_connected(o->c, true, f->now);
    f->now += T / 4;
    pull(f, o);
    assert_int_equal(seen(o, "SILENT"), 0);
}

static void test_coordinator__a_replay_revives_nobody(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    run(f, T);
    for (uint64_t seq = 1; seq <= 12; seq++) {
        say_beat(f, a, "b", "i1", seq, NULL);
        run(f, I);
    }
    run(f, 2 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_SILENT);
    say_beat(f, a, "b", "i1", 3, NULL);
    assert_int_equal(status_of(a, "b"), COORD_PEER_SILENT);
    assert_int_equal(refused(a, COORD_REFUSED_OLD_SEQ), 1);
}

static void test_coordinator__a_clock_that_is_set_back_kills_no_seed_peer(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    run(f, T);
    for (int64_t i = 0; i < 40; i++) {
        struct coord_message message = beat("b", NULL, 0);
        /* An hour back in the middle. */
        message.at_us = WALL + i * I * 1000 - (i >= 20 ? INT64_C(3600000000) : 0);
        say(f, a, &message);
        run(f, I);
    }
    assert_int_equal(seen(a, "SILENT"), 0);
    struct coord_message copy = beat("b", NULL, 0);
    copy.at_us = WALL + 39 * I * 1000 - INT64_C(3600000000);
    say(f, a, &copy);
    assert_int_equal(refused(a, COORD_REFUSED_OLD_TIME), 1);
}

/* ---- incarnations ---- */

static void test_coordinator__a_late_beat_of_the_old_one_harms_no_new_one(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    run(f, T);
    say_beat(f, a, "b", "new", 1, NULL);
    say_beat(f, a, "b", "old", 77, NULL);
    for (uint64_t seq = 2; seq < 20; seq++) {
        run(f, I);
        say_beat(f, a, "b", "new", seq, NULL);
    }
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    assert_int_equal(seen(a, "DUPLICATE"), 0);
    assert_int_equal(seen(a, "SILENT b"), 1); /* the old one */
}

static void test_coordinator__two_that_both_go_on_are_a_duplicate(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    run(f, T);
    for (uint64_t seq = 1; seq < 20; seq++) {
        say_beat(f, a, "b", "one", seq, NULL);
        say_beat(f, a, "b", "two", seq, NULL);
        run(f, I);
    }
    assert_int_equal(seen(a, "DUPLICATE_IDENTITY b"), 1);
}

/* Whichever of the two is heard first. */
static void test_coordinator__a_duplicate_of_oneself_is_told_as_well(void **state)
{
    struct fleet *f = *state;
    struct node *early = join(f, "a", NULL);
    run(f, I / 2);
    struct node *late = join(f, "b", NULL);
    for (uint64_t seq = 1; seq < 20; seq++) {
        run(f, I / 4);
        say_beat(f, early, "a", "two", seq, NULL);
        say_beat(f, late, "b", "two", seq, NULL);
        run(f, I - I / 4);
    }
    assert_int_equal(seen(early, "DUPLICATE_IDENTITY a"), 1);
    assert_int_equal(seen(late, "DUPLICATE_IDENTITY b"), 1);
}

/* ---- leaving ---- */

static void test_coordinator__leaving_is_in_each_beat_and_a_beat_without_withdraws(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    run(f, 2 * T);
    coord_coordinator_leave(b->c, COORD_INTENT_PREEMPTION, f->now + 4 * T, f->now);
    run(f, T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_LEAVING);
    assert_int_equal(seen(a, "LEAVING b"), 1);
    coord_coordinator_withdraw(b->c, f->now);
    run(f, T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_HEALTHY);
    assert_int_equal(seen(a, "WITHDREW b"), 1);
}

static void test_coordinator__past_its_deadline_it_is_overrun_and_then_silent(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    run(f, 2 * T);
    coord_coordinator_leave(b->c, COORD_INTENT_GRACEFUL, f->now + T, f->now);
    run(f, 3 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_OVERRUN);
    assert_int_equal(seen(a, "OVERRUN b"), 1);
    crash(b);
    run(f, 2 * T);
    assert_int_equal(status_of(a, "b"), COORD_PEER_SILENT);
}

static void test_coordinator__finished_is_the_last_word(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    elect(f, a, 7);
    coord_coordinator_leave(b->c, COORD_INTENT_GRACEFUL, f->now + 60 * T, f->now);
    run(f, T);
    coord_coordinator_finish(b->c, f->now);
    run(f, T);
    assert_true(coord_coordinator_finished(b->c));
    assert_int_equal(status_of(a, "b"), COORD_PEER_FINISHED);
    assert_int_equal(seen(a, "ORPHAN_UPDATED b/x finished"), 1);
    assert_true(a->last.safe_after <= f->now);
    say_beat(f, a, "b", "64646464646464646464646464646464", 1000, NULL);
    assert_int_equal(refused(a, COORD_REFUSED_AFTER_FINISHED), 1);
}

static void test_coordinator__a_notice_for_us_from_somebody_else_is_an_order(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", "x");
    run(f, T);
    /* The clock of the sender is wrong by an hour: only the difference counts. */
    const struct coord_message order = order_for("a", WALL + INT64_C(3600000000), 5000);
    say(f, a, &order);
    assert_int_equal(seen(a, "ORDER"), 1);
    assert_int_equal(a->order, f->now + 5000);
    assert_false(coord_coordinator_is_leaving(a->c)); /* that is the host's to do */
}

static void test_coordinator__an_order_without_incarnation_speaks_of_the_one_heard_last(
    void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", "x");
    run(f, 2 * T);
    const struct coord_message order = order_for("b", WALL, 8000);
    say(f, a, &order);
    say(f, b, &order);
    assert_int_equal(status_of(a, "b"), COORD_PEER_LEAVING);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 1); /* no second b */
    assert_int_equal(seen(b, "ORDER"), 1);
}

static void test_coordinator__who_was_told_to_leave_before_it_was_heard_is_one_peer(void **state)
{
    struct fleet *f = *state;
    struct node *o = observe(f, config_of("o", 9));
    const struct coord_message order = order_for("b", WALL, 8000);
    say(f, o, &order);
    assert_int_equal(status_of(o, "b"), COORD_PEER_LEAVING);
    struct node *b = join(f, "b", "x"); /* started since: it has not heard of it */
    run(f, I);
    assert_int_equal(coord_coordinator_counts(o->c).peers, 1);
    assert_int_equal(status_of(o, "b"), COORD_PEER_HEALTHY);
    assert_int_equal(seen(o, "APPEARED b"), 1);
    assert_int_equal(seen(o, "WITHDREW b"), 1);
    say(f, b, &order);
    assert_int_equal(seen(b, "ORDER"), 1);
    say_beat(f, o, "b", "another", 1, NULL); /* a twin is one all the same */
    assert_int_equal(coord_coordinator_counts(o->c).peers, 2);
}

static void test_coordinator__a_peer_without_incarnation_that_was_heard_stays_itself(void **state)
{
    struct fleet *f = *state;
    struct node *o = observe(f, config_of("o", 9));
    const struct coord_message order = order_for("b", WALL - 1000, 8000);
    say(f, o, &order);
    say_beat(f, o, "b", NULL, 0, NULL); /* of the seed library */
    say_beat(f, o, "b", "another", 1, NULL);
    assert_int_equal(coord_coordinator_counts(o->c).peers, 2);
}

/* ---- limits and bad input ---- */

static void test_coordinator__limits_are_refused_by_name(void **state)
{
    struct fleet *f = *state;
    struct coord_coordinator_config config = config_of("a", 1);
    config.peers_max = 3;
    config.incarnations_max = 2;
    struct node *a = join_as(f, config);
    for (int i = 0; i < 3; i++) {
        char incarnation[] = "i0";
        incarnation[1] = (char)('0' + i);
        say_beat(f, a, "b", incarnation, 1, NULL);
    }
    assert_int_equal(refused(a, COORD_REFUSED_INCARNATIONS_FULL), 1);
    say_beat(f, a, "c", "i", 1, NULL);
    say_beat(f, a, "d", "i", 1, NULL);
    assert_int_equal(refused(a, COORD_REFUSED_PEERS_FULL), 1);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 3);
    assert_int_equal(
        coord_coordinator_handle(a->c, COORD_MESSAGE_HEARTBEAT, "\xdd\x01\0\0\0", 5, f->now),
        COORD_E_BAD_MESSAGE);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 3);
}

static void test_coordinator__the_dead_are_forgotten_after_ten_timeouts(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct node *b = join(f, "b", NULL);
    run(f, 2 * T);
    crash(b);
    run(f, 5 * T);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 1);
    run(f, 10 * T);
    assert_int_equal(coord_coordinator_counts(a->c).peers, 0);
    assert_int_equal(status_of(a, "b"), COORD_PEER_UNKNOWN);
}

static void test_coordinator__a_peer_can_be_removed(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    join(f, "b", "x");
    run(f, 2 * T);
    assert_true(coord_coordinator_remove_peer(a->c, "b", 1));
    assert_false(coord_coordinator_remove_peer(a->c, "b", 1));
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 0);
    run(f, T);
    assert_int_equal(coord_coordinator_counts(a->c).healthy, 1);
}

/* ---- registered functions ---- */

static void count_event(void *ctx, const struct coord_event *event)
{
    (void)event;
    ++*(int *)ctx;
}

static void test_coordinator__registered_functions_are_called_until_removed(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
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
    assert_int_equal(coord_coordinator_handle(a->c, COORD_MESSAGE_HEARTBEAT, bytes, count, f->now),
                     COORD_OK);
    assert_int_equal(coord_dispatcher_run(dispatcher, a->c, f->now), 1);
    assert_int_equal(calls, 1);
    coord_dispatcher_free(dispatcher);
}

static void test_coordinator__a_load_past_what_is_kept_stays_a_number(void **state)
{
    struct fleet *f = *state;
    struct node *a = join(f, "a", NULL);
    struct coord_message message = beat("b", "i", 1);
    struct coord_peer peer;
    message.load_factor = 1e300;
    say(f, a, &message);
    assert_true(coord_coordinator_find_peer(a->c, "b", 1, &peer));
    assert_true(peer.load_factor > 1e38);
    assert_true(peer.load_factor <= 1e300);
    message.seq = 2;
    message.load_factor = -1e300;
    say(f, a, &message);
    assert_true(coord_coordinator_find_peer(a->c, "b", 1, &peer));
    assert_true(peer.load_factor < -1e38);
    assert_true(peer.load_factor >= -1e300);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_coordinator__##name, fleet_begin, fleet_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_lost_beats_have_to_fit_into_the_timeout),
        TEST(a_death_is_told_once_and_the_return_too),
        TEST(nobody_dies_while_the_bus_is_down_or_at_its_return),
        TEST(the_echo_comes_before_the_others_and_nobody_dies),
        TEST(who_slept_starts_anew),
        TEST(an_observer_that_wakes_at_its_deadline_has_not_slept),
        TEST(an_observer_without_connection_judges_nobody),
        TEST(a_replay_revives_nobody),
        TEST(a_clock_that_is_set_back_kills_no_seed_peer),
        TEST(a_late_beat_of_the_old_one_harms_no_new_one),
        TEST(two_that_both_go_on_are_a_duplicate),
        TEST(a_duplicate_of_oneself_is_told_as_well),
        TEST(leaving_is_in_each_beat_and_a_beat_without_withdraws),
        TEST(past_its_deadline_it_is_overrun_and_then_silent),
        TEST(finished_is_the_last_word),
        TEST(a_notice_for_us_from_somebody_else_is_an_order),
        TEST(an_order_without_incarnation_speaks_of_the_one_heard_last),
        TEST(who_was_told_to_leave_before_it_was_heard_is_one_peer),
        TEST(a_peer_without_incarnation_that_was_heard_stays_itself),
        TEST(limits_are_refused_by_name),
        TEST(the_dead_are_forgotten_after_ten_timeouts),
        TEST(a_peer_can_be_removed),
        TEST(registered_functions_are_called_until_removed),
        TEST(a_load_past_what_is_kept_stays_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
