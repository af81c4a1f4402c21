/* SPDX-License-Identifier: MIT
 * electors/file_verbs.c - what is done with a term: renew it, end it, ask its holder to step down.
 */
#include "coord/escape.h"
#include "coord/rule.h"
#include "electors/file_steps.h"

#include <string.h>

static bool is_ours(const struct coord__file_terms *terms)
{
    const struct coord__file_mine *mine = &terms->mine;
    return mine->term.number != 0 && mine->attempt == terms->request.attempt;
}

/* ---------------------------------------------------------------- renew */

enum coord__file_step coord__file_renew(struct coord__file_terms *terms,
                                        const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    if (!is_ours(terms) || terms->mine.lost || terms->mine.term.fence != terms->request.fence) {
        return coord__file_done(terms, COORD_LOST);
    }
    const enum coord_err rc = io->check(io->ctx, &terms->reply.error);
    if (rc == COORD_E_FOREIGN_RECORD) {
        return coord__file_go(terms, COORD__FILE_RENEW_LOST);
    }
    return rc == COORD_OK ? coord__file_go(terms, COORD__FILE_RENEW_WRITE)
                          : coord__file_failed(terms);
}

enum coord__file_step coord__file_renew_write(struct coord__file_terms *terms,
                                              const struct coord__file_time *at)
{
    (void)at;
    struct coord__file_term *term = &terms->mine.term;
    const coord_ms until = coord_ms_add(terms->request.sent, terms->request.lease);
    term->valid_until = coord_ms_max(term->valid_until, until);
    term->lease = terms->request.lease;
    if (coord__file_write_mine(terms) != COORD_OK) {
        return coord__file_failed(terms);
    }
    return coord__file_go_look(terms, term->number, COORD__FILE_RENEW_ASK,
                               COORD__RULE(renewal_gives_way, COORD__FILE_RENEW_LOST));
}

/* The byte stays locked: it is freed only when the host has acknowledged that its work ended. */
enum coord__file_step coord__file_renew_lost(struct coord__file_terms *terms,
                                             const struct coord__file_time *at)
{
    (void)at;
    terms->mine.lost = true;
    return COORD__RULE(lost_term_keeps_its_byte, coord__file_done(terms, COORD_LOST));
}

static bool asks_us(const struct coord__file_terms *terms, const struct coord__file_ask *ask,
                    coord_ms now)
{
    if (ask->fence != terms->mine.term.fence ||
        memcmp(ask->place.boot, terms->place.boot, COORD__BOOT_BYTES) != 0) {
        return false;
    }
    /* A time of another clock says nothing; the fence alone makes it ours. */
    return ask->place.time_namespace != terms->place.time_namespace || now < ask->expires;
}

enum coord__file_step coord__file_renew_ask(struct coord__file_terms *terms,
                                            const struct coord__file_time *at)
{
    const struct coord__file_io *io = &terms->config.io;
    struct coord__file_ask ask;
    if (io->read(io->ctx, COORD__FILE_ASK_AT, COORD__FILE_ASK_BLOCKS, terms->blocks,
                 &terms->reply.error) != COORD_OK) {
        return coord__file_failed(terms);
    }
    /* A torn one is read by the next renewal. */
    if (coord__file_ask_read(terms->blocks, &ask) == COORD__FILE_SOUND &&
        asks_us(terms, &ask, at->now)) {
        terms->reply.asked = true;
        if (ask.to.count > 0 &&
            coord_escape(ask.to.bytes, ask.to.count, terms->asked_for) == COORD_OK) {
            terms->reply.asked_for = terms->asked_for;
        }
    }
    if (terms->mine.term.state == COORD__FILE_LED) {
        return coord__file_done(terms, COORD_RENEWED);
    }
    return coord__file_go_earlier(terms, terms->mine.term.number, COORD__FILE_RENEW_OWED);
}

/* What the base says is owed is not written: the slot has the absolute time of what the file does
 * not show, and what it shows is read afresh by each renewal. */
enum coord__file_step coord__file_renew_owed(struct coord__file_terms *terms,
                                             const struct coord__file_time *at)
{
    struct coord__file_term *term = &terms->mine.term;
    terms->reply.owed = coord_ms_sub(coord_ms_max(terms->wait_until, term->debt_until), at->now);
    if (terms->reply.owed == 0 && terms->request.led) {
        term->state = COORD__FILE_LED;
        term->debt_until = 0;
        if (coord__file_write_mine(terms) != COORD_OK) {
            return coord__file_failed(terms);
        }
    }
    return coord__file_done(terms, COORD_RENEWED);
}

/* ---------------------------------------------------------------- release, undo */

static enum coord__file_step let_go(struct coord__file_terms *terms)
{
    terms->reply.outcome = COORD_DONE;
    terms->reply.error = (struct coord_error){.code = COORD_OK};
    return coord__file_go_unlock(terms, COORD__FILE_FINISH);
}

enum coord__file_step coord__file_release(struct coord__file_terms *terms,
                                          const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    if (!is_ours(terms)) {
        return coord__file_done(terms, COORD_DONE);
    }
    /* A free byte says as much as the mark, and cannot fail. Who still waits leaves the debt. */
    const bool mark = terms->mine.term.state != COORD__FILE_TAKING &&
                      io->check(io->ctx, &terms->reply.error) == COORD_OK;
    if (!mark) {
        return let_go(terms);
    }
    return coord__file_go(terms, terms->successor_bytes > 0 ? COORD__FILE_RELEASE_TEXTS
                                                            : COORD__FILE_RELEASE_WRITE);
}

enum coord__file_step coord__file_release_texts(struct coord__file_terms *terms,
                                                const struct coord__file_time *at)
{
    (void)at;
    if (coord__file_write_who(terms) != COORD_OK) {
        terms->successor_bytes = 0; /* then its place is kept for nobody */
    }
    return coord__file_go(terms, COORD__FILE_RELEASE_WRITE);
}

enum coord__file_step coord__file_release_write(struct coord__file_terms *terms,
                                                const struct coord__file_time *at)
{
    struct coord__file_term *term = &terms->mine.term;
    term->state = COORD__FILE_RESIGNED;
    if (terms->successor_bytes > 0) {
        term->kept_until = coord_ms_add(at->now, terms->request.reserve);
    }
    COORD_IGNORE(coord__file_write_mine(terms), "a free byte says that it has ended as well");
    return let_go(terms);
}

enum coord__file_step coord__file_undo(struct coord__file_terms *terms,
                                       const struct coord__file_time *at)
{
    (void)at;
    return is_ours(terms) ? let_go(terms) : coord__file_done(terms, COORD_DONE);
}

/* ---------------------------------------------------------------- ask */

enum coord__file_step coord__file_ask_send(struct coord__file_terms *terms,
                                           const struct coord__file_time *at)
{
    const struct coord__file_io *io = &terms->config.io;
    const struct coord__file_ask ask = {.fence = terms->request.fence,
                                        .expires = coord_ms_add(at->now, terms->request.reserve),
                                        .place = terms->place,
                                        .to = {terms->successor, terms->successor_bytes}};
    const size_t used = coord__file_ask_write(&ask, terms->blocks);
    if (io->write(io->ctx, COORD__FILE_ASK_AT, terms->blocks, used, &terms->reply.error) !=
        COORD_OK) {
        return coord__file_failed(terms);
    }
    terms->phase = COORD__FILE_ASK_READ;
    return COORD__FILE_MORE;
}

/* Two that ask at once may have mixed their requests: the block is nobody's. */
enum coord__file_step coord__file_ask_check(struct coord__file_terms *terms,
                                            const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    struct coord__file_ask ask;
    if (io->read(io->ctx, COORD__FILE_ASK_AT, COORD__FILE_ASK_BLOCKS, terms->blocks,
                 &terms->reply.error) != COORD_OK) {
        return coord__file_failed(terms);
    }
    if (coord__file_ask_read(terms->blocks, &ask) != COORD__FILE_SOUND &&
        terms->rereads++ < COORD__FILE_REREADS) {
        terms->phase = COORD__FILE_ASK_WRITE;
        return COORD__FILE_MORE;
    }
    terms->reply.outcome = COORD_DONE;
    terms->then = COORD__FILE_FINISH;
    return coord__file_go(terms, COORD__FILE_TOUCH);
}
