/* SPDX-License-Identifier: MIT
 * runtime/thread.h - how coord starts a thread, named and deaf to the host's signals, and how it
 * waits.
 */
#ifndef COORD_THREAD_H
#define COORD_THREAD_H

#include "coord/base.h"

#include <pthread.h>

/* @param name  at most 15 bytes. @return false: the system refused. */
bool coord__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *ctx);

/* A condition for coord__condition_wait(). */
void coord__condition_init(pthread_cond_t *condition);

/* Until it is signalled, or until a time of coord_clock_now() (COORD_NEVER: none). It may return
 * earlier or, as its clock does not count suspend, later: look at both again. */
void coord__condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, coord_ms until);

#endif /* COORD_THREAD_H */
