/* SPDX-License-Identifier: MIT
 * coord/duration.h - durations as people write them: an integer and ms, s, m or h.
 */
#ifndef COORD_DURATION_H
#define COORD_DURATION_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_DURATION_TEXT_MAX = 24
};

/**
 * Read "250ms", "15s", "2m", "1h". "0" needs no unit.
 *
 * @param text   borrowed; NUL-terminated.
 * @param out    ms; written on success.
 * @param error  filled in on failure; may be NULL.
 * @return       COORD_OK, or BAD_OPTION.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#options, tests/unit/test_duration.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_duration_parse(const char *text, coord_ms *out,
                                                               struct coord_error *error);

/**
 * Write a duration with the largest unit that loses nothing; COORD_NEVER is "never".
 *
 * @param out  room for COORD_DURATION_TEXT_MAX.
 * @return     out.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#options, tests/unit/test_duration.c.
 */
COORD_API const char *coord_duration_format(coord_ms duration, char *out);

#ifdef __cplusplus
}
#endif
#endif /* COORD_DURATION_H */
