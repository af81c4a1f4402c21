/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_driver.c - a backend that sends what electors/postgres*.c sends, when they
 * send it, and makes of the answers what they make of them. One election on its session.
 */
#include "tests/sim/postgres_driver.h"

#include <inttypes.h>
#include <string.h>

enum {
    CONNECT_LEAST = 1000, /* ms */
    BACKOFF_FIRST = 50,   /* ms */
    BACKOFF_CAP = 1000    /* ms */
};

static bool is_open(const struct sim_pg_state *e)
{
    return sim_pg_world(e)->pg.links[e->process->index].open;
}

/* ---------------------------------------------------------------- sending */

static void send(struct sim_pg_state *e, enum sim_pg_sql sql, coord_ms now)
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
                                     .attempt = sim_pg_attempt(e),
                                     .reserve = e->request.reserve};
    COORD_ASSERT(e->job_count < SIM_PG_FLYING);
    e->jobs[e->job_count++] = (struct sim_pg_job){.sql = sql, .id = e->request.id, .sent = now};
    e->last_sent = now;
    sim_pg_send(e->process, &call);
}

static bool send_unlock(struct sim_pg_state *e, coord_ms now)
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

static bool send_renewal(struct sim_pg_state *e, bool all, coord_ms now)
{
    const bool asked = e->phase == SIM_PG_ASKED && e->request.verb == COORD_VERB_RENEW &&
                       !(e->request.led && e->debt > 0 && e->gate_passed);
    if (asked) {
        e->phase = SIM_PG_SENT;
    }
    if (asked || (all && e->held)) {
        send(e, SIM_PG_RENEW, now);
        return true;
    }
    return false;
}

static void send_gate(struct sim_pg_state *e, coord_ms now)
{
    e->gate_flying = true;
    send(e, SIM_PG_GATE, now);
}

static void send_acquire(struct sim_pg_state *e, coord_ms now)
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

static bool undo(struct sim_pg_state *e, bool locked, coord_ms now)
{
    if (!locked) {
        sim_pg_reply(e, COORD_DONE, now);
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

static bool send_request(struct sim_pg_state *e, coord_ms now)
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
    e->phase = SIM_PG_SENT;
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

static coord_ms grant_at(const struct sim_pg_state *e)
{
    return e->granted ? e->request.sent + sim_pg_attempt(e) / 4 * 3 : COORD_NEVER;
}

static coord_ms ping_at(const struct sim_pg_state *e)
{
    return e->held ? coord_ms_add(e->last_sent, coord_backend_lease(e->base) / 2) : COORD_NEVER;
}

static void work(struct sim_pg_state *e, coord_ms now)
{
    if (now >= grant_at(e)) {
        sim_pg_grant(e, now);
    }
    if (!e->ready || e->job_count > 0 || !is_open(e)) {
        return;
    }
    if (send_unlock(e, now) || send_renewal(e, false, now)) {
        return;
    }
    if (e->phase == SIM_PG_ASKED && send_request(e, now)) {
        return;
    }
    if (e->held && !e->gate_passed && !e->gate_flying && now >= e->gate_at) {
        send_gate(e, now);
    } else if (e->job_count == 0 && now >= ping_at(e)) {
        send_renewal(e, true, now);
    }
}

/* ---------------------------------------------------------------- the end of a session */

static void answer_lost(struct sim_pg_state *e, coord_ms now)
{
    const bool sent = e->phase == SIM_PG_SENT;
    switch (e->request.verb) {
    case COORD_VERB_RENEW:
        e->phase = SIM_PG_SENT;
        sim_pg_reply(e, COORD_FAILED, now);
        break;
    case COORD_VERB_UNDO:
        e->phase = SIM_PG_SENT;
        sim_pg_reply(e, COORD_DONE, now);
        break;
    case COORD_VERB_ACQUIRE:
    case COORD_VERB_OBSERVE:
        if (sent) {
            sim_pg_reply(e, COORD_FAILED, now); /* whatever it took went with the session */
        }
        break;
    case COORD_VERB_RELEASE:
    case COORD_VERB_ASK:
    case COORD_VERB_INIT:
        if (sent) {
            sim_pg_reply(e, COORD_UNKNOWN, now);
        }
        break;
    case COORD_VERB_NONE:
        break;
    }
}

static void all_lost(struct sim_pg_state *e, coord_ms now)
{
    const struct coord_error why = {.code = COORD_E_UNREACHABLE};
    const bool held = e->held;
    sim_pg_forget_term(e);
    e->gate_flying = false;
    e->unlock_due = false;
    e->unlock_flying = false;
    e->granted = false;
    if (held) {
        e->touched = true;
        SIM_TRACE(sim_pg_world(e), "p%u has lost its session", e->process->index);
        coord_backend_lost(e->base, &why, now);
    }
    if (e->phase != SIM_PG_AT_REST) {
        answer_lost(e, now);
    }
}

static void all_failed(struct sim_pg_state *e, coord_ms now)
{
    if (e->phase == SIM_PG_ASKED) {
        e->phase = SIM_PG_SENT;
        sim_pg_reply(e, COORD_FAILED, now);
    }
}

static void closed(struct sim_pg_state *e, coord_ms now)
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
static coord_ms silent_at(const struct sim_pg_state *e)
{
    if (e->job_count == 0) {
        return COORD_NEVER;
    }
    const coord_ms attempt = sim_pg_attempt(e);
    const coord_ms patience =
        coord_ms_add(e->jobs[0].sent, e->ready ? attempt : coord_ms_max(attempt, CONNECT_LEAST));
    return e->held ? coord_ms_max(patience, sim_pg_hard(e)) : patience;
}

static coord_ms idle_at(const struct sim_pg_state *e)
{
    const bool wanted = e->phase != SIM_PG_AT_REST || e->held || e->unlock_due || e->unlock_flying;
    if (!e->ready || e->job_count > 0 || wanted) {
        return COORD_NEVER;
    }
    return coord_ms_add(e->last_sent, coord_backend_lease(e->base) / 4 * 3);
}

static void connect_if_wanted(struct sim_pg_state *e, coord_ms now)
{
    if (is_open(e) || e->phase != SIM_PG_ASKED) {
        return;
    }
    if (now < e->retry_at) {
        all_failed(e, now);
        return;
    }
    sim_pg_open(e->process);
    send(e, SIM_PG_SETUP, now);
}

static void read_answers(struct sim_pg_state *e, coord_ms now)
{
    struct sim_pg_answer got;
    while (sim_pg_receive(e->process, &got)) {
        if (got.kind == SIM_PG_GONE) {
            closed(e, now);
            return;
        }
        COORD_ASSERT(e->job_count > 0);
        const struct sim_pg_job job = e->jobs[0];
        COORD_ASSERT(job.sql == got.sql);
        e->job_count--;
        memmove(e->jobs, e->jobs + 1, e->job_count * sizeof e->jobs[0]);
        sim_pg_answer_job(e, &job, &got, now);
    }
}

/* ---------------------------------------------------------------- the backend */

static void process_postgres(struct coord_elector *elector, coord_ms now)
{
    struct sim_pg_state *e = coord_backend_state(elector);
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
    struct sim_pg_state *e = coord_backend_state(elector);
    COORD_ASSERT(e->phase == SIM_PG_AT_REST);
    e->request = *asked;
    e->successor = asked->successor != NULL ? (uint8_t)(asked->successor[1] - '0') : SIM_PG_NOBODY;
    e->phase = SIM_PG_ASKED;
    e->touched = true;
    if (asked->verb == COORD_VERB_RELEASE && asked->fence != e->fence) {
        e->release_failures = 0;
    }
    SIM_TRACE(sim_pg_world(e), "p%u asks %u #%" PRIu64 " fence %" PRIu64 " led %d",
              e->process->index, (unsigned)asked->verb, asked->id, asked->fence, asked->led);
    (void)now;
}

static void abandon(struct coord_elector *elector, coord_ms now)
{
    struct sim_pg_state *e = coord_backend_state(elector);
    if (e->granted) {
        e->granted = false;
        e->unlock_due = true;
    }
    if (e->request.verb == COORD_VERB_UNDO && e->held) {
        e->unlock_due = true;
    }
    e->phase = SIM_PG_AT_REST;
    (void)now;
}

static coord_ms deadline(struct coord_elector *elector)
{
    const struct sim_pg_state *e = coord_backend_state(elector);
    const struct sim_pg_link *link = &sim_pg_world(e)->pg.links[e->process->index];
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
    struct sim_pg_state *e = coord_backend_state(elector);
    (void)error;
    e->process = config->backend_ctx;
    e->base = elector;
    e->unlock_at = COORD_NEVER;
    return COORD_OK;
}

/* The kernel closes the connection; the server hears of it behind what was sent before. */
static void fini(struct coord_elector *elector, bool forked)
{
    struct sim_pg_state *e = coord_backend_state(elector);
    (void)forked;
    sim_pg_close(e->process, e->process->owner);
}

const struct coord_backend_ops sim_postgres_ops = {
    .size = sizeof(struct coord_backend_ops),
    .abi = COORD_BACKEND_ABI,
    .name = "postgres",
    .state_bytes = sizeof(struct sim_pg_state),
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
