/* SPDX-License-Identifier: MIT
 * coord/duration.c - durations from text and to text.
 */
#include "coord/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    coord_ms ms;
};

/* Largest first, as coord_duration_format() looks for the first that loses nothing. */
static const struct unit units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

enum {
    UNIT_COUNT = sizeof units / sizeof units[0]
};

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (strcmp(units[i].name, name) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

static enum coord_err refuse(const char *text, const char *why, struct coord_error *error)
{
    return coord_error_set(error, COORD_E_BAD_OPTION,
                           "the duration '%.40s' %s: write an integer and ms, s, m or h, such as "
                           "15s",
                           text, why);
}

enum coord_err coord_duration_parse(const char *text, coord_ms *out, struct coord_error *error)
{
    COORD_ASSERT(text != NULL);
    COORD_ASSERT(out != NULL);
    const char *at = text;
    coord_ms number = 0;
    while (*at >= '0' && *at <= '9') {
        const coord_ms digit = (coord_ms)(*at - '0');
        if (number > (COORD_NEVER - 1 - digit) / 10) {
            return refuse(text, "is too long", error);
        }
        number = number * 10 + digit;
        at++;
    }
    if (at == text) {
        return refuse(text, "does not begin with a digit", error);
    }
    if (*at == '\0' && number == 0) {
        *out = 0;
        return COORD_OK;
    }
    const struct unit *unit = find_unit(at);
    if (unit == NULL) {
        return refuse(text, *at == '\0' ? "has no unit" : "has an unknown unit", error);
    }
    if (number > (COORD_NEVER - 1) / unit->ms) {
        return refuse(text, "is too long", error);
    }
    *out = number * unit->ms;
    return COORD_OK;
}

const char *coord_duration_format(coord_ms duration, char *out)
{
    COORD_ASSERT(out != NULL);
    if (duration == COORD_NEVER || duration == 0) {
        memcpy(out, duration == 0 ? "0s" : "never", duration == 0 ? sizeof "0s" : sizeof "never");
        return out;
    }
    size_t i = 0;
    while (duration % units[i].ms != 0) {
        i++;
    }
    const int written = snprintf(out, COORD_DURATION_TEXT_MAX, "%" PRIu64 "%s",
                                 duration / units[i].ms, units[i].name);
    COORD_ASSERT(written > 0);
    COORD_ASSERT(written < COORD_DURATION_TEXT_MAX);
    return out;
}
