/* SPDX-License-Identifier: MIT
 * tests/unit/test_lease_candidate.c - the lease machine: how a candidate asks, and what it makes
 * of the answers.
 */
#include "tests/unit/lease_bench.h"

static void test_lease__an_unknown_outcome_is_asked_again_with_the_same_attempt(void **state)
{
    struct bench *b = *state;
    ask(b);
    const uint64_t attempt = b->request.attempt;
    b->now += b->lease.config.timing.attempt;
    assert_true(coord_lease_tick(&b->lease, b->now));
    expect(b, COORD_VERB_ACQUIRE);
    assert_int_equal(b->request.attempt, attempt);
    assert_int_equal(b->request.sent, b->now);
}

static void test_lease__giving_up_an_unknown_attempt_undoes_it_and_it_is_dead(void **state)
{
    struct bench *b = *state;
    ask(b);
    const uint64_t attempt = b->request.attempt;
    b->now += b->lease.config.timing.attempt;
    assert_true(coord_lease_tick(&b->lease, b->now));
    coord_lease_withdraw(&b->lease, b->now);
    assert_false(coord_lease_settled(&b->lease));
    expect(b, COORD_VERB_UNDO);
    assert_int_equal(b->request.attempt, attempt);
    answer(b, 1, (struct coord_reply){.outcome = COORD_DONE});
    assert_true(coord_lease_settled(&b->lease));
    ask(b);
    assert_true(b->request.attempt > attempt);
}

static void test_lease__a_grant_that_nobody_wants_any_more_is_undone(void **state)
{
    struct bench *b = *state;
    ask(b);
    coord_lease_withdraw(&b->lease, b->now);
    grant(b, 10, 0);
    assert_false(coord_lease_leading_at(&b->lease, b->now));
    expect(b, COORD_VERB_UNDO);
    answer(b, 1, (struct coord_reply){.outcome = COORD_DONE});
    assert_true(coord_lease_settled(&b->lease));
    assert_false(coord_lease_edge_pending(&b->lease));
}

static void test_lease__a_plain_no_needs_no_undo(void **state)
{
    struct bench *b = *state;
    ask(b);
    answer(b, 1, (struct coord_reply){.outcome = COORD_HELD, .retry_in = 500});
    coord_lease_withdraw(&b->lease, b->now);
    assert_true(coord_lease_settled(&b->lease));
}

static void test_lease__a_worse_rank_looks_first_and_claims_later(void **state)
{
    struct bench *b = *state;
    begin(b, 2, false);
    coord_lease_stand(&b->lease, b->now);
    expect(b, COORD_VERB_OBSERVE);
    answer(b, 1, (struct coord_reply){.outcome = COORD_FREE});
    const coord_ms claim = b->now + 2 * b->lease.config.timing.renew;
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b->lease, b->now, &for_ms), COORD_REASON_CLAIM_DELAY);
    do {
        advance(b);
        assert_true(coord_lease_next(&b->lease, b->now, &b->request));
        if (b->now < claim) {
            assert_int_equal(b->request.verb, COORD_VERB_OBSERVE);
            answer(b, 0, (struct coord_reply){.outcome = COORD_FREE});
        }
    } while (b->now < claim);
    assert_int_equal(b->request.verb, COORD_VERB_ACQUIRE);

    begin(b, 2, false);
    coord_lease_stand(&b->lease, b->now);
    expect(b, COORD_VERB_OBSERVE);
    answer(b, 1, (struct coord_reply){.outcome = COORD_FREE, .for_us = true});
    expect(b, COORD_VERB_ACQUIRE);
}

static void test_lease__failures_are_retried_with_a_capped_growing_wait(void **state)
{
    struct bench *b = *state;
    coord_lease_stand(&b->lease, b->now);
    coord_ms longest = 0;
    for (int i = 0; i < 20; i++) {
        expect(b, COORD_VERB_ACQUIRE);
        assert_int_equal(b->request.attempt, 1);
        struct coord_reply reply = {.outcome = COORD_FAILED};
        reply.error.code = COORD_E_UNREACHABLE;
        answer(b, 0, reply);
        const coord_ms wait = coord_lease_deadline(&b->lease) - b->now;
        assert_true(wait > 0);
        assert_true(wait <= b->lease.config.timing.renew);
        longest = coord_ms_max(longest, wait);
        advance(b);
    }
    assert_true(longest > b->lease.config.timing.renew / 2);
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b->lease, b->now, &for_ms), COORD_REASON_RETRYING);
}

static void test_lease__a_reply_to_an_abandoned_request_is_ignored(void **state)
{
    struct bench *b = *state;
    ask(b);
    const uint64_t id = b->request.id;
    b->now += b->lease.config.timing.attempt;
    assert_true(coord_lease_tick(&b->lease, b->now));
    const struct coord_reply late = {.id = id, .outcome = COORD_GRANTED, .fence = 9};
    coord_lease_reply(&b->lease, &late, b->now);
    assert_false(coord_lease_leading_at(&b->lease, b->now));
}

static void test_lease__news_that_overtakes_an_answer_is_not_forgotten(void **state)
{
    struct bench *b = *state;
    ask(b);
    coord_lease_hint(&b->lease, b->now);
    answer(b, 10, (struct coord_reply){.outcome = COORD_HELD, .retry_in = L});
    b->now += 1;
    expect(b, COORD_VERB_ACQUIRE); /* not in a third of a lease */
    answer(b, 10, (struct coord_reply){.outcome = COORD_HELD, .retry_in = L});
    b->now += 1;
    expect_nothing(b);
}

static void test_lease__a_dead_attempt_is_followed_by_the_next_one(void **state)
{
    struct bench *b = *state;
    ask(b);
    answer(b, 1, (struct coord_reply){.outcome = COORD_DEAD_ATTEMPT});
    expect(b, COORD_VERB_ACQUIRE);
    assert_int_equal(b->request.attempt, 2);
}

static void test_lease__queries_are_answered_without_standing(void **state)
{
    struct bench *b = *state;
    const struct coord_request query = {.verb = COORD_VERB_ASK, .fence = 4, .reserve = 9};
    assert_int_equal(coord_lease_query(&b->lease, &query, b->now), COORD_OK);
    assert_int_equal(coord_lease_query(&b->lease, &query, b->now), COORD_E_BUSY);
    expect(b, COORD_VERB_ASK);
    assert_int_equal(b->request.fence, 4);
    assert_int_equal(b->request.reserve, 9);
    answer(b, 1, (struct coord_reply){.outcome = COORD_NOBODY});
    assert_int_equal(b->lease.query_outcome, COORD_NOBODY);
    assert_true(coord_lease_settled(&b->lease));
}

#define TEST(name) cmocka_unit_test_setup(test_lease__##name, bench_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_unknown_outcome_is_asked_again_with_the_same_attempt),
        TEST(giving_up_an_unknown_attempt_undoes_it_and_it_is_dead),
        TEST(a_grant_that_nobody_wants_any_more_is_undone),
        TEST(a_plain_no_needs_no_undo),
        TEST(a_worse_rank_looks_first_and_claims_later),
        TEST(failures_are_retried_with_a_capped_growing_wait),
        TEST(a_reply_to_an_abandoned_request_is_ignored),
        TEST(news_that_overtakes_an_answer_is_not_forgotten),
        TEST(a_dead_attempt_is_followed_by_the_next_one),
        TEST(queries_are_answered_without_standing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
