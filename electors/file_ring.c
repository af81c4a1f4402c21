/* SPDX-License-Identifier: MIT
 * electors/file_ring.c - reading the ring: who is the newest, is there a higher term, and until
 * when do earlier ones have to be waited for.
 */
#include "coord/escape.h"
#include "electors/file_steps.h"

#include <string.h>

/* ---------------------------------------------------------------- reading slots */

/* Read the slots at the cursor. @return how many; 0: it failed. */
static unsigned read_slots(struct coord__file_terms *terms, unsigned most)
{
    const struct coord__file_io *io = &terms->config.io;
    const unsigned left = COORD__FILE_SLOTS - terms->cursor;
    const unsigned count = left < most ? left : most;
    const unsigned block = COORD__FILE_SLOTS_AT + terms->cursor;
    return io->read(io->ctx, block, count, terms->blocks, &terms->reply.error) == COORD_OK ? count
                                                                                           : 0;
}

/* A torn slot is read again before it is believed to be damaged. @return true: read it again. */
static bool read_again(struct coord__file_terms *terms, enum coord__file_kind kind)
{
    if (kind == COORD__FILE_TORN && terms->rereads < COORD__FILE_REREADS) {
        terms->rereads++;
        return true;
    }
    terms->rereads = 0;
    return false;
}

static enum coord__file_step newer(struct coord__file_terms *terms)
{
    coord_error_set(&terms->reply.error, COORD_E_NEWER_FORMAT,
                    "the election's file has records of a newer version of coord: update this "
                    "member, and keep the file");
    return coord__file_failed(terms);
}

static void see_fence(struct coord__file_terms *terms, const struct coord__file_term *term)
{
    if (term->fence > terms->leader.last_fence) {
        terms->leader.last_fence = term->fence;
    }
}

static void find_newest(struct coord__file_terms *terms)
{
    terms->newest = 0;
    for (unsigned i = 0; i < COORD__FILE_SLOTS; i++) {
        if (terms->ring[i].number > terms->newest) {
            terms->newest = terms->ring[i].number;
        }
        see_fence(terms, &terms->ring[i]);
    }
    terms->top = terms->newest > terms->mine.term.number ? terms->newest : terms->mine.term.number;
}

/* All but what a torn one looks like: whoever writes it is alive, even if we never see it whole. */
static void forget(struct coord__file_term *term, enum coord__file_kind kind)
{
    const uint64_t looks = kind == COORD__FILE_TORN ? term->checksum : 0;
    memset(term, 0, sizeof *term);
    term->checksum = looks;
}

enum coord__file_step coord__file_scan(struct coord__file_terms *terms,
                                       const struct coord__file_time *at)
{
    (void)at;
    const unsigned count = read_slots(terms, terms->config.chunk);
    if (count == 0) {
        return coord__file_failed(terms);
    }
    for (unsigned i = 0; i < count; i++) {
        struct coord__file_term *term = &terms->ring[terms->cursor];
        const enum coord__file_kind kind =
            coord__file_slot_read(terms->blocks + (size_t)i * COORD__FILE_BLOCK, term);
        if (read_again(terms, kind)) {
            return COORD__FILE_MORE;
        }
        if (kind == COORD__FILE_NEWER) {
            return newer(terms);
        }
        /* A number in the slot of another one is no slot of ours. */
        const bool sound =
            kind == COORD__FILE_SOUND && coord__file_slot_of(term->number) == terms->cursor;
        if (!sound) {
            forget(term, kind);
        }
        terms->torn[terms->cursor++] = !sound && kind != COORD__FILE_EMPTY;
    }
    if (terms->cursor < COORD__FILE_SLOTS) {
        return COORD__FILE_MORE;
    }
    find_newest(terms);
    return coord__file_go(terms, COORD__FILE_TOP);
}

/* A byte that is locked above every slot: somebody who has no slot yet, or none any more. */
enum coord__file_step coord__file_top(struct coord__file_terms *terms,
                                      const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    uint64_t number = 0;
    if (io->locked(io->ctx, terms->top + 1, COORD__FILE_NUMBER_MAX, &number, &terms->reply.error) !=
        COORD_OK) {
        return coord__file_failed(terms);
    }
    if (number > terms->top && number < COORD__FILE_NUMBER_MAX) {
        terms->top = number;
        return COORD__FILE_MORE;
    }
    return coord__file_go(terms, COORD__FILE_NEWEST);
}

enum coord__file_step coord__file_newest(struct coord__file_terms *terms,
                                         const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    uint64_t number = 0;
    if (terms->newest != 0 && io->locked(io->ctx, terms->newest, terms->newest, &number,
                                         &terms->reply.error) != COORD_OK) {
        return coord__file_failed(terms);
    }
    terms->held = number != 0 || (terms->newest != 0 && terms->newest == terms->mine.term.number);
    return coord__file_go(terms, COORD__FILE_WHO);
}

/* ---------------------------------------------------------------- who the newest one is */

static void note_who(struct coord__file_terms *terms, const struct coord__file_texts *texts)
{
    struct coord_observation *leader = &terms->leader;
    if (texts->identity.count == 0 ||
        coord_escape(texts->identity.bytes, texts->identity.count, leader->identity) != COORD_OK) {
        leader->identity[0] = '\0';
    }
    leader->metadata_bytes = texts->metadata.count;
    if (texts->metadata.count > 0) {
        memcpy(leader->metadata, texts->metadata.bytes, texts->metadata.count);
    }
    terms->for_us = texts->successor.count == terms->identity_bytes &&
                    memcmp(texts->successor.bytes, terms->identity, terms->identity_bytes) == 0;
}

/* Nothing is decided by them but for whom a place is kept. */
enum coord__file_step coord__file_who(struct coord__file_terms *terms,
                                      const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    terms->for_us = false;
    if (terms->newest == 0) {
        return coord__file_go(terms, COORD__FILE_JUDGE);
    }
    if (io->read(io->ctx, coord__file_texts_at(terms->newest), COORD__FILE_TEXTS_BLOCKS,
                 terms->blocks, &terms->reply.error) != COORD_OK) {
        return coord__file_failed(terms);
    }
    struct coord__file_texts texts = {.number = 0};
    if (read_again(terms, coord__file_texts_read(terms->blocks, &texts))) {
        return COORD__FILE_MORE;
    }
    if (texts.number == terms->newest) {
        note_who(terms, &texts);
    }
    return coord__file_go(terms, COORD__FILE_JUDGE);
}

/* ---------------------------------------------------------------- is there a higher term? */

enum coord__file_step coord__file_look(struct coord__file_terms *terms,
                                       const struct coord__file_time *at)
{
    (void)at;
    const unsigned count = read_slots(terms, terms->config.chunk);
    if (count == 0) {
        return coord__file_failed(terms);
    }
    struct coord__file_term term;
    for (unsigned i = 0; i < count; i++, terms->cursor++) {
        const uint8_t *block = terms->blocks + (size_t)i * COORD__FILE_BLOCK;
        /* Most slots are lower and need no checksum: a higher one that was written before we
         * looked shows its number, and one that is being written now will see ours. */
        if (!terms->look_fences && coord__file_slot_peek(block) <= terms->above) {
            terms->rereads = 0;
            continue;
        }
        const enum coord__file_kind kind = coord__file_slot_read(block, &term);
        if (read_again(terms, kind)) {
            return COORD__FILE_MORE;
        }
        if (kind == COORD__FILE_SOUND && term.number <= terms->above) {
            see_fence(terms, &term);
        } else if (kind == COORD__FILE_SOUND || kind == COORD__FILE_NEWER) {
            return coord__file_go(terms, (enum coord__file_phase)terms->then_found);
        }
        terms->look_locks = terms->look_locks || kind == COORD__FILE_TORN;
        terms->foreign = terms->foreign || (terms->look_fences && kind == COORD__FILE_TORN);
    }
    if (terms->cursor < COORD__FILE_SLOTS) {
        return COORD__FILE_MORE;
    }
    return coord__file_go(terms, terms->look_locks ? COORD__FILE_LOOK_LOCK
                                                   : (enum coord__file_phase)terms->then);
}

/* A slot that stays torn may be of a higher term, and one may have no slot yet: then its byte is
 * locked. */
enum coord__file_step coord__file_look_lock(struct coord__file_terms *terms,
                                            const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    uint64_t number = 0;
    if (io->locked(io->ctx, terms->above + 1, COORD__FILE_NUMBER_MAX, &number,
                   &terms->reply.error) != COORD_OK) {
        return coord__file_failed(terms);
    }
    return coord__file_go(terms,
                          (enum coord__file_phase)(number != 0 ? terms->then_found : terms->then));
}

/* ---------------------------------------------------------------- locked bytes, one by one */

/* The kernel names any locked byte of a range: look below it until the lowest is known. */
enum coord__file_step coord__file_locks(struct coord__file_terms *terms,
                                        const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    uint64_t number = 0;
    if (terms->low <= terms->high &&
        io->locked(io->ctx, terms->low, terms->high, &number, &terms->reply.error) != COORD_OK) {
        return coord__file_failed(terms);
    }
    if (number != 0) {
        COORD_ASSERT(number >= terms->low);
        COORD_ASSERT(number <= terms->high);
        terms->found = number;
        terms->high = number - 1;
        return COORD__FILE_MORE;
    }
    return coord__file_go(
        terms, (enum coord__file_phase)(terms->found != 0 ? terms->then_found : terms->then));
}

/* ---------------------------------------------------------------- earlier terms */

enum coord__file_step coord__file_earlier_read(struct coord__file_terms *terms,
                                               const struct coord__file_time *at)
{
    (void)at;
    terms->cursor = coord__file_slot_of(terms->found);
    if (read_slots(terms, 1) == 0) {
        return coord__file_failed(terms);
    }
    const enum coord__file_kind kind = coord__file_slot_read(terms->blocks, &terms->earlier);
    if (read_again(terms, kind)) {
        return COORD__FILE_MORE;
    }
    if (kind != COORD__FILE_SOUND || terms->earlier.number != terms->found ||
        !coord__file_same_run(terms, &terms->earlier)) {
        forget(&terms->earlier, kind);
    }
    return coord__file_go(terms, COORD__FILE_EARLIER_JUDGE);
}

enum coord__file_step coord__file_earlier_judge(struct coord__file_terms *terms,
                                                const struct coord__file_time *at)
{
    const struct coord__file_term *term = &terms->earlier;
    coord_ms until = 0;
    if (term->number != 0 && coord__file_same_clock(terms, term)) {
        until = term->valid_until;
    } else if (term->state != COORD__FILE_RESIGNED) {
        /* No slot, or times of another clock: it is past when it has not changed for a lease. */
        until = coord__file_past_at(terms, terms->found, term->checksum,
                                    coord_ms_max(terms->config.lease, term->lease), at->now);
        if (until == COORD_NEVER) {
            return coord__file_want_fresh(terms);
        }
    }
    if (term->state == COORD__FILE_RESIGNED) {
        until = 0;
    }
    terms->wait_until = coord_ms_max(terms->wait_until, until);
    return coord__file_next_lock(terms);
}
