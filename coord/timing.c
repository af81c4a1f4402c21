/* SPDX-License-Identifier: MIT
 * coord/timing.c - R, A, M and G as shares of L; the rule that leaves room for two tries.
 */
#include "coord/timing.h"

#include <inttypes.h>

static coord_ms useful(coord_ms lease)
{
    return lease - lease / COORD_RATE_ERROR_DIVISOR - (lease % COORD_RATE_ERROR_DIVISOR != 0);
}

static struct coord_timing shares(coord_ms ttl, coord_ms grace)
{
    struct coord_timing t = {.lease = ttl};
    t.renew = coord_ms_min(ttl / 3, 10000);
    t.attempt = coord_ms_min(ttl / 8, 5000);
    t.margin = coord_ms_max(ttl / 30, 20);
    t.grace = grace ? grace : ttl / 5;
    return t;
}

static bool has_room(const struct coord_timing *t)
{
    return t->renew + 2 * t->attempt + t->margin + t->grace <= useful(t->lease);
}

/* The least ttl that takes this grace; the rule holds for ever above one where it holds. */
static coord_ms least_ttl(coord_ms grace)
{
    coord_ms low = COORD_TTL_MIN;
    coord_ms high = COORD_TTL_MAX;
    while (low < high) {
        const coord_ms middle = low + (high - low) / 2;
        const struct coord_timing t = shares(middle, grace);
        if (has_room(&t)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

enum coord_err coord_timing_derive(coord_ms ttl, coord_ms grace, struct coord_timing *out,
                                   struct coord_error *error)
{
    COORD_ASSERT(out != NULL);
    if (ttl < COORD_TTL_MIN || ttl > COORD_TTL_MAX) {
        return coord_error_set(error, COORD_E_BAD_TTL,
                               "a ttl of %" PRIu64 " ms is out of range: use 100ms to 24h", ttl);
    }
    if (grace >= COORD_TTL_MAX) {
        return coord_error_set(error, COORD_E_BAD_TTL,
                               "a grace of %" PRIu64 " ms is out of range: use a fifth of the ttl",
                               grace);
    }
    const struct coord_timing t = shares(ttl, grace);
    if (!has_room(&t)) {
        const coord_ms least = least_ttl(grace);
        const struct coord_timing wanted = shares(least, grace);
        if (!has_room(&wanted)) {
            return coord_error_set(error, COORD_E_BAD_TTL,
                                   "no ttl up to 24h has room for a grace of %" PRIu64
                                   " ms: use a smaller grace",
                                   grace);
        }
        return coord_error_set(error, COORD_E_BAD_TTL,
                               "a ttl of %" PRIu64 " ms is too short for a grace of %" PRIu64
                               " ms and two tries: use a ttl of at least %" PRIu64
                               "ms or a smaller grace",
                               ttl, t.grace, least);
    }
    *out = t;
    return COORD_OK;
}

coord_ms coord_timing_hard(const struct coord_timing *timing, coord_ms sent)
{
    return coord_ms_add(sent, useful(timing->lease)) - timing->margin;
}
