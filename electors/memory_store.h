/* SPDX-License-Identifier: MIT
 * electors/memory_store.h - the records of a memory store, and what one request does to one.
 * Between electors/memory*.c only.
 */
#ifndef COORD_MEMORY_STORE_H
#define COORD_MEMORY_STORE_H

#include "electors/memory.h"

#include <pthread.h>

struct record {
    struct record *next;
    char name[COORD_ESCAPED_MAX];
    bool held;
    bool led; /* false: its holder waits out a debt */
    bool revoked;
    char owner[COORD_OWNER_HEX];
    char identity[COORD_ESCAPED_MAX];
    uint64_t attempt;
    uint64_t fence; /* of the newest term */
    coord_ms valid_until;
    coord_ms debt_until; /* an earlier term may run until then; inherited by whoever comes next */
    char reserved_for[COORD_ESCAPED_MAX];
    coord_ms reserved_until;
    uint64_t asked_fence; /* asked to step down; 0: nobody is */
    char asked_to[COORD_ESCAPED_MAX];
    coord_ms asked_until;
    size_t metadata_bytes;
    unsigned char metadata[COORD_METADATA_MAX];
};

struct member {
    struct member *next;
    struct coord_memory_state *state;
    struct record *record; /* lives as long as the state */
    const char *name;      /* escaped */
    const char *owner;     /* hex */
    int wake;              /* an eventfd: somebody else changed the record; -1: alone */
    uint64_t generation;
    uint64_t dead_attempt; /* and every earlier one */
    bool pending;
    struct coord_request request;
    char successor[COORD_ESCAPED_MAX];
};

struct coord_memory_state {
    pthread_mutex_t lock;
    struct record *records;
    struct member *members;
    unsigned users;
    struct coord_memory_state *next; /* of the named ones */
    char *name;                      /* NULL: it has none */
};

/* All with the state's lock held. */

/* The record of an escaped name, or NULL. */
struct record *coord__memory_find(struct coord_memory_state *state, const char *name);
/* The same, made where there is none; NULL: no memory. */
struct record *coord__memory_record(struct coord_memory_state *state, const char *name);
/* Wake whoever else has an elector of this name; `except` may be NULL. */
void coord__memory_wake(const struct coord_memory_state *state, const char *name,
                        const struct member *except);
/* Do the member's request; `seen` is what the record tells afterwards. */
void coord__memory_answer(struct coord_elector *elector, struct member *m,
                          struct coord_reply *reply, struct coord_observation *seen, coord_ms now);

#endif /* COORD_MEMORY_STORE_H */
