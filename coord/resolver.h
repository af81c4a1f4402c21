/* SPDX-License-Identifier: MIT
 * coord/resolver.h - the port through which a connection turns a host name into addresses without
 * blocking its loop. runtime/ answers it with a thread; without one only literal addresses work.
 */
#ifndef COORD_RESOLVER_H
#define COORD_RESOLVER_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_ADDRESSES_MAX = 8,
    COORD_ADDRESS_TEXT_MAX = 64
};

/** Numeric addresses in the order of preference, such as "127.0.0.1" or "fe80::1%eth0". */
struct coord_addresses {
    size_t count;
    char text[COORD_ADDRESSES_MAX][COORD_ADDRESS_TEXT_MAX];
};

/** One question; owned by who asks, opaque to him, NULL: none. */
struct coord_resolution;

struct coord_resolver {
    void *ctx;
    /* Ask. @return NULL: no memory. `host` is copied. Never blocks. */
    struct coord_resolution *(*start)(void *ctx, const char *host);
    /* @return COORD_E_BUSY while it runs; COORD_OK with *out; NAME_UNRESOLVED with *error. When an
     * answer is there the loop's process() is called, so nobody has to poll. */
    enum coord_err (*poll)(void *ctx, struct coord_resolution *resolution,
                           struct coord_addresses *out, struct coord_error *error);
    /* Give the question up or its answer back. */
    void (*drop)(void *ctx, struct coord_resolution *resolution);
};

#ifdef __cplusplus
}
#endif
#endif /* COORD_RESOLVER_H */
