/* SPDX-License-Identifier: MIT
 * coord/check.c - how a finding comes into its list.
 */
#include "coord/check.h"

#include <stdio.h>

void coord_check_add(struct coord_checks *checks, const char *name, enum coord_verdict verdict,
                     const char *value, const char *why, const char *cure)
{
    COORD_ASSERT(checks->count < COORD_CHECKS_MAX);
    struct coord_check *check = &checks->list[checks->count++];
    *check = (struct coord_check){.name = name, .verdict = verdict, .why = why};
    (void)snprintf(check->value, sizeof check->value, "%s", value);
    if (verdict != COORD_VERDICT_OK) {
        (void)snprintf(check->cure, sizeof check->cure, "%s", cure);
    }
}
