/* SPDX-License-Identifier: MIT
 * electors/file_take.c - taking a term: its number, its byte, its slot, and what it waits for.
 */
#include "coord/fence.h"
#include "coord/rule.h"
#include "electors/file_steps.h"

#include <string.h>

enum {
    RESTARTS = 4 /* of one request, when others are faster */
};

/* Whoever only looks on, of a worse rank, must not keep the file, or the number, of an attempt
 * that is over. */
static bool is_over(const struct coord__file_terms *terms)
{
    return terms->mine.term.number != 0 &&
           (terms->request.verb == COORD_VERB_ACQUIRE || terms->half ||
            terms->request.attempt > terms->mine.attempt);
}

/* The byte of a term that is over; the host has acknowledged that, or it never led. */
enum coord__file_step coord__file_drop(struct coord__file_terms *terms,
                                       const struct coord__file_time *at)
{
    (void)at;
    return is_over(terms) ? coord__file_go_unlock(terms, COORD__FILE_OPEN)
                          : coord__file_go(terms, COORD__FILE_OPEN);
}

enum coord__file_step coord__file_open(struct coord__file_terms *terms,
                                       const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    const enum coord_verb verb = terms->request.verb;
    if (terms->mine.term.number != 0) {
        return coord__file_go(terms, COORD__FILE_SCAN); /* another file would cost us the lock */
    }
    const enum coord__file_mode mode = verb == COORD_VERB_OBSERVE ? COORD__FILE_READ
                                       : verb == COORD_VERB_ASK   ? COORD__FILE_WRITE
                                                                  : COORD__FILE_CREATE;
    uint64_t inode = 0;
    const enum coord_err rc = io->open(io->ctx, mode, &inode, &terms->reply.error);
    if (rc == COORD_E_NOT_INITIALISED && mode != COORD__FILE_CREATE) {
        terms->reply.error = (struct coord_error){.code = COORD_OK};
        terms->reply.leader = &terms->leader;
        return coord__file_done(terms, verb == COORD_VERB_ASK ? COORD_NOBODY : COORD_FREE);
    }
    if (rc != COORD_OK) {
        return coord__file_failed(terms);
    }
    if (inode != terms->place.inode) {
        terms->place.inode = inode;
        memset(terms->sights, 0, sizeof terms->sights);
    }
    return coord__file_go(terms, COORD__FILE_SCAN);
}

/* ---------------------------------------------------------------- the number */

/* A slot belongs to its former term for as long as that one's byte is locked: a process that was
 * stopped before its write would overwrite what we put there. */
enum coord__file_step coord__file_former(struct coord__file_terms *terms,
                                         const struct coord__file_time *at)
{
    (void)at;
    terms->busy |= UINT64_C(1) << coord__file_slot_of(terms->found);
    return coord__file_next_lock(terms);
}

static enum coord__file_step ring_full(struct coord__file_terms *terms)
{
    coord_error_set(&terms->reply.error, COORD_E_RING_FULL,
                    "%d stopped former leaders still hold the election's file: continue or kill "
                    "those processes",
                    (int)COORD__FILE_SLOTS);
    return coord__file_failed(terms);
}

/* ---------------------------------------------------------------- its byte and its slot */

enum coord__file_step coord__file_lock(struct coord__file_terms *terms,
                                       const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    bool taken = false;
    if (terms->busy == UINT64_MAX) {
        return ring_full(terms);
    }
    terms->number = terms->top + 1;
    while (COORD__RULE(slot_has_no_former_writer,
                       (terms->busy >> coord__file_slot_of(terms->number) & 1) != 0)) {
        terms->number++;
    }
    if (io->lock(io->ctx, terms->number, &taken, &terms->reply.error) != COORD_OK) {
        return coord__file_failed(terms);
    }
    if (!taken) {
        return coord__file_go(terms, COORD__FILE_AGAIN);
    }
    memset(&terms->mine, 0, sizeof terms->mine);
    terms->mine.term.number = terms->number;
    terms->mine.attempt = terms->request.attempt;
    terms->half = true;
    /* We may have been stopped since we chose the number: then the ring has gone on, and our slot
     * may be another term's; or one that we took for dead has written its slot, and its fence is
     * above those that we know. Whoever passes from here on sees our byte. */
    coord__file_go_look(terms, terms->number - 1, COORD__FILE_WRITE_TEXTS, COORD__FILE_GIVE_UP);
    terms->look_locks = true;
    terms->look_fences = COORD__RULE(taker_reads_late_fences, true);
    return COORD__FILE_MORE;
}

/* Before the slot, so that a slot is never seen without them. */
enum coord__file_step coord__file_write_texts(struct coord__file_terms *terms,
                                              const struct coord__file_time *at)
{
    (void)at;
    return coord__file_write_who(terms) == COORD_OK ? coord__file_go(terms, COORD__FILE_WRITE_SLOT)
                                                    : coord__file_failed(terms);
}

enum coord__file_step coord__file_write_slot(struct coord__file_terms *terms,
                                             const struct coord__file_time *at)
{
    struct coord__file_term *term = &terms->mine.term;
    const bool init = terms->request.verb == COORD_VERB_INIT;
    term->state = init ? COORD__FILE_RESIGNED : COORD__FILE_TAKING;
    term->fence = coord_fence_next(terms->leader.last_fence, terms->request.seen, at->wall_us,
                                   terms->foreign);
    term->lease = init ? 0 : terms->request.lease;
    term->since_us = at->wall_us;
    term->valid_until = init ? 0 : coord_ms_add(terms->request.sent, terms->request.lease);
    term->debt_until = init ? 0 : terms->debt_until;
    term->place = terms->place;
    memcpy(term->owner, terms->config.owner, COORD_OWNER_BYTES);
    if (coord__file_write_mine(terms) != COORD_OK) {
        return coord__file_failed(terms);
    }
    if (init) {
        terms->reply.leader = NULL;
        terms->reply.outcome = COORD_DONE;
        return coord__file_go_unlock(terms, COORD__FILE_FINISH);
    }
    /* One that has locked a higher byte may have read our slot before it had our fence. */
    coord__file_go_look(terms, terms->number, COORD__FILE_TAKEN,
                        COORD__RULE(taker_gives_way, COORD__FILE_GIVE_UP));
    terms->look_locks = COORD__RULE(taker_sees_higher_bytes, true);
    return COORD__FILE_MORE;
}

/* ---------------------------------------------------------------- what it waits for */

/* We may have been stopped since the file was opened, and another one lies in its place: whoever
 * made that one has a fence and a debt that know nothing of us. */
enum coord__file_step coord__file_taken(struct coord__file_terms *terms,
                                        const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    const enum coord_err rc = io->check(io->ctx, &terms->reply.error);
    if (rc == COORD_E_FOREIGN_RECORD) {
        terms->reply.error.code = COORD_OK;
        return coord__file_go(terms, COORD__FILE_GIVE_UP);
    }
    if (rc != COORD_OK) {
        return coord__file_failed(terms);
    }
    return coord__file_go_earlier(terms, terms->number, COORD__FILE_GRANT);
}

enum coord__file_step coord__file_grant(struct coord__file_terms *terms,
                                        const struct coord__file_time *at)
{
    struct coord__file_term *term = &terms->mine.term;
    const coord_ms until = coord_ms_max(
        COORD__RULE(earlier_terms_are_waited_for, terms->wait_until), term->debt_until);
    terms->reply.fence = term->fence;
    terms->reply.owed = coord_ms_sub(until, at->now);
    if (terms->reply.owed == 0) {
        /* So that everybody sees a leader at once. It is true whatever becomes of us: every
         * earlier term has ended. */
        term->state = COORD__FILE_LED;
        term->debt_until = 0;
        if (coord__file_write_mine(terms) != COORD_OK) {
            return coord__file_failed(terms);
        }
    }
    terms->half = false;
    return coord__file_done(terms, COORD_GRANTED);
}

/* ---------------------------------------------------------------- others were faster */

enum coord__file_step coord__file_give_up(struct coord__file_terms *terms,
                                          const struct coord__file_time *at)
{
    (void)at;
    return coord__file_go_unlock(terms, COORD__FILE_AGAIN);
}

enum coord__file_step coord__file_again(struct coord__file_terms *terms,
                                        const struct coord__file_time *at)
{
    (void)at;
    if (++terms->restarts < RESTARTS) {
        return coord__file_go(terms, COORD__FILE_OPEN);
    }
    terms->reply.retry_in = 1;
    return coord__file_done(terms, COORD_HELD);
}
