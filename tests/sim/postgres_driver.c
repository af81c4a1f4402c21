/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_driver.c - a backend that sends what electors/postgres*.c sends, when they
 * send it, and makes of the answers what they make of them. One election on its session.
 */
#include "tests/sim/postgres.h"

#include <inttypes.h>
#include <string.h>

enum {
    FLYING = 4,
    CONNECT_LEAST = 1000, /* ms */
    BACKOFF_FIRST = 50,   /* ms */
    BACKOFF_CAP = 1000,   /* ms */
    POLL_MOST = 1000      /* ms */
};

enum phase { IDLE = 0, WAITING, SENT };

struct job {
    enum sim_pg_sql sql;
    uint64_t id;
    coord_ms sent;
};

struct pg_state {
    struct sim_process *process;
    struct coord_elector *base;
    enum phase phase;
    struct coord_request request;
    uint8_t successor;
    bool touched;

    bool held;
    uint64_t fence;
    coord_ms debt;
    coord_ms proved;
    bool gate_passed;
    bool gate_flying;
    coord_ms gate_at;
    bool granted;
    struct coord_reply grant;
    bool unlock_due;
    bool unlock_flying;
    coord_ms unlock_at;
    unsigned release_failures;

    bool ready;
    uint32_t pid;
    uint32_t run;
    struct job jobs[FLYING];
    unsigned job_count;
    coord_ms last_sent;
    coord_ms retry_at;
    unsigned failures;
};

static struct sim_world *world_of(const struct pg_state *e)
{
    return e->process->world;
}

static bool is_open(const struct pg_state *e)
{
    return world_of(e)->pg.links[e->process->index].open;
}

static coord_ms attempt_of(const struct pg_state *e)
{
    return coord_backend_attempt(e->base);
}

static coord_ms slice(const struct pg_state *e)
{
    return coord_ms_max(attempt_of(e) / 4, 1);
}

static coord_ms hard_of(const struct pg_state *e)
{
    return coord_timing_hard(e->process->timing, e->proved);
}

/* ---------------------------------------------------------------- replies */

static void reply(struct pg_state *e, struct coord_reply *reply, coord_ms now)
{
    COORD_ASSERT(e->phase == SENT);
    reply->id = e->request.id;
    e->phase = IDLE;
    e->granted = false;
    e->touched = true;
    SIM_TRACE(world_of(e), "p%u #%" PRIu64 ": %d fence %" PRIu64 " owed %" PRId64,
              e->process->index, reply->id, (int)reply->outcome, reply->fence,
              (int64_t)reply->owed);
    coord_backend_reply(e->base, reply, now);
}

static void reply_plain(struct pg_state *e, enum coord_outcome outcome, coord_ms now)
{
    struct coord_reply plain = {.outcome = outcome};
    if (outcome == COORD_FAILED || outcome == COORD_UNKNOWN || outcome == COORD_LOST) {
        plain.error.code = COORD_E_UNREACHABLE;
    }
    reply(e, &plain, now);
}

static bool is_current(const struct pg_state *e, const struct job *job)
{
    return e->phase == SENT && e->request.id == job->id;
}

static coord_ms poll_in(const struct pg_state *e)
{
    const coord_ms most = coord_ms_min(POLL_MOST, coord_backend_lease(e->base) / 3);
    return most - sim_below(&world_of(e)->random, most / 4 + 1);
}

/* The lock is let go when the term has ended by its own clock: its host may hang for ever. */
static void prove(struct pg_state *e, coord_ms sent)
{
    e->proved = sent;
    e->unlock_at = sim_planted(SIM_PLANT_PG_HELD_FOR_EVER) ? COORD_NEVER : hard_of(e);
}

static void forget_term(struct pg_state *e)
{
    e->held = false;
    e->gate_passed = false;
    e->unlock_at = COORD_NEVER;
}

/* ---------------------------------------------------------------- sending */

static void send(struct pg_state *e, enum sim_pg_sql sql, coord_ms now)
{
    const struct sim_pg_call call = {.sql = sql,
                                     .id = e->request.id,
                                     .owner = e->process->owner,
                                     .run = e->run,
                                     .identity = e->process->index,
                                     .successor = e->successor,
                                     .unlocks = e->held,
                                     .fence = e->request.fence,
                                     .seen = e->request.seen,
                                     .lease = coord_backend_lease(e->base),
                                     .attempt = attempt_of(e),
                                     .reserve = e->request.reserve};
    COORD_ASSERT(e->job_count < FLYING);
    e->jobs[e->job_count++] = (struct job){.sql = sql, .id = e->request.id, .sent = now};
    e->last_sent = now;
    sim_pg_send(e->process, &call);
}

static bool send_unlock(struct pg_state *e, coord_ms now)
{
    if (!e->unlock_due && now < e->unlock_at) {
        return false;
    }
    e->unlock_due = false;
    e->unlock_at = COORD_NEVER;
    e->unlock_flying = true;
    send(e, SIM_PG_UNLOCK, now);
    return true;
}

static bool send_renewal(struct pg_state *e, bool all, coord_ms now)
{
    const bool asked = e->phase == WAITING && e->request.verb == COORD_VERB_RENEW &&
                       !(e->request.led && e->debt > 0 && e->gate_passed);
    if (asked) {
        e->phase = SENT;
    }
    if (asked || (all && e->held)) {
        send(e, SIM_PG_RENEW, now);
        return true;
    }
    return false;
}

static void send_gate(struct pg_state *e, coord_ms now)
{
    e->gate_flying = true;
    send(e, SIM_PG_GATE, now);
}

static void send_acquire(struct pg_state *e, coord_ms now)
{
    const bool gate_first = sim_planted(SIM_PLANT_PG_GATE_FIRST);
    if (gate_first) {
        send_gate(e, now);
    }
    send(e, SIM_PG_ACQUIRE, now);
    if (!gate_first && !sim_planted(SIM_PLANT_PG_NO_GATE)) {
        send_gate(e, now);
    }
}

static bool undo(struct pg_state *e, bool locked, coord_ms now)
{
    if (!locked) {
        reply_plain(e, COORD_DONE, now);
        return false;
    }
    if (sim_planted(SIM_PLANT_PG_RESIGNED_IN_WAIT) && e->held) {
        e->request.fence = e->fence;
        e->successor = SIM_PG_NOBODY;
        send(e, SIM_PG_RELEASE, now);
        return true;
    }
    e->unlock_due = true; /* its answer finishes this as well */
    return send_unlock(e, now);
}

static bool send_request(struct pg_state *e, coord_ms now)
{
    const bool locked = e->held || e->unlock_flying;
    static const enum sim_pg_sql sqls[] = {[COORD_VERB_ACQUIRE] = SIM_PG_ACQUIRE,
                                           [COORD_VERB_RENEW] = SIM_PG_STRIKE,
                                           [COORD_VERB_RELEASE] = SIM_PG_RELEASE,
                                           [COORD_VERB_OBSERVE] = SIM_PG_OBSERVE,
                                           [COORD_VERB_ASK] = SIM_PG_ASK};
    if (e->request.verb == COORD_VERB_ACQUIRE && (locked || e->unlock_at != COORD_NEVER)) {
        e->unlock_due = true; /* of a term that is over: the lock would re-enter */
        return send_unlock(e, now);
    }
    e->phase = SENT;
    if (e->request.verb == COORD_VERB_UNDO) {
        return undo(e, locked, now);
    }
    if (e->request.verb == COORD_VERB_ACQUIRE) {
        send_acquire(e, now);
    } else {
        send(e, sqls[e->request.verb], now);
    }
    return true;
}

static coord_ms grant_at(const struct pg_state *e)
{
    return e->granted ? e->request.sent + attempt_of(e) / 4 * 3 : COORD_NEVER;
}

static coord_ms ping_at(const struct pg_state *e)
{
    return e->held ? coord_ms_add(e->last_sent, coord_backend_lease(e->base) / 2) : COORD_NEVER;
}

static void give_grant(struct pg_state *e, coord_ms now)
{
    struct coord_reply grant = e->grant;
    if (!e->gate_passed) {
        grant.owed = coord_ms_max(grant.owed, slice(e));
    }
    reply(e, &grant, now);
}

static void work(struct pg_state *e, coord_ms now)
{
    if (now >= grant_at(e)) {
        give_grant(e, now);
    }
    if (!e->ready || e->job_count > 0 || !is_open(e)) {
        return;
    }
    if (send_unlock(e, now) || send_renewal(e, false, now)) {
        return;
    }
    if (e->phase == WAITING && send_request(e, now)) {
        return;
    }
    if (e->held && !e->gate_passed && !e->gate_flying && now >= e->gate_at) {
        send_gate(e, now);
    } else if (e->job_count == 0 && now >= ping_at(e)) {
        send_renewal(e, true, now);
    }
}

/* ---------------------------------------------------------------- answers */

static void granted(struct pg_state *e, const struct job *job, const struct sim_pg_answer *got,
                    coord_ms now)
{
    e->held = true;
    e->fence = got->fence;
    e->debt = got->debt;
    prove(e, job->sent);
    e->gate_passed =
        sim_planted(SIM_PLANT_PG_NO_GATE) || (sim_planted(SIM_PLANT_PG_GATE_FIRST) && e->gate_passed);
    e->gate_at = now;
    e->release_failures = 0;
    if (!is_current(e, job)) {
        e->unlock_due = true; /* given up long ago; the debt stays in the row */
        return;
    }
    e->grant = (struct coord_reply){
        .outcome = COORD_GRANTED, .fence = e->fence, .owed = e->debt};
    if (sim_planted(SIM_PLANT_PG_WAIT_FROM_SENDING)) {
        e->grant.owed = coord_ms_sub(e->debt, now - job->sent);
    }
    e->granted = true;
    if (e->debt > 0 || e->gate_passed) {
        give_grant(e, now);
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

static void not_granted(struct pg_state *e, const struct sim_pg_answer *got, coord_ms now)
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

static void acquired(struct pg_state *e, const struct job *job, const struct sim_pg_answer *got,
                     coord_ms now)
{
    if (got->kind == SIM_PG_ERROR) {
        /* A COMMIT that failed leaves the session's lock. */
        e->unlock_due = !sim_planted(SIM_PLANT_PG_ERROR_KEEPS);
        if (is_current(e, job)) {
            reply_plain(e, COORD_FAILED, now);
        }
    } else if (got->held) {
        granted(e, job, got, now);
    } else if (is_current(e, job)) {
        not_granted(e, got, now);
    }
}

static void gate_answered(struct pg_state *e, const struct sim_pg_answer *got, coord_ms now)
{
    e->gate_flying = false;
    if (!e->held && !sim_planted(SIM_PLANT_PG_GATE_FIRST)) {
        return;
    }
    e->gate_passed = got->kind == SIM_PG_ROWS && got->done;
    e->gate_at = coord_ms_add(now, slice(e));
    if (e->granted) {
        give_grant(e, now);
    }
}

/* The lock is kept until the term has ended by its own clock: whatever replaced the row may call
 * itself clear. */
static void lost(struct pg_state *e, coord_ms now)
{
    prove(e, e->proved);
    reply_plain(e, COORD_LOST, now);
}

static void renewed(struct pg_state *e, bool struck, const struct sim_pg_answer *got, coord_ms now)
{
    struct coord_reply yes = {.outcome = COORD_RENEWED, .owed = COORD_NEVER};
    prove(e, coord_ms_max(e->proved, e->request.sent));
    if (e->request.led) {
        yes.owed = struck ? 0 : slice(e);
    }
    yes.asked = got->kind == SIM_PG_ROWS && got->asked;
    yes.asked_for = yes.asked && got->row.ask_for != SIM_PG_NOBODY
                        ? sim_pg_identity(got->row.ask_for)
                        : NULL;
    reply(e, &yes, now);
}

static bool is_ours(const struct pg_state *e, const struct sim_pg_row *row)
{
    return row->present && row->fence == e->request.fence && row->owner == e->process->owner &&
           row->pid == e->pid && !row->resigned;
}

static void renewal_answered(struct pg_state *e, const struct sim_pg_answer *got, coord_ms now)
{
    if (e->phase != SENT || e->request.verb != COORD_VERB_RENEW) {
        return;
    }
    if (got->kind == SIM_PG_ERROR) {
        renewed(e, false, got, now); /* the session lives, and with it the lock */
    } else if (!is_ours(e, &got->row) && !sim_planted(SIM_PLANT_PG_ROW_UNREAD)) {
        lost(e, now);
    } else {
        renewed(e, e->gate_passed && e->debt == 0, got, now);
    }
}

static void struck(struct pg_state *e, const struct job *job, const struct sim_pg_answer *got,
                   coord_ms now)
{
    const bool current = is_current(e, job);
    if (got->kind == SIM_PG_ROWS && (got->done || sim_planted(SIM_PLANT_PG_ROW_UNREAD))) {
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

static void released(struct pg_state *e, const struct job *job, const struct sim_pg_answer *got,
                     coord_ms now)
{
    const bool failed = got->kind == SIM_PG_ERROR;
    if (failed && ++e->release_failures >= 2) {
        e->unlock_due = true; /* without the mark: the successor waits a lease */
    } else if (!failed) {
        forget_term(e);
    }
    if (!is_current(e, job)) {
        e->unlock_due = e->unlock_due || e->held;
    } else {
        reply_plain(e, failed ? COORD_FAILED : COORD_DONE, now);
    }
}

static void unlocked(struct pg_state *e, const struct sim_pg_answer *got, coord_ms now)
{
    e->unlock_flying = false;
    if (got->kind == SIM_PG_ERROR) {
        e->unlock_due = true; /* nothing may stay locked: again */
        return;
    }
    forget_term(e);
    if (e->phase == SENT && e->request.verb == COORD_VERB_UNDO) {
        reply_plain(e, COORD_DONE, now);
    }
}

static void observed(struct pg_state *e, const struct sim_pg_answer *got, coord_ms now)
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

static void question_answered(struct pg_state *e, const struct job *job,
                              const struct sim_pg_answer *got, coord_ms now)
{
    if (!is_current(e, job)) {
        return;
    }
    if (got->kind == SIM_PG_ERROR) {
        reply_plain(e, COORD_FAILED, now);
    } else if (job->sql == SIM_PG_OBSERVE) {
        observed(e, got, now);
    } else {
        reply_plain(e, got->done ? COORD_DONE : COORD_NOBODY, now);
    }
}

static void answer(struct pg_state *e, const struct job *job, const struct sim_pg_answer *got,
                   coord_ms now)
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

/* ---------------------------------------------------------------- the end of a session */

static void answer_lost(struct pg_state *e, coord_ms now)
{
    const bool sent = e->phase == SENT;
    switch (e->request.verb) {
    case COORD_VERB_RENEW:
        e->phase = SENT;
        reply_plain(e, COORD_FAILED, now);
        break;
    case COORD_VERB_UNDO:
        e->phase = SENT;
        reply_plain(e, COORD_DONE, now);
        break;
    case COORD_VERB_ACQUIRE:
    case COORD_VERB_OBSERVE:
        if (sent) {
            reply_plain(e, COORD_FAILED, now); /* whatever it took went with the session */
        }
        break;
    case COORD_VERB_RELEASE:
    case COORD_VERB_ASK:
    case COORD_VERB_INIT:
        if (sent) {
            reply_plain(e, COORD_UNKNOWN, now);
        }
        break;
    case COORD_VERB_NONE:
        break;
    }
}

static void all_lost(struct pg_state *e, coord_ms now)
{
    const struct coord_error why = {.code = COORD_E_UNREACHABLE};
    const bool held = e->held;
    forget_term(e);
    e->gate_flying = false;
    e->unlock_due = false;
    e->unlock_flying = false;
    e->granted = false;
    if (held) {
        e->touched = true;
        SIM_TRACE(world_of(e), "p%u has lost its session", e->process->index);
        coord_backend_lost(e->base, &why, now);
    }
    if (e->phase != IDLE) {
        answer_lost(e, now);
    }
}

static void all_failed(struct pg_state *e, coord_ms now)
{
    if (e->phase == WAITING) {
        e->phase = SENT;
        reply_plain(e, COORD_FAILED, now);
    }
}

static void closed(struct pg_state *e, coord_ms now)
{
    const bool was_ready = e->ready;
    const unsigned doublings = e->failures < 8 ? e->failures : 8;
    const coord_ms wait = e->failures == 0 ? 0 : (coord_ms)BACKOFF_FIRST << doublings;
    sim_pg_close(e->process, e->process->owner);
    e->ready = false;
    e->job_count = 0;
    e->failures++;
    e->retry_at = coord_ms_add(now, coord_ms_min(wait, BACKOFF_CAP));
    all_lost(e, now);
    if (!was_ready) {
        all_failed(e, now);
    }
}

/* Silence is waited out until the term has ended by itself: closing would end it. */
static coord_ms silent_at(const struct pg_state *e)
{
    if (e->job_count == 0) {
        return COORD_NEVER;
    }
    const coord_ms attempt = attempt_of(e);
    const coord_ms patience = coord_ms_add(
        e->jobs[0].sent, e->ready ? attempt : coord_ms_max(attempt, CONNECT_LEAST));
    return e->held ? coord_ms_max(patience, hard_of(e)) : patience;
}

static coord_ms idle_at(const struct pg_state *e)
{
    const bool wanted = e->phase != IDLE || e->held || e->unlock_due || e->unlock_flying;
    if (!e->ready || e->job_count > 0 || wanted) {
        return COORD_NEVER;
    }
    return coord_ms_add(e->last_sent, coord_backend_lease(e->base) / 4 * 3);
}

static void connect_if_wanted(struct pg_state *e, coord_ms now)
{
    if (is_open(e) || e->phase != WAITING) {
        return;
    }
    if (now < e->retry_at) {
        all_failed(e, now);
        return;
    }
    sim_pg_open(e->process);
    send(e, SIM_PG_SETUP, now);
}

static void read_answers(struct pg_state *e, coord_ms now)
{
    struct sim_pg_answer got;
    while (sim_pg_receive(e->process, &got)) {
        if (got.kind == SIM_PG_GONE) {
            closed(e, now);
            return;
        }
        COORD_ASSERT(e->job_count > 0);
        const struct job job = e->jobs[0];
        COORD_ASSERT(job.sql == got.sql);
        e->job_count--;
        memmove(e->jobs, e->jobs + 1, e->job_count * sizeof e->jobs[0]);
        answer(e, &job, &got, now);
    }
}

/* ---------------------------------------------------------------- the backend */

static void process_postgres(struct coord_elector *elector, coord_ms now)
{
    struct pg_state *e = coord_backend_state(elector);
    e->touched = false;
    if (e->process->wants_hint) {
        e->process->wants_hint = false;
        coord_backend_hint(elector, now);
    }
    read_answers(e, now);
    if (now >= silent_at(e)) {
        closed(e, now);
    }
    if (now >= idle_at(e)) {
        e->ready = false;
        sim_pg_close(e->process, e->process->owner);
    }
    connect_if_wanted(e, now);
    work(e, now);
    sim_pg_writer_begins(e->process);
}

static void request(struct coord_elector *elector, const struct coord_request *asked, coord_ms now)
{
    struct pg_state *e = coord_backend_state(elector);
    COORD_ASSERT(e->phase == IDLE);
    e->request = *asked;
    e->successor =
        asked->successor != NULL ? (uint8_t)(asked->successor[1] - '0') : SIM_PG_NOBODY;
    e->phase = WAITING;
    e->touched = true;
    if (asked->verb == COORD_VERB_RELEASE && asked->fence != e->fence) {
        e->release_failures = 0;
    }
    SIM_TRACE(world_of(e), "p%u asks %u #%" PRIu64 " fence %" PRIu64 " led %d", e->process->index,
              (unsigned)asked->verb, asked->id, asked->fence, asked->led);
    (void)now;
}

static void abandon(struct coord_elector *elector, coord_ms now)
{
    struct pg_state *e = coord_backend_state(elector);
    if (e->granted) {
        e->granted = false;
        e->unlock_due = true;
    }
    if (e->request.verb == COORD_VERB_UNDO && e->held) {
        e->unlock_due = true;
    }
    e->phase = IDLE;
    (void)now;
}

static coord_ms deadline(struct coord_elector *elector)
{
    const struct pg_state *e = coord_backend_state(elector);
    const struct sim_pg_link *link = &world_of(e)->pg.links[e->process->index];
    coord_ms at = coord_ms_min(coord_ms_min(silent_at(e), idle_at(e)), grant_at(e));
    if (e->touched || (link->open && link->count > 0)) {
        return 0;
    }
    if (e->ready && e->job_count == 0) {
        if (e->held && !e->gate_passed && !e->gate_flying) {
            at = coord_ms_min(at, e->gate_at);
        }
        at = coord_ms_min(at, e->unlock_due ? 0 : e->unlock_at);
        at = coord_ms_min(at, ping_at(e));
    }
    return at;
}

static size_t descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    (void)elector;
    (void)out;
    return 0;
}

static enum coord_err init(struct coord_elector *elector, const struct coord_elector_config *config,
                           struct coord_error *error)
{
    struct pg_state *e = coord_backend_state(elector);
    (void)error;
    e->process = config->backend_ctx;
    e->base = elector;
    e->unlock_at = COORD_NEVER;
    return COORD_OK;
}

/* The kernel closes the connection; the server hears of it behind what was sent before. */
static void fini(struct coord_elector *elector, bool forked)
{
    struct pg_state *e = coord_backend_state(elector);
    (void)forked;
    sim_pg_close(e->process, e->process->owner);
}

const struct coord_backend_ops sim_postgres_ops = {
    .size = sizeof(struct coord_backend_ops),
    .abi = COORD_BACKEND_ABI,
    .name = "postgres",
    .state_bytes = sizeof(struct pg_state),
    .default_ttl = 6000,
    .hint_jitter = 4,
    .init = init,
    .fini = fini,
    .request = request,
    .abandon = abandon,
    .process = process_postgres,
    .descriptors = descriptors,
    .deadline = deadline,
};
