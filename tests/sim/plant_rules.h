/* SPDX-License-Identifier: MIT
 * tests/sim/plant_rules.h - what the marked rules of the code that ships become when planted.
 *
 * Included before that code, in the simulator's copy of it. A rule that is taken out sees the
 * variables of the place where it stands.
 */
#ifndef SIM_PLANT_RULES_H
#define SIM_PLANT_RULES_H

#include "tests/sim/plant.h"

#define COORD__RULE(name, expression) COORD__RULE_##name(expression)

#endif /* SIM_PLANT_RULES_H */
