/* SPDX-License-Identifier: MIT
 * coord/fence.c - max(stored + 1, seen + 1, clock, and its leap).
 */
#include "coord/fence.h"

static uint64_t above(uint64_t fence)
{
    return fence == UINT64_MAX ? UINT64_MAX : fence + 1;
}

uint64_t coord_fence_next(uint64_t stored, uint64_t seen, uint64_t clock_us, bool foreign)
{
    uint64_t fence = clock_us;
    if (foreign) {
        fence = clock_us > UINT64_MAX - COORD_FENCE_LEAP ? UINT64_MAX : clock_us + COORD_FENCE_LEAP;
    }
    if (above(stored) > fence) {
        fence = above(stored);
    }
    if (above(seen) > fence) {
        fence = above(seen);
    }
    return fence;
}
