/* SPDX-License-Identifier: MIT
 * coord/lease_status.h - what a lease machine is about: for whoever drives one, and waits for it.
 *
 * A host asks coord_lease_claim() and coord_lease_reason(); a runtime that waits for the end of an
 * attempt, of a renewal or of a resignation needs more, and finds it here.
 *
 * Where a function does not say otherwise: Blocks: never. Allocates: never. Calls back: never.
 */
#ifndef COORD_LEASE_STATUS_H
#define COORD_LEASE_STATUS_H

#include "coord/lease.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_lease_status {
    bool standing;
    bool held;         /* granted, and not told back yet: the rest of the term's life is in it */
    bool begun;        /* ... and it has led */
    bool ended;        /* ... and does not any more */
    bool acknowledged; /* ... and the host's work has ended */
    bool undoing;      /* what an attempt may have taken is to be dropped */
    bool asking;       /* a request waits for its answer */
    uint64_t term;     /* the number of that term, or of the last one; 0: none */
    coord_ms hard;     /* of it */
    uint64_t terms;    /* that have begun */
    uint64_t sent;     /* requests */
    uint64_t answered; /* ... that were answered or given up */
    unsigned failures; /* in a row */
    enum coord_outcome outcome;    /* of the candidacy's last request; 0: none */
    enum coord_release release;    /* of the last withdrawal */
    const struct coord_error *why; /* the last failure, code COORD_OK: none since a success */
};

/**
 * How far it is.
 *
 * @param out  written; what it points to is borrowed, and follows the machine.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/architecture.md#lease, tests/unit/test_lease_status.c.
 */
COORD_API void coord_lease_status(const struct coord_lease *lease, struct coord_lease_status *out);

/** Who leads, by the store's last word; borrowed, and follows the machine. Thread: confined. */
COORD_API const struct coord_observation *coord_lease_leader(const struct coord_lease *lease);

/** Does a query of the caller wait for its answer? Thread: confined. */
COORD_API bool coord_lease_querying(const struct coord_lease *lease);

/**
 * The answer to the last query of the caller.
 *
 * @param why  written unless NULL: borrowed; says why it FAILED or is UNKNOWN.
 * @return     0: there is none yet.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/architecture.md#lease, tests/unit/test_lease_status.c.
 */
COORD_API enum coord_outcome coord_lease_answer(const struct coord_lease *lease,
                                                const struct coord_error **why);

#ifdef __cplusplus
}
#endif
#endif /* COORD_LEASE_STATUS_H */
