/* SPDX-License-Identifier: MIT
 * coord/rule.h - marks the expressions that hold up a promise.
 *
 * In what ships a rule is its expression and nothing else. The simulator compiles its own copy of
 * the sources that have such marks (tests/sim/plant_rules.h) and takes out one rule at a time, to
 * prove that it would notice.
 */
#ifndef COORD_RULE_H
#define COORD_RULE_H

#ifndef COORD__RULE
#define COORD__RULE(name, expression) (expression)
#endif

#endif /* COORD_RULE_H */
