/* SPDX-License-Identifier: MIT
 * electors/postgres_init.c - prepares a database for elections, once; it may block.
 */
#include "electors/postgres.h"
#include "electors/postgres_sql.h"

#include <string.h>

/* First a lock: of twenty that create at once, half would fail on the system's own indexes. The
 * number is arbitrary and never changes. */
static const char *const begin_steps[] = {
    "set statement_timeout = 0",
    "set idle_in_transaction_session_timeout = 0",
    "set search_path = pg_catalog",
    "set default_transaction_read_only = off",
    "set default_transaction_isolation = 'read committed'",
    "set client_min_messages = warning",
    "begin",
    "set local lock_timeout = '10s'",
    "select pg_advisory_xact_lock(7164775571986147443)",
};

static const char look_text[] =
    "select to_regnamespace('coord') is not null,\n"
    "  to_regclass('coord.term') is not null,\n"
    "  to_regprocedure('coord.fence(text,bigint)') is not null,\n"
    "  obj_description(to_regclass('coord.term'), 'pg_class'),\n"
    "  obj_description(to_regprocedure('coord.fence(text,bigint)'), 'pg_proc'),\n"
    "  (select quote_ident(r.rolname) from pg_namespace n join pg_roles r on r.oid = n.nspowner\n"
    "    where n.nspname = 'coord'),\n"
    "  quote_ident(current_user), quote_ident(current_database()), pg_is_in_recovery(),\n"
    "  has_database_privilege(current_database(), 'create'),\n"
    "  has_schema_privilege(to_regnamespace('coord'), 'create')";

enum column {
    SCHEMA = 0,
    TABLE,
    FUNCTION,
    TABLE_NOTE,
    FUNCTION_NOTE,
    OWNER,
    USER,
    DATABASE,
    STANDBY,
    MAY_CREATE_SCHEMA,
    MAY_CREATE_IN_IT
};

static enum coord_err run(PGconn *conn, const char *text, PGresult **out, struct coord_error *error)
{
    PGresult *result = PQexec(conn, text);
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        if (out != NULL) {
            *out = result;
        } else {
            PQclear(result);
        }
        return COORD_OK;
    }
    struct coord_error why;
    coord__postgres_explain_result(result, &why);
    PQclear(result);
    return coord_error_set(error, why.code, "%s", why.text);
}

static bool yes(const PGresult *rows, int column)
{
    return PQgetvalue(rows, 0, column)[0] == 't';
}

static enum coord_err check(const PGresult *found, struct coord_error *error)
{
    const unsigned long table = coord__postgres_format_of(PQgetvalue(found, 0, TABLE_NOTE));
    const unsigned long function = coord__postgres_format_of(PQgetvalue(found, 0, FUNCTION_NOTE));
    const char *user = PQgetvalue(found, 0, USER);
    if (yes(found, STANDBY)) {
        return coord_error_set(error, COORD_E_STANDBY,
                               "this PostgreSQL is a standby: name the primary in the URI");
    }
    if ((yes(found, TABLE) && table == 0) || (yes(found, FUNCTION) && function == 0)) {
        return coord_error_set(error, COORD_E_FOREIGN_RECORD,
                               "coord.%s exists and is not of this program: rename it, or use "
                               "another database",
                               yes(found, TABLE) && table == 0 ? "term" : "fence");
    }
    if (table > COORD__POSTGRES_FORMAT || function > COORD__POSTGRES_FORMAT) {
        return coord_error_set(error, COORD_E_NEWER_FORMAT,
                               "schema coord was made by a newer version: use that one");
    }
    if (!yes(found, SCHEMA) && !yes(found, MAY_CREATE_SCHEMA)) {
        return coord_error_set(error, COORD_E_NO_RIGHT,
                               "%s may not create schema coord: run this as the owner of the "
                               "database, or GRANT CREATE ON DATABASE %s TO %s first",
                               user, PQgetvalue(found, 0, DATABASE), user);
    }
    if (yes(found, SCHEMA) && !(yes(found, TABLE) && yes(found, FUNCTION)) &&
        !yes(found, MAY_CREATE_IN_IT)) {
        return coord_error_set(error, COORD_E_NO_RIGHT,
                               "schema coord is %s's, and %s may not create in it: run this as %s",
                               PQgetvalue(found, 0, OWNER), user, PQgetvalue(found, 0, OWNER));
    }
    return COORD_OK;
}

static enum coord_err create(PGconn *conn, const PGresult *found, struct coord_error *error)
{
    static const enum column there[COORD__POSTGRES_INIT_STEPS] = {SCHEMA, TABLE, FUNCTION};
    enum coord_err rc = COORD_OK;
    for (size_t i = 0; rc == COORD_OK && i < COORD__POSTGRES_INIT_STEPS; i++) {
        if (!yes(found, (int)there[i])) {
            rc = run(conn, coord__postgres_init_steps[i], NULL, error);
        }
    }
    return rc;
}

static enum coord_err prepare(PGconn *conn, struct coord_error *error)
{
    enum coord_err rc = COORD_OK;
    if (PQserverVersion(conn) < 140000) {
        return coord_error_set(error, COORD_E_SERVER_TOO_OLD,
                               "this is PostgreSQL %d: coord needs 14 or later",
                               PQserverVersion(conn) / 10000);
    }
    for (size_t i = 0; rc == COORD_OK && i < sizeof begin_steps / sizeof begin_steps[0]; i++) {
        rc = run(conn, begin_steps[i], NULL, error);
    }
    PGresult *found = NULL;
    if (rc == COORD_OK) {
        rc = run(conn, look_text, &found, error);
    }
    if (rc == COORD_OK) {
        rc = check(found, error);
    }
    if (rc == COORD_OK) {
        rc = create(conn, found, error);
    }
    PQclear(found);
    if (rc == COORD_OK) {
        rc = run(conn, "commit", NULL, error);
    }
    return rc; /* on failure closing the session rolls back */
}

static void write_grants(char *out)
{
    static const char text[] =
        "-- put the names of your roles for elector, writer, watcher and operator;\n"
        "-- the owner needs none of these\n"
        "-- a role that elects\n"
        "GRANT USAGE ON SCHEMA coord TO elector;\n"
        "GRANT SELECT, INSERT, UPDATE ON TABLE coord.term TO elector;\n"
        "-- a role that writes under a fence\n"
        "GRANT USAGE ON SCHEMA coord TO writer;\n"
        "GRANT EXECUTE ON FUNCTION coord.fence(text, bigint) TO writer;\n"
        "-- a role that only watches\n"
        "GRANT USAGE ON SCHEMA coord TO watcher;\n"
        "GRANT SELECT ON TABLE coord.term TO watcher;\n"
        "-- a role that may ask for a step-down\n"
        "GRANT USAGE ON SCHEMA coord TO operator;\n"
        "GRANT SELECT, UPDATE (ask_fence, ask_for, ask_until) ON TABLE coord.term TO operator;\n";
    _Static_assert(sizeof text <= COORD_POSTGRES_INIT_TEXT_MAX, "the caller's room holds it");
    memcpy(out, text, sizeof text);
}

enum coord_err coord_postgres_init(const char *uri, char *grants, struct coord_error *error)
{
    struct coord__postgres_target *target = NULL;
    enum coord_err rc = coord__postgres_target_new(uri, &target, error);
    if (rc != COORD_OK) {
        return rc;
    }
    struct coord_error why;
    PGconn *conn = coord__postgres_ask(target, &why);
    if (conn == NULL) {
        rc = coord_error_set(error, why.code, "%s", why.text);
    } else {
        rc = prepare(conn, error);
    }
    if (rc == COORD_OK) {
        write_grants(grants);
    }
    PQfinish(conn);
    coord__postgres_target_free(target);
    return rc;
}
