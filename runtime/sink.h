/* SPDX-License-Identifier: MIT
 * runtime/sink.h - where orphan reports go: a function, lines on a descriptor, a command.
 *
 * A sink has a thread and a bounded queue of its own, so that a slow reader or command delays
 * nothing else. It is given to members (runtime/member.h), or fed by hand. What is delivered may be
 * delivered twice, by another process that hears the same: consumers drop an id that they had.
 */
#ifndef COORD_SINK_H
#define COORD_SINK_H

#include "coord/report_text.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_sink;

/** On the sink's thread, which it may keep as long as it likes. */
typedef void (*coord_report_fn)(void *ctx, const struct coord_report *report);

/** Start from COORD_SINK_CONFIG_INIT. Texts are copied. */
struct coord_sink_config {
    size_t size;                 /* sizeof(struct coord_sink_config) */
    enum coord_report_form form; /* of lines, and of what a command reads */
    const char *fleet;           /* NULL: as the member calls it */
    const char *reporter;        /* NULL: the member's id */
    const char *type_prefix;     /* of CloudEvents; NULL: "coord" */
    bool leader_only;            /* only what this very process reports while it leads */
    size_t queue_max;            /* reports that wait */
    coord_ms command_max;        /* ms that one run of a command may take; it is killed then */
    coord_ms retry_for;          /* ms for which a delivery that failed is tried again, first after
                                    a quarter of a second, then ever later; 0: it is not. Those of
                                    other orphans do not wait for it */
    struct coord_log log;        /* what cannot be delivered; called on the sink's thread */
};

#define COORD_SINK_CONFIG_INIT \
    COORD__INIT(coord_sink_config, COORD__SET(queue_max, 1024) COORD__SET(command_max, 30000))

struct coord_sink_counts {
    uint64_t delivered;
    uint64_t failed;  /* the reader went away, or the command said so or took too long */
    uint64_t dropped; /* the queue was full */
    uint64_t merged;  /* overtaken by a later report of the same id while they waited */
    size_t waiting;
    uint64_t retried; /* deliveries that were tried once more */
};

/**
 * Call a function for each report.
 *
 * @param fn      kept with ctx.
 * @param config  borrowed; NULL: the defaults.
 * @param out     written on success; give it back with coord_sink_free().
 * @param error   filled in on failure; may be NULL.
 * @return        COORD_OK; BAD_ARGUMENT; VERSION_MISMATCH; NO_MEMORY; SYSTEM.
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/fleet.md#sinks, tests/unit/test_sink.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_sink_function(
    coord_report_fn fn, void *ctx, const struct coord_sink_config *config, struct coord_sink **out,
    struct coord_error *error);

/**
 * Write each report as one line. One up to PIPE_BUF bytes stays whole on a pipe that others write
 * to as well.
 *
 * @param fd  kept until coord_sink_free(), not closed. No SIGPIPE comes of it.
 * @return    as coord_sink_function().
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/fleet.md#sinks, tests/unit/test_sink.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_sink_lines(int fd,
                                                           const struct coord_sink_config *config,
                                                           struct coord_sink **out,
                                                           struct coord_error *error);

/**
 * Append each report as one line to a file, written in one piece. Where the file was moved away or
 * removed since, as log rotation does, the next line opens it again under its name.
 *
 * @param path  copied; made with mode 0640 where it is missing.
 * @return      as coord_sink_function(); SYSTEM: it cannot be opened, the sentence says why.
 * Thread: any.   Blocks: for the file system.   Allocates: once.   Calls back: never.
 * Source: docs/fleet.md#sinks, tests/unit/test_sink_file.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_sink_file(const char *path,
                                                          const struct coord_sink_config *config,
                                                          struct coord_sink **out,
                                                          struct coord_error *error);

/**
 * Run a command for each report, one at a time, with the line on its stdin and the ORPHAN_
 * variables in its environment; COORD_ELECTOR and COORD_BUS are not, as they may hold a password.
 * While one runs, later reports of one id replace earlier ones, and one that was opened and
 * resolved meanwhile is none.
 *
 * @param argv  copied; argv[0] is looked up in PATH; ends with NULL.
 * @return      as coord_sink_function().
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/fleet.md#sinks, tests/unit/test_sink.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_sink_command(const char *const *argv,
                                                             const struct coord_sink_config *config,
                                                             struct coord_sink **out,
                                                             struct coord_error *error);

/**
 * Hand a report in.
 *
 * @param report  borrowed; its fleet and reporter count where the sink has none of its own.
 * @param led     it is reported by this very process, as the leader.
 * Thread: any.   Blocks: never.   Allocates: until it is delivered.   Calls back: never.
 * Source: docs/fleet.md#sinks, tests/unit/test_sink.c.
 */
COORD_API void coord_sink_put(struct coord_sink *sink, const struct coord_report *report, bool led);

/**
 * Wait until everything is delivered, or given up.
 *
 * @param bound  ms.
 * @return       false: not within the bound; or this is a forked child.
 * Thread: any but the sink's.   Blocks: up to bound.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#sinks, tests/unit/test_sink.c.
 */
COORD_API bool coord_sink_flush(struct coord_sink *sink, coord_ms bound);

/** What became of the reports so far; in a forked child, until it was forked.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never. */
COORD_API struct coord_sink_counts coord_sink_counts(struct coord_sink *sink);

/**
 * End its thread; what waits is dropped, a command that runs is killed. Take it away from members
 * first. In a forked child only memory is let go.
 *
 * @param sink  NULL: nothing happens.
 * Thread: any but the sink's.   Blocks: while a function runs.   Allocates: never.
 * Calls back: never.
 * Source: docs/fleet.md#sinks, tests/unit/test_sink.c.
 */
COORD_API void coord_sink_free(struct coord_sink *sink);

#ifdef __cplusplus
}
#endif
#endif /* COORD_SINK_H */
