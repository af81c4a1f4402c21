/* SPDX-License-Identifier: MIT
 * runtime/rider.c - drives and tells what rides on a runtime.
 */
#include "runtime/rider.h"

#include "runtime/inside.h"

/* ---------------------------------------------------------------- joining and leaving */

void coord__rider_join(struct coord__rider *rider, struct coord_runtime *runtime,
                       const struct coord__rider_ops *ops)
{
    struct coord__rider **at = &runtime->riders;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = rider;
    rider->ops = ops;
    rider->runtime = runtime;
    coord__rider_touch(rider);
}

void coord__rider_leave(struct coord__rider *rider, bool forked)
{
    struct coord_runtime *runtime = rider->runtime;
    struct coord__rider **at = &runtime->riders;
    while (*at != NULL && *at != rider) {
        at = &(*at)->next;
    }
    COORD_ASSERT(*at == rider);
    *at = rider->next;
    rider->closed = true;
    runtime->sync = true;
    for (size_t i = 0; !forked && i < rider->descriptor_count; i++) {
        coord__loop_forget(&runtime->loop, rider->descriptors[i].fd);
    }
    if (!forked) { /* in a child, what other threads of the parent held stays in memory */
        coord__loop_wake(&runtime->loop);
        coord__wake_waiters(runtime);
    }
}

void coord__rider_pin(struct coord__rider *rider)
{
    rider->pins++;
}

void coord__rider_unpin(struct coord__rider *rider)
{
    COORD_ASSERT(rider->pins > 0);
    if (--rider->pins == 0 && rider->closed) {
        rider->ops->free(rider);
    }
}

void coord__rider_touch(struct coord__rider *rider)
{
    if (!coord__forked(rider->runtime)) {
        rider->due = true;
        coord__loop_wake(&rider->runtime->loop);
    }
}

void coord__riders_close(struct coord_runtime *runtime, bool forked)
{
    while (runtime->riders != NULL) {
        struct coord__rider *rider = runtime->riders;
        coord__rider_pin(rider);
        rider->ops->close(rider, forked);
        coord__rider_unpin(rider);
    }
}

/* ---------------------------------------------------------------- driving */

coord_ms coord__riders_deadline(const struct coord_runtime *runtime)
{
    coord_ms at = COORD_NEVER;
    for (const struct coord__rider *r = runtime->riders; r != NULL; r = r->next) {
        at = coord_ms_min(at, r->due ? 0 : r->deadline);
    }
    return at;
}

void coord__riders_note_events(struct coord_runtime *runtime, bool all)
{
    for (struct coord__rider *r = runtime->riders; r != NULL; r = r->next) {
        for (size_t i = 0; i < r->descriptor_count; i++) {
            r->due = r->due || coord__loop_ready(&runtime->loop, r->descriptors[i].fd);
        }
        r->due = r->due || all;
    }
}

static bool process_those(struct coord_runtime *runtime, bool follow, coord_ms now)
{
    bool any = false;
    for (struct coord__rider *r = runtime->riders; r != NULL; r = r->next) {
        if (r->follows != follow || (!r->due && now < r->deadline)) {
            continue;
        }
        r->due = false;
        any = true;
        r->ops->process(r, now);
    }
    return any;
}

bool coord__riders_process(struct coord_runtime *runtime, coord_ms now)
{
    bool any = process_those(runtime, false, now);
    if (any) {
        coord__riders_follow(runtime);
    }
    any = process_those(runtime, true, now) || any;
    for (struct coord__rider *r = runtime->riders; any && r != NULL; r = r->next) {
        r->deadline = r->ops->deadline(r);
    }
    return any;
}

void coord__riders_follow(struct coord_runtime *runtime)
{
    for (struct coord__rider *r = runtime->riders; r != NULL; r = r->next) {
        r->due = r->due || r->follows;
    }
}

static void want(struct coord_runtime *runtime, const struct coord__rider *rider)
{
    COORD_ASSERT(rider->descriptor_count <= COORD__RIDER_DESCRIPTORS);
    for (size_t i = 0; i < rider->descriptor_count; i++) {
        COORD_IGNORE(coord__loop_want(&runtime->loop, &rider->descriptors[i]) != COORD_OK,
                     "without memory its deadlines alone drive it, until the next round");
    }
}

void coord__riders_want(struct coord_runtime *runtime)
{
    for (struct coord__rider *r = runtime->riders; r != NULL; r = r->next) {
        r->descriptor_count = r->ops->descriptors(r, r->descriptors);
        want(runtime, r);
    }
}

static struct coord__rider *next_to_flush(const struct coord_runtime *runtime)
{
    for (struct coord__rider *r = runtime->riders; r != NULL; r = r->next) {
        if (!r->flushing && r->ops->flushes != NULL && r->ops->flushes(r)) {
            return r;
        }
    }
    return NULL;
}

void coord__riders_flush(struct coord_runtime *runtime)
{
    struct coord__rider *rider;
    while ((rider = next_to_flush(runtime)) != NULL) {
        rider->flushing = true;
        coord__rider_pin(rider);
        rider->ops->flush(rider);
        if (coord__forked(runtime)) {
            return;
        }
        rider->flushing = false;
        coord__rider_unpin(rider);
    }
}

/* ---------------------------------------------------------------- telling */

struct coord__rider *coord__riders_next_to_tell(const struct coord_runtime *runtime)
{
    struct coord__rider *next = NULL;
    for (struct coord__rider *r = runtime->riders; r != NULL; r = r->next) {
        if (!r->telling && r->ops->tells(r) && (next == NULL || r->told_last < next->told_last)) {
            next = r;
        }
    }
    return next;
}

void coord__rider_tell(struct coord__rider *rider)
{
    struct coord_runtime *runtime = rider->runtime;
    rider->told_last = ++runtime->tellings;
    rider->telling = true;
    runtime->telling = true;
    runtime->teller = pthread_self();
    coord__rider_pin(rider);
    rider->ops->tell(rider);
    runtime->telling = false;
    rider->telling = false;
    coord__rider_unpin(rider);
    coord__wake_waiters(runtime);
}

/* ---------------------------------------------------------------- waiting */

bool coord__rider_await(struct coord__rider *rider, coord_ms until,
                        bool (*ready)(struct coord__rider *rider, void *ctx), void *ctx)
{
    struct coord_runtime *runtime = rider->runtime;
    bool done = false;
    coord__rider_pin(rider);
    for (;;) {
        if (!runtime->threads && !runtime->driven) {
            coord__drive_and_tell(runtime);
        }
        if (rider->closed || coord__forked(runtime)) {
            break;
        }
        done = ready(rider, ctx);
        if (done || coord_clock_now() >= until) {
            break;
        }
        coord__wait_or_drive(runtime, until);
    }
    coord__wake_waiters(runtime); /* one of them drives on */
    coord__rider_unpin(rider);
    return done;
}
