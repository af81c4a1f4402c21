/* SPDX-License-Identifier: MIT
 * tests/sim/plant.c - the table of planted faults, and the one that is planted now.
 */
#include "tests/sim/plant.h"

#include <string.h>

enum sim_plant sim_plant_now = SIM_PLANT_NONE;

const struct sim_plant_info sim_plants[SIM_PLANT_COUNT] = {
    [SIM_PLANT_NONE] = {"none", SIM_STORE_REDIS, 0, 0, 0, "nothing is planted"},
#define X(symbol, name, store, faults, schedules, seed, text) \
    [SIM_PLANT_##symbol] = {name, store, faults, schedules, seed, text},
    SIM_PLANTS(X)
#undef X
};

enum sim_plant sim_plant_named(const char *name)
{
    for (int i = SIM_PLANT_NONE + 1; i < SIM_PLANT_COUNT; i++) {
        if (strcmp(sim_plants[i].name, name) == 0) {
            return (enum sim_plant)i;
        }
    }
    return SIM_PLANT_NONE;
}
