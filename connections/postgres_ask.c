/* SPDX-License-Identifier: MIT
 * connections/postgres_ask.c - a session for those who may wait for it: init and doctor.
 *
 * Host by host, as an elector does it: libpq's own blocking connect writes the notices of a login
 * to standard error, and takes the first host that answers, a standby too.
 */
#include "connections/postgres.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATIENCE = 5, /* seconds */
    PATIENCE_MAX = 3600,
    WHERE_TEXT = 128
};

static void ignore(void *ctx, const PGresult *notice)
{
    (void)ctx;
    (void)notice;
}

/* In milliseconds of silence. */
static int patience_of(const struct coord__postgres_target *target)
{
    const char *text = coord__postgres_target_option(target, "connect_timeout");
    const long seconds = text != NULL ? strtol(text, NULL, 10) : 0;
    return 1000 * (seconds > 0 && seconds <= PATIENCE_MAX ? (int)seconds : PATIENCE);
}

/* @return false: there was no answer for so long. */
static bool log_in(PGconn *conn, int patience)
{
    PostgresPollingStatusType polling = PGRES_POLLING_WRITING;
    while (polling == PGRES_POLLING_READING || polling == PGRES_POLLING_WRITING) {
        struct pollfd wait = {.fd = PQsocket(conn),
                              .events = polling == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        const int ready = poll(&wait, 1, patience);
        if (ready > 0) {
            polling = PQconnectPoll(conn);
        } else if (ready == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

static PGconn *ask_address(const struct coord__postgres_target *target, size_t host,
                           const char *address, struct coord_error *why)
{
    char where[WHERE_TEXT];
    coord__postgres_target_show(target, host, where, sizeof where);
    PGconn *conn = coord__postgres_target_start(target, host, address);
    if (conn == NULL) {
        coord_error_set(why, COORD_E_NO_MEMORY, "out of memory: free some and try again");
        return NULL;
    }
    PQsetNoticeReceiver(conn, ignore, NULL);
    PQsetErrorVerbosity(conn, PQERRORS_VERBOSE); /* for the code in the text of a failed login */
    if (PQstatus(conn) != CONNECTION_BAD && !log_in(conn, patience_of(target))) {
        coord_error_set(why, COORD_E_UNREACHABLE,
                        "PostgreSQL at %s does not answer: check host, port and network", where);
    } else if (PQstatus(conn) != CONNECTION_OK) {
        coord__postgres_explain_login(conn, where, why);
    } else {
        PQsetErrorVerbosity(conn, PQERRORS_DEFAULT);
        return conn;
    }
    PQfinish(conn);
    return NULL;
}

static PGconn *ask_host(const struct coord__postgres_target *target, size_t host,
                        struct coord_error *why)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const char *name = coord__postgres_target_name(target, host);
    struct addrinfo *found = NULL;
    PGconn *conn = NULL;
    if (name == NULL) {
        return ask_address(target, host, NULL, why);
    }
    const int failed = getaddrinfo(name, NULL, &hints, &found);
    if (failed != 0) {
        coord_error_set(why, COORD_E_NAME_UNRESOLVED,
                        "the host name \"%.100s\" cannot be resolved (%s): check its spelling and "
                        "the name service",
                        name, gai_strerror(failed));
        return NULL;
    }
    for (const struct addrinfo *a = found; a != NULL && conn == NULL; a = a->ai_next) {
        char address[COORD_ADDRESS_TEXT_MAX];
        if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof address, NULL, 0,
                        NI_NUMERICHOST) == 0) {
            conn = ask_address(target, host, address, why);
        }
    }
    freeaddrinfo(found);
    return conn;
}

static bool is_standby(const PGconn *conn)
{
    const char *standby = PQparameterStatus(conn, "in_hot_standby");
    return standby != NULL && strcmp(standby, "on") == 0;
}

PGconn *coord__postgres_ask(const struct coord__postgres_target *target, struct coord_error *why)
{
    PGconn *standby = NULL;
    coord_error_set(why, COORD_E_UNREACHABLE, "the URI names no host: write one");
    for (size_t host = 0; host < coord__postgres_target_hosts(target); host++) {
        PGconn *conn = ask_host(target, host, why);
        if (conn != NULL && !is_standby(conn)) {
            PQfinish(standby);
            return conn;
        }
        if (standby == NULL) {
            standby = conn;
        } else {
            PQfinish(conn);
        }
    }
    return standby;
}
