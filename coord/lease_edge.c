/* SPDX-License-Identifier: MIT
 * coord/lease_edge.c - the lease machine: what the host is told of it, and tells it.
 */
#include "coord/lease.h"

#include "coord/rule.h"

bool coord_lease_leading_at(const struct coord_lease *lease, coord_ms now)
{
    return COORD__RULE(stopped_is_no, coord__term_leads(&lease->term)) &&
           COORD__RULE(hard_at_the_call, coord_ms_max(now, lease->now) < lease->term.hard);
}

struct coord_claim coord_lease_claim(const struct coord_lease *lease, coord_ms now)
{
    struct coord_claim claim = {.leading = coord_lease_leading_at(lease, now)};
    if (claim.leading) {
        claim.stopping = lease->term.state == COORD__TERM_STOPPING;
        claim.term = lease->term.number;
        claim.fence = lease->term.fence;
        claim.remaining = lease->term.hard - coord_ms_max(now, lease->now);
        claim.hard = lease->term.hard;
    }
    return claim;
}

bool coord_lease_next_edge(struct coord_lease *lease, struct coord_edge *out)
{
    if (lease->edge_count == 0 || lease->edge_taken) {
        return false;
    }
    lease->edge_taken = true;
    *out = lease->edges[lease->edge_first];
    return true;
}

void coord_lease_edge_done(struct coord_lease *lease, coord_ms now)
{
    COORD_ASSERT(lease->edge_taken);
    const struct coord_edge edge = lease->edges[lease->edge_first];
    lease->edge_taken = false;
    lease->edge_first = (lease->edge_first + 1) % COORD__EDGES;
    lease->edge_count--;
    coord__lease_pass_time(lease, now);
    if (COORD__RULE(return_is_no_acknowledgement, !lease->config.explicit_ack) &&
        edge.kind != COORD_EDGE_STARTED) {
        coord_lease_acknowledge(lease, edge.term, lease->now);
    }
}

bool coord_lease_overdue(const struct coord_lease *lease, coord_ms now)
{
    const struct coord__term *term = &lease->term;
    const bool begun = coord__term_leads(term) || term->state == COORD__TERM_STOPPED;
    return begun && !term->acknowledged && coord_ms_max(now, lease->now) >= term->hard;
}

bool coord_lease_edge_pending(const struct coord_lease *lease)
{
    return lease->edge_count > 0;
}

bool coord_lease_settled(const struct coord_lease *lease)
{
    return !lease->standing && lease->term.state == COORD__TERM_NONE && lease->edge_count == 0 &&
           lease->undo_tries == 0 && lease->request.verb == COORD_VERB_NONE;
}
