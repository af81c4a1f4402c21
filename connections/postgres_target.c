/* SPDX-License-Identifier: MIT
 * connections/postgres_target.c - a URI of PostgreSQL taken apart by libpq, and given back to it
 * host by host: libpq's own walk over several hosts knows no time limit that does not block.
 */
#include "connections/postgres.h"

#include "coord/uri.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARAMETERS = 64,
    PORT_TEXT = 8,
    HOST_TEXT = 256
};

struct host {
    char name[HOST_TEXT];    /* "": libpq's own default */
    char address[HOST_TEXT]; /* hostaddr of the URI; "": none */
    char port[PORT_TEXT];    /* "": libpq's own default */
};

struct coord__postgres_target {
    PQconninfoOption *options;
    struct host hosts[COORD_URI_HOSTS_MAX];
    size_t host_count;
    char uri[];
};

static const char *value_in(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++) {
        if (strcmp(o->keyword, keyword) == 0) {
            return o->val != NULL && o->val[0] != '\0' ? o->val : NULL;
        }
    }
    return NULL;
}

/* The n-th part of a comma-separated list. @return false: there is none. */
static bool part_of(const char *list, size_t n, char *out, size_t room)
{
    for (; n > 0; n--) {
        list = strchr(list, ',');
        if (list == NULL) {
            return false;
        }
        list++;
    }
    const size_t length = strcspn(list, ",");
    if (length >= room) {
        return false;
    }
    memcpy(out, list, length);
    out[length] = '\0';
    return true;
}

static size_t parts_of(const char *list)
{
    size_t count = 1;
    for (; list != NULL && *list != '\0'; list++) {
        count += *list == ',';
    }
    return count;
}

static bool split_hosts(struct coord__postgres_target *target, const char *names,
                        const char *addresses, const char *ports)
{
    const size_t count = parts_of(addresses != NULL ? addresses : names);
    if (count > COORD_URI_HOSTS_MAX) {
        return false;
    }
    target->host_count = count;
    for (size_t i = 0; i < count; i++) {
        struct host *host = &target->hosts[i];
        /* One port serves all hosts. */
        const size_t port = ports != NULL && parts_of(ports) > 1 ? i : 0;
        if ((names != NULL && !part_of(names, i, host->name, sizeof host->name)) ||
            (addresses != NULL && !part_of(addresses, i, host->address, sizeof host->address)) ||
            (ports != NULL && !part_of(ports, port, host->port, sizeof host->port))) {
            return false;
        }
    }
    return true;
}

static bool find_hosts(struct coord__postgres_target *target)
{
    /* What the URI leaves open, the environment may say (PGHOST, PGPORT, PGHOSTADDR). */
    PQconninfoOption *defaults = PQconndefaults();
    if (defaults == NULL) {
        return false;
    }
    const char *names = value_in(target->options, "host");
    const char *addresses = value_in(target->options, "hostaddr");
    const char *ports = value_in(target->options, "port");
    const bool service = value_in(target->options, "service") != NULL;
    bool ok = true;
    if (names == NULL && addresses == NULL && !service) {
        names = value_in(defaults, "host");
        addresses = value_in(defaults, "hostaddr");
    }
    if (ports == NULL && !service) {
        ports = value_in(defaults, "port");
    }
    if (names == NULL && addresses == NULL) {
        target->host_count = 1;
        ok = ports == NULL || part_of(ports, 0, target->hosts[0].port, PORT_TEXT);
    } else {
        ok = split_hosts(target, names, addresses, ports);
    }
    PQconninfoFree(defaults);
    return ok;
}

enum coord_err coord__postgres_target_new(const char *uri, struct coord__postgres_target **out,
                                          struct coord_error *error)
{
    const size_t bytes = strlen(uri) + 1;
    struct coord__postgres_target *target = calloc(1, sizeof *target + bytes);
    if (target == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    memcpy(target->uri, uri, bytes);
    /* libpq's message may quote any part of the URI, the password too: it is not repeated. */
    char *message = NULL;
    target->options = PQconninfoParse(uri, &message);
    PQfreemem(message);
    if (target->options == NULL || !find_hosts(target)) {
        coord__postgres_target_free(target);
        return coord_error_set(
            error, COORD_E_BAD_URI,
            "libpq cannot read this URI: compare it with "
            "postgresql://USER@HOST:PORT/DATABASE?PARAMETER=VALUE, write special "
            "characters as %%XX, and name at most %d hosts",
            COORD_URI_HOSTS_MAX);
    }
    *out = target;
    return COORD_OK;
}

void coord__postgres_target_free(struct coord__postgres_target *target)
{
    if (target == NULL) {
        return;
    }
    PQconninfoFree(target->options);
    free(target);
}

const char *coord__postgres_target_option(const struct coord__postgres_target *target,
                                          const char *keyword)
{
    return value_in(target->options, keyword);
}

size_t coord__postgres_target_hosts(const struct coord__postgres_target *target)
{
    return target->host_count;
}

static bool is_address(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    /* A zone, as in fe80::1%eth0, is part of a literal address as well. */
    return inet_pton(AF_INET, text, bytes) == 1 || strchr(text, ':') != NULL;
}

const char *coord__postgres_target_name(const struct coord__postgres_target *target, size_t host)
{
    const struct host *h = &target->hosts[host];
    const bool socket = h->name[0] == '/' || h->name[0] == '@' || h->name[0] == '\0';
    return socket || h->address[0] != '\0' || is_address(h->name) ? NULL : h->name;
}

const char *coord__postgres_target_show(const struct coord__postgres_target *target, size_t host,
                                        char *out, size_t room)
{
    const struct host *h = &target->hosts[host];
    const char *name = h->name[0] != '\0' ? h->name : h->address;
    const char *shown = name[0] != '\0' ? name : "the local socket";
    const char *colon = h->port[0] != '\0' && name[0] != '/' ? ":" : "";
    if (snprintf(out, room, "%s%s%s", shown, colon, colon[0] != '\0' ? h->port : "") < 0) {
        out[0] = '\0';
    }
    return out;
}

struct parameters {
    const char *keywords[PARAMETERS];
    const char *values[PARAMETERS];
    size_t count;
};

static void add(struct parameters *p, const char *keyword, const char *value)
{
    if (value == NULL || value[0] == '\0' || p->count + 1 >= PARAMETERS) {
        return;
    }
    p->keywords[p->count] = keyword;
    p->values[p->count] = value;
    p->count++;
}

static bool is_ours(const char *keyword)
{
    return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 ||
           strcmp(keyword, "port") == 0;
}

static void collect(const struct coord__postgres_target *target, size_t host, const char *address,
                    struct parameters *out)
{
    const struct host *h = &target->hosts[host];
    /* A line that was cut, or that a firewall has forgotten, must not look alive for hours.
     * What the URI says comes later, and counts. */
    add(out, "keepalives_idle", "30");
    add(out, "keepalives_interval", "10");
    add(out, "keepalives_count", "3");
    for (const PQconninfoOption *o = target->options; o->keyword != NULL; o++) {
        if (!is_ours(o->keyword)) {
            add(out, o->keyword, o->val);
        }
    }
    add(out, "host", h->name);
    add(out, "hostaddr", address != NULL ? address : h->address);
    add(out, "port", h->port);
    add(out, "fallback_application_name", "coord");
}

PGconn *coord__postgres_target_start(const struct coord__postgres_target *target, size_t host,
                                     const char *address)
{
    struct parameters p = {.count = 0};
    collect(target, host, address, &p);
    return PQconnectStartParams(p.keywords, p.values, 0);
}
