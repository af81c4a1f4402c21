/* SPDX-License-Identifier: MIT
 * connections/redis_events.c - a connection that only listens: what it hears is a hint, no more.
 */
#include "connections/redis.h"

#include "connections/redis_link.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>
#include <string.h>

struct coord_redis_events {
    struct coord_shared shared; /* first */
    struct coord_share *share;
    char *key;
    struct coord__redis_link link;
    struct coord_redis_user *users;
    struct coord_redis_listener *listeners;
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
    for (struct coord_redis_listener *l = events->listeners; l != NULL; l = l->next) {
        say(events, "SUBSCRIBE", l->channel); /* twice for two of one channel: that is harmless */
    }
    coord__redis_link_write(&events->link, now);
}

/* {subscribe, channel, count} or {message, channel, text}: in both cases look at the store. */
static void on_reply(void *owner, struct redisReply *reply, coord_ms now)
{
    struct coord_redis_events *events = owner;
    if (reply->type == REDIS_REPLY_ERROR) {
        struct coord_error error;
        coord_redis_error(reply->str, &error);
        if (events->link.told != error.code) {
            events->link.told = error.code;
            coord__redis_link_log(&events->link, now, COORD_LOG_WARN, error.code, error.text);
        }
    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
               reply->element[0]->type == REDIS_REPLY_STRING &&
               reply->element[1]->type == REDIS_REPLY_STRING &&
               strcmp(reply->element[0]->str, "unsubscribe") != 0) {
        for (struct coord_redis_listener *l = events->listeners; l != NULL; l = l->next) {
            if (strcmp(l->channel, reply->element[1]->str) == 0) {
                l->heard = true;
            }
        }
    }
    freeReplyObject(reply);
}

static void on_down(void *owner, const struct coord_error *error, coord_ms now)
{
    struct coord_redis_events *events = owner;
    (void)error;
    (void)now;
    coord__redis_buffer_clear(&events->link.out);
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
    user->next = events->users;
    events->users = user;
    coord__redis_link_count_users(&events->link, events->users);
    *out = events;
    return COORD_OK;
}

void coord_redis_events_close(struct coord_redis_events *events, struct coord_redis_user *user,
                              bool forked)
{
    struct coord_redis_user **at = &events->users;
    while (*at != NULL && *at != user) {
        at = &(*at)->next;
    }
    COORD_ASSERT(*at == user);
    *at = user->next;
    coord__redis_link_count_users(&events->link, events->users);
    coord_share_drop(events->share, &events->shared, forked);
}

/* ---------------------------------------------------------------- listening */

void coord_redis_events_listen(struct coord_redis_events *events,
                               struct coord_redis_listener *listener, coord_ms now)
{
    listener->heard = false;
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

void coord_redis_events_process(struct coord_redis_events *events, coord_ms now)
{
    coord__redis_link_process(&events->link, now);
}

coord_ms coord_redis_events_deadline(const struct coord_redis_events *events)
{
    return coord__redis_link_deadline(&events->link);
}

bool coord_redis_events_descriptor(const struct coord_redis_events *events,
                                   struct coord_descriptor *out)
{
    return coord__redis_link_descriptor(&events->link, out);
}
