/* SPDX-License-Identifier: MIT
 * runtime/clock.c - CLOCK_BOOTTIME and CLOCK_REALTIME, both in the vDSO.
 */
#include "runtime/clock.h"

#include <time.h>

coord_ms coord_clock_now(void)
{
    struct timespec t;
    COORD_ASSERT(clock_gettime(CLOCK_BOOTTIME, &t) == 0);
    return (coord_ms)t.tv_sec * 1000 + (coord_ms)t.tv_nsec / 1000000;
}

uint64_t coord_clock_wall_us(void)
{
    struct timespec t;
    COORD_ASSERT(clock_gettime(CLOCK_REALTIME, &t) == 0);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}
