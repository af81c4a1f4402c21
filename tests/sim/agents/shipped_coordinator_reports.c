/* SPDX-License-Identifier: MIT
 * tests/sim/agents/shipped_coordinator_reports.c - coord/coordinator_reports.c as it ships,
 * with room for planted faults.
 */
#include "tests/sim/agents/plant_rules.h"

#include "coord/coordinator_reports.c"
