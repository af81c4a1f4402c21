/* SPDX-License-Identifier: MIT
 * tests/unit/test_lease_regress.c - what the simulator has found in the lease machine, by cause.
 */
#include "tests/unit/lease_bench.h"

static void tell_edges(struct bench *b)
{
    struct coord_edge edge;
    while (coord_lease_next_edge(&b->lease, &edge)) {
        coord_lease_edge_done(&b->lease, b->now);
    }
}

/* It was told COORD_OK, and stood again a moment later. */
static void test_lease__steps_down_though_it_stops_already(void **state)
{
    struct bench *b = *state;
    begin(b, 0, true);
    lead(b);
    b->now = b->lease.term.soft;
    COORD_IGNORE(coord_lease_tick(&b->lease, b->now), "no request is outstanding");
    tell_edges(b);
    assert_int_equal(coord_lease_step_down(&b->lease, "b", b->now), COORD_OK);
    coord_lease_acknowledge(&b->lease, 1, b->now);
    expect(b, COORD_VERB_RELEASE);
    assert_string_equal(b->request.successor, "b");
    answer(b, 1, (struct coord_reply){.outcome = COORD_DONE});
    tell_edges(b);
    assert_false(coord_lease_next(&b->lease, b->now, &b->request));
    b->now += L / 2;
    expect(b, COORD_VERB_ACQUIRE);
}

/* Looks until it makes an attempt. @return how long that took. */
static coord_ms look_until_attempt(struct bench *b, struct coord_reply seen)
{
    const coord_ms from = b->now;
    expect(b, COORD_VERB_OBSERVE);
    while (b->request.verb == COORD_VERB_OBSERVE && b->now - from < 10 * L) {
        answer(b, 1, seen);
        b->now = coord_lease_deadline(&b->lease);
        assert_true(coord_lease_next(&b->lease, b->now, &b->request));
    }
    assert_int_equal(b->request.verb, COORD_VERB_ACQUIRE);
    return b->now - from;
}

/* The store's clock had stepped back: those of a worse rank looked at the dead lease for ever. */
static void test_lease__of_a_worse_rank_tries_what_seems_held_for_too_long(void **state)
{
    struct bench *b = *state;
    coord_ms for_ms = 0;
    begin(b, 2, true);
    coord_lease_stand(&b->lease, b->now);
    const struct coord_reply held = {.outcome = COORD_HELD, .retry_in = 1000 * L};
    assert_in_range(look_until_attempt(b, held), 0, 1);
    answer(b, 1, held);
    assert_int_equal(coord_lease_reason(&b->lease, b->now, &for_ms), COORD_REASON_HELD);
}

/* An attempt set it right; only those after it would wait for their turn once more. */
static void test_lease__of_a_worse_rank_leads_in_time_after_a_hold_that_was_too_long(void **state)
{
    struct bench *b = *state;
    begin(b, 3, true);
    coord_lease_stand(&b->lease, b->now);
    const struct coord_timing *timing = &b->lease.config.timing;
    look_until_attempt(b, (struct coord_reply){.outcome = COORD_HELD, .retry_in = 1000 * L});
    answer(b, 1, (struct coord_reply){.outcome = COORD_HELD, .retry_in = L}); /* the store cut it */
    const coord_ms free_at = b->now + L;
    coord_ms claimed_at = 0;
    while (claimed_at == 0) {
        b->now = coord_lease_deadline(&b->lease);
        assert_true(coord_lease_next(&b->lease, b->now, &b->request));
        if (b->request.verb == COORD_VERB_ACQUIRE) {
            claimed_at = b->now;
        } else if (b->now < free_at) {
            answer(b, 1, (struct coord_reply){.outcome = COORD_HELD, .retry_in = free_at - b->now});
        } else {
            answer(b, 1, (struct coord_reply){.outcome = COORD_FREE});
        }
    }
    assert_in_range(claimed_at, free_at + 3 * timing->renew, free_at + 3 * timing->renew + L / 3);
}

static void test_lease__of_a_worse_rank_tries_what_seems_reserved_for_ever(void **state)
{
    struct bench *b = *state;
    coord_ms for_ms = 0;
    begin(b, 1, true);
    coord_lease_stand(&b->lease, b->now);
    const struct coord_reply kept = {.outcome = COORD_RESERVED, .retry_in = L / 2};
    assert_in_range(look_until_attempt(b, kept), L / 2 + b->lease.config.timing.renew, 2 * L);
    answer(b, 1, kept);
    assert_int_equal(coord_lease_reason(&b->lease, b->now, &for_ms), COORD_REASON_RESERVED);
}

/* It said RELEASED, which an earlier term had been. */
static void test_lease__that_holds_nothing_withdraws_without_a_release(void **state)
{
    struct bench *b = *state;
    begin(b, 0, true);
    lead(b);
    coord_lease_acknowledge(&b->lease, 1, b->now);
    expect(b, COORD_VERB_RELEASE);
    answer(b, 1, (struct coord_reply){.outcome = COORD_DONE});
    tell_edges(b);
    expect(b, COORD_VERB_ACQUIRE);
    answer(b, 1, (struct coord_reply){.outcome = COORD_HELD, .retry_in = L});
    coord_lease_withdraw(&b->lease, b->now);
    assert_true(coord_lease_settled(&b->lease));
    assert_int_equal(b->lease.release, COORD_RELEASE_NONE);
}

/* It may hold the lease: looking would only show a lease that has to run out. */
static void test_lease__of_a_worse_rank_asks_an_open_attempt_again(void **state)
{
    struct bench *b = *state;
    begin(b, 2, true);
    coord_lease_stand(&b->lease, b->now);
    look_until_attempt(b, (struct coord_reply){.outcome = COORD_FREE});
    for (int i = 0; i < 4; i++) {
        answer(b, 1,
               (struct coord_reply){.outcome = COORD_UNKNOWN, .error.code = COORD_E_NO_ANSWER});
        b->now = coord_lease_deadline(&b->lease);
        expect(b, COORD_VERB_ACQUIRE);
        assert_int_equal(b->request.attempt, 1);
    }
    answer(b, 1, (struct coord_reply){.outcome = COORD_HELD, .retry_in = L});
    b->now = coord_lease_deadline(&b->lease);
    expect(b, COORD_VERB_OBSERVE); /* another one was faster: after it the rank counts again */
}

/* It was stopped between reading its clock and reading the grant: the former leader renewed. */
static void test_lease__waits_from_a_time_that_was_read_after_the_grant(void **state)
{
    struct bench *b = *state;
    begin(b, 0, true);
    ask(b);
    grant(b, 7, L);
    b->now += L / 3; /* that is when it goes on */
    const coord_ms granted_by = b->now;
    while (!coord_lease_leading_at(&b->lease, b->now)) {
        assert_true(b->now < granted_by + 2 * L);
        if (coord_lease_next(&b->lease, b->now, &b->request)) {
            renew(b);
        }
        b->now = coord_ms_max(b->now, coord_lease_deadline(&b->lease));
    }
    assert_true(b->now >= granted_by + L);
}

/* It said that it is asked again, and not what anybody could do. */
static void test_lease__no_answer_is_told_with_what_to_look_at(void **state)
{
    struct bench *b = *state;
    begin(b, 0, true);
    ask(b);
    assert_true(coord_lease_tick(&b->lease, b->now + b->lease.config.timing.attempt));
    assert_int_equal(b->lease.error.code, COORD_E_NO_ANSWER);
    assert_non_null(strstr(b->lease.error.text, "see whether it is stopped"));
}

#define TEST(name) cmocka_unit_test_setup(test_lease__##name, bench_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(steps_down_though_it_stops_already),
        TEST(of_a_worse_rank_tries_what_seems_held_for_too_long),
        TEST(of_a_worse_rank_leads_in_time_after_a_hold_that_was_too_long),
        TEST(of_a_worse_rank_tries_what_seems_reserved_for_ever),
        TEST(of_a_worse_rank_asks_an_open_attempt_again),
        TEST(no_answer_is_told_with_what_to_look_at),
        TEST(waits_from_a_time_that_was_read_after_the_grant),
        TEST(that_holds_nothing_withdraws_without_a_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
