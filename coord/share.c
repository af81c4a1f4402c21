/* SPDX-License-Identifier: MIT
 * coord/share.c - a short list; a loop has a handful of servers.
 */
#include "coord/share.h"

#include <string.h>

struct coord_shared *coord_share_get(struct coord_share *share, const char *key)
{
    if (share == NULL) {
        return NULL;
    }
    for (struct coord_shared *s = share->first; s != NULL; s = s->next) {
        if (strcmp(s->key, key) == 0) {
            s->users++;
            return s;
        }
    }
    return NULL;
}

void coord_share_put(struct coord_share *share, struct coord_shared *shared)
{
    shared->users = 1;
    shared->next = NULL;
    if (share != NULL) {
        shared->next = share->first;
        share->first = shared;
    }
}

void coord_share_drop(struct coord_share *share, struct coord_shared *shared, bool forked)
{
    COORD_ASSERT(shared->users > 0);
    if (--shared->users > 0) {
        return;
    }
    if (share != NULL) {
        struct coord_shared **at = &share->first;
        while (*at != NULL && *at != shared) {
            at = &(*at)->next;
        }
        COORD_ASSERT(*at == shared);
        *at = shared->next;
    }
    shared->free(shared, forked);
}
