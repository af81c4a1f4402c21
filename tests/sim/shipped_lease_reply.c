/* SPDX-License-Identifier: MIT
 * tests/sim/shipped_lease_reply.c - coord/lease_reply.c as it ships, with room for planted faults.
 */
#include "tests/sim/plant_rules.h"

#include "coord/lease_reply.c"
