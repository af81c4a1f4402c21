/* SPDX-License-Identifier: MIT
 * runtime/runtime.c - making and ending a runtime, and a foreign loop's way in.
 */
#include "runtime/inside.h"
#include "runtime/thread.h"

#include <stdlib.h>

static void init_locks(struct coord_runtime *runtime)
{
    pthread_mutex_init(&runtime->lock, NULL);
    coord__condition_init(&runtime->changed);
    coord__condition_init(&runtime->edges);
}

static void destroy(struct coord_runtime *runtime, bool forked)
{
    coord__resolve_free(runtime->resolve, forked);
    coord__loop_fini(&runtime->loop);
    coord__cell_free(runtime->cell);
    if (!forked) {
        /* A child may find waiters counted in them, who wait in the parent only. */
        pthread_cond_destroy(&runtime->edges);
        pthread_cond_destroy(&runtime->changed);
        pthread_mutex_destroy(&runtime->lock);
    }
    runtime->magic = 0;
    free(runtime);
}

enum coord_err coord_runtime_new(const struct coord_runtime_config *config,
                                 struct coord_runtime **out, struct coord_error *error)
{
    COORD_ASSERT(out != NULL);
    if (config != NULL && config->size != sizeof *config) {
        return coord_error_set(error, COORD_E_VERSION_MISMATCH,
                               "the program was compiled for another version of libcoord than %s: "
                               "compile it again",
                               coord_version());
    }
    struct coord_runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    runtime->magic = COORD__RUNTIME_MAGIC;
    if (config != NULL) {
        runtime->log = config->log;
    }
    const enum coord_err rc = coord__loop_init(&runtime->loop, error);
    if (rc != COORD_OK) {
        free(runtime);
        return rc;
    }
    init_locks(runtime);
    runtime->cell = coord__cell_new();
    runtime->resolve = runtime->cell != NULL ? coord__resolve_new(&runtime->loop) : NULL;
    if (runtime->resolve == NULL) {
        const bool cell = runtime->cell != NULL;
        destroy(runtime, true);
        return coord_error_set(error, cell ? COORD_E_NO_MEMORY : COORD_E_SYSTEM,
                               "cannot make a page that is wiped in forked children: free memory, "
                               "or use Linux 4.14 or later");
    }
    runtime->resolver = (struct coord_resolver){.ctx = runtime->resolve,
                                                .start = coord__resolve_start,
                                                .poll = coord__resolve_poll,
                                                .drop = coord__resolve_drop};
    coord__fork_watch(runtime);
    *out = runtime;
    return COORD_OK;
}

void coord_runtime_free(struct coord_runtime *runtime)
{
    if (runtime == NULL) {
        return;
    }
    const bool forked = !coord__enter(runtime);
    COORD_ASSERT(forked || !runtime->telling ||
                 pthread_equal(runtime->teller, pthread_self()) == 0);
    if (!forked) {
        COORD_IGNORE(coord__end_threads(runtime, COORD_NEVER) != COORD_OK, "it waits as it must");
    }
    coord__riders_close(runtime, forked);
    while (runtime->first != NULL) {
        coord__close(runtime->first, forked);
    }
    if (!forked) {
        coord__leave(runtime);
    }
    coord__fork_forget(runtime);
    destroy(runtime, forked);
}

int coord_runtime_fd(struct coord_runtime *runtime)
{
    return coord__forked(runtime) ? -1 : runtime->loop.outer;
}

coord_ms coord_runtime_deadline(struct coord_runtime *runtime)
{
    if (!coord__enter(runtime)) {
        return COORD_NEVER;
    }
    const coord_ms at = coord__deadline(runtime);
    coord__leave(runtime);
    return at;
}

enum coord_err coord_runtime_process(struct coord_runtime *runtime)
{
    if (!coord__enter(runtime)) {
        return COORD_E_FORKED;
    }
    if (!runtime->threads && !runtime->driven) {
        coord__loop_wait(&runtime->loop, 0);
        coord__drive_and_tell(runtime);
        coord__wake_waiters(runtime);
    }
    const bool forked = coord__forked(runtime);
    coord__leave(runtime);
    return forked ? COORD_E_FORKED : COORD_OK;
}
