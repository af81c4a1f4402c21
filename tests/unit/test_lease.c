/* SPDX-License-Identifier: MIT
 * tests/unit/test_lease.c - the lease machine, rule by rule: what a grant is worth, and how long.
 */
#include "tests/unit/lease_bench.h"

static void test_lease__a_clear_grant_leads_at_once(void **state)
{
    struct bench *b = *state;
    expect_nothing(b);
    lead(b);
    const struct coord_claim claim = coord_lease_claim(&b->lease, b->now);
    assert_true(claim.leading);
    assert_false(claim.stopping);
    assert_int_equal(claim.term, 1);
    assert_int_equal(claim.fence, 10);
}

static void test_lease__deadlines_are_anchored_at_the_sending(void **state)
{
    struct bench *b = *state;
    ask(b);
    const coord_ms sent = b->now;
    b->now += 300;
    grant(b, 10, 0);
    const coord_ms hard = coord_timing_hard(&b->lease.config.timing, sent);
    assert_true(coord_lease_leading_at(&b->lease, hard - 1));
    assert_false(coord_lease_leading_at(&b->lease, hard));
}

static void test_lease__a_process_that_slept_gets_no_before_its_loop_runs(void **state)
{
    struct bench *b = *state;
    lead(b);
    assert_false(coord_lease_leading_at(&b->lease, b->now + L));
    assert_false(coord_lease_claim(&b->lease, b->now + L).leading);
}

static void test_lease__an_owed_grant_waits_from_the_reply_and_then_renews(void **state)
{
    struct bench *b = *state;
    ask(b);
    grant(b, 10, L);
    advance(b); /* to a time that was surely read after the reply */
    const coord_ms clear = b->now + L;
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b->lease, b->now, &for_ms), COORD_REASON_TAKING_OVER);
    assert_int_equal(for_ms, L);
    expect_nothing(b);
    while (b->now < clear) {
        advance(b);
        expect(b, COORD_VERB_RENEW);
        assert_int_equal(b->request.led, b->now >= clear);
        assert_int_equal(b->request.debt, b->request.led ? 0 : L);
        assert_false(coord_lease_leading_at(&b->lease, b->now));
        if (b->request.led) {
            break;
        }
        renew(b);
        assert_false(coord_lease_leading_at(&b->lease, b->now));
    }
    renew(b);
    assert_true(coord_lease_leading_at(&b->lease, b->now));
    expect_edge(b, COORD_EDGE_STARTED);
}

static void test_lease__a_renewal_that_is_near_goes_along_with_another(void **state)
{
    struct bench *b = *state;
    assert_false(coord_lease_renew_along(&b->lease, b->now)); /* there is no term */
    lead(b);
    assert_false(coord_lease_renew_along(&b->lease, b->now)); /* its time is far off */
    expect_nothing(b);
    b->now = b->lease.term.renew_at - b->lease.config.timing.renew / 4;
    assert_true(coord_lease_renew_along(&b->lease, b->now));
    expect(b, COORD_VERB_RENEW);
    assert_false(coord_lease_renew_along(&b->lease, b->now)); /* it is on its way */
    renew(b);
}

static void test_lease__a_store_that_shortens_the_wait_is_believed(void **state)
{
    struct bench *b = *state;
    ask(b);
    grant(b, 10, L);
    coord_lease_hint(&b->lease, b->now + 1);
    advance(b);
    expect(b, COORD_VERB_RENEW);
    answer(b, 0, (struct coord_reply){.outcome = COORD_RENEWED, .owed = 0});
    assert_false(coord_lease_leading_at(&b->lease, b->now));
    expect(b, COORD_VERB_RENEW);
    assert_true(b->request.led);
    answer(b, 0, (struct coord_reply){.outcome = COORD_RENEWED, .owed = 0});
    assert_true(coord_lease_leading_at(&b->lease, b->now));
}

static void test_lease__a_grant_past_soft_is_renewed_before_it_leads(void **state)
{
    struct bench *b = *state;
    ask(b);
    b->now = coord_timing_hard(&b->lease.config.timing, b->now) - 100;
    grant(b, 10, 0);
    assert_false(coord_lease_leading_at(&b->lease, b->now));
    expect(b, COORD_VERB_RENEW);
    assert_true(b->request.led);
    renew(b);
    assert_true(coord_lease_leading_at(&b->lease, b->now));
}

static void test_lease__a_renewal_moves_the_deadline_and_a_late_yes_does_not_revive(void **state)
{
    struct bench *b = *state;
    lead(b);
    advance(b);
    expect(b, COORD_VERB_RENEW);
    const coord_ms sent = b->now;
    renew(b);
    const coord_ms hard = coord_timing_hard(&b->lease.config.timing, sent);
    assert_true(coord_lease_leading_at(&b->lease, hard - 1));
    advance(b);
    expect(b, COORD_VERB_RENEW);
    b->now = hard;
    renew(b);
    assert_false(coord_lease_leading_at(&b->lease, b->now));
    expect_edge(b, COORD_EDGE_STOPPING);
    expect_edge(b, COORD_EDGE_STOPPED);
}

static void test_lease__a_jump_of_the_servers_clock_makes_a_grant_owed(void **state)
{
    struct bench *b = *state;
    ask(b);
    answer(b, 1,
           (struct coord_reply){.outcome = COORD_HELD, .retry_in = 100, .server_us = 5000000});
    advance(b);
    expect(b, COORD_VERB_ACQUIRE);
    answer(b, 1,
           (struct coord_reply){
               .outcome = COORD_GRANTED, .fence = 10, .owed = 0, .server_us = 45000000});
    assert_false(coord_lease_leading_at(&b->lease, b->now));
    expect(b, COORD_VERB_RENEW); /* it writes the debt down at once */
    assert_false(b->request.led);
    assert_int_equal(b->request.debt, L);
}

static void test_lease__time_that_goes_back_is_no_step(void **state)
{
    struct bench *b = *state;
    lead(b);
    const coord_ms hard = b->lease.term.hard;
    COORD_IGNORE(coord_lease_tick(&b->lease, b->now - 50), "nothing is outstanding");
    assert_int_equal(b->lease.went_back, 1);
    assert_int_equal(b->lease.term.hard, hard);
    COORD_IGNORE(coord_lease_tick(&b->lease, hard), "nothing is outstanding");
    assert_false(coord_lease_leading_at(&b->lease, b->now)); /* an older time revives nothing */
}

static void test_lease__a_lost_term_stops_at_once_and_stands_again(void **state)
{
    struct bench *b = *state;
    lead(b);
    advance(b);
    expect(b, COORD_VERB_RENEW);
    answer(b, 1, (struct coord_reply){.outcome = COORD_LOST});
    assert_false(coord_lease_leading_at(&b->lease, b->now));
    expect_nothing(b);
    expect_edge(b, COORD_EDGE_STOPPED);
    expect(b, COORD_VERB_ACQUIRE);
    assert_true(b->request.attempt > 1);
    assert_int_equal(b->lease.last_end, COORD_END_LOST);
}

#define TEST(name) cmocka_unit_test_setup(test_lease__##name, bench_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_clear_grant_leads_at_once),
        TEST(deadlines_are_anchored_at_the_sending),
        TEST(a_process_that_slept_gets_no_before_its_loop_runs),
        TEST(an_owed_grant_waits_from_the_reply_and_then_renews),
        TEST(a_renewal_that_is_near_goes_along_with_another),
        TEST(a_store_that_shortens_the_wait_is_believed),
        TEST(a_grant_past_soft_is_renewed_before_it_leads),
        TEST(a_renewal_moves_the_deadline_and_a_late_yes_does_not_revive),
        TEST(a_jump_of_the_servers_clock_makes_a_grant_owed),
        TEST(time_that_goes_back_is_no_step),
        TEST(a_lost_term_stops_at_once_and_stands_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
