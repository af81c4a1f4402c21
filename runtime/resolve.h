/* SPDX-License-Identifier: MIT
 * runtime/resolve.h - answers coord/resolver.h with getaddrinfo() on a thread of its own, which is
 * started by the first question.
 */
#ifndef COORD_RESOLVE_H
#define COORD_RESOLVE_H

#include "coord/resolver.h"
#include "runtime/loop.h"

struct coord__resolve;

/* @param loop  woken when an answer is there; must live until coord__resolve_free(). */
struct coord__resolve *coord__resolve_new(struct coord__loop *loop);
/* A thread that is stuck in the system's resolver is left to end by itself, and touches nothing. */
void coord__resolve_free(struct coord__resolve *resolve, bool forked);
/* Around a fork(), so that the child finds it whole. */
void coord__resolve_lock(struct coord__resolve *resolve);
void coord__resolve_unlock(struct coord__resolve *resolve);

/* The port's three calls; ctx is the struct coord__resolve. */
struct coord_resolution *coord__resolve_start(void *ctx, const char *host);
enum coord_err coord__resolve_poll(void *ctx, struct coord_resolution *resolution,
                                   struct coord_addresses *out, struct coord_error *error);
void coord__resolve_drop(void *ctx, struct coord_resolution *resolution);

/* Has an answer come since the last call? */
bool coord__resolve_answered(struct coord__resolve *resolve);

#endif /* COORD_RESOLVE_H */
