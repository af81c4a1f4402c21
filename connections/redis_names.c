/* SPDX-License-Identifier: MIT
 * connections/redis_names.c - host names for a doctor, who may wait for them.
 */
#include "connections/redis_ask.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

struct coord_resolution {
    char host[256];
};

static struct coord_resolution *resolve_start(void *ctx, const char *host)
{
    struct coord_resolution *resolution = calloc(1, sizeof *resolution);
    (void)ctx;
    if (resolution != NULL) {
        snprintf(resolution->host, sizeof resolution->host, "%s", host);
    }
    return resolution;
}

static enum coord_err resolve_poll(void *ctx, struct coord_resolution *resolution,
                                   struct coord_addresses *out, struct coord_error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    (void)ctx;
    const int failed = getaddrinfo(resolution->host, NULL, &hints, &found);
    out->count = 0;
    for (const struct addrinfo *a = failed == 0 ? found : NULL;
         a != NULL && out->count < COORD_ADDRESSES_MAX; a = a->ai_next) {
        if (getnameinfo(a->ai_addr, a->ai_addrlen, out->text[out->count], COORD_ADDRESS_TEXT_MAX,
                        NULL, 0, NI_NUMERICHOST) == 0) {
            out->count++;
        }
    }
    if (failed == 0) {
        freeaddrinfo(found);
    }
    if (out->count == 0) {
        return coord_error_set(error, COORD_E_NAME_UNRESOLVED,
                               "%.100s cannot be resolved: correct the host in the URI, or see DNS",
                               resolution->host);
    }
    return COORD_OK;
}

static void resolve_drop(void *ctx, struct coord_resolution *resolution)
{
    (void)ctx;
    free(resolution);
}

const struct coord_resolver coord__redis_resolve_at_once = {NULL, resolve_start, resolve_poll,
                                                            resolve_drop};
