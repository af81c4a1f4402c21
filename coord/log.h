/* SPDX-License-Identifier: MIT
 * coord/log.h - the log hook of one object. Silent unless the host sets it.
 */
#ifndef COORD_LOG_H
#define COORD_LOG_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum coord_log_level {
    COORD_LOG_DEBUG = 0,
    COORD_LOG_INFO = 1,
    COORD_LOG_WARN = 2,
    COORD_LOG_ERROR = 3
};

/** Borrowed for the call. `text` is one line, stable enough for simulations to compare. */
struct coord_log_record {
    coord_ms now;
    enum coord_log_level level;
    enum coord_err code; /* COORD_OK where nothing failed */
    const char *subject; /* the escaped election name, or the connection */
    const char *text;
};

typedef void (*coord_log_fn)(void *ctx, const struct coord_log_record *record);

/** Copied into each object that gets it. */
struct coord_log {
    coord_log_fn fn; /* NULL: silent */
    void *ctx;
    enum coord_log_level level; /* records below it are not formed */
};

/**
 * Form one record and hand it to the hook.
 *
 * @param log      may be NULL or without fn: nothing happens.
 * @param now      the time of the event.
 * @param level    below log->level: nothing happens.
 * @param code     the error that it tells, or COORD_OK.
 * @param subject  borrowed.
 * @param format   printf format of one line; cut at 512 bytes. Never a secret.
 * Thread: the owner of the object.   Blocks: never.   Allocates: never.   Calls back: coord_log_fn.
 * Source: docs/architecture.md#log, tests/unit/test_error.c.
 */
COORD_API void coord_log_write(const struct coord_log *log, coord_ms now,
                               enum coord_log_level level, enum coord_err code, const char *subject,
                               const char *format, ...) COORD_PRINTF(6, 7);

#ifdef __cplusplus
}
#endif
#endif /* COORD_LOG_H */
