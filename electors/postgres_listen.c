/* SPDX-License-Identifier: MIT
 * electors/postgres_listen.c - hints: a session of its own that listens, and whose loss costs
 * speed only. One that leads must not listen: notifications that nobody reads fill its socket, and
 * a server that waits to write ends no idle session.
 */
#include "electors/postgres_parts.h"

#include <stdio.h>
#include <string.h>

enum {
    RETRY_FIRST = 250, /* ms, doubled with each failure */
    RETRY_CAP = 30000, /* ms */
    PATIENCE = 5000    /* ms for one address */
};

static const struct coord__postgres_statement set_up = {
    0, NULL,
    "select pg_catalog.set_config('search_path', 'pg_catalog', false), "
    "pg_catalog.set_config('statement_timeout', '0', false), "
    "pg_catalog.set_config('lock_timeout', '0', false), "
    "pg_catalog.set_config('idle_session_timeout', '0', false)",
    4, true};

static void opened(void *ctx, coord_ms now)
{
    struct coord__postgres_session *session = ctx;
    struct coord__postgres_listener *listener = &session->listener;
    listener->asked = NULL;
    listener->set_up = false;
    listener->flying = coord__postgres_send(listener->link, &set_up, 0, NULL);
    (void)now;
}

static void replied(void *ctx, const struct coord__postgres_reply *reply, coord_ms now)
{
    struct coord__postgres_session *session = ctx;
    struct coord__postgres_listener *listener = &session->listener;
    listener->flying = false;
    if (!listener->set_up) {
        listener->set_up = true;
        return;
    }
    if (reply->error.code == COORD_OK) {
        listener->failures = 0;
        if (listener->asked != NULL) {
            /* What happened before it listened was not told: look once. */
            listener->asked->touched = true;
            coord_backend_hint(listener->asked->base, now);
        }
    }
    listener->asked = NULL;
}

static void notified(void *ctx, const char *channel, const char *payload, coord_ms now)
{
    const struct coord__postgres_session *session = ctx;
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (strcmp(e->channel, channel) == 0) {
            e->touched = true;
            coord_backend_hint(e->base, now);
        }
    }
    (void)payload; /* anybody may notify: it is a hint and proves nothing */
}

static void closed(void *ctx, const struct coord_error *why, coord_ms now)
{
    struct coord__postgres_session *session = ctx;
    struct coord__postgres_listener *listener = &session->listener;
    const unsigned doublings = listener->failures < 7 ? listener->failures : 7;
    const coord_ms wait = (coord_ms)RETRY_FIRST << doublings;
    listener->failures++;
    listener->retry_at = coord_ms_add(now, wait < RETRY_CAP ? wait : RETRY_CAP);
    listener->flying = false;
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        e->listening = false;
    }
    (void)why;
}

bool coord__postgres_listen_init(struct coord__postgres_session *session,
                                 const struct coord_resolver *resolver)
{
    const struct coord__postgres_events events = {.ctx = session,
                                                  .opened = opened,
                                                  .replied = replied,
                                                  .notified = notified,
                                                  .closed = closed};
    session->listener.link = coord__postgres_new(session->target, resolver, &events);
    return session->listener.link != NULL;
}

void coord__postgres_listen_fini(struct coord__postgres_session *session, bool forked)
{
    coord__postgres_free(session->listener.link, forked);
    session->listener.link = NULL;
}

void coord__postgres_listen_leave(struct coord__postgres_elector *elector)
{
    /* The channel is listened to until the session ends; nobody takes its hints. */
    if (elector->session->listener.asked == elector) {
        elector->session->listener.asked = NULL;
    }
}

void coord__postgres_listen_give_way(struct coord__postgres_session *session, coord_ms now)
{
    if (!coord__postgres_is_closed(session->listener.link)) {
        coord__postgres_close(session->listener.link);
        closed(session, NULL, now);
    }
}

static struct coord__postgres_elector *next_wish(const struct coord__postgres_session *session)
{
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (e->wants_hints && !e->listening) {
            return e;
        }
    }
    return NULL;
}

static void listen_to(struct coord__postgres_listener *listener, struct coord__postgres_elector *e)
{
    /* LISTEN takes no parameter; a channel is letters and digits only. */
    if (snprintf(listener->text, sizeof listener->text, "listen %s", e->channel) < 0) {
        return;
    }
    listener->listen = (struct coord__postgres_statement){0, NULL, listener->text, 0, false};
    listener->asked = e;
    e->listening = true;
    listener->flying = coord__postgres_send(listener->link, &listener->listen, 0, NULL);
}

/* Hints are for those who elect over a session that works. */
static bool may_open(const struct coord__postgres_session *session)
{
    return session->ready && next_wish(session) != NULL &&
           coord__postgres_is_closed(session->listener.link);
}

void coord__postgres_listen_process(struct coord__postgres_session *session, bool look,
                                    coord_ms now)
{
    struct coord__postgres_listener *listener = &session->listener;
    if (may_open(session) && now >= listener->retry_at) {
        coord__postgres_open(listener->link, PATIENCE, now);
    }
    if (look || !coord__postgres_is_open(listener->link)) {
        coord__postgres_process(listener->link, now);
    }
    struct coord__postgres_elector *wish = next_wish(session);
    if (coord__postgres_is_open(listener->link) && listener->set_up && !listener->flying &&
        wish != NULL) {
        listen_to(listener, wish);
    }
}

coord_ms coord__postgres_listen_deadline(const struct coord__postgres_session *session)
{
    const struct coord__postgres_listener *listener = &session->listener;
    const coord_ms at = coord__postgres_deadline(listener->link);
    return may_open(session) ? coord_ms_min(at, listener->retry_at) : at;
}
