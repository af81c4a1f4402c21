/* SPDX-License-Identifier: MIT
 * tests/unit/test_file_regress.c - what the simulator has found in the file protocol, by cause.
 */
#include "tests/support/file_world.h"
#include "tests/support/support.h"

static void begin_acquire(struct machine *m, uint64_t attempt)
{
    begin(m, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = attempt});
}

static const struct coord_reply *observe_as(struct machine *m, uint64_t attempt)
{
    begin(m, (struct coord_request){.verb = COORD_VERB_OBSERVE, .attempt = attempt});
    return finish(m);
}

/* C had read the ring before B wrote its slot, was stopped, and gave out B's fence once more. */
static void test_file_regress__a_fence_is_above_one_that_was_written_meanwhile(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin_acquire(B, 1);
    stop_before_write(B, 1); /* its byte is locked, and it has no slot */
    observe_as(C, 1);        /* sees that for the first time */
    now += LEASE;
    begin_acquire(C, 1);
    stop_before_lock(C); /* a lock without a slot for one lease: it counts as past */
    const struct coord_reply *b = finish(B);
    assert_int_equal(b->outcome, COORD_GRANTED);
    const uint64_t fence = b->fence;
    const struct coord_reply *c = finish(C);
    assert_int_equal(c->outcome, COORD_GRANTED);
    assert_true(c->fence > fence);
}

/* ... and the other way round: who wrote its slot late finds the byte that was locked after its. */
static void test_file_regress__who_writes_late_sees_a_higher_byte_without_a_slot(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin_acquire(B, 1);
    stop_before_write(B, 1);
    observe_as(C, 1);
    now += LEASE;
    begin_acquire(C, 1);
    stop_before_write(C, 1); /* it has looked, and found no slot of B's */
    const struct coord_reply *b = finish(B);
    assert_true(b->outcome != COORD_GRANTED);
    assert_int_equal(finish(C)->outcome, COORD_GRANTED);
}

/* An attempt on a file that was replaced meanwhile gave out a fence above the new file's. */
static void test_file_regress__an_attempt_on_a_replaced_file_begins_anew(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin_acquire(B, 1);
    stop_before_write(B, 1);
    disk.path = -1;
    assert_int_equal(acquire(C, 1)->owed, LEASE);
    const struct coord_reply *b = finish(B);
    assert_true(b->outcome != COORD_GRANTED || b->owed > 0);
    assert_int_equal(B->open, C->open);
}

/* Those of a worse rank only look; they kept the file and the byte of an attempt that was over. */
static void test_file_regress__a_look_lets_go_of_an_attempt_that_was_given_up(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin_acquire(B, 1);
    stop_before_write(B, 2);
    coord__file_terms_abandon(&B->terms);
    assert_int_equal(observe_as(B, 1)->outcome, COORD_FREE);
}

static void test_file_regress__a_look_lets_go_of_a_lost_term(void **state)
{
    (void)state;
    lead(A);
    const uint64_t number = A->terms.mine.term.number;
    now += LEASE;
    acquire(B, 1);
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
    const uint64_t attempt = A->terms.mine.attempt;
    observe_as(A, attempt); /* its host has not acknowledged yet */
    assert_true(byte_locked(number));
    observe_as(A, attempt + 1);
    assert_false(byte_locked(number));
}

/* Twice it was read in the middle of a write, a lease apart: a living leader counted as past. */
static void test_file_regress__a_torn_slot_that_is_torn_otherwise_is_alive(void **state)
{
    (void)state;
    lead(A);
    for (int i = 0; i < 4; i++) {
        disk.torn_reads = 1000;
        assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
        disk.torn_reads = 0;
        now += LEASE / 2;
        assert_int_equal(renew(A, true)->outcome, COORD_RENEWED);
    }
}

#define CASE(name) cmocka_unit_test_setup(name, world_setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_file_regress__a_fence_is_above_one_that_was_written_meanwhile),
        CASE(test_file_regress__who_writes_late_sees_a_higher_byte_without_a_slot),
        CASE(test_file_regress__an_attempt_on_a_replaced_file_begins_anew),
        CASE(test_file_regress__a_look_lets_go_of_an_attempt_that_was_given_up),
        CASE(test_file_regress__a_look_lets_go_of_a_lost_term),
        CASE(test_file_regress__a_torn_slot_that_is_torn_otherwise_is_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
