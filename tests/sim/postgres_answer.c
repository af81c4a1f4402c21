/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_answer.c - what the answers of the simulated PostgreSQL do, as
 * electors/postgres_grant.c and electors/postgres_answer.c have it.
 */
#include "tests/sim/postgres_driver.h"

#include <inttypes.h>
#include <string.h>

enum {
    POLL_MOST = 1000 /* ms */
};

/* ---------------------------------------------------------------- replies */

static void reply(struct sim_pg_state *e, struct coord_reply *reply, coord_ms now)
{
    COORD_ASSERT(e->phase == SIM_PG_SENT);
    reply->id = e->request.id;
    e->phase = SIM_PG_AT_REST;
    e->granted = false;
    e->touched = true;
    SIM_TRACE(sim_pg_world(e), "p%u #%" PRIu64 ": %d fence %" PRIu64 " owed %" PRId64,
              e->process->index, reply->id, (int)reply->outcome, reply->fence,
              (int64_t)reply->owed);
    coord_backend_reply(e->base, reply, now);
}

void sim_pg_reply(struct sim_pg_state *e, enum coord_outcome outcome, coord_ms now)
{
    struct coord_reply plain = {.outcome = outcome};
    if (outcome == COORD_FAILED || outcome == COORD_UNKNOWN || outcome == COORD_LOST) {
        plain.error.code = COORD_E_UNREACHABLE;
    }
    reply(e, &plain, now);
}

static bool is_current(const struct sim_pg_state *e, const struct sim_pg_job *job)
{
    return e->phase == SIM_PG_SENT && e->request.id == job->id;
}

static coord_ms poll_in(const struct sim_pg_state *e)
{
    const coord_ms most = coord_ms_min(POLL_MOST, coord_backend_lease(e->base) / 3);
    return most - sim_below(&sim_pg_world(e)->random, most / 4 + 1);
}

/* The lock is let go when the term has ended by its own clock: its host may hang for ever. */
static void prove(struct sim_pg_state *e, coord_ms sent)
{
    e->proved = sent;
    e->unlock_at = sim_planted(SIM_PLANT_PG_HELD_FOR_EVER) ? COORD_NEVER : sim_pg_hard(e);
}

void sim_pg_forget_term(struct sim_pg_state *e)
{
    e->held = false;
    e->gate_passed = false;
    e->unlock_at = COORD_NEVER;
}

void sim_pg_grant(struct sim_pg_state *e, coord_ms now)
{
    struct coord_reply grant = e->grant;
    if (!e->gate_passed) {
        grant.owed = coord_ms_max(grant.owed, sim_pg_slice(e));
    }
    reply(e, &grant, now);
}

/* ---------------------------------------------------------------- answers */

static void granted(struct sim_pg_state *e, const struct sim_pg_job *job,
                    const struct sim_pg_answer *got, coord_ms now)
{
    e->held = true;
    e->fence = got->fence;
    e->debt = got->debt;
    prove(e, job->sent);
    e->gate_passed = sim_planted(SIM_PLANT_PG_NO_GATE) ||
                     (sim_planted(SIM_PLANT_PG_GATE_FIRST) && e->gate_passed);
    e->gate_at = now;
    e->release_failures = 0;
    if (!is_current(e, job)) {
        e->unlock_due = true; /* given up long ago; the debt stays in the row */
        return;
    }
    e->grant = (struct coord_reply){.outcome = COORD_GRANTED, .fence = e->fence, .owed = e->debt};
    if (sim_planted(SIM_PLANT_PG_WAIT_FROM_SENDING)) {
        e->grant.owed = coord_ms_sub(e->debt, now - job->sent);
    }
    e->granted = true;
    if (e->debt > 0 || e->gate_passed) {
        sim_pg_grant(e, now);
    }
}

static void fill_leader(const struct sim_pg_row *row, struct coord_observation *leader)
{
    const bool there = row->present && !row->resigned;
    leader->leading = there && row->debt == 0;
    leader->taking_over = there && row->debt > 0;
    leader->identity[0] = '\0';
    if (there) {
        memcpy(leader->identity, sim_pg_identity(row->identity), 3);
    }
    leader->fence = there ? row->fence : 0;
    leader->last_fence = row->fence;
    leader->remaining = COORD_NEVER;
}

static void not_granted(struct sim_pg_state *e, const struct sim_pg_answer *got, coord_ms now)
{
    static struct coord_observation leader; /* borrowed by the machine for the call */
    struct coord_reply held = {.outcome = COORD_HELD, .leader = &leader};
    fill_leader(&got->row, &leader);
    if (!got->won) {
        held.retry_in = poll_in(e);
    } else if (got->row.run == e->run && e->request.seen > got->row.fence) {
        held.outcome = COORD_FAILED;
        held.error.code = COORD_E_STALE_SERVER;
        held.leader = NULL;
    } else {
        held.outcome = COORD_RESERVED;
        held.retry_in = got->reserved_ms;
    }
    reply(e, &held, now);
}

static void acquired(struct sim_pg_state *e, const struct sim_pg_job *job,
                     const struct sim_pg_answer *got, coord_ms now)
{
    if (got->kind == SIM_PG_ERROR) {
        /* A COMMIT that failed leaves the session's lock. */
        e->unlock_due = !sim_planted(SIM_PLANT_PG_ERROR_KEEPS);
        if (is_current(e, job)) {
            sim_pg_reply(e, COORD_FAILED, now);
        }
    } else if (got->held) {
        granted(e, job, got, now);
    } else if (is_current(e, job)) {
        not_granted(e, got, now);
    }
}

static void gate_answered(struct sim_pg_state *e, const struct sim_pg_answer *got, coord_ms now)
{
    e->gate_flying = false;
    if (!e->held && !sim_planted(SIM_PLANT_PG_GATE_FIRST)) {
        return;
    }
    e->gate_passed = got->kind == SIM_PG_ROWS && got->done;
    e->gate_at = coord_ms_add(now, sim_pg_slice(e));
    if (e->granted) {
        sim_pg_grant(e, now);
    }
}

/* The lock is kept until the term has ended by its own clock: whatever replaced the row may call
 * itself clear. */
static void lost(struct sim_pg_state *e, coord_ms now)
{
    prove(e, e->proved);
    sim_pg_reply(e, COORD_LOST, now);
}

static void renewed(struct sim_pg_state *e, bool struck, const struct sim_pg_answer *got,
                    coord_ms now)
{
    struct coord_reply yes = {.outcome = COORD_RENEWED, .owed = COORD_NEVER};
    prove(e, coord_ms_max(e->proved, e->request.sent));
    if (e->request.led) {
        yes.owed = struck ? 0 : sim_pg_slice(e);
    }
    yes.asked = got->kind == SIM_PG_ROWS && got->asked;
    yes.asked_for =
        yes.asked && got->row.ask_for != SIM_PG_NOBODY ? sim_pg_identity(got->row.ask_for) : NULL;
    reply(e, &yes, now);
}

static bool is_ours(const struct sim_pg_state *e, const struct sim_pg_row *row)
{
    return row->present && row->fence == e->request.fence && row->owner == e->process->owner &&
           row->pid == e->pid && !row->resigned;
}

static void renewal_answered(struct sim_pg_state *e, const struct sim_pg_answer *got, coord_ms now)
{
    if (e->phase != SIM_PG_SENT || e->request.verb != COORD_VERB_RENEW) {
        return;
    }
    if (got->kind == SIM_PG_ERROR) {
        renewed(e, false, got, now); /* the session lives, and with it the lock */
    } else if (!is_ours(e, &got->row)) {
        lost(e, now);
    } else {
        renewed(e, e->gate_passed && e->debt == 0, got, now);
    }
}

static void struck(struct sim_pg_state *e, const struct sim_pg_job *job,
                   const struct sim_pg_answer *got, coord_ms now)
{
    const bool current = is_current(e, job);
    if (got->kind == SIM_PG_ROWS && got->done) {
        e->debt = 0;
        if (current) {
            renewed(e, true, got, now);
        }
    } else if (current && got->kind == SIM_PG_ERROR) {
        renewed(e, false, got, now);
    } else if (current) {
        lost(e, now);
    }
}

static void released(struct sim_pg_state *e, const struct sim_pg_job *job,
                     const struct sim_pg_answer *got, coord_ms now)
{
    const bool failed = got->kind == SIM_PG_ERROR;
    if (failed && ++e->release_failures >= 2) {
        e->unlock_due = true; /* without the mark: the successor waits a lease */
    } else if (!failed) {
        sim_pg_forget_term(e);
    }
    if (!is_current(e, job)) {
        e->unlock_due = e->unlock_due || e->held;
    } else {
        sim_pg_reply(e, failed ? COORD_FAILED : COORD_DONE, now);
    }
}

static void unlocked(struct sim_pg_state *e, const struct sim_pg_answer *got, coord_ms now)
{
    e->unlock_flying = false;
    if (got->kind == SIM_PG_ERROR) {
        e->unlock_due = true; /* nothing may stay locked: again */
        return;
    }
    sim_pg_forget_term(e);
    if (e->phase == SIM_PG_SENT && e->request.verb == COORD_VERB_UNDO) {
        sim_pg_reply(e, COORD_DONE, now);
    }
}

static void observed(struct sim_pg_state *e, const struct sim_pg_answer *got, coord_ms now)
{
    static struct coord_observation leader;
    struct coord_reply seen = {.outcome = COORD_HELD, .leader = &leader};
    struct sim_pg_row row = got->row;
    const bool leads = got->held && got->lock_pid == row.pid && !row.resigned;
    row.resigned = !leads;
    fill_leader(&row, &leader);
    seen.retry_in = poll_in(e);
    if (!got->held && row.successor != SIM_PG_NOBODY) {
        seen.for_us = row.successor == e->process->index;
        seen.outcome = seen.for_us ? COORD_FREE : COORD_RESERVED;
        seen.retry_in = got->reserved_ms;
    } else if (!got->held) {
        seen.outcome = COORD_FREE;
    }
    reply(e, &seen, now);
}

static void question_answered(struct sim_pg_state *e, const struct sim_pg_job *job,
                              const struct sim_pg_answer *got, coord_ms now)
{
    if (!is_current(e, job)) {
        return;
    }
    if (got->kind == SIM_PG_ERROR) {
        sim_pg_reply(e, COORD_FAILED, now);
    } else if (job->sql == SIM_PG_OBSERVE) {
        observed(e, got, now);
    } else {
        sim_pg_reply(e, got->done ? COORD_DONE : COORD_NOBODY, now);
    }
}

void sim_pg_answer_job(struct sim_pg_state *e, const struct sim_pg_job *job,
                       const struct sim_pg_answer *got, coord_ms now)
{
    switch (job->sql) {
    case SIM_PG_SETUP:
        e->ready = true;
        e->failures = 0;
        e->pid = got->pid;
        e->run = got->run;
        break;
    case SIM_PG_ACQUIRE:
        acquired(e, job, got, now);
        break;
    case SIM_PG_GATE:
        gate_answered(e, got, now);
        break;
    case SIM_PG_RENEW:
        renewal_answered(e, got, now);
        break;
    case SIM_PG_STRIKE:
        struck(e, job, got, now);
        break;
    case SIM_PG_RELEASE:
        released(e, job, got, now);
        break;
    case SIM_PG_UNLOCK:
        unlocked(e, got, now);
        break;
    case SIM_PG_OBSERVE:
    case SIM_PG_ASK:
    case SIM_PG_CLOSE:
        question_answered(e, job, got, now);
        break;
    }
}
