/* SPDX-License-Identifier: MIT
 * coord/escape.h - names and identities of any byte as printable ASCII, and back.
 */
#ifndef COORD_ESCAPE_H
#define COORD_ESCAPE_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Escape: `%` and two lower-case hex digits for each byte outside 0x20-0x7e and for `%`, `{`, `}`.
 * A space stays as it is: a record that is a line of words keeps such a text for its end.
 *
 * @param bytes   any bytes.
 * @param count   1 to COORD_NAME_MAX.
 * @param out     room for COORD_ESCAPED_MAX; written on success, with a NUL.
 * @return        COORD_OK, or BAD_NAME.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/architecture.md#stored-forms, tests/unit/test_escape.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_escape(const void *bytes, size_t count, char *out);

/**
 * Undo coord_escape(). Text that it could not have made is refused.
 *
 * @param text   NUL-terminated.
 * @param out    room for COORD_NAME_MAX bytes.
 * @param count  written on success: how many.
 * @return       COORD_OK, or BAD_NAME.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/architecture.md#stored-forms, tests/unit/test_escape.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_unescape(const char *text, void *out,
                                                         size_t *count);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ESCAPE_H */
