/* SPDX-License-Identifier: MIT
 * runtime/bus_scheme.c - looks a scheme up in the program's own table of buses.
 */
#include "runtime/bus.h"

#include <stdio.h>
#include <string.h>

static enum coord_err unknown(const struct coord_bus_scheme *table, const char *scheme,
                              struct coord_error *error)
{
    char known[160] = "";
    size_t used = 0;
    for (const struct coord_bus_scheme *s = table; s->scheme != NULL; s++) {
        const int n =
            snprintf(known + used, sizeof known - used, "%s%s:", used > 0 ? ", " : "", s->scheme);
        if (n < 0 || (size_t)n >= sizeof known - used) {
            break; /* cut: the sentence has an end */
        }
        used += (size_t)n;
    }
    known[used] = '\0';
    return coord_error_set(error, COORD_E_UNKNOWN_SCHEME,
                           "no bus has the URI scheme \"%s\": this program knows %s", scheme,
                           used > 0 ? known : "none");
}

enum coord_err coord_bus_scheme_find(const struct coord_bus_scheme *table, const char *scheme,
                                     const struct coord_broker_ops **out, struct coord_error *error)
{
    COORD_ASSERT(table != NULL);
    COORD_ASSERT(scheme != NULL);
    const struct coord_bus_scheme *s = table;
    while (s->scheme != NULL && strcmp(s->scheme, scheme) != 0) {
        s++;
    }
    if (s->scheme == NULL) {
        return unknown(table, scheme, error);
    }
    struct coord_error why = {.code = COORD_E_NOT_INSTALLED};
    const struct coord_broker_ops *ops = s->ops != NULL ? s->ops() : s->load(&why);
    if (ops == NULL) {
        return coord_error_set(error, why.code, "%s", why.text);
    }
    *out = ops;
    return COORD_OK;
}
