/* SPDX-License-Identifier: MIT
 * cli/bus_schemes.h - the URI schemes of buses that coordctl knows.
 */
#ifndef CLI_BUS_SCHEMES_H
#define CLI_BUS_SCHEMES_H

#include "runtime/bus.h"

/** The table for coord_bus_open(). */
extern const struct coord_bus_scheme cli_bus_schemes[];

#endif /* CLI_BUS_SCHEMES_H */
