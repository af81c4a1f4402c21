/* SPDX-License-Identifier: MIT
 * coord/share.h - what many electors of one loop share, such as a connection: found by key,
 * counted.
 *
 * Where a function does not say otherwise: Blocks: never. Allocates: never. Calls back: never.
 */
#ifndef COORD_SHARE_H
#define COORD_SHARE_H

#include "coord/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_share;

/** Embedded first in a thing that is shared. */
struct coord_shared {
    struct coord_shared *next;
    const char *key; /* owned by the thing, unique, such as a URI without its secret's meaning */
    unsigned users;
    void (*free)(struct coord_shared *shared, bool forked); /* the last user went */
};

/** The list; zero-initialised, one for each loop. */
struct coord_share {
    struct coord_shared *first;
};

/** Find by key and count one user more; NULL: none there. Thread: confined. */
COORD_API struct coord_shared *coord_share_get(struct coord_share *share, const char *key);

/** Put a new thing in, with one user. `share` may be NULL: then it is private. Thread: confined. */
COORD_API void coord_share_put(struct coord_share *share, struct coord_shared *shared);

/** One user less; the last one takes it out. Thread: confined. Calls back: its free(), then. */
COORD_API void coord_share_drop(struct coord_share *share, struct coord_shared *shared,
                                bool forked);

#ifdef __cplusplus
}
#endif
#endif /* COORD_SHARE_H */
