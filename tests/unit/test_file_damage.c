/* SPDX-License-Identifier: MIT
 * tests/unit/test_file_damage.c - the file elector's protocol where the file shows too little.
 */
#include "tests/support/file_world.h"
#include "tests/support/support.h"

/* @return the fence, which is above the former one. */
static uint64_t expect_grant(struct machine *m, coord_ms owed, uint64_t former)
{
    const struct coord_reply *reply = acquire(m, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, owed);
    assert_true(reply->fence > former);
    return reply->fence;
}

static void expect_failure(struct machine *m, enum coord_err code)
{
    const struct coord_reply *reply = acquire(m, 1);
    assert_int_equal(reply->outcome, COORD_FAILED);
    assert_int_equal(reply->error.code, code);
}

/* ---------------------------------------------------------------- locks alone, torn slots */

static void test_file_damage__a_lock_without_a_slot_is_past_after_one_lease(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    stop_before_write(B, 1); /* it has the byte, and is stopped */
    const struct coord_reply *reply = acquire(C, 1);
    assert_int_equal(reply->outcome, COORD_HELD);
    assert_true(reply->retry_in <= LEASE / 16 + 1);
    assert_true(reply->leader->taking_over);
    now += LEASE - 1;
    assert_int_equal(acquire(C, 1)->outcome, COORD_HELD);
    now += 1;
    reply = acquire(C, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(C->terms.mine.term.number, B->terms.mine.term.number + 1);
    /* It counts as past for who waits, too; and B, which goes on, finds a higher term. */
    assert_int_equal(reply->owed, 0);
    assert_int_equal(finish(B)->outcome, COORD_HELD);
}

static void test_file_damage__one_that_was_stopped_past_64_terms_overwrites_nothing(void **state)
{
    (void)state;
    lead(A);
    renew(A, true);
    begin_renew(A, true);
    stop_before_write(A, 1); /* A is stopped before its write, with byte 2 */
    now += LEASE;
    for (uint64_t i = 0; i < 200; i++) {
        assert_int_equal(acquire(B, i + 1)->outcome, COORD_GRANTED);
        assert_int_not_equal(coord__file_slot_of(B->terms.mine.term.number),
                             coord__file_slot_of(A->terms.mine.term.number));
        release(B, NULL);
    }
    const uint64_t fence = acquire(B, 201)->fence;
    assert_int_equal(finish(A)->outcome, COORD_LOST);
    /* What A wrote is in a slot of its own, and did no harm. */
    assert_int_equal(renew(B, true)->outcome, COORD_RENEWED);
    kill_machine(A);
    kill_machine(B);
    const struct coord_reply *reply = acquire(C, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_true(reply->fence > fence);
}

/* The same for one that had the byte but no slot yet: who comes round asks for that byte. */
static void test_file_damage__one_that_was_stopped_before_its_first_write_overwrites_nothing(
    void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    stop_before_write(B, 1);
    const uint64_t number = B->terms.mine.term.number;
    acquire(C, 1);
    now += LEASE;
    for (uint64_t i = 0; i < 200; i++) {
        assert_int_equal(acquire(C, i + 2)->outcome, COORD_GRANTED);
        assert_int_not_equal(coord__file_slot_of(C->terms.mine.term.number),
                             coord__file_slot_of(number));
        release(C, NULL);
    }
    acquire(C, 999);
    assert_int_equal(finish(B)->outcome, COORD_HELD);
    assert_int_equal(renew(C, true)->outcome, COORD_RENEWED);
}

/* ... and for one that had chosen its number only: it looks at the ring once it has the byte. */
static void test_file_damage__an_old_choice_of_a_number_is_not_written(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    stop_before_lock(B);
    for (uint64_t i = 0; i < 70; i++) {
        assert_int_equal(acquire(C, i + 1)->outcome, COORD_GRANTED);
        release(C, NULL);
    }
    acquire(C, 999);
    static uint8_t before[COORD__FILE_BYTES];
    memcpy(before, file_there()->bytes, sizeof before);
    assert_int_equal(finish(B)->outcome, COORD_HELD);
    assert_memory_equal(before, file_there()->bytes, sizeof before);
}

/* ... and at the locks: a higher one may have no slot yet. */
static void test_file_damage__an_old_choice_sees_a_lock_above_it(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    stop_before_lock(B);
    /* Somebody took that number and died, somebody else the next one, and has no slot yet. */
    lock_for(&disk, B->terms.top + 2);
    const uint64_t writes = B->writes;
    assert_int_equal(finish(B)->outcome, COORD_HELD);
    assert_int_equal(B->writes, writes);
}

static void test_file_damage__64_stopped_leaders_fill_the_ring(void **state)
{
    (void)state;
    static int owners[COORD__FILE_SLOTS];
    lead(A);
    release(A, NULL);
    /* As if each of 64 processes had been stopped while it led. */
    for (uint64_t i = 0; i < COORD__FILE_SLOTS; i++) {
        assert_int_equal(acquire(A, i + 5)->outcome, COORD_GRANTED);
        const uint64_t number = A->terms.mine.term.number;
        kill_machine(A);
        lock_for(&owners[i], number);
        now += LEASE;
    }
    expect_failure(B, COORD_E_RING_FULL);
    free_locks(&owners[7]);
    assert_int_equal(acquire(B, 1)->outcome, COORD_GRANTED);
}

static void test_file_damage__a_torn_slot_is_read_again(void **state)
{
    (void)state;
    lead(A);
    disk.torn_reads = COORD__FILE_REREADS;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_HELD);
    assert_string_equal(reply->leader->identity, "a");
    assert_int_equal(reply->retry_in, LEASE);
    disk.torn_reads = COORD__FILE_REREADS;
    assert_int_equal(renew(A, true)->outcome, COORD_RENEWED);
}

static void test_file_damage__a_damaged_slot_of_a_living_leader_is_a_lock_without_a_slot(
    void **state)
{
    (void)state;
    lead(A);
    slot_bytes(A->terms.mine.term.number)[60] ^= 1;
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += LEASE / 2;
    assert_int_equal(renew(A, true)->outcome, COORD_RENEWED); /* which mends it */
    now += LEASE / 2;
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
}

static void test_file_damage__a_damaged_slot_of_a_dead_one_owes_a_lease_and_leaps(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    slot_bytes(A->terms.mine.term.number)[60] ^= 1;
    kill_machine(A);
    now += 10;
    assert_true(expect_grant(B, LEASE, fence) >= WALL_US + (UINT64_C(1) << 32));
    /* It was written over, so it costs only once. */
    kill_machine(B);
    now += LEASE;
    assert_int_equal(acquire(C, 1)->owed, 0);
}

static void test_file_damage__an_old_damaged_slot_costs_nothing(void **state)
{
    (void)state;
    lead(A);
    release(A, NULL);
    lead(A);
    release(A, NULL);
    lead(A);
    slot_bytes(A->terms.mine.term.number - 1)[60] ^= 1;
    kill_machine(A);
    assert_int_equal(acquire(B, 1)->owed, 0);
    assert_int_equal(renew(B, true)->outcome, COORD_RENEWED);
}

/* ---------------------------------------------------------------- files that change */

static void test_file_damage__a_removed_file_ends_the_term_and_owes_a_lease(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    now += 10;
    disk.path = -1;
    expect_grant(B, LEASE, fence);
    const struct coord_reply *reply = renew(A, true);
    assert_int_equal(reply->outcome, COORD_LOST);
    assert_int_equal(reply->error.code, COORD_E_FOREIGN_RECORD);
    /* Once the host knows, A contends for the new file. */
    assert_int_equal(acquire(A, 2)->outcome, COORD_HELD);
}

static void test_file_damage__a_copied_file_proves_nothing_but_its_fence(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    renew(A, true);
    disk.made = 2;
    memcpy(disk.files[1].bytes, disk.files[0].bytes, sizeof disk.files[0].bytes);
    disk.path = 1;
    expect_grant(B, LEASE, fence);
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
}

/* B is told that A holds it, and A's next renewal puts its slot right. */
static void expect_mending(void)
{
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += LEASE / 3;
    assert_int_equal(renew(A, true)->outcome, COORD_RENEWED);
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_HELD);
    assert_int_equal(reply->retry_in, LEASE);
}

static void test_file_damage__a_foreign_slot_over_a_leaders_is_mended(void **state)
{
    (void)state;
    lead(A);
    struct coord__file_term foreign = A->terms.mine.term;
    foreign.place.inode++;
    coord__file_slot_write(&foreign, slot_bytes(foreign.number));
    expect_mending();
}

static void test_file_damage__a_file_that_was_emptied_under_its_leader_is_filled_again(void **state)
{
    (void)state;
    lead(A);
    memset(file_there()->bytes, 0, sizeof file_there()->bytes);
    expect_mending();
}

static void test_file_damage__an_emptied_file_of_a_stopped_leader_owes_a_lease(void **state)
{
    (void)state;
    lead(A);
    now += LEASE - 1; /* A believes for one more moment */
    memset(file_there()->bytes, 0, sizeof file_there()->bytes);
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += LEASE;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, LEASE);
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
}

/* ---------------------------------------------------------------- boots and clocks */

static void test_file_damage__a_term_of_another_boot_has_ended_but_leaves_its_fence(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    kill_machine(A);
    memset(B->terms.place.boot, 2, sizeof B->terms.place.boot);
    now = 5; /* the clock began again */
    assert_true(expect_grant(B, 0, fence) >= WALL_US + (UINT64_C(1) << 32));
}

static void test_file_damage__another_time_namespace_holds_while_it_moves(void **state)
{
    (void)state;
    lead(A);
    B->terms.place.time_namespace = 2;
    /* By B's clock A's lease ran out long ago. */
    for (int i = 0; i < 10; i++) {
        now += LEASE / 2;
        assert_int_equal(renew(A, true)->outcome, COORD_RENEWED);
        begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
        now += 50 * LEASE;
        B->now += 50 * LEASE;
        assert_int_equal(finish(B)->outcome, COORD_HELD);
        assert_int_equal(B->terms.leader.remaining, COORD_NEVER);
        now -= 50 * LEASE;
    }
}

static void test_file_damage__another_time_namespace_is_past_when_still_for_a_lease(void **state)
{
    (void)state;
    lead(A);
    B->terms.place.time_namespace = 2;
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += LEASE - 1;
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += 1;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, 0);
    kill_machine(B);
    /* A free byte needs no clock. */
    C->terms.place.time_namespace = 3;
    assert_int_equal(acquire(C, 1)->owed, 0);
}

static void test_file_damage__the_longer_lease_is_waited_for(void **state)
{
    (void)state;
    lead(A);
    A->terms.mine.term.lease = LEASE;
    begin(A, (struct coord_request){.verb = COORD_VERB_RENEW,
                                    .attempt = A->terms.mine.attempt,
                                    .fence = A->terms.mine.term.fence,
                                    .led = true});
    A->terms.request.lease = 10 * LEASE;
    finish(A);
    B->terms.place.time_namespace = 2;
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += 10 * LEASE - 1;
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += 1;
    assert_int_equal(acquire(B, 1)->outcome, COORD_GRANTED);
}

/* ---------------------------------------------------------------- fences and formats */

static void test_file_damage__fences_rise_above_what_was_seen_elsewhere(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    release(A, NULL);
    begin(B,
          (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1, .seen = fence + 1000});
    assert_int_equal(finish(B)->fence, fence + 1001);
}

static void test_file_damage__a_newer_format_is_refused(void **state)
{
    (void)state;
    static const uint8_t newer[] = {0x63, 0x54, 0x52, 0x4d, 0x07, 0x00, 0x14, 0x00, 0xc4, 0xd9,
                                    0x28, 0x3c, 0xbc, 0x65, 0x7c, 0x65, 0x6e, 0x65, 0x77, 0x21};
    lead(A);
    memcpy(slot_bytes(A->terms.mine.term.number + 1), newer, sizeof newer);
    expect_failure(B, COORD_E_NEWER_FORMAT);
    /* A leader counts it as a higher term. */
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
}

/* ---------------------------------------------------------------- failures */

static void test_file_damage__a_failed_take_holds_nothing(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    disk.full = true;
    expect_failure(B, COORD_E_NO_SPACE);
    assert_int_equal(B->terms.mine.term.number, 0);
    disk.full = false;
    assert_int_equal(acquire(C, 1)->outcome, COORD_GRANTED);
}

static void test_file_damage__a_failed_resignation_still_frees_the_byte(void **state)
{
    (void)state;
    lead(A);
    disk.full = true;
    const struct coord_reply *reply = release(A, NULL);
    assert_int_equal(reply->outcome, COORD_DONE);
    assert_int_equal(reply->error.code, COORD_OK);
    disk.full = false;
    assert_int_equal(acquire(B, 1)->owed, 0);
}

static void test_file_damage__what_an_abandoned_acquire_locked_is_freed_by_the_next(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    stop_before_write(B, 1);
    coord__file_terms_abandon(&B->terms);
    assert_int_equal(acquire(B, 1)->outcome, COORD_GRANTED);
    unsigned locked = 0;
    for (uint64_t number = 1; number < 20; number++) {
        locked += byte_locked(number);
    }
    assert_int_equal(locked, 1);
    assert_true(byte_locked(B->terms.mine.term.number));
}

static void test_file_damage__a_foreign_term_is_neither_renewed_nor_released(void **state)
{
    (void)state;
    lead(A);
    begin(A, (struct coord_request){.verb = COORD_VERB_RENEW, .attempt = 77, .fence = 1});
    assert_int_equal(finish(A)->outcome, COORD_LOST);
    begin(A, (struct coord_request){.verb = COORD_VERB_UNDO, .attempt = 77});
    assert_int_equal(finish(A)->outcome, COORD_DONE);
    begin(A, (struct coord_request){.verb = COORD_VERB_RELEASE, .attempt = 77});
    assert_int_equal(finish(A)->outcome, COORD_DONE);
    assert_int_equal(renew(A, true)->outcome, COORD_RENEWED);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(test_file_damage__##name, world_setup)
    const struct CMUnitTest tests[] = {
        T(a_lock_without_a_slot_is_past_after_one_lease),
        T(one_that_was_stopped_past_64_terms_overwrites_nothing),
        T(one_that_was_stopped_before_its_first_write_overwrites_nothing),
        T(an_old_choice_of_a_number_is_not_written),
        T(an_old_choice_sees_a_lock_above_it),
        T(64_stopped_leaders_fill_the_ring),
        T(a_torn_slot_is_read_again),
        T(a_damaged_slot_of_a_living_leader_is_a_lock_without_a_slot),
        T(a_damaged_slot_of_a_dead_one_owes_a_lease_and_leaps),
        T(an_old_damaged_slot_costs_nothing),
        T(a_removed_file_ends_the_term_and_owes_a_lease),
        T(a_copied_file_proves_nothing_but_its_fence),
        T(a_foreign_slot_over_a_leaders_is_mended),
        T(a_file_that_was_emptied_under_its_leader_is_filled_again),
        T(an_emptied_file_of_a_stopped_leader_owes_a_lease),
        T(a_term_of_another_boot_has_ended_but_leaves_its_fence),
        T(another_time_namespace_holds_while_it_moves),
        T(another_time_namespace_is_past_when_still_for_a_lease),
        T(the_longer_lease_is_waited_for),
        T(fences_rise_above_what_was_seen_elsewhere),
        T(a_newer_format_is_refused),
        T(a_failed_take_holds_nothing),
        T(a_failed_resignation_still_frees_the_byte),
        T(what_an_abandoned_acquire_locked_is_freed_by_the_next),
        T(a_foreign_term_is_neither_renewed_nor_released),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
