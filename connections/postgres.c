/* SPDX-License-Identifier: MIT
 * connections/postgres.c - connect, send, read, and hear the end of a session as it arrives.
 */
#include "connections/postgres_inside.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    READS = 64 /* of some 16 KiB, in one go: others of the loop want their turn */
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
    return pg->state == COORD__POSTGRES_CLOSED;
}

bool coord__postgres_is_open(const struct coord__postgres *pg)
{
    return pg->state == COORD__POSTGRES_OPEN;
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

void coord__postgres_drop_conn(struct coord__postgres *pg)
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

void coord__postgres_drop_resolution(struct coord__postgres *pg)
{
    if (pg->resolution != NULL) {
        pg->resolver->drop(pg->resolver->ctx, pg->resolution);
        pg->resolution = NULL;
    }
}

void coord__postgres_close(struct coord__postgres *pg)
{
    coord__postgres_drop_resolution(pg);
    coord__postgres_drop_conn(pg);
    pg->state = COORD__POSTGRES_CLOSED;
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

void coord__postgres_end(struct coord__postgres *pg, const struct coord_error *why, coord_ms now)
{
    const struct coord_error kept = *why;
    coord__postgres_close(pg);
    pg->events.closed(pg->events.ctx, &kept, now);
}

bool coord__postgres_ready_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    return fd >= 0 && poll(&p, 1, 0) > 0;
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
    COORD_ASSERT(pg->state == COORD__POSTGRES_OPEN);
    COORD_ASSERT(pg->count < COORD__POSTGRES_FLYING_MAX);
    struct coord__postgres_flying *f =
        &pg->flying[(pg->first + pg->count) % COORD__POSTGRES_FLYING_MAX];
    const bool named = statement->name != NULL;
    f->statement = statement;
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

static bool is_copy(const PGresult *result)
{
    const ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

static void mixed_up(struct coord__postgres *pg)
{
    pg->doomed = true;
    coord_error_set(&pg->doom, COORD_E_PROTOCOL,
                    "the answer belongs to another question: is a pooler in between?");
}

static void take_result(struct coord__postgres *pg, PGresult *result)
{
    if (is_copy(result)) {
        mixed_up(pg); /* nobody asked for one, and libpq would have the same result for ever */
    } else if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
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
        pg->prepared |= 1u << pg->flying[pg->first].statement->index;
    }
    PQclear(result);
}

/* An answer of another shape belongs to another question: a pooler has mixed them up. */
static bool fits(const struct coord__postgres *pg)
{
    const struct coord__postgres_statement *s = pg->flying[pg->first].statement;
    return pg->reply.error.code != COORD_OK ||
           (pg->rows == NULL
                ? s->columns == 0
                : PQnfields(pg->rows) == s->columns && (!s->one_row || PQntuples(pg->rows) == 1));
}

static void finish_reply(struct coord__postgres *pg, coord_ms now)
{
    if (!fits(pg)) {
        mixed_up(pg);
        return;
    }
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
            if (pg->count > 0) {
                finish_reply(pg, now);
            }
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

static void read_some(struct coord__postgres *pg, coord_ms now)
{
    const uint64_t session = pg->session;
    /* At the end of a stream libpq says "fine" once more; only the next read tells. */
    const bool alive = PQconsumeInput(pg->conn) == 1;
    read_results(pg, now);
    if (pg->session != session) {
        return;
    }
    read_notifications(pg, now);
    if (pg->session == session && !pg->doomed && (!alive || PQstatus(pg->conn) == CONNECTION_BAD)) {
        broken(pg);
    }
}

static void use_session(struct coord__postgres *pg, coord_ms now)
{
    const uint64_t session = pg->session;
    if (!pg->doomed && pg->unsent) {
        pg->unsent = PQflush(pg->conn) == 1;
    }
    /* All that has come: who judges others by what is missing must not miss what is here. */
    for (int i = 0; i < READS && pg->session == session && !pg->doomed &&
                    coord__postgres_ready_for(pg->fd, POLLIN);
         i++) {
        read_some(pg, now);
    }
    if (pg->session == session && pg->doomed) {
        coord__postgres_end(pg, &pg->doom, now);
    }
}

void coord__postgres_process(struct coord__postgres *pg, coord_ms now)
{
    if (pg->state == COORD__POSTGRES_RESOLVING) {
        coord__postgres_resolve(pg, now);
    }
    if (pg->state == COORD__POSTGRES_CONNECTING) {
        coord__postgres_log_in(pg, now);
    }
    if (pg->state == COORD__POSTGRES_OPEN) {
        use_session(pg, now);
    }
}

size_t coord__postgres_descriptor(const struct coord__postgres *pg, struct coord_descriptor *out)
{
    if (pg->fd < 0 ||
        (pg->state != COORD__POSTGRES_CONNECTING && pg->state != COORD__POSTGRES_OPEN)) {
        return 0;
    }
    out->fd = pg->fd;
    out->generation = pg->generation;
    out->read = pg->state == COORD__POSTGRES_OPEN || pg->polling == PGRES_POLLING_READING;
    out->write =
        pg->state == COORD__POSTGRES_OPEN ? pg->unsent : pg->polling == PGRES_POLLING_WRITING;
    return 1;
}

coord_ms coord__postgres_deadline(const struct coord__postgres *pg)
{
    if (pg->doomed ||
        (pg->state == COORD__POSTGRES_CONNECTING && pg->polling == PGRES_POLLING_FAILED) ||
        (pg->state == COORD__POSTGRES_RESOLVING && pg->resolution == NULL)) {
        return 0; /* its end is told by the next process() */
    }
    return pg->state == COORD__POSTGRES_RESOLVING || pg->state == COORD__POSTGRES_CONNECTING
               ? pg->give_up_at
               : COORD_NEVER;
}
