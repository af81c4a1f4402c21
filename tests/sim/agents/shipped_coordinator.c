/* SPDX-License-Identifier: MIT
 * tests/sim/agents/shipped_coordinator.c - coord/coordinator.c as it ships,
 * with room for planted faults.
 */
#include "tests/sim/agents/plant_rules.h"

#include "coord/coordinator.c"
