/* SPDX-License-Identifier: MIT
 * electors/postgres_answer.c - what the server's answers say to the elections of a session.
 */
#include "electors/postgres_parts.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- reading rows */

bool coord__postgres_yes(const PGresult *rows, int row, int column)
{
    return coord__postgres_text(rows, row, column)[0] == 't';
}

/* What is below 0 is none of ours. */
uint64_t coord__postgres_read(const PGresult *rows, int row, int column)
{
    const char *text = coord__postgres_text(rows, row, column);
    return text[0] == '-' ? 0 : strtoull(text, NULL, 10);
}

void coord__postgres_copy_text(const PGresult *rows, int column, char *out)
{
    out[0] = '\0';
    strncat(out, coord__postgres_text(rows, 0, column), COORD_ESCAPED_MAX - 1);
}

void coord__postgres_copy_metadata(const PGresult *rows, int column, struct coord_observation *out)
{
    size_t bytes = 0;
    /* libpq reads both of bytea's text forms, so a role's bytea_output does not matter. */
    unsigned char *metadata =
        PQunescapeBytea((const unsigned char *)coord__postgres_text(rows, 0, column), &bytes);
    if (metadata != NULL && bytes <= COORD_METADATA_MAX) {
        memcpy(out->metadata, metadata, bytes);
        out->metadata_bytes = bytes;
    }
    PQfreemem(metadata);
}

/* ---------------------------------------------------------------- replies */

void coord__postgres_finish(struct coord__postgres_elector *e, struct coord_reply *reply,
                            coord_ms now)
{
    COORD_ASSERT(e->phase == COORD__POSTGRES_FLYING);
    reply->id = e->request.id;
    e->phase = COORD__POSTGRES_IDLE;
    e->granted = false;
    e->touched = true;
    coord_backend_reply(e->base, reply, now);
}

void coord__postgres_fail(struct coord__postgres_elector *e, enum coord_outcome outcome,
                          const struct coord_error *why, coord_ms now)
{
    struct coord_reply reply = {.outcome = outcome, .error = *why};
    coord__postgres_finish(e, &reply, now);
}

bool coord__postgres_is_current(const struct coord__postgres_elector *e,
                                const struct coord__postgres_job *job)
{
    return e->phase == COORD__POSTGRES_FLYING && e->request.id == job->id;
}

coord_ms coord__postgres_slice_pause(const struct coord__postgres_elector *e)
{
    return coord_ms_max(coord_backend_attempt(e->base) / 4, 1);
}

/* ---------------------------------------------------------------- renewals */

/* An error that ends the term: the table is gone, or the session is another client's. */
static bool is_final(const struct coord__postgres_reply *reply)
{
    return strcmp(reply->sqlstate, "42P01") == 0 || strcmp(reply->sqlstate, "3F000") == 0 ||
           reply->error.code == COORD_E_POOLER;
}

/* A term that is over by its own clock keeps nobody waiting, though its host may hang. */
void coord__postgres_proved(struct coord__postgres_elector *e, coord_ms sent)
{
    e->proved = sent;
    e->unlock_at = COORD__RULE(unlocks_at_hard, coord_timing_hard(&e->timing, sent));
}

/* The lock is kept until the term has ended by its own clock: whatever replaced the row may call
 * itself clear. */
static void lost(struct coord__postgres_elector *e, const struct coord_error *why, coord_ms now)
{
    coord__postgres_proved(e, e->proved);
    coord__postgres_fail(e, COORD_LOST, why, now);
}

static void renewed(struct coord__postgres_elector *e, bool struck, const char *asked_for,
                    bool asked, coord_ms now)
{
    struct coord_reply reply = {.outcome = COORD_RENEWED, .owed = COORD_NEVER};
    coord__postgres_proved(e, coord_ms_max(e->proved, e->request.sent));
    if (e->request.led) {
        reply.owed = struck ? 0 : coord__postgres_slice_pause(e);
    }
    reply.asked = asked;
    reply.asked_for = asked && asked_for[0] != '\0' ? asked_for : NULL;
    reply.error = e->blocked;
    coord__postgres_finish(e, &reply, now);
}

/* A complete reply, an error too, proves that the session lives, and with it the lock; but one that
 * does not know what was prepared in it is not the session of the lock. What is still owed stays
 * owed. */
static void renewal_failed(struct coord__postgres_elector *e,
                           const struct coord__postgres_reply *reply, coord_ms now)
{
    if (is_final(reply)) {
        lost(e, &reply->error, now);
    } else {
        renewed(e, false, "", false, now);
    }
}

/* Rows come in any order; a key has 63 bits. */
static int read_keys(const PGresult *rows, uint64_t *keys)
{
    const int all = rows != NULL ? PQntuples(rows) : 0;
    const int count = all < COORD__POSTGRES_BATCH ? all : COORD__POSTGRES_BATCH;
    for (int row = 0; row < count; row++) {
        keys[row] = PQgetisnull(rows, row, COORD__RENEW_KEY)
                        ? UINT64_MAX
                        : coord__postgres_read(rows, row, COORD__RENEW_KEY);
    }
    return count;
}

static int row_of(const uint64_t *keys, int count, uint64_t key)
{
    for (int row = 0; row < count; row++) {
        if (keys[row] == key) {
            return row;
        }
    }
    return -1;
}

static bool check_row(const struct coord__postgres_elector *e, const PGresult *rows, int row,
                      struct coord_error *why)
{
    const uint64_t backend = (uint64_t)e->session->backend;
    if (coord__postgres_read(rows, 0, COORD__RENEW_BACKEND) != backend) {
        coord_error_set(why, COORD_E_POOLER,
                        "another session of the server answers: the pooler in between is not in "
                        "session mode; connect to the server itself");
    } else if (row < 0) {
        coord_error_set(why, COORD_E_FOREIGN_RECORD,
                        "the row of this election in coord.term is gone: somebody deleted it or "
                        "emptied the table");
    } else if (coord__postgres_read(rows, row, COORD__RENEW_FENCE) != e->request.fence ||
               strcmp(coord__postgres_text(rows, row, COORD__RENEW_OWNER),
                      coord_backend_owner(e->base)) != 0 ||
               coord__postgres_read(rows, row, COORD__RENEW_PID) != backend ||
               coord__postgres_yes(rows, row, COORD__RENEW_RESIGNED)) {
        coord_error_set(why, COORD_E_FOREIGN_RECORD,
                        "the row of this election in coord.term is another's: somebody wrote it "
                        "without the lock, or put an old one back");
    } else if (!coord__postgres_yes(rows, row, COORD__RENEW_LOCKED)) {
        coord_error_set(why, COORD_E_POOLER,
                        "the session has lost its lock: something reset it (a pooler's reset query "
                        "or pg_advisory_unlock_all)");
    } else {
        return true;
    }
    return false;
}

static void renewals_answered(struct coord__postgres_session *session,
                              const struct coord__postgres_reply *reply, coord_ms now)
{
    uint64_t keys[COORD__POSTGRES_BATCH];
    const int count = read_keys(reply->rows, keys);
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (e->phase != COORD__POSTGRES_FLYING || e->request.verb != COORD_VERB_RENEW) {
            continue;
        }
        if (reply->rows == NULL) {
            renewal_failed(e, reply, now);
            continue;
        }
        struct coord_error why;
        const int row = row_of(keys, count, e->key);
        if (!check_row(e, reply->rows, row, &why)) {
            /* What took the lock may have taken the settings, too. */
            session->settings_due = session->settings_due || why.code == COORD_E_POOLER;
            lost(e, &why, now);
            continue;
        }
        renewed(e, e->gate_passed && e->debt == 0,
                coord__postgres_text(reply->rows, row, COORD__RENEW_ASKED_FOR),
                coord__postgres_yes(reply->rows, row, COORD__RENEW_ASKED), now);
    }
}

static void struck(struct coord__postgres_elector *e, const struct coord__postgres_reply *reply,
                   coord_ms now)
{
    if (reply->rows == NULL) {
        renewal_failed(e, reply, now);
    } else if (PQntuples(reply->rows) != 1) {
        struct coord_error why;
        coord_error_set(&why, COORD_E_FOREIGN_RECORD,
                        "the row of this election in coord.term is gone or another's: somebody "
                        "wrote the table without the lock");
        lost(e, &why, now);
    } else {
        e->debt = 0;
        renewed(e, true, coord__postgres_text(reply->rows, 0, 1),
                coord__postgres_yes(reply->rows, 0, 0), now);
    }
}

/* ---------------------------------------------------------------- ends of terms */

static void forget_term(struct coord__postgres_elector *e)
{
    e->held = false;
    e->gate_passed = false;
    e->blockers_due = false;
    e->unlock_at = COORD_NEVER;
    e->blocked.code = COORD_OK;
}

static void released(struct coord__postgres_elector *e, const struct coord__postgres_job *job,
                     const struct coord__postgres_reply *reply, coord_ms now)
{
    struct coord_reply done = {.outcome = COORD_DONE};
    if (reply->rows == NULL && ++e->release_failures >= 2) {
        e->unlock_due = true; /* without the mark: the successor waits a lease */
    } else if (reply->rows != NULL) {
        forget_term(e);
    }
    if (!coord__postgres_is_current(e, job)) {
        e->unlock_due = e->unlock_due || e->held;
    } else if (reply->rows == NULL) {
        coord__postgres_fail(e, COORD_FAILED, &reply->error, now);
    } else {
        coord__postgres_finish(e, &done, now);
    }
}

static void unlocked(struct coord__postgres_session *session,
                     const struct coord__postgres_reply *reply, coord_ms now)
{
    const unsigned gone = session->orphans_flying;
    session->orphans_flying = 0;
    if (reply->rows != NULL) {
        session->orphan_count -= gone;
        memmove(session->orphans, session->orphans + gone,
                session->orphan_count * sizeof session->orphans[0]);
    }
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (!e->unlock_flying) {
            continue;
        }
        e->unlock_flying = false;
        if (reply->rows == NULL) {
            e->unlock_due = true; /* nothing may stay locked: again */
            continue;
        }
        forget_term(e);
        if (e->phase == COORD__POSTGRES_FLYING && e->request.verb == COORD_VERB_UNDO) {
            struct coord_reply done = {.outcome = COORD_DONE};
            coord__postgres_finish(e, &done, now);
        }
    }
}

/* ---------------------------------------------------------------- questions */

static void observed(struct coord__postgres_elector *e, const PGresult *rows, coord_ms now)
{
    struct coord_observation leader = {.remaining = COORD_NEVER};
    struct coord_reply reply = {.outcome = COORD_HELD, .leader = &leader};
    const bool locked = coord__postgres_yes(rows, 0, COORD__OBSERVE_LOCKED);
    const char *successor = coord__postgres_text(rows, 0, COORD__OBSERVE_SUCCESSOR);
    reply.retry_in = coord__postgres_poll_in(e);
    leader.last_fence = coord__postgres_read(rows, 0, COORD__OBSERVE_FENCE);
    if (coord__postgres_yes(rows, 0, COORD__OBSERVE_LEADS)) {
        const bool owes = coord__postgres_read(rows, 0, COORD__OBSERVE_DEBT) > 0;
        leader.leading = !owes;
        leader.taking_over = owes;
        leader.fence = leader.last_fence;
        leader.since_us = coord__postgres_read(rows, 0, COORD__OBSERVE_SINCE_US);
        coord__postgres_copy_text(rows, COORD__OBSERVE_IDENTITY, leader.identity);
        coord__postgres_copy_metadata(rows, COORD__OBSERVE_METADATA, &leader);
    } else if (!locked && successor[0] != '\0') {
        reply.for_us = strcmp(successor, coord_backend_identity(e->base)) == 0;
        reply.outcome = reply.for_us ? COORD_FREE : COORD_RESERVED;
        reply.retry_in = coord__postgres_read(rows, 0, COORD__OBSERVE_RESERVED_MS);
        coord__postgres_copy_text(rows, COORD__OBSERVE_SUCCESSOR, leader.identity);
    } else if (!locked) {
        reply.outcome = COORD_FREE;
    }
    coord__postgres_finish(e, &reply, now);
}

static void initialised(struct coord__postgres_elector *e, const PGresult *rows, coord_ms now)
{
    struct coord_reply reply = {.outcome = COORD_DONE};
    if (!coord__postgres_yes(rows, 0, 0)) {
        reply.outcome = COORD_FAILED;
        coord_error_set(
            &reply.error, COORD_E_BUSY, "%.200s holds this election: it has to be released first",
            coord__postgres_text(rows, 0, 2)[0] != '\0' ? coord__postgres_text(rows, 0, 2)
                                                        : "somebody");
    } else if (PQgetisnull(rows, 0, 1)) {
        reply.outcome = COORD_FAILED;
        coord_error_set(&reply.error, COORD_E_KEY_COLLISION,
                        "coord.term has this name under another lock (key), or from a newer "
                        "version: delete the row if nobody leads");
    }
    coord__postgres_finish(e, &reply, now);
}

static void question_answered(struct coord__postgres_elector *e,
                              const struct coord__postgres_job *job,
                              const struct coord__postgres_reply *reply, coord_ms now)
{
    if (!coord__postgres_is_current(e, job)) {
        return;
    }
    if (reply->rows == NULL) {
        coord__postgres_fail(e, COORD_FAILED, &reply->error, now);
    } else if (job->sql == COORD__POSTGRES_OBSERVE) {
        observed(e, reply->rows, now);
    } else if (job->sql == COORD__POSTGRES_INIT) {
        initialised(e, reply->rows, now);
    } else {
        struct coord_reply asked = {.outcome =
                                        PQntuples(reply->rows) > 0 ? COORD_DONE : COORD_NOBODY};
        coord__postgres_finish(e, &asked, now);
    }
}

void coord__postgres_answer(struct coord__postgres_session *session,
                            const struct coord__postgres_job *job,
                            const struct coord__postgres_reply *reply, coord_ms now)
{
    struct coord__postgres_elector *e = job->elector;
    if (job->sql == COORD__POSTGRES_RENEW || job->sql == COORD__POSTGRES_RENEW_LOCKS) {
        renewals_answered(session, reply, now);
    } else if (job->sql == COORD__POSTGRES_UNLOCK) {
        unlocked(session, reply, now);
    } else if (e == NULL) {
        return; /* its elector is gone */
    } else if (job->sql == COORD__POSTGRES_ACQUIRE) {
        coord__postgres_acquired(e, job, reply, now);
    } else if (job->sql == COORD__POSTGRES_GATE) {
        coord__postgres_gate_answered(e, reply, now);
    } else if (job->sql == COORD__POSTGRES_BLOCKERS) {
        coord__postgres_blockers_answered(e, reply, now);
    } else if (job->sql == COORD__POSTGRES_RELEASE) {
        released(e, job, reply, now);
    } else if (job->sql == COORD__POSTGRES_STRIKE) {
        if (coord__postgres_is_current(e, job)) {
            struck(e, reply, now);
        } else if (reply->rows != NULL && PQntuples(reply->rows) == 1) {
            e->debt = 0;
        }
    } else {
        question_answered(e, job, reply, now);
    }
}

/* ---------------------------------------------------------------- no session any more */

static void answer_lost(struct coord__postgres_elector *e, const struct coord_error *why,
                        coord_ms now)
{
    struct coord_reply done = {.outcome = COORD_DONE};
    const bool sent = e->phase == COORD__POSTGRES_FLYING;
    switch (e->request.verb) {
    case COORD_VERB_ACQUIRE:
    case COORD_VERB_OBSERVE:
        if (sent) {
            coord__postgres_fail(e, COORD_FAILED, why,
                                 now); /* whatever it took went with the session */
        }
        break;
    case COORD_VERB_RENEW:
        e->phase = COORD__POSTGRES_FLYING;
        coord__postgres_fail(e, COORD_FAILED, why, now);
        break;
    case COORD_VERB_RELEASE:
    case COORD_VERB_ASK:
    case COORD_VERB_INIT:
        if (sent) {
            coord__postgres_fail(e, COORD_UNKNOWN, why, now);
        }
        break;
    case COORD_VERB_UNDO:
        e->phase = COORD__POSTGRES_FLYING;
        coord__postgres_finish(e, &done, now);
        break;
    case COORD_VERB_NONE:
        break;
    }
}

void coord__postgres_all_lost(struct coord__postgres_session *session,
                              const struct coord_error *why, coord_ms now)
{
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        const bool held = e->held;
        forget_term(e);
        e->gate_flying = false;
        e->unlock_due = false;
        e->unlock_flying = false;
        e->granted = false;
        if (held) {
            e->touched = true;
            coord_backend_lost(e->base, why, now);
        }
        if (e->phase != COORD__POSTGRES_IDLE) {
            answer_lost(e, why, now);
        }
    }
}

void coord__postgres_all_failed(struct coord__postgres_session *session,
                                const struct coord_error *why, coord_ms now)
{
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (e->phase == COORD__POSTGRES_WAITING) {
            e->phase = COORD__POSTGRES_FLYING;
            coord__postgres_fail(e, COORD_FAILED, why, now);
        }
    }
}
