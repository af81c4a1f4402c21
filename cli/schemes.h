/* SPDX-License-Identifier: MIT
 * cli/schemes.h - the URI schemes that coordctl knows, and what loads their libraries.
 */
#ifndef CLI_SCHEMES_H
#define CLI_SCHEMES_H

#include "runtime/scheme.h"

/** The table for coord_election_open(). */
extern const struct coord_scheme cli_schemes[];

typedef void (*cli_function)(void); /* to be cast to what it is */

/**
 * A function of a backend's own library, which is loaded first.
 *
 * @param scheme  of the table.
 * @param symbol  its name.
 * @param error   filled in on failure: NOT_INSTALLED, VERSION_MISMATCH.
 * @return        NULL: it cannot be had, or (error->code COORD_OK) the scheme has no library.
 */
cli_function cli_scheme_function(const char *scheme, const char *symbol, struct coord_error *error);

#endif /* CLI_SCHEMES_H */
