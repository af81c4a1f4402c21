/* SPDX-License-Identifier: MIT
 * electors/file_terms.c - the machine: one phase after another, and the parts that phases share.
 */
#include "electors/file_terms.h"

#include "coord/escape.h"
#include "coord/rule.h"
#include "electors/file_steps.h"

#include <string.h>

static enum coord__file_step unlock(struct coord__file_terms *terms,
                                    const struct coord__file_time *at);
static enum coord__file_step touch(struct coord__file_terms *terms,
                                   const struct coord__file_time *at);
static enum coord__file_step finish(struct coord__file_terms *terms,
                                    const struct coord__file_time *at);

static const coord__file_phase_fn phases[COORD__FILE_PHASES] = {
    [COORD__FILE_IDLE] = finish,
    [COORD__FILE_DROP] = coord__file_drop,
    [COORD__FILE_OPEN] = coord__file_open,
    [COORD__FILE_SCAN] = coord__file_scan,
    [COORD__FILE_TOP] = coord__file_top,
    [COORD__FILE_NEWEST] = coord__file_newest,
    [COORD__FILE_WHO] = coord__file_who,
    [COORD__FILE_JUDGE] = coord__file_judge,
    [COORD__FILE_FORMER] = coord__file_former,
    [COORD__FILE_LOCK] = coord__file_lock,
    [COORD__FILE_WRITE_TEXTS] = coord__file_write_texts,
    [COORD__FILE_WRITE_SLOT] = coord__file_write_slot,
    [COORD__FILE_TAKEN] = coord__file_taken,
    [COORD__FILE_GRANT] = coord__file_grant,
    [COORD__FILE_GIVE_UP] = coord__file_give_up,
    [COORD__FILE_AGAIN] = coord__file_again,
    [COORD__FILE_RENEW] = coord__file_renew,
    [COORD__FILE_RENEW_WRITE] = coord__file_renew_write,
    [COORD__FILE_RENEW_LOST] = coord__file_renew_lost,
    [COORD__FILE_RENEW_ASK] = coord__file_renew_ask,
    [COORD__FILE_RENEW_OWED] = coord__file_renew_owed,
    [COORD__FILE_RELEASE] = coord__file_release,
    [COORD__FILE_RELEASE_TEXTS] = coord__file_release_texts,
    [COORD__FILE_RELEASE_WRITE] = coord__file_release_write,
    [COORD__FILE_UNDO] = coord__file_undo,
    [COORD__FILE_ASK_WRITE] = coord__file_ask_send,
    [COORD__FILE_ASK_READ] = coord__file_ask_check,
    [COORD__FILE_LOOK] = coord__file_look,
    [COORD__FILE_LOOK_LOCK] = coord__file_look_lock,
    [COORD__FILE_LOCKS] = coord__file_locks,
    [COORD__FILE_EARLIER_READ] = coord__file_earlier_read,
    [COORD__FILE_EARLIER_JUDGE] = coord__file_earlier_judge,
    [COORD__FILE_UNLOCK] = unlock,
    [COORD__FILE_TOUCH] = touch,
    [COORD__FILE_FINISH] = finish,
};

static const enum coord__file_phase first_phase[] = {
    [COORD_VERB_NONE] = COORD__FILE_IDLE,   [COORD_VERB_ACQUIRE] = COORD__FILE_DROP,
    [COORD_VERB_RENEW] = COORD__FILE_RENEW, [COORD_VERB_RELEASE] = COORD__FILE_RELEASE,
    [COORD_VERB_UNDO] = COORD__FILE_UNDO,   [COORD_VERB_OBSERVE] = COORD__FILE_DROP,
    [COORD_VERB_ASK] = COORD__FILE_OPEN,    [COORD_VERB_INIT] = COORD__FILE_OPEN,
};

/* ---------------------------------------------------------------- the machine */

static size_t raw_of(const char *escaped, uint8_t *out)
{
    size_t count = 0;
    if (escaped == NULL || escaped[0] == '\0' || coord_unescape(escaped, out, &count) != COORD_OK) {
        return 0;
    }
    return count;
}

void coord__file_terms_init(struct coord__file_terms *terms,
                            const struct coord__file_config *config)
{
    memset(terms, 0, sizeof *terms);
    terms->config = *config;
    terms->place = config->place;
    terms->place.inode = 0;
    terms->identity_bytes = raw_of(config->identity, terms->identity);
    terms->config.identity = NULL;
    if (terms->config.chunk == 0) {
        terms->config.chunk = COORD__FILE_CHUNK;
    }
    COORD_ASSERT(terms->identity_bytes > 0);
    COORD_ASSERT(terms->config.chunk <= COORD__FILE_CHUNK);
    COORD_ASSERT(config->metadata_bytes <= COORD_METADATA_MAX);
}

void coord__file_terms_begin(struct coord__file_terms *terms, const struct coord_request *request)
{
    COORD_ASSERT(terms->request.verb == COORD_VERB_NONE);
    COORD_ASSERT(request->verb > COORD_VERB_NONE);
    COORD_ASSERT(request->verb <= COORD_VERB_INIT);
    terms->request = *request;
    terms->successor_bytes = raw_of(request->successor, terms->successor);
    terms->request.successor = NULL;
    terms->restarts = 0;
    terms->fresh = false;
    memset(&terms->leader, 0, sizeof terms->leader);
    terms->reply = (struct coord_reply){.id = request->id, .retry_in = COORD_NEVER};
    coord__file_go(terms, first_phase[request->verb]);
}

enum coord__file_step coord__file_terms_step(struct coord__file_terms *terms, coord_ms now,
                                             uint64_t wall_us)
{
    const struct coord__file_time at = {.now = now, .wall_us = wall_us};
    COORD_ASSERT(terms->phase < COORD__FILE_PHASES);
    const enum coord__file_step step = phases[terms->phase](terms, &at);
    /* What a time was read after grows with every call of the file. */
    terms->fresh = step == COORD__FILE_FRESH;
    return step;
}

const struct coord_reply *coord__file_terms_reply(const struct coord__file_terms *terms)
{
    return &terms->reply;
}

void coord__file_terms_abandon(struct coord__file_terms *terms)
{
    terms->request.verb = COORD_VERB_NONE;
    terms->phase = COORD__FILE_IDLE;
}

enum coord__file_step coord__file_go(struct coord__file_terms *terms, enum coord__file_phase phase)
{
    terms->phase = phase;
    terms->cursor = 0;
    terms->rereads = 0;
    return COORD__FILE_MORE;
}

enum coord__file_step coord__file_done(struct coord__file_terms *terms, enum coord_outcome outcome)
{
    terms->reply.outcome = outcome;
    return finish(terms, NULL);
}

static enum coord__file_step finish(struct coord__file_terms *terms,
                                    const struct coord__file_time *at)
{
    (void)at;
    coord__file_terms_abandon(terms);
    return COORD__FILE_DONE;
}

enum coord__file_step coord__file_failed(struct coord__file_terms *terms)
{
    terms->reply.outcome = COORD_FAILED;
    terms->reply.leader = NULL;
    return terms->half ? coord__file_go_unlock(terms, COORD__FILE_FINISH) : finish(terms, NULL);
}

/* ---------------------------------------------------------------- parts that phases share */

enum coord__file_step coord__file_go_look(struct coord__file_terms *terms, uint64_t above,
                                          enum coord__file_phase then, enum coord__file_phase found)
{
    terms->above = above;
    terms->look_locks = false;
    terms->look_fences = false;
    terms->then = then;
    terms->then_found = found;
    return coord__file_go(terms, COORD__FILE_LOOK);
}

enum coord__file_step coord__file_go_locks(struct coord__file_terms *terms, uint64_t low,
                                           uint64_t last, enum coord__file_phase each,
                                           enum coord__file_phase then)
{
    terms->low = low;
    terms->high = terms->last = last;
    terms->found = 0;
    terms->then_found = each;
    terms->then = then;
    return coord__file_go(terms, COORD__FILE_LOCKS);
}

enum coord__file_step coord__file_next_lock(struct coord__file_terms *terms)
{
    terms->low = terms->found + 1;
    terms->high = terms->last;
    terms->found = 0;
    return coord__file_go(terms, COORD__FILE_LOCKS);
}

enum coord__file_step coord__file_go_earlier(struct coord__file_terms *terms, uint64_t number,
                                             enum coord__file_phase then)
{
    uint64_t low = 1;
    for (unsigned i = 0; i < COORD__FILE_SLOTS; i++) {
        const struct coord__file_term *term = &terms->ring[i];
        if (term->number > low && term->number < number && coord__file_led(terms, term)) {
            low = term->number;
        }
    }
    terms->wait_until = 0;
    return coord__file_go_locks(terms, low, number - 1, COORD__FILE_EARLIER_READ, then);
}

enum coord__file_step coord__file_go_unlock(struct coord__file_terms *terms,
                                            enum coord__file_phase then)
{
    terms->then = then;
    return coord__file_go(terms, COORD__FILE_UNLOCK);
}

static enum coord__file_step unlock(struct coord__file_terms *terms,
                                    const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    COORD_ASSERT(terms->mine.term.number != 0);
    io->unlock(io->ctx, terms->mine.term.number);
    memset(&terms->mine, 0, sizeof terms->mine);
    terms->half = false;
    return coord__file_go(terms, COORD__FILE_TOUCH);
}

static enum coord__file_step touch(struct coord__file_terms *terms,
                                   const struct coord__file_time *at)
{
    (void)at;
    const struct coord__file_io *io = &terms->config.io;
    io->touch(io->ctx);
    return coord__file_go(terms, (enum coord__file_phase)terms->then);
}

enum coord_err coord__file_write_mine(struct coord__file_terms *terms)
{
    const struct coord__file_io *io = &terms->config.io;
    const struct coord__file_term *term = &terms->mine.term;
    const size_t used = coord__file_slot_write(term, terms->blocks);
    const unsigned block = COORD__FILE_SLOTS_AT + coord__file_slot_of(term->number);
    return io->write(io->ctx, block, terms->blocks, used, &terms->reply.error);
}

enum coord_err coord__file_write_who(struct coord__file_terms *terms)
{
    const struct coord__file_io *io = &terms->config.io;
    const struct coord__file_texts texts = {
        .number = terms->mine.term.number,
        .identity = {terms->identity, terms->identity_bytes},
        .successor = {terms->successor, terms->successor_bytes},
        .metadata = {terms->config.metadata, terms->config.metadata_bytes}};
    const size_t used = coord__file_texts_write(&texts, terms->blocks);
    const unsigned block = coord__file_texts_at(terms->mine.term.number);
    return io->write(io->ctx, block, terms->blocks, used, &terms->reply.error);
}

bool coord__file_same_run(const struct coord__file_terms *terms,
                          const struct coord__file_term *term)
{
    return term->number != 0 &&
           COORD__RULE(slot_is_of_this_file, term->place.inode == terms->place.inode) &&
           memcmp(term->place.boot, terms->place.boot, COORD__BOOT_BYTES) == 0;
}

bool coord__file_led(const struct coord__file_terms *terms, const struct coord__file_term *term)
{
    const bool clear_record = term->state == COORD__FILE_RESIGNED && term->lease == 0;
    return term->state != COORD__FILE_TAKING && !clear_record && coord__file_same_run(terms, term);
}

bool coord__file_same_clock(const struct coord__file_terms *terms,
                            const struct coord__file_term *term)
{
    return coord__file_same_run(terms, term) &&
           COORD__RULE(clock_is_of_this_namespace,
                       term->place.time_namespace == terms->place.time_namespace);
}

coord_ms coord__file_past_at(struct coord__file_terms *terms, uint64_t number, uint64_t checksum,
                             coord_ms lease, coord_ms now)
{
    struct coord__file_sight *sight = &terms->sights[coord__file_slot_of(number)];
    if (sight->number != number || sight->checksum != checksum) {
        if (!terms->fresh) {
            return COORD_NEVER;
        }
        *sight = (struct coord__file_sight){number, checksum, now};
    }
    return coord_ms_add(sight->since, lease);
}

enum coord__file_step coord__file_want_fresh(struct coord__file_terms *terms)
{
    COORD_ASSERT(!terms->fresh);
    return COORD__FILE_FRESH;
}
