/* SPDX-License-Identifier: MIT
 * runtime/thread.h - how coord starts a thread: named, and deaf to the host's signals.
 */
#ifndef COORD_THREAD_H
#define COORD_THREAD_H

#include "coord/base.h"

#include <pthread.h>

/* @param name  at most 15 bytes. @return false: the system refused. */
bool coord__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *ctx);

#endif /* COORD_THREAD_H */
