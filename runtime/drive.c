/* SPDX-License-Identifier: MIT
 * runtime/drive.c - lets the machines of a runtime do what can be done now, and waits for more.
 */
#include "runtime/inside.h"
#include "runtime/thread.h"

#include <stdlib.h>

enum {
    ROUNDS = 8, /* within one drive(): electors of one process answer one another at once */
    EDGES = 32  /* told in one go: a host whose callbacks make edges must not hold us for ever */
};

/* ---------------------------------------------------------------- what others may read */

void coord__publish(struct coord_election *election, coord_ms now)
{
    const struct coord_claim claim = coord_lease_claim(election->lease, now);
    struct coord__published what = {.hard = 0};
    if (claim.leading && claim.term != election->told_no) {
        what.hard = claim.hard;
        what.term = claim.term;
        what.fence = claim.fence;
        what.stopping = claim.stopping;
    }
    const struct coord__published *old = &election->published;
    if (what.hard != old->hard || what.term != old->term || what.fence != old->fence ||
        what.stopping != old->stopping) {
        coord__cell_write(election->cell, &what);
        election->published = what;
    }
}

void coord__touch(struct coord_election *election)
{
    if (!coord__forked(election->runtime)) {
        coord__publish(election, coord_clock_now());
        election->due = true;
        coord__loop_wake(&election->runtime->loop);
    }
}

/* ---------------------------------------------------------------- when */

/* Is there a term that the watchdog has to look after? `lease` is written then. */
static bool dog_sits(const struct coord_election *e, struct coord_lease_status *lease)
{
    if (e->watchdog == NULL && !e->watchdog_abort) {
        return false;
    }
    coord_lease_status(e->lease, lease);
    return lease->begun && !lease->acknowledged && e->barked != lease->term;
}

static coord_ms deadline_of(const struct coord_election *e)
{
    struct coord_lease_status lease;
    const coord_ms at = coord_ms_min(coord_elector_deadline(e->elector), e->silent_at);
    return dog_sits(e, &lease) ? coord_ms_min(at, lease.hard) : at;
}

coord_ms coord__deadline(const struct coord_runtime *runtime)
{
    coord_ms at = COORD_NEVER;
    for (const struct coord_election *e = runtime->first; e != NULL; e = e->next) {
        at = coord_ms_min(at, e->due ? 0 : e->deadline);
    }
    return coord_ms_min(at, coord__riders_deadline(runtime));
}

/* ---------------------------------------------------------------- one round */

static void note_events(struct coord_runtime *runtime)
{
    coord__loop_collect(&runtime->loop);
    const bool answered = coord__resolve_answered(runtime->resolve);
    for (struct coord_election *e = runtime->first; e != NULL; e = e->next) {
        for (size_t i = 0; i < e->descriptor_count; i++) {
            e->due = e->due || coord__loop_ready(&runtime->loop, e->descriptors[i].fd);
        }
        e->due = e->due || answered;
    }
    coord__riders_note_events(runtime, answered);
}

/* A term that ended while nobody could be told of it is over for its host at hard at the latest. */
static void acknowledge_silently(struct coord_election *e, coord_ms now)
{
    if (now >= e->silent_at) {
        e->silent_at = COORD_NEVER;
        coord__acknowledge(e, e->silent_term, now);
    }
}

/* @return true: something was processed, so that another may have become due. */
static bool process_due(struct coord_runtime *runtime, coord_ms now)
{
    bool any = false;
    for (struct coord_election *e = runtime->first; e != NULL; e = e->next) {
        acknowledge_silently(e, now);
        if (!e->due && now < e->deadline) {
            continue;
        }
        e->due = false;
        any = true;
        coord_elector_process(e->elector, now);
        coord__publish(e, now);
    }
    /* One elector's reading may have changed what another, on the same connection, waits for. */
    for (struct coord_election *e = runtime->first; any && e != NULL; e = e->next) {
        coord__publish(e, now);
        e->deadline = deadline_of(e);
    }
    if (any) {
        coord__riders_follow(runtime);
    }
    return coord__riders_process(runtime, now) || any;
}

static void sync_descriptors(struct coord_runtime *runtime)
{
    coord__loop_begin(&runtime->loop);
    for (struct coord_election *e = runtime->first; e != NULL; e = e->next) {
        e->descriptor_count = coord_elector_descriptors(e->elector, e->descriptors);
        for (size_t i = 0; i < e->descriptor_count; i++) {
            COORD_IGNORE(coord__loop_want(&runtime->loop, &e->descriptors[i]) != COORD_OK,
                         "without memory its deadlines alone drive it, until the next round");
        }
    }
    coord__riders_want(runtime);
    coord__loop_end(&runtime->loop);
}

/* ---------------------------------------------------------------- watchdogs */

static struct coord_election *barking(struct coord_runtime *runtime, coord_ms now)
{
    struct coord_lease_status lease;
    for (struct coord_election *e = runtime->first; e != NULL; e = e->next) {
        if (dog_sits(e, &lease) && coord_lease_overdue(e->lease, now)) {
            return e;
        }
    }
    return NULL;
}

static void bark(struct coord_election *election)
{
    struct coord_runtime *runtime = election->runtime;
    struct coord_lease_status lease;
    coord_lease_status(election->lease, &lease);
    const uint64_t term = lease.term;
    const coord_watchdog_fn fn = election->watchdog;
    void *ctx = election->watchdog_ctx;
    const bool end = election->watchdog_abort;
    election->barked = term;
    coord__pin(election);
    coord__leave(runtime);
    if (fn != NULL) {
        fn(ctx, election, term);
    }
    if (end) {
        abort(); /* asked for: work of a term that is over must not go on */
    }
    coord__enter_again(runtime);
    coord__unpin(election);
}

void coord__drive(struct coord_runtime *runtime)
{
    if (coord__forked(runtime)) {
        return;
    }
    note_events(runtime);
    bool processed = false;
    for (int round = 0; round < ROUNDS && process_due(runtime, coord_clock_now()); round++) {
        processed = true;
    }
    struct coord_election *overdue;
    while ((overdue = barking(runtime, coord_clock_now())) != NULL) {
        bark(overdue);
        if (coord__forked(runtime)) {
            return;
        }
    }
    coord__riders_flush(runtime);
    if (coord__forked(runtime)) {
        return;
    }
    if (processed || runtime->sync) {
        runtime->sync = false;
        sync_descriptors(runtime);
    }
    coord__loop_arm(&runtime->loop, coord__deadline(runtime));
    if (coord__edge_waits(runtime)) {
        pthread_cond_signal(&runtime->edges);
    }
    coord__wake_waiters(runtime);
}

void coord__drive_and_tell(struct coord_runtime *runtime)
{
    for (int i = 0; i < EDGES; i++) {
        coord__drive(runtime);
        if (runtime->threads || runtime->driven || !coord__tell_one(runtime)) {
            return;
        }
        if ((runtime->threads || runtime->driven) && !coord__forked(runtime)) {
            break; /* another thread began to drive while the callback ran */
        }
    }
    coord__loop_wake(&runtime->loop); /* go on with the next call */
}

/* ---------------------------------------------------------------- waiting */

void coord__wake_waiters(struct coord_runtime *runtime)
{
    if (runtime->waiters > 0 && !coord__forked(runtime)) { /* a child's are threads of the parent */
        pthread_cond_broadcast(&runtime->changed);
    }
}

void coord__wait_changed(struct coord_runtime *runtime, coord_ms until)
{
    runtime->waiters++;
    coord__condition_wait(&runtime->changed, &runtime->lock, until);
    runtime->waiters--;
}

static void sleep_on_loop(struct coord_runtime *runtime, coord_ms until)
{
    const coord_ms now = coord_clock_now();
    runtime->driven = true;
    coord__leave(runtime);
    coord__loop_wait(&runtime->loop, until == COORD_NEVER ? COORD_NEVER : coord_ms_sub(until, now));
    coord__enter_again(runtime);
    runtime->driven = false;
    if (runtime->threads) {
        coord__wake_waiters(runtime); /* they were started meanwhile, and wait to drive */
    }
}

void coord__wait_or_drive(struct coord_runtime *runtime, coord_ms until)
{
    if (runtime->threads || runtime->driven) {
        coord__wait_changed(runtime, until);
    } else {
        sleep_on_loop(runtime, until);
    }
}

bool coord__await(struct coord_election *election, coord_ms until, coord__ready_fn ready, void *ctx)
{
    struct coord_runtime *runtime = election->runtime;
    bool done = false;
    coord__pin(election);
    for (;;) {
        if (!runtime->threads && !runtime->driven) {
            coord__drive_and_tell(runtime);
        }
        if (election->closed || coord__forked(runtime)) {
            break;
        }
        done = ready(election, ctx);
        if (done || coord_clock_now() >= until) {
            break;
        }
        coord__wait_or_drive(runtime, until);
    }
    coord__wake_waiters(runtime); /* one of them drives on */
    coord__unpin(election);
    return done;
}
