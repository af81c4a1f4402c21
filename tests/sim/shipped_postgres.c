/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_postgres.c - electors/postgres.c as it ships, with room for planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/postgres.c"
