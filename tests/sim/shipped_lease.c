/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_lease.c - coord/lease.c as it ships, with room for planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "coord/lease.c"
