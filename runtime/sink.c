/* SPDX-License-Identifier: MIT
 * runtime/sink.c - what a sink is, and the thread that delivers.
 */
#include "runtime/sink_inside.h"

#include "coord/elector.h"
#include "runtime/clock.h"
#include "runtime/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---------------------------------------------------------------- lists of texts */

static bool begins_with_any(const char *text, const char *const *without)
{
    for (; *without != NULL; without++) {
        if (strncmp(text, *without, strlen(*without)) == 0) {
            return true;
        }
    }
    return false;
}

char **coord__texts_copy(char *const *texts, const char *const *without, size_t room)
{
    size_t count = 0;
    size_t used = 0;
    while (texts[count] != NULL) {
        count++;
    }
    char **copy = calloc(count + room + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        if (begins_with_any(texts[i], without)) {
            continue;
        }
        copy[used] = strdup(texts[i]);
        if (copy[used++] == NULL) {
            coord__texts_free(copy);
            return NULL;
        }
    }
    return copy;
}

void coord__texts_free(char **texts)
{
    for (size_t i = 0; texts != NULL && texts[i] != NULL; i++) {
        free(texts[i]);
    }
    free(texts);
}

/* ---------------------------------------------------------------- the thread */

static bool deliver(struct coord_sink *sink, struct coord__post *post)
{
    struct coord_report *report = &post->report;
    char text[COORD_REPORT_TEXT_MAX];
    size_t bytes = 0;
    if (sink->fleet != NULL) {
        report->fleet = sink->fleet;
    }
    if (sink->reporter != NULL) {
        report->reporter = sink->reporter;
    }
    report->type_prefix = sink->type_prefix;
    if (sink->fn != NULL) {
        sink->fn(sink->ctx, report);
        return true;
    }
    if (coord_report_text(report, sink->config.form, text, &bytes) != COORD_OK) {
        coord_log_write(&sink->config.log, coord_clock_now(), COORD_LOG_WARN, COORD_E_TOO_LARGE,
                        "sink", "a report is too long to be written: shorten the fleet's name");
        return false;
    }
    if (sink->path != NULL) {
        return coord__sink_append(sink, text, bytes);
    }
    return sink->argv != NULL ? coord__sink_run(sink, report, text, bytes)
                              : coord__sink_write(sink, sink->fd, text, bytes);
}

static void *run(void *ctx)
{
    struct coord_sink *sink = ctx;
    pthread_mutex_lock(&sink->lock);
    while (!sink->ending) {
        const coord_ms now = coord_clock_now();
        coord_ms at = COORD_NEVER;
        struct coord__post *post = coord__sink_take(sink, now, &at);
        if (post == NULL) {
            coord__condition_wait(&sink->changed, &sink->lock, at);
            continue;
        }
        sink->busy = true;
        pthread_mutex_unlock(&sink->lock);
        const bool done = deliver(sink, post);
        pthread_mutex_lock(&sink->lock);
        sink->busy = false;
        if (done) {
            sink->counts.delivered++;
            free(post);
        } else {
            coord__sink_again(sink, post, coord_clock_now());
        }
        pthread_cond_broadcast(&sink->changed);
    }
    pthread_mutex_unlock(&sink->lock);
    return NULL;
}

/* ---------------------------------------------------------------- making */

static bool copy_text(const char *from, char **out)
{
    *out = from != NULL ? strdup(from) : NULL;
    return from == NULL || *out != NULL;
}

static void free_parts(struct coord_sink *sink)
{
    while (sink->first != NULL) {
        struct coord__post *post = sink->first;
        sink->first = post->next;
        free(post);
    }
    coord__texts_free(sink->argv);
    coord__texts_free(sink->environment);
    if (sink->path != NULL && sink->fd >= 0) {
        close(sink->fd);
    }
    free(sink->path);
    free(sink->fleet);
    free(sink->reporter);
    free(sink->type_prefix);
    if (sink->wake >= 0) {
        close(sink->wake);
    }
    sink->magic = 0;
    free(sink);
}

static enum coord_err check(const struct coord_sink_config *config, struct coord_error *error)
{
    if (config->size != sizeof *config) {
        return coord_error_set(error, COORD_E_VERSION_MISMATCH,
                               "the program was compiled for another version of libcoord than %s: "
                               "compile it again",
                               coord_version());
    }
    if (config->queue_max == 0 || config->command_max == 0) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT,
                               "a sink needs a queue_max and a command_max of 1 at least");
    }
    return COORD_OK;
}

/* NULL: *error and *rc say why. */
static struct coord_sink *make(const struct coord_sink_config *config, enum coord_err *rc,
                               struct coord_error *error)
{
    static const struct coord_sink_config defaults = COORD_SINK_CONFIG_INIT;
    const struct coord_sink_config *from = config != NULL ? config : &defaults;
    *rc = check(from, error);
    struct coord_sink *sink = *rc == COORD_OK ? calloc(1, sizeof *sink) : NULL;
    if (sink == NULL) {
        if (*rc == COORD_OK) {
            *rc =
                coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
        }
        return NULL;
    }
    sink->magic = COORD__SINK_MAGIC;
    sink->process = getpid();
    sink->config = *from;
    sink->fd = -1;
    sink->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sink->wake < 0 || !copy_text(from->fleet, &sink->fleet) ||
        !copy_text(from->reporter, &sink->reporter) ||
        !copy_text(from->type_prefix, &sink->type_prefix)) {
        *rc = coord_error_set(error, sink->wake < 0 ? COORD_E_SYSTEM : COORD_E_NO_MEMORY,
                              "cannot make a sink: raise the limit of open files or free memory");
        free_parts(sink);
        return NULL;
    }
    pthread_mutex_init(&sink->lock, NULL);
    coord__condition_init(&sink->changed);
    return sink;
}

static enum coord_err start(struct coord_sink *sink, struct coord_sink **out,
                            struct coord_error *error)
{
    if (!coord__thread_start(&sink->thread, "coord-sink", run, sink)) {
        free_parts(sink);
        return coord_error_set(error, COORD_E_SYSTEM,
                               "cannot start the thread of a sink: raise the limit of threads");
    }
    *out = sink;
    return COORD_OK;
}

enum coord_err coord_sink_function(coord_report_fn fn, void *ctx,
                                   const struct coord_sink_config *config, struct coord_sink **out,
                                   struct coord_error *error)
{
    if (fn == NULL) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT, "a sink needs a function to call");
    }
    enum coord_err rc = COORD_OK;
    struct coord_sink *sink = make(config, &rc, error);
    if (sink == NULL) {
        return rc;
    }
    sink->fn = fn;
    sink->ctx = ctx;
    return start(sink, out, error);
}

enum coord_err coord_sink_lines(int fd, const struct coord_sink_config *config,
                                struct coord_sink **out, struct coord_error *error)
{
    if (fd < 0) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT, "a sink of lines needs a descriptor");
    }
    enum coord_err rc = COORD_OK;
    struct coord_sink *sink = make(config, &rc, error);
    if (sink == NULL) {
        return rc;
    }
    sink->fd = fd;
    return start(sink, out, error);
}

enum coord_err coord_sink_file(const char *path, const struct coord_sink_config *config,
                               struct coord_sink **out, struct coord_error *error)
{
    if (path == NULL || path[0] == '\0') {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT, "a sink needs the path of a file");
    }
    enum coord_err rc = COORD_OK;
    struct coord_sink *sink = make(config, &rc, error);
    if (sink == NULL) {
        return rc;
    }
    sink->path = strdup(path);
    const int why = sink->path != NULL ? coord__sink_open(sink) : ENOMEM;
    if (why != 0) {
        char text[128] = "";
        rc = coord_error_set(error, why == ENOMEM ? COORD_E_NO_MEMORY : COORD_E_SYSTEM,
                             "the file %.200s cannot be opened (%s): name another", path,
                             strerror_r(why, text, sizeof text));
        free_parts(sink);
        return rc;
    }
    return start(sink, out, error);
}

enum coord_err coord_sink_command(const char *const *argv, const struct coord_sink_config *config,
                                  struct coord_sink **out, struct coord_error *error)
{
    static const char *const all[] = {NULL};
    static const char *const secrets[] = {"COORD_ELECTOR=", "COORD_BUS=", "ORPHAN_", NULL};
    if (argv == NULL || argv[0] == NULL || argv[0][0] == '\0') {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT, "a sink needs a command to run");
    }
    enum coord_err rc = COORD_OK;
    struct coord_sink *sink = make(config, &rc, error);
    if (sink == NULL) {
        return rc;
    }
    union { /* posix_spawn() asks for texts that it does not change */
        const char *const *given;
        char *const *taken;
    } list = {.given = argv};
    sink->argv = coord__texts_copy(list.taken, all, 0);
    sink->environment = coord__texts_copy(environ, secrets, 0);
    if (sink->argv == NULL || sink->environment == NULL) {
        free_parts(sink);
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    return start(sink, out, error);
}

void coord_sink_free(struct coord_sink *sink)
{
    if (sink == NULL) {
        return;
    }
    COORD_ASSERT(sink->magic == COORD__SINK_MAGIC);
    if (sink->process == getpid()) {
        const uint64_t one = 1;
        pthread_mutex_lock(&sink->lock);
        sink->ending = true;
        COORD_IGNORE(write(sink->wake, &one, sizeof one) < 0, "it is readable already");
        pthread_cond_broadcast(&sink->changed);
        pthread_mutex_unlock(&sink->lock);
        pthread_join(sink->thread, NULL);
        pthread_cond_destroy(&sink->changed);
        pthread_mutex_destroy(&sink->lock);
    }
    free_parts(sink);
}

/* ---------------------------------------------------------------- asking */

bool coord_sink_flush(struct coord_sink *sink, coord_ms bound)
{
    if (sink->process != getpid()) {
        return false; /* its thread delivers in the parent */
    }
    const coord_ms until = coord_ms_add(coord_clock_now(), bound);
    pthread_mutex_lock(&sink->lock);
    while ((sink->first != NULL || sink->busy) && coord_clock_now() < until) {
        coord__condition_wait(&sink->changed, &sink->lock, until);
    }
    const bool done = sink->first == NULL && !sink->busy;
    pthread_mutex_unlock(&sink->lock);
    return done;
}

struct coord_sink_counts coord_sink_counts(struct coord_sink *sink)
{
    if (sink->process != getpid()) {
        return sink->counts; /* as they were; the lock may be its thread's, in the parent */
    }
    pthread_mutex_lock(&sink->lock);
    const struct coord_sink_counts counts = sink->counts;
    pthread_mutex_unlock(&sink->lock);
    return counts;
}
