/* SPDX-License-Identifier: MIT
 * coord/broker.h - what carries messages between the members of a fleet: pure, confined to one
 * thread. The caller's face, and the implementer's at the end.
 *
 * A broker publishes bytes to a topic and hands out what comes in on the topics that are subscribed
 * to: one's own messages too. Nothing is promised of a message beyond that it arrives whole or not
 * at all. What waits is bounded, and what is lost here is counted by its reason. Driven as an
 * elector is: coord_broker_descriptors(), _deadline(), _process(). runtime/bus.h does that on a
 * thread, for programs.
 *
 * Where a function does not say otherwise: Blocks: never. Allocates: never. Calls back: never.
 */
#ifndef COORD_BROKER_H
#define COORD_BROKER_H

#include "coord/backend.h"
#include "coord/broker_request.h"
#include "coord/resolver.h"
#include "coord/share.h"
#include "coord/uri.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_broker;
struct coord_broker_ops;

enum {
    COORD_BROKER_TOPIC_MAX = 256,    /* a topic and its NUL */
    COORD_BROKER_TOPICS_MAX = 32,    /* subscribed to by one broker */
    COORD_BROKER_MESSAGE_MAX = 65536 /* bytes of one message */
};

/** Start from COORD_BROKER_CONFIG_INIT. Everything is copied but what is said to be kept. */
struct coord_broker_config {
    size_t size;            /* sizeof(struct coord_broker_config) */
    size_t inbox_messages;  /* that wait to be taken; 0: 4096. The oldest gives way to a new one */
    size_t inbox_bytes;     /* 0: 4 MiB, with topics */
    size_t outbox_messages; /* that wait for the connection; 0: 1024 */
    size_t outbox_bytes;    /* 0: 1 MiB, with topics; at least one message is taken */
    coord_ms outbox_wait;   /* ms, how long one of them waits at most; 0: 5 s */
    coord_ms attempt;       /* ms, how long connecting, or an answer, may take; 0: 5 s */
    uint64_t seed;          /* of its jitter and its names; different for each broker */
    const struct coord_uri
        *uri;          /* where the server is; borrowed for the call; NULL: broker's own */
    void *backend_ctx; /* for a broker that takes its bus from code; kept */
    struct coord_log log;
    struct coord_share *share;             /* kept; NULL: nothing is shared */
    const struct coord_resolver *resolver; /* kept; NULL: only literal addresses */
};

#define COORD_BROKER_CONFIG_INIT COORD__INIT(coord_broker_config, )

/** One message that came in. Borrowed until the next call on its broker. */
struct coord_broker_message {
    const char *topic; /* NUL-terminated */
    const void *bytes;
    size_t count;
};

/** Why a message was lost here. Values are stable, reasons are only appended. */
enum coord_broker_drop {
    COORD_BROKER_DROP_INBOX_FULL = 0,  /* not taken in time: the reader is slow */
    COORD_BROKER_DROP_OUTBOX_FULL = 1, /* refused by coord_broker_publish() with LIMIT */
    COORD_BROKER_DROP_WAITED = 2,      /* the connection did not come back in outbox_wait */
    COORD_BROKER_DROP_REFUSED = 3,     /* the server would not take it; the log says why */
    COORD_BROKER_DROP_SLOW_MEMBER = 4, /* to one of many: another process does not read */
    COORD_BROKER_DROP_DAMAGED = 5,     /* came in, but not in the form of this broker */
    COORD_BROKER_DROP_INCOMPLETE = 6,  /* came in, but not all of its parts */
    COORD_BROKER_DROP_NO_MEMORY = 7,
    COORD_BROKER_DROP_BROKEN = 8 /* sent, and the connection broke before it was answered */
};

enum {
    COORD_BROKER_DROPS = 9
};

/** How the connection is, and what went over it. */
struct coord_broker_status {
    bool up;        /* what is published goes out, and every subscription is in force */
    coord_ms since; /* when it came up or went down; at first: when it was made */
    uint64_t ups;   /* how often it came up. More than before: something may have been missed */
    struct coord_error error; /* why it is down; COORD_OK: no trouble yet */
    uint64_t published;       /* went out */
    uint64_t received;        /* came in on a topic that is subscribed to */
    uint64_t dropped[COORD_BROKER_DROPS];
    size_t inbox_messages; /* wait to be taken */
    size_t inbox_bytes;
    size_t outbox_messages; /* wait to go out */
    size_t outbox_bytes;
};

/**
 * Make a broker. Nothing has been sent; it connects with coord_broker_process().
 *
 * @param ops     kept, static.
 * @param config  borrowed; see the struct for what is kept.
 * @param now     ms.
 * @param out     written on success; give it back with coord_broker_free().
 * @param error   filled in on failure: the option, its value, the cure. May be NULL.
 * @return        COORD_OK; BAD_ARGUMENT, BAD_URI, UNKNOWN_OPTION, BAD_OPTION, VERSION_MISMATCH,
 *                NO_MEMORY; or what the broker refuses. Nothing is left behind.
 * Thread: confined.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/buses.md, tests/unit/test_broker.c, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_broker_new(const struct coord_broker_ops *ops,
                                                           const struct coord_broker_config *config,
                                                           coord_ms now, struct coord_broker **out,
                                                           struct coord_error *error);

/**
 * Let go, with all that waits: what was published just now may not have gone out, see
 * coord_broker_is_idle().
 *
 * @param broker  NULL: nothing happens.
 * @param forked  true in a forked child: the parent's connection is not touched.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md, tests/contract.
 */
COORD_API void coord_broker_free(struct coord_broker *broker, bool forked);

/**
 * Do all that can be done at `now` without waiting: connect, read, send. Messages and replies wait
 * to be taken afterwards.
 *
 * Thread: confined.   Blocks: never.   Allocates: what comes in, up to its limits.
 * Calls back: coord_log_fn.
 * Source: docs/guide.md#loops, tests/contract.
 */
COORD_API void coord_broker_process(struct coord_broker *broker, coord_ms now);

/** When to call process() without an event; absolute, COORD_NEVER: not at all. Thread: confined. */
COORD_API coord_ms coord_broker_deadline(struct coord_broker *broker);

/** What to wait for, COORD_DESCRIPTORS_MAX at most. @return how many. Thread: confined. */
COORD_API size_t coord_broker_descriptors(struct coord_broker *broker,
                                          struct coord_descriptor *out);

/* ---------------------------------------------------------------- publish and subscribe */

/**
 * Send bytes to everybody who listens to a topic, oneself included. They leave with the next
 * coord_broker_process(); while there is no connection they wait.
 *
 * @param topic  NUL-terminated, 1 to 255 bytes of printable ASCII without blanks; copied.
 * @param bytes  copied; may be NULL where count is 0.
 * @param count  up to COORD_BROKER_MESSAGE_MAX.
 * @param error  filled in on failure; may be NULL.
 * @return       COORD_OK: it waits to go out; BAD_TOPIC; TOO_LARGE; LIMIT: too many wait, the
 *               connection is down or slow: publish later; NOT_SUPPORTED; NO_MEMORY.
 * Thread: confined.   Blocks: never.   Allocates: for the time it waits.   Calls back: never.
 * Source: docs/buses.md, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_broker_publish(struct coord_broker *broker,
                                                               const char *topic, const void *bytes,
                                                               size_t count, coord_ms now,
                                                               struct coord_error *error);

/**
 * Hear a topic from now on. It is in force when the status is up (again). Heard already: nothing
 * changes.
 *
 * @param topic  as for coord_broker_publish().
 * @return       COORD_OK; BAD_TOPIC; LIMIT: COORD_BROKER_TOPICS_MAX are heard; NOT_SUPPORTED;
 *               NO_MEMORY.
 * Thread: confined.   Blocks: never.   Allocates: for as long as it is heard.   Calls back: never.
 * Source: docs/buses.md, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_broker_subscribe(struct coord_broker *broker,
                                                                 const char *topic, coord_ms now,
                                                                 struct coord_error *error);

/** Hear it no more; what came in before can still be taken. Thread: confined. */
COORD_API void coord_broker_unsubscribe(struct coord_broker *broker, const char *topic,
                                        coord_ms now);

/**
 * Take the oldest message that came in.
 *
 * @param out  written on success; borrowed until the next call on this broker.
 * @return     false: there is none.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md, tests/contract.
 */
COORD_API bool coord_broker_next_message(struct coord_broker *broker,
                                         struct coord_broker_message *out);

/** How many wait to be taken. Thread: confined. */
COORD_API size_t coord_broker_waiting(const struct coord_broker *broker);

/** How it is. @param out written. Thread: confined. */
COORD_API void coord_broker_get_status(const struct coord_broker *broker,
                                       struct coord_broker_status *out);

/** Is everything on its way that was published? It may not have arrived. Thread: confined. */
COORD_API bool coord_broker_is_idle(struct coord_broker *broker);

/* ---------------------------------------------------------------- everything else */

/**
 * Ask for one of the other operations. The reply waits for coord_broker_next_reply().
 *
 * @param request  borrowed for the call.
 * @param out_id   written on success: its number, never 0; may be NULL.
 * @param error    filled in on failure; may be NULL.
 * @return         COORD_OK; NOT_SUPPORTED: this broker lacks it, the sentence names both, and
 *                 nothing was sent; BAD_ARGUMENT; LIMIT: too many are outstanding; NO_MEMORY.
 * Thread: confined.   Blocks: never.   Allocates: until it is answered.   Calls back: never.
 * Source: docs/buses.md, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_broker_ask(
    struct coord_broker *broker, const struct coord_broker_request *request, coord_ms now,
    uint64_t *out_id, struct coord_error *error);

/** Take the oldest reply; borrowed until the next call. @return false: none. Thread: confined. */
COORD_API bool coord_broker_next_reply(struct coord_broker *broker, struct coord_broker_reply *out);

/** What it can do: COORD_BROKER_PUBLISH and so on. Thread: any. */
COORD_API unsigned coord_broker_flags(const struct coord_broker *broker);

/** Has it this one? Thread: any. */
COORD_API bool coord_broker_has(const struct coord_broker *broker, unsigned flag);

/** Has it all of these? None wanted: true. Thread: any. */
COORD_API bool coord_broker_has_all(const struct coord_broker *broker, unsigned flags);

/** Has it any of these? None wanted: false. Thread: any. */
COORD_API bool coord_broker_has_any(const struct coord_broker *broker, unsigned flags);

/** Such as "redis". @return static. Thread: any. */
COORD_API const char *coord_broker_name(const struct coord_broker *broker);

/** The name of an operation, such as "dlq_list"; "unknown" for another value. Thread: any. */
COORD_API const char *coord_broker_verb_name(enum coord_broker_verb verb);

/** The stable name of a reason, such as "INBOX_FULL". Thread: any. */
COORD_API const char *coord_broker_drop_name(enum coord_broker_drop drop);

/* ---------------------------------------------------------------- the implementer's face */

enum {
    COORD_BROKER_ABI = 1 /* changes when a member's meaning changes; members are only appended */
};

/**
 * A broker's operations; their state is coord_broker_state(broker), zeroed before init(). None
 * blocks. The base checks topics, sizes and flags, holds what waits in both directions, and counts.
 */
struct coord_broker_ops {
    size_t size;      /* sizeof(struct coord_broker_ops) */
    unsigned abi;     /* COORD_BROKER_ABI */
    const char *name; /* static, such as "redis" */
    size_t state_bytes;
    unsigned flags;             /* COORD_BROKER_PUBLISH and so on */
    size_t message_max;         /* of one message; 0: COORD_BROKER_MESSAGE_MAX */
    const char *const *options; /* names under `coord.` that it takes; NULL-terminated, or NULL */

    /* Check everything that can be checked without waiting. On failure fini() is not called. */
    enum coord_err (*init)(struct coord_broker *broker, const struct coord_broker_config *config,
                           coord_ms now, struct coord_error *error);
    /* Close. In a forked child (`forked`): close descriptors, do nothing else to them. */
    void (*fini)(struct coord_broker *broker, bool forked);
    /* Send one message. @return COORD_OK: it is on its way; BUSY: not now, it is offered again with
     * the next process(); anything else: it is dropped, and the error logged. */
    enum coord_err (*publish)(struct coord_broker *broker, const struct coord_broker_message *what,
                              coord_ms now, struct coord_error *error);
    /* The topics that are heard have changed: coord_broker_topic() has them all. Report down, or
     * nothing, and up when all of them are in force. */
    void (*resubscribe)(struct coord_broker *broker, coord_ms now);
    /* Begin a request; its texts are borrowed for the call. @return COORD_OK, or LIMIT. NULL: none
     * but publish and subscribe. */
    enum coord_err (*ask)(struct coord_broker *broker, const struct coord_broker_request *request,
                          uint64_t id, coord_ms now, struct coord_error *error);
    /* Hand out the oldest reply; its texts live until the next call of next_reply or process. */
    bool (*next_reply)(struct coord_broker *broker, struct coord_broker_reply *out);
    /* Do what can be done without waiting; report. */
    void (*process)(struct coord_broker *broker, coord_ms now);
    /* Fill in what to wait for, at most COORD_DESCRIPTORS_MAX. @return how many. */
    size_t (*descriptors)(struct coord_broker *broker, struct coord_descriptor *out);
    /* When process() is to be called without an event; a time that has passed: at once. */
    coord_ms (*deadline)(struct coord_broker *broker);
    /* Is something of what publish() took still to be written? NULL: never. */
    bool (*unwritten)(struct coord_broker *broker);
};

/** The broker's own state, of ops->state_bytes, aligned for any type. Thread: confined. */
COORD_API void *coord_broker_state(struct coord_broker *broker);

/** The i-th topic that is heard, in any order; NULL: no more. Thread: confined. */
COORD_API const char *coord_broker_topic(const struct coord_broker *broker, size_t index);

/**
 * A message came in. On a topic that is not heard it is passed over; full, the oldest gives way.
 *
 * @param topic  not NUL-terminated.
 * Thread: confined.   Blocks: never.   Allocates: for the time it waits.   Calls back: never.
 * Source: brokers/memory.c, tests/unit/test_broker.c.
 */
COORD_API void coord_broker_deliver(struct coord_broker *broker, const char *topic,
                                    size_t topic_bytes, const void *bytes, size_t count);

/** Publishing works, and every subscription is in force. Up already: nothing. Thread: confined. */
COORD_API void coord_broker_report_up(struct coord_broker *broker, coord_ms now);

/**
 * It is not so, or not any more.
 *
 * @param why  logged where it is new; NULL: no trouble, a subscription is on its way.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: coord_log_fn.
 * Source: brokers/redis.c, tests/unit/test_broker.c.
 */
COORD_API void coord_broker_report_down(struct coord_broker *broker, const struct coord_error *why,
                                        coord_ms now);

/** Messages were lost. Thread: confined. */
COORD_API void coord_broker_count_drop(struct coord_broker *broker, enum coord_broker_drop reason,
                                       uint64_t count);

/** Borrowed until fini(). Thread: confined. */
COORD_API const struct coord_log *coord_broker_log(const struct coord_broker *broker);

/** As configured, with defaults filled in; its uri is NULL after init(). Thread: confined. */
COORD_API const struct coord_broker_config *coord_broker_configured(
    const struct coord_broker *broker);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_H */
