/* SPDX-License-Identifier: MIT
 * coord/compatible_inside.h - between coord/compatible*.c only.
 */
#ifndef COORD_COMPATIBLE_INSIDE_H
#define COORD_COMPATIBLE_INSIDE_H

#include "coord/compatible.h"
#include "coord/coordinator_callbacks.h"
#include "coord/peer_index.h"

/* A copy of a message, and the record that looks at it. */
struct coord__kept {
    void *bytes; /* NULL: none */
    size_t count;
    struct coord_record record;
};

struct coord__seed_peer {
    struct coord__seed_peer *next; /* in the order of first hearing */
    struct coord__seed_peer *previous;
    struct coord_value id; /* a view of `id_bytes` */
    void *id_bytes;
    uint32_t hash;
    uint32_t ref;
    struct coord__kept heartbeat;
    struct coord__kept notice;
};

struct coord_compatible {
    struct coord_compatible_config config;
    char *instance_id;
    struct coord_value self;
    struct coord__seed_peer *first;
    struct coord__seed_peer *last;
    struct coord__seed_peer *removed; /* kept until the next change, as their views are borrowed */
    struct coord__seed_peer **by_ref;
    uint32_t refs;
    uint32_t free_refs; /* how many of them are empty */
    size_t peers;
    size_t bytes;
    struct coord__index index;
    struct coord__callbacks callbacks;
    struct coord_compatible_counts counts;
    struct coord__kept notice; /* our own */
    bool shutting_down;
};

/* Keep a copy of bytes that were read; what was kept before is freed. */
enum coord_err coord__keep(struct coord__kept *kept, enum coord_message_type type,
                           const void *bytes, size_t count);
void coord__drop(struct coord__kept *kept);

#endif /* COORD_COMPATIBLE_INSIDE_H */
