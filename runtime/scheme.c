/* SPDX-License-Identifier: MIT
 * runtime/scheme.c - reads a URI, and looks its scheme up in the program's own table, of electors
 * or of buses.
 */
#include "runtime/scheme.h"

#include "runtime/bus.h"
#include "runtime/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- URIs */

enum coord_err coord__uri_new(const char *text, const char *const *options, struct coord_uri **out,
                              struct coord_error *error)
{
    struct coord_uri *uri = malloc(sizeof *uri); /* large */
    if (uri == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    enum coord_err rc = coord_uri_parse(text, uri, error);
    for (size_t i = 0; rc == COORD_OK && options != NULL && options[i] != NULL; i++) {
        rc = coord_uri_add_option(uri, options[i], error);
    }
    if (rc != COORD_OK) {
        coord__uri_free(uri);
        return rc;
    }
    *out = uri;
    return COORD_OK;
}

void coord__uri_free(struct coord_uri *uri)
{
    if (uri != NULL) {
        explicit_bzero(uri, sizeof *uri);
        free(uri);
    }
}

/* ---------------------------------------------------------------- schemes */

/* A line of either table begins with its scheme. @return NULL: there is none, which is told. */
static const void *find_line(const char *what, const void *table, size_t line_bytes,
                             const char *scheme, struct coord_error *error)
{
    char known[160] = "";
    size_t used = 0;
    bool cut = false;
    const char *name;
    COORD_ASSERT(table != NULL);
    COORD_ASSERT(scheme != NULL);
    for (const char *line = table; (name = *(const char *const *)(const void *)line) != NULL;
         line += line_bytes) {
        if (strcmp(name, scheme) == 0) {
            return line;
        }
        const int n =
            snprintf(known + used, sizeof known - used, "%s%s:", used > 0 ? ", " : "", name);
        cut = cut || n < 0 || (size_t)n >= sizeof known - used; /* the sentence has an end */
        used += cut ? 0 : (size_t)n;
        known[used] = '\0';
    }
    coord_error_set(error, COORD_E_UNKNOWN_SCHEME,
                    "no %s has the URI scheme \"%s\": this program knows %s", what, scheme,
                    used > 0 ? known : "none");
    return NULL;
}

enum coord_err coord_scheme_find(const struct coord_scheme *table, const char *scheme,
                                 const struct coord_backend_ops **out, struct coord_error *error)
{
    const struct coord_scheme *line = find_line("backend", table, sizeof *table, scheme, error);
    if (line == NULL) {
        return COORD_E_UNKNOWN_SCHEME;
    }
    struct coord_error why = {.code = COORD_E_NOT_INSTALLED};
    const struct coord_backend_ops *ops = line->ops != NULL ? line->ops() : line->load(&why);
    if (ops == NULL) {
        return coord_error_set(error, why.code, "%s", why.text);
    }
    *out = ops;
    return COORD_OK;
}

enum coord_err coord_bus_scheme_find(const struct coord_bus_scheme *table, const char *scheme,
                                     const struct coord_broker_ops **out, struct coord_error *error)
{
    const struct coord_bus_scheme *line = find_line("bus", table, sizeof *table, scheme, error);
    if (line == NULL) {
        return COORD_E_UNKNOWN_SCHEME;
    }
    struct coord_error why = {.code = COORD_E_NOT_INSTALLED};
    const struct coord_broker_ops *ops = line->ops != NULL ? line->ops() : line->load(&why);
    if (ops == NULL) {
        return coord_error_set(error, why.code, "%s", why.text);
    }
    *out = ops;
    return COORD_OK;
}
