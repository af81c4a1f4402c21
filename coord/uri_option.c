/* SPDX-License-Identifier: MIT
 * coord/uri_option.c - the options of ours that a URI carries, and those that are added to it.
 */
#include "coord/uri.h"

#include <string.h>

/* @return option_count: there is none. */
static size_t find(const struct coord_uri *uri, const char *key)
{
    size_t i = 0;
    while (i < uri->option_count && strcmp(uri->options[i].key, key) != 0) {
        i++;
    }
    return i;
}

enum coord_err coord__uri_append_option(struct coord_uri *uri, const char *key, const char *value,
                                        struct coord_error *error)
{
    if (key[0] == '\0') {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "an option has no name: write KEY=VALUE, such as ttl=10s");
    }
    if (uri->option_count == COORD_URI_OPTIONS_MAX) {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "the URI has more than %d options: give fewer",
                               COORD_URI_OPTIONS_MAX);
    }
    uri->options[uri->option_count++] = (struct coord_uri_option){key, value};
    return COORD_OK;
}

/* Where the names of options that were added before end. */
static size_t storage_used(const struct coord_uri *uri)
{
    size_t used = COORD__URI_SPARE_AT;
    for (size_t i = 0; i < uri->option_count; i++) {
        const char *key = uri->options[i].key;
        if (key >= uri->storage + COORD__URI_SPARE_AT) {
            used += strlen(key) + 1;
        }
    }
    return used;
}

enum coord_err coord_uri_add_option(struct coord_uri *uri, const char *key_value,
                                    struct coord_error *error)
{
    static const char prefix[] = "coord.";
    COORD_ASSERT(uri != NULL);
    COORD_ASSERT(key_value != NULL);
    const char *key = key_value;
    if (strncmp(key, prefix, sizeof prefix - 1) == 0) {
        key += sizeof prefix - 1;
    }
    const char *equals = strchr(key, '=');
    if (equals == NULL) {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "an option has no '=': write KEY=VALUE, such as ttl=10s");
    }
    const size_t bytes = (size_t)(equals - key);
    const size_t used = storage_used(uri);
    if (bytes >= sizeof uri->storage - used) {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "the name of an option is too long: write KEY=VALUE, such as "
                               "ttl=10s");
    }
    char *name = uri->storage + used;
    memcpy(name, key, bytes);
    name[bytes] = '\0';
    const size_t index = find(uri, name);
    if (index == uri->option_count) {
        return coord__uri_append_option(uri, name, equals + 1, error);
    }
    uri->options[index].value =
        equals + 1; /* its name is there already; the copy is written over next time */
    return COORD_OK;
}

const char *coord_uri_option(const struct coord_uri *uri, const char *key)
{
    COORD_ASSERT(uri != NULL);
    COORD_ASSERT(key != NULL);
    const size_t index = find(uri, key);
    return index < uri->option_count ? uri->options[index].value : NULL;
}
