/* SPDX-License-Identifier: MIT
 * runtime/fork.c - a fork() while another thread drives must not leave a half-written list to the
 * child, which still has descriptors to close: around it all runtimes hold still.
 */
#include "runtime/inside.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t registered = PTHREAD_ONCE_INIT;
static struct coord_runtime *all;

static void before(void)
{
    pthread_mutex_lock(&all_lock);
    for (struct coord_runtime *r = all; r != NULL; r = r->next) {
        pthread_mutex_lock(&r->lock);
        coord__resolve_lock(r->resolve);
    }
}

static void unlock_all(void)
{
    for (struct coord_runtime *r = all; r != NULL; r = r->next) {
        coord__resolve_unlock(r->resolve);
        pthread_mutex_unlock(&r->lock);
    }
}

static void after_in_parent(void)
{
    unlock_all();
    pthread_mutex_unlock(&all_lock);
}

/* The child has none of its own yet; the parent's are let go one by one, without locks. */
static void after_in_child(void)
{
    unlock_all();
    all = NULL;
    pthread_mutex_unlock(&all_lock);
}

static void register_handlers(void)
{
    COORD_ASSERT(pthread_atfork(before, after_in_parent, after_in_child) == 0);
}

void coord__fork_watch(struct coord_runtime *runtime)
{
    pthread_once(&registered, register_handlers);
    pthread_mutex_lock(&all_lock);
    runtime->next = all;
    all = runtime;
    pthread_mutex_unlock(&all_lock);
}

void coord__fork_forget(struct coord_runtime *runtime)
{
    pthread_mutex_lock(&all_lock);
    struct coord_runtime **at = &all;
    while (*at != NULL && *at != runtime) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = runtime->next;
    }
    pthread_mutex_unlock(&all_lock);
}
