/* SPDX-License-Identifier: MIT
 * connections/postgres.c - connect, send, read, and hear the end of a session as it arrives.
 */
#include "connections/postgres.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WHERE_TEXT = 128
};

enum state {
    CLOSED = 0,
    RESOLVING,
    CONNECTING,
    OPEN
};

struct flying {
    unsigned index;
    bool prepares;
};

struct coord__postgres {
    const struct coord__postgres_target *target;
    const struct coord_resolver *resolver;
    struct coord__postgres_events events;

    enum state state;
    PGconn *conn;
    PostgresPollingStatusType polling;
    int fd;
    uint64_t generation; /* of fd */
    uint64_t session;    /* counts sessions, so that a handler's close() is noticed */
    bool unsent;         /* libpq holds bytes that the socket did not take */

    size_t host;
    struct coord_resolution *resolution;
    struct coord_addresses addresses;
    size_t address;
    coord_ms patience;
    coord_ms give_up_at;
    struct coord_error last; /* why the last address would not do */

    uint32_t prepared; /* one bit a statement */
    struct flying flying[COORD__POSTGRES_FLYING_MAX];
    unsigned first;
    unsigned count;

    PGresult *rows; /* the answer that is being read */
    struct coord__postgres_reply reply;
    bool doomed; /* the server has said that the session is over, or it broke */
    struct coord_error doom;
};

struct coord__postgres *coord__postgres_new(const struct coord__postgres_target *target,
                                            const struct coord_resolver *resolver,
                                            const struct coord__postgres_events *events)
{
    struct coord__postgres *pg = calloc(1, sizeof *pg);
    if (pg != NULL) {
        pg->target = target;
        pg->resolver = resolver;
        pg->events = *events;
        pg->fd = -1;
        /* A number that another connection just closed must not look like the same open file. */
        pg->generation = (uint32_t)((uintptr_t)pg >> 4) * UINT64_C(2654435761) & UINT32_MAX;
    }
    return pg;
}

bool coord__postgres_is_closed(const struct coord__postgres *pg)
{
    return pg->state == CLOSED;
}

bool coord__postgres_is_open(const struct coord__postgres *pg)
{
    return pg->state == OPEN;
}

int coord__postgres_backend(const struct coord__postgres *pg)
{
    return pg->conn != NULL ? PQbackendPID(pg->conn) : 0;
}

int coord__postgres_version(const struct coord__postgres *pg)
{
    return pg->conn != NULL ? PQserverVersion(pg->conn) : 0;
}

/* ---------------------------------------------------------------- ends */

static void drop_rows(struct coord__postgres *pg)
{
    PQclear(pg->rows);
    memset(&pg->reply, 0, sizeof pg->reply);
    pg->rows = NULL;
}

static void drop_conn(struct coord__postgres *pg)
{
    drop_rows(pg);
    PQfinish(pg->conn);
    pg->conn = NULL;
    pg->fd = -1;
    pg->unsent = false;
    pg->prepared = 0;
    pg->first = 0;
    pg->count = 0;
    pg->doomed = false;
}

static void drop_resolution(struct coord__postgres *pg)
{
    if (pg->resolution != NULL) {
        pg->resolver->drop(pg->resolver->ctx, pg->resolution);
        pg->resolution = NULL;
    }
}

void coord__postgres_close(struct coord__postgres *pg)
{
    drop_resolution(pg);
    drop_conn(pg);
    pg->state = CLOSED;
    pg->session++;
}

void coord__postgres_free(struct coord__postgres *pg, bool forked)
{
    if (pg == NULL) {
        return;
    }
    if (forked) {
        /* PQfinish would say good-bye on the parent's session: what libpq holds is left to leak. */
        if (pg->conn != NULL && PQsocket(pg->conn) >= 0) {
            close(PQsocket(pg->conn));
        }
        PQclear(pg->rows);
    } else {
        coord__postgres_close(pg);
    }
    free(pg);
}

static void end(struct coord__postgres *pg, const struct coord_error *why, coord_ms now)
{
    const struct coord_error kept = *why;
    coord__postgres_close(pg);
    pg->events.closed(pg->events.ctx, &kept, now);
}

/* ---------------------------------------------------------------- connecting */

static void on_notice(void *ctx, const PGresult *notice)
{
    struct coord__postgres *pg = ctx;
    if (!pg->doomed && coord__postgres_is_fatal(notice)) {
        pg->doomed = true;
        coord__postgres_explain_result(notice, &pg->doom);
    }
}

/* libpq may change its socket from one step to the next. */
static void note_socket(struct coord__postgres *pg, bool fresh)
{
    const int fd = PQsocket(pg->conn);
    if (fd != pg->fd || fresh) {
        pg->fd = fd;
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
    drop_conn(pg);
    pg->state = CONNECTING;
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
    drop_conn(pg);
    pg->state = RESOLVING;
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
    end(pg, &pg->last, now);
}

void coord__postgres_open(struct coord__postgres *pg, coord_ms patience, coord_ms now)
{
    COORD_ASSERT(pg->state == CLOSED);
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

static void resolve(struct coord__postgres *pg, coord_ms now)
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
    drop_resolution(pg);
    if (rc == COORD_OK && pg->addresses.count > 0) {
        begin_address(pg, pg->addresses.text[0], now);
    } else {
        pg->addresses.count = 0;
        next_address(pg, now);
    }
}

static bool ready_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    return fd >= 0 && poll(&p, 1, 0) > 0;
}

static void log_in(struct coord__postgres *pg, coord_ms now)
{
    char where[WHERE_TEXT];
    while (pg->polling == PGRES_POLLING_READING || pg->polling == PGRES_POLLING_WRITING) {
        /* Asked before its socket is ready, libpq takes a connect under way for a finished one. */
        if (!ready_for(pg->fd, pg->polling == PGRES_POLLING_READING ? POLLIN : POLLOUT)) {
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
        pg->state = OPEN;
        pg->session++;
        pg->events.opened(pg->events.ctx, now);
        return;
    }
    if (pg->polling != PGRES_POLLING_FAILED && now >= pg->give_up_at) {
        coord_error_set(&pg->last, COORD_E_UNREACHABLE,
                        "PostgreSQL at %s does not answer: check host, port and network; it is "
                        "tried again",
                        show(pg, where));
        pg->polling = PGRES_POLLING_FAILED;
    }
    if (pg->polling == PGRES_POLLING_FAILED) {
        next_address(pg, now);
    }
}

/* ---------------------------------------------------------------- statements */

static void broken(struct coord__postgres *pg)
{
    pg->doomed = true;
    coord_error_set(&pg->doom, COORD_E_UNREACHABLE,
                    "the connection to PostgreSQL broke: it is opened again");
}

bool coord__postgres_send(struct coord__postgres *pg,
                          const struct coord__postgres_statement *statement, int count,
                          const char *const *values)
{
    COORD_ASSERT(pg->state == OPEN);
    COORD_ASSERT(pg->count < COORD__POSTGRES_FLYING_MAX);
    struct flying *f = &pg->flying[(pg->first + pg->count) % COORD__POSTGRES_FLYING_MAX];
    const bool named = statement->name != NULL;
    f->index = statement->index;
    f->prepares = named && (pg->prepared & (1u << statement->index)) == 0;
    int ok = 1;
    if (f->prepares) {
        ok = PQsendPrepare(pg->conn, statement->name, statement->text, 0, NULL);
    }
    if (ok == 1 && named) {
        ok = PQsendQueryPrepared(pg->conn, statement->name, count, values, NULL, NULL, 0);
    } else if (ok == 1) {
        ok = PQsendQueryParams(pg->conn, statement->text, count, NULL, values, NULL, NULL, 0);
    }
    /* Statement and Sync leave in one write: a client that stops in between would keep what the
     * statement locked, and nothing on the server would end it. */
    ok = ok == 1 && PQpipelineSync(pg->conn) == 1;
    if (ok != 1) {
        broken(pg);
        return false;
    }
    pg->count++;
    pg->unsent = PQflush(pg->conn) == 1;
    return true;
}

static void take_result(struct coord__postgres *pg, PGresult *result)
{
    if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        if (coord__postgres_is_fatal(result) && !pg->doomed) {
            pg->doomed = true;
            coord__postgres_explain_result(result, &pg->doom);
        }
        if (pg->reply.error.code == COORD_OK) {
            coord__postgres_explain_result(result, &pg->reply.error);
            (void)snprintf(pg->reply.sqlstate, sizeof pg->reply.sqlstate, "%s",
                           state != NULL ? state : "");
        }
    } else if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        PQclear(pg->rows);
        pg->rows = result;
        return;
    } else if (PQresultStatus(result) == PGRES_COMMAND_OK && pg->flying[pg->first].prepares) {
        /* It stays prepared, whatever becomes of the transaction. */
        pg->flying[pg->first].prepares = false;
        pg->prepared |= 1u << pg->flying[pg->first].index;
    }
    PQclear(result);
}

static void finish_reply(struct coord__postgres *pg, coord_ms now)
{
    pg->first = (pg->first + 1) % COORD__POSTGRES_FLYING_MAX;
    pg->count--;
    /* Handlers may send, or close: the answer is taken out first. */
    struct coord__postgres_reply reply = pg->reply;
    PGresult *rows = pg->rows;
    pg->rows = NULL;
    memset(&pg->reply, 0, sizeof pg->reply);
    reply.rows = reply.error.code == COORD_OK ? rows : NULL;
    pg->events.replied(pg->events.ctx, &reply, now);
    PQclear(rows);
}

static void read_results(struct coord__postgres *pg, coord_ms now)
{
    const uint64_t session = pg->session;
    unsigned nothing = 0;
    /* Between the results of two statements libpq gives one NULL; two mean that it has no more. */
    while (!pg->doomed && pg->count > 0 && nothing < 2 && !PQisBusy(pg->conn)) {
        PGresult *result = PQgetResult(pg->conn);
        if (result == NULL) {
            nothing++;
            continue;
        }
        nothing = 0;
        if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            finish_reply(pg, now);
            if (pg->session != session) {
                return;
            }
        } else {
            take_result(pg, result);
        }
    }
}

static void read_notifications(struct coord__postgres *pg, coord_ms now)
{
    const uint64_t session = pg->session;
    PGnotify *n;
    /* It also makes libpq look at what came unasked: notices, and the end. */
    while (pg->session == session && (n = PQnotifies(pg->conn)) != NULL) {
        if (pg->events.notified != NULL) {
            pg->events.notified(pg->events.ctx, n->relname, n->extra, now);
        }
        PQfreemem(n);
    }
}

static void read_all(struct coord__postgres *pg, coord_ms now)
{
    const uint64_t session = pg->session;
    bool more = true;
    while (more && !pg->doomed) {
        /* At the end of a stream libpq says "fine" once more; only the next read tells. */
        const bool alive = PQconsumeInput(pg->conn) == 1;
        read_results(pg, now);
        if (pg->session != session) {
            return;
        }
        read_notifications(pg, now);
        if (pg->session != session) {
            return;
        }
        if (!pg->doomed && (!alive || PQstatus(pg->conn) == CONNECTION_BAD)) {
            broken(pg);
        }
        more = !pg->doomed && ready_for(pg->fd, POLLIN);
    }
}

static void use_session(struct coord__postgres *pg, coord_ms now)
{
    const uint64_t session = pg->session;
    if (!pg->doomed && pg->unsent) {
        pg->unsent = PQflush(pg->conn) == 1;
    }
    if (!pg->doomed && ready_for(pg->fd, POLLIN)) {
        read_all(pg, now);
    }
    if (pg->session == session && pg->doomed) {
        end(pg, &pg->doom, now);
    }
}

void coord__postgres_process(struct coord__postgres *pg, coord_ms now)
{
    if (pg->state == RESOLVING) {
        resolve(pg, now);
    }
    if (pg->state == CONNECTING) {
        log_in(pg, now);
    }
    if (pg->state == OPEN) {
        use_session(pg, now);
    }
}

size_t coord__postgres_descriptor(const struct coord__postgres *pg, struct coord_descriptor *out)
{
    if (pg->fd < 0 || (pg->state != CONNECTING && pg->state != OPEN)) {
        return 0;
    }
    out->fd = pg->fd;
    out->generation = pg->generation;
    out->read = pg->state == OPEN || pg->polling == PGRES_POLLING_READING;
    out->write = pg->state == OPEN ? pg->unsent : pg->polling == PGRES_POLLING_WRITING;
    return 1;
}

coord_ms coord__postgres_deadline(const struct coord__postgres *pg)
{
    if (pg->doomed || (pg->state == CONNECTING && pg->polling == PGRES_POLLING_FAILED) ||
        (pg->state == RESOLVING && pg->resolution == NULL)) {
        return 0; /* its end is told by the next process() */
    }
    return pg->state == RESOLVING || pg->state == CONNECTING ? pg->give_up_at : COORD_NEVER;
}
