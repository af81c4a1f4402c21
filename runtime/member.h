/* SPDX-License-Identifier: MIT
 * runtime/member.h - one member of a fleet, for programs: it says that it lives and what it works
 * on, hears the others, leaves in order, and reports work that nobody looks after.
 *
 * It rides on a runtime (runtime/runtime.h) beside the elections, and is driven as they are. Every
 * call may come from any thread and from inside its callback, except where it is said otherwise.
 * Times are ms of coord_clock_now(). In a forked child every call says COORD_E_FORKED.
 */
#ifndef COORD_MEMBER_H
#define COORD_MEMBER_H

#include "coord/agent.h"
#include "runtime/bus.h"
#include "runtime/election.h"
#include "runtime/sink.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_member;

/**
 * Something happened: FLEET, LEAVING, DRAIN, STAYING or LEFT; edges of terms are told by the
 * election. No lock is held: it may call anything, coord_member_close() included.
 */
typedef void (*coord_member_fn)(void *ctx, struct coord_member *member,
                                const struct coord_agent_event *event);

/** Start from COORD_MEMBER_CONFIG_INIT. Everything is copied but what is said to be kept. */
struct coord_member_config {
    size_t size; /* sizeof(struct coord_member_config) */
    enum coord_agent_role role;
    const char *id;                  /* UTF-8, 1 to 255 bytes; NULL: that of the election */
    struct coord_election *election; /* of the same runtime, kept: close the member first. It is
                                        stood for. NULL: none */
    struct coord_bus *bus; /* of the same runtime, its own: nobody else takes messages from it, and
                              it has no on_message. Kept: close the member first */
    const char *topic_prefix; /* NULL: COORD_TOPIC_PREFIX */
    coord_ms timeout;         /* T; 0: COORD_TIMEOUT_DEFAULT. The same for a whole fleet */
    coord_ms interval;        /* between heartbeats; 0: T / 4 */
    bool publishes_only;      /* see coord/agent.h */
    bool refuses_orders;      /* only this process decides when it leaves */
    bool heartbeat_events;    /* an event for each heartbeat too */
    enum coord_form form;     /* of its messages */
    coord_ms leave_within;    /* of coord_member_leave_signal(); 0: 30 s */
    bool
        explicit_drain; /* only coord_member_drained() says that the work has ended; else the return
                            from DRAIN does, or, without a function, nothing has to end */
    coord_member_fn fn; /* NULL: none */
    void *ctx;          /* kept */
    struct coord_log log; /* fn NULL: the runtime's */
};

#define COORD_MEMBER_CONFIG_INIT COORD__INIT(coord_member_config, )

/**
 * Join a fleet. It is heard as soon as somebody drives the runtime.
 *
 * @param runtime  kept until coord_member_close().
 * @param config   borrowed; see the struct for what is kept.
 * @param out      written on success.
 * @param error    filled in on failure; may be NULL.
 * @return         COORD_OK; BAD_ARGUMENT, BAD_NAME, VERSION_MISMATCH, NO_MEMORY, SYSTEM, FORKED, or
 *                 what the bus says to its subscriptions. Nothing is left behind.
 * Thread: any.   Blocks: never.   Allocates: yes.   Calls back: never.
 * Source: docs/fleet.md, tests/unit/test_member.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_member_open(
    struct coord_runtime *runtime, const struct coord_member_config *config,
    struct coord_member **out, struct coord_error *error);

/**
 * Let go at once, without a word: the others will see it fall silent. To leave in order, call
 * coord_member_leave() and coord_member_wait() first. No callback begins afterwards; one that runs
 * on another thread is not waited for.
 *
 * @param member  NULL: nothing happens. Not to be used any more.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#leaving, tests/unit/test_member.c.
 */
COORD_API void coord_member_close(struct coord_member *member);

/* ---- what it says ---- */

/**
 * What it works on, as its heartbeats say it from now on.
 *
 * @param names            borrowed for the call; each NUL-terminated.
 * @param in_flight_count  pieces of work that have begun.
 * @param load_factor      0 to 1.
 * @return                 COORD_OK; BAD_ARGUMENT; LIMIT; NO_MEMORY; FORKED.
 * Thread: any.   Blocks: never.   Allocates: for the copy.   Calls back: never.
 * Source: docs/fleet.md, tests/unit/test_member.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_member_serve(struct coord_member *member,
                                                             const char *const *names, size_t count,
                                                             int64_t in_flight_count,
                                                             double load_factor);

/**
 * Assign work to a peer, as the leader and under its fence. Advisory: the peer hears it, and its
 * next heartbeats tell whether it took the work.
 *
 * @return  COORD_OK: on its way; NOT_LEADER; BAD_ARGUMENT; LIMIT; FORKED.
 * Thread: any.   Blocks: never.   Allocates: until it is sent.   Calls back: never.
 * Source: docs/fleet.md, tests/unit/test_member.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_member_assign(struct coord_member *member,
                                                              const char *target,
                                                              const char *const *names,
                                                              size_t count, int64_t priority);

/* ---- leaving ---- */

/**
 * Leave, because of a preemption notice, a signal, a planned window: one call from anywhere. It
 * stops standing, announces it, ends and releases its term, drains, says its last word.
 *
 * @param within  ms from now until it has to be gone; COORD_NEVER: it takes its time.
 * @return        COORD_OK, or FORKED.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#leaving, tests/unit/test_member.c.
 */
COORD_API enum coord_err coord_member_leave(struct coord_member *member, enum coord_intent intent,
                                            coord_ms within);

/** The notice was withdrawn. @return COORD_OK; CLOSED: it is too late, it has said its last word;
 * FORKED. Thread: any.   Blocks: never.   Allocates: never.   Calls back: never. */
COORD_API COORD_MUST_CHECK enum coord_err coord_member_stay(struct coord_member *member);

/** All work has ended, that of a term included. @return COORD_OK, or FORKED.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never. */
COORD_API enum coord_err coord_member_drained(struct coord_member *member);

/**
 * What coord_member_leave_signal() needs: keep it in a variable that the handler reads.
 *
 * @return  owned by the member.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#signals, tests/unit/test_member.c.
 */
COORD_API int coord_member_signal_fd(const struct coord_member *member);

/**
 * From a signal handler: leave, gracefully, within `leave_within`. A notice that came before keeps
 * its reason. Nothing else is touched: what a signal does is the program's own affair.
 *
 * @param fd  of coord_member_signal_fd().
 * Thread: any; async-signal-safe.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#signals, tests/unit/test_member.c.
 */
COORD_API void coord_member_leave_signal(int fd);

/**
 * Wait until it has left: then end the process.
 *
 * @param timeout  ms.
 * @param out      written on COORD_OK: drained, heard and released tell how; may be NULL.
 * @return         COORD_OK; TIMEOUT; CLOSED; FORKED.
 * Thread: any.   Blocks: up to timeout.   Allocates: never.
 * Calls back: coord_member_fn, and callbacks of elections.
 * Source: docs/fleet.md#leaving, tests/unit/test_member.c.
 */
COORD_API enum coord_err coord_member_wait(struct coord_member *member, coord_ms timeout,
                                           struct coord_agent_event *out);

/* ---- what it knows ---- */

/** How it is. */
struct coord_member_view {
    coord_ms now;
    enum coord_agent_phase phase;
    bool judging;   /* it hears itself, so that the silence of others means something */
    coord_ms heard; /* how long it has listened without starting anew */
    bool bus_up;    /* the bus carries messages */
    uint64_t
        lost_events; /* not told, as the callback was too slow; peers and orphans have it all */
    struct coord_coordinator_counts fleet;
    struct coord_agent_counts messages;
};

/** A copy of what is known of the peers at one moment. */
struct coord_member_peers {
    size_t count;
    const struct coord_peer *peer;
    const char *const *const *subscriptions; /* of each; a list that ends with NULL */
};

/** The same of the reports that are open. */
struct coord_member_orphans {
    size_t count;
    const struct coord_orphan *orphan;
};

/** How it is. @return COORD_OK, or FORKED.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never. */
COORD_API enum coord_err coord_member_look(struct coord_member *member,
                                           struct coord_member_view *out);

/**
 * Who is known, oneself left out.
 *
 * @param out  written on success; give it back with coord_member_peers_free().
 * @return     COORD_OK; NO_MEMORY; FORKED.
 * Thread: any.   Blocks: while it is copied.   Allocates: once.   Calls back: never.
 * Source: docs/fleet.md, tests/unit/test_member.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_member_peers(struct coord_member *member,
                                                             struct coord_member_peers **out);

/** The open reports, as coord_member_peers(). @return COORD_OK; NO_MEMORY; FORKED.
 * Thread: any.   Blocks: while it is copied.   Allocates: once.   Calls back: never. */
COORD_API COORD_MUST_CHECK enum coord_err coord_member_orphans(struct coord_member *member,
                                                               struct coord_member_orphans **out);

/** NULL is accepted. Thread: any.   Blocks: never.   Allocates: never.   Calls back: never. */
COORD_API void coord_member_peers_free(struct coord_member_peers *peers);

/** NULL is accepted. Thread: any.   Blocks: never.   Allocates: never.   Calls back: never. */
COORD_API void coord_member_orphans_free(struct coord_member_orphans *orphans);

/**
 * Hand every orphan report that it hears or makes to a sink, from now on.
 *
 * @param sink  kept until coord_member_close() or coord_member_remove_sink().
 * @return      COORD_OK; LIMIT: it has 8; FORKED.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#sinks, tests/unit/test_member.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_member_add_sink(struct coord_member *member,
                                                                struct coord_sink *sink);

/** @return true: it had it. Thread: any.   Blocks: never.   Allocates: never.
 * Calls back: never. */
COORD_API bool coord_member_remove_sink(struct coord_member *member, struct coord_sink *sink);

/** Its id; borrowed until close. Thread: any.   Blocks: never.   Allocates: never.
 * Calls back: never. */
COORD_API const char *coord_member_id(const struct coord_member *member);

#ifdef __cplusplus
}
#endif
#endif /* COORD_MEMBER_H */
