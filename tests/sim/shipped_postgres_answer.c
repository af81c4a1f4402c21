/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_postgres_answer.c - electors/postgres_answer.c as it ships, with room for
 * planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/postgres_answer.c"
