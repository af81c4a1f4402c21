/* SPDX-License-Identifier: MIT
 * coord/assign.h - who takes which part of the work: pure functions, advice and not command.
 *
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 */
#ifndef COORD_ASSIGN_H
#define COORD_ASSIGN_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Nobody: there are fewer members than are needed, or none. */
#define COORD_NOBODY UINT32_MAX

/** A member's id; any bytes. */
struct coord_member {
    const char *id;
    size_t id_bytes;
};

/** A member with the parts that it is to have. */
struct coord_mapping {
    struct coord_member member;
    const uint32_t *parts;
    size_t part_count;
};

/**
 * Sort members by their bytes, drop repeats, and keep the first so many.
 *
 * @param members  changed in place.
 * @param most     how many to keep at most.
 * @return         how many there are now, at the front.
 * Source: docs/guide.md#assignment, tests/unit/test_assign.c.
 */
COORD_API size_t coord_assign_members(struct coord_member *members, size_t count, size_t most);

/**
 * Contiguous: each member a run of parts, in the order of the members; what does not divide goes
 * one each to the first, from the end.
 *
 * @param parts    how many parts there are.
 * @param members  how many members, as left by coord_assign_members() with `parts` as the most.
 * @param part     0 to parts - 1.
 * @return         the index of the member, or COORD_NOBODY.
 * Source: docs/guide.md#assignment, tests/unit/test_assign.c.
 */
COORD_API uint32_t coord_assign_contiguous(uint32_t parts, uint32_t members, uint32_t part);

/**
 * Explicit: the index of the mapping that names a part; the first, if several do.
 *
 * @return  the index, or COORD_NOBODY.
 * Source: docs/guide.md#assignment, tests/unit/test_assign.c.
 */
COORD_API uint32_t coord_assign_explicit(const struct coord_mapping *mappings, size_t count,
                                         uint32_t part);

/**
 * Minimal movement: keep every part with the member that has it, as long as that member is there
 * and has no more than its share; give the others to those who have least.
 *
 * @param owner    of each part, an index of a member or COORD_NOBODY; changed in place.
 * @param parts    how many.
 * @param members  how many; with 0 every part becomes nobody's.
 * @param load     room for `members` numbers; left with how many parts each has.
 * @return         how many parts changed their owner.
 * Source: docs/guide.md#assignment, tests/unit/test_assign.c.
 */
COORD_API size_t coord_assign_minimal(uint32_t *owner, size_t parts, uint32_t members,
                                      uint32_t *load);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ASSIGN_H */
