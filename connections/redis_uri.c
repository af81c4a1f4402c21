/* SPDX-License-Identifier: MIT
 * connections/redis_uri.c - what a URI of a Redis server says.
 */
#include "connections/redis_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SERVER_PORT = 6379,
    SENTINEL_PORT = 26379,
    DB_DIGITS = 5
};

static bool is_one_of(const char *scheme, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strcmp(scheme, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum coord_err copy(const char *what, const char *from, char *to, size_t room,
                           struct coord_error *error)
{
    if (from == NULL) {
        from = "";
    }
    if (strlen(from) >= room) {
        return coord_error_set(error, COORD_E_BAD_URI, "the %s has more than %zu bytes: shorten it",
                               what, room - 1);
    }
    memcpy(to, from, strlen(from) + 1);
    return COORD_OK;
}

static enum coord_err read_db(const char *text, unsigned *out, struct coord_error *error)
{
    unsigned db = 0;
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > DB_DIGITS || text[digits] != '\0') {
        return coord_error_set(
            error, COORD_E_BAD_URI,
            "the database of the URI is not a number: write /0, or leave it out");
    }
    for (size_t i = 0; i < digits; i++) {
        db = db * 10 + (unsigned)(text[i] - '0');
    }
    *out = db;
    return COORD_OK;
}

/* What is left of the query is refused, but for the database: a typing error must not be lost. */
static enum coord_err read_query(const char *query, struct coord__redis_target *out,
                                 struct coord_error *error)
{
    if (query == NULL || query[0] == '\0') {
        return COORD_OK;
    }
    const size_t key = strcspn(query, "=&");
    const bool is_db = (key == 2 && memcmp(query, "db", 2) == 0) ||
                       (key == 12 && memcmp(query, "virtual_host", 12) == 0);
    if (!is_db || query[key] != '=' || strchr(query, '&') != NULL) {
        return coord_error_set(error, COORD_E_UNKNOWN_OPTION,
                               "a Redis URI has no option %.*s: use db=N, or coord.OPTION",
                               (int)(key < 40 ? key : 40), query);
    }
    return read_db(query + key + 1, &out->db, error);
}

static enum coord_err read_socket(const struct coord_uri *uri, struct coord__redis_target *out,
                                  struct coord_error *error)
{
    const char *path = uri->path != NULL ? uri->path : "";
    if (uri->host_count > 0 || strlen(path) < 2) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "the URI names no socket: write redis+unix:///run/redis/redis.sock");
    }
    return copy("path of the socket", path, out->socket, sizeof out->socket, error);
}

/* `/DB`, or `/MASTER` and perhaps `/DB`. */
static enum coord_err read_path(const char *path, bool sentinel, struct coord__redis_target *out,
                                struct coord_error *error)
{
    const char *at = path != NULL && path[0] == '/' ? path + 1 : "";
    if (sentinel) {
        const size_t bytes = strcspn(at, "/");
        if (bytes == 0 || bytes >= sizeof out->master) {
            return coord_error_set(error, COORD_E_BAD_URI,
                                   "the URI names no primary: write "
                                   "redis+sentinel://HOST:26379,HOST/MASTER");
        }
        memcpy(out->master, at, bytes);
        out->master[bytes] = '\0';
        at += bytes;
        at += at[0] == '/' ? 1 : 0;
    }
    return at[0] != '\0' ? read_db(at, &out->db, error) : COORD_OK;
}

static enum coord_err read_hosts(const struct coord_uri *uri, bool sentinel,
                                 struct coord__redis_target *out, struct coord_error *error)
{
    if (uri->host_count == 0 || (uri->host_count > 1 && !sentinel)) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               uri->host_count == 0
                                   ? "the URI names no host: write redis://HOST:6379"
                                   : "a Redis URI names one host: name a Sentinel's fleet as "
                                     "redis+sentinel://A,B,C/MASTER");
    }
    enum coord_err rc = COORD_OK;
    for (size_t i = 0; rc == COORD_OK && i < uri->host_count; i++) {
        struct coord__redis_host *host = &out->hosts[i];
        const char *name = uri->hosts[i].host;
        rc = copy("host", name[0] != '\0' ? name : "localhost", host->name, sizeof host->name,
                  error);
        host->port = uri->hosts[i].port;
        if (host->port == 0) {
            host->port = sentinel ? SENTINEL_PORT : SERVER_PORT;
        }
    }
    out->host_count = uri->host_count;
    return rc;
}

static enum coord_err read_login(const struct coord_uri *uri, struct coord__redis_login *out,
                                 struct coord_error *error)
{
    enum coord_err rc = copy("user", uri->user, out->user, sizeof out->user, error);
    if (rc == COORD_OK) {
        rc = copy("password", uri->password, out->password, sizeof out->password, error);
    }
    /* The URI is nearer than the environment. */
    const char *file = out->password[0] == '\0' ? secure_getenv("REDIS_PASSWORD_FILE") : NULL;
    out->named_by = "REDIS_PASSWORD_FILE";
    return rc == COORD_OK
               ? copy("path in REDIS_PASSWORD_FILE", file, out->file, sizeof out->file, error)
               : rc;
}

static enum coord_err read_sentinel_login(const struct coord_uri *uri,
                                          struct coord__redis_login *out, struct coord_error *error)
{
    const enum coord_err rc = copy("coord.sentinel_user", coord_uri_option(uri, "sentinel_user"),
                                   out->user, sizeof out->user, error);
    out->named_by = "coord.sentinel_password_file";
    return rc == COORD_OK ? copy(out->named_by, coord_uri_option(uri, "sentinel_password_file"),
                                 out->file, sizeof out->file, error)
                          : rc;
}

static enum coord_err read_tls(const struct coord_uri *uri, struct coord__redis_target *out,
                               struct coord_error *error)
{
    enum coord_err rc =
        copy("coord.tls_ca", coord_uri_option(uri, "tls_ca"), out->ca, sizeof out->ca, error);
    if (rc == COORD_OK) {
        rc = copy("coord.tls_cert", coord_uri_option(uri, "tls_cert"), out->cert, sizeof out->cert,
                  error);
    }
    if (rc == COORD_OK) {
        rc = copy("coord.tls_key", coord_uri_option(uri, "tls_key"), out->key, sizeof out->key,
                  error);
    }
    return rc == COORD_OK ? coord__redis_tls_check(out, error) : rc;
}

enum coord_err coord__redis_target_read(const struct coord_uri *uri,
                                        struct coord__redis_target *out, struct coord_error *error)
{
    static const char *const tcp[] = {"redis", "rediss", NULL};
    static const char *const unixes[] = {"redis+unix", "redis+socket", "unix", NULL};
    static const char *const sentinels[] = {"redis+sentinel", "rediss+sentinel", NULL};
    COORD_ASSERT(uri != NULL);
    memset(out, 0, sizeof *out);
    const bool sentinel = is_one_of(uri->scheme, sentinels);
    enum coord_err rc = COORD_OK;
    if (is_one_of(uri->scheme, unixes)) {
        rc = read_socket(uri, out, error);
    } else if (sentinel || is_one_of(uri->scheme, tcp)) {
        rc = read_hosts(uri, sentinel, out, error);
        if (rc == COORD_OK) {
            rc = read_path(uri->path, sentinel, out, error);
        }
    } else {
        rc = coord_error_set(error, COORD_E_UNKNOWN_SCHEME,
                             "%s is no scheme of Redis: use redis, rediss, redis+unix or "
                             "redis+sentinel",
                             uri->scheme);
    }
    if (rc == COORD_OK) {
        rc = read_login(uri, &out->login, error);
    }
    if (rc == COORD_OK && sentinel) {
        rc = read_sentinel_login(uri, &out->sentinel, error);
    }
    if (rc == COORD_OK) {
        rc = read_query(uri->query, out, error);
    }
    out->tls = strncmp(uri->scheme, "rediss", strlen("rediss")) == 0;
    if (rc == COORD_OK && out->tls) {
        rc = read_tls(uri, out, error);
    }
    snprintf(out->shown, sizeof out->shown, "%s", uri->shown != NULL ? uri->shown : uri->scheme);
    return rc;
}

/* What tells one connection from another: the URI, and those options of ours that say how. */
char *coord__redis_share_key(const char *kind, const struct coord_uri *uri)
{
    static const char *const options[] = {"tls_ca", "tls_cert", "tls_key", "sentinel_user",
                                          "sentinel_password_file"};
    char key[COORD_URI_MAX + 6 * COORD__REDIS_HOST_MAX];
    size_t used = (size_t)snprintf(key, sizeof key, "%s %s", kind, uri->rest);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const char *value = coord_uri_option(uri, options[i]);
        if (value != NULL && used < sizeof key) {
            used += (size_t)snprintf(key + used, sizeof key - used, " %s=%s", options[i], value);
        }
    }
    char *copy_of_it = used < sizeof key ? strdup(key) : NULL;
    explicit_bzero(key, sizeof key);
    return copy_of_it;
}

void coord__redis_share_key_free(char *key)
{
    if (key != NULL) {
        explicit_bzero(key, strlen(key)); /* the password is in it */
        free(key);
    }
}
