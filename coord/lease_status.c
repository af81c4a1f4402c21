/* SPDX-License-Identifier: MIT
 * coord/lease_status.c - the lease machine: what it is about.
 */
#include "coord/lease_status.h"

void coord_lease_status(const struct coord_lease *lease, struct coord_lease_status *out)
{
    const struct coord__term *term = &lease->term;
    const bool ended = term->state == COORD__TERM_STOPPED;
    const bool asking = lease->request.verb != COORD_VERB_NONE;
    *out = (struct coord_lease_status){.standing = lease->standing,
                                       .held = term->state != COORD__TERM_NONE,
                                       .begun = coord__term_leads(term) || ended,
                                       .ended = ended,
                                       .acknowledged = term->acknowledged,
                                       .undoing = lease->undo_tries > 0,
                                       .asking = asking,
                                       .term = term->number,
                                       .hard = term->hard,
                                       .terms = lease->terms,
                                       .sent = lease->last_id,
                                       .answered = lease->last_id - (asking ? 1 : 0),
                                       .failures = lease->failures,
                                       .outcome = lease->last_outcome,
                                       .release = lease->release,
                                       .why = &lease->error};
}

const struct coord_observation *coord_lease_leader(const struct coord_lease *lease)
{
    return &lease->leader;
}

bool coord_lease_querying(const struct coord_lease *lease)
{
    return lease->query.verb != COORD_VERB_NONE;
}

enum coord_outcome coord_lease_answer(const struct coord_lease *lease,
                                      const struct coord_error **why)
{
    if (why != NULL) {
        *why = &lease->query_error;
    }
    return coord_lease_querying(lease) ? 0 : lease->query_outcome;
}
