/* SPDX-License-Identifier: MIT
 * connections/redis_events.c - a connection that only listens: what it hears is a hint, no more.
 */
#include "connections/redis.h"

#include "connections/redis_link.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>
#include <string.h>

enum {
    READER_MAX = 1 << 20, /* bytes; what is sent to a channel is not ours to bound */
    QUIET_LEAST = 1000    /* ms */
};

struct coord_redis_events {
    struct coord_shared shared; /* first */
    struct coord_share *share;
    char *key;
    struct coord__redis_link link;
    struct coord_redis_listener *listeners;
    coord_ms heard_at;          /* the server said something, or the connection began */
    coord_ms asked_at;          /* whether it is still there; 0: not since it was heard */
    struct coord_error refused; /* the last error reply of this connection */
};

/* ---------------------------------------------------------------- the link's owner */

static void say(struct coord_redis_events *events, const char *verb, const char *channel)
{
    const char *argv[] = {verb, channel};
    char *text = NULL;
    const long long bytes = redisFormatCommandArgv(&text, 2, argv, NULL);
    if (bytes < 0) {
        return;
    }
    COORD_IGNORE(!coord__redis_buffer_add(&events->link.out, text, (size_t)bytes),
                 "without memory nothing is heard, and everything works");
    redisFreeCommand(text);
}

static bool is_heard_by_another(const struct coord_redis_events *events,
                                const struct coord_redis_listener *listener)
{
    const struct coord_redis_listener *l = events->listeners;
    while (l != NULL && (l == listener || strcmp(l->channel, listener->channel) != 0)) {
        l = l->next;
    }
    return l != NULL;
}

static void on_up(void *owner, coord_ms now)
{
    struct coord_redis_events *events = owner;
    coord__redis_buffer_clear(&events->link.out);
    events->heard_at = now;
    events->asked_at = 0;
    events->refused.code = COORD_OK;
    for (struct coord_redis_listener *l = events->listeners; l != NULL; l = l->next) {
        say(events, "SUBSCRIBE", l->channel); /* twice for two of one channel: that is harmless */
    }
    coord__redis_link_write(&events->link, now);
}

/* {subscribe, channel, count} or {message, channel, text}: in both cases look at the store. */
static void tell(struct coord_redis_events *events, const struct redisReply *reply)
{
    const char *kind = reply->element[0]->str;
    const struct redisReply *body = reply->element[2];
    const bool message = strcmp(kind, "message") == 0 && body->type == REDIS_REPLY_STRING;
    struct coord_redis_listener *next;
    for (struct coord_redis_listener *l = events->listeners; l != NULL; l = next) {
        next = l->next;
        if (strcmp(l->channel, reply->element[1]->str) != 0) {
            continue;
        }
        l->heard = true;
        l->in_force = l->in_force || strcmp(kind, "subscribe") == 0;
        if (message && l->message != NULL) {
            l->message(l, body->str, (size_t)body->len);
        }
    }
}

static void on_reply(void *owner, struct redisReply *reply, coord_ms now)
{
    struct coord_redis_events *events = owner;
    events->heard_at = now;
    events->asked_at = 0;
    if (reply->type == REDIS_REPLY_ERROR) {
        const struct coord_error *error = &events->refused;
        coord_redis_error(reply->str, &events->refused);
        if (events->link.told != error->code) {
            events->link.told = error->code;
            coord__redis_link_log(&events->link, now, COORD_LOG_WARN, error->code, error->text);
        }
    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
               reply->element[0]->type == REDIS_REPLY_STRING &&
               reply->element[1]->type == REDIS_REPLY_STRING &&
               strcmp(reply->element[0]->str, "unsubscribe") != 0) {
        tell(events, reply);
    }
    freeReplyObject(reply);
}

static void on_down(void *owner, const struct coord_error *error, coord_ms now)
{
    struct coord_redis_events *events = owner;
    (void)error;
    (void)now;
    coord__redis_buffer_clear(&events->link.out);
    for (struct coord_redis_listener *l = events->listeners; l != NULL; l = l->next) {
        l->in_force = false;
    }
}

static const struct coord__redis_link_ops link_ops = {on_up, on_reply, on_down};

/* ---------------------------------------------------------------- open and close */

static void free_shared(struct coord_shared *shared, bool forked)
{
    struct coord_redis_events *events = (struct coord_redis_events *)shared;
    coord__redis_link_fini(&events->link, forked);
    coord__redis_share_key_free(events->key);
    free(events);
}

static enum coord_err make(const struct coord_redis_config *config, char *key,
                           struct coord_redis_events **out, struct coord_error *error)
{
    struct coord_redis_events *events = calloc(1, sizeof *events);
    if (events == NULL) {
        coord__redis_share_key_free(key);
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some");
    }
    events->shared.key = key;
    events->shared.free = free_shared;
    events->key = key;
    events->share = config->share;
    events->link.fd = -1;
    const enum coord_err rc = coord__redis_target_read(config->uri, &events->link.target, error);
    if (rc == COORD_OK) {
        events->link.resolver = config->resolver;
        coord__redis_link_init(&events->link, &link_ops, events, config->seed);
        events->link.quiet = true;
        events->link.reader_max = READER_MAX;
        *out = events;
        return COORD_OK;
    }
    free_shared(&events->shared, false);
    return rc;
}

enum coord_err coord_redis_events_open(const struct coord_redis_config *config,
                                       struct coord_redis_user *user,
                                       struct coord_redis_events **out, struct coord_error *error)
{
    char *key = coord__redis_share_key("redis-events", config->uri);
    if (key == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some");
    }
    struct coord_redis_events *events =
        (struct coord_redis_events *)coord_share_get(config->share, key);
    if (events != NULL) {
        coord__redis_share_key_free(key);
    } else {
        const enum coord_err rc = make(config, key, &events, error);
        if (rc != COORD_OK) {
            return rc;
        }
        coord_share_put(config->share, &events->shared);
    }
    COORD_ASSERT(events != NULL);
    coord__redis_link_join(&events->link, user);
    *out = events;
    return COORD_OK;
}

void coord_redis_events_close(struct coord_redis_events *events, struct coord_redis_user *user,
                              bool forked)
{
    coord__redis_link_leave(&events->link, user);
    coord_share_drop(events->share, &events->shared, forked);
}

/* ---------------------------------------------------------------- listening */

void coord_redis_events_listen(struct coord_redis_events *events,
                               struct coord_redis_listener *listener, coord_ms now)
{
    listener->heard = false;
    listener->in_force = false;
    listener->next = events->listeners;
    events->listeners = listener;
    if (events->link.state == COORD__REDIS_LINK_UP) {
        say(events, "SUBSCRIBE", listener->channel);
    }
    coord__redis_link_want(&events->link, now);
    coord__redis_link_write(&events->link, now);
}

void coord_redis_events_drop(struct coord_redis_events *events,
                             struct coord_redis_listener *listener)
{
    struct coord_redis_listener **at = &events->listeners;
    while (*at != NULL && *at != listener) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        return;
    }
    *at = listener->next;
    if (events->link.state == COORD__REDIS_LINK_UP && !is_heard_by_another(events, listener)) {
        say(events, "UNSUBSCRIBE", listener->channel); /* goes out with the next process() */
    }
}

/* Who waits for messages has to know whether there is still somebody who would send them. */
static bool is_looked_after(const struct coord_redis_events *events)
{
    const struct coord_redis_listener *l = events->listeners;
    while (l != NULL && l->message == NULL) {
        l = l->next;
    }
    return l != NULL && events->link.state == COORD__REDIS_LINK_UP;
}

static coord_ms look_after_at(const struct coord_redis_events *events)
{
    const coord_ms patience = coord_ms_max(events->link.attempt, QUIET_LEAST);
    if (!is_looked_after(events)) {
        return COORD_NEVER;
    }
    return coord_ms_add(events->asked_at != 0 ? events->asked_at : events->heard_at, patience);
}

static void look_after(struct coord_redis_events *events, coord_ms now)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct coord_error error;
    if (now < look_after_at(events)) {
        return;
    }
    if (events->asked_at != 0) {
        coord_error_set(&error, COORD_E_NO_ANSWER,
                        "the server that messages are heard from did not answer in time: a new "
                        "connection is made");
        coord__redis_link_break(&events->link, &error, now);
        coord__redis_link_process(&events->link, now);
        return;
    }
    events->asked_at = coord_ms_max(now, 1);
    for (const struct coord_redis_listener *l = events->listeners; l != NULL; l = l->next) {
        if (l->message != NULL && !l->in_force) {
            say(events, "SUBSCRIBE",
                l->channel); /* it was refused: perhaps somebody gave the right */
        }
    }
    COORD_IGNORE(!coord__redis_buffer_add(&events->link.out, ping, sizeof ping - 1),
                 "without memory it is taken for silent");
    coord__redis_link_write(&events->link, now);
}

void coord_redis_events_process(struct coord_redis_events *events, coord_ms now)
{
    coord__redis_link_process(&events->link, now);
    look_after(events, now);
}

coord_ms coord_redis_events_deadline(const struct coord_redis_events *events)
{
    return coord_ms_min(coord__redis_link_deadline(&events->link), look_after_at(events));
}

const struct coord_error *coord_redis_events_trouble(const struct coord_redis_events *events)
{
    return events->link.error.code != COORD_OK ? &events->link.error : &events->refused;
}

bool coord_redis_events_descriptor(const struct coord_redis_events *events,
                                   struct coord_descriptor *out)
{
    return coord__redis_link_descriptor(&events->link, out);
}
