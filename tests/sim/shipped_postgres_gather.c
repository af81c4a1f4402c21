/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_postgres_gather.c - electors/postgres_gather.c as it ships, with room for
 * planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/postgres_gather.c"
