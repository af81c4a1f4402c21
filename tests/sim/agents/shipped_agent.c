/* SPDX-License-Identifier: MIT
 * tests/sim/agents/shipped_agent.c - coord/agent.c as it ships,
 * with room for planted faults.
 */
#include "tests/sim/agents/plant_rules.h"

#include "coord/agent.c"
