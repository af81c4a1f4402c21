/* SPDX-License-Identifier: MIT
 * electors/postgres_grant.c - what the answer to an acquire, and the gate behind it, say.
 */
#include "electors/postgres_parts.h"

#include <inttypes.h>
#include <string.h>

enum {
    POLL_MOST = 1000 /* ms between two tries, besides hints */
};

/* ---------------------------------------------------------------- acquire */

/* Nobody tells when a lock falls free: look now and then, not all at once. */
coord_ms coord__postgres_poll_in(struct coord__postgres_elector *e)
{
    const coord_ms most = coord_ms_min(POLL_MOST, coord_backend_lease(e->base) / 3);
    e->random = e->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return most - (e->random >> 33) % (most / 4 + 1);
}

static void observe_row(const PGresult *rows, struct coord_observation *out)
{
    memset(out, 0, sizeof *out);
    out->remaining = COORD_NEVER; /* renewals write nothing, so nobody else can know */
    out->last_fence = coord__postgres_read(rows, 0, COORD__ACQUIRE_ROW_FENCE);
    if (coord__postgres_yes(rows, 0, COORD__ACQUIRE_KNOWN) &&
        !coord__postgres_yes(rows, 0, COORD__ACQUIRE_RESIGNED)) {
        const bool owes = coord__postgres_read(rows, 0, COORD__ACQUIRE_DEBT) > 0;
        out->leading = !owes;
        out->taking_over = owes;
        out->fence = out->last_fence;
        out->since_us = coord__postgres_read(rows, 0, COORD__ACQUIRE_SINCE_US);
        coord__postgres_copy_text(rows, COORD__ACQUIRE_IDENTITY, out->identity);
        coord__postgres_copy_metadata(rows, COORD__ACQUIRE_METADATA, out);
    }
}

/* The lock was free, and yet the row was not given: one of the conditions of the update. */
static void refused(struct coord__postgres_elector *e, const PGresult *rows,
                    struct coord_reply *reply)
{
    struct coord_error *error = &reply->error;
    const uint64_t stored = coord__postgres_read(rows, 0, COORD__ACQUIRE_ROW_FENCE);
    reply->outcome = COORD_FAILED;
    if (coord__postgres_read(rows, 0, COORD__ACQUIRE_FORMAT) > COORD__POSTGRES_FORMAT) {
        coord_error_set(error, COORD_E_NEWER_FORMAT,
                        "the row of this election was written by a newer version of coord: "
                        "upgrade this process");
    } else if (!coord__postgres_yes(rows, 0, COORD__ACQUIRE_KEY_MATCHES)) {
        coord_error_set(error, COORD_E_KEY_COLLISION,
                        "coord.term has this name under another lock (key): every member must make "
                        "the key in the same way; delete the row if nobody leads");
    } else if (strcmp(coord__postgres_text(rows, 0, COORD__ACQUIRE_TAKEOVER),
                      e->fast ? "fast" : "safe") != 0) {
        coord_error_set(error, COORD_E_TAKEOVER_MISMATCH,
                        "this election is coord.takeover=%s: ask for the same, or change it for "
                        "all with `coordctl init --name NAME --takeover` while nobody leads",
                        coord__postgres_text(rows, 0, COORD__ACQUIRE_TAKEOVER));
    } else if (coord__postgres_yes(rows, 0, COORD__ACQUIRE_SAME_RUN) && e->request.seen > stored) {
        coord_error_set(error, COORD_E_STALE_SERVER,
                        "this server knows fences up to %" PRIu64 ", but %" PRIu64
                        " was seen: it is an old primary or an old copy; connect to the present "
                        "one, or shut it down",
                        stored, e->request.seen);
    } else {
        reply->outcome = COORD_RESERVED;
        reply->retry_in = coord__postgres_read(rows, 0, COORD__ACQUIRE_RESERVED_MS);
    }
}

static void not_granted(struct coord__postgres_elector *e, const PGresult *rows, coord_ms now)
{
    struct coord_observation leader;
    struct coord_reply reply = {.outcome = COORD_HELD, .leader = &leader};
    observe_row(rows, &leader);
    if (!coord__postgres_yes(rows, 0, COORD__ACQUIRE_WON)) {
        reply.retry_in = coord__postgres_poll_in(e);
    } else {
        refused(e, rows, &reply);
    }
    if (reply.outcome == COORD_RESERVED) {
        coord__postgres_copy_text(rows, COORD__ACQUIRE_SUCCESSOR, leader.identity);
    } else if (reply.outcome == COORD_FAILED) {
        reply.leader = NULL;
    }
    coord__postgres_finish(e, &reply, now);
}

void coord__postgres_grant(struct coord__postgres_elector *e, coord_ms now)
{
    struct coord_reply reply = e->grant;
    if (!e->gate_passed) {
        /* Clear, but guarded work of an earlier term is still open. */
        reply.owed = coord_ms_max(reply.owed, coord__postgres_slice_pause(e));
        reply.error = e->blocked;
    }
    coord__postgres_finish(e, &reply, now);
}

static void granted(struct coord__postgres_elector *e, const struct coord__postgres_job *job,
                    const PGresult *rows, coord_ms now)
{
    e->held = true;
    e->fence = coord__postgres_read(rows, 0, COORD__ACQUIRE_FENCE);
    e->debt = coord__postgres_read(rows, 0, COORD__ACQUIRE_OWED);
    coord__postgres_proved(e, job->sent);
    e->gate_passed = false;
    e->gate_since = now;
    e->gate_at = now;
    e->blocked.code = COORD_OK;
    e->release_failures = 0;
    if (!coord__postgres_is_current(e, job)) {
        e->unlock_due = true; /* given up long ago; the debt stays in the row */
        return;
    }
    e->grant = (struct coord_reply){.outcome = COORD_GRANTED,
                                    .fence = e->fence,
                                    .owed = COORD__RULE(waits_from_the_answer, e->debt)};
    e->granted = true;
    if (e->debt > 0) {
        coord__postgres_grant(e, now); /* it waits anyway */
    }
}

void coord__postgres_acquired(struct coord__postgres_elector *e,
                              const struct coord__postgres_job *job,
                              const struct coord__postgres_reply *reply, coord_ms now)
{
    if (reply->rows == NULL) {
        /* A COMMIT that failed leaves the session's lock. */
        e->unlock_due = COORD__RULE(an_error_is_unlocked, true);
        if (coord__postgres_is_current(e, job)) {
            coord__postgres_fail(e, COORD_FAILED, &reply->error, now);
        }
    } else if (coord__postgres_yes(reply->rows, 0, COORD__ACQUIRE_HELD)) {
        granted(e, job, reply->rows, now);
    } else if (coord__postgres_is_current(e, job)) {
        not_granted(e, reply->rows, now);
    }
}

void coord__postgres_gate_answered(struct coord__postgres_elector *e,
                                   const struct coord__postgres_reply *reply, coord_ms now)
{
    e->gate_flying = false;
    if (!e->held) {
        return;
    }
    e->gate_passed =
        COORD__RULE(passes_the_gate, reply->rows != NULL && PQntuples(reply->rows) == 1);
    e->gate_at = coord_ms_add(now, coord__postgres_slice_pause(e));
    if (e->gate_passed) {
        e->blocked.code = COORD_OK;
    } else if (e->debt == 0 || now >= coord_ms_add(e->gate_since, coord_backend_lease(e->base))) {
        /* Nothing else is waited for: find out whose it is. */
        e->blockers_due = e->blocked.code == COORD_OK;
    }
    if (e->granted && !e->blockers_due) {
        coord__postgres_grant(e, now);
    }
}

void coord__postgres_blockers_answered(struct coord__postgres_elector *e,
                                       const struct coord__postgres_reply *reply, coord_ms now)
{
    if (reply->rows != NULL && PQntuples(reply->rows) > 0) {
        coord_error_set(
            &e->blocked, COORD_E_BLOCKED_BY_FENCED_WORK,
            "waits for guarded work of an earlier term, which is still open in the "
            "server's process %s (%.100s, %s): end it, or pg_terminate_backend(%s)",
            coord__postgres_text(reply->rows, 0, 0), coord__postgres_text(reply->rows, 0, 1),
            coord__postgres_text(reply->rows, 0, 2), coord__postgres_text(reply->rows, 0, 0));
    }
    if (e->granted) {
        coord__postgres_grant(e, now);
    }
}
