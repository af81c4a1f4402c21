/* SPDX-License-Identifier: MIT
 * coord/timing.h - every interval of an election, derived from its lease.
 */
#ifndef COORD_TIMING_H
#define COORD_TIMING_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_TTL_MIN = 100,                 /* ms */
    COORD_TTL_MAX = 24 * 60 * 60 * 1000, /* ms */
    COORD_RATE_ERROR_DIVISOR = 100       /* e: two clocks differ by at most one part in this */
};

/** All in milliseconds. Only lease and grace are the user's; the rest follows. */
struct coord_timing {
    coord_ms lease;   /* L: how long the store keeps a term without renewal */
    coord_ms renew;   /* R: from one renewal to the next */
    coord_ms attempt; /* A: how long one request may take, connecting included */
    coord_ms margin;  /* M: kept free before the lease's end */
    coord_ms grace;   /* G: from "end your work" to "it has ended" */
};

/**
 * Derive the intervals, and refuse those that leave no room for two tries.
 *
 * @param ttl    the lease, COORD_TTL_MIN to COORD_TTL_MAX ms.
 * @param grace  0: a fifth of the ttl; else its own value in ms.
 * @param out    written on success only.
 * @param error  filled in on failure; may be NULL.
 * @return       COORD_OK, or BAD_TTL: the sentence names the least ttl for this grace.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#timing, tests/unit/test_timing.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_timing_derive(coord_ms ttl, coord_ms grace,
                                                              struct coord_timing *out,
                                                              struct coord_error *error);

/**
 * When a term that was asked for or renewed at `sent` has surely ended by the holder's clock.
 *
 * @return  sent + L(1-e) - M.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#timing, tests/unit/test_timing.c.
 */
COORD_API coord_ms coord_timing_hard(const struct coord_timing *timing, coord_ms sent);

#ifdef __cplusplus
}
#endif
#endif /* COORD_TIMING_H */
