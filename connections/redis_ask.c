/* SPDX-License-Identifier: MIT
 * connections/redis_ask.c - questions to a Redis server whose answers are waited for.
 */
#include "connections/redis_ask.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATIENCE = 10000, /* ms a question */
    CONNECT = 3000    /* ms a step of connecting */
};

enum coord_err coord_redis_ask_open(const struct coord_uri *uri, coord_ms (*now)(void),
                                    struct coord_redis_ask *out)
{
    const struct coord_redis_config connection = {.uri = uri,
                                                  .resolver = &coord__redis_resolve_at_once};
    *out = (struct coord_redis_ask){.now = now, .member = {.attempt = CONNECT}};
    return coord_redis_open(&connection, &out->member, &out->redis, NULL);
}

void coord_redis_ask_close(struct coord_redis_ask *ask)
{
    coord_redis_forget(ask->redis, &ask->call);
    coord_redis_close(ask->redis, &ask->member, false);
}

void coord_redis_ask_wait(bool open, const struct coord_descriptor *wanted, coord_ms most)
{
    struct pollfd p = {.fd = -1};
    if (open) {
        p.fd = wanted->fd;
        p.events = (short)((wanted->read ? POLLIN : 0) | (wanted->write ? POLLOUT : 0));
    }
    poll(&p, open ? 1 : 0, (int)most);
}

const redisReply *coord_redis_ask(struct coord_redis_ask *ask, int count, const char **words)
{
    size_t bytes[COORD__REDIS_WORDS];
    const coord_ms until = ask->now() + PATIENCE;
    COORD_ASSERT(count <= COORD__REDIS_WORDS);
    for (int i = 0; i < count; i++) {
        bytes[i] = strlen(words[i]);
    }
    coord_redis_call_clear(&ask->call);
    coord_redis_send(ask->redis, &ask->call, count, words, bytes, ask->now());
    coord_redis_flush(ask->redis, ask->now());
    coord_redis_process(ask->redis, ask->now());
    while (ask->call.state == COORD_REDIS_WAITING) {
        struct coord_descriptor wanted;
        const coord_ms now = ask->now();
        if (now >= until) {
            coord_redis_forget(ask->redis, &ask->call);
            coord_error_set(&ask->call.error, COORD_E_NO_ANSWER,
                            "the server did not answer in time: see whether it is overloaded");
            return NULL;
        }
        const bool open = coord_redis_descriptor(ask->redis, &wanted);
        const coord_ms at = coord_ms_min(until, coord_redis_deadline(ask->redis));
        coord_redis_ask_wait(open, &wanted, coord_ms_sub(at, now));
        coord_redis_process(ask->redis, ask->now());
    }
    return ask->call.state == COORD_REDIS_ANSWERED ? ask->call.reply : NULL;
}

enum coord_err coord_redis_ask_code(const struct coord_redis_ask *ask, const redisReply *reply,
                                    struct coord_error *why)
{
    if (reply == NULL) {
        *why = ask->call.error;
        return why->code;
    }
    why->code = COORD_OK;
    return reply->type == REDIS_REPLY_ERROR ? coord_redis_error(reply->str, why) : COORD_OK;
}

bool coord_redis_ask_setting(struct coord_redis_ask *ask, const char *name, char *out, size_t room)
{
    const redisReply *reply = COORD_REDIS_ASK(ask, "CONFIG", "GET", name);
    const bool told = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                      reply->element[1]->type == REDIS_REPLY_STRING;
    snprintf(out, room, "%s", told ? reply->element[1]->str : "");
    return told;
}

const char *coord_redis_info_field(const redisReply *info, const char *name,
                                   char out[COORD__REDIS_FIELD])
{
    const size_t bytes = strlen(name);
    const char *at = info != NULL ? info->str : NULL;
    out[0] = '\0';
    while (at != NULL && (strncmp(at, name, bytes) != 0 || at[bytes] != ':')) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at != NULL) {
        const int length = (int)strcspn(at + bytes + 1, "\r\n");
        snprintf(out, COORD__REDIS_FIELD, "%.*s",
                 length < COORD__REDIS_FIELD ? length : COORD__REDIS_FIELD - 1, at + bytes + 1);
    }
    return out;
}

/* A whole number of at most so much; -1: it is none. */
static int64_t number_of(const redisReply *reply, int64_t most)
{
    char *end = NULL;
    if (reply->type != REDIS_REPLY_STRING || reply->str[0] < '0' || reply->str[0] > '9') {
        return -1;
    }
    const long long number = strtoll(reply->str, &end, 10);
    return *end == '\0' && number <= most ? number : -1;
}

int64_t coord_redis_clock_of(const redisReply *reply)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
        return 0;
    }
    const int64_t seconds = number_of(reply->element[0], INT32_MAX * INT64_C(1000));
    const int64_t us = number_of(reply->element[1], 999999);
    return seconds < 0 || us < 0 ? 0 : seconds * 1000000 + us;
}
