/* SPDX-License-Identifier: MIT
 * connections/redis_link.c - the life of one connection: reach a server, stay there, come back.
 */
#include "connections/redis_link.h"

#include <hiredis/hiredis.h>

#include <string.h>
#include <unistd.h>

enum {
    BACKOFF_FIRST = 50, /* ms; the first retry goes at once, then it doubles */
    BACKOFF_CAP = 1000, /* ms */
    BACKOFF_LOGIN =
        5000, /* ms; a wrong password does not mend by itself, and is noted down there */
    BACKOFF_DOUBLINGS = 6,
    CAP_MIN = 10,     /* ms */
    GOOD_LIFE = 1000, /* ms; a connection that lived so long starts afresh */
    ATTEMPT_DEFAULT = 5000
};

/* ---------------------------------------------------------------- small parts */

void coord__redis_link_log(const struct coord__redis_link *link, coord_ms now,
                           enum coord_log_level level, enum coord_err code, const char *text)
{
    const struct coord_log *log = link->users != NULL ? link->users->log : NULL;
    coord_log_write(log, now, level, code, link->target.shown, "%s", text);
}

/* xorshift64*: jitter only. */
static coord_ms jitter(struct coord__redis_link *link, coord_ms below)
{
    link->random ^= link->random >> 12;
    link->random ^= link->random << 25;
    link->random ^= link->random >> 27;
    return below == 0 ? 0 : (link->random * 0x2545f4914f6cdd1dull >> 33) % below;
}

static coord_ms backoff(struct coord__redis_link *link, enum coord_err code)
{
    if (link->failures == 0) {
        return 0;
    }
    const unsigned doublings =
        link->failures <= BACKOFF_DOUBLINGS ? link->failures - 1 : BACKOFF_DOUBLINGS;
    coord_ms cap = coord_ms_min(BACKOFF_CAP, coord_ms_max(CAP_MIN, link->shortest / 2));
    if (code == COORD_E_WRONG_PASSWORD) {
        cap = BACKOFF_LOGIN;
    }
    const coord_ms wait = coord_ms_min((coord_ms)BACKOFF_FIRST << doublings, cap);
    return wait - jitter(link, wait / 4 + 1);
}

void coord__redis_link_drop_resolution(struct coord__redis_link *link)
{
    if (link->resolution != NULL) {
        link->resolver->drop(link->resolver->ctx, link->resolution);
        link->resolution = NULL;
    }
}

void coord__redis_link_close(struct coord__redis_link *link)
{
    if (link->fd >= 0) {
        coord__redis_tls_free(link->tls);
        link->tls = NULL;
        close(link->fd);
        link->fd = -1;
    }
    if (link->reader != NULL) {
        redisReaderFree(link->reader);
        link->reader = NULL;
    }
    coord__redis_buffer_clear(&link->greeting);
    link->starved = false;
    link->written = 0;
}

/* ---------------------------------------------------------------- begin and end */

static void count_users(struct coord__redis_link *link)
{
    const struct coord_redis_user *first = link->users;
    link->attempt = first != NULL ? first->attempt : ATTEMPT_DEFAULT;
    link->shortest = link->attempt;
    for (const struct coord_redis_user *u = first; u != NULL; u = u->next) {
        link->attempt = coord_ms_max(link->attempt, u->attempt);
        link->shortest = coord_ms_min(link->shortest, u->attempt);
    }
}

void coord__redis_link_init(struct coord__redis_link *link, const struct coord__redis_link_ops *ops,
                            void *owner, uint64_t seed)
{
    link->ops = ops;
    link->owner = owner;
    link->fd = -1;
    count_users(link);
    /* Numbers that no other connection of this process uses, so that one descriptor number with
     * one generation is one open socket. */
    link->generation = ((uint64_t)(uintptr_t)link << 16) ^ (seed & 0xffff);
    link->random = (link->generation ^ seed) | 1;
}

void coord__redis_link_join(struct coord__redis_link *link, struct coord_redis_user *user)
{
    user->next = link->users;
    link->users = user;
    count_users(link);
}

void coord__redis_link_leave(struct coord__redis_link *link, struct coord_redis_user *user)
{
    struct coord_redis_user **at = &link->users;
    while (*at != NULL && *at != user) {
        at = &(*at)->next;
    }
    COORD_ASSERT(*at == user);
    *at = user->next;
    count_users(link);
}

void coord__redis_link_fini(struct coord__redis_link *link, bool forked)
{
    if (forked) {
        link->resolution = NULL; /* its thread is the parent's */
    }
    coord__redis_link_drop_resolution(link);
    coord__redis_link_close(link);
    coord__redis_buffer_free(&link->greeting);
    coord__redis_buffer_free(&link->out);
    explicit_bzero(&link->target.login, sizeof link->target.login);
}

static void tell_failure(struct coord__redis_link *link, coord_ms now)
{
    if (link->told == link->error.code) {
        return;
    }
    link->told = link->error.code;
    const enum coord_log_level level =
        link->quiet && link->error.code != COORD_E_NO_RIGHT ? COORD_LOG_DEBUG : COORD_LOG_INFO;
    coord__redis_link_log(link, now, level, link->error.code, link->error.text);
}

void coord__redis_link_fail(struct coord__redis_link *link, const struct coord_error *error,
                            coord_ms now)
{
    const struct coord_error why = *error; /* it may be the link's own */
    if (link->state == COORD__REDIS_LINK_UP && now - link->up_since >= GOOD_LIFE) {
        link->failures = 0;
    }
    coord__redis_link_drop_resolution(link);
    coord__redis_link_close(link);
    link->error = why;
    link->retry_at = coord_ms_add(now, backoff(link, why.code));
    link->failures++;
    link->state = COORD__REDIS_LINK_PAUSED;
    tell_failure(link, now);
    link->ops->down(link->owner, &link->error, now);
}

void coord__redis_link_break(struct coord__redis_link *link, const struct coord_error *why,
                             coord_ms now)
{
    coord__redis_link_fail(link, why, now);
    link->retry_at = now;
}

void coord__redis_link_is_up(struct coord__redis_link *link, coord_ms now)
{
    link->state = COORD__REDIS_LINK_UP;
    link->up_since = now;
    link->error.code = COORD_OK;
    link->error.text[0] = '\0';
    if (link->told != COORD_OK) {
        link->told = COORD_OK;
        coord__redis_link_log(link, now, link->quiet ? COORD_LOG_DEBUG : COORD_LOG_INFO, COORD_OK,
                              "connected again");
    }
    link->ops->up(link->owner, now);
}

void coord__redis_link_want(struct coord__redis_link *link, coord_ms now)
{
    if (link->state == COORD__REDIS_LINK_IDLE) {
        coord__redis_connect(link, now);
    }
    if (link->state == COORD__REDIS_LINK_NEXT) {
        coord__redis_connect_host(link, now);
    }
}

/* ---------------------------------------------------------------- steps; true: go on */

static void broken(struct coord__redis_link *link, const struct coord_error *error, coord_ms now)
{
    if (link->state == COORD__REDIS_LINK_UP) {
        coord__redis_link_fail(link, error, now);
    } else {
        coord__redis_link_next_host(link, error, now);
    }
}

/* Hand on every reply that is complete. @return false: the link is another one by now. */
static bool dispatch(struct coord__redis_link *link, coord_ms now)
{
    const uint64_t generation = link->generation;
    while (link->fd >= 0 && link->generation == generation) {
        void *reply = NULL;
        if (redisReaderGetReply(link->reader, &reply) != REDIS_OK) {
            struct coord_error error;
            coord_error_set(&error, COORD_E_PROTOCOL,
                            "the server does not speak the protocol of Redis (%.80s): is the port "
                            "right?",
                            link->reader->errstr);
            broken(link, &error, now);
            return false;
        }
        if (reply == NULL) {
            return true;
        }
        if (link->state == COORD__REDIS_LINK_UP) {
            link->ops->reply(link->owner, reply, now);
        } else {
            coord__redis_greeted(link, reply, now);
        }
    }
    return false;
}

/* What somebody sends to a channel must not fill our memory. */
static bool too_much(const struct coord__redis_link *link)
{
    return link->reader_max > 0 && link->reader->len - link->reader->pos > link->reader_max;
}

/*
 * Most calls find nothing to read: a system call that half of a short round trip's extra time goes
 * into. One is left out where nothing is awaited and the same millisecond has seen one already;
 * what comes all the same is read by the next call, for which its descriptor asks.
 */
static bool spare_a_read(struct coord__redis_link *link, coord_ms now)
{
    const bool spare = link->state == COORD__REDIS_LINK_UP && link->awaited == 0 &&
                       link->quiet_at == now && !link->spared;
    link->spared = spare;
    link->quiet_at = now;
    return spare;
}

static bool talk(struct coord__redis_link *link, coord_ms now)
{
    struct coord_error error;
    size_t written = 0;
    if (link->state == COORD__REDIS_LINK_GREETING) {
        /* One that is full says why and closes: when writing fails, that can still be read. */
        link->starved = coord__redis_socket_write(link, &link->greeting, &written, &error) ==
                        COORD__REDIS_IO_LATER;
    }
    bool full = !spare_a_read(link, now);
    while (full) {
        const enum coord__redis_io io = coord__redis_socket_read(link, &full, &error);
        if (io == COORD__REDIS_IO_BROKEN) {
            broken(link, &error, now);
            return true;
        }
        if (io == COORD__REDIS_IO_LATER) {
            break;
        }
        if (!dispatch(link, now)) {
            return true;
        }
        if (too_much(link)) {
            coord_error_set(&error, COORD_E_PROTOCOL,
                            "somebody sends messages of more than %zu bytes to our channels: the "
                            "connection is made again without them",
                            link->reader_max);
            broken(link, &error, now);
            return true;
        }
    }
    if (link->state == COORD__REDIS_LINK_GREETING && now >= link->deadline) {
        coord_error_set(&error, COORD_E_NO_ANSWER,
                        "the server accepts the connection and says nothing: is it stopped?");
        coord__redis_link_next_host(link, &error, now);
        return true;
    }
    coord__redis_link_write(link, now);
    return false;
}

void coord__redis_link_write(struct coord__redis_link *link, coord_ms now)
{
    struct coord_error error;
    size_t written = 0;
    if (link->state != COORD__REDIS_LINK_UP) {
        return;
    }
    /* Also where nothing waits any more: then no room is asked for. */
    const enum coord__redis_io io = coord__redis_socket_write(link, &link->out, &written, &error);
    link->written += written;
    link->starved = io == COORD__REDIS_IO_LATER;
    if (io == COORD__REDIS_IO_BROKEN) {
        coord__redis_link_fail(link, &error, now);
    }
}

void coord__redis_link_process(struct coord__redis_link *link, coord_ms now)
{
    bool more = true;
    /* We may have been stopped between reading the clock and meeting the server: its run can be
     * younger than that, but not younger than the next time that is told. */
    if (link->run_since == COORD_NEVER && now > link->run_met) {
        link->run_since = now;
    }
    while (more) {
        switch (link->state) {
        case COORD__REDIS_LINK_IDLE:
            more = false;
            break;
        case COORD__REDIS_LINK_PAUSED:
            more = now >= link->retry_at;
            if (more) {
                coord__redis_connect(link, now);
            }
            break;
        case COORD__REDIS_LINK_NEXT:
            coord__redis_connect_host(link, now);
            break;
        case COORD__REDIS_LINK_RESOLVING:
            more = coord__redis_connect_resolved(link, now);
            break;
        case COORD__REDIS_LINK_CONNECTING:
            more = coord__redis_connect_done(link, now);
            break;
        case COORD__REDIS_LINK_GREETING:
        case COORD__REDIS_LINK_UP:
            more = talk(link, now);
            break;
        }
    }
}

/* ---------------------------------------------------------------- waiting */

coord_ms coord__redis_link_deadline(const struct coord__redis_link *link)
{
    switch (link->state) {
    case COORD__REDIS_LINK_PAUSED:
        return link->retry_at;
    case COORD__REDIS_LINK_NEXT:
        return 0;
    case COORD__REDIS_LINK_RESOLVING:
    case COORD__REDIS_LINK_CONNECTING:
    case COORD__REDIS_LINK_GREETING:
        return link->deadline;
    case COORD__REDIS_LINK_IDLE:
    case COORD__REDIS_LINK_UP:
        break;
    }
    return COORD_NEVER;
}

bool coord__redis_link_descriptor(const struct coord__redis_link *link,
                                  struct coord_descriptor *out)
{
    if (link->fd < 0) {
        return false;
    }
    const bool connecting_now = link->state == COORD__REDIS_LINK_CONNECTING;
    const bool handshake = connecting_now && link->tls != NULL;
    out->fd = link->fd;
    out->generation = link->generation;
    out->read = !connecting_now || handshake;
    out->write = link->tls != NULL ? coord__redis_tls_wants_write(link->tls) || link->starved
                                   : connecting_now || link->starved;
    return true;
}
