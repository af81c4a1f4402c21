/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_lease_edge.c - coord/lease_edge.c as it ships, with room for planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "coord/lease_edge.c"
