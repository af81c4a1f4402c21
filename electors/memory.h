/* SPDX-License-Identifier: MIT
 * electors/memory.h - election within one process: for programs that run alone, and for tests.
 *
 *   memory:       alone: the candidate wins always, and keeps its term
 *   memory:NAME   contends with every other elector of this process that says the same NAME
 *
 * or, from code, over a shared state of one's own. Leases run on the injected time, terms, fences,
 * reservations and requests to step down are those of every other store. Nothing outlives the
 * process, and nothing can be lost, so a new name leads at once. Electors on different threads may
 * share a state.
 */
#ifndef COORD_MEMORY_H
#define COORD_MEMORY_H

#include "coord/elector.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What several electors contend over; pass it as backend_ctx. */
struct coord_memory_state;

/**
 * The backend's table. Its options: none besides coord.ttl, .grace and .priority.
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#memory, tests/contract/test_memory.c.
 */
COORD_API const struct coord_backend_ops *coord_memory_elector(void);

/**
 * Make a state that electors contend over.
 *
 * @return  NULL: out of memory; else give it back with coord_memory_state_free().
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/guide.md#memory, tests/contract/test_memory.c.
 */
COORD_API struct coord_memory_state *coord_memory_state_new(void);

/**
 * The state that `memory:NAME` means in this process, made where there is none yet.
 *
 * @param name  as in the URI, decoded; at least one byte.
 * @return      NULL: out of memory; else give it back with coord_memory_state_free().
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/guide.md#memory, tests/contract/test_memory.c.
 */
COORD_API struct coord_memory_state *coord_memory_state_named(const char *name);

/**
 * Give a state back. It lives on until its last elector is gone.
 *
 * @param state  NULL: nothing happens.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#memory, tests/contract/test_memory.c.
 */
COORD_API void coord_memory_state_free(struct coord_memory_state *state);

/**
 * For tests of programs: take the lease of a name away from whoever holds it, as a store that lost
 * it would. The holder loses its term at once; the name is free.
 *
 * @param name  unescaped text.
 * @return      true: somebody held it.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#memory, tests/contract/test_memory.c.
 */
COORD_API bool coord_memory_state_revoke(struct coord_memory_state *state, const char *name);

#ifdef __cplusplus
}
#endif
#endif /* COORD_MEMORY_H */
