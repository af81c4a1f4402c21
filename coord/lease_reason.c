/* SPDX-License-Identifier: MIT
 * coord/lease_reason.c - the lease machine: why it leads, or does not.
 */
#include "coord/lease.h"

static enum coord_reason failing(const struct coord_lease *lease)
{
    return coord_err_class(lease->error.code) == COORD_CLASS_REFUSED ? COORD_REASON_REFUSED
                                                                     : COORD_REASON_RETRYING;
}

static enum coord_reason of_candidate(const struct coord_lease *lease, coord_ms now,
                                      coord_ms *until)
{
    if (!lease->standing) {
        return COORD_REASON_NOT_STANDING;
    }
    if (lease->sick) {
        return COORD_REASON_SICK;
    }
    if (lease->paused) {
        return COORD_REASON_PAUSED;
    }
    if (lease->edge_count > 0) {
        return COORD_REASON_WAITING_FOR_HOST;
    }
    if (now < lease->aside_until) {
        *until = lease->aside_until;
        return COORD_REASON_STANDING_ASIDE;
    }
    if (lease->failures > 0) {
        *until = lease->try_at;
        return failing(lease);
    }
    if (lease->last_outcome == COORD_HELD) {
        *until = lease->last_retry_at;
        return COORD_REASON_HELD;
    }
    if (lease->last_outcome == COORD_RESERVED) {
        *until = lease->last_retry_at;
        return COORD_REASON_RESERVED;
    }
    if (lease->claim_at != COORD_NEVER) {
        *until = lease->claim_at;
        return COORD_REASON_CLAIM_DELAY;
    }
    return COORD_REASON_ASKING;
}

enum coord_reason coord_lease_reason(const struct coord_lease *lease, coord_ms now,
                                     coord_ms *for_ms)
{
    const struct coord__term *term = &lease->term;
    enum coord_reason reason = COORD_REASON_NOT_STANDING;
    coord_ms until = COORD_NEVER;
    if (coord_lease_leading_at(lease, now)) {
        reason = term->state == COORD__TERM_STOPPING ? COORD_REASON_STOPPING : COORD_REASON_LEADING;
        until = term->hard;
    } else if (term->state == COORD__TERM_OWED) {
        reason = COORD_REASON_TAKING_OVER;
        until = term->clear_at;
    } else if (term->state == COORD__TERM_NONE) {
        reason = of_candidate(lease, now, &until);
    } else {
        reason = term->acknowledged ? COORD_REASON_RESIGNING : COORD_REASON_WAITING_FOR_HOST;
    }
    *for_ms = until == COORD_NEVER ? COORD_NEVER : coord_ms_sub(until, now);
    return reason;
}
