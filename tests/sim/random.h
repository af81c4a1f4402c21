/* SPDX-License-Identifier: MIT
 * tests/sim/random.h - the one source of chance of a schedule: everything follows from its seed.
 * No statement draws twice where the order would be the compiler's choice.
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;
};

/* splitmix64 */
static inline uint64_t sim_next(struct sim_random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 to below - 1; 0 when `below` is 0. */
static inline uint64_t sim_below(struct sim_random *random, uint64_t below)
{
    return below == 0 ? 0 : sim_next(random) % below;
}

static inline uint64_t sim_between(struct sim_random *random, uint64_t low, uint64_t high)
{
    return low + sim_below(random, high - low + 1);
}

/* True in `part` of `whole` cases. */
static inline bool sim_chance(struct sim_random *random, unsigned part, unsigned whole)
{
    return sim_below(random, whole) < part;
}

#endif /* SIM_RANDOM_H */
