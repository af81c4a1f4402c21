/* SPDX-License-Identifier: MIT
 * electors/postgres_doctor_session.c - what a session of the elector would meet: settings that it
 * replaces, keys, and who has their locks.
 */
#include "coord/escape.h"
#include "electors/postgres.h"
#include "electors/postgres_doctor.h"
#include "electors/postgres_sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lease, a statement, a lock: of the default lease. */
static const char *const trial[] = {"6000", "750", "375"};

/* What the server would have given to this role, in the order of `settings`. */
static const char settings_text[] =
    "select (select reset_val || unit from pg_settings\n"
    "    where name = 'idle_in_transaction_session_timeout'),\n" /* not what bounds this question */
    "  (select reset_val || unit from pg_settings where name = 'statement_timeout'),\n"
    "  (select reset_val || unit from pg_settings where name = 'transaction_timeout'),\n"
    "  current_setting('client_connection_check_interval', true),\n"
    "  case when inet_server_addr() is not null then current_setting('tcp_keepalives_idle')\n"
    "    || ', ' || current_setting('tcp_keepalives_interval')\n"
    "    || ', ' || current_setting('tcp_keepalives_count') end,\n"
    "  case when inet_server_addr() is not null then current_setting('tcp_user_timeout') end";

static const struct setting {
    const char *name;
    const char *own;  /* what the session sets */
    const char *none; /* where the server gives nothing */
    const char *why;
} settings[] = {
    {"idle_in_transaction_session_timeout", "its lease", "",
     "a grant that hangs half-way ends; coord.fence() bounds its caller by itself"},
    {"statement_timeout", "an attempt's time", "",
     "too low, it would end renewals; a guarded statement of yours is not bounded by ours"},
    {"transaction_timeout", "its lease", "not known before PostgreSQL 17",
     "too low, it would end grants; a guarded transaction of yours is not bounded by ours"},
    {"client_connection_check_interval", "an attempt's time", "not known to this server",
     "at 0 the statement of a client that has died goes on, and keeps what it has locked"},
    {"tcp_keepalives", "1s, 1s, 3", "a local socket has none",
     "idle, interval, count: at 7200, 75, 9 a cut cable is noticed after two hours"},
    {"tcp_user_timeout", "its lease", "a local socket has none",
     "an answer that nobody takes must not keep the session of a host that is gone"},
};

/* Before the session replaces it, it bounds the statement that does so. */
static bool ends_the_setup(const struct setting *s, const char *given)
{
    const long ms = strtol(given, NULL, 10);
    return strcmp(s->name, "transaction_timeout") == 0 && ms > 0 && ms < strtol(trial[1], NULL, 10);
}

static void tell_settings(const PGresult *before, struct coord_checks *checks)
{
    char value[COORD_CHECK_VALUE_MAX];
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct setting *s = &settings[i];
        const char *given = coord__postgres_text(before, 0, (int)i);
        const bool low = ends_the_setup(s, given);
        if (given[0] != '\0') {
            snprintf(value, sizeof value, "%.60s; the elector's session sets %s", given, s->own);
        } else {
            snprintf(value, sizeof value, "%s", s->none);
        }
        coord_check_add(checks, s->name, low ? COORD_VERDICT_WARN : COORD_VERDICT_OK, value, s->why,
                        low ? "ALTER ROLE this role SET transaction_timeout = 0, or a second and "
                              "more: until the session has set its own, this one ends it"
                            : "");
    }
}

void coord__postgres_doctor_settings(PGconn *conn, struct coord_checks *checks)
{
    /* In a transaction that is rolled back: a pool would give the session to others as it is. */
    PQclear(PQexec(
        conn,
        "begin; set local idle_in_transaction_session_timeout = 0; " COORD__POSTGRES_BOUNDED));
    PGresult *before = PQexec(conn, settings_text);
    PGresult *set = PQexecParams(conn, coord__postgres_sql(COORD__POSTGRES_SETTINGS)->text, 3, NULL,
                                 trial, NULL, NULL, 0);
    PGresult *after = PQexec(conn, "select current_setting('idle_session_timeout', true)");
    PQclear(PQexec(conn, "rollback"));
    struct coord_error why = {.code = COORD_OK};
    if (PQresultStatus(set) != PGRES_TUPLES_OK) {
        coord__postgres_explain_result(set, &why);
    }
    const bool took = strcmp(coord__postgres_text(after, 0, 0), "6s") == 0;
    coord_check_add(checks, "idle_session_timeout", took ? COORD_VERDICT_OK : COORD_VERDICT_FAIL,
                    took ? "can be set by the session" : "cannot be set",
                    "it makes the server drop a holder that hangs",
                    why.code != COORD_OK ? why.text
                                         : "let this role set idle_session_timeout, and see what "
                                           "changes it on the server");
    if (took) {
        tell_settings(before, checks);
    }
    PQclear(after);
    PQclear(set);
    PQclear(before);
}

/* ---------------------------------------------------------------- keys and locks */

static bool is_of_its_name(const PGresult *rows, int row)
{
    unsigned char name[COORD_NAME_MAX];
    size_t bytes = 0;
    if (coord_unescape(coord__postgres_text(rows, row, 0), name, &bytes) != COORD_OK) {
        return false;
    }
    return strtoull(coord__postgres_text(rows, row, 1), NULL, 10) ==
           coord_postgres_key(name, bytes);
}

void coord__postgres_doctor_keys(PGconn *conn, struct coord_checks *checks)
{
    static const char why[] = "two names with one lock exclude each other, and so does one name "
                              "with two: its members refuse (KEY_COLLISION)";
    char value[COORD_CHECK_VALUE_MAX];
    PGresult *rows =
        PQexec(conn, COORD__POSTGRES_BOUNDED "select name, key from coord.term order by name");
    const int count = PQntuples(rows);
    int row = 0;
    while (row < count && is_of_its_name(rows, row)) {
        row++;
    }
    if (PQresultStatus(rows) != PGRES_TUPLES_OK) {
        coord_check_add(checks, "keys", COORD_VERDICT_SKIPPED, "coord.term cannot be read", why,
                        "ask again; somebody may hold the table");
    } else if (row < count) {
        snprintf(value, sizeof value, "the row of \"%.80s\" is under another lock",
                 coord__postgres_text(rows, row, 0));
        coord_check_add(checks, "keys", COORD_VERDICT_FAIL, value, why,
                        "while nobody leads it, delete the row; find who writes such keys");
    } else {
        snprintf(value, sizeof value, "%d election%s, each on the key of its name", count,
                 count == 1 ? "" : "s");
        coord_check_add(checks, "keys", COORD_VERDICT_OK, value, why, "");
    }
    PQclear(rows);
}

/* A grant or a resignation that is under way is in a transaction that has just begun. */
static const char holders_text[] = COORD__POSTGRES_BOUNDED
    "select t.name, l.pid, a.application_name from pg_locks l\n"
    "join coord.term t on t.key = (l.classid::bigint << 32 | l.objid::bigint)\n"
    "left join pg_stat_activity a on a.pid = l.pid\n"
    "where l.locktype = 'advisory' and l.granted and l.mode = 'ExclusiveLock'\n"
    "  and l.objsubid = 1\n"
    "  and l.database = (select oid from pg_database where datname = current_database())\n"
    "  and (l.pid <> t.pid or t.resigned)\n"
    "  and (a.xact_start > clock_timestamp() - interval '1 second') is not true\n"
    "order by t.name limit 1";

void coord__postgres_doctor_holders(PGconn *conn, struct coord_checks *checks)
{
    static const char why[] = "an advisory lock needs no right: whoever takes an election's key "
                              "keeps everybody from leading";
    char value[COORD_CHECK_VALUE_MAX];
    char cure[COORD_CHECK_CURE_MAX];
    PGresult *rows = PQexec(conn, holders_text);
    if (PQresultStatus(rows) != PGRES_TUPLES_OK) {
        coord_check_add(checks, "lock holders", COORD_VERDICT_SKIPPED, "pg_locks cannot be read",
                        why, "ask again; somebody may hold coord.term");
    } else if (PQntuples(rows) > 0) {
        const char *pid = coord__postgres_text(rows, 0, 1);
        const char *application = coord__postgres_text(rows, 0, 2);
        snprintf(value, sizeof value, "process %s (%.40s) has \"%.60s\", and is not in its row",
                 pid, application[0] != '\0' ? application : "no name",
                 coord__postgres_text(rows, 0, 0));
        snprintf(cure, sizeof cure,
                 "let that application use other keys; select pg_terminate_backend(%s) ends it",
                 pid);
        coord_check_add(checks, "lock holders", COORD_VERDICT_WARN, value, why, cure);
    } else {
        coord_check_add(checks, "lock holders", COORD_VERDICT_OK, "no strangers", why, "");
    }
    PQclear(rows);
}
