/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_postgres_setup.c - electors/postgres_setup.c as it ships, with room for
 * planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/postgres_setup.c"
