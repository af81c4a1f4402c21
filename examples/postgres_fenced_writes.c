/* SPDX-License-Identifier: MIT
 * examples/postgres_fenced_writes.c - writes to PostgreSQL that only the present leader can make.
 *
 * usage: postgres_fenced_writes URI NAME [LEASE [stop]]
 * It waits until it leads, writes one row into table job_log (name text, fence bigint) under its
 * fence, and resigns. With `stop` it stops itself between its last look and its write, as a paused
 * machine does; after SIGCONT the write is refused if somebody else leads by then (exit 3).
 */
#include <electors/postgres.h>
#include <runtime/election.h>

#include <libpq-fe.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The guard comes first in the transaction that it guards. */
static int write_under(uint64_t fence, PGconn *conn, const char *name)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, fence);
    const char *const values[] = {name, digits};
    PQclear(PQexec(conn, "BEGIN"));
    PGresult *result =
        PQexecParams(conn, "SELECT coord.fence($1, $2)", 2, NULL, values, NULL, NULL, 0);
    const bool led = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (!led) {
        fprintf(stderr, "refused: %s", PQresultErrorMessage(result));
    }
    PQclear(result);
    if (led) {
        PQclear(PQexecParams(conn, "INSERT INTO job_log (name, fence) VALUES ($1, $2)", 2, NULL,
                             values, NULL, NULL, 0));
    }
    /* COMMIT of a transaction that failed says ROLLBACK. */
    result = PQexec(conn, led ? "COMMIT" : "ROLLBACK");
    const bool written = led && strcmp(PQcmdStatus(result), "COMMIT") == 0;
    PQclear(result);
    printf("%s under fence %s\n", written ? "written" : "nothing written", digits);
    return written ? 0 : 3;
}

/* Leads, writes, resigns. */
static int lead_once(struct coord_runtime *runtime, PGconn *conn, char **argv)
{
    const struct coord_scheme schemes[] = {{"postgresql", coord_postgres_elector, NULL},
                                           {NULL, NULL, NULL}};
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    struct coord_election *election = NULL;
    struct coord_error error;
    char lease[32];
    const char *const options[] = {lease, NULL};
    config.name = argv[2];
    config.name_bytes = strlen(argv[2]);
    if (argv[3] != NULL) { /* else the default, 6 s */
        snprintf(lease, sizeof lease, "ttl=%s", argv[3]);
        config.options = options;
    }
    if (coord_election_open(runtime, schemes, argv[1], &config, &election, &error) != COORD_OK ||
        coord_runtime_start(runtime, &error) != COORD_OK ||
        coord_election_wait(election, 30000, &error) != COORD_OK) {
        fprintf(stderr, "%s: %s\n", coord_err_name(error.code), error.text);
        return 2;
    }
    const uint64_t fence = coord_election_claim(election).fence;
    if (argv[3] != NULL && argv[4] != NULL) {
        raise(SIGSTOP);
    }
    const int status = write_under(fence, conn, argv[2]);
    coord_election_release(election, 2000, &error);
    return status;
}

int main(int argc, char **argv)
{
    struct coord_runtime *runtime = NULL;
    struct coord_error error;
    int status = 2;
    if (argc < 3) {
        fprintf(stderr, "usage: %s URI NAME [LEASE [stop]]\n", argv[0]);
        return 2;
    }
    PGconn *conn = PQconnectdb(argv[1]); /* the work's own: never the elector's session */
    if (PQstatus(conn) != CONNECTION_OK) {
        fprintf(stderr, "%s", PQerrorMessage(conn));
    } else if (coord_runtime_new(NULL, &runtime, &error) != COORD_OK) {
        fprintf(stderr, "%s: %s\n", coord_err_name(error.code), error.text);
    } else {
        status = lead_once(runtime, conn, argv);
    }
    coord_runtime_free(runtime); /* closes the election */
    PQfinish(conn);
    return status;
}
