/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_file_ring.c - electors/file_ring.c as it ships, with room for planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "electors/file_ring.c"
