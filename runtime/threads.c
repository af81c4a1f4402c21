/* SPDX-License-Identifier: MIT
 * runtime/threads.c - the helper threads: one does I/O, one runs the callbacks.
 */
#include "runtime/inside.h"
#include "runtime/thread.h"

static void *do_io(void *ctx)
{
    struct coord_runtime *runtime = ctx;
    COORD_ASSERT(coord__enter(runtime));
    while (!runtime->io_end && !coord__forked(runtime)) {
        if (runtime->driven) { /* a blocking call that began before us; it was woken */
            coord__wait_changed(runtime, COORD_NEVER);
            continue;
        }
        coord__drive(runtime);
        if (runtime->io_end) {
            break;
        }
        runtime->driven = true;
        coord__leave(runtime);
        coord__loop_wait(&runtime->loop, COORD_NEVER);
        coord__enter_again(runtime);
        runtime->driven = false;
    }
    runtime->io_ended = true;
    coord__wake_waiters(runtime);
    coord__leave(runtime);
    return NULL;
}

static void *do_callbacks(void *ctx)
{
    struct coord_runtime *runtime = ctx;
    COORD_ASSERT(coord__enter(runtime));
    while (!runtime->callback_end && !coord__forked(runtime)) {
        if (!coord__tell_one(runtime) && !coord__forked(runtime)) {
            pthread_cond_wait(&runtime->edges, &runtime->lock);
        }
    }
    runtime->callback_ended = true;
    coord__wake_waiters(runtime);
    coord__leave(runtime);
    return NULL;
}

static bool start_threads(struct coord_runtime *runtime)
{
    runtime->callback_end = runtime->callback_ended = false;
    runtime->io_end = runtime->io_ended = false;
    if (!coord__thread_start(&runtime->callback_thread, "coord-callbacks", do_callbacks, runtime)) {
        return false;
    }
    if (coord__thread_start(&runtime->io_thread, "coord-io", do_io, runtime)) {
        return true;
    }
    runtime->callback_end = true;
    coord__leave(runtime);
    pthread_join(runtime->callback_thread, NULL); /* it has told nothing yet */
    coord__enter_again(runtime);
    return false;
}

enum coord_err coord_runtime_start(struct coord_runtime *runtime, struct coord_error *error)
{
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    enum coord_err rc = COORD_OK;
    if (!runtime->threads) {
        runtime->threads = true;
        if (start_threads(runtime)) {
            coord__loop_wake(&runtime->loop); /* whoever sleeps on it hands over */
        } else {
            runtime->threads = false;
            rc = coord_error_set(error, COORD_E_SYSTEM,
                                 "cannot start the helper threads: raise the limit of threads");
        }
    }
    coord__leave(runtime);
    return rc;
}

enum coord_err coord__end_threads(struct coord_runtime *runtime, coord_ms until)
{
    while (runtime->threads && runtime->ending && coord_clock_now() < until) {
        coord__wait_changed(runtime, until); /* somebody else is at it */
    }
    if (!runtime->threads || runtime->ending) {
        return runtime->threads ? COORD_E_BUSY : COORD_OK;
    }
    runtime->ending = true;
    runtime->callback_end = true;
    pthread_cond_signal(&runtime->edges);
    while (!runtime->callback_ended && coord_clock_now() < until) {
        coord__wait_changed(runtime, until);
    }
    if (!runtime->callback_ended) {
        runtime->callback_end = false;
        runtime->ending = false;
        coord__wake_waiters(runtime);
        return COORD_E_BUSY;
    }
    runtime->io_end = true;
    coord__loop_wake(&runtime->loop);
    coord__wake_waiters(runtime);
    while (!runtime->io_ended) {
        coord__wait_changed(runtime, COORD_NEVER);
    }
    coord__leave(runtime);
    pthread_join(runtime->callback_thread, NULL);
    pthread_join(runtime->io_thread, NULL);
    coord__enter_again(runtime);
    runtime->threads = false;
    runtime->ending = false;
    coord__wake_waiters(runtime); /* blocking calls drive themselves again */
    return COORD_OK;
}

/* In a callback or a watchdog, on a helper thread: that cannot end before this call has. */
static bool is_inside(const struct coord_runtime *runtime)
{
    return runtime->threads && (coord__in_a_callback(runtime) ||
                                pthread_equal(runtime->io_thread, pthread_self()) != 0);
}

enum coord_err coord_runtime_stop(struct coord_runtime *runtime, coord_ms bound)
{
    const coord_ms until = coord_ms_add(coord_clock_now(), bound);
    if (!coord__enter(runtime)) {
        return COORD_E_FORKED;
    }
    const enum coord_err rc =
        is_inside(runtime) ? COORD_E_BUSY : coord__end_threads(runtime, until);
    coord__leave(runtime);
    return rc;
}
