/* SPDX-License-Identifier: MIT
 * electors/postgres_session.c - the one session of many elections: found, kept, ended.
 */
#include "electors/postgres.h"
#include "electors/postgres_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACKOFF_FIRST = 50,  /* ms, doubled with each failure */
    BACKOFF_CAP = 1000,  /* ms; candidates have their own above it */
    BACKOFF_FULL = 5000, /* ms, where the server has no room for one session more */
    GOOD_LIFE = 1000,    /* ms; a session that lived so long starts afresh */
    CONNECT_LEAST = 1000 /* ms for one address */
};

/* ---------------------------------------------------------------- who is in it */

static void find_least_lease(struct coord__postgres_session *session)
{
    coord_ms lease = COORD_NEVER;
    coord_ms attempt = COORD_NEVER;
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (coord_backend_lease(e->base) < lease) {
            lease = coord_backend_lease(e->base);
            attempt = coord_backend_attempt(e->base);
        }
    }
    if (lease != COORD_NEVER && lease != session->lease) {
        session->lease = lease;
        session->attempt = attempt;
        session->settings_due = true;
    }
}

static void replied(void *ctx, const struct coord__postgres_reply *reply, coord_ms now);
static void closed(void *ctx, const struct coord_error *why, coord_ms now);

static void free_session(struct coord_shared *shared, bool forked)
{
    struct coord__postgres_session *session = (struct coord__postgres_session *)shared;
    coord__postgres_listen_fini(session, forked);
    coord__postgres_free(session->link, forked);
    coord__postgres_target_free(session->target);
    free(session);
}

static enum coord_err make_session(const struct coord_elector_config *config, const char *key,
                                   bool pooler, struct coord__postgres_session **out,
                                   struct coord_error *error)
{
    struct coord__postgres_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    enum coord_err rc = coord__postgres_target_new(config->uri->rest, &session->target, error);
    if (rc == COORD_OK) {
        const struct coord__postgres_events events = {.ctx = session,
                                                      .opened = coord__postgres_setup_begin,
                                                      .replied = replied,
                                                      .closed = closed};
        session->link = coord__postgres_new(session->target, config->resolver, &events);
        if (session->link == NULL || !coord__postgres_listen_init(session, config->resolver)) {
            rc =
                coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
        }
    }
    if (rc != COORD_OK) {
        free_session(&session->shared, false);
        return rc;
    }
    memcpy(session->share_key, key, sizeof session->share_key);
    session->shared.key = session->share_key;
    session->shared.free = free_session;
    session->pooler = pooler;
    *out = session;
    return COORD_OK;
}

enum coord_err coord__postgres_session_join(struct coord__postgres_elector *elector,
                                            const struct coord_elector_config *config, bool pooler,
                                            struct coord_error *error)
{
    /* Shared by URI, of which only a hash is kept as the key: it may hold a password. */
    char key[COORD__POSTGRES_SHARE_KEY] = "";
    if (snprintf(key, sizeof key, "postgres %016" PRIx64 " %zu%s",
                 coord_postgres_key(config->uri->rest, strlen(config->uri->rest)),
                 strlen(config->uri->rest), pooler ? " pooler" : "") < 0) {
        return COORD_E_SYSTEM;
    }
    struct coord_shared *shared = coord_share_get(config->share, key);
    struct coord__postgres_session *session = (struct coord__postgres_session *)shared;
    if (session == NULL) {
        const enum coord_err rc = make_session(config, key, pooler, &session, error);
        if (rc != COORD_OK) {
            return rc;
        }
        COORD_ASSERT(session != NULL);
        coord_share_put(config->share, &session->shared);
    }
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (e->key == elector->key) {
            /* The lock re-enters: both would win. */
            coord_share_drop(config->share, &session->shared, false);
            return coord_error_set(error, COORD_E_DUPLICATE_ELECTION,
                                   "this process stands for %.150s already over this server: use "
                                   "the elector that it has, or another name",
                                   coord_backend_name(elector->base));
        }
    }
    elector->session = session;
    elector->share = config->share;
    elector->next = session->first;
    session->first = elector;
    session->driver = session->driver != NULL ? session->driver : elector;
    find_least_lease(session);
    return COORD_OK;
}

static void leave_lock_behind(struct coord__postgres_session *session, uint64_t key)
{
    if (session->orphan_count < COORD__POSTGRES_ORPHANS) {
        session->orphans[session->orphan_count++] = key;
    } else {
        session->overflow = true;
    }
}

void coord__postgres_session_leave(struct coord__postgres_elector *elector, bool forked)
{
    struct coord__postgres_session *session = elector->session;
    struct coord__postgres_elector **at = &session->first;
    while (*at != elector) {
        at = &(*at)->next;
    }
    *at = elector->next;
    coord__postgres_gather_leave(elector);
    session->cursor = NULL;
    for (unsigned i = 0; i < session->job_count; i++) {
        struct coord__postgres_job *job =
            &session->jobs[(session->first_job + i) % COORD__POSTGRES_FLYING_MAX];
        if (job->elector == elector) {
            job->elector = NULL;
        }
    }
    coord__postgres_listen_leave(elector);
    if (COORD__RULE(leaves_its_lock_to_the_session,
                    elector->held || elector->unlock_due || elector->unlock_flying)) {
        leave_lock_behind(session, elector->key);
    }
    find_least_lease(session);
    coord_share_drop(elector->share, &session->shared, forked);
}

/* ---------------------------------------------------------------- statements */

bool coord__postgres_session_send(struct coord__postgres_session *session,
                                  enum coord__postgres_sql sql,
                                  struct coord__postgres_elector *elector, int count,
                                  const char *const *values, coord_ms now)
{
    COORD_ASSERT(session->job_count < COORD__POSTGRES_FLYING_MAX);
    if (!coord__postgres_send(session->link, coord__postgres_sql(sql), count, values)) {
        return false;
    }
    const unsigned last = (session->first_job + session->job_count) % COORD__POSTGRES_FLYING_MAX;
    session->jobs[last] = (struct coord__postgres_job){
        .sql = sql,
        .elector = elector,
        .key = elector != NULL ? elector->key : 0,
        .id = elector != NULL ? elector->request.id : 0,
        .sent = now,
    };
    session->job_count++;
    session->last_sent = now;
    return true;
}

static void replied(void *ctx, const struct coord__postgres_reply *reply, coord_ms now)
{
    struct coord__postgres_session *session = ctx;
    COORD_ASSERT(session->job_count > 0);
    const struct coord__postgres_job job = session->jobs[session->first_job];
    session->first_job = (session->first_job + 1) % COORD__POSTGRES_FLYING_MAX;
    session->job_count--;
    switch (job.sql) {
    case COORD__POSTGRES_PROBE:
    case COORD__POSTGRES_PROBE_LESS:
    case COORD__POSTGRES_OPENING:
    case COORD__POSTGRES_SETTINGS:
        coord__postgres_setup_answered(session, job.sql, reply, now);
        break;
    case COORD__POSTGRES_ACQUIRE:
        if (job.elector == NULL) {
            if (COORD__RULE(lets_a_late_grant_go,
                            reply->rows == NULL ||
                                coord__postgres_yes(reply->rows, 0, COORD__ACQUIRE_HELD))) {
                leave_lock_behind(session, job.key);
            }
            break;
        }
        coord__postgres_answer(session, &job, reply, now);
        break;
    case COORD__POSTGRES_GATE:
    case COORD__POSTGRES_RENEW:
    case COORD__POSTGRES_RENEW_LOCKS:
    case COORD__POSTGRES_STRIKE:
    case COORD__POSTGRES_RELEASE:
    case COORD__POSTGRES_UNLOCK:
    case COORD__POSTGRES_OBSERVE:
    case COORD__POSTGRES_ASK:
    case COORD__POSTGRES_INIT:
    case COORD__POSTGRES_BLOCKERS:
    case COORD__POSTGRES_STATEMENTS:
        coord__postgres_answer(session, &job, reply, now);
        break;
    }
}

/* ---------------------------------------------------------------- its end */

static void back_off(struct coord__postgres_session *session, const struct coord_error *why,
                     coord_ms now)
{
    /* A server that is back is found within one look of a candidate (docs/guarantees.md#e7). */
    const coord_ms look = COORD__RULE(is_back_within_a_look, session->lease / 3);
    const bool full = why->code == COORD_E_SERVER_FULL;
    const coord_ms cap = full ? BACKOFF_FULL : coord_ms_min(BACKOFF_CAP, look);
    if (session->ready && coord_ms_sub(now, session->opened_at) >= GOOD_LIFE) {
        session->failures = 0;
    }
    const unsigned doublings = session->failures < 8 ? session->failures : 8;
    /* The first retry goes at once. */
    const coord_ms wait = session->failures == 0 ? 0 : (coord_ms)BACKOFF_FIRST << doublings;
    session->failures++;
    session->retry_at = coord_ms_add(now, coord_ms_min(wait, cap));
    session->why = *why;
}

static void closed(void *ctx, const struct coord_error *why, coord_ms now)
{
    struct coord__postgres_session *session = ctx;
    const bool was_ready = session->ready;
    struct coord_error left = {.code = COORD_OK};
    if (session->pooler && !was_ready && why->code == COORD_E_PROTOCOL) {
        coord_error_set(&left, COORD_E_UNREACHABLE,
                        "the pooler gave us a session with a former client's answers in it: "
                        "another one is asked for");
        why = &left;
    }
    session->job_count = 0;
    session->orphan_count = 0;
    session->orphans_flying = 0;
    session->overflow = false;
    back_off(session, why, now);
    session->ready = false;
    if (why->code == COORD_E_SERVER_FULL) {
        coord__postgres_listen_give_way(session, now);
    }
    /* A session that was set up a moment ago may be had again; one that never was, not just now. */
    coord__postgres_all_lost(session, why, now);
    if (!was_ready) {
        coord__postgres_all_failed(session, why, now);
    }
}

static void end(struct coord__postgres_session *session, const struct coord_error *why,
                coord_ms now)
{
    coord__postgres_close(session->link);
    closed(session, why, now);
}

/*
 * When a silent session is closed. Closing it ends every term that it holds, so silence is waited
 * out until the first of them has ended by itself.
 */
static coord_ms silent_at(const struct coord__postgres_session *session)
{
    if (session->job_count == 0) {
        return COORD_NEVER;
    }
    const coord_ms sent = session->jobs[session->first_job].sent;
    coord_ms hard = COORD_NEVER;
    for (const struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (e->held) {
            hard = coord_ms_min(hard, coord_timing_hard(&e->timing, e->proved));
        }
    }
    const coord_ms patience = coord_ms_add(
        sent, session->ready ? session->attempt : coord_ms_max(session->attempt, CONNECT_LEAST));
    return hard == COORD_NEVER ? patience : coord_ms_max(patience, hard);
}

static bool wanted(const struct coord__postgres_session *session)
{
    for (const struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (e->phase != COORD__POSTGRES_IDLE || e->held || e->unlock_due || e->unlock_flying) {
            return true;
        }
    }
    return session->orphan_count > 0;
}

/* Unused, it is given back before the server would end it with a line in its log. */
static coord_ms idle_at(const struct coord__postgres_session *session)
{
    if (!session->ready || session->job_count > 0 || wanted(session)) {
        return COORD_NEVER;
    }
    return coord_ms_add(session->last_sent, session->lease / 4 * 3);
}

static bool somebody_waits(const struct coord__postgres_session *session)
{
    for (const struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (e->phase == COORD__POSTGRES_WAITING) {
            return true;
        }
    }
    return false;
}

static void connect_if_wanted(struct coord__postgres_session *session, coord_ms now)
{
    if (!coord__postgres_is_closed(session->link) || !somebody_waits(session)) {
        return;
    }
    if (now < session->retry_at) {
        coord__postgres_all_failed(session, &session->why, now);
        return;
    }
    coord__postgres_open(session->link, coord_ms_max(session->attempt, CONNECT_LEAST), now);
    coord__postgres_process(session->link, now);
}

static coord_ms due_at(const struct coord__postgres_session *session)
{
    coord_ms at = coord_ms_min(coord__postgres_deadline(session->link), silent_at(session));
    at = coord_ms_min(at, idle_at(session));
    at = coord_ms_min(at, coord__postgres_work_at(session));
    return coord_ms_min(at, coord__postgres_listen_deadline(session));
}

void coord__postgres_session_process(struct coord__postgres_session *session, bool look,
                                     coord_ms now)
{
    session->looked_at = look ? now : session->looked_at;
    if (look || !coord__postgres_is_open(session->link)) {
        coord__postgres_process(session->link, now);
    }
    if (session->overflow || now >= silent_at(session)) {
        struct coord_error why;
        coord_error_set(&why, COORD_E_NO_ANSWER,
                        "PostgreSQL did not answer in time: the session is opened again");
        end(session, &why, now);
    }
    if (now >= idle_at(session)) {
        session->ready = false;
        session->failures = 0;
        coord__postgres_close(session->link);
    }
    connect_if_wanted(session, now);
    coord__postgres_work(session, now);
    coord__postgres_listen_process(session, look, now);
    session->due_at = due_at(session);
}
