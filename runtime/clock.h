/* SPDX-License-Identifier: MIT
 * runtime/clock.h - the two clocks that runtime/ injects into everything else.
 */
#ifndef COORD_CLOCK_H
#define COORD_CLOCK_H

#include "coord/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The time of every deadline: ms since boot, suspend included, rounded down; it never goes back.
 *
 * @return  ms; a vDSO read of CLOCK_BOOTTIME, no system call on usual kernels.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#clocks, tests/unit/test_runtime.c.
 */
COORD_API coord_ms coord_clock_now(void);

/**
 * The time that people read: us since 1970. It may jump; no deadline depends on it.
 *
 * @return  us.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#clocks, tests/unit/test_runtime.c.
 */
COORD_API uint64_t coord_clock_wall_us(void);

#ifdef __cplusplus
}
#endif
#endif /* COORD_CLOCK_H */
