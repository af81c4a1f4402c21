/* SPDX-License-Identifier: MIT
 * tests/sim/agents/shipped_coordinator_send.c - coord/coordinator_send.c as it ships,
 * with room for planted faults.
 */
#include "tests/sim/agents/plant_rules.h"

#include "coord/coordinator_send.c"
