/* SPDX-License-Identifier: MIT
 * connections/postgres_login.c - from a host name to a session: resolve, connect, log in, one
 * address after the other.
 */
#include "connections/postgres_inside.h"

#include <poll.h>
#include <sys/stat.h>

enum {
    WHERE_TEXT = 128
};

static void on_notice(void *ctx, const PGresult *notice)
{
    struct coord__postgres *pg = ctx;
    if (!pg->doomed && coord__postgres_is_fatal(notice)) {
        pg->doomed = true;
        coord__postgres_explain_result(notice, &pg->doom);
    }
}

/* libpq may change its socket from one step to the next, and the new one mostly has the number of
 * the old one. */
static void note_socket(struct coord__postgres *pg, bool fresh)
{
    const int fd = PQsocket(pg->conn);
    struct stat file = {.st_ino = 0};
    if (fd >= 0 && fstat(fd, &file) != 0) {
        file.st_ino = 0;
    }
    if (fd != pg->fd || file.st_ino != pg->file || fresh) {
        pg->fd = fd;
        pg->file = file.st_ino;
        pg->generation++;
    }
}

static const char *show(const struct coord__postgres *pg, char *out)
{
    return coord__postgres_target_show(pg->target, pg->host, out, WHERE_TEXT);
}

static void begin_address(struct coord__postgres *pg, const char *address, coord_ms now)
{
    char where[WHERE_TEXT];
    coord__postgres_drop_conn(pg);
    pg->state = COORD__POSTGRES_CONNECTING;
    pg->give_up_at = coord_ms_add(now, pg->patience);
    pg->polling = PGRES_POLLING_WRITING;
    pg->conn = coord__postgres_target_start(pg->target, pg->host, address);
    if (pg->conn == NULL) {
        coord_error_set(&pg->last, COORD_E_NO_MEMORY, "out of memory: free some and try again");
        pg->polling = PGRES_POLLING_FAILED;
        return;
    }
    if (PQstatus(pg->conn) == CONNECTION_BAD) {
        coord__postgres_explain_login(pg->conn, show(pg, where), &pg->last);
        pg->polling = PGRES_POLLING_FAILED;
        return;
    }
    PQsetNoticeReceiver(pg->conn, on_notice, pg);
    PQsetErrorVerbosity(pg->conn,
                        PQERRORS_VERBOSE); /* for the code in the text of a failed login */
    note_socket(pg, true);
}

static void begin_host(struct coord__postgres *pg, coord_ms now)
{
    const char *name = coord__postgres_target_name(pg->target, pg->host);
    pg->addresses.count = 0;
    pg->address = 0;
    if (name == NULL) {
        begin_address(pg, NULL, now);
        return;
    }
    coord__postgres_drop_conn(pg);
    pg->state = COORD__POSTGRES_RESOLVING;
    pg->give_up_at = coord_ms_add(now, pg->patience);
    if (pg->resolver != NULL) {
        pg->resolution = pg->resolver->start(pg->resolver->ctx, name);
    }
    if (pg->resolution == NULL) {
        coord_error_set(&pg->last, COORD_E_NAME_UNRESOLVED,
                        "there is no resolver for the host name %.100s: write its address", name);
    }
}

static void next_address(struct coord__postgres *pg, coord_ms now)
{
    if (++pg->address < pg->addresses.count) {
        begin_address(pg, pg->addresses.text[pg->address], now);
        return;
    }
    if (++pg->host < coord__postgres_target_hosts(pg->target)) {
        begin_host(pg, now);
        return;
    }
    coord__postgres_end(pg, &pg->last, now);
}

void coord__postgres_open(struct coord__postgres *pg, coord_ms patience, coord_ms now)
{
    COORD_ASSERT(pg->state == COORD__POSTGRES_CLOSED);
    pg->patience = patience;
    pg->host = 0;
    begin_host(pg, now);
}

void coord__postgres_refuse(struct coord__postgres *pg, const struct coord_error *why, coord_ms now)
{
    pg->last = *why;
    pg->session++;
    next_address(pg, now);
}

void coord__postgres_resolve(struct coord__postgres *pg, coord_ms now)
{
    char where[WHERE_TEXT];
    if (pg->resolution == NULL) {
        next_address(pg, now);
        return;
    }
    const enum coord_err rc =
        pg->resolver->poll(pg->resolver->ctx, pg->resolution, &pg->addresses, &pg->last);
    if (rc == COORD_E_BUSY && now < pg->give_up_at) {
        return;
    }
    if (rc == COORD_E_BUSY) {
        coord_error_set(&pg->last, COORD_E_NAME_UNRESOLVED,
                        "the host name in %s is not resolved in time: check the name service",
                        show(pg, where));
    }
    coord__postgres_drop_resolution(pg);
    if (rc == COORD_OK && pg->addresses.count > 0) {
        begin_address(pg, pg->addresses.text[0], now);
    } else {
        pg->addresses.count = 0;
        next_address(pg, now);
    }
}

void coord__postgres_log_in(struct coord__postgres *pg, coord_ms now)
{
    char where[WHERE_TEXT];
    while (pg->polling == PGRES_POLLING_READING || pg->polling == PGRES_POLLING_WRITING) {
        /* Asked before its socket is ready, libpq takes a connect under way for a finished one. */
        if (!coord__postgres_ready_for(pg->fd,
                                       pg->polling == PGRES_POLLING_READING ? POLLIN : POLLOUT)) {
            break;
        }
        pg->polling = PQconnectPoll(pg->conn);
        note_socket(pg, false);
        if (pg->polling == PGRES_POLLING_FAILED) {
            coord__postgres_explain_login(pg->conn, show(pg, where), &pg->last);
        }
    }
    if (pg->polling == PGRES_POLLING_OK) {
        if (PQsetnonblocking(pg->conn, 1) != 0 || PQenterPipelineMode(pg->conn) != 1) {
            coord__postgres_explain_login(pg->conn, show(pg, where), &pg->last);
            next_address(pg, now);
            return;
        }
        PQsetErrorVerbosity(pg->conn, PQERRORS_DEFAULT);
        pg->state = COORD__POSTGRES_OPEN;
        pg->session++;
        pg->events.opened(pg->events.ctx, now);
        return;
    }
    if (pg->polling != PGRES_POLLING_FAILED && now >= pg->give_up_at) {
        coord_error_set(&pg->last, COORD_E_UNREACHABLE,
                        "PostgreSQL at %s does not answer: check host, port and network",
                        show(pg, where));
        pg->polling = PGRES_POLLING_FAILED;
    }
    if (pg->polling == PGRES_POLLING_FAILED) {
        next_address(pg, now);
    }
}
