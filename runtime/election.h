/* SPDX-License-Identifier: MIT
 * runtime/election.h - one candidate of one election, for programs: it reads the clock, answers
 * from any thread, calls back, and waits where asked to.
 *
 * Every call may come from any thread and from inside any callback. Times are ms; a time-out of
 * COORD_NEVER waits for ever. Blocking calls drive the runtime themselves unless helper threads do
 * (runtime/runtime.h); callbacks may then run inside them. `error`, where there is one, may be NULL
 * and is filled in on failure: one sentence with cause and cure. In a forked child every call says
 * COORD_E_FORKED and nobody leads.
 */
#ifndef COORD_ELECTION_H
#define COORD_ELECTION_H

#include "coord/elector.h"
#include "runtime/clock.h"
#include "runtime/runtime.h"
#include "runtime/scheme.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_election;

/** An edge of a term. No lock is held: it may call anything, coord_election_close() included. */
typedef void (*coord_edge_fn)(void *ctx, struct coord_election *election,
                              const struct coord_edge *edge);

/** true: a term has started; false: it has stopped. For programs that need no more than that. */
typedef void (*coord_leader_change_fn)(void *ctx, struct coord_election *election, bool leading);

/** The term's hard deadline has passed, and the host has not acknowledged that its work ended. */
typedef void (*coord_watchdog_fn)(void *ctx, struct coord_election *election, uint64_t term);

/** Start from COORD_ELECTION_CONFIG_INIT. Everything is copied but what is said to be kept. */
struct coord_election_config {
    size_t size;      /* sizeof(struct coord_election_config) */
    const void *name; /* of the election: 1 to 255 bytes, any byte */
    size_t name_bytes;
    const void *identity;  /* unique among the candidates, 1 to 255 bytes, any byte; NULL: made of
                              the host name, the process id and a random suffix */
    size_t identity_bytes; /* of either; 0 with identity NULL */
    const void *metadata;  /* such as an address; told to everybody who asks for the leader */
    size_t metadata_bytes; /* up to COORD_METADATA_MAX */
    coord_ms ttl;          /* 0: the URI's coord.ttl, or the backend's default */
    coord_ms grace;        /* 0: the URI's coord.grace, or ttl / 5 */
    unsigned rank;         /* 0: the URI's coord.priority, or first */
    bool explicit_ack;     /* the work ends later than the stopping callback returns: only
                              coord_election_acknowledge() says when */
    const char *const *options; /* `KEY=VALUE`, as after `coord.` in a URI, which they replace;
                                   ends with NULL; NULL: none */
    coord_watchdog_fn watchdog; /* on the thread that drives; NULL: none. The host has to
                                   acknowledge: by callbacks that return, or by calls that do */
    void *watchdog_ctx;         /* kept */
    bool watchdog_abort;        /* abort() after watchdog, or instead of it */
    struct coord_log log;       /* fn NULL: the runtime's */
};

#define COORD_ELECTION_CONFIG_INIT COORD__INIT(coord_election_config, )

/** How coord_election_stop() left things. Stable values. */
enum coord_stop {
    COORD_STOP_RELEASED = 0, /* nothing is held; a term that ran is resigned in the store */
    COORD_STOP_LAPSING = 1,  /* not the leader any more, or only until hard; others have to wait for
                                the lease to run out */
    COORD_STOP_BUSY = 2,     /* a callback of this election still runs; no other will begin */
    COORD_STOP_UNKNOWN = 3   /* the resignation was sent, the store has not confirmed it */
};

/**
 * Make a candidate from a URI. It does not stand yet, and nothing has been sent.
 *
 * @param runtime  kept until coord_election_close().
 * @param table    borrowed: the schemes that this program knows.
 * @param uri      borrowed, such as "redis://host/0?coord.ttl=10s".
 * @param config   borrowed.
 * @param out      written on success; give it back with coord_election_close().
 * @return         COORD_OK; BAD_URI, UNKNOWN_SCHEME, NOT_INSTALLED, UNKNOWN_OPTION, BAD_OPTION,
 *                 BAD_ARGUMENT, BAD_NAME, BAD_TTL, BAD_METADATA, VERSION_MISMATCH, NO_MEMORY,
 *                 SYSTEM, FORKED, or what the backend refuses. Nothing is left behind.
 * Thread: any.   Blocks: while a library is loaded.   Allocates: yes.   Calls back: never.
 * Source: docs/guide.md#embedding, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_open(
    struct coord_runtime *runtime, const struct coord_scheme *table, const char *uri,
    const struct coord_election_config *config, struct coord_election **out,
    struct coord_error *error);

/**
 * The same for a backend that takes its store from code, such as a shared memory state.
 *
 * @param ops          kept, static.
 * @param backend_ctx  kept until coord_election_close(); what it is, the backend says.
 * @return             as coord_election_open().
 * Thread: any.   Blocks: never.   Allocates: yes.   Calls back: never.
 * Source: docs/guide.md#embedding, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_open_backend(
    struct coord_runtime *runtime, const struct coord_backend_ops *ops, void *backend_ctx,
    const struct coord_election_config *config, struct coord_election **out,
    struct coord_error *error);

/**
 * Let go at once, without a word to the store: a term that still runs lapses. Call
 * coord_election_stop() first to resign it. Inside a callback of this election the object lives
 * until the callback has returned. One that runs on another thread is not waited for: its ctx must
 * live until it has returned.
 *
 * @param election  NULL: nothing happens. Not to be used any more.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e6, tests/contract.
 */
COORD_API void coord_election_close(struct coord_election *election);

/* ---- standing ---- */

/**
 * Stand from now on, again after each lost term. Needs somebody who drives the runtime.
 *
 * @return  COORD_OK, or FORKED.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e7, tests/contract.
 */
COORD_API enum coord_err coord_election_stand(struct coord_election *election);

/**
 * Stop standing. A running term gets its stopping edge and goes on until the work has ended.
 *
 * @return  COORD_OK, or FORKED.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e6, tests/contract.
 */
COORD_API enum coord_err coord_election_withdraw(struct coord_election *election);

/**
 * Withdraw, wait for the host's work to end, and resign. No callback of this election begins after
 * it has returned. Where no callback is registered, and explicit_ack is not set, nobody could be
 * told: the call itself acknowledges, so end the work first. From inside a callback of this
 * election, or of another one while this one leads, it says BUSY without waiting: the work may
 * still go on. stand(), wait() and try_acquire() begin anew.
 *
 * @param bound  ms.
 * @param out    written on success; may be NULL.
 * @return       COORD_OK, or FORKED.
 * Thread: any.   Blocks: up to bound, and while a callback runs inside.   Allocates: never.
 * Calls back: coord_edge_fn, coord_leader_change_fn.
 * Source: docs/guarantees.md#e6, tests/contract.
 */
COORD_API enum coord_err coord_election_stop(struct coord_election *election, coord_ms bound,
                                             enum coord_stop *out);

/* ---- asking; never waits for a store ----
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never. */

/**
 * Does it lead at this moment? Wait-free; the only clock read is the vDSO's. A process that was
 * stopped and goes on gets "no" once the term is over, before anything else of it ran.
 *
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e3, tests/contract.
 */
COORD_API bool coord_election_is_leader(const struct coord_election *election);

/**
 * The same with the term, the fence and the time left, from one consistent read.
 *
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e3, tests/contract.
 */
COORD_API struct coord_claim coord_election_claim(const struct coord_election *election);

/**
 * Who led when the store was last heard. coord_election_observe() asks it.
 *
 * @param out  written on success; leading and taking_over false: nobody that is known.
 * @return     COORD_OK, or FORKED.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#observe, tests/contract.
 */
COORD_API enum coord_err coord_election_leader(struct coord_election *election,
                                               struct coord_observation *out);

/**
 * Say in one sentence why it leads or does not, and what would help.
 *
 * @param out  written on success.
 * @return     COORD_OK, or FORKED: then *out says so.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#explain, tests/contract.
 */
COORD_API enum coord_err coord_election_explain(struct coord_election *election,
                                                struct coord_explanation *out);

/** Its identity, escaped as in an observation; borrowed until close. */
COORD_API const char *coord_election_identity(const struct coord_election *election);

/** The election's name, escaped; borrowed until close. */
COORD_API const char *coord_election_name(const struct coord_election *election);

/** The backend's name, such as "redis"; static. */
COORD_API const char *coord_election_backend(const struct coord_election *election);

/**
 * The elector inside, for calls of a backend's own such as coord_file_elector_liveness_fd().
 *
 * @return  borrowed until close. Everything that changes it goes through this header.
 * Thread: who drives the runtime.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/architecture.md, tests/fault/test_run.c.
 */
COORD_API struct coord_elector *coord_election_elector(struct coord_election *election);

/** The intervals that follow from its ttl; borrowed until close. */
COORD_API const struct coord_timing *coord_election_timing(const struct coord_election *election);

/* ---- blocking calls ---- */

/**
 * One attempt to lead. It acknowledges an earlier term that has ended. When the term that it wins
 * ends, the election does not stand again by itself; a standing one goes on standing in any case.
 *
 * @param timeout  ms.
 * @return         COORD_OK: leading, also when it led already; NOT_LEADER: another holds it, or its
 *                 own term is coming to an end, or was over before the call could return; TIMEOUT:
 *                 not decided in time, such as while an earlier term is waited out:
 *                 coord_election_explain() tells; an error of class RETRY or REFUSED: the store
 *                 could not be asked; CLOSED; FORKED.
 * Thread: any.   Blocks: up to timeout.   Allocates: never.
 * Calls back: coord_edge_fn, coord_leader_change_fn.
 * Source: docs/guide.md#acquire, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_try_acquire(
    struct coord_election *election, coord_ms timeout, struct coord_error *error);

/**
 * Stand until it leads. It acknowledges an earlier term that has ended. When the time is up it
 * withdraws again, unless it stood before the call.
 *
 * @param timeout  ms.
 * @return         COORD_OK: leading; TIMEOUT: the sentence says what it waited for; CLOSED; FORKED.
 *                 A store that refuses is tried again until then.
 * Thread: any.   Blocks: up to timeout.   Allocates: never.
 * Calls back: coord_edge_fn, coord_leader_change_fn.
 * Source: docs/guide.md#acquire, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_wait(struct coord_election *election,
                                                              coord_ms timeout,
                                                              struct coord_error *error);

/**
 * Give the leadership up and stop standing. The call itself says that the work has ended: it leads
 * no more from here on.
 *
 * @param timeout  ms to wait for the store's word.
 * @return         COORD_OK: resigned, or it did not lead; TIMEOUT: not confirmed yet, at the latest
 *                 the lease runs out; an error of class RETRY or REFUSED: the same and why; CLOSED;
 *                 FORKED. In each case it is not the leader.
 * Thread: any.   Blocks: up to timeout.   Allocates: never.
 * Calls back: coord_edge_fn, coord_leader_change_fn.
 * Source: docs/guide.md#acquire, tests/contract.
 */
COORD_API enum coord_err coord_election_release(struct coord_election *election, coord_ms timeout,
                                                struct coord_error *error);

/**
 * Renew now, out of turn, and wait for the store's word: surely the leader at the time of the call.
 *
 * @param timeout  ms.
 * @return         COORD_OK: renewed; NOT_LEADER: it does not lead, or lost the term just now;
 *                 TIMEOUT, or an error of class RETRY or REFUSED: not renewed yet; the term goes on
 *                 until its deadline; CLOSED; FORKED.
 * Thread: any.   Blocks: up to timeout.   Allocates: never.
 * Calls back: coord_edge_fn, coord_leader_change_fn.
 * Source: docs/guide.md#acquire, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_renew(struct coord_election *election,
                                                               coord_ms timeout,
                                                               struct coord_error *error);

/**
 * Ask the store who leads. Neither changes the candidacy nor needs one.
 *
 * @param timeout  ms.
 * @param out      written on success; leading and taking_over false: nobody.
 * @return         COORD_OK; TIMEOUT; an error of class RETRY or REFUSED; CLOSED; FORKED.
 * Thread: any.   Blocks: up to timeout.   Allocates: never.
 * Calls back: coord_edge_fn, coord_leader_change_fn.
 * Source: docs/guide.md#observe, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_observe(struct coord_election *election,
                                                                 coord_ms timeout,
                                                                 struct coord_observation *out,
                                                                 struct coord_error *error);

/**
 * Ask whoever leads, through the store, to step down, and wait until that term is over. A leader
 * that is this very object steps down itself.
 *
 * @param to    identity of the wanted successor, unescaped text; NULL: anyone but the leader.
 * @param wait  ms; the request is void after it, or after a day. Two leases are a good measure.
 * @return      COORD_OK: the term is over; NO_LEADER: nobody leads; TIMEOUT: it leads still;
 *              BAD_NAME; an error of class RETRY or REFUSED; CLOSED; FORKED.
 * Thread: any.   Blocks: up to wait.   Allocates: never.
 * Calls back: coord_edge_fn, coord_leader_change_fn.
 * Source: docs/guide.md#step-down, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_ask_step_down(
    struct coord_election *election, const char *to, coord_ms wait, struct coord_error *error);

/**
 * Write a clear record: the operator's word that nobody leads and no earlier term still runs.
 *
 * @param timeout  ms.
 * @return         COORD_OK; BUSY: somebody leads, or is about to, and is to end first; TIMEOUT; an
 *                 error of class RETRY or REFUSED; CLOSED; FORKED.
 * Thread: any.   Blocks: up to timeout.   Allocates: never.
 * Calls back: coord_edge_fn, coord_leader_change_fn.
 * Source: docs/guarantees.md#takeover, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_init_record(
    struct coord_election *election, coord_ms timeout, struct coord_error *error);

/* ---- while it leads, or stands ----
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never. */

/**
 * The host's work of a term has ended: the term is over and can be resigned.
 *
 * @param term  from an edge or a claim; any other one is ignored.
 * @return      COORD_OK, or FORKED.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e6, tests/contract.
 */
COORD_API enum coord_err coord_election_acknowledge(struct coord_election *election, uint64_t term);

/**
 * End the own term and stand aside for half a lease; it goes on standing afterwards.
 *
 * @param to  identity of the preferred successor, unescaped text; NULL: anyone.
 * @return    COORD_OK: the term is stopping; NOT_LEADER; BAD_NAME; FORKED.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#step-down, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_step_down(struct coord_election *election,
                                                                   const char *to);

/** Do not stand until coord_election_resume(). A running term goes on. @return COORD_OK, FORKED. */
COORD_API enum coord_err coord_election_pause(struct coord_election *election);

/** Stand again. @return COORD_OK, FORKED. */
COORD_API enum coord_err coord_election_resume(struct coord_election *election);

/** A sick host steps down, and does not stand until it is well. @return COORD_OK, FORKED. */
COORD_API enum coord_err coord_election_report_health(struct coord_election *election,
                                                      bool healthy);

/* ---- callbacks ---- */

/**
 * Be told of every edge of every term. Callbacks run one at a time, in the order of registration;
 * work that lasts belongs on a thread of the host's, or nobody can be told that it has to end.
 * One that is added while an edge is being told hears of the next. Unless explicit_ack is set, the
 * return of all callbacks from a stopping edge, or else from the stopped edge, acknowledges the
 * term. Where no callback is registered, only calls acknowledge, or the term's hard deadline.
 *
 * @param fn   called with ctx, which is kept.
 * @return     COORD_OK, NO_MEMORY, BAD_ARGUMENT, FORKED.
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/guarantees.md#e4, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_on_edge(struct coord_election *election,
                                                                 coord_edge_fn fn, void *ctx);

/**
 * Take one registration back; also from inside a callback. No call of it begins afterwards.
 *
 * @return  true: it was registered.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e4, tests/contract.
 */
COORD_API bool coord_election_remove_edge_callback(struct coord_election *election,
                                                   coord_edge_fn fn, void *ctx);

/**
 * Be told when it becomes the leader (true) and when it is not any more (false), and nothing in
 * between; the rules are those of coord_election_on_edge().
 *
 * @return  COORD_OK, NO_MEMORY, BAD_ARGUMENT, FORKED.
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/guarantees.md#e4, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_election_on_leader_change(
    struct coord_election *election, coord_leader_change_fn fn, void *ctx);

/** As coord_election_remove_edge_callback(). @return true: it was registered.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never. */
COORD_API bool coord_election_remove_leader_change_callback(struct coord_election *election,
                                                            coord_leader_change_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTION_H */
