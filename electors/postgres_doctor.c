/* SPDX-License-Identifier: MIT
 * electors/postgres_doctor.c - what a server and a database are like, judged for elections.
 */
#include "electors/postgres_doctor.h"
#include "connections/postgres.h"
#include "electors/postgres.h"
#include "electors/postgres_sql.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION_LEAST = 140000,
    FEW_SESSIONS = 10,
    CLOCK_WARN_MS = 1000,
    CLOCK_FAIL_MS = 600 * 1000 /* the fence takes up to 71 minutes */
};

/* What is asked, in the order of the columns. */
static const char facts_text[] = COORD__POSTGRES_BOUNDED
    /* By the catalogue: to_regclass() fails where the schema may not be used. */
    "with space as (select oid from pg_namespace where nspname = 'coord'),\n"
    "  term as (select oid, has_schema_privilege(relnamespace, 'usage') as seen\n"
    "    from pg_class where relname = 'term' and relnamespace = (select oid from space)),\n"
    "  guard as (select oid, has_schema_privilege(pronamespace, 'usage') as seen\n"
    "    from pg_proc where proname = 'fence' and pronamespace = (select oid from space)\n"
    "      and oidvectortypes(proargtypes) = 'text, bigint')\n"
    "select pg_backend_pid(), pg_is_in_recovery(), current_setting('server_version_num'),\n"
    "  coalesce((select obj_description(oid, 'pg_class') from term), ''),\n"
    "  coalesce((select seen and has_table_privilege(oid, 'select')\n"
    "    and has_table_privilege(oid, 'insert')\n"
    "    and has_table_privilege(oid, 'update') from term), false),\n"
    "  coalesce((select seen and has_function_privilege(oid, 'execute') from guard), false),\n"
    "  (select count(*) from pg_stat_activity where backend_type = 'client backend'),\n"
    "  current_setting('max_connections')::int\n"
    "    - current_setting('superuser_reserved_connections')::int,\n"
    "  current_setting('fsync'), current_setting('max_locks_per_transaction'),\n"
    "  (extract(epoch from clock_timestamp()) * 1000000)::bigint,\n"
    "  quote_ident(current_user), current_database(),\n"
    "  (select count(*) from pg_stat_replication),\n"
    "  coalesce(host(inet_server_addr()) || ' port ' || inet_server_port(), 'a local socket')";

enum fact {
    PID = 0,
    STANDBY,
    VERSION,
    NOTE,
    MAY_ELECT,
    MAY_GUARD,
    SESSIONS,
    SESSIONS_MOST,
    FSYNC,
    LOCKS,
    CLOCK,
    USER,
    DATABASE,
    STANDBYS,
    ADDRESS
};

struct report {
    struct coord_checks checks;
    const PGresult *facts;
    char run[64];     /* system identifier and timeline; "": not told */
    int backend;      /* as the login told it */
    bool pooler;      /* coord.pooler=session */
    bool shared_lock; /* two connections got one lock */
    int64_t wall;     /* in the middle of the question */
};

static const char *fact(const struct report *r, enum fact which)
{
    return coord__postgres_text(r->facts, 0, (int)which);
}

static bool is(const struct report *r, enum fact which)
{
    return fact(r, which)[0] == 't';
}

static long number(const struct report *r, enum fact which)
{
    return strtol(fact(r, which), NULL, 10);
}

static struct coord_check *add(struct report *r, const char *name, enum coord_verdict verdict,
                               const char *value, const char *why)
{
    coord_check_add(&r->checks, name, verdict, value, why, "");
    return &r->checks.list[r->checks.count - 1];
}

/* The cure stands beside a verdict that asks for one. */
static void cure(struct coord_check *check, const char *text)
{
    if (check->verdict != COORD_VERDICT_OK) {
        snprintf(check->cure, sizeof check->cure, "%s", text);
    }
}

static enum coord_verdict unless(bool good, enum coord_verdict bad)
{
    return good ? COORD_VERDICT_OK : bad;
}

/* ---------------------------------------------------------------- the checks */

static void check_server(struct report *r)
{
    char value[COORD_CHECK_VALUE_MAX];
    snprintf(value, sizeof value, "PostgreSQL %ld", number(r, VERSION) / 10000);
    cure(add(r, "version", unless(number(r, VERSION) >= VERSION_LEAST, COORD_VERDICT_FAIL), value,
             "from 14 on a server can end a session that is silent, which makes a lock a lease"),
         "upgrade the server to 14 or later");
    cure(add(r, "primary", unless(!is(r, STANDBY), COORD_VERDICT_FAIL),
             is(r, STANDBY) ? "a standby" : "the primary",
             "the locks of a standby exclude nobody on the primary"),
         "name the primary in the URI, or several hosts");
    const bool direct = number(r, PID) == r->backend;
    cure(add(r, "pooler",
             r->shared_lock        ? COORD_VERDICT_FAIL
             : direct || r->pooler ? COORD_VERDICT_OK
                                   : COORD_VERDICT_FAIL,
             r->shared_lock ? "two clients got one lock"
             : direct       ? "none in between"
                            : "a pooler in between",
             "a pool in transaction mode gives one lock to two clients: two leaders"),
         r->shared_lock ? "connect to the server itself, or put the pool into session mode"
                        : "connect to the server itself, or, where the pool is in session mode, "
                          "add coord.pooler=session");
    if (!direct) {
        cure(add(r, "pool lifetime", COORD_VERDICT_SKIPPED, "not told through the pool",
                 "a pool that closes the server's session ends its terms"),
             "set no most age for a connection in use; PgBouncer's server_lifetime, "
             "server_idle_timeout and client_idle_timeout spare those; query_timeout = 0 and "
             "server_reset_query = DISCARD ALL");
    }
}

/* Asked apart, and as the elector asks: where one of its functions is barred the whole fails. */
static void ask_run(struct report *r, PGconn *conn)
{
    PQclear(PQexec(conn, "begin; " COORD__POSTGRES_BOUNDED));
    PGresult *result = PQexec(conn, coord__postgres_sql(COORD__POSTGRES_PROBE)->text);
    strncat(r->run, coord__postgres_text(result, 0, COORD__PROBE_RUN), sizeof r->run - 1);
    PQclear(result);
    PQclear(PQexec(conn, "rollback"));
}

static void check_place(struct report *r)
{
    char value[COORD_CHECK_VALUE_MAX];
    const char *run = r->run[0] != '\0' ? r->run : "not told";
    snprintf(value, sizeof value, "%s, system_identifier %.*s", fact(r, ADDRESS),
             (int)strcspn(run, "/"), run);
    add(r, "server", COORD_VERDICT_OK, value,
        "the same for all members: advisory locks are of one server, and are not replicated");
}

static void check_database(struct report *r)
{
    char text[COORD_CHECK_CURE_MAX];
    const unsigned long format = coord__postgres_format_of(fact(r, NOTE));
    const bool there = format > 0;
    const bool known = there && format <= COORD__POSTGRES_FORMAT;
    cure(add(r, "schema", unless(known, COORD_VERDICT_FAIL), there ? fact(r, NOTE) : "missing",
             "the row of an election holds its fence, and what a takeover has to wait for"),
         there ? "a newer version of coord made it: use that version"
               : "coordctl init --elector URI, as the owner of the database");
    snprintf(text, sizeof text,
             "GRANT USAGE ON SCHEMA coord TO %s; GRANT SELECT, INSERT, UPDATE ON TABLE "
             "coord.term TO %s",
             fact(r, USER), fact(r, USER));
    cure(add(r, "elector's rights", unless(is(r, MAY_ELECT), COORD_VERDICT_FAIL),
             is(r, MAY_ELECT) ? "granted" : "missing", "a candidate writes its row"),
         there ? text : "coordctl init first");
    snprintf(text, sizeof text,
             "where this role also writes guarded data: GRANT USAGE ON SCHEMA coord TO %s; "
             "GRANT EXECUTE ON FUNCTION coord.fence(text, bigint) TO %s",
             fact(r, USER), fact(r, USER));
    cure(add(r, "writer's rights", unless(is(r, MAY_GUARD), COORD_VERDICT_WARN),
             is(r, MAY_GUARD) ? "granted" : "missing",
             "coord.fence() refuses the writes of a term that is over"),
         there ? text : "coordctl init first");
    cure(add(r, "run", unless(r->run[0] != '\0', COORD_VERDICT_SKIPPED),
             r->run[0] != '\0' ? "can be named" : "this server keeps it to itself",
             "a record counts as proof only within the run of the data in which it was written"),
         "GRANT EXECUTE ON FUNCTION pg_control_system(), pg_current_wal_insert_lsn(), "
         "pg_walfile_name(pg_lsn) TO the role; without it every takeover waits a lease");
}

static void check_room(struct report *r)
{
    char value[COORD_CHECK_VALUE_MAX];
    const long left = number(r, SESSIONS_MOST) - number(r, SESSIONS);
    snprintf(value, sizeof value, "%ld of %ld in use", number(r, SESSIONS),
             number(r, SESSIONS_MOST));
    cure(add(r, "sessions", unless(left >= FEW_SESSIONS, COORD_VERDICT_WARN), value,
             "each process that stands needs two sessions of its own"),
         "raise max_connections, or put a pool before the application's other sessions");
    snprintf(value, sizeof value, "max_locks_per_transaction = %s", fact(r, LOCKS));
    add(r, "locks", COORD_VERDICT_OK, value, "each election takes one place in the lock table");
    cure(add(r, "fsync", unless(strcmp(fact(r, FSYNC), "on") == 0, COORD_VERDICT_WARN),
             fact(r, FSYNC), "a server that loses its last writes in a crash may forget a term"),
         "fsync = on");
    snprintf(value, sizeof value, "%s", fact(r, STANDBYS));
    cure(add(r, "standbys", unless(number(r, STANDBYS) == 0, COORD_VERDICT_WARN), value,
             "a standby that is promoted may not have the last terms; its first takeover of each "
             "name waits, and fences go on rising"),
         "nothing to change; guard what must not be written twice with coord.fence() or a fence "
         "column");
}

static void check_clock(struct report *r)
{
    char value[COORD_CHECK_VALUE_MAX];
    const int64_t apart = (strtoll(fact(r, CLOCK), NULL, 10) - r->wall) / 1000;
    const int64_t size = apart < 0 ? -apart : apart;
    snprintf(value, sizeof value, "%" PRId64 " ms apart", apart);
    cure(add(r, "clock",
             size >= CLOCK_FAIL_MS   ? COORD_VERDICT_FAIL
             : size >= CLOCK_WARN_MS ? COORD_VERDICT_WARN
                                     : COORD_VERDICT_OK,
             value, "fences follow the server's clock when a record is lost"),
         "let both hosts follow a time server");
}

/* ---------------------------------------------------------------- asking */

static PGconn *connect_to(const struct coord__postgres_target *target, struct report *r)
{
    struct coord_error why;
    PGconn *conn = coord__postgres_ask(target, &why);
    if (conn == NULL) {
        cure(add(r, "connection", COORD_VERDICT_FAIL, coord_err_name(why.code),
                 "nobody can be elected over a server that cannot be asked"),
             why.text);
    }
    return conn;
}

static bool says_yes(PGconn *conn, const char *text)
{
    PGresult *result = PQexec(conn, text);
    const bool yes = coord__postgres_text(result, 0, 0)[0] == 't';
    PQclear(result);
    return yes;
}

/* Two connections and one lock, as two candidates would have them. The number is arbitrary. */
static bool share_a_lock(PGconn *one, PGconn *two)
{
    static const char take[] =
        COORD__POSTGRES_BOUNDED "select pg_try_advisory_lock(-7164775571986147443)";
    static const char release[] =
        COORD__POSTGRES_BOUNDED "select pg_advisory_unlock(-7164775571986147443)";
    const bool first = says_yes(one, take);
    const bool second = says_yes(two, take);
    says_yes(one, release);
    if (second) {
        says_yes(two, release);
    }
    return first && second;
}

static void examine(PGconn *conn, PGconn *second, uint64_t (*wall)(void), struct report *r)
{
    const int64_t before = (int64_t)wall();
    PGresult *facts = PQexec(conn, facts_text);
    r->wall = before + ((int64_t)wall() - before) / 2;
    if (PQresultStatus(facts) != PGRES_TUPLES_OK) {
        struct coord_error why;
        coord__postgres_explain_result(facts, &why);
        cure(add(r, "connection", COORD_VERDICT_FAIL, coord_err_name(why.code),
                 "the server does not answer what has to be known"),
             why.text);
        PQclear(facts);
        return;
    }
    r->facts = facts;
    r->backend = PQbackendPID(conn);
    r->shared_lock = !is(r, STANDBY) && share_a_lock(conn, second);
    add(r, "connection", COORD_VERDICT_OK, fact(r, DATABASE),
        "all members of an election must use this very database");
    check_server(r);
    ask_run(r, conn);
    check_place(r);
    if (number(r, VERSION) >= VERSION_LEAST) { /* an older one lacks them, and has been told of */
        coord__postgres_doctor_settings(second, &r->checks);
    }
    check_database(r);
    if (is(r, MAY_ELECT)) {
        coord__postgres_doctor_keys(conn, &r->checks);
        coord__postgres_doctor_holders(conn, &r->checks);
    }
    check_room(r);
    check_clock(r);
    PQclear(facts);
}

size_t coord_postgres_doctor(const char *uri, bool pooler, uint64_t (*wall)(void),
                             struct coord_check *out)
{
    struct report r = {.checks.list = out, .pooler = pooler};
    struct coord__postgres_target *target = NULL;
    if (coord__postgres_target_new(uri, &target, NULL) != COORD_OK) {
        return 0;
    }
    PGconn *first = connect_to(target, &r);
    PGconn *second = first != NULL ? connect_to(target, &r) : NULL;
    if (first != NULL && second != NULL) {
        examine(first, second, wall, &r);
    }
    PQfinish(second);
    PQfinish(first);
    coord__postgres_target_free(target);
    return r.checks.count;
}
