/* SPDX-License-Identifier: MIT
 * coord/peer_index.c - open addressing with linear probes, and removal that leaves no marks.
 */
#include "coord/peer_index.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    a ^= a >> 29;
    a *= UINT64_C(0xbf58476d1ce4e5b9);
    return a ^ (a >> 32);
}

static uint64_t word_at(const unsigned char *at)
{
    uint64_t word = 0;
    memcpy(&word, at, sizeof word);
    return word;
}

uint32_t coord__hash(uint64_t seed, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t hash = mix(seed, count);
    uint64_t other = mix(hash, seed);
    /* Two at a time, as one has to wait for nothing of the other's. */
    while (count >= 16) {
        hash = mix(hash, word_at(at));
        other = mix(other, word_at(at + 8));
        at += 16;
        count -= 16;
    }
    hash = mix(hash, other);
    if (count >= 8) {
        hash = mix(hash, word_at(at));
        at += 8;
        count -= 8;
    }
    if (count > 0) {
        uint64_t word = 0;
        memcpy(&word, at, count);
        hash = mix(hash, word);
    }
    return (uint32_t)(hash ^ (hash >> 32));
}

static void put(struct coord__index *index, struct coord__slot slot)
{
    uint32_t at = slot.hash & index->mask;
    while (index->slots[at].ref != 0) {
        at = (at + 1) & index->mask;
    }
    index->slots[at] = slot;
}

static bool grow(struct coord__index *index)
{
    uint32_t old_size = index->slots == NULL ? 0 : index->mask + 1;
    if (old_size > UINT32_MAX / 4) {
        return false;
    }
    uint32_t size = old_size == 0 ? 16 : old_size * 2;
    struct coord__index grown = {calloc(size, sizeof(struct coord__slot)), size - 1, index->used};
    if (grown.slots == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < old_size; i++) {
        if (index->slots[i].ref != 0) {
            put(&grown, index->slots[i]);
        }
    }
    free(index->slots);
    *index = grown;
    return true;
}

bool coord__index_add(struct coord__index *index, uint32_t hash, uint32_t ref)
{
    uint32_t size = index->slots == NULL ? 0 : index->mask + 1;
    if (index->used >= size - size / 8 && !grow(index)) {
        return false;
    }
    put(index, (struct coord__slot){hash, ref + 1});
    index->used++;
    return true;
}

/* How far an entry lies behind its place. */
static uint32_t distance(const struct coord__index *index, uint32_t at)
{
    return (at - (index->slots[at].hash & index->mask)) & index->mask;
}

void coord__index_remove(struct coord__index *index, uint32_t hash, uint32_t ref)
{
    COORD_ASSERT(index->slots != NULL);
    uint32_t at = hash & index->mask;
    while (index->slots[at].ref != ref + 1) {
        COORD_ASSERT(index->slots[at].ref != 0);
        at = (at + 1) & index->mask;
    }
    uint32_t hole = at;
    for (at = (at + 1) & index->mask; index->slots[at].ref != 0; at = (at + 1) & index->mask) {
        /* What lies at least as far from its place as the hole does moves into it. */
        if (distance(index, at) >= ((at - hole) & index->mask)) {
            index->slots[hole] = index->slots[at];
            hole = at;
        }
    }
    index->slots[hole] = (struct coord__slot){0, 0};
    index->used--;
}

void coord__index_fini(struct coord__index *index)
{
    free(index->slots);
    *index = (struct coord__index){NULL, 0, 0};
}
