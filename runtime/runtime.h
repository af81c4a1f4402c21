/* SPDX-License-Identifier: MIT
 * runtime/runtime.h - what drives elections: the clock, the poll loop and the threads.
 *
 * One runtime carries any number of elections (runtime/election.h). It can be driven in three ways:
 *
 *   - by the blocking calls of runtime/election.h alone: each polls in the calling thread. Nothing
 *     is renewed between two calls, so this fits programs that wait, work within a term and end;
 *   - by helper threads: coord_runtime_start(). One does I/O, one runs the callbacks, so that a
 *     slow callback never delays a renewal. Blocking calls then only wait;
 *   - by the program's own loop: watch coord_runtime_fd() for reading, call coord_runtime_process()
 *     when it is readable. Callbacks run inside that call, where a slow one can cost the term.
 */
#ifndef COORD_RUNTIME_H
#define COORD_RUNTIME_H

#include "coord/log.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_runtime;

/** Start from COORD_RUNTIME_CONFIG_INIT. Copied. */
struct coord_runtime_config {
    size_t size;          /* sizeof(struct coord_runtime_config) */
    struct coord_log log; /* for elections without one of their own. Called with a lock held, on
                             whatever thread drives: it must neither call coord nor fork */
};

#define COORD_RUNTIME_CONFIG_INIT COORD__INIT(coord_runtime_config, )

/**
 * Make a runtime. No thread is started, nothing is connected.
 *
 * @param config  borrowed; NULL: the defaults.
 * @param out     written on success; give it back with coord_runtime_free().
 * @param error   filled in on failure; may be NULL.
 * @return        COORD_OK; VERSION_MISMATCH, NO_MEMORY, SYSTEM (descriptors, maps). Nothing is
 *                left behind.
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/guide.md#embedding, tests/unit/test_runtime.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_runtime_new(
    const struct coord_runtime_config *config, struct coord_runtime **out,
    struct coord_error *error);

/**
 * End the helper threads and close whatever elections are still open, as coord_election_close()
 * does. In a forked child only memory and descriptors are let go; the parent's store is untouched.
 *
 * @param runtime  NULL: nothing happens. Not from inside a callback.
 * Thread: any, as the last call.   Blocks: until a running callback has returned.
 * Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e6, tests/unit/test_runtime.c.
 */
COORD_API void coord_runtime_free(struct coord_runtime *runtime);

/**
 * Start the helper threads, with all signals blocked. Already started: nothing changes.
 *
 * @param error  filled in on failure; may be NULL.
 * @return       COORD_OK; FORKED; SYSTEM: no thread could be made, the runtime is as before.
 * Thread: any.   Blocks: never.   Allocates: thread stacks.   Calls back: never.
 * Source: docs/guide.md#threads, tests/contract.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_runtime_start(struct coord_runtime *runtime,
                                                              struct coord_error *error);

/**
 * End the helper threads; elections stay as they are, and somebody else has to drive them. End
 * their terms first with coord_election_stop().
 *
 * @param bound  ms to wait for a callback that runs; COORD_NEVER: as long as it takes.
 * @return       COORD_OK: the threads are gone, or there were none; BUSY: a callback still runs at
 *               the bound, or this is called from inside one: the threads go on, call again; FORKED
 * Thread: any.   Blocks: up to bound.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#threads, tests/unit/test_threads.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_runtime_stop(struct coord_runtime *runtime,
                                                             coord_ms bound);

/**
 * The one descriptor for a foreign loop: readable when coord_runtime_process() has something to do,
 * because of the network, of a call from another thread, or of a deadline. It never changes.
 *
 * @return  an epoll descriptor, owned by the runtime: watch it for reading (level-triggered), do
 *          nothing else with it. -1 in a forked child.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#loops, tests/contract.
 */
COORD_API int coord_runtime_fd(struct coord_runtime *runtime);

/**
 * When to call coord_runtime_process() at the latest, for loops that keep their own timers. The
 * descriptor turns readable then, too, so a loop may as well do without.
 *
 * @return  an absolute time of coord_clock_now(); one that has passed: at once; COORD_NEVER.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#loops, tests/contract.
 */
COORD_API coord_ms coord_runtime_deadline(struct coord_runtime *runtime);

/**
 * Do all that can be done without waiting: read, let deadlines pass, send, run callbacks. Nothing
 * happens while helper threads run, or while a blocking call of another thread drives.
 *
 * @return  COORD_OK, or FORKED.
 * Thread: any.   Blocks: never; callbacks may.   Allocates: never.
 * Calls back: coord_edge_fn, coord_leader_change_fn, coord_watchdog_fn, coord_log_fn.
 * Source: docs/guide.md#loops, tests/contract.
 */
COORD_API enum coord_err coord_runtime_process(struct coord_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif /* COORD_RUNTIME_H */
