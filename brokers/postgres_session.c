/* SPDX-License-Identifier: MIT
 * brokers/postgres_session.c - one session that listens and notifies, for all brokers of a loop.
 */
#include "brokers/postgres_parts.h"

#include "connections/postgres.h"

#include <openssl/evp.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLYING = 12,        /* messages at once; the rest is for the session's own statements */
    RETRY_FIRST = 50,   /* ms, doubled with each failure */
    RETRY_CAP = 1000,   /* ms */
    RETRY_LONG = 10000, /* ms, where somebody has to change something first */
    DOUBLINGS = 6,
    KEY_BYTES = 64
};

enum job_kind {
    JOB_SET_UP,
    JOB_PROBE,
    JOB_LISTEN,
    JOB_UNLISTEN,
    JOB_NOTIFY
};

struct channel {
    struct channel *next;
    char name[COORD__BUS_CHANNEL];
    char topic[COORD_BROKER_TOPIC_MAX];
    size_t users;
    bool asked; /* a statement of it is unanswered: it must not be freed */
    bool in_force;
    char text[64]; /* of that statement */
    struct coord__postgres_statement statement;
    struct coord__bus_parts parts;
};

struct job {
    enum job_kind kind;
    struct coord__bus_member *member; /* NOTIFY; NULL: it is gone */
    struct channel *channel;          /* LISTEN, UNLISTEN */
    coord_ms sent;
};

struct coord__bus_session {
    struct coord_shared shared; /* first */
    char key[KEY_BYTES];
    struct coord__postgres_target *target;
    struct coord__postgres *link;
    struct coord__bus_member *first;
    struct channel *channels;
    bool pooler;
    bool ready;
    bool notified_once; /* in this session: only then is the statement surely prepared */
    struct job jobs[COORD__POSTGRES_FLYING_MAX]; /* a ring */
    unsigned first_job;
    unsigned job_count;
    unsigned messages; /* of them */
    uint64_t random;
    uint64_t messages_sent;
    coord_ms attempt;
    coord_ms heard_at;
    coord_ms retry_at;
    coord_ms word_at; /* a LISTEN was refused: not before */
    unsigned failures;
    struct coord_error why; /* it is not ready */
};

/*
 * What would end or delay a session that only listens is switched off. Notifications need no disk
 * and no standby: they do not outlive the server.
 */
static const struct coord__postgres_statement set_up = {
    0, NULL,
    "select pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(), "
    "(select pg_catalog.count(pg_catalog.set_config(v.name, v.value, false)) from (values "
    "('statement_timeout', '0'), ('idle_session_timeout', '0'), ('lock_timeout', '0'), "
    "('idle_in_transaction_session_timeout', '0'), ('synchronous_commit', 'off'), "
    "('default_transaction_read_only', 'off')) as v(name, value) "
    "where exists (select from pg_catalog.pg_settings s where s.name = v.name))",
    3, true};
static const struct coord__postgres_statement notify = {
    0, "coord_bus_notify",
    "select pg_catalog.pg_notify($1, p) from pg_catalog.unnest($2::pg_catalog.text[]) as p", 1,
    false};
static const struct coord__postgres_statement probe = {1, "coord_bus_probe", "select 1", 1, true};

/* ---------------------------------------------------------------- statements */

static bool has_room(const struct coord__bus_session *session)
{
    return session->job_count < COORD__POSTGRES_FLYING_MAX;
}

static bool send(struct coord__bus_session *session, const struct job *job,
                 const struct coord__postgres_statement *statement, int count,
                 const char *const *values)
{
    COORD_ASSERT(has_room(session));
    if (!coord__postgres_send(session->link, statement, count, values)) {
        return false;
    }
    session->jobs[(session->first_job + session->job_count) % COORD__POSTGRES_FLYING_MAX] = *job;
    session->job_count++;
    session->messages += job->kind == JOB_NOTIFY ? 1 : 0;
    return true;
}

static struct job take_job(struct coord__bus_session *session)
{
    COORD_ASSERT(session->job_count > 0);
    const struct job job = session->jobs[session->first_job];
    session->first_job = (session->first_job + 1) % COORD__POSTGRES_FLYING_MAX;
    session->job_count--;
    session->messages -= job.kind == JOB_NOTIFY ? 1 : 0;
    if (job.member != NULL) {
        job.member->flying--;
    }
    if (job.channel != NULL) {
        job.channel->asked = false;
    }
    return job;
}

/* ---------------------------------------------------------------- channels */

static void free_channel(struct channel *channel)
{
    coord__bus_parts_clear(&channel->parts);
    free(channel);
}

static void use_channel(struct coord__bus_session *session, const char *topic)
{
    struct channel *c = session->channels;
    while (c != NULL && strcmp(c->topic, topic) != 0) {
        c = c->next;
    }
    if (c == NULL && (c = calloc(1, sizeof *c)) != NULL) {
        memcpy(c->topic, topic, strlen(topic) + 1);
        coord__bus_channel(topic, c->name);
        c->next = session->channels;
        session->channels = c;
    }
    if (c != NULL) {
        c->users++;
    }
}

void coord__bus_session_count(struct coord__bus_session *session)
{
    for (struct channel *c = session->channels; c != NULL; c = c->next) {
        c->users = 0;
    }
    for (const struct coord__bus_member *m = session->first; m != NULL; m = m->next) {
        const char *topic;
        for (size_t i = 0; (topic = coord_broker_topic(m->broker, i)) != NULL; i++) {
            use_channel(session, topic);
        }
    }
}

static bool wants_word(const struct channel *c)
{
    return !c->asked && c->in_force != (c->users > 0);
}

/* LISTEN takes no parameter; a channel is letters, digits and underscores only. */
static void say_word(struct coord__bus_session *session, struct channel *c, coord_ms now)
{
    const bool listen = c->users > 0;
    const struct job job = {.kind = listen ? JOB_LISTEN : JOB_UNLISTEN, .channel = c, .sent = now};
    snprintf(c->text, sizeof c->text, "%s %s", listen ? "listen" : "unlisten", c->name);
    c->statement = (struct coord__postgres_statement){0, NULL, c->text, 0, false};
    c->asked = send(session, &job, &c->statement, 0, NULL);
}

static void tend_channels(struct coord__bus_session *session, coord_ms now)
{
    for (struct channel **at = &session->channels; *at != NULL;) {
        struct channel *c = *at;
        if (session->ready && wants_word(c) && has_room(session) && now >= session->word_at) {
            say_word(session, c, now);
        }
        if (c->users == 0 && !c->asked && !c->in_force) {
            *at = c->next;
            free_channel(c);
        } else {
            at = &c->next;
        }
    }
}

/* ---------------------------------------------------------------- events of the connection */

static void opened(void *ctx, coord_ms now)
{
    struct coord__bus_session *session = ctx;
    const struct job job = {.kind = JOB_SET_UP, .sent = now};
    COORD_ASSERT(session->job_count == 0);
    COORD_IGNORE(!send(session, &job, &set_up, 0, NULL), "process() tells that it has ended");
}

/* A session that is another one with each transaction hears nothing. */
static void is_set_up(struct coord__bus_session *session, const PGresult *rows, coord_ms now)
{
    struct coord_error why = {.code = COORD_OK};
    char pid[24];
    snprintf(pid, sizeof pid, "%d", coord__postgres_backend(session->link));
    if (strcmp(coord__postgres_text(rows, 0, 1), "t") == 0) {
        coord_error_set(&why, COORD_E_STANDBY,
                        "the server is a standby, which takes no notifications: name the primary "
                        "in the URI, or several hosts");
    } else if (!session->pooler && strcmp(coord__postgres_text(rows, 0, 0), pid) != 0) {
        coord_error_set(&why, COORD_E_POOLER,
                        "a pooler stands between, and notifications would be lost in it: connect "
                        "to the server itself, or say coord.pooler=session where it is in that "
                        "mode");
    }
    if (why.code != COORD_OK) {
        coord__postgres_refuse(session->link, &why, now);
        return;
    }
    session->ready = true;
    session->notified_once = false;
    session->failures = 0;
    session->why.code = COORD_OK;
}

static void replied(void *ctx, const struct coord__postgres_reply *reply, coord_ms now)
{
    struct coord__bus_session *session = ctx;
    const struct job job = take_job(session);
    const bool good = reply->error.code == COORD_OK;
    session->heard_at = now;
    if (job.kind == JOB_SET_UP && !good) {
        coord__postgres_refuse(session->link, &reply->error, now);
    } else if (job.kind == JOB_SET_UP) {
        is_set_up(session, reply->rows, now);
    } else if (job.channel != NULL && good) {
        job.channel->in_force = job.kind == JOB_LISTEN;
    } else if (job.channel != NULL) {
        session->why = reply->error;
        session->word_at = coord_ms_add(now, RETRY_CAP);
    } else if (job.kind == JOB_NOTIFY) {
        session->notified_once = session->notified_once || good;
    }
    if (job.member != NULL) {
        job.member->refused = reply->error;
        coord_broker_count_drop(job.member->broker, COORD_BROKER_DROP_REFUSED, good ? 0 : 1);
    }
}

static void count_drop(const struct coord__bus_session *session, const char *topic,
                       enum coord_broker_drop reason)
{
    for (const struct coord__bus_member *m = session->first; m != NULL; m = m->next) {
        const char *heard;
        for (size_t i = 0; (heard = coord_broker_topic(m->broker, i)) != NULL; i++) {
            if (strcmp(heard, topic) == 0) {
                coord_broker_count_drop(m->broker, reason, 1);
            }
        }
    }
}

static void notified(void *ctx, const char *name, const char *payload, coord_ms now)
{
    struct coord__bus_session *session = ctx;
    struct channel *c = session->channels;
    session->heard_at = now;
    while (c != NULL && strcmp(c->name, name) != 0) {
        c = c->next;
    }
    if (c == NULL) {
        return;
    }
    switch (coord__bus_join(&c->parts, payload)) {
    case COORD__BUS_MORE:
        break;
    case COORD__BUS_WHOLE:
        for (struct coord__bus_member *m = session->first; m != NULL; m = m->next) {
            coord_broker_deliver(m->broker, c->topic, strlen(c->topic), c->parts.data,
                                 c->parts.bytes);
        }
        break;
    case COORD__BUS_DAMAGED:
        count_drop(session, c->topic, COORD_BROKER_DROP_DAMAGED);
        break;
    case COORD__BUS_INCOMPLETE:
        count_drop(session, c->topic, COORD_BROKER_DROP_INCOMPLETE);
        break;
    case COORD__BUS_NO_MEMORY:
        count_drop(session, c->topic, COORD_BROKER_DROP_NO_MEMORY);
        break;
    }
}

static coord_ms pause(struct coord__bus_session *session, enum coord_err code)
{
    const unsigned doublings = session->failures < DOUBLINGS ? session->failures : DOUBLINGS;
    const coord_ms wait = coord_ms_min((coord_ms)RETRY_FIRST << doublings, RETRY_CAP);
    session->random = session->random * 6364136223846793005u + 1442695040888963407u;
    session->failures++;
    return coord_err_class(code) == COORD_CLASS_REFUSED
               ? RETRY_LONG
               : wait - (session->random >> 33) % (wait / 4 + 1);
}

static void closed(void *ctx, const struct coord_error *why, coord_ms now)
{
    struct coord__bus_session *session = ctx;
    while (session->job_count > 0) {
        const struct job job = take_job(session);
        if (job.member != NULL) {
            coord_broker_count_drop(job.member->broker, COORD_BROKER_DROP_BROKEN, 1);
        }
    }
    for (struct channel *c = session->channels; c != NULL; c = c->next) {
        c->in_force = false;
        c->parts.next = 0;
    }
    /* One that worked may be had again at once. */
    session->retry_at = session->ready ? now : coord_ms_add(now, pause(session, why->code));
    session->ready = false;
    session->why = *why;
}

/* ---------------------------------------------------------------- begin and end */

static void free_session(struct coord_shared *shared, bool forked)
{
    struct coord__bus_session *session = (struct coord__bus_session *)shared;
    coord__postgres_free(session->link, forked);
    coord__postgres_target_free(session->target);
    while (session->channels != NULL) {
        struct channel *c = session->channels;
        session->channels = c->next;
        free_channel(c);
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
        const struct coord__postgres_events events = {.ctx = session,
                                                      .opened = opened,
                                                      .replied = replied,
                                                      .notified = notified,
                                                      .closed = closed};
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
    snprintf(out, KEY_BYTES, "%s %s", pooler ? "pooler" : "server", channel);
}

enum coord_err coord__bus_session_join(struct coord__bus_member *member,
                                       const struct coord_broker_config *config, bool pooler,
                                       struct coord_error *error)
{
    char key[KEY_BYTES] = "";
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
        struct job *job = &session->jobs[(session->first_job + i) % COORD__POSTGRES_FLYING_MAX];
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
    if (!session->ready || session->messages >= most || !has_room(session)) {
        return COORD_E_BUSY;
    }
    char *text =
        coord__bus_split(session->random ^ ++session->messages_sent, what->bytes, what->count);
    if (text == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    coord__bus_channel(what->topic, channel);
    const char *const values[] = {channel, text};
    const struct job job = {.kind = JOB_NOTIFY, .member = member, .sent = now};
    const bool sent = send(session, &job, &notify, 2, values);
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
        closed(session, &why, now);
    }
    tend_channels(session, now);
    if (now >= probe_at(session)) {
        const struct job job = {.kind = JOB_PROBE, .sent = now};
        COORD_IGNORE(!send(session, &job, &probe, 0, NULL), "process() tells that it has ended");
    }
}

coord_ms coord__bus_session_deadline(const struct coord__bus_session *session)
{
    coord_ms at = coord__postgres_deadline(session->link);
    if (coord__postgres_is_closed(session->link)) {
        at = coord_ms_min(at, session->retry_at);
    }
    for (const struct channel *c = session->channels; c != NULL; c = c->next) {
        if (session->ready && wants_word(c) && has_room(session)) {
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
        const struct channel *c = session->channels;
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
