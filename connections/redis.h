/* SPDX-License-Identifier: MIT
 * connections/redis.h - one non-blocking connection to a Redis server, shared by many users.
 *
 * Commands go out in order over one connection; answers come back to the calls that asked. A
 * second connection listens to channels. Both connect by themselves and again, follow Sentinel,
 * and refuse replicas. Nothing here waits, raises SIGPIPE, or knows what the commands mean.
 *
 * All of it is confined to one thread.
 */
#ifndef COORD_CONNECTION_REDIS_H
#define COORD_CONNECTION_REDIS_H

#include "coord/backend.h"
#include "coord/log.h"
#include "coord/resolver.h"
#include "coord/share.h"
#include "coord/uri.h"

#ifdef __cplusplus
extern "C" {
#endif

struct redisReply;
struct coord_redis;
struct coord_redis_events;

enum {
    COORD__REDIS_RUN_MAX = 96,     /* "run_id:master_replid" and the NUL */
    COORD__REDIS_CHANNEL_MAX = 896 /* a channel's name and the NUL */
};

struct coord_redis_config {
    const struct coord_uri *uri;           /* borrowed for the call */
    struct coord_share *share;             /* kept; NULL: a connection of one's own */
    const struct coord_resolver *resolver; /* kept; NULL: only literal addresses and localhost */
    uint64_t seed;                         /* of its jitter; any value */
};

/** One who uses a connection; embedded by its owner, who fills in log and attempt. */
struct coord_redis_user {
    struct coord_redis_user *next;
    const struct coord_log *log; /* kept */
    coord_ms attempt;            /* how long one request may take, connecting included */
};

enum coord_redis_call_state {
    COORD_REDIS_IDLE = 0,
    COORD_REDIS_WAITING = 1,  /* sent, or waits to be */
    COORD_REDIS_ANSWERED = 2, /* `reply` is there, an error reply too */
    COORD_REDIS_FAILED = 3,   /* surely not executed; `error` says why */
    COORD_REDIS_UNKNOWN = 4   /* perhaps executed; `error` says why */
};

/** One command that an answer is wanted for; embedded by its owner. */
struct coord_redis_call {
    enum coord_redis_call_state state;
    struct redisReply *reply; /* ANSWERED: until coord_redis_call_clear() */
    struct coord_error error;
};

/* ---------------------------------------------------------------- commands */

/**
 * Use the server of a URI: an open connection to it, or a new one. Nothing is sent yet.
 *
 * @param config  borrowed; see the struct for what is kept.
 * @param user    kept until coord_redis_close().
 * @param out     written on success.
 * @param error   filled in on failure; may be NULL.
 * @return        COORD_OK; BAD_URI, UNKNOWN_OPTION, BAD_OPTION, NO_TLS, NO_MEMORY, SYSTEM.
 * Thread: confined.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/redis.md, tests/fault/test_redis_connection.c.
 */
COORD_MUST_CHECK enum coord_err coord_redis_open(const struct coord_redis_config *config,
                                                 struct coord_redis_user *user,
                                                 struct coord_redis **out,
                                                 struct coord_error *error);

/**
 * Stop using it. The last user closes it, without a word to the server.
 *
 * @param forked  true in a forked child: the socket is closed, and nothing else is done to it.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/redis.md, tests/fault/test_redis_connection.c.
 */
void coord_redis_close(struct coord_redis *redis, struct coord_redis_user *user, bool forked);

/**
 * Put one command behind those that wait. It goes out with coord_redis_flush(), or as soon as the
 * server is there.
 *
 * @param call   kept until it is answered, failed or forgotten; IDLE before. NULL: nobody waits
 *               for the answer, and an error reply is only logged.
 * @param argc   how many arguments.
 * @param argv   borrowed; any bytes.
 * @param bytes  of each argument.
 * @param now    ms.
 * Thread: confined.   Blocks: never.   Allocates: for the time it waits.   Calls back: never.
 * Source: docs/redis.md, tests/fault/test_redis_connection.c.
 */
void coord_redis_send(struct coord_redis *redis, struct coord_redis_call *call, int argc,
                      const char **argv, const size_t *bytes, coord_ms now);

/** Write what waits; connect first where needed. Thread: confined. */
void coord_redis_flush(struct coord_redis *redis, coord_ms now);

/** Commands go out at once. Thread: confined. */
bool coord_redis_is_up(const struct coord_redis *redis);

/** Why it is not up; code COORD_OK: no reason yet. Borrowed until process(). Thread: confined. */
const struct coord_error *coord_redis_trouble(const struct coord_redis *redis);

/** Take an answered, failed or unknown call back to IDLE; frees its reply. Thread: confined. */
void coord_redis_call_clear(struct coord_redis_call *call);

/**
 * Nobody wants the answer any more. What was not written yet never will be.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/redis.md, tests/fault/test_redis_connection.c.
 */
void coord_redis_forget(struct coord_redis *redis, struct coord_redis_call *call);

/**
 * The answer took too long: forget it, and if it was on the wire, take the connection for dead.
 * What others had on the wire becomes UNKNOWN. A new connection is begun at once.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: coord_log_fn.
 * Source: docs/redis.md, tests/fault/test_redis_connection.c.
 */
void coord_redis_stuck(struct coord_redis *redis, struct coord_redis_call *call, coord_ms now);

/** Connect, read and write as far as goes without waiting; answers land in their calls. */
void coord_redis_process(struct coord_redis *redis, coord_ms now);

/** When coord_redis_process() is due without an event; COORD_NEVER. Thread: confined. */
coord_ms coord_redis_deadline(const struct coord_redis *redis);

/** What to wait for. @return false: no descriptor is open. Thread: confined. */
bool coord_redis_descriptor(const struct coord_redis *redis, struct coord_descriptor *out);

/**
 * Which run of which server it talks to, and for how long at least it has been this one.
 *
 * @param out  room for COORD__REDIS_RUN_MAX; "" where the server does not tell.
 * @param age  ms, rounded down by what clocks may differ; 0 with "".
 * @return     a number that changes whenever another run is met.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/redis.md#takeover, tests/fault/test_redis_connection.c.
 */
uint64_t coord_redis_run(const struct coord_redis *redis, coord_ms now, char *out, coord_ms *age);

/* ---------------------------------------------------------------- channels */

/** Hears one channel; embedded by its owner. */
struct coord_redis_listener {
    struct coord_redis_listener *next;
    char channel[COORD__REDIS_CHANNEL_MAX];
    bool heard;    /* a message came, or the subscription (again) began; the owner takes it back */
    bool in_force; /* the server has said so, over the connection that there is now */
    /* NULL: a hint is enough. Called for each message, from whoever's process() reads it. Where one
     * listener has it the connection is also looked after: a silent one is asked, and replaced. */
    void (*message)(struct coord_redis_listener *listener, const void *bytes, size_t count);
    void *ctx; /* the owner's */
};

/** As coord_redis_open(), for the connection that listens. */
COORD_MUST_CHECK enum coord_err coord_redis_events_open(const struct coord_redis_config *config,
                                                        struct coord_redis_user *user,
                                                        struct coord_redis_events **out,
                                                        struct coord_error *error);

/** As coord_redis_close(); its listeners must have been dropped. */
void coord_redis_events_close(struct coord_redis_events *events, struct coord_redis_user *user,
                              bool forked);

/**
 * Hear a channel. Losing this connection costs speed and nothing else, so it fails silently, but
 * for one line in the log.
 *
 * @param listener  kept until coord_redis_events_drop(); its channel is filled in.
 * Thread: confined.   Blocks: never.   Allocates: for the time it waits.   Calls back: never.
 * Source: docs/redis.md, tests/fault/test_redis_connection.c.
 */
void coord_redis_events_listen(struct coord_redis_events *events,
                               struct coord_redis_listener *listener, coord_ms now);

/** Hear it no more; one never heard of is ignored. Nothing is written. Thread: confined. */
void coord_redis_events_drop(struct coord_redis_events *events,
                             struct coord_redis_listener *listener);

/** As coord_redis_process(). */
void coord_redis_events_process(struct coord_redis_events *events, coord_ms now);

/** As coord_redis_deadline(). */
coord_ms coord_redis_events_deadline(const struct coord_redis_events *events);

/** As coord_redis_trouble(). */
const struct coord_error *coord_redis_events_trouble(const struct coord_redis_events *events);

/** As coord_redis_descriptor(). */
bool coord_redis_events_descriptor(const struct coord_redis_events *events,
                                   struct coord_descriptor *out);

/* ---------------------------------------------------------------- errors */

/**
 * What an error reply means, by its text, and what cures it. Scripts wrap the words of the server,
 * each version in its own way.
 *
 * @param text   the reply, NUL-terminated.
 * @param error  filled in.
 * @return       error->code, never COORD_OK.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/redis.md#errors, tests/unit/test_redis_error.c.
 */
enum coord_err coord_redis_error(const char *text, struct coord_error *error);

/** Is it the answer to EVALSHA of a script that the server has forgotten? Thread: any. */
bool coord_redis_is_noscript(const char *text);

#ifdef __cplusplus
}
#endif
#endif /* COORD_CONNECTION_REDIS_H */
