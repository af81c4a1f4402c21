/* SPDX-License-Identifier: MIT
 * tests/sim/plant.c - the table of planted faults, and the one that is planted now.
 */
#include "tests/sim/plant.h"

enum sim_plant sim_plant_now = SIM_PLANT_NONE;

const struct sim_plant_info sim_plants[SIM_PLANT_COUNT] = {
    [SIM_PLANT_NONE] = {"none", "all", 0, "nothing is planted"},
#define X(symbol, name, store, schedules, text)                                                    \
    [SIM_PLANT_##symbol] = {name, store, schedules, text},
    SIM_PLANTS(X)
#undef X
};
