/* SPDX-License-Identifier: MIT
 * coord/elector.h - the caller's face of one candidate: pure, confined to one thread.
 *
 * A host that runs its own event loop drives it with coord_elector_descriptors(), _deadline() and
 * _process(). Everybody else uses runtime/election.h, which does that on a thread, reads the clock,
 * and answers from any thread. Every `now` is in ms of one clock that never goes back and counts
 * suspend (CLOCK_BOOTTIME on Linux).
 *
 * Where a function does not say otherwise: Blocks: never. Allocates: never. Calls back: never.
 */
#ifndef COORD_ELECTOR_H
#define COORD_ELECTOR_H

#include "coord/backend.h"
#include "coord/lease.h"
#include "coord/resolver.h"
#include "coord/share.h"
#include "coord/uri.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Start from COORD_ELECTOR_CONFIG_INIT. Everything is copied but what is said to be kept. */
struct coord_elector_config {
    size_t size;      /* sizeof(struct coord_elector_config) */
    const void *name; /* of the election: 1 to 255 bytes, any byte */
    size_t name_bytes;
    const void *identity; /* of this candidate, unique among them: 1 to 255 bytes, any byte */
    size_t identity_bytes;
    unsigned char owner[COORD_OWNER_BYTES]; /* random; runtime/ makes one from libuuid */
    const void *metadata;                   /* told to everybody who asks for the leader */
    size_t metadata_bytes;                  /* up to COORD_METADATA_MAX */
    coord_ms ttl;                           /* 0: the URI's coord.ttl, or the backend's default */
    coord_ms grace;                         /* 0: the URI's coord.grace, or ttl / 5 */
    unsigned rank;                          /* 0: the URI's coord.priority, or first */
    bool explicit_ack; /* false: the return of the stopping or stopped callback acknowledges */
    uint64_t seed;     /* of its jitter; any value */
    const struct coord_uri
        *uri;          /* where the store is; borrowed for the call; NULL: backend's own */
    void *backend_ctx; /* for a backend that takes its store from code; kept */
    struct coord_log log;
    struct coord_share *share;             /* kept; NULL: nothing is shared */
    const struct coord_resolver *resolver; /* kept; NULL: only literal addresses */
};

#define COORD_ELECTOR_CONFIG_INIT COORD__INIT(coord_elector_config, )

/** Why it leads or not, for people and for dashboards. */
struct coord_explanation {
    enum coord_reason reason;
    enum coord_end last_end; /* of the term before */
    enum coord_err code;     /* of the last failure, COORD_OK: none since the last success */
    coord_ms for_ms;         /* at most; COORD_NEVER: unknown */
    char error[COORD_ERROR_TEXT_MAX]; /* the sentence of that failure alone; empty: none */
    char text[2 * COORD_ESCAPED_MAX]; /* one sentence: what, who, how long, and what would help */
};

/**
 * Make a candidate. It does not stand yet, and nothing has been sent.
 *
 * @param ops     kept, static.
 * @param config  borrowed; see the struct for what is kept.
 * @param now     ms.
 * @param out     written on success; give it back with coord_elector_free().
 * @param error   filled in on failure: the option, its value, the cure. May be NULL.
 * @return        COORD_OK; BAD_ARGUMENT, BAD_NAME, BAD_TTL, BAD_METADATA, UNKNOWN_OPTION,
 *                BAD_OPTION, VERSION_MISMATCH, NO_MEMORY; or what the backend refuses. Nothing is
 *                left behind.
 * Thread: confined.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/guide.md#embedding, tests/unit/test_elector.c, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_elector_new(
    const struct coord_backend_ops *ops, const struct coord_elector_config *config, coord_ms now,
    struct coord_elector **out, struct coord_error *error);

/**
 * Let go without a word to the store: a term that still runs lapses. Withdraw and wait for
 * coord_elector_settled() first to resign it.
 *
 * @param elector  NULL: nothing happens.
 * @param forked   true in a forked child: the parent's store and server are not touched.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e6, tests/unit/test_elector.c.
 */
COORD_API void coord_elector_free(struct coord_elector *elector, bool forked);

/**
 * The machine in it: stand, withdraw, step down, pause, health, acknowledge, renew, query, claim,
 * edges and reasons are its calls. Call coord_elector_process() after any that changes something.
 *
 * @return  borrowed until coord_elector_free().
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: coord/lease.h.
 */
COORD_API struct coord_lease *coord_elector_lease(struct coord_elector *elector);

/**
 * Do all that can be done at `now` without waiting: read, let time pass, send. Edges wait for
 * coord_lease_next_edge() afterwards.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: coord_log_fn.
 * Source: docs/guide.md#loops, tests/contract.
 */
COORD_API void coord_elector_process(struct coord_elector *elector, coord_ms now);

/** When to call process() without an event; absolute, COORD_NEVER: not at all. Thread: confined. */
COORD_API coord_ms coord_elector_deadline(struct coord_elector *elector);

/** What to wait for, COORD_DESCRIPTORS_MAX at most. @return how many. Thread: confined. */
COORD_API size_t coord_elector_descriptors(struct coord_elector *elector,
                                           struct coord_descriptor *out);

/** Does it lead at `now`? A time that a loop cached gives a stale yes. Thread: confined. */
COORD_API bool coord_elector_leading_at(const struct coord_elector *elector, coord_ms now);

/**
 * Say in one sentence why it leads or does not.
 *
 * @param out  written.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#explain, tests/unit/test_elector.c.
 */
COORD_API void coord_elector_explain(const struct coord_elector *elector, coord_ms now,
                                     struct coord_explanation *out);

/** The intervals that follow from its ttl. Thread: confined. */
COORD_API const struct coord_timing *coord_elector_timing(const struct coord_elector *elector);

/** The stable name of a reason, such as "TAKING_OVER". Thread: any. */
COORD_API const char *coord_reason_name(enum coord_reason reason);

/** The stable name of an end, such as "STEPPED_DOWN". Thread: any. */
COORD_API const char *coord_end_name(enum coord_end end);

/** The version of the library that runs, such as "0.1.0". Thread: any. */
COORD_API const char *coord_version(void);

/* ---- between coord/elector*.c only ---- */
const struct coord_lease *coord__elector_machine(const struct coord_elector *elector);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTOR_H */
