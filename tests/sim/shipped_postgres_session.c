/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_postgres_session.c - electors/postgres_session.c as it ships, with room for
 * planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/postgres_session.c"
