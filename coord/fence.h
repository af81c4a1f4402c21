/* SPDX-License-Identifier: MIT
 * coord/fence.h - the one rule by which every store numbers its terms.
 */
#ifndef COORD_FENCE_H
#define COORD_FENCE_H

#include "coord/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a lost or replaced record moves the clock's part forward by: 71 minutes in microseconds. */
#define COORD_FENCE_LEAP (UINT64_C(1) << 32)

/** Fences stay below it, so that JSON and Lua carry them whole. */
#define COORD_FENCE_LIMIT (UINT64_C(1) << 53)

/**
 * The fence of a new term: above the stored one, above every one that this process has seen of
 * the name, and not below the store's clock. A store that may have forgotten terms moves its clock
 * forward by COORD_FENCE_LEAP. The leap belongs to the clock alone: added to the maximum, two
 * empty restarts would go backwards.
 *
 * @param stored    the highest that the record tells; 0: none.
 * @param seen      the highest that this process has seen of the name; 0: none.
 * @param clock_us  the store's wall clock, microseconds since 1970.
 * @param foreign   there is no record, or it is torn, or it is of another run of the store.
 * @return          the fence; never 0. UINT64_MAX where there is nothing above what was stored.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e2, tests/unit/test_fence.c.
 */
COORD_API uint64_t coord_fence_next(uint64_t stored, uint64_t seen, uint64_t clock_us,
                                    bool foreign);

#ifdef __cplusplus
}
#endif
#endif /* COORD_FENCE_H */
