/* SPDX-License-Identifier: MIT
 * tests/sim/agents/shipped_agent_leave.c - coord/agent_leave.c as it ships,
 * with room for planted faults.
 */
#include "tests/sim/agents/plant_rules.h"

#include "coord/agent_leave.c"
