/* SPDX-License-Identifier: MIT
 * connections/redis_ask.h - one question after the other to a Redis server, and the answer at once:
 * for doctors, who may wait. What elects or carries messages never does.
 */
#ifndef COORD_CONNECTION_REDIS_ASK_H
#define COORD_CONNECTION_REDIS_ASK_H

#include "connections/redis.h"
#include "coord/uri.h"

#include <hiredis/hiredis.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD__REDIS_WORDS = 8, /* of a question, at most */
    COORD__REDIS_FIELD = 64 /* of what is read from INFO and CONFIG, with the NUL */
};

struct coord_redis_ask {
    struct coord_redis *redis;
    struct coord_redis_user member;
    struct coord_redis_call call; /* the last question; its reply is freed by the next one */
    coord_ms (*now)(void);
};

/** Nothing is sent before the first question. @return COORD_OK, BAD_URI, BAD_OPTION, NO_MEMORY. */
COORD_MUST_CHECK enum coord_err coord_redis_ask_open(const struct coord_uri *uri,
                                                     coord_ms (*now)(void),
                                                     struct coord_redis_ask *out);
void coord_redis_ask_close(struct coord_redis_ask *ask);

/**
 * Ask. It blocks, up to 10 s.
 *
 * @param words  NUL-terminated, `count` of them, COORD__REDIS_WORDS at most.
 * @return       the answer, an error reply too, until the next question; NULL: see
 *               ask->call.error.
 */
const redisReply *coord_redis_ask(struct coord_redis_ask *ask, int count, const char **words);

/** What an answer means. @param why filled in. @return COORD_OK: it was done. */
enum coord_err coord_redis_ask_code(const struct coord_redis_ask *ask, const redisReply *reply,
                                    struct coord_error *why);

/** A setting. @return false: this server keeps it to itself, and out is "". */
bool coord_redis_ask_setting(struct coord_redis_ask *ask, const char *name, char *out, size_t room);

/** A field of INFO's answer. @param info may be NULL. @return out, "" where it is not told. */
const char *coord_redis_info_field(const redisReply *info, const char *name,
                                   char out[COORD__REDIS_FIELD]);

/** The server's clock from the answer to TIME, us since 1970; 0: it has none. */
int64_t coord_redis_clock_of(const redisReply *reply);

/** Wait for what a connection wants, or so long. @param open false: it wants nothing. */
void coord_redis_ask_wait(bool open, const struct coord_descriptor *wanted, coord_ms most);

/** Waits for the answer of getaddrinfo(). */
extern const struct coord_resolver coord__redis_resolve_at_once;

#define COORD_REDIS_WORDS(...) ((const char *[]){__VA_ARGS__})
#define COORD_REDIS_ASK(ask, ...)                                                         \
    coord_redis_ask((ask), (int)(sizeof COORD_REDIS_WORDS(__VA_ARGS__) / sizeof(char *)), \
                    COORD_REDIS_WORDS(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif /* COORD_CONNECTION_REDIS_ASK_H */
