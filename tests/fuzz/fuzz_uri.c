/* SPDX-License-Identifier: MIT
 * tests/fuzz/fuzz_uri.c - any text: it is refused, or what was read hangs together.
 */
#include "coord/uri.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* A text of the URI lies in its storage and ends there. */
static void check_text(const struct coord_uri *uri, const char *text)
{
    if (text != NULL) {
        must(text >= uri->storage);
        must(text < uri->storage + sizeof uri->storage);
        must(memchr(text, '\0', (size_t)(uri->storage + sizeof uri->storage - text)) != NULL);
    }
}

static void check_texts(const struct coord_uri *uri)
{
    must(uri->scheme != NULL && uri->rest != NULL && uri->shown != NULL);
    check_text(uri, uri->scheme);
    check_text(uri, uri->user);
    check_text(uri, uri->password);
    check_text(uri, uri->path);
    check_text(uri, uri->rest);
    check_text(uri, uri->query);
    check_text(uri, uri->shown);
    must(uri->host_count <= COORD_URI_HOSTS_MAX);
    for (size_t i = 0; i < uri->host_count; i++) {
        check_text(uri, uri->hosts[i].host);
    }
    must(uri->option_count <= COORD_URI_OPTIONS_MAX);
    for (size_t i = 0; i < uri->option_count; i++) {
        check_text(uri, uri->options[i].key);
        check_text(uri, uri->options[i].value);
        must(uri->options[i].key[0] != '\0');
    }
}

/* What a server's library reads from `rest` is what we have read from the whole. */
static void check_rest(const struct coord_uri *uri, struct coord_uri *again)
{
    must(coord_uri_parse(uri->rest, again, NULL) == COORD_OK);
    must(again->option_count == 0);
    must(same(again->rest, uri->rest));
    must(same(again->query, uri->query));
    must(same(again->scheme, uri->scheme));
    must(same(again->user, uri->user));
    must(same(again->password, uri->password));
    must(same(again->path, uri->path));
    must(again->host_count == uri->host_count);
    for (size_t i = 0; i < uri->host_count; i++) {
        must(same(again->hosts[i].host, uri->hosts[i].host));
        must(again->hosts[i].port == uri->hosts[i].port);
    }
}

/* The shown form reads as the same place, without a user. */
static void check_shown(const struct coord_uri *uri, struct coord_uri *again)
{
    const size_t bytes = strlen(uri->shown);
    must(bytes <= COORD_URI_MAX + 16);
    if (bytes > COORD_URI_MAX) {
        return;
    }
    must(coord_uri_parse(uri->shown, again, NULL) == COORD_OK);
    must(again->password == NULL);
    must(again->user == NULL || strcmp(again->user, "***") == 0);
    must(same(again->path, uri->path));
    must(again->host_count == uri->host_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct coord_uri uri;
    static struct coord_uri again;
    /* The first line is the URI, the second an option that is added. Of the exact size, so that a
     * byte too far is seen. */
    char *text = malloc(size + 1);
    must(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    char *option = strchr(text, '\n');
    if (option != NULL) {
        *option++ = '\0';
    }
    struct coord_error error = {0};
    if (coord_uri_parse(text, &uri, &error) == COORD_OK) {
        check_texts(&uri);
        check_rest(&uri, &again);
        check_shown(&uri, &again);
        if (option != NULL && coord_uri_add_option(&uri, option, &error) == COORD_OK) {
            must(strchr(option, '=') != NULL);
        }
    } else {
        must(error.text[0] != '\0');
    }
    free(text);
    return 0;
}
