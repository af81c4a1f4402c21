/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_file_verbs.c - electors/file_verbs.c as it ships, with room for planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/file_verbs.c"
