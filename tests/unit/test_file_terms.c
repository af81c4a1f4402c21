/* SPDX-License-Identifier: MIT
 * tests/unit/test_file_terms.c - the file elector's protocol over a file in memory.
 *
 * Machines can be stopped between any two calls of the file; a machine that dies loses its locks.
 */
#include "electors/file_terms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LEASE   1000
#define WALL_US UINT64_C(1800000000000000)

enum {
    FILES = 4,
    LOCKS = 160,
    MACHINES = 4
};

/* ---------------------------------------------------------------- a file in memory */

struct disk_file {
    uint8_t bytes[COORD__FILE_BYTES];
    struct {
        uint64_t number;
        const void *owner;
    } locks[LOCKS];
};

static struct {
    struct disk_file files[FILES];
    int path; /* which file lies under the path; -1: none */
    int made;
    unsigned torn_reads; /* so many reads of a slot are torn */
    unsigned touches;
    bool full;
} disk;

struct machine {
    struct coord__file_terms terms;
    int open; /* which file; -1: none */
    uint64_t ids;
    uint64_t calls;
    uint64_t writes;
    coord_ms now; /* what it believes the time to be: the last one that it read */
};

static struct machine machines[MACHINES];
static coord_ms now;

static struct disk_file *file_of(struct machine *m)
{
    m->calls++;
    assert_true(m->open >= 0);
    return &disk.files[m->open];
}

static void free_locks(const void *owner)
{
    for (int f = 0; f < FILES; f++) {
        for (int i = 0; i < LOCKS; i++) {
            if (disk.files[f].locks[i].owner == owner) {
                disk.files[f].locks[i].owner = NULL;
            }
        }
    }
}

static enum coord_err io_open(void *ctx, enum coord__file_mode mode, uint64_t *inode,
                              struct coord_error *error)
{
    struct machine *m = ctx;
    m->calls++;
    if (m->open != disk.path) {
        free_locks(m);
        m->open = disk.path;
    }
    if (disk.path < 0) {
        if (mode != COORD__FILE_CREATE) {
            return coord_error_set(error, COORD_E_NOT_INITIALISED, "none");
        }
        assert_true(disk.made < FILES);
        m->open = disk.path = disk.made++;
    }
    *inode = 100 + (uint64_t)m->open;
    return COORD_OK;
}

static enum coord_err io_check(void *ctx, struct coord_error *error)
{
    const struct machine *m = ctx;
    return m->open == disk.path ? COORD_OK
                                : coord_error_set(error, COORD_E_FOREIGN_RECORD, "replaced");
}

static enum coord_err io_lock(void *ctx, uint64_t number, bool *taken, struct coord_error *error)
{
    (void)error;
    struct disk_file *file = file_of(ctx);
    int room = -1;
    *taken = true;
    for (int i = 0; i < LOCKS; i++) {
        if (file->locks[i].owner == NULL) {
            room = i;
        } else if (file->locks[i].number == number && file->locks[i].owner != ctx) {
            *taken = false;
        }
    }
    if (*taken) {
        assert_true(room >= 0);
        file->locks[room].number = number;
        file->locks[room].owner = ctx;
    }
    return COORD_OK;
}

static enum coord_err io_locked(void *ctx, uint64_t first, uint64_t last, uint64_t *number,
                                struct coord_error *error)
{
    (void)error;
    const struct disk_file *file = file_of(ctx);
    assert_true(first <= last);
    *number = 0;
    for (int i = 0; i < LOCKS; i++) {
        const uint64_t n = file->locks[i].number;
        if (file->locks[i].owner != NULL && file->locks[i].owner != ctx && n >= first &&
            n <= last) {
            *number = n;
        }
    }
    return COORD_OK;
}

static enum coord_err io_read(void *ctx, unsigned block, unsigned count, uint8_t *bytes,
                              struct coord_error *error)
{
    (void)error;
    const struct disk_file *file = file_of(ctx);
    assert_true(block + count <= COORD__FILE_BLOCKS);
    memcpy(bytes, file->bytes + block * COORD__FILE_BLOCK, count * COORD__FILE_BLOCK);
    for (unsigned i = 0; i < count && disk.torn_reads > 0; i++) {
        if (bytes[i * COORD__FILE_BLOCK] != 0) {
            bytes[i * COORD__FILE_BLOCK + 60] ^= 0x5a;
            disk.torn_reads--;
        }
    }
    return COORD_OK;
}

static enum coord_err io_write(void *ctx, unsigned block, const uint8_t *from, size_t bytes,
                               struct coord_error *error)
{
    struct disk_file *file = file_of(ctx);
    if (disk.full) {
        return coord_error_set(error, COORD_E_NO_SPACE, "full");
    }
    memcpy(file->bytes + block * COORD__FILE_BLOCK, from, bytes);
    ((struct machine *)ctx)->writes++;
    return COORD_OK;
}

static void io_unlock(void *ctx, uint64_t number)
{
    struct disk_file *file = file_of(ctx);
    for (int i = 0; i < LOCKS; i++) {
        if (file->locks[i].number == number && file->locks[i].owner == ctx) {
            file->locks[i].owner = NULL;
        }
    }
}

static void io_touch(void *ctx)
{
    (void)ctx;
    disk.touches++;
}

/* ---------------------------------------------------------------- machines */

static void start(struct machine *m, const char *identity)
{
    memset(m, 0, sizeof *m);
    m->open = -1;
    struct coord__file_config config = {
        .io = {m, io_open, io_check, io_lock, io_locked, io_read, io_write, io_unlock, io_touch},
        .lease = LEASE,
        .identity = identity,
        .metadata = "where",
        .metadata_bytes = 5};
    memset(config.place.boot, 1, sizeof config.place.boot);
    config.place.time_namespace = 1;
    coord__file_terms_init(&m->terms, &config);
}

static int setup(void **state)
{
    static const char *const names[MACHINES] = {"a", "b", "c", "d"};
    (void)state;
    memset(&disk, 0, sizeof disk);
    disk.path = -1;
    now = 100000;
    for (int i = 0; i < MACHINES; i++) {
        start(&machines[i], names[i]);
    }
    return 0;
}

static void begin(struct machine *m, struct coord_request request)
{
    request.id = ++m->ids;
    request.sent = m->now = now;
    request.lease = LEASE;
    coord__file_terms_begin(&m->terms, &request);
}

static uint64_t wall(void)
{
    return WALL_US + now * 1000;
}

static enum coord__file_step step(struct machine *m)
{
    const uint64_t calls = m->calls;
    const enum coord__file_step step = coord__file_terms_step(&m->terms, m->now, wall());
    assert_true(m->calls <= calls + 1); /* one call a step: it can be stopped before each */
    if (step == COORD__FILE_FRESH) {
        m->now = now;
    }
    return step;
}

static const struct coord_reply *finish(struct machine *m)
{
    for (int i = 0; i < 5000; i++) {
        if (step(m) == COORD__FILE_DONE) {
            return coord__file_terms_reply(&m->terms);
        }
    }
    fail_msg("a request does not end");
    return NULL;
}

/* Run until the next step would make the n-th write from here. */
static void stop_before_write(struct machine *m, int nth)
{
    for (;;) {
        static struct machine kept;
        static struct disk_file kept_file;
        kept = *m;
        if (m->open >= 0) {
            kept_file = disk.files[m->open];
        }
        assert_int_not_equal(step(m), COORD__FILE_DONE);
        if (m->writes > kept.writes && --nth == 0) {
            disk.files[m->open] = kept_file;
            *m = kept;
            return;
        }
    }
}

static const struct coord_reply *acquire(struct machine *m, uint64_t attempt)
{
    begin(m, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = attempt});
    return finish(m);
}

static void begin_renew(struct machine *m, bool led)
{
    begin(m, (struct coord_request){.verb = COORD_VERB_RENEW,
                                    .attempt = m->terms.mine.attempt,
                                    .fence = m->terms.mine.term.fence,
                                    .led = led});
}

static const struct coord_reply *renew(struct machine *m, bool led)
{
    begin_renew(m, led);
    return finish(m);
}

static const struct coord_reply *release(struct machine *m, const char *to)
{
    begin(m, (struct coord_request){.verb = COORD_VERB_RELEASE,
                                    .attempt = m->terms.mine.attempt,
                                    .fence = m->terms.mine.term.fence,
                                    .successor = to,
                                    .reserve = LEASE / 2});
    return finish(m);
}

static const struct coord_reply *ask(struct machine *m, enum coord_verb verb)
{
    begin(m, (struct coord_request){.verb = verb});
    return finish(m);
}

/* The process dies; another one begins in its place. */
static void kill_machine(struct machine *m)
{
    const struct coord__file_place place = m->terms.place;
    const unsigned chunk = m->terms.config.chunk;
    char identity[2] = {(char)m->terms.identity[0], '\0'};
    free_locks(m);
    start(m, identity);
    m->terms.place.time_namespace = place.time_namespace;
    m->terms.config.chunk = chunk;
}

/* Put a clear record where nothing was, and let one lead. @return its fence. */
static uint64_t lead(struct machine *m)
{
    if (disk.path < 0) {
        assert_int_equal(ask(&machines[3], COORD_VERB_INIT)->outcome, COORD_DONE);
        assert_int_equal(machines[3].terms.mine.term.number, 0);
    }
    const struct coord_reply *reply = acquire(m, 1 + m->terms.mine.attempt);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, 0);
    return reply->fence;
}

#define A (&machines[0])
#define B (&machines[1])
#define C (&machines[2])

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
    assert_int_equal(reply->outcome, COORD_FAILED);
    assert_int_equal(reply->error.code, COORD_E_BUSY);
    assert_non_null(strstr(reply->error.text, "a leads"));
    /* ... also over the leader's own machine, and after its lease. */
    now += 2 * LEASE;
    assert_int_equal(ask(A, COORD_VERB_INIT)->outcome, COORD_FAILED);
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
    now += LEASE;
    acquire(B, 1);
    renew(A, true);
    uint64_t held = 0;
    assert_int_equal(io_locked(B, 1, 2, &held, NULL), COORD_OK);
    assert_int_equal(held, 2);
    assert_int_equal(acquire(A, 2)->outcome, COORD_HELD);
    assert_int_equal(io_locked(B, 1, 2, &held, NULL), COORD_OK);
    assert_int_equal(held, 0);
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

static uint8_t *slot_bytes(uint64_t number)
{
    return disk.files[disk.path].bytes +
           (COORD__FILE_SLOTS_AT + coord__file_slot_of(number)) * COORD__FILE_BLOCK;
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

/* ---------------------------------------------------------------- locks without a slot, torn slots */

static void test_file_terms__a_lock_without_a_slot_is_past_after_one_lease(void **state)
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

static void test_file_terms__one_that_was_stopped_past_64_terms_overwrites_nothing(void **state)
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
static void test_file_terms__one_that_was_stopped_before_its_first_write_overwrites_nothing(
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
static void test_file_terms__an_old_choice_of_a_number_is_not_written(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    uint64_t taken = 0;
    do {
        const struct machine copy = *B;
        const struct disk_file kept = disk.files[disk.path];
        step(B);
        taken = B->terms.mine.term.number;
        if (taken != 0) { /* that was the lock; go back before it */
            *B = copy;
            disk.files[disk.path] = kept;
        }
    } while (taken == 0);
    for (uint64_t i = 0; i < 70; i++) {
        assert_int_equal(acquire(C, i + 1)->outcome, COORD_GRANTED);
        release(C, NULL);
    }
    acquire(C, 999);
    static uint8_t before[COORD__FILE_BYTES];
    memcpy(before, disk.files[disk.path].bytes, sizeof before);
    assert_int_equal(finish(B)->outcome, COORD_HELD);
    assert_memory_equal(before, disk.files[disk.path].bytes, sizeof before);
}

/* ... and at the locks: a higher one may have no slot yet. */
static void test_file_terms__an_old_choice_sees_a_lock_above_it(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    stop_before_write(B, 1);
    begin(C, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    while (!C->terms.half) {
        static struct machine kept;
        kept = *C;
        if (step(C) == COORD__FILE_DONE) { /* B's byte has no slot */
            now += LEASE;
            begin(C, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
        } else if (C->terms.half) {
            io_unlock(C, C->terms.number);
            *C = kept;
            break;
        }
    }
    /* C is about to lock the number after B's. Another one does, and a third the next one. */
    bool taken = false;
    assert_int_equal(io_open(A, COORD__FILE_WRITE, &(uint64_t){0}, NULL), COORD_OK);
    io_lock(A, B->terms.mine.term.number + 2, &taken, NULL);
    assert_true(taken);
    const uint64_t writes = C->writes;
    assert_int_equal(finish(C)->outcome, COORD_HELD);
    assert_int_equal(C->writes, writes);
}

static void test_file_terms__64_stopped_leaders_fill_the_ring(void **state)
{
    (void)state;
    static int owners[COORD__FILE_SLOTS + 1];
    lead(A);
    release(A, NULL);
    /* As if each of 64 processes had been stopped while it led. */
    for (uint64_t i = 0; i < COORD__FILE_SLOTS; i++) {
        assert_int_equal(acquire(A, i + 5)->outcome, COORD_GRANTED);
        const uint64_t number = A->terms.mine.term.number;
        io_unlock(A, number);
        A->terms.mine.term.number = 0;
        for (int k = 0; k < LOCKS; k++) {
            if (disk.files[disk.path].locks[k].owner == NULL) {
                disk.files[disk.path].locks[k].owner = &owners[i];
                disk.files[disk.path].locks[k].number = number;
                break;
            }
        }
        now += LEASE;
    }
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_FAILED);
    assert_int_equal(reply->error.code, COORD_E_RING_FULL);
    free_locks(&owners[7]);
    assert_int_equal(acquire(B, 1)->outcome, COORD_GRANTED);
}

static void test_file_terms__a_torn_slot_is_read_again(void **state)
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

static void test_file_terms__a_damaged_slot_of_a_living_leader_is_a_lock_without_a_slot(
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

static void test_file_terms__a_damaged_slot_of_a_dead_one_owes_a_lease_and_leaps(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    slot_bytes(A->terms.mine.term.number)[60] ^= 1;
    kill_machine(A);
    now += 10;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, LEASE);
    assert_true(reply->fence > fence);
    assert_true(reply->fence >= WALL_US + (UINT64_C(1) << 32));
    /* It was written over, so it costs only once. */
    kill_machine(B);
    now += LEASE;
    assert_int_equal(acquire(C, 1)->owed, 0);
}

static void test_file_terms__an_old_damaged_slot_costs_nothing(void **state)
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

static void test_file_terms__a_removed_file_ends_the_term_and_owes_a_lease(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    now += 10;
    disk.path = -1;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, LEASE);
    assert_true(reply->fence > fence);
    reply = renew(A, true);
    assert_int_equal(reply->outcome, COORD_LOST);
    assert_int_equal(reply->error.code, COORD_E_FOREIGN_RECORD);
    /* Once the host knows, A contends for the new file. */
    assert_int_equal(acquire(A, 2)->outcome, COORD_HELD);
}

static void test_file_terms__a_copied_file_proves_nothing_but_its_fence(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    renew(A, true);
    disk.made = 2;
    memcpy(disk.files[1].bytes, disk.files[0].bytes, sizeof disk.files[0].bytes);
    disk.path = 1;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, LEASE);
    assert_true(reply->fence > fence);
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
}

static void test_file_terms__a_file_that_was_emptied_under_its_leader_is_filled_again(void **state)
{
    (void)state;
    lead(A);
    memset(disk.files[disk.path].bytes, 0, sizeof disk.files[disk.path].bytes);
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += LEASE / 3;
    assert_int_equal(renew(A, true)->outcome, COORD_RENEWED);
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_HELD);
    assert_int_equal(reply->retry_in, LEASE);
}

static void test_file_terms__an_emptied_file_of_a_stopped_leader_owes_a_lease(void **state)
{
    (void)state;
    lead(A);
    now += LEASE - 1; /* A believes for one more moment */
    memset(disk.files[disk.path].bytes, 0, sizeof disk.files[disk.path].bytes);
    assert_int_equal(acquire(B, 1)->outcome, COORD_HELD);
    now += LEASE;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, LEASE);
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
}

/* ---------------------------------------------------------------- boots and clocks */

static void test_file_terms__a_term_of_another_boot_has_ended_but_leaves_its_fence(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    kill_machine(A);
    memset(B->terms.place.boot, 2, sizeof B->terms.place.boot);
    now = 5; /* the clock began again */
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(reply->owed, 0);
    assert_true(reply->fence > fence);
    assert_true(reply->fence >= WALL_US + (UINT64_C(1) << 32));
}

static void test_file_terms__another_time_namespace_holds_while_it_moves(void **state)
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

static void test_file_terms__another_time_namespace_is_past_when_still_for_a_lease(void **state)
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

static void test_file_terms__the_longer_lease_is_waited_for(void **state)
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

static void test_file_terms__fences_rise_above_what_was_seen_elsewhere(void **state)
{
    (void)state;
    const uint64_t fence = lead(A);
    release(A, NULL);
    begin(B,
          (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1, .seen = fence + 1000});
    assert_int_equal(finish(B)->fence, fence + 1001);
}

static void test_file_terms__a_newer_format_is_refused(void **state)
{
    (void)state;
    static const uint8_t newer[16] = {'c',  'T',  'R',  'M',  9, 0, 12, 0,
                                      0x00, 0x00, 0x00, 0x00, 0, 0, 0,  0};
    lead(A);
    uint8_t *slot = slot_bytes(A->terms.mine.term.number + 1);
    memcpy(slot, newer, sizeof newer);
    /* Find the checksum of its first eight bytes. */
    uint32_t sum = 0xffffffff;
    for (size_t i = 0; i < 8; i++) {
        sum ^= newer[i];
        for (int k = 0; k < 8; k++) {
            sum = (sum >> 1) ^ (0xedb88320u & (0u - (sum & 1)));
        }
    }
    for (size_t i = 0; i < 4; i++) {
        slot[8 + i] = (uint8_t)(~sum >> (8 * i));
    }
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_FAILED);
    assert_int_equal(reply->error.code, COORD_E_NEWER_FORMAT);
    /* A leader counts it as a higher term. */
    assert_int_equal(renew(A, true)->outcome, COORD_LOST);
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
    disk.files[disk.path].bytes[COORD__FILE_ASK_AT * COORD__FILE_BLOCK + 20] ^= 1;
    const struct coord_reply *reply = renew(A, true);
    assert_int_equal(reply->outcome, COORD_RENEWED);
    assert_false(reply->asked);
}

/* ---------------------------------------------------------------- failures */

static void test_file_terms__a_failed_take_holds_nothing(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    disk.full = true;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_FAILED);
    assert_int_equal(reply->error.code, COORD_E_NO_SPACE);
    assert_int_equal(B->terms.mine.term.number, 0);
    disk.full = false;
    assert_int_equal(acquire(C, 1)->outcome, COORD_GRANTED);
}

static void test_file_terms__a_failed_resignation_still_frees_the_byte(void **state)
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

static void test_file_terms__what_an_abandoned_acquire_locked_is_freed_by_the_next(void **state)
{
    (void)state;
    lead(A);
    kill_machine(A);
    begin(B, (struct coord_request){.verb = COORD_VERB_ACQUIRE, .attempt = 1});
    stop_before_write(B, 1);
    coord__file_terms_abandon(&B->terms);
    const uint64_t first = B->terms.mine.term.number;
    const struct coord_reply *reply = acquire(B, 1);
    assert_int_equal(reply->outcome, COORD_GRANTED);
    assert_int_equal(B->terms.mine.term.number, first);
    uint64_t held = 0;
    C->open = disk.path;
    int count = 0;
    for (uint64_t n = 1; n < 20; n++) {
        io_locked(C, n, n, &held, NULL);
        count += held != 0;
    }
    assert_int_equal(count, 1);
}

static void test_file_terms__a_foreign_term_is_neither_renewed_nor_released(void **state)
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

/* ---------------------------------------------------------------- chaos */

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

struct candidate {
    struct machine *m;
    bool busy;
    enum coord_verb verb;
    coord_ms sent;
    uint64_t attempts;
    bool holds; /* a grant, leading or waiting */
    bool leads;
    bool led; /* the renewal under way says so */
    coord_ms clear_at;
    coord_ms valid; /* its own deadline, without any margin */
    coord_ms paused_until;
    uint64_t fence;
};

/* What a run has to have seen, or it proves nothing. */
static struct {
    unsigned terms;  /* that led */
    unsigned owed;   /* ... after a wait */
    unsigned passed; /* ... while a former one, stopped, had its byte still */
    unsigned lost;
} seen;

static void leads_now(struct candidate *c, uint64_t *highest)
{
    assert_true(c->fence > *highest);
    *highest = c->fence;
    c->leads = true;
    seen.terms++;
    seen.owed += c->verb == COORD_VERB_RENEW;
    seen.passed += c->m->terms.wait_until != 0;
}

static void answered(struct candidate *c, uint64_t *highest)
{
    const struct coord_reply *reply = coord__file_terms_reply(&c->m->terms);
    c->busy = false;
    if (c->verb == COORD_VERB_ACQUIRE && reply->outcome == COORD_GRANTED) {
        c->holds = true;
        c->fence = reply->fence;
        c->valid = c->sent + LEASE;
        c->clear_at = c->m->now + reply->owed;
        if (reply->owed == 0 && now < c->valid) {
            leads_now(c, highest);
        }
    } else if (c->verb == COORD_VERB_RENEW && reply->outcome == COORD_RENEWED) {
        if (now >= c->valid) {
            return; /* a yes after the end changes nothing */
        }
        c->valid = c->sent + LEASE;
        if (!c->leads && c->led && reply->owed == 0) {
            leads_now(c, highest);
        }
    } else if (reply->outcome == COORD_LOST || c->verb == COORD_VERB_RELEASE ||
               c->verb == COORD_VERB_UNDO) {
        seen.lost += reply->outcome == COORD_LOST;
        c->holds = c->leads = false;
    }
}

static void choose(struct candidate *c)
{
    struct coord_request request = {.attempt = c->attempts};
    if (c->holds && now >= c->valid) {
        c->holds = c->leads = false; /* its own clock ends it */
    }
    if (!c->holds) {
        request.verb = COORD_VERB_ACQUIRE;
        request.attempt = ++c->attempts;
    } else if (draw(12) == 0) {
        request.verb = c->leads ? COORD_VERB_RELEASE : COORD_VERB_UNDO;
        c->leads = false; /* it answers no before it resigns */
    } else {
        request.verb = COORD_VERB_RENEW;
        request.led = c->leads || now >= c->clear_at;
    }
    request.fence = c->fence;
    c->led = request.led;
    c->verb = request.verb;
    c->sent = now;
    c->busy = true;
    begin(c->m, request);
}

/* Random steps of four machines with pauses, deaths, removed and copied files. At no instant do
 * two answer yes. */
static void chaos(uint64_t seed, bool files_change)
{
    struct candidate all[MACHINES];
    uint64_t highest = 0;
    setup(NULL);
    random_state = seed;
    memset(all, 0, sizeof all);
    for (int i = 0; i < MACHINES; i++) {
        all[i].m = &machines[i];
        machines[i].terms.config.chunk = 8;
    }
    const uint64_t haste = 10 + draw(200); /* steps in a while */
    for (int i = 0; i < 12000; i++) {
        struct candidate *c = &all[draw(MACHINES)];
        if (draw(haste) == 0) {
            now += draw(LEASE / 8);
        }
        if (c->paused_until > now) {
            now += draw(8) == 0;
            continue;
        }
        if (draw(300) == 0) {
            c->paused_until = now + draw(3 * LEASE);
        } else if (draw(900) == 0) {
            const uint64_t attempts = c->attempts;
            kill_machine(c->m);
            *c = (struct candidate){.m = c->m, .attempts = attempts};
        } else if (files_change && draw(2500) == 0 && disk.path >= 0 && disk.made < FILES) {
            if (draw(2) == 0) {
                disk.path = -1;
            } else {
                memcpy(disk.files[disk.made].bytes, disk.files[disk.path].bytes, COORD__FILE_BYTES);
                disk.path = disk.made++;
            }
        } else if (!c->busy) {
            choose(c);
        } else if (step(c->m) == COORD__FILE_DONE) {
            answered(c, &highest);
        }
        int leaders = 0;
        for (int k = 0; k < MACHINES; k++) {
            leaders += all[k].holds && all[k].leads && now < all[k].valid;
        }
        if (leaders > 1) {
            fail_msg("seed %llu, step %d: %d leaders", (unsigned long long)seed, i, leaders);
        }
    }
}

static void test_file_terms__chaos_never_has_two_leaders(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        chaos(seed, false);
    }
    assert_true(seen.terms > 1000);
    assert_true(seen.owed > 50);
    assert_true(seen.passed > 100);
    assert_true(seen.lost > 50);
}

static void test_file_terms__chaos_with_changing_files_never_has_two_leaders(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        chaos(seed, true);
    }
    assert_true(seen.terms > 1000);
    assert_true(seen.owed > 50);
    assert_true(seen.lost > 50);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(test_file_terms__##name, setup)
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
        T(a_kept_place_is_free_when_its_time_is_up),
        T(one_that_gives_up_while_it_waits_leaves_the_debt),
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
        T(a_file_that_was_emptied_under_its_leader_is_filled_again),
        T(an_emptied_file_of_a_stopped_leader_owes_a_lease),
        T(a_term_of_another_boot_has_ended_but_leaves_its_fence),
        T(another_time_namespace_holds_while_it_moves),
        T(another_time_namespace_is_past_when_still_for_a_lease),
        T(the_longer_lease_is_waited_for),
        T(fences_rise_above_what_was_seen_elsewhere),
        T(a_newer_format_is_refused),
        T(who_observes_makes_no_file),
        T(a_takeover_is_observed_as_one),
        T(a_leader_observes_itself),
        T(a_hung_leader_is_none),
        T(a_request_to_step_down_reaches_its_term),
        T(a_request_to_step_down_is_void_for_others_and_later),
        T(a_damaged_request_is_ignored),
        T(a_failed_take_holds_nothing),
        T(a_failed_resignation_still_frees_the_byte),
        T(what_an_abandoned_acquire_locked_is_freed_by_the_next),
        T(a_foreign_term_is_neither_renewed_nor_released),
        T(chaos_never_has_two_leaders),
        T(chaos_with_changing_files_never_has_two_leaders),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
