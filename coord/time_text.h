/* SPDX-License-Identifier: MIT
 * coord/time_text.h - instants as ISO 8601 text: what the seed library writes, and all it reads.
 *
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 */
#ifndef COORD_TIME_TEXT_H
#define COORD_TIME_TEXT_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A time as it was written: the clock's face, and how far that clock is from UTC. */
struct coord_time {
    int64_t face_us;   /* microseconds from 1970-01-01T00:00:00 on the face of that clock */
    int64_t offset_us; /* its distance from UTC, east is positive; 0 when naive */
    bool naive;        /* no offset was given: it is no instant */
};

enum {
    COORD_TIME_TEXT_MAX = 48 /* the longest written form and the NUL */
};

/** The earliest and the latest face, of the years 1 and 9999. */
#define COORD_TIME_MIN_US INT64_C(-62135596800000000)
#define COORD_TIME_MAX_US INT64_C(253402300799999999)

/** An instant, in UTC. */
static inline struct coord_time coord_time_utc(int64_t epoch_us)
{
    struct coord_time time = {epoch_us, 0, false};
    return time;
}

/** Microseconds since the epoch; without meaning for a naive time. */
static inline int64_t coord_time_epoch(const struct coord_time *time)
{
    return time->face_us - time->offset_us;
}

/**
 * Read a time in any form that the seed library reads: extended and compact dates, week dates, a
 * fraction of any length cut to microseconds, `Z` or a numeric offset, or none (then it is naive).
 *
 * @param text   borrowed; not NUL-terminated.
 * @param bytes  its length.
 * @param out    written on success only.
 * @return       false: no such time. A naive one is a success; most callers refuse it.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_time_text.c.
 */
COORD_API COORD_MUST_CHECK bool coord_time_text_parse(const char *text, size_t bytes,
                                                      struct coord_time *out);

/**
 * Write a time as the seed library does: no fraction when it is zero, else six digits; the offset
 * as given, none when naive.
 *
 * @param time  its face within COORD_TIME_MIN_US and COORD_TIME_MAX_US.
 * @param out   room for COORD_TIME_TEXT_MAX.
 * @return      the length without the NUL; 0 and an empty text for a face that no year can name.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_time_text.c.
 */
COORD_API size_t coord_time_text_write(const struct coord_time *time, char *out);

/**
 * Write an instant as coord's own messages have it: always six digits and `+00:00`.
 *
 * @param epoch_us  clamped to the years 1 to 9999.
 * @param out       room for COORD_TIME_TEXT_MAX.
 * @return          the length without the NUL.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_time_text.c.
 */
COORD_API size_t coord_time_text_stamp(int64_t epoch_us, char *out);

/**
 * The instant at which a clock shows a time, from what both show now.
 *
 * @param wall  us since the epoch, now.
 * @param now   ms of the clock that never goes back, now.
 * @param at    ms of the same clock, before or after; COORD_NEVER is as late as can be.
 * @return      us since the epoch, clamped to the years 1 to 9999.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: tests/unit/test_time_text.c.
 */
COORD_API int64_t coord_time_at(int64_t wall, coord_ms now, coord_ms at);

#ifdef __cplusplus
}
#endif
#endif /* COORD_TIME_TEXT_H */
