/* SPDX-License-Identifier: MIT
 * coord/peer_index.h - from a hash to the numbers of the records that have it.
 *
 * The tables of a fleet are searched on each message, by ids that lie in the records already. A
 * table of eight bytes a record costs a tenth of what one with its own nodes does, and the record
 * is the only other line of memory that is touched.
 */
#ifndef COORD_PEER_INDEX_H
#define COORD_PEER_INDEX_H

#include "coord/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define COORD__NO_REF UINT32_MAX

struct coord__slot {
    uint32_t hash;
    uint32_t ref; /* plus one; 0: empty */
};

/** Zeroed is empty. Several records may have one hash. */
struct coord__index {
    struct coord__slot *slots;
    uint32_t mask; /* size - 1, or 0 */
    uint32_t used;
};

/* Where a search stands; begin with coord__index_begin(). */
struct coord__probe {
    uint32_t at;
    uint32_t hash;
};

/* Text to hash; `seed` keeps strangers from choosing ids that collide. */
uint32_t coord__hash(uint64_t seed, const void *bytes, size_t count);

/* false: out of memory, and nothing has changed. */
COORD_MUST_CHECK bool coord__index_add(struct coord__index *index, uint32_t hash, uint32_t ref);

/* It is there. */
void coord__index_remove(struct coord__index *index, uint32_t hash, uint32_t ref);

void coord__index_fini(struct coord__index *index);

/* Ask memory for the place that a search will begin at. */
static inline void coord__index_fetch(const struct coord__index *index, uint32_t hash)
{
#if defined(__GNUC__)
    if (index->slots != NULL) {
        __builtin_prefetch(&index->slots[hash & index->mask]);
    }
#else
    (void)index;
    (void)hash;
#endif
}

static inline struct coord__probe coord__index_begin(const struct coord__index *index,
                                                     uint32_t hash)
{
    struct coord__probe probe = {hash & index->mask, hash};
    return probe;
}

/* The next record with the hash, or COORD__NO_REF. */
static inline uint32_t coord__index_next(const struct coord__index *index,
                                         struct coord__probe *probe)
{
    if (index->slots == NULL) {
        return COORD__NO_REF;
    }
    for (;;) {
        const struct coord__slot *slot = &index->slots[probe->at];
        if (slot->ref == 0) {
            return COORD__NO_REF;
        }
        probe->at = (probe->at + 1) & index->mask;
        if (slot->hash == probe->hash) {
            return slot->ref - 1;
        }
    }
}

#ifdef __cplusplus
}
#endif
#endif /* COORD_PEER_INDEX_H */
