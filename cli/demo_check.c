/* SPDX-License-Identifier: MIT
 * cli/demo_check.c - judges what the workers of a demo recorded.
 */
#include "cli/demo.h"

#include "cli/exits.h"

#include <inttypes.h>

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

int cli_demo_judge(const struct cli_demo *demo)
{
    unsigned a = 0;
    unsigned b = 0;
    const unsigned terms = atomic_load(&demo->page->term_count);
    const unsigned overlaps = cli_demo_overlaps(demo->page, &a, &b);
    const bool rise = cli_demo_fences_rise(demo->page);
    cli_demo_print(demo, overlaps == 0 ? CLI_DEMO_GREEN : CLI_DEMO_RED,
                   "E1 one leader: %s, %u terms, %u overlaps", overlaps == 0 ? "held" : "BROKEN",
                   terms, overlaps);
    if (overlaps != 0) {
        cli_demo_print(
            demo, CLI_DEMO_RED, "fence %" PRIu64 " and fence %" PRIu64 " led at the same time",
            atomic_load(&demo->page->terms[a].fence), atomic_load(&demo->page->terms[b].fence));
    }
    cli_demo_print(demo, rise ? CLI_DEMO_GREEN : CLI_DEMO_RED, "E2 fences rise: %s",
                   rise ? "held" : "BROKEN");
    return overlaps == 0 && rise ? CLI_DONE : CLI_FAILED;
}
