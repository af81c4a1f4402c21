/* SPDX-License-Identifier: MIT
 * tests/sim/agents/plant.c - the table of planted faults, and the one that is planted now.
 */
#include "tests/sim/agents/plant.h"

#include <string.h>

#include "tests/sim/agents/world.h"

enum fleet_plant fleet_plant_now = FLEET_PLANT_NONE;

const struct fleet_plant_info fleet_plants[FLEET_PLANT_COUNT] = {
    [FLEET_PLANT_NONE] = {"none", 0, 0, 0, 0, "nothing is planted"},
#define X(symbol, name, faults, without, schedules, seed, text) \
    [FLEET_PLANT_##symbol] = {name, faults, without, schedules, seed, text},
    FLEET_PLANTS(X)
#undef X
};

enum fleet_plant fleet_plant_named(const char *name)
{
    for (int i = FLEET_PLANT_NONE + 1; i < FLEET_PLANT_COUNT; i++) {
        if (strcmp(fleet_plants[i].name, name) == 0) {
            return (enum fleet_plant)i;
        }
    }
    return FLEET_PLANT_NONE;
}
