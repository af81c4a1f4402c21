/* SPDX-License-Identifier: MIT
 * cli/demo_check.c - judges what the workers of a demo recorded.
 */
#include "cli/demo.h"

static bool overlap(const struct cli_demo_term *a, const struct cli_demo_term *b)
{
    return atomic_load(&a->from) <= atomic_load(&b->until) &&
           atomic_load(&b->from) <= atomic_load(&a->until);
}

unsigned cli_demo_overlaps(const struct cli_demo_page *page, unsigned *first, unsigned *second)
{
    const unsigned count = atomic_load(&page->term_count);
    unsigned found = 0;
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = a + 1; b < count; b++) {
            if (!overlap(&page->terms[a], &page->terms[b])) {
                continue;
            }
            if (found++ == 0) {
                *first = a;
                *second = b;
            }
        }
    }
    return found;
}

bool cli_demo_fences_rise(const struct cli_demo_page *page)
{
    const unsigned count = atomic_load(&page->term_count);
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = 0; b < count; b++) {
            const bool later =
                atomic_load(&page->terms[b].from) > atomic_load(&page->terms[a].from);
            const bool greater =
                atomic_load(&page->terms[b].fence) > atomic_load(&page->terms[a].fence);
            if (later && !greater) {
                return false;
            }
        }
    }
    return true;
}
