/* SPDX-License-Identifier: MIT
 * runtime/thread.c - a thread inherits its maker's mask, so that no signal of the host, and no
 * SIGPIPE of a library that writes without MSG_NOSIGNAL, is ever delivered to one of ours.
 */
#include "runtime/thread.h"

#include "runtime/clock.h"

#include <signal.h>
#include <time.h>

bool coord__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *ctx)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    COORD_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    const bool started = pthread_create(thread, NULL, run, ctx) == 0;
    COORD_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (started) {
        pthread_setname_np(*thread, name);
    }
    return started;
}

void coord__condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void coord__condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, coord_ms until)
{
    if (until == COORD_NEVER) {
        pthread_cond_wait(condition, lock);
        return;
    }
    const coord_ms rest = coord_ms_sub(until, coord_clock_now());
    struct timespec at;
    COORD_ASSERT(clock_gettime(CLOCK_MONOTONIC, &at) == 0);
    at.tv_sec += (time_t)(rest / 1000);
    at.tv_nsec += (long)(rest % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    pthread_cond_timedwait(condition, lock, &at);
}
