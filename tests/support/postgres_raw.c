/* SPDX-License-Identifier: MIT
 * tests/support/postgres_raw.c - see postgres_raw.h.
 */
#include "tests/support/postgres_raw.h"

#include "electors/postgres.h"
#include "electors/postgres_sql.h"
#include "tests/support/support.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

static void check(PGconn *conn, PGresult *result)
{
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        fprintf(stderr, "raw: %s: %s\n", PQresStatus(status), PQerrorMessage(conn));
        exit(1);
    }
    PQclear(result);
}

static void prepare(struct postgres_raw *raw, enum coord__postgres_sql which)
{
    const struct coord__postgres_statement *statement = coord__postgres_sql(which);
    check(raw->conn, PQprepare(raw->conn, statement->name, statement->text, 0, NULL));
}

static void send(struct postgres_raw *raw, enum coord__postgres_sql which, int count,
                 const char *const *values)
{
    const char *name = coord__postgres_sql(which)->name;
    if (PQsendQueryPrepared(raw->conn, name, count, values, NULL, NULL, 0) != 1 ||
        PQpipelineSync(raw->conn) != 1) {
        exit(1);
    }
}

/* Read up to the n-th Sync. What the first statement says of a fence is kept. */
static void receive(struct postgres_raw *raw, int syncs, int fence_column)
{
    PQflush(raw->conn);
    while (syncs > 0) {
        PGresult *result = PQgetResult(raw->conn);
        const ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_PIPELINE_SYNC) {
            syncs--;
        } else if (status == PGRES_TUPLES_OK && fence_column >= 0 &&
                   PQnfields(result) > fence_column) {
            snprintf(raw->fence, sizeof raw->fence, "%s", PQgetvalue(result, 0, fence_column));
            fence_column = -1;
        } else if (result != NULL && status == PGRES_FATAL_ERROR) {
            fprintf(stderr, "raw: statement: %s\n", PQresultErrorMessage(result));
            exit(1);
        }
        PQclear(result);
    }
}

void postgres_raw_open(struct postgres_raw *raw, const struct postgres_server *server,
                       const char *name)
{
    static const char *const settings[] = {"600000", "750", "375"};
    char listen[64];
    raw->conn = postgres_server_connect(server);
    raw->listener = postgres_server_connect(server);
    const uint64_t key = coord_postgres_key(name, strlen(name));
    snprintf(raw->key, sizeof raw->key, "%" PRIu64, key);
    snprintf(raw->channel, sizeof raw->channel, "coord_%016" PRIx64, key);
    check(raw->conn, PQexecParams(raw->conn, coord__postgres_sql(COORD__POSTGRES_SETTINGS)->text, 3,
                                  NULL, settings, NULL, NULL, 0));
    PGresult *probe = PQexec(raw->conn, coord__postgres_sql(COORD__POSTGRES_PROBE)->text);
    snprintf(raw->run, sizeof raw->run, "%s", PQgetvalue(probe, 0, COORD__PROBE_RUN));
    snprintf(raw->timeline, sizeof raw->timeline, "%s",
             PQgetvalue(probe, 0, COORD__PROBE_TIMELINE));
    check(raw->conn, probe);
    prepare(raw, COORD__POSTGRES_ACQUIRE);
    prepare(raw, COORD__POSTGRES_GATE);
    prepare(raw, COORD__POSTGRES_RELEASE);
    prepare(raw, COORD__POSTGRES_RENEW);
    snprintf(listen, sizeof listen, "listen %s", raw->channel);
    check(raw->listener, PQexec(raw->listener, listen));
    assert_int_equal(PQenterPipelineMode(raw->conn), 1);
}

void postgres_raw_close(struct postgres_raw *raw)
{
    PQfinish(raw->conn);
    PQfinish(raw->listener);
}

void postgres_raw_hear(struct postgres_raw *raw, int most)
{
    PGnotify *notify;
    struct pollfd p = {.fd = PQsocket(raw->listener), .events = POLLIN};
    if (poll(&p, 1, most) > 0) {
        PQconsumeInput(raw->listener);
        while ((notify = PQnotifies(raw->listener)) != NULL) {
            PQfreemem(notify);
        }
    }
}

void postgres_raw_acquire(struct postgres_raw *raw, const char *name)
{
    const char *const acquire[] = {name,   raw->key, POSTGRES_RAW_OWNER, "raw",
                                   "6000", raw->run, raw->timeline,      "0",
                                   "safe", NULL};
    const char *const gate[] = {raw->key, POSTGRES_RAW_OWNER};
    send(raw, COORD__POSTGRES_ACQUIRE, 10, acquire);
    send(raw, COORD__POSTGRES_GATE, 2, gate);
    receive(raw, 2, COORD__ACQUIRE_FENCE);
}

void postgres_raw_release(struct postgres_raw *raw)
{
    const char *const values[] = {raw->key, POSTGRES_RAW_OWNER, raw->fence, "t", NULL,
                                  "0",      raw->channel};
    send(raw, COORD__POSTGRES_RELEASE, 7, values);
    receive(raw, 1, -1);
    postgres_raw_hear(raw, 0);
}

void postgres_raw_renew(struct postgres_raw *raw)
{
    char keys[32];
    snprintf(keys, sizeof keys, "{%s}", raw->key);
    const char *const values[] = {keys};
    send(raw, COORD__POSTGRES_RENEW, 1, values);
    receive(raw, 1, -1);
}
