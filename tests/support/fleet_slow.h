/* SPDX-License-Identifier: MIT
 * tests/support/fleet_slow.h - two whole agents over a real server, of which one does not read, or
 * does not want to be told, while much more is said than anybody may keep.
 */
#ifndef TEST_FLEET_SLOW_H
#define TEST_FLEET_SLOW_H

#include "tests/support/fleet_process.h"

#include <pthread.h>

enum {
    FLEET_SLOW_MESSAGES = 400,
    FLEET_SLOW_BYTES = 60000,     /* of each; 23 MiB in all */
    FLEET_SLOW_KEPT = 256 * 1024, /* what a bus may keep, each way */
    FLEET_SLOW_MOST = 12 << 20    /* what memory may grow by: that, events that wait, and buffers */
};

/** An agent on a runtime of its own. */
struct fleet_side {
    struct coord_runtime *runtime;
    struct coord_bus *bus;
    struct coord_member *member;
    struct fleet_news news;
    pthread_mutex_t lock; /* held by the test: the callback is stuck */
    bool stuck;
};

struct fleet_slow {
    struct fleet_side slow;
    struct fleet_side fast;
    struct coord_bus *flood; /* on the runtime of the fast one */
    size_t memory;           /* in use before */
    size_t most;             /* in use at any time since */
    unsigned warnings;       /* that the runtime of the slow one has logged */
};

/** Both are up, and hear each other. */
void fleet_slow_begin(struct fleet_slow *scene, const struct fleet_store *store);
/** Also after a test that failed. */
void fleet_slow_end(struct fleet_slow *scene);

/** Say all of it, work for the slow one, and drive the fast one until it went out. */
void fleet_slow_flood(struct fleet_slow *scene);
/** Drive both until the slow one is up, has been so that often, and hears the fast one again. */
void fleet_slow_recover(struct fleet_slow *scene, uint64_t ups);

/** The callback of the slow one, which has helper threads, is stuck: it loses events, and not
 * memory, reads on, and is heard. */
void fleet_slow_stuck(struct fleet_slow *scene, const struct fleet_store *store);

/** The server is down, and is started by `again` later: it is told once, not with each try, and
 * heartbeats begin by themselves. */
void fleet_slow_down_at_start(struct fleet_slow *scene, const struct fleet_store *store,
                              void (*again)(void));

struct coord_broker_status fleet_slow_status(struct fleet_side *side);

#endif /* TEST_FLEET_SLOW_H */
