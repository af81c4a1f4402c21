/* SPDX-License-Identifier: MIT
 * electors/file_judge.c - what the ring means: held, kept for somebody, or to be taken, and what
 * a new term then owes.
 */
#include "coord/rule.h"
#include "electors/file_steps.h"

#include <string.h>

enum verdict {
    FREE,     /* to be taken */
    HELD,     /* somebody leads, or takes over */
    RESERVED, /* free, but kept for another one */
    UNJUDGED  /* a fresh time is needed */
};

/* A process without a slot is about to write one: look again soon. */
enum {
    GLANCES = 16 /* in a lease */
};

static const struct coord__file_term *newest_of(const struct coord__file_terms *terms)
{
    static const struct coord__file_term none;
    return terms->newest == 0 ? &none : &terms->ring[coord__file_slot_of(terms->newest)];
}

/* The lease that a term had which we know little of: the longer of the last one and ours. */
static coord_ms longer_lease(const struct coord__file_terms *terms)
{
    return coord_ms_max(terms->config.lease, newest_of(terms)->lease);
}

/* ---------------------------------------------------------------- held or not */

static enum verdict held_until(struct coord__file_terms *terms, coord_ms until, coord_ms now)
{
    if (now >= until) {
        return FREE;
    }
    terms->reply.retry_in = until - now;
    return HELD;
}

static enum verdict by_patience(struct coord__file_terms *terms, uint64_t number, uint64_t checksum,
                                coord_ms now)
{
    const coord_ms past = coord__file_past_at(terms, number, checksum, longer_lease(terms), now);
    if (past == COORD_NEVER) {
        return UNJUDGED;
    }
    const enum verdict verdict = held_until(terms, past, now);
    if (verdict == HELD) {
        const coord_ms glance = terms->config.lease / GLANCES + 1;
        terms->reply.retry_in = coord_ms_min(terms->reply.retry_in, glance);
    }
    return verdict;
}

/* Did the newest one resign in favour of somebody, a moment ago? */
static bool is_kept(const struct coord__file_terms *terms, coord_ms now)
{
    const struct coord__file_term *newest = newest_of(terms);
    return newest->state == COORD__FILE_RESIGNED && coord__file_same_clock(terms, newest) &&
           now < newest->kept_until;
}

static enum verdict weigh(struct coord__file_terms *terms, coord_ms now)
{
    const struct coord__file_term *newest = newest_of(terms);
    if (terms->top > terms->newest) {
        if (terms->top == terms->mine.term.number) {
            return HELD;
        }
        const struct coord__file_term *slot = &terms->ring[coord__file_slot_of(terms->top)];
        return by_patience(terms, terms->top, slot->number == 0 ? slot->checksum : 0, now);
    }
    if (!coord__file_same_run(terms, newest)) {
        /* No record, or of another boot or file: it has no lock. One that is there all the same is
         * somebody's whose slot was written over. */
        return terms->held ? by_patience(terms, newest->number, newest->checksum, now) : FREE;
    }
    if (newest->state == COORD__FILE_RESIGNED) {
        if (is_kept(terms, now) && !terms->for_us) {
            terms->reply.retry_in = newest->kept_until - now;
            return RESERVED;
        }
        return FREE;
    }
    if (!terms->held) {
        return FREE; /* the kernel says that its process is gone */
    }
    if (coord__file_same_clock(terms, newest)) {
        return held_until(terms, newest->valid_until, now);
    }
    return by_patience(terms, newest->number, newest->checksum, now);
}

/* ---------------------------------------------------------------- what a new term owes */

/* The last term that says that all before it had ended: debts of earlier ones are settled. */
static uint64_t settled_up_to(const struct coord__file_terms *terms)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < COORD__FILE_SLOTS; i++) {
        const struct coord__file_term *term = &terms->ring[i];
        if (term->state != COORD__FILE_TAKING && term->number > number &&
            coord__file_same_run(terms, term)) {
            number = term->number;
        }
    }
    return number;
}

/* A torn slot where a term after the newest may have been: it counts as one that we cannot read. */
static bool torn_on_top(const struct coord__file_terms *terms)
{
    if (terms->newest != 0) {
        return terms->torn[coord__file_slot_of(terms->newest + 1)];
    }
    for (unsigned i = 0; i < COORD__FILE_SLOTS; i++) {
        if (terms->torn[i]) {
            return true;
        }
    }
    return false;
}

/* @return true when nothing in the file proves that earlier terms have ended. */
static bool owes_lease(struct coord__file_terms *terms)
{
    const struct coord__file_term *newest = newest_of(terms);
    const bool torn = torn_on_top(terms);
    bool owed = COORD__RULE(no_record_owes, newest->number == 0) ||
                COORD__RULE(copy_owes, newest->place.inode != terms->place.inode) || torn;
    terms->foreign = torn || !coord__file_same_run(terms, newest);
    terms->debt_until = 0;
    const uint64_t settled = settled_up_to(terms);
    for (unsigned i = 0; i < COORD__FILE_SLOTS; i++) {
        const struct coord__file_term *term = &terms->ring[i];
        if (term->number <= settled || term->debt_until == 0 ||
            !coord__file_same_run(terms, term)) {
            continue;
        }
        if (coord__file_same_clock(terms, term)) {
            terms->debt_until =
                coord_ms_max(terms->debt_until, COORD__RULE(debt_is_inherited, term->debt_until));
        } else {
            owed = true;
        }
    }
    return owed;
}

static enum coord__file_step take(struct coord__file_terms *terms, coord_ms now)
{
    if (owes_lease(terms)) {
        /* Counted from a time after all that was read: a leader on a file that was removed has
         * looked at its path for the last time before that. */
        if (COORD__RULE(debt_counts_from_a_fresh_time, !terms->fresh)) {
            return coord__file_want_fresh(terms);
        }
        terms->debt_until = coord_ms_max(terms->debt_until, coord_ms_add(now, longer_lease(terms)));
    }
    terms->busy = 0;
    return coord__file_go_locks(terms, 1, terms->top, COORD__FILE_FORMER, COORD__FILE_LOCK);
}

/* ---------------------------------------------------------------- the answer of each verb */

static void describe(struct coord__file_terms *terms, enum verdict verdict, coord_ms now)
{
    struct coord_observation *leader = &terms->leader;
    const struct coord__file_term *newest = newest_of(terms);
    terms->reply.leader = leader;
    leader->remaining = COORD_NEVER;
    if (verdict != HELD || terms->top > terms->newest) {
        leader->taking_over = verdict == HELD;
        leader->identity[0] = '\0';
        leader->metadata_bytes = 0;
        return;
    }
    leader->leading = newest->state == COORD__FILE_LED;
    leader->taking_over = !leader->leading;
    leader->fence = newest->fence;
    leader->since_us = newest->since_us;
    if (coord__file_same_clock(terms, newest)) {
        leader->remaining = coord_ms_sub(newest->valid_until, now);
    }
}

enum coord__file_step coord__file_judge(struct coord__file_terms *terms,
                                        const struct coord__file_time *at)
{
    const enum verdict verdict = weigh(terms, at->now);
    if (verdict == UNJUDGED) {
        return coord__file_want_fresh(terms);
    }
    const enum coord_verb verb = terms->request.verb;
    if (verb == COORD_VERB_ACQUIRE && verdict == FREE) {
        return take(terms, at->now);
    }
    describe(terms, verdict, at->now);
    if (verb == COORD_VERB_ASK) {
        const bool found = verdict == HELD && terms->leader.fence == terms->request.fence;
        return found ? coord__file_go(terms, COORD__FILE_ASK_WRITE)
                     : coord__file_done(terms, COORD_NOBODY);
    }
    if (verb == COORD_VERB_INIT) {
        const bool held = verdict == HELD || terms->mine.term.number != 0;
        return held ? coord__file_done(terms, COORD_HELD) : take(terms, at->now);
    }
    terms->reply.for_us = verdict == FREE && terms->for_us && is_kept(terms, at->now);
    return coord__file_done(terms, verdict == HELD   ? COORD_HELD
                                   : verdict == FREE ? COORD_FREE
                                                     : COORD_RESERVED);
}
