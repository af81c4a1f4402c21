/* SPDX-License-Identifier: MIT
 * coord/store.h - what the lease machine asks of a store, and what a store can answer.
 *
 * These are values: the simulator's stores, the file, Redis and PostgreSQL speak them alike.
 */
#ifndef COORD_STORE_H
#define COORD_STORE_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One request is one step in the store: it happens whole, or not at all. */
enum coord_verb {
    COORD_VERB_NONE = 0,
    COORD_VERB_ACQUIRE = 1, /* take the lease if it is free, or ours by this attempt already */
    COORD_VERB_RENEW = 2,   /* prolong it if it is ours by attempt and fence; never make it anew */
    COORD_VERB_RELEASE = 3, /* resign: the term has ended and says so */
    COORD_VERB_UNDO = 4,    /* drop what this attempt may have taken; resigns nothing */
    COORD_VERB_OBSERVE = 5, /* who leads? */
    COORD_VERB_ASK = 6,     /* ask whoever leads under `fence` to step down */
    COORD_VERB_INIT = 7     /* the operator's word that nobody leads: write a clear record */
};

/** Text is escaped identity text, borrowed until the reply. */
struct coord_request {
    enum coord_verb verb;
    uint64_t id;           /* comes back in the reply; grows with every request of an elector */
    coord_ms sent;         /* the anchor of every deadline that follows from it */
    uint64_t attempt;      /* ACQUIRE, RENEW, RELEASE, UNDO: 1, 2, 3 ... for each owner */
    uint64_t fence;        /* RENEW, RELEASE: the term's; ASK: whom it is for */
    uint64_t seen;         /* ACQUIRE: the largest fence of the name that this process knows */
    coord_ms lease;        /* ACQUIRE, RENEW: L */
    coord_ms debt;         /* RENEW, not led: what must stand in the record as owed */
    bool led;              /* RENEW: the wait is over or there was none: strike the debt */
    const char *successor; /* RELEASE, ASK: kept for this identity; NULL: for nobody */
    coord_ms reserve;      /* RELEASE: for how long; ASK: how long the request stands */
};

enum coord_outcome {
    COORD_GRANTED = 1,      /* ACQUIRE */
    COORD_HELD = 2,         /* ACQUIRE, OBSERVE, INIT: another holds it */
    COORD_FREE = 3,         /* OBSERVE: nobody holds it */
    COORD_RESERVED = 4,     /* ACQUIRE, OBSERVE: free, but kept for a named successor */
    COORD_DEAD_ATTEMPT = 5, /* ACQUIRE: the store has seen the end of this attempt */
    COORD_RENEWED = 6,      /* RENEW */
    COORD_LOST = 7,         /* RENEW: absent, or not ours */
    COORD_DONE = 8,         /* RELEASE, UNDO, ASK, INIT: done, or there was nothing to do */
    COORD_NOBODY = 9,       /* ASK: nobody leads under that fence */
    COORD_FAILED = 10,      /* surely not executed; `error` says why */
    COORD_UNKNOWN = 11      /* perhaps executed; `error` says why */
};

/** Who leads, as far as the store knows. Identities are escaped text. */
struct coord_observation {
    bool leading;                     /* somebody leads */
    bool taking_over;                 /* somebody holds it and waits out what is owed */
    char identity[COORD_ESCAPED_MAX]; /* of either; empty: nobody */
    uint64_t fence;                   /* of that term; 0: unknown */
    uint64_t last_fence;              /* the highest that the record tells; 0: none */
    uint64_t since_us;                /* wall clock of the store, since 1970; 0: unknown */
    coord_ms remaining;               /* of its lease; COORD_NEVER: cannot be known */
    size_t metadata_bytes;
    unsigned char metadata[COORD_METADATA_MAX];
};

struct coord_reply {
    uint64_t id; /* of the request */
    enum coord_outcome outcome;
    uint64_t fence; /* GRANTED: of the new term */
    coord_ms
        owed; /* GRANTED, RENEWED: still to be waited from now; 0: clear; COORD_NEVER (RENEWED):
                           no news, the wait goes on as before */
    coord_ms retry_in;  /* HELD, RESERVED: when it may fall free; COORD_NEVER: unknown */
    uint64_t server_us; /* the store's own clock as it answered; 0: it is our clock, or unknown */
    bool asked;         /* RENEWED: somebody asks this very term to step down */
    bool for_us;        /* FREE: kept for this identity */
    const char *asked_for; /* with asked: the successor's identity, or NULL; borrowed */
    const struct coord_observation *leader; /* whatever was learned, or NULL; borrowed */
    struct coord_error error; /* FAILED, UNKNOWN, LOST; RENEWED: what holds the grant up */
};

#ifdef __cplusplus
}
#endif
#endif /* COORD_STORE_H */
