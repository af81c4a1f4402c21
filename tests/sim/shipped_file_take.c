/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_file_take.c - electors/file_take.c as it ships, with room for planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/file_take.c"
