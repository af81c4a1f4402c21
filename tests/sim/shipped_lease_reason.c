/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_lease_reason.c - coord/lease_reason.c as it ships, with planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "coord/lease_reason.c"
