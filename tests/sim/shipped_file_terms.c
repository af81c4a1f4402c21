/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_file_terms.c - electors/file_terms.c as it ships, with room for planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/file_terms.c"
