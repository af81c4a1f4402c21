/* SPDX-License-Identifier: MIT
 * tests/unit/test_lease.c - the lease machine, rule by rule, against answers made by hand.
 */
#include "coord/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
    L = 3000,
    START = 100000
};

struct bench {
    struct coord_lease lease;
    struct coord_request request;
    coord_ms now;
};

static void begin(struct bench *b, unsigned rank, bool explicit_ack)
{
    struct coord_lease_config config = {.rank = rank, .explicit_ack = explicit_ack, .seed = 7};
    assert_int_equal(coord_timing_derive(L, 0, &config.timing, NULL), COORD_OK);
    b->now = START;
    coord_lease_init(&b->lease, &config, b->now);
}

static void expect(struct bench *b, enum coord_verb verb)
{
    assert_true(coord_lease_next(&b->lease, b->now, &b->request));
    assert_int_equal(b->request.verb, verb);
}

static void expect_nothing(struct bench *b)
{
    assert_false(coord_lease_next(&b->lease, b->now, &b->request));
}

/* Answers the last request `after` ms later. */
static void answer(struct bench *b, coord_ms after, struct coord_reply reply)
{
    b->now += after;
    reply.id = b->request.id;
    coord_lease_reply(&b->lease, &reply, b->now);
}

static void grant(struct bench *b, uint64_t fence, coord_ms owed)
{
    answer(b, 1, (struct coord_reply){.outcome = COORD_GRANTED, .fence = fence, .owed = owed});
}

static void renew(struct bench *b)
{
    answer(b, 1, (struct coord_reply){.outcome = COORD_RENEWED, .owed = COORD_NEVER});
}

/* Goes to the machine's own next deadline. */
static void advance(struct bench *b)
{
    const coord_ms at = coord_lease_deadline(&b->lease);
    assert_true(at != COORD_NEVER);
    b->now = coord_ms_max(b->now, at);
    COORD_IGNORE(coord_lease_tick(&b->lease, b->now), "what is due is looked at by the caller");
}

static void expect_edge(struct bench *b, enum coord_edge_kind kind)
{
    struct coord_edge edge;
    assert_true(coord_lease_next_edge(&b->lease, &edge));
    assert_int_equal(edge.kind, kind);
    coord_lease_edge_done(&b->lease, b->now);
}

static void lead(struct bench *b)
{
    coord_lease_stand(&b->lease, b->now);
    expect(b, COORD_VERB_ACQUIRE);
    grant(b, 10, 0);
    assert_true(coord_lease_leading_at(&b->lease, b->now));
    expect_edge(b, COORD_EDGE_STARTED);
}

static void test_lease__a_clear_grant_leads_at_once(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    expect_nothing(&b);
    lead(&b);
    const struct coord_claim claim = coord_lease_claim(&b.lease, b.now);
    assert_true(claim.leading);
    assert_false(claim.stopping);
    assert_int_equal(claim.term, 1);
    assert_int_equal(claim.fence, 10);
}

static void test_lease__deadlines_are_anchored_at_the_sending(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    const coord_ms sent = b.now;
    b.now += 300;
    grant(&b, 10, 0);
    const coord_ms hard = coord_timing_hard(&b.lease.config.timing, sent);
    assert_true(coord_lease_leading_at(&b.lease, hard - 1));
    assert_false(coord_lease_leading_at(&b.lease, hard));
}

static void test_lease__a_process_that_slept_gets_no_before_its_loop_runs(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    lead(&b);
    assert_false(coord_lease_leading_at(&b.lease, b.now + L));
    assert_false(coord_lease_claim(&b.lease, b.now + L).leading);
}

static void test_lease__an_owed_grant_waits_from_the_reply_and_then_renews(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    grant(&b, 10, L);
    const coord_ms clear = b.now + L;
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b.lease, b.now, &for_ms), COORD_REASON_TAKING_OVER);
    assert_int_equal(for_ms, L);
    while (b.now < clear) {
        advance(&b);
        expect(&b, COORD_VERB_RENEW);
        assert_int_equal(b.request.led, b.now >= clear);
        assert_int_equal(b.request.debt, b.request.led ? 0 : L);
        assert_false(coord_lease_leading_at(&b.lease, b.now));
        if (b.request.led) {
            break;
        }
        renew(&b);
        assert_false(coord_lease_leading_at(&b.lease, b.now));
    }
    renew(&b);
    assert_true(coord_lease_leading_at(&b.lease, b.now));
    expect_edge(&b, COORD_EDGE_STARTED);
}

static void test_lease__a_store_that_shortens_the_wait_is_believed(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    grant(&b, 10, L);
    coord_lease_hint(&b.lease, b.now + 1);
    advance(&b);
    expect(&b, COORD_VERB_RENEW);
    answer(&b, 0, (struct coord_reply){.outcome = COORD_RENEWED, .owed = 0});
    assert_false(coord_lease_leading_at(&b.lease, b.now));
    expect(&b, COORD_VERB_RENEW);
    assert_true(b.request.led);
    answer(&b, 0, (struct coord_reply){.outcome = COORD_RENEWED, .owed = 0});
    assert_true(coord_lease_leading_at(&b.lease, b.now));
}

static void test_lease__a_grant_past_soft_is_renewed_before_it_leads(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    b.now = coord_timing_hard(&b.lease.config.timing, b.now) - 100;
    grant(&b, 10, 0);
    assert_false(coord_lease_leading_at(&b.lease, b.now));
    expect(&b, COORD_VERB_RENEW);
    assert_true(b.request.led);
    renew(&b);
    assert_true(coord_lease_leading_at(&b.lease, b.now));
}

static void test_lease__an_unknown_outcome_is_asked_again_with_the_same_attempt(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    const uint64_t attempt = b.request.attempt;
    b.now += b.lease.config.timing.attempt;
    assert_true(coord_lease_tick(&b.lease, b.now));
    expect(&b, COORD_VERB_ACQUIRE);
    assert_int_equal(b.request.attempt, attempt);
    assert_int_equal(b.request.sent, b.now);
}

static void test_lease__giving_up_an_unknown_attempt_undoes_it_and_it_is_dead(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    const uint64_t attempt = b.request.attempt;
    b.now += b.lease.config.timing.attempt;
    assert_true(coord_lease_tick(&b.lease, b.now));
    coord_lease_withdraw(&b.lease, b.now);
    assert_false(coord_lease_settled(&b.lease));
    expect(&b, COORD_VERB_UNDO);
    assert_int_equal(b.request.attempt, attempt);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_DONE});
    assert_true(coord_lease_settled(&b.lease));
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    assert_true(b.request.attempt > attempt);
}

static void test_lease__a_grant_that_nobody_wants_any_more_is_undone(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    coord_lease_withdraw(&b.lease, b.now);
    grant(&b, 10, 0);
    assert_false(coord_lease_leading_at(&b.lease, b.now));
    expect(&b, COORD_VERB_UNDO);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_DONE});
    assert_true(coord_lease_settled(&b.lease));
    assert_false(coord_lease_edge_pending(&b.lease));
}

static void test_lease__a_plain_no_needs_no_undo(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_HELD, .retry_in = 500});
    coord_lease_withdraw(&b.lease, b.now);
    assert_true(coord_lease_settled(&b.lease));
}

static void test_lease__a_renewal_moves_the_deadline_and_a_late_yes_does_not_revive(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    lead(&b);
    advance(&b);
    expect(&b, COORD_VERB_RENEW);
    const coord_ms sent = b.now;
    renew(&b);
    const coord_ms hard = coord_timing_hard(&b.lease.config.timing, sent);
    assert_true(coord_lease_leading_at(&b.lease, hard - 1));
    advance(&b);
    expect(&b, COORD_VERB_RENEW);
    b.now = hard;
    renew(&b);
    assert_false(coord_lease_leading_at(&b.lease, b.now));
    expect_edge(&b, COORD_EDGE_STOPPING);
    expect_edge(&b, COORD_EDGE_STOPPED);
}

static void test_lease__without_renewal_it_stops_at_soft_and_has_stopped_at_hard(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, true);
    lead(&b);
    b.now = b.lease.term.soft;
    COORD_IGNORE(coord_lease_tick(&b.lease, b.now), "nothing is outstanding");
    expect_edge(&b, COORD_EDGE_STOPPING);
    assert_true(coord_lease_claim(&b.lease, b.now).stopping);
    b.now = b.lease.term.hard;
    COORD_IGNORE(coord_lease_tick(&b.lease, b.now), "nothing is outstanding");
    expect_edge(&b, COORD_EDGE_STOPPED);
    assert_true(coord_lease_overdue(&b.lease, b.now));
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b.lease, b.now, &for_ms), COORD_REASON_WAITING_FOR_HOST);
    expect_nothing(&b);
    coord_lease_acknowledge(&b.lease, 1, b.now);
    assert_false(coord_lease_overdue(&b.lease, b.now));
    expect(&b, COORD_VERB_RELEASE);
}

static void test_lease__stopping_renews_for_the_grace_and_then_no_more(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, true);
    lead(&b);
    assert_int_equal(coord_lease_step_down(&b.lease, NULL, b.now), COORD_OK);
    expect_edge(&b, COORD_EDGE_STOPPING);
    coord_lease_renew(&b.lease, b.now);
    expect(&b, COORD_VERB_RENEW);
    renew(&b);
    assert_true(coord_lease_claim(&b.lease, b.now).stopping);
    b.now += b.lease.config.timing.grace;
    coord_lease_renew(&b.lease, b.now);
    expect_nothing(&b);
}

static void test_lease__a_resignation_waits_for_the_host(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, true);
    lead(&b);
    coord_lease_withdraw(&b.lease, b.now);
    expect_edge(&b, COORD_EDGE_STOPPING);
    assert_true(coord_lease_leading_at(&b.lease, b.now));
    expect_nothing(&b);
    coord_lease_acknowledge(&b.lease, 1, b.now);
    assert_false(coord_lease_leading_at(&b.lease, b.now));
    expect_edge(&b, COORD_EDGE_STOPPED);
    expect(&b, COORD_VERB_RELEASE);
    assert_int_equal(b.request.fence, 10);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_DONE});
    assert_int_equal(b.lease.release, COORD_RELEASE_RELEASED);
    assert_true(coord_lease_settled(&b.lease));
}

static void test_lease__a_term_is_dead_once_its_resignation_was_sent(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    lead(&b);
    coord_lease_withdraw(&b.lease, b.now);
    expect_edge(&b, COORD_EDGE_STOPPING);
    expect_edge(&b, COORD_EDGE_STOPPED);
    expect(&b, COORD_VERB_RELEASE);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_UNKNOWN});
    assert_false(coord_lease_leading_at(&b.lease, b.now));
    expect(&b, COORD_VERB_RELEASE);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_UNKNOWN});
    assert_int_equal(b.lease.release, COORD_RELEASE_UNKNOWN);
    assert_true(coord_lease_settled(&b.lease));
}

static void test_lease__a_lost_term_stops_at_once_and_stands_again(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    lead(&b);
    advance(&b);
    expect(&b, COORD_VERB_RENEW);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_LOST});
    assert_false(coord_lease_leading_at(&b.lease, b.now));
    expect_nothing(&b);
    expect_edge(&b, COORD_EDGE_STOPPED);
    expect(&b, COORD_VERB_ACQUIRE);
    assert_true(b.request.attempt > 1);
    assert_int_equal(b.lease.last_end, COORD_END_LOST);
}

static void test_lease__who_stepped_down_names_its_successor_and_stands_aside(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    lead(&b);
    assert_int_equal(coord_lease_step_down(&b.lease, "other", b.now), COORD_OK);
    expect_edge(&b, COORD_EDGE_STOPPING);
    expect_edge(&b, COORD_EDGE_STOPPED);
    expect(&b, COORD_VERB_RELEASE);
    assert_string_equal(b.request.successor, "other");
    assert_int_equal(b.request.reserve, L / 2);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_DONE});
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b.lease, b.now, &for_ms), COORD_REASON_STANDING_ASIDE);
    assert_int_equal(for_ms, L / 2);
    coord_lease_hint(&b.lease, b.now);
    expect_nothing(&b);
    advance(&b);
    expect(&b, COORD_VERB_ACQUIRE);
}

static void test_lease__a_request_from_outside_steps_it_down(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    lead(&b);
    advance(&b);
    expect(&b, COORD_VERB_RENEW);
    answer(&b, 1,
           (struct coord_reply){
               .outcome = COORD_RENEWED, .owed = COORD_NEVER, .asked = true, .asked_for = "b"});
    expect_edge(&b, COORD_EDGE_STOPPING);
    assert_string_equal(b.lease.term.successor, "b");
}

static void test_lease__a_sick_host_steps_down_and_stands_again_when_well(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    lead(&b);
    coord_lease_health(&b.lease, false, b.now);
    expect_edge(&b, COORD_EDGE_STOPPING);
    expect_edge(&b, COORD_EDGE_STOPPED);
    expect(&b, COORD_VERB_RELEASE);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_DONE});
    b.now += L;
    expect_nothing(&b);
    coord_lease_health(&b.lease, true, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
}

static void test_lease__pause_ends_no_term_but_gives_up_a_wait(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    lead(&b);
    coord_lease_pause(&b.lease, true, b.now);
    assert_true(coord_lease_leading_at(&b.lease, b.now));
    assert_false(coord_lease_claim(&b.lease, b.now).stopping);

    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    grant(&b, 10, L);
    coord_lease_pause(&b.lease, true, b.now);
    expect(&b, COORD_VERB_UNDO);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_DONE});
    expect_nothing(&b);
    coord_lease_pause(&b.lease, false, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
}

static void test_lease__a_worse_rank_looks_first_and_claims_later(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 2, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_OBSERVE);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_FREE});
    const coord_ms claim = b.now + 2 * b.lease.config.timing.renew;
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b.lease, b.now, &for_ms), COORD_REASON_CLAIM_DELAY);
    do {
        advance(&b);
        assert_true(coord_lease_next(&b.lease, b.now, &b.request));
        if (b.now < claim) {
            assert_int_equal(b.request.verb, COORD_VERB_OBSERVE);
            answer(&b, 0, (struct coord_reply){.outcome = COORD_FREE});
        }
    } while (b.now < claim);
    assert_int_equal(b.request.verb, COORD_VERB_ACQUIRE);

    begin(&b, 2, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_OBSERVE);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_FREE, .for_us = true});
    expect(&b, COORD_VERB_ACQUIRE);
}

static void test_lease__a_jump_of_the_servers_clock_makes_a_grant_owed(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    answer(&b, 1,
           (struct coord_reply){.outcome = COORD_HELD, .retry_in = 100, .server_us = 5000000});
    advance(&b);
    expect(&b, COORD_VERB_ACQUIRE);
    answer(&b, 1,
           (struct coord_reply){
               .outcome = COORD_GRANTED, .fence = 10, .owed = 0, .server_us = 45000000});
    assert_false(coord_lease_leading_at(&b.lease, b.now));
    expect(&b, COORD_VERB_RENEW); /* it writes the debt down at once */
    assert_false(b.request.led);
    assert_int_equal(b.request.debt, L);
}

static void test_lease__time_that_goes_back_is_no_step(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    lead(&b);
    const coord_ms hard = b.lease.term.hard;
    COORD_IGNORE(coord_lease_tick(&b.lease, b.now - 50), "nothing is outstanding");
    assert_int_equal(b.lease.went_back, 1);
    assert_int_equal(b.lease.term.hard, hard);
    COORD_IGNORE(coord_lease_tick(&b.lease, hard), "nothing is outstanding");
    assert_false(coord_lease_leading_at(&b.lease, b.now)); /* an older time revives nothing */
}

static void test_lease__failures_are_retried_with_a_capped_growing_wait(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    coord_ms longest = 0;
    for (int i = 0; i < 20; i++) {
        expect(&b, COORD_VERB_ACQUIRE);
        assert_int_equal(b.request.attempt, 1);
        struct coord_reply reply = {.outcome = COORD_FAILED};
        reply.error.code = COORD_E_UNREACHABLE;
        answer(&b, 0, reply);
        const coord_ms wait = coord_lease_deadline(&b.lease) - b.now;
        assert_true(wait > 0);
        assert_true(wait <= b.lease.config.timing.renew);
        longest = coord_ms_max(longest, wait);
        advance(&b);
    }
    assert_true(longest > b.lease.config.timing.renew / 2);
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b.lease, b.now, &for_ms), COORD_REASON_RETRYING);
}

static void test_lease__a_reply_to_an_abandoned_request_is_ignored(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    const uint64_t id = b.request.id;
    b.now += b.lease.config.timing.attempt;
    assert_true(coord_lease_tick(&b.lease, b.now));
    const struct coord_reply late = {.id = id, .outcome = COORD_GRANTED, .fence = 9};
    coord_lease_reply(&b.lease, &late, b.now);
    assert_false(coord_lease_leading_at(&b.lease, b.now));
}

static void test_lease__news_that_overtakes_an_answer_is_not_forgotten(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    coord_lease_hint(&b.lease, b.now);
    answer(&b, 10, (struct coord_reply){.outcome = COORD_HELD, .retry_in = L});
    b.now += 1;
    expect(&b, COORD_VERB_ACQUIRE); /* not in a third of a lease */
    answer(&b, 10, (struct coord_reply){.outcome = COORD_HELD, .retry_in = L});
    b.now += 1;
    expect_nothing(&b);
}

static void test_lease__a_dead_attempt_is_followed_by_the_next_one(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    coord_lease_stand(&b.lease, b.now);
    expect(&b, COORD_VERB_ACQUIRE);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_DEAD_ATTEMPT});
    expect(&b, COORD_VERB_ACQUIRE);
    assert_int_equal(b.request.attempt, 2);
}

static void test_lease__queries_are_answered_without_standing(void **state)
{
    (void)state;
    struct bench b;
    begin(&b, 0, false);
    const struct coord_request query = {.verb = COORD_VERB_ASK, .fence = 4, .reserve = 9};
    assert_int_equal(coord_lease_query(&b.lease, &query, b.now), COORD_OK);
    assert_int_equal(coord_lease_query(&b.lease, &query, b.now), COORD_E_BUSY);
    expect(&b, COORD_VERB_ASK);
    assert_int_equal(b.request.fence, 4);
    assert_int_equal(b.request.reserve, 9);
    answer(&b, 1, (struct coord_reply){.outcome = COORD_NOBODY});
    assert_int_equal(b.lease.query_outcome, COORD_NOBODY);
    assert_true(coord_lease_settled(&b.lease));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lease__a_clear_grant_leads_at_once),
        cmocka_unit_test(test_lease__deadlines_are_anchored_at_the_sending),
        cmocka_unit_test(test_lease__a_process_that_slept_gets_no_before_its_loop_runs),
        cmocka_unit_test(test_lease__an_owed_grant_waits_from_the_reply_and_then_renews),
        cmocka_unit_test(test_lease__a_store_that_shortens_the_wait_is_believed),
        cmocka_unit_test(test_lease__a_grant_past_soft_is_renewed_before_it_leads),
        cmocka_unit_test(test_lease__an_unknown_outcome_is_asked_again_with_the_same_attempt),
        cmocka_unit_test(test_lease__giving_up_an_unknown_attempt_undoes_it_and_it_is_dead),
        cmocka_unit_test(test_lease__a_grant_that_nobody_wants_any_more_is_undone),
        cmocka_unit_test(test_lease__a_plain_no_needs_no_undo),
        cmocka_unit_test(test_lease__a_renewal_moves_the_deadline_and_a_late_yes_does_not_revive),
        cmocka_unit_test(test_lease__without_renewal_it_stops_at_soft_and_has_stopped_at_hard),
        cmocka_unit_test(test_lease__stopping_renews_for_the_grace_and_then_no_more),
        cmocka_unit_test(test_lease__a_resignation_waits_for_the_host),
        cmocka_unit_test(test_lease__a_term_is_dead_once_its_resignation_was_sent),
        cmocka_unit_test(test_lease__a_lost_term_stops_at_once_and_stands_again),
        cmocka_unit_test(test_lease__who_stepped_down_names_its_successor_and_stands_aside),
        cmocka_unit_test(test_lease__a_request_from_outside_steps_it_down),
        cmocka_unit_test(test_lease__a_sick_host_steps_down_and_stands_again_when_well),
        cmocka_unit_test(test_lease__pause_ends_no_term_but_gives_up_a_wait),
        cmocka_unit_test(test_lease__a_worse_rank_looks_first_and_claims_later),
        cmocka_unit_test(test_lease__a_jump_of_the_servers_clock_makes_a_grant_owed),
        cmocka_unit_test(test_lease__time_that_goes_back_is_no_step),
        cmocka_unit_test(test_lease__failures_are_retried_with_a_capped_growing_wait),
        cmocka_unit_test(test_lease__a_reply_to_an_abandoned_request_is_ignored),
        cmocka_unit_test(test_lease__news_that_overtakes_an_answer_is_not_forgotten),
        cmocka_unit_test(test_lease__a_dead_attempt_is_followed_by_the_next_one),
        cmocka_unit_test(test_lease__queries_are_answered_without_standing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
