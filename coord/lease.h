/* SPDX-License-Identifier: MIT
 * coord/lease.h - the lease machine: one candidate for one name, without I/O and without a clock.
 *
 * Requests are pulled from it, replies and times go into it, edges come out. Every rule in it has
 * its reason in docs/guarantees.md, and a planted fault in tests/sim that shows what breaks
 * without it. It is shared by electors and by the owners of partitions.
 *
 * Where a function does not say otherwise: Blocks: never. Allocates: never. Calls back: never.
 */
#ifndef COORD_LEASE_H
#define COORD_LEASE_H

#include "coord/store.h"
#include "coord/timing.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Of one term, each at most once, in this order; STOPPED only after STARTED. */
enum coord_edge_kind {
    COORD_EDGE_STARTED = 1,  /* lead */
    COORD_EDGE_STOPPING = 2, /* end the work; it must have ended at `hard` */
    COORD_EDGE_STOPPED = 3   /* the term is over */
};

struct coord_edge {
    enum coord_edge_kind kind;
    uint64_t term; /* 1, 2, 3 ... for each elector */
    uint64_t fence;
    coord_ms hard; /* when the term surely ends, as known when the edge was made */
};

/** Why it leads, or does not. Stable values. */
enum coord_reason {
    COORD_REASON_LEADING = 0,
    COORD_REASON_STOPPING = 1,
    COORD_REASON_NOT_STANDING = 2,
    COORD_REASON_ASKING = 3,           /* no answer yet */
    COORD_REASON_HELD = 4,             /* another leads */
    COORD_REASON_TAKING_OVER = 5,      /* ours, but a former term may still run */
    COORD_REASON_CLAIM_DELAY = 6,      /* free; those of better rank first */
    COORD_REASON_RESERVED = 7,         /* free, but kept for a named successor */
    COORD_REASON_STANDING_ASIDE = 8,   /* stepped down a moment ago */
    COORD_REASON_WAITING_FOR_HOST = 9, /* the host has not acknowledged the end of the last term */
    COORD_REASON_PAUSED = 10,
    COORD_REASON_SICK = 11,
    COORD_REASON_RETRYING = 12, /* the store cannot be asked; the error says why */
    COORD_REASON_REFUSED = 13,  /* the store refuses; the error names the cure; still retried */
    COORD_REASON_RESIGNING = 14
};

/** Why the last term ended. Stable values. */
enum coord_end {
    COORD_END_NONE = 0,
    COORD_END_STOPPED = 1,      /* the host withdrew */
    COORD_END_STEPPED_DOWN = 2, /* asked to, here or from outside */
    COORD_END_SICK = 3,         /* the host reported itself sick */
    COORD_END_UNRENEWED = 4,    /* renewals failed until the soft or hard deadline */
    COORD_END_LOST = 5          /* the store says that it is not ours */
};

/** How a withdrawal ended. */
enum coord_release {
    COORD_RELEASE_NONE = 0,     /* still going on, or nothing was held */
    COORD_RELEASE_RELEASED = 1, /* the store has it in writing */
    COORD_RELEASE_LAPSING = 2,  /* not held any more, but the record says so only in time */
    COORD_RELEASE_UNKNOWN = 3   /* the resignation was sent; no reply */
};

struct coord_lease_config {
    struct coord_timing timing;
    unsigned rank;        /* 0 first; the others wait rank * R longer for a free lease */
    coord_ms hint_jitter; /* most spread of tries after a hint, and that at a known expiry; ms */
    uint64_t seed;        /* of its jitter */
    bool explicit_ack;    /* only acknowledge() tells that the host's work has ended */
};

/** What holds at one instant; all fields from one read. */
struct coord_claim {
    bool leading;       /* may act as the leader now */
    bool stopping;      /* ... but has to come to an end */
    uint64_t term;      /* 0: none */
    uint64_t fence;     /* 0: none */
    coord_ms remaining; /* until hard; 0 when not leading */
    coord_ms hard;      /* when the term surely ends, as known now; 0 when not leading */
};

enum {
    COORD__EDGES = 4
};

enum coord__term_state {
    COORD__TERM_NONE = 0,
    COORD__TERM_OWED,     /* granted, and waits */
    COORD__TERM_STARTED,  /* leads */
    COORD__TERM_STOPPING, /* leads, for its work to end */
    COORD__TERM_STOPPED   /* is over; the host or the resignation is not */
};

struct coord__term {
    enum coord__term_state state;
    uint64_t number;
    uint64_t fence;
    uint64_t attempt;
    coord_ms hard;
    coord_ms soft;
    coord_ms clear_at;    /* OWED: when the wait is over */
    coord_ms debt;        /* OWED: what stands in the record */
    coord_ms renew_at;    /* the next renewal */
    coord_ms renew_until; /* STOPPING: no renewal from here on */
    bool acknowledged;    /* the host's work has ended */
    bool lost;            /* the store says that it is not ours */
    enum coord_end end;
    char successor[COORD_ESCAPED_MAX];
};

/**
 * Fields are for coord/lease*.c and coord/elector*.c, and for tests, only; it is a struct so that
 * it can be embedded. coord/lease_status.h tells what others may want to know.
 */
struct coord_lease {
    struct coord_lease_config config;
    coord_ms now;       /* the latest time seen */
    uint64_t went_back; /* how often time went back */
    uint64_t random;
    bool standing;
    bool paused;
    bool sick;

    struct coord__term term;
    uint64_t terms;
    enum coord_end last_end;
    enum coord_release release;

    uint64_t attempt;     /* the present one */
    bool attempt_open;    /* a request of it had no answer: it may hold the lease, or get it yet */
    coord_ms try_at;      /* the next ACQUIRE or OBSERVE */
    coord_ms claim_at;    /* rank > 0: when the free lease may be claimed; COORD_NEVER: not free */
    bool hinted;          /* something changed while we asked: the answer may be older */
    coord_ms spread;      /* of tries after a hint: grows with each race that is lost */
    coord_ms aside_until; /* stepped down: no try before */
    unsigned failures;    /* in a row */
    unsigned undo_tries;  /* left; > 0: an undo is due */
    unsigned release_tries;
    uint64_t seen; /* the largest fence of the name */

    struct coord_request request; /* outstanding, unless verb is NONE */
    uint64_t last_id;
    coord_ms last_sent;

    uint64_t server_us; /* the server's clock at the last reply, 0: none */
    coord_ms server_at; /* our clock at the sending of that request */
    uint64_t clock_jumps;
    coord_ms jump_until; /* grants before this instant are owed until it */
    coord_ms waits_from; /* a wait begins with the first time after this; COORD_NEVER: none does */

    enum coord_outcome last_outcome; /* of the last ACQUIRE or OBSERVE of the candidacy */
    coord_ms last_retry_at;          /* HELD, RESERVED: when it may fall free */
    struct coord_error error;        /* of the last failure; cleared by a success */
    struct coord_observation leader;

    struct coord_request query; /* OBSERVE, ASK, INIT of the caller; verb NONE: none */
    bool query_running;
    enum coord_outcome query_outcome; /* 0: no answer yet */
    struct coord_error query_error;

    struct coord_edge edges[COORD__EDGES];
    unsigned edge_first;
    unsigned edge_count;
    bool edge_taken; /* the first was given out and is not done */
};

/**
 * Put a machine into its first state: not standing, nothing held.
 *
 * @param lease   caller's storage; no fini is needed.
 * @param config  copied; its timing must come from coord_timing_derive().
 * @param now     ms; one clock for all calls.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/architecture.md#lease, tests/unit/test_lease.c.
 */
COORD_API void coord_lease_init(struct coord_lease *lease, const struct coord_lease_config *config,
                                coord_ms now);

/**
 * Stand for election from now on, also again after each lost term. Ends a withdrawal.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e7, tests/unit/test_lease_candidate.c.
 */
COORD_API void coord_lease_stand(struct coord_lease *lease, coord_ms now);

/**
 * Stop standing. A running term is stopped, one that waits is given up and leaves its debt; see
 * coord_lease_settled() for the end of it.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e6, tests/unit/test_lease_stop.c.
 */
COORD_API void coord_lease_withdraw(struct coord_lease *lease, coord_ms now);

/**
 * End the running term and stand aside for half a lease; goes on standing afterwards.
 *
 * @param to  escaped identity of the preferred successor, copied; NULL: anyone.
 * @return    COORD_OK, or COORD_E_NOT_LEADER: nothing changes.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#step-down, tests/unit/test_lease_stop.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_lease_step_down(struct coord_lease *lease,
                                                                const char *to, coord_ms now);

/**
 * Pause or resume candidacy. A running term goes on; one that waits is given up.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#pause, tests/unit/test_lease_stop.c.
 */
COORD_API void coord_lease_pause(struct coord_lease *lease, bool paused, coord_ms now);

/**
 * Tell how the host is. A sick one steps down and does not stand until it is well.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#health, tests/unit/test_lease_stop.c.
 */
COORD_API void coord_lease_health(struct coord_lease *lease, bool healthy, coord_ms now);

/**
 * The host's work of a term has ended. The term is over, and is resigned.
 *
 * @param term  from an edge or a claim; any other term is ignored. A running term ends with it.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e6, tests/unit/test_lease_stop.c.
 */
COORD_API void coord_lease_acknowledge(struct coord_lease *lease, uint64_t term, coord_ms now);

/** Renew at the next pull, out of turn. Without a term nothing happens. Thread: confined. */
COORD_API void coord_lease_renew(struct coord_lease *lease, coord_ms now);

/**
 * Another election on the same connection renews now: join it, if our own renewal is near.
 *
 * @return  true: it is renewed at the next pull; false: it holds nothing, or its time is far off.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/postgres.md#terms, tests/unit/test_lease.c.
 */
COORD_API bool coord_lease_renew_along(struct coord_lease *lease, coord_ms now);

/** Something may have changed in the store: try, or look, soon. Thread: confined. */
COORD_API void coord_lease_hint(struct coord_lease *lease, coord_ms now);

/** The store says, unasked, that what was held is not held any more. Thread: confined. */
COORD_API void coord_lease_lost(struct coord_lease *lease, const struct coord_error *why,
                                coord_ms now);

/**
 * Ask the store something for the caller: OBSERVE, ASK (with fence, successor, reserve) or INIT.
 *
 * @param query  copied; its texts are kept until the answer. Only the verb's own fields are read.
 * @return       COORD_OK, or COORD_E_BUSY while another query runs.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/architecture.md#lease, tests/unit/test_lease_candidate.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_lease_query(struct coord_lease *lease,
                                                            const struct coord_request *query,
                                                            coord_ms now);

/**
 * Let time pass: deadlines end terms here.
 *
 * @return  true when the outstanding request has taken too long and was given up: the backend is
 *          to forget it, and what it may have been stuck on.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#timing, tests/unit/test_lease.c.
 */
COORD_API bool coord_lease_tick(struct coord_lease *lease, coord_ms now);

/**
 * Pull the next request. It counts as sent at `now`, whenever the backend gets it out.
 *
 * @param out  written when true; its texts are borrowed until the reply.
 * @return     false: nothing is to be sent before coord_lease_deadline().
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#timing, tests/unit/test_lease.c.
 */
COORD_API bool coord_lease_next(struct coord_lease *lease, coord_ms now, struct coord_request *out);

/** The answer to a request. One that is not outstanding any more is ignored. Thread: confined. */
COORD_API void coord_lease_reply(struct coord_lease *lease, const struct coord_reply *reply,
                                 coord_ms now);

/** When to call tick() and next() again, an absolute time, or COORD_NEVER. Thread: confined. */
COORD_API coord_ms coord_lease_deadline(const struct coord_lease *lease);

/** Does it lead at `now`? The deadline is compared here, on each call. Thread: confined. */
COORD_API bool coord_lease_leading_at(const struct coord_lease *lease, coord_ms now);

/** The same with the term, the fence and the time left, from one read. Thread: confined. */
COORD_API struct coord_claim coord_lease_claim(const struct coord_lease *lease, coord_ms now);

/**
 * Take the next edge for the host. The same edge is not given twice; say edge_done() before the
 * next one.
 *
 * @return  false: none.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guarantees.md#e4, tests/unit/test_lease_stop.c.
 */
COORD_API bool coord_lease_next_edge(struct coord_lease *lease, struct coord_edge *out);

/** The host has been told of the edge that next_edge() gave. Thread: confined. */
COORD_API void coord_lease_edge_done(struct coord_lease *lease, coord_ms now);

/** The term is past its hard deadline and the host's work has not ended: a watchdog's case.
 * Thread: confined. */
COORD_API bool coord_lease_overdue(const struct coord_lease *lease, coord_ms now);

/** An edge waits for the host, or the host for its return. Thread: confined. */
COORD_API bool coord_lease_edge_pending(const struct coord_lease *lease);

/** A withdrawal is complete: no term, no request, no edge, nothing to undo. Thread: confined. */
COORD_API bool coord_lease_settled(const struct coord_lease *lease);

/** Why it leads or does not, and for how long at most (COORD_NEVER: unknown). Thread: confined. */
COORD_API enum coord_reason coord_lease_reason(const struct coord_lease *lease, coord_ms now,
                                               coord_ms *for_ms);

/* ---- between coord/lease*.c only ---- */
static inline bool coord__term_leads(const struct coord__term *term)
{
    return term->state == COORD__TERM_STARTED || term->state == COORD__TERM_STOPPING;
}
void coord__lease_begin_stop(struct coord_lease *lease, enum coord_end why, const char *to);
void coord__lease_end_term(struct coord_lease *lease, enum coord_end why);
void coord__lease_drop_grant(struct coord_lease *lease, bool undo);
void coord__lease_start_term(struct coord_lease *lease);
void coord__lease_note_error(struct coord_lease *lease, const struct coord_error *error);
coord_ms coord__lease_jitter(struct coord_lease *lease, coord_ms below);
void coord__lease_retire_term(struct coord_lease *lease);
void coord__lease_pass_time(struct coord_lease *lease, coord_ms now);
bool coord__lease_may_stand(const struct coord_lease *lease);

#ifdef __cplusplus
}
#endif
#endif /* COORD_LEASE_H */
