/* SPDX-License-Identifier: MIT
 * cli/schemes.h - the URI schemes that coordctl knows, and what loads their libraries.
 */
#ifndef CLI_SCHEMES_H
#define CLI_SCHEMES_H

#include "runtime/scheme.h"

/** The table for coord_election_open(). */
extern const struct coord_scheme cli_schemes[];

#endif /* CLI_SCHEMES_H */
