/* SPDX-License-Identifier: MIT
 * tests/unit/test_file_terms.c - the file elector's protocol: who leads, who waits, for how long.
 */
#include "tests/support/file_world.h"
#include "tests/support/support.h"

/* ---------------------------------------------------------------- no record */

static void test_file_terms__a_new_file_owes_one_lease(void **state)
{
    (void)state;
    const struct coord_reply *reply = acquire(A, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, LEASE);
    assert_true(reply->fence >= WALL_US + (UINT64_C(1) << 32));
    now += LEASE / 2;
    reply = renew(A, false);
    assert_int_equal(reply->outcome, COORD_RENEWED);
    assert_int_equal(reply->owed, LEASE / 2);
    now += LEASE / 2 - 1;
    assert_int_equal(renew(A, true)->owed, 1);
    assert_int_equal(A->terms.mine.term.state, COORD__FILE_TAKING);
    now += 1;
    assert_int_equal(renew(A, false)->owed, 0);
    assert_int_equal(A->terms.mine.term.state, COORD__FILE_TAKING);
    assert_int_equal(renew(A, true)->owed, 0);
    assert_int_equal(A->terms.mine.term.state, COORD__FILE_LED);
}

static void test_file_terms__the_debt_is_inherited_and_does_not_grow(void **state)
{
    (void)state;
    const coord_ms clear_at = now + LEASE;
    for (uint64_t i = 0; i < 8; i++) {
        struct machine *m = &machines[i % 3];
        const struct coord_reply *reply = acquire(m, i + 1);
        assert_int_equal(reply->outcome, COORD_GRANTED);
        assert_int_equal(reply->owed, clear_at - now);
        now += LEASE / 10;
        if (i % 2 == 0) {
            kill_machine(m);
        } else {
            begin(m, (struct coord_request){.verb = COORD_VERB_UNDO, .attempt = i + 1});
            assert_int_equal(finish(m)->outcome, COORD_DONE);
        }
    }
    now = clear_at;
    assert_int_equal(acquire(A, 99)->owed, 0);
}

static void test_file_terms__a_term_that_led_strikes_the_debt(void **state)
{
    (void)state;
    acquire(A, 1);
    const coord_ms debt = A->terms.mine.term.debt_until;
    assert_int_equal(debt, now + LEASE);
    now = debt;
    renew(A, true);
    assert_int_equal(A->terms.mine.term.debt_until, 0);
    kill_machine(A);
    now = debt - 1; /* as if there were a debt yet */
    assert_int_equal(acquire(B, 1)->owed, 0);
}

static void test_file_terms__a_clear_record_spares_the_wait(void **state)
{
    (void)state;
    assert_int_equal(ask(A, COORD_VERB_INIT)->outcome, COORD_DONE);
    assert_int_equal(acquire(B, 1)->owed, 0);
}

static void test_file_terms__a_clear_record_strikes_a_debt(void **state)
{
    (void)state;
    acquire(A, 1);
    kill_machine(A);
    assert_int_equal(ask(C, COORD_VERB_INIT)->outcome, COORD_DONE);
    assert_int_equal(acquire(B, 1)->owed, 0);
}

static void test_file_terms__a_clear_record_is_refused_while_somebody_leads(void **state)
{
    (void)state;
    lead(A);
    const struct coord_reply *reply = ask(B, COORD_VERB_INIT);
    assert_int_equal(reply->outcome, COORD_HELD);
    assert_string_equal(reply->leader->identity, "a");
    /* ... also over the leader's own machine, and after its lease. */
    now += 2 * LEASE;
    assert_int_equal(ask(A, COORD_VERB_INIT)->outcome, COORD_HELD);
    assert_int_equal(A->terms.mine.term.number, 2);
}

/* A leader on a file that was removed looks at its path for the last time before that. The time
 * that a new one counts its debt from must be younger, also when it was stopped on its way. */
static void test_file_terms__a_debt_is_counted_from_after_the_look(void **state)
{
    (void)state;
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    const coord_ms before = now;
    now += 5 * LEASE; /* B has read the time and is stopped */
    const struct coord_reply *reply = finish(B);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(B->terms.mine.term.debt_until, before + 6 * LEASE);
}

/* ---------------------------------------------------------------- takeover */

static void test_file_terms__a_living_leader_is_left_alone(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    now += LEASE / 4;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_HELD);
    assert_int_equal(reply->retry_in, LEASE - LEASE / 4);
    assert_non_null(reply->leader);
    assert_true(reply->leader->leading);
    assert_string_equal(reply->leader->identity, "a");
    assert_int_equal(reply->leader->fence, fence);
    assert_int_equal(reply->leader->remaining, LEASE - LEASE / 4);
    assert_int_equal(reply->leader->since_us, WALL_US + (now - LEASE / 4) * 1000);
    assert_int_equal(reply->leader->metadata_bytes, 5);
    assert_memory_equal(reply->leader->metadata, "where", 5);
}

static void test_file_terms__a_dead_leader_is_followed_at_once(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    renew(A, true);
    kill_machine(A);
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, 0);
    assert_true(reply->fence > fence);
}

static void test_file_terms__a_stopped_leader_is_followed_at_the_end_of_its_lease(void **state)
{
    (void)state;
    lead(A);
    now += LEASE - 1;
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += 1;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, 0);
    /* A goes on: its renewal looks and says no, and its byte stays locked until the host knows. */
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
}

static void test_file_terms__a_lost_term_keeps_its_byte_until_the_next_attempt(void **state)
{
    (void)state;
    lead(A);
    const uint64_t number = A->terms.mine.term.number;
    now += LEASE;
    acquire(B, 1);
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
    assert_true(byte_locked(number));
    assert_int_equal(acquire(A, 2)->outcome, COORD_HELD);
    assert_false(byte_locked(number));
}

/* The order of a renewal: write, then look. One that was stopped in between shows a lease that it
 * does not believe in; whoever takes over waits for it all the same. */
static void test_file_terms__an_earlier_term_that_was_stopped_in_a_renewal_is_waited_for(
    void **state)
{
    (void)state;
    lead(A);
    const coord_ms first = now;
    now += LEASE;
    begin_renew(A, true);
    stop_before_write(A, 1);
    /* B sees a lease that has run out, and is about to lock the next byte. */
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    stop_before_write(B, 1);
    step(A); /* A's write comes just before B's */
    const struct coord_reply *reply = finish(B);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, first + 2 * LEASE - now);
    assert_int_equal(finish(A)->outcome, COORD_LOST);
    /* Until A is gone, or its lease has passed. */
    assert_int_equal(renew(B, true)->owed, LEASE);
    assert_int_equal(acquire(A, 2)->outcome, COORD_HELD);
    assert_int_equal(renew(B, true)->owed, 0);
    assert_int_equal(B->terms.mine.term.state, COORD__FILE_LED);
}

/* ... and in the other order A sees B. */
static void test_file_terms__of_two_that_write_at_once_one_sees_the_other(void **state)
{
    (void)state;
    lead(A);
    now += LEASE;
    begin_renew(A, true);
    stop_before_write(A, 1);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    const struct coord_reply *reply = finish(B);
    assert_int_equal(reply->owed, 0);
    assert_int_equal(finish(A)->outcome, COORD_LOST);
}

static void test_file_terms__two_candidates_at_once_get_two_numbers_and_one_leads(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    begin(C, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    bool b_done = false;
    bool c_done = false;
    while (!b_done || !c_done) {
        b_done = b_done || step(B) == COORD__FILE_DONE;
        c_done = c_done || step(C) == COORD__FILE_DONE;
    }
    const bool b_leads = B->terms.reply.outcome == COORD_GRANTED && B->terms.reply.owed == 0;
    const bool c_leads = C->terms.reply.outcome == COORD_GRANTED && C->terms.reply.owed == 0;
    assert_int_equal((int)b_leads + (int)c_leads, 1);
}

/* A shows a lease that lasts, B took over from it and died; A may not be passed yet. */
static void take_over_and_die(void)
{
    lead(A);
    now += LEASE;
    begin_renew(A, true);
    stop_before_write(A, 1);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    stop_before_write(B, 1);
    step(A);
    assert_int_equal(finish(B)->owed, LEASE);
    kill_machine(B);
}

static void test_file_terms__one_takes_over_from_a_dead_waiter_but_still_waits(void **state)
{
    (void)state;
    take_over_and_die();
    now += LEASE / 4;
    const struct coord_reply *reply = acquire(C, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, LEASE - LEASE / 4);
    /* That is no debt: when A dies the wait is over. */
    kill_machine(A);
    assert_int_equal(renew(C, false)->owed, 0);
}

/* The operator's word strikes debts. It does not say that whoever holds a byte has ended. */
static void test_file_terms__a_clear_record_passes_nobody_who_holds_a_byte(void **state)
{
    (void)state;
    take_over_and_die();
    assert_int_equal(ask(B, COORD_VERB_INIT)->outcome, COORD_DONE);
    assert_int_equal(acquire(C, 1)->owed, LEASE);
}

static void test_file_terms__an_earlier_term_with_a_damaged_slot_is_past_after_one_lease(
    void **state)
{
    (void)state;
    take_over_and_die();
    slot_bytes(A->terms.mine.term.number)[60] ^= 1;
    const struct coord_reply *reply = acquire(C, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, LEASE);
    now += LEASE - 1;
    assert_int_equal(renew(C, true)->owed, 1);
    now += 1;
    assert_int_equal(renew(C, true)->owed, 0);
}

/* Once a term led, all before it had ended: their bytes cost nobody a wait again. */
static void test_file_terms__what_ended_before_a_term_that_led_is_not_waited_for_again(void **state)
{
    (void)state;
    take_over_and_die();
    now += LEASE;
    assert_int_equal(acquire(B, 2)->owed, 0);
    kill_machine(B);
    /* Whoever cannot compare its clock with A's would have to watch A for a lease. */
    C->terms.place.time_namespace = 9;
    assert_int_equal(acquire(C, 1)->owed, 0);
}

static void test_file_terms__a_resignation_is_clear_and_wakes(void **state)
{
    (void)state;
    lead(A);
    const unsigned touches = disk.touches;
    assert_int_equal(release(A, NULL)->outcome, COORD_DONE);
    assert_int_equal(disk.touches, touches + 1);
    assert_int_equal(ask(B, COORD_VERB_OBSERVE)->outcome, COORD_FREE);
    assert_int_equal(acquire(B, 1)->owed, 0);
}

static void test_file_terms__a_resignation_for_a_successor_keeps_the_place(void **state)
{
    (void)state;
    lead(A);
    release(A, "c");
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_RESERVED);
    assert_int_equal(reply->retry_in, LEASE / 2);
    reply = ask(C, COORD_VERB_OBSERVE);
    assert_int_equal(reply->outcome, COORD_FREE);
    assert_true(reply->for_us);
    assert_int_equal(acquire(C, 1)->outcome, COORD_GRANTED);
}

/* One that was killed as it wrote for whom, and before it resigned. */
static void test_file_terms__a_successor_without_a_resignation_is_none(void **state)
{
    (void)state;
    lead(A);
    begin(A, (struct coord_request){.verb = COORD_VERB_RELEASE,
                                    .attempt = A->terms.mine.attempt,
                                    .fence = A->terms.mine.term.fence,
                                    .successor = "c",
                                    .reserve = LEASE});
    stop_before_write(A, 2);
    kill_machine(A);
    const struct coord_reply *reply = ask(C, COORD_VERB_OBSERVE);
    assert_int_equal(reply->outcome, COORD_FREE);
    assert_false(reply->for_us);
    assert_int_equal(acquire(B, 1)->outcome, COORD_GRANTED);
}

static void test_file_terms__a_kept_place_is_free_when_its_time_is_up(void **state)
{
    (void)state;
    lead(A);
    release(A, "c");
    now += LEASE / 2;
    assert_int_equal(acquire(B, 1)->outcome, COORD_GRANTED);
}

static void test_file_terms__one_that_gives_up_while_it_waits_leaves_the_debt(void **state)
{
    (void)state;
    acquire(A, 1);
    /* Even if it were told to resign. */
    assert_int_equal(release(A, NULL)->outcome, COORD_DONE);
    assert_int_equal(acquire(B, 1)->owed, LEASE);
}

/* ---------------------------------------------------------------- observe, ask */

static void test_file_terms__who_observes_makes_no_file(void **state)
{
    (void)state;
    assert_int_equal(ask(A, COORD_VERB_OBSERVE)->outcome, COORD_FREE);
    assert_int_equal(ask(A, COORD_VERB_ASK)->outcome, COORD_NOBODY);
    assert_int_equal(disk.made, 0);
}

static void test_file_terms__a_takeover_is_observed_as_one(void **state)
{
    (void)state;
    acquire(A, 1);
    const struct coord_reply *reply = ask(B, COORD_VERB_OBSERVE);
    assert_int_equal(reply->outcome, COORD_HELD);
    assert_false(reply->leader->leading);
    assert_true(reply->leader->taking_over);
    assert_string_equal(reply->leader->identity, "a");
}

static void test_file_terms__a_leader_observes_itself(void **state)
{
    (void)state;
    lead(A);
    const struct coord_reply *reply = ask(A, COORD_VERB_OBSERVE);
    assert_int_equal(reply->outcome, COORD_HELD);
    assert_true(reply->leader->leading);
    assert_string_equal(reply->leader->identity, "a");
    assert_int_equal(renew(A, true)->outcome, COORD_RENEWED);
}

static void test_file_terms__a_hung_leader_is_none(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    now += LEASE;
    const struct coord_reply *reply = ask(B, COORD_VERB_OBSERVE);
    assert_int_equal(reply->outcome, COORD_FREE);
    assert_false(reply->leader->leading);
    assert_string_equal(reply->leader->identity, "");
    assert_int_equal(reply->leader->last_fence, fence);
}

static const struct coord_reply *ask_down(struct machine *m, uint64_t fence, const char *to)
{
    begin(m, (struct coord_request){
                 .verb = COORD_VERB_ASK, .fence = fence, .successor = to, .reserve = LEASE});
    return finish(m);
}

static void test_file_terms__a_request_to_step_down_reaches_its_term(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    const unsigned touches = disk.touches;
    assert_int_equal(ask_down(B, fence, "c")->outcome, COORD_DONE);
    assert_int_equal(disk.touches, touches + 1);
    const struct coord_reply *reply = renew(A, true);
    assert_int_equal(reply->outcome, COORD_RENEWED);
    assert_true(reply->asked);
    assert_string_equal(reply->asked_for, "c");
}

static void test_file_terms__a_request_to_step_down_is_void_for_others_and_later(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    assert_int_equal(ask_down(B, fence + 1, NULL)->outcome, COORD_NOBODY);
    assert_int_equal(ask_down(B, fence, NULL)->outcome, COORD_DONE);
    now += LEASE;
    assert_false(renew(A, true)->asked);
    assert_int_equal(ask_down(B, fence, NULL)->outcome, COORD_DONE);
    release(A, NULL);
    acquire(C, 1);
    assert_false(renew(C, true)->asked);
    assert_null(C->terms.reply.asked_for);
}

static void test_file_terms__a_damaged_request_is_ignored(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    ask_down(B, fence, NULL);
    file_there()->bytes[COORD__FILE_ASK_AT * COORD__FILE_BLOCK + 20] ^= 1;
    const struct coord_reply *reply = renew(A, true);
    assert_int_equal(reply->outcome, COORD_RENEWED);
    assert_false(reply->asked);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(test_file_terms__##name, world_setup)
    const struct CMUnitTest tests[] = {
        T(a_new_file_owes_one_lease),
        T(the_debt_is_inherited_and_does_not_grow),
        T(a_term_that_led_strikes_the_debt),
        T(a_clear_record_spares_the_wait),
        T(a_clear_record_strikes_a_debt),
        T(a_clear_record_is_refused_while_somebody_leads),
        T(a_debt_is_counted_from_after_the_look),
        T(a_living_leader_is_left_alone),
        T(a_dead_leader_is_followed_at_once),
        T(a_stopped_leader_is_followed_at_the_end_of_its_lease),
        T(a_lost_term_keeps_its_byte_until_the_next_attempt),
        T(an_earlier_term_that_was_stopped_in_a_renewal_is_waited_for),
        T(of_two_that_write_at_once_one_sees_the_other),
        T(two_candidates_at_once_get_two_numbers_and_one_leads),
        T(one_takes_over_from_a_dead_waiter_but_still_waits),
        T(a_clear_record_passes_nobody_who_holds_a_byte),
        T(an_earlier_term_with_a_damaged_slot_is_past_after_one_lease),
        T(what_ended_before_a_term_that_led_is_not_waited_for_again),
        T(a_resignation_is_clear_and_wakes),
        T(a_resignation_for_a_successor_keeps_the_place),
        T(a_successor_without_a_resignation_is_none),
        T(a_kept_place_is_free_when_its_time_is_up),
        T(one_that_gives_up_while_it_waits_leaves_the_debt),
        T(who_observes_makes_no_file),
        T(a_takeover_is_observed_as_one),
        T(a_leader_observes_itself),
        T(a_hung_leader_is_none),
        T(a_request_to_step_down_reaches_its_term),
        T(a_request_to_step_down_is_void_for_others_and_later),
        T(a_damaged_request_is_ignored),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
