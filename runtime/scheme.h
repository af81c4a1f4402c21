/* SPDX-License-Identifier: MIT
 * runtime/scheme.h - which backend serves which URI scheme: a table that the program brings along.
 *
 * Nothing registers itself at load time. A program that links two backends lists two; coordctl
 * lists all and opens their libraries when they are first asked for.
 */
#ifndef COORD_SCHEME_H
#define COORD_SCHEME_H

#include "coord/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One line of the table; a line with scheme NULL ends it. */
struct coord_scheme {
    const char *scheme; /* lower case, without the colon, such as "redis+unix" */
    const struct coord_backend_ops *(*ops)(void); /* linked in, such as coord_file_elector */
    /* Where ops is NULL: load the backend first. @return its table, or NULL with *error filled in:
     * NOT_INSTALLED names the package. */
    const struct coord_backend_ops *(*load)(struct coord_error *error);
};

/**
 * Find the backend of a scheme and open it.
 *
 * @param table   borrowed; ends with a line whose scheme is NULL.
 * @param scheme  lower case.
 * @param out     written on success; static for the life of the process.
 * @param error   filled in on failure; may be NULL.
 * @return        COORD_OK; UNKNOWN_SCHEME: the sentence lists the known ones; or what load() said.
 * Thread: any.   Blocks: while a library is loaded.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#uris, tests/unit/test_runtime.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_scheme_find(const struct coord_scheme *table,
                                                            const char *scheme,
                                                            const struct coord_backend_ops **out,
                                                            struct coord_error *error);

#ifdef __cplusplus
}
#endif
#endif /* COORD_SCHEME_H */
