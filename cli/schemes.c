/* SPDX-License-Identifier: MIT
 * cli/schemes.c - the URI schemes that coordctl knows, and what loads their libraries.
 *
 * A library is opened when its scheme is first asked for, so that coordctl starts without libpq or
 * hiredis, and says which package is missing.
 */
#include "cli/schemes.h"

#include "electors/file.h"
#include "electors/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef const struct coord_backend_ops *(*ops_fn)(void);

enum {
    PATH_BYTES = 1024
};

struct library {
    const char *file; /* its SONAME, without the number */
    const char *symbol;
    const char *package; /* as distributions name it */
};

static const struct library redis = {"libcoord-redis.so.0", "coord_redis_elector",
                                     "libcoord-redis"};
static const struct library postgres = {"libcoord-postgres.so.0", "coord_postgres_elector",
                                        "libcoord-postgres"};

/* Beside libcoord first: that one is of the same version, wherever both were installed. */
static void *open_library(const char *file)
{
    Dl_info here;
    char path[PATH_BYTES];
    void *opened = NULL;
    if (dladdr(coord_file_elector(), &here) != 0 && here.dli_fname != NULL) {
        const char *slash = strrchr(here.dli_fname, '/');
        const int folder = slash != NULL ? (int)(slash + 1 - here.dli_fname) : 0;
        const int length = snprintf(path, sizeof path, "%.*s%s", folder, here.dli_fname, file);
        if (slash != NULL && length > 0 && (size_t)length < sizeof path) {
            opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return opened != NULL ? opened : dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

static cli_function find(const struct library *library, const char *symbol,
                         struct coord_error *error)
{
    void *const opened = open_library(library->file);
    if (opened == NULL) {
        const char *why = dlerror();
        if (why != NULL &&
            (strstr(why, strerror(EMFILE)) != NULL || strstr(why, strerror(ENFILE)) != NULL)) {
            coord_error_set(error, COORD_E_SYSTEM,
                            "%s cannot be loaded (%s): raise the limit of open files",
                            library->file, why);
            return NULL;
        }
        coord_error_set(error, COORD_E_NOT_INSTALLED,
                        "%s cannot be loaded: install the package %s (%s)", library->file,
                        library->package, why != NULL ? why : "no reason given");
        return NULL;
    }
    void *const address = dlsym(opened, symbol);
    cli_function function = NULL;
    memcpy(&function, &address, sizeof function); /* C has no cast from an object to a function */
    if (function == NULL) {
        coord_error_set(error, COORD_E_VERSION_MISMATCH,
                        "%s has no %s: install %s in the version of coordctl", library->file,
                        symbol, library->package);
        dlclose(opened);
    }
    return function; /* the library stays loaded */
}

static const struct coord_backend_ops *load(const struct library *library,
                                            struct coord_error *error)
{
    const ops_fn ops = (ops_fn)find(library, library->symbol, error);
    return ops != NULL ? ops() : NULL;
}

static const struct coord_backend_ops *load_redis(struct coord_error *error)
{
    return load(&redis, error);
}

static const struct coord_backend_ops *load_postgres(struct coord_error *error)
{
    return load(&postgres, error);
}

const struct coord_scheme cli_schemes[] = {
    {"file", coord_file_elector, NULL},
    {"memory", coord_memory_elector, NULL},
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

cli_function cli_scheme_function(const char *scheme, const char *symbol, struct coord_error *error)
{
    error->code = COORD_OK;
    for (const struct coord_scheme *s = cli_schemes; s->scheme != NULL; s++) {
        if (strcmp(s->scheme, scheme) == 0 && s->load != NULL) {
            return find(s->load == load_redis ? &redis : &postgres, symbol, error);
        }
    }
    return NULL;
}
