/* SPDX-License-Identifier: MIT
 * runtime/loop.h - one epoll descriptor that never changes, and behind it everything that does.
 *
 *   outer (given to foreign loops) - wake  (eventfd: another thread has something to do)
 *                                  - timer (CLOCK_BOOTTIME: counts suspend, as poll()'s does not)
 *                                  - inner - the backends' descriptors
 *
 * The inner one can be thrown away and built anew. That is the only way to be rid of an open file
 * that was closed here but lives on in a forked child: its events would come for ever.
 */
#ifndef COORD_LOOP_H
#define COORD_LOOP_H

#include "coord/backend.h"

#include <stdatomic.h>

enum {
    COORD__LOOP_BATCH = 64
};

struct coord__slot {
    uint64_t generation;
    uint32_t wanted;     /* this round's events */
    uint32_t registered; /* 0: not in the inner epoll */
    uint64_t registered_generation;
    bool ready;
};

struct coord__loop {
    int outer;
    int inner;
    int wake;
    int timer;
    coord_ms armed;            /* what the timer is set to; COORD_NEVER: to nothing */
    struct coord__slot *slots; /* by descriptor */
    size_t slot_count;
    bool inner_ready; /* found by the last wait, not looked into yet */
    atomic_bool woken;
};

enum coord_err coord__loop_init(struct coord__loop *loop, struct coord_error *error);
/* Also in a forked child: it only closes and frees. */
void coord__loop_fini(struct coord__loop *loop);

/* Make wait() return, or the next one. Any thread. */
void coord__loop_wake(struct coord__loop *loop);

/* Sleep until something happens, at most `timeout` ms (COORD_NEVER: no limit). By one thread at a
 * time. */
void coord__loop_wait(struct coord__loop *loop, coord_ms timeout);

/* Note which descriptors have events since the last wait; see coord__loop_ready(). */
void coord__loop_collect(struct coord__loop *loop);
bool coord__loop_ready(const struct coord__loop *loop, int fd);

/* It is about to be closed; where another names it still, the next round puts it back. */
void coord__loop_forget(struct coord__loop *loop, int fd);

/* One round of descriptors: begin, each (several electors may name one), end. */
void coord__loop_begin(struct coord__loop *loop);
enum coord_err coord__loop_want(struct coord__loop *loop, const struct coord_descriptor *what);
void coord__loop_end(struct coord__loop *loop);

/* The absolute time at which the descriptor is to turn readable by itself. */
void coord__loop_arm(struct coord__loop *loop, coord_ms deadline);

#endif /* COORD_LOOP_H */
