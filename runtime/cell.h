/* SPDX-License-Identifier: MIT
 * runtime/cell.h - what any thread may read about an election without a lock: one page that the
 * kernel wipes in forked children, where all zeros mean "forked, and nobody leads".
 */
#ifndef COORD_CELL_H
#define COORD_CELL_H

#include "coord/lease.h"

#include <stdatomic.h>

/* One writer at a time, under the runtime's lock. `hard` alone answers is_leader(); the others go
 * with it under the sequence, which is odd while they are written. */
struct coord__cell {
    _Atomic uint32_t alive;
    _Atomic uint32_t sequence;
    _Atomic uint64_t hard; /* leads before it; 0: does not lead */
    _Atomic uint64_t term;
    _Atomic uint64_t fence;
    _Atomic uint32_t stopping;
};

/* NULL: no memory, or a kernel that cannot wipe. */
struct coord__cell *coord__cell_new(void);
void coord__cell_free(struct coord__cell *cell);

/* All that is published of one instant; hard 0: not leading. */
struct coord__published {
    coord_ms hard;
    uint64_t term;
    uint64_t fence;
    bool stopping;
};

void coord__cell_write(struct coord__cell *cell, const struct coord__published *what);
void coord__cell_read(const struct coord__cell *cell, struct coord__published *out);

static inline bool coord__cell_alive(const struct coord__cell *cell)
{
    return atomic_load_explicit(&cell->alive, memory_order_relaxed) != 0;
}

/* The deadline is loaded before the caller reads its clock, so that a yes was true when asked. */
static inline coord_ms coord__cell_hard(const struct coord__cell *cell)
{
    return atomic_load_explicit(&cell->hard, memory_order_acquire);
}

#endif /* COORD_CELL_H */
