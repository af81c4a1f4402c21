/* SPDX-License-Identifier: MIT
 * coord/coordinator_callbacks.h - registered functions, called in the order of their registration.
 *
 * Within a call a function may remove itself or any other, which is then not called any more, and
 * register new ones, which are called from the next event on.
 */
#ifndef COORD_COORDINATOR_CALLBACKS_H
#define COORD_COORDINATOR_CALLBACKS_H

#include "coord/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_CALLBACKS_MAX = 64 /* of one coordinator */
};

typedef void (*coord__callback_fn)(void);

/** Zeroed is empty. */
struct coord__callbacks {
    struct {
        coord__callback_fn fn; /* NULL: removed */
        void *ctx;
        int kind;
    } entry[COORD_CALLBACKS_MAX];
    unsigned count;
    unsigned dispatching;
};

/* false: COORD_CALLBACKS_MAX is reached. */
bool coord__callbacks_add(struct coord__callbacks *callbacks, int kind, coord__callback_fn fn,
                          void *ctx);

/* The first that is equal; false: there is none. */
bool coord__callbacks_remove(struct coord__callbacks *callbacks, int kind, coord__callback_fn fn,
                             void *ctx);

/* Bracket a dispatch. begin() returns the bound for next(). */
unsigned coord__callbacks_begin(struct coord__callbacks *callbacks);
void coord__callbacks_end(struct coord__callbacks *callbacks);

/* The next to call from `*at` on, or NULL; `*at` starts at 0. */
coord__callback_fn coord__callbacks_next(const struct coord__callbacks *callbacks, int kind,
                                         unsigned bound, unsigned *at, void **ctx);

#ifdef __cplusplus
}
#endif
#endif /* COORD_COORDINATOR_CALLBACKS_H */
