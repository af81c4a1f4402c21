/* SPDX-License-Identifier: MIT
 * tests/sim/clock.h - clocks that run at their own rate beside the true time of the simulator.
 */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>

#include "coord/base.h"

typedef uint64_t sim_us; /* true time: microseconds since the schedule began */

#define SIM_NEVER UINT64_MAX

struct sim_clock {
    uint64_t base; /* us that it showed at `since` */
    sim_us since;
    int64_t ppm; /* how much faster than true time */
};

static inline uint64_t sim_clock_us(const struct sim_clock *clock, sim_us at)
{
    const int64_t passed = (int64_t)(at - clock->since);
    return clock->base + (uint64_t)(passed + passed * clock->ppm / 1000000);
}

static inline coord_ms sim_clock_ms(const struct sim_clock *clock, sim_us at)
{
    return sim_clock_us(clock, at) / 1000;
}

/* The first true instant at which it shows `ms`, or `from` where it does so already. */
static inline sim_us sim_clock_when(const struct sim_clock *clock, coord_ms ms, sim_us from)
{
    if (ms > UINT64_MAX / 2000) {
        return SIM_NEVER;
    }
    const uint64_t wanted = ms * 1000;
    if (sim_clock_us(clock, from) >= wanted) {
        return from;
    }
    const int64_t left = (int64_t)(wanted - clock->base);
    sim_us at = clock->since + (sim_us)(left - left * clock->ppm / (1000000 + clock->ppm));
    at = at > from + 2 ? at - 2 : from;
    while (sim_clock_us(clock, at) < wanted) {
        at++;
    }
    return at;
}

static inline void sim_clock_jump(struct sim_clock *clock, sim_us at, int64_t by)
{
    const uint64_t shown = sim_clock_us(clock, at);
    clock->base = by < 0 && shown < (uint64_t)-by ? 0 : shown + (uint64_t)by;
    clock->since = at;
}

#endif /* SIM_CLOCK_H */
