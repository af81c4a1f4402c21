/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_postgres_grant.c - electors/postgres_grant.c as it ships, with room for
 * planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/postgres_grant.c"
