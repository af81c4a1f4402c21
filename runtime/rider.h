/* SPDX-License-Identifier: MIT
 * runtime/rider.h - what else a runtime carries besides elections: driven in the same rounds, under
 * the same lock, told on the same thread. Between the sources of runtime only.
 */
#ifndef COORD_RIDER_H
#define COORD_RIDER_H

#include "coord/backend.h"

struct coord_runtime;
struct coord__rider;

enum {
    COORD__RIDER_DESCRIPTORS = COORD_DESCRIPTORS_MAX + 2
};

/* All with the runtime's lock held. tell() and flush() let it go while they call the host. */
struct coord__rider_ops {
    void (*process)(struct coord__rider *rider, coord_ms now);
    coord_ms (*deadline)(struct coord__rider *rider);
    size_t (*descriptors)(struct coord__rider *rider, struct coord_descriptor *out);
    bool (*tells)(const struct coord__rider *rider);   /* something waits for the host */
    void (*tell)(struct coord__rider *rider);          /* one of it */
    bool (*flushes)(const struct coord__rider *rider); /* ... for the thread that drives; NULL */
    void (*flush)(struct coord__rider *rider);
    void (*close)(struct coord__rider *rider, bool forked); /* and leave the runtime */
    void (*free)(struct coord__rider *rider);               /* closed, and nobody uses it */
};

/* The first member of what rides. */
struct coord__rider {
    const struct coord__rider_ops *ops;
    struct coord_runtime *runtime;
    struct coord__rider *next;
    unsigned pins; /* calls and dispatches that still use it */
    bool closed;   /* the rest goes with the last pin */
    bool due;      /* to be processed without waiting for its deadline */
    bool follows;  /* due after each round of an election, or of one that does not follow */
    bool telling;
    bool flushing;
    uint64_t told_last;
    coord_ms deadline;
    struct coord_descriptor descriptors[COORD__RIDER_DESCRIPTORS];
    size_t descriptor_count;
};

/* ---- for what rides ---- */

void coord__rider_join(struct coord__rider *rider, struct coord_runtime *runtime,
                       const struct coord__rider_ops *ops);
/* From close() only. */
void coord__rider_leave(struct coord__rider *rider, bool forked);
void coord__rider_pin(struct coord__rider *rider);
void coord__rider_unpin(struct coord__rider *rider);
/* Something changed: have it driven soon. */
void coord__rider_touch(struct coord__rider *rider);
/* Wait until ready() says so, driving where nobody else does. @return false: the time was up, or
 * it was closed. */
bool coord__rider_await(struct coord__rider *rider, coord_ms until,
                        bool (*ready)(struct coord__rider *rider, void *ctx), void *ctx);

/* ---- for the runtime ---- */

coord_ms coord__riders_deadline(const struct coord_runtime *runtime);
void coord__riders_note_events(struct coord_runtime *runtime, bool all);
bool coord__riders_process(struct coord_runtime *runtime, coord_ms now);
void coord__riders_follow(struct coord_runtime *runtime);
void coord__riders_want(struct coord_runtime *runtime);
void coord__riders_flush(struct coord_runtime *runtime);
struct coord__rider *coord__riders_next_to_tell(const struct coord_runtime *runtime);
void coord__rider_tell(struct coord__rider *rider);
void coord__riders_close(struct coord_runtime *runtime, bool forked);

#endif /* COORD_RIDER_H */
