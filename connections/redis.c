/* SPDX-License-Identifier: MIT
 * connections/redis.c - commands of many users over one connection, answered in order.
 *
 * Each command stands in a queue with the place of its last byte in the stream: so it is known,
 * when the connection breaks, what can have been executed and what surely was not.
 */
#include "connections/redis.h"

#include "connections/redis_link.h"
#include "coord/timing.h"

#include <hiredis/hiredis.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_QUEUE = 16
};

struct entry {
    struct coord_redis_call *call; /* NULL: nobody wants the answer */
    bool told;                     /* ... but an error in it is logged */
    uint64_t end;                  /* of its bytes, counted from the beginning of the connection */
    size_t bytes;
};

struct coord_redis {
    struct coord_shared shared; /* first */
    struct coord_share *share;
    char *key;
    struct coord__redis_link link;
    struct entry *queue; /* a ring */
    size_t queue_room;
    size_t queue_first;
    size_t queue_count;
    uint64_t queued;       /* bytes of commands since the connection began */
    bool deposed;          /* the server says that it is no primary (any more) */
    enum coord_err logged; /* of answers that nobody waits for */
};

/* ---------------------------------------------------------------- the queue */

static struct entry *entry_at(struct coord_redis *redis, size_t index)
{
    COORD_ASSERT(redis->queue_room > 0);
    return &redis->queue[(redis->queue_first + index) % redis->queue_room];
}

static bool reserve_entry(struct coord_redis *redis)
{
    if (redis->queue_count < redis->queue_room) {
        return true;
    }
    const size_t room = redis->queue_room > 0 ? 2 * redis->queue_room : FIRST_QUEUE;
    struct entry *more = calloc(room, sizeof *more);
    if (more == NULL) {
        return false;
    }
    for (size_t i = 0; i < redis->queue_count; i++) {
        more[i] = *entry_at(redis, i);
    }
    free(redis->queue);
    redis->queue = more;
    redis->queue_room = room;
    redis->queue_first = 0;
    return true;
}

static void end_call(struct coord_redis_call *call, enum coord_redis_call_state state,
                     const struct coord_error *error)
{
    call->state = state;
    call->error = *error;
}

/* ---------------------------------------------------------------- the link's owner */

static void on_up(void *owner, coord_ms now)
{
    struct coord_redis *redis = owner;
    redis->deposed = false;
    coord__redis_link_write(&redis->link, now);
}

static void note_answer(struct coord_redis *redis, const redisReply *reply, bool told, coord_ms now)
{
    struct coord_error error;
    if (reply->type != REDIS_REPLY_ERROR) {
        redis->logged = told ? COORD_OK : redis->logged;
        return;
    }
    coord_redis_error(reply->str, &error);
    redis->deposed = redis->deposed || error.code == COORD_E_STANDBY;
    if (told && redis->logged != error.code) {
        redis->logged = error.code;
        coord__redis_link_log(&redis->link, now, COORD_LOG_WARN, error.code, error.text);
    }
}

static void on_reply(void *owner, struct redisReply *reply, coord_ms now)
{
    struct coord_redis *redis = owner;
    if (redis->queue_count == 0) {
        struct coord_error error;
        coord_error_set(&error, COORD_E_PROTOCOL,
                        "the server answers what it was not asked: is a proxy between?");
        freeReplyObject(reply);
        coord__redis_link_fail(&redis->link, &error, now);
        return;
    }
    const struct entry entry = *entry_at(redis, 0);
    redis->queue_first = (redis->queue_first + 1) % redis->queue_room;
    redis->queue_count--;
    note_answer(redis, reply, entry.told, now);
    if (entry.call == NULL) {
        freeReplyObject(reply);
        return;
    }
    entry.call->state = COORD_REDIS_ANSWERED;
    entry.call->reply = reply;
}

/* A command whose last byte was not written cannot have been executed. */
static void on_down(void *owner, const struct coord_error *error, coord_ms now)
{
    struct coord_redis *redis = owner;
    (void)now;
    const uint64_t written = redis->queued - (redis->link.out.end - redis->link.out.start);
    while (redis->queue_count > 0) {
        const struct entry *entry = entry_at(redis, 0);
        if (entry->call != NULL) {
            end_call(entry->call, entry->end <= written ? COORD_REDIS_UNKNOWN : COORD_REDIS_FAILED,
                     error);
        }
        redis->queue_first = (redis->queue_first + 1) % redis->queue_room;
        redis->queue_count--;
    }
    coord__redis_buffer_clear(&redis->link.out);
    redis->queued = 0;
}

static const struct coord__redis_link_ops link_ops = {on_up, on_reply, on_down};

/* ---------------------------------------------------------------- open and close */

static void free_shared(struct coord_shared *shared, bool forked)
{
    struct coord_redis *redis = (struct coord_redis *)shared;
    coord__redis_link_fini(&redis->link, forked);
    coord__redis_share_key_free(redis->key);
    free(redis->queue);
    free(redis);
}

static enum coord_err make(const struct coord_redis_config *config, char *key,
                           struct coord_redis **out, struct coord_error *error)
{
    struct coord_redis *redis = calloc(1, sizeof *redis);
    if (redis == NULL) {
        coord__redis_share_key_free(key);
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some");
    }
    redis->shared.key = key;
    redis->shared.free = free_shared;
    redis->key = key;
    redis->share = config->share;
    redis->link.fd = -1;
    enum coord_err rc = coord__redis_target_read(config->uri, &redis->link.target, error);
    if (rc == COORD_OK) {
        redis->link.resolver = config->resolver;
        coord__redis_link_init(&redis->link, &link_ops, redis, config->seed);
        *out = redis;
        return COORD_OK;
    }
    free_shared(&redis->shared, false);
    return rc;
}

enum coord_err coord_redis_open(const struct coord_redis_config *config,
                                struct coord_redis_user *user, struct coord_redis **out,
                                struct coord_error *error)
{
    COORD_ASSERT(config->uri != NULL);
    COORD_ASSERT(user->attempt > 0);
    char *key = coord__redis_share_key("redis", config->uri);
    if (key == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some");
    }
    struct coord_redis *redis = (struct coord_redis *)coord_share_get(config->share, key);
    if (redis != NULL) {
        coord__redis_share_key_free(key);
    } else {
        const enum coord_err rc = make(config, key, &redis, error);
        if (rc != COORD_OK) {
            return rc;
        }
        coord_share_put(config->share, &redis->shared);
    }
    coord__redis_link_join(&redis->link, user);
    *out = redis;
    return COORD_OK;
}

void coord_redis_close(struct coord_redis *redis, struct coord_redis_user *user, bool forked)
{
    coord__redis_link_leave(&redis->link, user);
    coord_share_drop(redis->share, &redis->shared, forked);
}

/* ---------------------------------------------------------------- commands */

void coord_redis_call_clear(struct coord_redis_call *call)
{
    if (call->reply != NULL) {
        freeReplyObject(call->reply);
        call->reply = NULL;
    }
    call->state = COORD_REDIS_IDLE;
}

static bool queue_command(struct coord_redis *redis, struct coord_redis_call *call, int argc,
                          const char **argv, const size_t *bytes)
{
    char *text = NULL;
    const long long count = redisFormatCommandArgv(&text, argc, argv, bytes);
    if (count < 0) {
        return false;
    }
    const bool queued =
        reserve_entry(redis) && coord__redis_buffer_add(&redis->link.out, text, (size_t)count);
    redisFreeCommand(text);
    if (queued) {
        redis->queued += (uint64_t)count;
        redis->queue_count++;
        *entry_at(redis, redis->queue_count - 1) = (struct entry){
            .call = call, .told = call == NULL, .end = redis->queued, .bytes = (size_t)count};
    }
    return queued;
}

void coord_redis_send(struct coord_redis *redis, struct coord_redis_call *call, int argc,
                      const char **argv, const size_t *bytes, coord_ms now)
{
    const struct coord__redis_link *link = &redis->link;
    COORD_ASSERT(call == NULL || call->state == COORD_REDIS_IDLE);
    /* What somebody has to repair is told at once, not after a wait for the next try. */
    if (link->state == COORD__REDIS_LINK_PAUSED && now < link->retry_at &&
        coord_err_class(link->error.code) == COORD_CLASS_REFUSED) {
        if (call != NULL) {
            end_call(call, COORD_REDIS_FAILED, &link->error);
        }
        return;
    }
    if (call != NULL) {
        call->state = COORD_REDIS_WAITING;
    }
    if (!queue_command(redis, call, argc, argv, bytes) && call != NULL) {
        struct coord_error error;
        coord_error_set(&error, COORD_E_NO_MEMORY, "out of memory: free some");
        end_call(call, COORD_REDIS_FAILED, &error);
    }
}

void coord_redis_flush(struct coord_redis *redis, coord_ms now)
{
    coord__redis_link_want(&redis->link, now);
    coord__redis_link_write(&redis->link, now);
}

bool coord_redis_is_up(const struct coord_redis *redis)
{
    return redis->link.state == COORD__REDIS_LINK_UP;
}

const struct coord_error *coord_redis_trouble(const struct coord_redis *redis)
{
    return &redis->link.error;
}

/* Take the unwritten bytes of an entry out of the stream, and the entry out of the queue. */
static void cut_entry(struct coord_redis *redis, size_t index)
{
    struct coord__redis_buffer *out = &redis->link.out;
    const struct entry entry = *entry_at(redis, index);
    const size_t behind = (size_t)(redis->queued - entry.end);
    char *end = out->bytes + out->end - behind;
    memmove(end - entry.bytes, end, behind);
    out->end -= entry.bytes;
    redis->queued -= entry.bytes;
    for (size_t i = index; i + 1 < redis->queue_count; i++) {
        *entry_at(redis, i) = *entry_at(redis, i + 1);
        entry_at(redis, i)->end -= entry.bytes;
    }
    redis->queue_count--;
}

/* @return true when the server may have it. */
static bool forget(struct coord_redis *redis, struct coord_redis_call *call)
{
    const struct coord__redis_buffer *out = &redis->link.out;
    bool sent = false;
    for (size_t i = 0; i < redis->queue_count; i++) {
        struct entry *entry = entry_at(redis, i);
        if (entry->call != call) {
            continue;
        }
        const uint64_t written = redis->queued - (out->end - out->start);
        sent = entry->end - entry->bytes < written;
        if (sent) {
            entry->call = NULL; /* its answer is thrown away when it comes */
        } else {
            cut_entry(redis, i);
        }
        break;
    }
    coord_redis_call_clear(call);
    return sent;
}

void coord_redis_forget(struct coord_redis *redis, struct coord_redis_call *call)
{
    forget(redis, call);
}

void coord_redis_stuck(struct coord_redis *redis, struct coord_redis_call *call, coord_ms now)
{
    if (forget(redis, call) && redis->link.state == COORD__REDIS_LINK_UP) {
        struct coord_error error;
        coord_error_set(&error, COORD_E_NO_ANSWER,
                        "the server did not answer in time: a new connection is made");
        coord__redis_link_break(&redis->link, &error, now);
    }
}

void coord_redis_process(struct coord_redis *redis, coord_ms now)
{
    redis->link.awaited = redis->queue_count;
    coord__redis_link_process(&redis->link, now);
    if (redis->deposed && redis->link.state == COORD__REDIS_LINK_UP) {
        struct coord_error error;
        redis->deposed = false;
        coord_error_set(&error, COORD_E_STANDBY,
                        "the server is no primary any more: the primary is looked for again");
        coord__redis_link_break(&redis->link, &error, now);
        coord__redis_link_process(&redis->link, now);
    }
}

coord_ms coord_redis_deadline(const struct coord_redis *redis)
{
    return coord__redis_link_deadline(&redis->link);
}

bool coord_redis_descriptor(const struct coord_redis *redis, struct coord_descriptor *out)
{
    return coord__redis_link_descriptor(&redis->link, out);
}

uint64_t coord_redis_run(const struct coord_redis *redis, coord_ms now, char *out, coord_ms *age)
{
    const struct coord__redis_link *link = &redis->link;
    const coord_ms known = link->run[0] != '\0' ? coord_ms_sub(now, link->run_since) : 0;
    *age = known - known / COORD_RATE_ERROR_DIVISOR;
    memcpy(out, link->run, sizeof link->run);
    return link->runs;
}
