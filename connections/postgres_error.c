/* SPDX-License-Identifier: MIT
 * connections/postgres_error.c - what the server's error codes mean, and what cures them.
 */
#include "connections/postgres.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    CAUSE = 110 /* bytes that are told of the server's sentence, or libpq's */
};

#define NOT_OURS                                                                                  \
    "coord.term has a fence or a time of this election that coord never writes, or such a fence " \
    "was seen: delete its row while nobody leads, and end those who saw it"

struct meaning {
    const char *state; /* an SQLSTATE, or its first characters */
    enum coord_err code;
    const char *cure;
};

/* The first line that fits counts. */
static const struct meaning statement_meanings[] = {
    {"42P01", COORD_E_NOT_INITIALISED, "run `coordctl init` on this database once"},
    {"3F000", COORD_E_NOT_INITIALISED, "run `coordctl init` on this database once"},
    {"42883", COORD_E_NOT_INITIALISED, "run `coordctl init` on this database once"},
    {"42703", COORD_E_NOT_INITIALISED,
     "table coord.term is of another version: use that one; `coordctl doctor` tells its format"},
    {"42501", COORD_E_NO_RIGHT,
     "as its owner: GRANT USAGE ON SCHEMA coord TO this role; GRANT SELECT, INSERT, UPDATE ON "
     "coord.term TO this role (`coordctl init` prints the lines)"},
    {"25006", COORD_E_STANDBY, "name the primary in the URI, or several hosts"},
    {"23505", COORD_E_KEY_COLLISION,
     "coord.term holds this election's key or name twice over: rename one election, or delete the "
     "row that nobody uses"},
    {"26000", COORD_E_POOLER, /* what was prepared here is not known */
     "a pooler in between hands its sessions on, or resets them: connect to the server itself, or "
     "put the pool into session mode"},
    {"42P05", COORD_E_POOLER, /* or was by somebody else */
     "the pooler in between gives sessions on as their last client left them: set its "
     "server_reset_query to DISCARD ALL"},
    {"22P02", COORD_E_FOREIGN_RECORD, "table coord.term is not coord's: see docs/postgres.md"},
    {"22003", COORD_E_FOREIGN_RECORD, NOT_OURS},
    {"22008", COORD_E_FOREIGN_RECORD, NOT_OURS},
    {"23", COORD_E_FOREIGN_RECORD, "table coord.term refuses the row: see its constraints"},
    {"55P03", COORD_E_NO_ANSWER, "another session locks coord.term: it is asked again"},
    {"57014", COORD_E_NO_ANSWER, "the statement took too long: it is asked again"},
    {"25P04", COORD_E_NO_ANSWER,
     "it is asked again; where it stays so, raise transaction_timeout of this role or database"},
    {"40", COORD_E_NO_ANSWER, "two transactions collided: it is asked again"},
    {"53100", COORD_E_NO_SPACE, "make room on the server's disk"},
    {"53200", COORD_E_SERVER_FULL,
     "raise max_locks_per_transaction or the memory of the server, or use fewer locks"},
    {"53", COORD_E_SERVER_FULL, "raise max_connections, or close idle sessions"},
    {"57P03", COORD_E_SERVER_STARTING, "it is asked again"},
    {"57P", COORD_E_UNREACHABLE, "the server ended the session; it is opened again"},
    {"08", COORD_E_UNREACHABLE, "the connection broke; it is opened again"},
    {"", COORD_E_PROTOCOL, "see the server's log"},
};

static const struct meaning login_meanings[] = {
    {"28P01", COORD_E_WRONG_PASSWORD, "correct the password (PGPASSFILE keeps it out of the URI)"},
    {"28", COORD_E_WRONG_PASSWORD,
     "create this role, or allow it, its host and encryption in pg_hba.conf, or correct user and "
     "sslmode in the URI"},
    {"3D000", COORD_E_NOT_INITIALISED, "create the database, or correct its name in the URI"},
    {"53300", COORD_E_SERVER_FULL,
     "close idle sessions, or raise max_connections or the CONNECTION LIMIT of the role or "
     "database"},
    {"57P03", COORD_E_SERVER_STARTING, "wait until it has started"},
    {"42501", COORD_E_NO_RIGHT, "GRANT CONNECT ON DATABASE to this role"},
    {"42704", COORD_E_BAD_URI, "the server has no such parameter: correct URI or PGOPTIONS"},
    {"22023", COORD_E_BAD_URI, "correct the parameter in the URI or in libpq's environment"},
    {"08P01", COORD_E_PROTOCOL, "a pooler in between refuses a parameter: remove it from the URI"},
    {"", COORD_E_UNREACHABLE, "check host, port and server"},
};

static const struct meaning *find(const struct meaning *table, const char *state)
{
    while (strncmp(table->state, state, strlen(table->state)) != 0) {
        table++;
    }
    return table;
}

const char *coord__postgres_text(const PGresult *rows, int row, int column)
{
    const bool there = row >= 0 && row < PQntuples(rows) && column < PQnfields(rows);
    return there ? PQgetvalue(rows, row, column) : "";
}

bool coord__postgres_is_fatal(const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity == NULL) {
        severity = PQresultErrorField(result, PG_DIAG_SEVERITY);
    }
    /* An immediate shutdown comes as a WARNING of class 57P; 57014 is a cancel and is not of it.
     * Without what was prepared in it a session is no more what it was: nor has it our locks. */
    return (state != NULL && (strncmp(state, "57P", 3) == 0 || strcmp(state, "26000") == 0)) ||
           (severity != NULL && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0));
}

void coord__postgres_explain_result(const PGresult *result, struct coord_error *out)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (state == NULL) {
        /* Made by libpq itself: the connection broke under the statement. */
        coord_error_set(out, COORD_E_UNREACHABLE,
                        "the connection to PostgreSQL broke: it is opened again");
        return;
    }
    const struct meaning *m = find(statement_meanings, state);
    coord_error_set(out, m->code, "PostgreSQL says \"%.120s\" (%s): %s",
                    message != NULL ? message : "nothing", state, m->cure);
}

/* The verbose form is `FATAL:  28P01: password authentication failed ...`; the words may be
 * translated, the code is not. */
static const char *state_in(const char *message, char *state)
{
    for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
        size_t n = 0;
        while (n < 5 && (isdigit((unsigned char)at[3 + n]) || isupper((unsigned char)at[3 + n]))) {
            n++;
        }
        if (n == 5 && at[8] == ':' && at[9] == ' ') {
            memcpy(state, at + 3, 5);
            state[5] = '\0';
            return at + 10;
        }
    }
    state[0] = '\0';
    return message;
}

/* Bytes of the first line, of which the cure needs some room. */
static int line_of(const char *text)
{
    const size_t bytes = strcspn(text, "\n");
    return (int)(bytes < CAUSE ? bytes : CAUSE);
}

void coord__postgres_explain_login(const PGconn *conn, const char *where, struct coord_error *out)
{
    char state[COORD__POSTGRES_STATE_BYTES];
    const char *message = state_in(PQerrorMessage(conn), state);
    if (state[0] == '\0' && PQconnectionNeedsPassword(conn)) {
        coord_error_set(out, COORD_E_WRONG_PASSWORD,
                        "PostgreSQL at %s wants a password: give one in PGPASSFILE, or allow this "
                        "role without one in pg_hba.conf",
                        where);
        return;
    }
    if (state[0] == '\0') {
        /* The system's word comes last: "connection to server ... failed: Connection refused". */
        const char *failed = strstr(message, " failed: ");
        const char *cause = failed != NULL ? failed + strlen(" failed: ") : message;
        const bool full =
            strstr(cause, strerror(EMFILE)) != NULL || strstr(cause, strerror(ENFILE)) != NULL;
        coord_error_set(out, full ? COORD_E_SYSTEM : COORD_E_UNREACHABLE,
                        "PostgreSQL at %s cannot be reached (%.*s): %s", where, line_of(cause),
                        cause,
                        full ? "raise the limit of open files" : "check host, port and server");
        return;
    }
    const struct meaning *m = find(login_meanings, state);
    coord_error_set(out, m->code, "PostgreSQL at %s says \"%.*s\" (%s): %s", where,
                    line_of(message), message, state, m->cure);
}
