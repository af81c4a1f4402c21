/* SPDX-License-Identifier: MIT
 * tests/sim/agents/shipped_coordinator_say.c - coord/coordinator_say.c as it ships,
 * with room for planted faults.
 */
#include "tests/sim/agents/plant_rules.h"

#include "coord/coordinator_say.c"
