/* SPDX-License-Identifier: MIT
 * coord/coordinator_callbacks.c - a list that may change while it is walked.
 */
#include "coord/coordinator_callbacks.h"

static void compact(struct coord__callbacks *callbacks)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < callbacks->count; i++) {
        if (callbacks->entry[i].fn != NULL) {
            callbacks->entry[kept++] = callbacks->entry[i];
        }
    }
    callbacks->count = kept;
}

bool coord__callbacks_add(struct coord__callbacks *callbacks, int kind, coord__callback_fn fn,
                          void *ctx)
{
    COORD_ASSERT(fn != NULL);
    if (callbacks->count == COORD_CALLBACKS_MAX) {
        return false;
    }
    callbacks->entry[callbacks->count].fn = fn;
    callbacks->entry[callbacks->count].ctx = ctx;
    callbacks->entry[callbacks->count].kind = kind;
    callbacks->count++;
    return true;
}

bool coord__callbacks_remove(struct coord__callbacks *callbacks, int kind, coord__callback_fn fn,
                             void *ctx)
{
    for (unsigned i = 0; i < callbacks->count; i++) {
        if (fn != NULL && callbacks->entry[i].fn == fn && callbacks->entry[i].ctx == ctx &&
            callbacks->entry[i].kind == kind) {
            callbacks->entry[i].fn = NULL;
            if (callbacks->dispatching == 0) {
                compact(callbacks);
            }
            return true;
        }
    }
    return false;
}

unsigned coord__callbacks_begin(struct coord__callbacks *callbacks)
{
    callbacks->dispatching++;
    return callbacks->count;
}

void coord__callbacks_end(struct coord__callbacks *callbacks)
{
    COORD_ASSERT(callbacks->dispatching > 0);
    callbacks->dispatching--;
    if (callbacks->dispatching == 0) {
        compact(callbacks);
    }
}

coord__callback_fn coord__callbacks_next(const struct coord__callbacks *callbacks, int kind,
                                         unsigned bound, unsigned *at, void **ctx)
{
    while (*at < bound) {
        unsigned i = (*at)++;
        if (callbacks->entry[i].fn != NULL && callbacks->entry[i].kind == kind) {
            *ctx = callbacks->entry[i].ctx;
            return callbacks->entry[i].fn;
        }
    }
    return NULL;
}
