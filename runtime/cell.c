/* SPDX-License-Identifier: MIT
 * runtime/cell.c - a sequence lock in a page of its own.
 */
#include "runtime/cell.h"

#include <sys/mman.h>

enum {
    CELL_BYTES = 4096 /* the kernel rounds up to its page, and merges neighbours into one mapping */
};

struct coord__cell *coord__cell_new(void)
{
    void *page = mmap(NULL, CELL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return NULL;
    }
    if (madvise(page, CELL_BYTES, MADV_WIPEONFORK) != 0) {
        munmap(page, CELL_BYTES);
        return NULL;
    }
    struct coord__cell *cell = page;
    atomic_store_explicit(&cell->alive, 1, memory_order_relaxed);
    return cell;
}

void coord__cell_free(struct coord__cell *cell)
{
    if (cell != NULL) {
        munmap(cell, CELL_BYTES);
    }
}

/*
 * Without fences, which the thread sanitizer does not know: every field is stored with release, so
 * that whoever loads a new one with acquire sees the odd sequence too, and asks again.
 */
void coord__cell_write(struct coord__cell *cell, const struct coord__published *what)
{
    const uint32_t sequence = atomic_load_explicit(&cell->sequence, memory_order_relaxed);
    atomic_store_explicit(&cell->sequence, sequence + 1, memory_order_relaxed);
    atomic_store_explicit(&cell->hard, what->hard, memory_order_release);
    atomic_store_explicit(&cell->term, what->term, memory_order_release);
    atomic_store_explicit(&cell->fence, what->fence, memory_order_release);
    atomic_store_explicit(&cell->stopping, what->stopping ? 1 : 0, memory_order_release);
    atomic_store_explicit(&cell->sequence, sequence + 2, memory_order_release);
}

void coord__cell_read(const struct coord__cell *cell, struct coord__published *out)
{
    for (;;) {
        const uint32_t before = atomic_load_explicit(&cell->sequence, memory_order_acquire);
        out->hard = atomic_load_explicit(&cell->hard, memory_order_acquire);
        out->term = atomic_load_explicit(&cell->term, memory_order_acquire);
        out->fence = atomic_load_explicit(&cell->fence, memory_order_acquire);
        out->stopping = atomic_load_explicit(&cell->stopping, memory_order_acquire) != 0;
        const uint32_t after = atomic_load_explicit(&cell->sequence, memory_order_relaxed);
        if (before == after && before % 2 == 0) {
            return;
        }
    }
}
