/* SPDX-License-Identifier: MIT
 * cli/bus_schemes.c - buses in the libraries that cli/schemes.c loads.
 */
#include "cli/bus_schemes.h"

#include "brokers/local.h"
#include "brokers/memory.h"
#include "cli/schemes.h"

typedef const struct coord_broker_ops *(*ops_fn)(void);

static const struct coord_broker_ops *load(const char *scheme, const char *symbol,
                                           struct coord_error *error)
{
    struct coord_error why = {.code = COORD_OK};
    const ops_fn ops = (ops_fn)cli_scheme_function(scheme, symbol, &why);
    if (ops == NULL && error != NULL) {
        *error = why;
    }
    return ops != NULL ? ops() : NULL;
}

static const struct coord_broker_ops *load_redis(struct coord_error *error)
{
    return load("redis", "coord_redis_broker", error);
}

static const struct coord_broker_ops *load_postgres(struct coord_error *error)
{
    return load("postgresql", "coord_postgres_broker", error);
}

const struct coord_bus_scheme cli_bus_schemes[] = {
    {"local", coord_local_broker, NULL},
    {"memory", coord_memory_broker, NULL},
    {"redis", NULL, load_redis},
    {"rediss", NULL, load_redis},
    {"redis+unix", NULL, load_redis},
    {"redis+socket", NULL, load_redis},
    {"unix", NULL, load_redis},
    {"redis+sentinel", NULL, load_redis},
    {"rediss+sentinel", NULL, load_redis},
    {"postgresql", NULL, load_postgres},
    {"postgres", NULL, load_postgres},
    {NULL, NULL, NULL},
};
