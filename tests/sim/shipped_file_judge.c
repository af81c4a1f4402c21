/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_file_judge.c - electors/file_judge.c as it ships, with room for planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/file_judge.c"
