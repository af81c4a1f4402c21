/* SPDX-License-Identifier: MIT
 * coord/assign.c - assignment as a function of members and parts alone.
 */
#include "coord/assign.h"

#include <string.h>

/* By bytes, the shorter first. */
static int compare(const struct coord_member *a, const struct coord_member *b)
{
    size_t common = a->id_bytes < b->id_bytes ? a->id_bytes : b->id_bytes;
    int order = common > 0 ? memcmp(a->id, b->id, common) : 0;
    if (order != 0 || a->id_bytes == b->id_bytes) {
        return order;
    }
    return a->id_bytes < b->id_bytes ? -1 : 1;
}

static void swap(struct coord_member *a, struct coord_member *b)
{
    struct coord_member kept = *a;
    *a = *b;
    *b = kept;
}

static void sift(struct coord_member *members, size_t root, size_t count)
{
    for (;;) {
        size_t child = root * 2 + 1;
        if (child >= count) {
            return;
        }
        if (child + 1 < count && compare(&members[child], &members[child + 1]) < 0) {
            child++;
        }
        if (compare(&members[root], &members[child]) >= 0) {
            return;
        }
        swap(&members[root], &members[child]);
        root = child;
    }
}

/* In place and without memory of its own, which qsort() does not promise. */
static void sort(struct coord_member *members, size_t count)
{
    for (size_t i = count / 2; i > 0; i--) {
        sift(members, i - 1, count);
    }
    for (size_t i = count; i > 1; i--) {
        swap(&members[0], &members[i - 1]);
        sift(members, 0, i - 1);
    }
}

size_t coord_assign_members(struct coord_member *members, size_t count, size_t most)
{
    size_t kept = 0;
    sort(members, count);
    for (size_t i = 0; i < count && kept < most; i++) {
        if (kept == 0 || compare(&members[kept - 1], &members[i]) != 0) {
            members[kept++] = members[i];
        }
    }
    return kept;
}

uint32_t coord_assign_contiguous(uint32_t parts, uint32_t members, uint32_t part)
{
    if (part >= parts || members == 0) {
        return COORD_NOBODY;
    }
    uint32_t share = parts / members;
    uint32_t even = share * members;
    /* With more members than parts each part is one of the rest. */
    return part < even ? part / share : part - even;
}

uint32_t coord_assign_explicit(const struct coord_mapping *mappings, size_t count, uint32_t part)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < mappings[i].part_count; j++) {
            if (mappings[i].parts[j] == part) {
                return (uint32_t)i;
            }
        }
    }
    return COORD_NOBODY;
}

/* Who has least; the first of them. */
static uint32_t least(const uint32_t *load, uint32_t members)
{
    uint32_t found = 0;
    for (uint32_t i = 1; i < members; i++) {
        if (load[i] < load[found]) {
            found = i;
        }
    }
    return found;
}

static void count_loads(const uint32_t *owner, size_t parts, uint32_t members, uint32_t *load)
{
    memset(load, 0, members * sizeof load[0]);
    for (size_t i = 0; i < parts; i++) {
        if (owner[i] < members) {
            load[owner[i]]++;
        }
    }
}

/* Loads become surpluses. Who has more than an even share may keep one above it, as long as the
 * parts do not divide, so that the fewest move. */
static void to_surplus(size_t parts, uint32_t members, uint32_t *load)
{
    uint32_t share = (uint32_t)(parts / members);
    uint32_t above = (uint32_t)(parts % members);
    for (uint32_t i = 0; i < members; i++) {
        if (load[i] <= share) {
            load[i] = 0;
            continue;
        }
        uint32_t quota = share + (above > 0 ? 1 : 0);
        above -= above > 0 ? 1 : 0;
        load[i] -= quota;
    }
}

size_t coord_assign_minimal(uint32_t *owner, size_t parts, uint32_t members, uint32_t *load)
{
    size_t moved = 0;
    if (members == 0) {
        for (size_t i = 0; i < parts; i++) {
            moved += owner[i] != COORD_NOBODY ? 1 : 0;
            owner[i] = COORD_NOBODY;
        }
        return moved;
    }
    count_loads(owner, parts, members, load);
    to_surplus(parts, members, load);
    for (size_t i = parts; i > 0; i--) {
        uint32_t who = owner[i - 1];
        if (who >= members) {
            owner[i - 1] = COORD_NOBODY;
        } else if (load[who] > 0) {
            load[who]--;
            owner[i - 1] = COORD_NOBODY;
        }
    }
    count_loads(owner, parts, members, load);
    for (size_t i = 0; i < parts; i++) {
        if (owner[i] == COORD_NOBODY) {
            owner[i] = least(load, members);
            load[owner[i]]++;
            moved++;
        }
    }
    return moved;
}
