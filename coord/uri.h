/* SPDX-License-Identifier: MIT
 * coord/uri.h - URIs of stores and buses: taken apart, options of ours stripped, secrets hidden.
 *
 * Where a function does not say otherwise: Blocks: never. Allocates: never. Calls back: never.
 */
#ifndef COORD_URI_H
#define COORD_URI_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_URI_MAX = 4096,       /* bytes of a URI */
    COORD_URI_OPTIONS_MAX = 24, /* `coord.` options of one URI */
    COORD_URI_HOSTS_MAX = 8
};

/** One option of ours, without its `coord.`; both decoded, inside the URI's own storage. */
struct coord_uri_option {
    const char *key;
    const char *value;
};

struct coord_uri_host {
    const char *host; /* decoded, IPv6 without brackets; "" where none was given */
    uint16_t port;    /* 0: none was given */
};

/** All texts lie in `storage` and are decoded; absent ones are NULL. */
struct coord_uri {
    const char *scheme; /* lower case, such as "redis+unix" */
    const char *user;
    const char *password;
    struct coord_uri_host hosts[COORD_URI_HOSTS_MAX];
    size_t host_count;
    const char *path; /* decoded, with its leading slash; for `file:DIR` and `memory:X` the rest */
    struct coord_uri_option options[COORD_URI_OPTIONS_MAX];
    size_t option_count;
    const char *rest;  /* the URI as given, less the `coord.` options: for a server's own library */
    const char *query; /* what the query holds besides, raw; NULL: nothing */
    const char *shown; /* for logs: the URI with its password and user info replaced by *** */
    char storage[4 * COORD_URI_MAX];
};

/**
 * Take a URI apart. `file:DIR` and `memory:NAME` need no slashes; authority schemes need `//`.
 *
 * @param text   borrowed; at most COORD_URI_MAX bytes.
 * @param out    written on success, zeroed on failure; large, so better not on a small stack. It
 *               must not be moved.
 * @param error  filled in on failure, without the secret; may be NULL.
 * @return       COORD_OK; BAD_URI; BAD_OPTION for an option given twice.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#uris, tests/unit/test_uri.c, tests/fuzz/fuzz_uri.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_uri_parse(const char *text, struct coord_uri *out,
                                                          struct coord_error *error);

/**
 * Add `KEY=VALUE`, as of a command line's --option. It replaces one of the URI.
 *
 * @param key_value  borrowed for the life of `uri`.
 * @return           COORD_OK, or BAD_OPTION.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#options, tests/unit/test_uri.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_uri_add_option(struct coord_uri *uri,
                                                               const char *key_value,
                                                               struct coord_error *error);

/** The value of one option of ours, without its `coord.`; NULL: not given. Thread: any. */
COORD_API const char *coord_uri_option(const struct coord_uri *uri, const char *key);

/* ---- between coord/uri*.c only ---- */
enum {
    COORD__URI_SPARE_AT = 3 * (COORD_URI_MAX + 128)
}; /* of storage: names of added options */
enum coord_err coord__uri_append_option(struct coord_uri *uri, const char *key, const char *value,
                                        struct coord_error *error);

#ifdef __cplusplus
}
#endif
#endif /* COORD_URI_H */
