/* SPDX-License-Identifier: MIT
 * coord/leadership.h - what a coordinator asks of an elector, and nothing more.
 */
#ifndef COORD_LEADERSHIP_H
#define COORD_LEADERSHIP_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Given by the host, which joins it to its elector; every member is required. They are called from
 * within the coordinator's calls and may block as long as the host lets them.
 */
struct coord_leadership {
    /* The cached answer; no round trip. `fence` is written when it leads. */
    bool (*is_leader)(void *ctx, uint64_t *fence);
    /* Does the store say so, now? COORD_OK, NOT_LEADER, or why it could not be asked. */
    enum coord_err (*renew)(void *ctx);
    /* Give leadership up. COORD_OK, or why it is unknown whether the store has it. */
    enum coord_err (*release)(void *ctx);
    void *ctx;
};

/**
 * Does it lead at this instant: renewed just now, and still so afterwards?
 *
 * @param leadership  NULL: there is no election, so everybody may act.
 * @return            true; an error while asking is a no.
 * Thread: that of the elector.   Blocks: as renew does.   Allocates: never.
 * Calls back: coord_leadership.
 * Source: docs/guide.md#leadership, tests/unit/test_compatible.c.
 */
COORD_API bool coord_leadership_verify(const struct coord_leadership *leadership);

#ifdef __cplusplus
}
#endif
#endif /* COORD_LEADERSHIP_H */
