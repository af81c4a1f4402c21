/* SPDX-License-Identifier: MIT
 * brokers/postgres_session.c - one session that listens and notifies, for all brokers of a loop.
 */
#include "brokers/postgres_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLYING = 12 /* messages at once; the rest is for the session's own statements */
};

static const struct coord__postgres_statement notify = {
    0, "coord_bus_notify",
    "select pg_catalog.pg_notify($1, p) from pg_catalog.unnest($2::pg_catalog.text[]) as p", 1,
    false};
static const struct coord__postgres_statement probe = {1, "coord_bus_probe", "select 1", 1, true};

/* ---------------------------------------------------------------- begin and end */

static void free_session(struct coord_shared *shared, bool forked)
{
    struct coord__bus_session *session = (struct coord__bus_session *)shared;
    coord__postgres_free(session->link, forked);
    coord__postgres_target_free(session->target);
    while (session->channels != NULL) {
        struct coord__bus_channel_state *c = session->channels;
        session->channels = c->next;
        coord__bus_free_channel(c);
    }
    free(session);
}

static enum coord_err make_session(const struct coord_broker_config *config, const char *key,
                                   struct coord__bus_session **out, struct coord_error *error)
{
    struct coord__bus_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    enum coord_err rc = coord__postgres_target_new(config->uri->rest, &session->target, error);
    if (rc == COORD_OK) {
        const struct coord__postgres_events events = coord__bus_events(session);
        session->link = coord__postgres_new(session->target, config->resolver, &events);
        if (session->link == NULL) {
            rc =
                coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
        }
    }
    if (rc != COORD_OK) {
        free_session(&session->shared, false);
        return rc;
    }
    memcpy(session->key, key, sizeof session->key);
    session->shared.key = session->key;
    session->shared.free = free_session;
    session->random = config->seed ^ (uint64_t)(uintptr_t)session;
    *out = session;
    return COORD_OK;
}

/* Only a hash of the URI is kept as the key: it may hold a password. */
static void write_key(const char *uri, bool pooler, char *out)
{
    char channel[COORD__BUS_CHANNEL];
    coord__bus_channel(uri, channel);
    snprintf(out, COORD__BUS_KEY, "%s %s", pooler ? "pooler" : "server", channel);
}

enum coord_err coord__bus_session_join(struct coord__bus_member *member,
                                       const struct coord_broker_config *config, bool pooler,
                                       struct coord_error *error)
{
    char key[COORD__BUS_KEY] = "";
    write_key(config->uri->rest, pooler, key);
    struct coord__bus_session *session =
        (struct coord__bus_session *)coord_share_get(config->share, key);
    if (session == NULL) {
        const enum coord_err rc = make_session(config, key, &session, error);
        if (rc != COORD_OK) {
            return rc;
        }
        coord_share_put(config->share, &session->shared);
    }
    session->pooler = pooler;
    session->attempt = coord_ms_max(session->attempt, config->attempt);
    member->session = session;
    member->share = config->share;
    member->next = session->first;
    session->first = member;
    return COORD_OK;
}

void coord__bus_session_leave(struct coord__bus_member *member, bool forked)
{
    struct coord__bus_session *session = member->session;
    struct coord__bus_member **at = &session->first;
    while (*at != member) {
        at = &(*at)->next;
    }
    *at = member->next;
    for (unsigned i = 0; i < session->job_count; i++) {
        struct coord__bus_job *job =
            &session->jobs[(session->first_job + i) % COORD__POSTGRES_FLYING_MAX];
        if (job->member == member) {
            job->member = NULL;
        }
    }
    coord__bus_session_count(session);
    coord_share_drop(member->share, &session->shared, forked);
}

/* ---------------------------------------------------------------- work */

enum coord_err coord__bus_session_send(struct coord__bus_member *member,
                                       const struct coord_broker_message *what, coord_ms now,
                                       struct coord_error *error)
{
    struct coord__bus_session *session = member->session;
    char channel[COORD__BUS_CHANNEL];
    const unsigned most = session->notified_once ? FLYING : 1;
    if (!session->ready || session->messages >= most || !coord__bus_has_room(session)) {
        return COORD_E_BUSY;
    }
    char *text =
        coord__bus_split(session->random ^ ++session->messages_sent, what->bytes, what->count);
    if (text == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    coord__bus_channel(what->topic, channel);
    const char *const values[] = {channel, text};
    const struct coord__bus_job job = {
        .kind = COORD__BUS_JOB_NOTIFY, .member = member, .sent = now};
    const bool sent = coord__bus_put_job(session, &job, &notify, 2, values);
    free(text);
    if (!sent) {
        return COORD_E_BUSY; /* the session has ended */
    }
    member->flying++;
    return COORD_OK;
}

static coord_ms silent_at(const struct coord__bus_session *session)
{
    return session->job_count > 0
               ? coord_ms_add(session->jobs[session->first_job].sent, session->attempt)
               : COORD_NEVER;
}

/* Who only listens asks now and then whether somebody is there. */
static coord_ms probe_at(const struct coord__bus_session *session)
{
    return session->ready && session->job_count == 0
               ? coord_ms_add(session->heard_at, session->attempt)
               : COORD_NEVER;
}

void coord__bus_session_process(struct coord__bus_session *session, coord_ms now)
{
    if (coord__postgres_is_closed(session->link) && now >= session->retry_at) {
        coord__postgres_open(session->link, session->attempt, now);
    }
    coord__postgres_process(session->link, now);
    if (now >= silent_at(session)) {
        struct coord_error why;
        coord_error_set(&why, COORD_E_NO_ANSWER,
                        "PostgreSQL did not answer in time: the session is opened again");
        coord__postgres_close(session->link);
        coord__bus_closed(session, &why, now);
    }
    coord__bus_tend_channels(session, now);
    if (now >= probe_at(session)) {
        const struct coord__bus_job job = {.kind = COORD__BUS_JOB_PROBE, .sent = now};
        COORD_IGNORE(!coord__bus_put_job(session, &job, &probe, 0, NULL),
                     "process() tells that it has ended");
    }
}

coord_ms coord__bus_session_deadline(const struct coord__bus_session *session)
{
    coord_ms at = coord__postgres_deadline(session->link);
    if (coord__postgres_is_closed(session->link)) {
        at = coord_ms_min(at, session->retry_at);
    }
    for (const struct coord__bus_channel_state *c = session->channels; c != NULL; c = c->next) {
        if (session->ready && coord__bus_wants_word(c) && coord__bus_has_room(session)) {
            at = coord_ms_min(at, session->word_at);
        }
    }
    return coord_ms_min(at, coord_ms_min(silent_at(session), probe_at(session)));
}

size_t coord__bus_session_descriptor(const struct coord__bus_session *session,
                                     struct coord_descriptor *out)
{
    return coord__postgres_descriptor(session->link, out);
}

bool coord__bus_session_is_up(const struct coord__bus_member *member)
{
    const struct coord__bus_session *session = member->session;
    const char *topic;
    bool up = session->ready && member->refused.code == COORD_OK;
    for (size_t i = 0; up && (topic = coord_broker_topic(member->broker, i)) != NULL; i++) {
        const struct coord__bus_channel_state *c = session->channels;
        while (c != NULL && strcmp(c->topic, topic) != 0) {
            c = c->next;
        }
        up = c != NULL && c->in_force;
    }
    return up;
}

const struct coord_error *coord__bus_session_trouble(const struct coord__bus_session *session)
{
    return &session->why;
}
