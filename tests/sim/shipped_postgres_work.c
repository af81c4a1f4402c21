/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_postgres_work.c - electors/postgres_work.c as it ships, with room for
 * planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/postgres_work.c"
