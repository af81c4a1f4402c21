/* SPDX-License-Identifier: MIT
 * runtime/thread.c - a thread inherits its maker's mask, so that no signal of the host, and no
 * SIGPIPE of a library that writes without MSG_NOSIGNAL, is ever delivered to one of ours.
 */
#include "runtime/thread.h"

#include <signal.h>

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
