/* SPDX-License-Identifier: MIT
 * connections/redis_connect.c - from a name to an open socket: each address in turn, each Sentinel.
 */
#include "connections/redis_link.h"

#include <hiredis/hiredis.h>

#include <arpa/inet.h>
#include <string.h>

enum {
    STEP_MIN = 10 /* ms; for one address */
};

static void connected(struct coord__redis_link *link, coord_ms now)
{
    link->state = COORD__REDIS_LINK_GREETING;
    link->deadline = coord_ms_add(now, link->attempt);
    coord__redis_reader_start(link);
    if (link->reader == NULL) {
        struct coord_error error;
        coord_error_set(&error, COORD_E_NO_MEMORY, "out of memory: free some");
        coord__redis_link_fail(link, &error, now);
        return;
    }
    coord__redis_greet(link, now);
}

static const struct coord__redis_host *present_host(const struct coord__redis_link *link)
{
    return link->at_master ? &link->found : &link->target.hosts[link->host];
}

static bool start_tls(struct coord__redis_link *link, struct coord_error *error)
{
    if (link->target.tls) {
        link->tls = coord__redis_tls_new(&link->target, present_host(link)->name, error);
    }
    return !link->target.tls || link->tls != NULL;
}

/* Of several addresses the one that answered tells most. */
static void note_failure(struct coord__redis_link *link, const struct coord_error *error)
{
    if (link->failure.code == COORD_OK || error->code != COORD_E_UNREACHABLE) {
        const struct coord__redis_host *host = present_host(link);
        coord_error_set(&link->failure, error->code, "%.80s:%u: %s", host->name,
                        (unsigned)host->port, error->text);
    }
}

/* The next address that can be begun at all. */
static void connect_next(struct coord__redis_link *link, coord_ms now)
{
    if (link->addresses.count == 0) {
        coord_error_set(&link->failure, COORD_E_NAME_UNRESOLVED,
                        "%.80s has no address: correct the name", present_host(link)->name);
    }
    while (link->address < link->addresses.count) {
        const char *address = link->addresses.text[link->address++];
        struct coord_error error;
        bool at_once = false;
        link->fd = coord__redis_socket_tcp(address, present_host(link)->port, link->attempt,
                                           &at_once, &error);
        if (link->fd < 0) {
            note_failure(link, &error);
            continue;
        }
        link->generation++;
        if (!start_tls(link, &error)) {
            note_failure(link, &error);
            coord__redis_link_close(link);
            continue;
        }
        const coord_ms share = link->attempt / link->addresses.count;
        link->state = COORD__REDIS_LINK_CONNECTING;
        link->deadline = coord_ms_add(now, coord_ms_max(share, STEP_MIN));
        return;
    }
    coord__redis_link_next_host(link, &link->failure, now);
}

static void connect_unix(struct coord__redis_link *link, coord_ms now)
{
    struct coord_error error;
    bool at_once = false;
    link->fd = coord__redis_socket_unix(link->target.socket, &at_once, &error);
    if (link->fd < 0) {
        coord_error_set(&link->failure, error.code, "%s: %s", link->target.socket, error.text);
        coord__redis_link_fail(link, &link->failure, now);
        return;
    }
    link->generation++;
    connected(link, now);
}

static bool is_address(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char plain[COORD__REDIS_HOST_MAX];
    memcpy(plain, name, strlen(name) + 1);
    plain[strcspn(plain, "%")] = '\0'; /* a zone */
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, plain, bytes) == 1;
}

static void add_address(struct coord_addresses *addresses, const char *address)
{
    char *text = addresses->text[addresses->count++];
    const size_t bytes = strnlen(address, COORD_ADDRESS_TEXT_MAX - 1);
    memcpy(text, address, bytes);
    text[bytes] = '\0';
}

/* Names are asked for at each connect: a server that moved is found again. */
void coord__redis_connect_host(struct coord__redis_link *link, coord_ms now)
{
    const char *name = present_host(link)->name;
    struct coord_error error = {.code = COORD_OK};
    link->address = 0;
    link->addresses.count = 0;
    link->failure.code = COORD_OK;
    if (is_address(name)) {
        add_address(&link->addresses, name);
        connect_next(link, now);
        return;
    }
    if (link->resolver == NULL && strcmp(name, "localhost") == 0) {
        add_address(&link->addresses, "127.0.0.1");
        add_address(&link->addresses, "::1");
        connect_next(link, now);
        return;
    }
    if (link->resolver == NULL) {
        coord_error_set(&error, COORD_E_NAME_UNRESOLVED,
                        "%.80s is a name, and nobody resolves names here: give an address, or a "
                        "resolver",
                        name);
        coord__redis_link_next_host(link, &error, now);
        return;
    }
    link->resolution = link->resolver->start(link->resolver->ctx, name);
    if (link->resolution == NULL) {
        coord_error_set(&error, COORD_E_NO_MEMORY, "out of memory: free some");
        coord__redis_link_fail(link, &error, now);
        return;
    }
    link->state = COORD__REDIS_LINK_RESOLVING;
    link->deadline = coord_ms_add(now, link->attempt);
}

void coord__redis_connect(struct coord__redis_link *link, coord_ms now)
{
    link->host = 0;
    link->at_master = false;
    if (link->target.socket[0] != '\0') {
        connect_unix(link, now);
    } else {
        link->state = COORD__REDIS_LINK_NEXT;
    }
}

void coord__redis_link_next_host(struct coord__redis_link *link, const struct coord_error *error,
                                 coord_ms now)
{
    if (link->target.master[0] == '\0' || link->host + 1 >= link->target.host_count) {
        coord__redis_link_fail(link, error, now);
        return;
    }
    coord__redis_link_close(link);
    link->host++;
    link->at_master = false;
    link->state = COORD__REDIS_LINK_NEXT;
}

void coord__redis_link_go_to_master(struct coord__redis_link *link)
{
    coord__redis_link_close(link);
    link->at_master = true;
    link->state = COORD__REDIS_LINK_NEXT;
}

bool coord__redis_connect_resolved(struct coord__redis_link *link, coord_ms now)
{
    struct coord_error error;
    enum coord_err rc =
        link->resolver->poll(link->resolver->ctx, link->resolution, &link->addresses, &error);
    if (rc == COORD_E_BUSY && now < link->deadline) {
        return false;
    }
    if (rc == COORD_E_BUSY) {
        rc = coord_error_set(&error, COORD_E_NAME_UNRESOLVED,
                             "%.80s was not resolved in time: look at the name server",
                             present_host(link)->name);
    }
    coord__redis_link_drop_resolution(link);
    if (rc != COORD_OK) {
        coord__redis_link_next_host(link, &error, now);
    } else {
        connect_next(link, now);
    }
    return true;
}

bool coord__redis_connect_done(struct coord__redis_link *link, coord_ms now)
{
    struct coord_error error;
    enum coord__redis_io io = coord__redis_socket_connected(link->fd, &error);
    const bool there = io == COORD__REDIS_IO_DONE;
    if (there && link->tls != NULL) {
        io = coord__redis_tls_handshake(link->tls, link->fd, &error);
    }
    if (io == COORD__REDIS_IO_DONE) {
        connected(link, now);
        return true;
    }
    if (io == COORD__REDIS_IO_LATER && now < link->deadline) {
        return false;
    }
    if (io == COORD__REDIS_IO_LATER && there) {
        coord_error_set(&error, COORD_E_NO_ANSWER,
                        "no TLS came about in time: is it the TLS port of the server?");
    } else if (io == COORD__REDIS_IO_LATER) {
        coord_error_set(&error, COORD_E_UNREACHABLE,
                        "no answer to the connect: is the address right, and no firewall between?");
    }
    note_failure(link, &error);
    coord__redis_link_close(link);
    connect_next(link, now);
    return true;
}
