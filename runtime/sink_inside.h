/* SPDX-License-Identifier: MIT
 * runtime/sink_inside.h - between the sources of sinks only.
 */
#ifndef COORD_SINK_INSIDE_H
#define COORD_SINK_INSIDE_H

#include "runtime/sink.h"

#include <pthread.h>
#include <sys/types.h>

enum {
    COORD__SINK_MAGIC = 0x73696e6b
};

/* A report that waits. Its texts lie behind it. */
struct coord__post {
    struct coord__post *next;
    coord_ms not_before; /* it failed, and is tried again then */
    coord_ms pause;      /* ... or so much later, if it fails once more */
    coord_ms until;      /* the end of trying; 0: it was not tried yet */
    struct coord_report report;
    struct coord_orphan orphan;
    char texts[];
};

struct coord_sink {
    uint32_t magic;
    pid_t process; /* another one: a forked child */
    struct coord_sink_config config;
    char *fleet;
    char *reporter;
    char *type_prefix;

    coord_report_fn fn;
    void *ctx;
    int fd;
    char *path;  /* of a file, or NULL */
    bool torn;   /* the last line in it has no end */
    char **argv; /* of a command */
    char **environment;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int wake; /* an eventfd, readable when it is to end */
    bool ending;
    bool busy; /* one is being delivered */
    struct coord__post *first;
    struct coord_sink_counts counts;
};

/* The first that may go now, taken out; NULL: none, look again at `*at`. The lock is held. */
struct coord__post *coord__sink_take(struct coord_sink *sink, coord_ms now, coord_ms *at);
/* It failed: back into the queue, or that was it. Given. The lock is held. */
void coord__sink_again(struct coord_sink *sink, struct coord__post *post, coord_ms now);

/* Deliver one, on the sink's thread, no lock held. @return false: it failed, and was logged. */
bool coord__sink_write(struct coord_sink *sink, int fd, const char *text, size_t bytes);
bool coord__sink_append(struct coord_sink *sink, const char *text, size_t bytes);
bool coord__sink_run(struct coord_sink *sink, const struct coord_report *report, const char *text,
                     size_t bytes);

/* Open the file of sink->path. @return 0, or errno. */
int coord__sink_open(struct coord_sink *sink);

/* Say that a report was not delivered. @return false. */
bool coord__sink_give_up(struct coord_sink *sink, const char *what, int code);

/* A copy of a list of texts that ends with NULL, without those that begin with `without`, with
 * room for so many more; NULL: no memory. */
char **coord__texts_copy(char *const *texts, const char *const *without, size_t room);
void coord__texts_free(char **texts);

#endif /* COORD_SINK_INSIDE_H */
