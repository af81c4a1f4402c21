/* SPDX-License-Identifier: MIT
 * brokers/postgres_events.c - what the session hears: answers, notifications, its end.
 */
#include "brokers/postgres_inside.h"

#include <stdio.h>
#include <string.h>

enum {
    DOUBLINGS = 6
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
    "where exists (select from pg_catalog.pg_settings s "
    "where s.name operator(pg_catalog.=) v.name))",
    3, true};

static void opened(void *ctx, coord_ms now)
{
    struct coord__bus_session *session = ctx;
    const struct coord__bus_job job = {.kind = COORD__BUS_JOB_SET_UP, .sent = now};
    COORD_ASSERT(session->job_count == 0);
    COORD_IGNORE(!coord__bus_put_job(session, &job, &set_up, 0, NULL),
                 "process() tells that it has ended");
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
    session->ready_since = now;
    session->notified_once = false;
    session->why.code = COORD_OK;
}

/* To notify takes one right, which everybody has unless it was taken away. */
static struct coord_error refusal_of(const struct coord__postgres_reply *reply)
{
    struct coord_error why = reply->error;
    if (why.code == COORD_E_NO_RIGHT) {
        coord_error_set(&why, COORD_E_NO_RIGHT,
                        "PostgreSQL lets this role notify nobody: GRANT EXECUTE ON FUNCTION "
                        "pg_notify(text, text) TO this role");
    }
    return why;
}

static void replied(void *ctx, const struct coord__postgres_reply *reply, coord_ms now)
{
    struct coord__bus_session *session = ctx;
    const struct coord__bus_job job = coord__bus_take_job(session);
    const bool good = reply->error.code == COORD_OK;
    session->heard_at = now;
    if (job.kind == COORD__BUS_JOB_SET_UP && !good) {
        coord__postgres_refuse(session->link, &reply->error, now);
    } else if (job.kind == COORD__BUS_JOB_SET_UP) {
        is_set_up(session, reply->rows, now);
    } else if (job.channel != NULL && good) {
        job.channel->in_force = job.kind == COORD__BUS_JOB_LISTEN;
    } else if (job.channel != NULL) {
        session->why = reply->error;
        session->word_at = coord_ms_add(now, COORD__BUS_RETRY_CAP);
    } else if (job.kind == COORD__BUS_JOB_NOTIFY) {
        session->notified_once = session->notified_once || good;
    }
    if (job.member != NULL) {
        job.member->refused = refusal_of(reply);
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
    struct coord__bus_channel_state *c = session->channels;
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

/* A session that ends right after its set-up is not had again as fast as the server ends it. */
static coord_ms pause(struct coord__bus_session *session, enum coord_err code, coord_ms now)
{
    if (!session->ready && coord_err_class(code) == COORD_CLASS_REFUSED) {
        return COORD__BUS_RETRY_LONG;
    }
    if (session->ready && coord_ms_sub(now, session->ready_since) >= COORD__BUS_GOOD_LIFE) {
        session->failures = 0;
    }
    const unsigned before = session->failures++;
    if (before == 0) {
        return 0;
    }
    const unsigned doublings = before <= DOUBLINGS ? before - 1 : DOUBLINGS;
    const coord_ms wait =
        coord_ms_min((coord_ms)COORD__BUS_RETRY_FIRST << doublings, COORD__BUS_RETRY_CAP);
    session->random = session->random * 6364136223846793005u + 1442695040888963407u;
    return wait - (session->random >> 33) % (wait / 4 + 1);
}

void coord__bus_closed(void *ctx, const struct coord_error *why, coord_ms now)
{
    struct coord__bus_session *session = ctx;
    while (session->job_count > 0) {
        const struct coord__bus_job job = coord__bus_take_job(session);
        if (job.member != NULL) {
            coord_broker_count_drop(job.member->broker, COORD_BROKER_DROP_BROKEN, 1);
        }
    }
    for (struct coord__bus_channel_state *c = session->channels; c != NULL; c = c->next) {
        c->in_force = false;
        c->parts.next = 0;
    }
    session->retry_at = coord_ms_add(now, pause(session, why->code, now));
    session->ready = false;
    session->why = *why;
}

struct coord__postgres_events coord__bus_events(struct coord__bus_session *session)
{
    return (struct coord__postgres_events){.ctx = session,
                                           .opened = opened,
                                           .replied = replied,
                                           .notified = notified,
                                           .closed = coord__bus_closed};
}
