/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_doctor.c - what doctor finds on good and on bad servers.
 */
#include "tests/support/pgbouncer.h"
#include "tests/support/postgres_world.h"

#include <inttypes.h>

static struct coord_check found[COORD_CHECKS_MAX];
static size_t count;

static void examine(const char *uri, bool pooler)
{
    count = coord_postgres_doctor(uri, pooler, coord_clock_wall_us, found);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        /* A finding that asks for something says what. */
        assert_string_not_equal(found[i].value, "");
        assert_int_equal(found[i].cure[0] != '\0', found[i].verdict != COORD_VERDICT_OK);
    }
}

static const struct coord_check *finding(const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(found[i].name, name) == 0) {
            return &found[i];
        }
    }
    fail_msg("no finding %s", name);
    return NULL;
}

static void expect(const char *name, enum coord_verdict verdict, const char *part)
{
    const struct coord_check *check = finding(name);
    if (check->verdict != verdict || strstr(check->value, part) == NULL) {
        fail_msg("%s: verdict %d, \"%s\"", name, (int)check->verdict, check->value);
    }
}

static bool is_found(const char *name)
{
    bool found_it = false;
    for (size_t i = 0; i < count; i++) {
        found_it = found_it || strcmp(found[i].name, name) == 0;
    }
    return found_it;
}

static unsigned failures(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < count; i++) {
        n += found[i].verdict == COORD_VERDICT_FAIL;
    }
    return n;
}

static void test_postgres_doctor__finds_nothing_that_fails_on_a_prepared_server(void **state)
{
    (void)state;
    char version[32];
    postgres_server_needed();
    examine(world_server.uri, false);
    assert_int_equal(failures(), 0);
    expect("connection", COORD_VERDICT_OK, "postgres");
    snprintf(version, sizeof version, "PostgreSQL %" PRId64,
             postgres_server_ask(&world_server,
                                 "select current_setting('server_version_num')::int / 10000"));
    expect("version", COORD_VERDICT_OK, version);
    expect("primary", COORD_VERDICT_OK, "the primary");
    expect("pooler", COORD_VERDICT_OK, "none in between");
    assert_false(is_found("pool lifetime"));
    expect("schema", COORD_VERDICT_OK, "coord format 1");
    expect("elector's rights", COORD_VERDICT_OK, "granted");
    expect("writer's rights", COORD_VERDICT_OK, "granted");
    expect("run", COORD_VERDICT_OK, "can be named");
    expect("keys", COORD_VERDICT_OK, "each on the key of its name");
    expect("lock holders", COORD_VERDICT_OK, "no strangers");
    expect("sessions", COORD_VERDICT_OK, " in use");
    expect("locks", COORD_VERDICT_OK, "max_locks_per_transaction = 64");
    expect("standbys", COORD_VERDICT_OK, "0");
    expect("clock", COORD_VERDICT_OK, " ms apart");
    expect("fsync", COORD_VERDICT_WARN, "off"); /* the tests' own server */
}

static bool knows_transaction_timeout(void)
{
    return postgres_server_ask(&world_server,
                               "select current_setting('server_version_num')::int >= 170000") == 1;
}

static void test_postgres_doctor__tells_what_the_session_sets_by_itself(void **state)
{
    (void)state;
    char uri[POSTGRES_URI];
    postgres_server_needed();
    postgres_server_do(&world_server, "create role slow login superuser");
    postgres_server_do(&world_server, "alter role slow set statement_timeout = '7s'");
    postgres_server_do(&world_server,
                       "alter role slow set idle_in_transaction_session_timeout = '11s'");
    postgres_server_do(&world_server,
                       "alter role slow set client_connection_check_interval = '13s'");
    snprintf(uri, sizeof uri, "postgresql://slow@/postgres?host=%s", world_server.folder);
    examine(uri, false);
    expect("idle_session_timeout", COORD_VERDICT_OK, "can be set by the session");
    expect("statement_timeout", COORD_VERDICT_OK, "7000ms; the elector's session sets ");
    expect("idle_in_transaction_session_timeout", COORD_VERDICT_OK, "11000ms; the elector's ");
    expect("client_connection_check_interval", COORD_VERDICT_OK, "13s; the elector's ");
    expect("transaction_timeout", COORD_VERDICT_OK,
           knows_transaction_timeout() ? "0ms; the elector's " : "not known before PostgreSQL 17");
    expect("tcp_keepalives", COORD_VERDICT_OK, "a local socket has none");
    expect("tcp_user_timeout", COORD_VERDICT_OK, "a local socket has none");
    /* One that ends whoever thinks for a moment. */
    postgres_server_do(&world_server,
                       "alter role slow set idle_in_transaction_session_timeout = '1ms'");
    examine(uri, false);
    expect("idle_session_timeout", COORD_VERDICT_OK, "can be set by the session");
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    assert_int_equal(coord_postgres_init(uri, grants, NULL), COORD_OK);
    postgres_server_do(&world_server, "drop role slow");
}

static void test_postgres_doctor__fails_where_a_later_version_made_the_schema(void **state)
{
    (void)state;
    postgres_server_needed();
    postgres_server_do(&world_server, "comment on table coord.term is 'coord format 2: later'");
    examine(world_server.uri, false);
    expect("schema", COORD_VERDICT_FAIL, "coord format 2");
    assert_non_null(strstr(finding("schema")->cure, "that version"));
    postgres_server_do(&world_server, "comment on table coord.term is 'coord format 1: ours'");
}

/* It bounds the statement by which the elector's session would set its own. Before 17 no role can
 * have one. */
static void test_postgres_doctor__warns_of_a_transaction_timeout_below_an_attempt(void **state)
{
    (void)state;
    static const struct {
        const char *timeout;
        enum coord_verdict verdict;
    } cases[] = {{"400ms", COORD_VERDICT_WARN}, {"1s", COORD_VERDICT_OK}, {"0", COORD_VERDICT_OK}};
    char uri[POSTGRES_URI];
    postgres_server_needed();
    postgres_server_do(&world_server, "create role hasty superuser login");
    snprintf(uri, sizeof uri, "postgresql://hasty@/postgres?host=%s", world_server.folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        PGconn *conn = postgres_server_connect(&world_server);
        const char *refused = postgres_server_try(
            conn, "alter role hasty set transaction_timeout = '%s'", cases[i].timeout);
        assert_string_equal(refused, knows_transaction_timeout() ? "" : "42704");
        PQfinish(conn);
        examine(uri, false);
        assert_int_equal(failures(), 0);
        expect("transaction_timeout",
               knows_transaction_timeout() ? cases[i].verdict : COORD_VERDICT_OK, "");
    }
    postgres_server_do(&world_server, "drop role hasty");
}

/* Whatever keeps the elector's session from being set up. */
static void test_postgres_doctor__fails_where_the_session_cannot_be_set_up(void **state)
{
    (void)state;
    char uri[POSTGRES_URI];
    postgres_server_needed();
    postgres_server_do(&world_server, "create role bound login");
    postgres_server_do(&world_server,
                       "revoke execute on function set_config(text, text, boolean) from public");
    snprintf(uri, sizeof uri, "postgresql://bound@/postgres?host=%s", world_server.folder);
    examine(uri, false);
    postgres_server_do(&world_server,
                       "grant execute on function set_config(text, text, boolean) to public");
    postgres_server_do(&world_server, "drop role bound");
    expect("idle_session_timeout", COORD_VERDICT_FAIL, "cannot be set");
    assert_non_null(strstr(finding("idle_session_timeout")->cure, "set_config"));
    assert_false(is_found("statement_timeout"));
}

static void add_row(const char *name, uint64_t key)
{
    postgres_server_do(&world_server,
                       "insert into coord.term (name, key, fence, takeover, owner, identity, pid, "
                       "lease_ms, debt_ms, resigned, since) values ('%s', %" PRIu64
                       ", 1, 'safe', 'x', 'x', 1, 0, 0, true, now())",
                       name, key);
}

static void test_postgres_doctor__finds_a_row_under_another_names_key(void **state)
{
    (void)state;
    postgres_server_needed();
    add_row("alike", coord_postgres_key("other", 5));
    examine(world_server.uri, false);
    postgres_server_do(&world_server, "delete from coord.term where name = 'alike'");
    expect("keys", COORD_VERDICT_FAIL, "\"alike\"");
    add_row("a%00b", coord_postgres_key("a\0b", 3)); /* the key is that of the bytes */
    examine(world_server.uri, false);
    postgres_server_do(&world_server, "delete from coord.term where name = 'a%%00b'");
    expect("keys", COORD_VERDICT_OK, "each on the key of its name");
}

static void test_postgres_doctor__finds_a_stranger_with_an_elections_lock(void **state)
{
    (void)state;
    const uint64_t key = coord_postgres_key("jobs", 4);
    postgres_server_needed();
    add_row("jobs", key);
    PGconn *stranger = postgres_server_connect(&world_server);
    assert_string_equal(postgres_server_try(stranger, "set application_name = 'stranger'"), "");
    assert_string_equal(postgres_server_try(stranger, "select pg_advisory_lock(%" PRIu64 ")", key),
                        "");
    char who[64];
    snprintf(who, sizeof who, "process %d (stranger) has \"jobs\"", PQbackendPID(stranger));
    examine(world_server.uri, false);
    postgres_server_do(&world_server, "update coord.term set pid = %d, resigned = false",
                       PQbackendPID(stranger));
    expect("lock holders", COORD_VERDICT_WARN, who);
    examine(world_server.uri, false);
    expect("lock holders", COORD_VERDICT_OK, "no strangers");
    PQfinish(stranger);
    postgres_server_do(&world_server, "delete from coord.term where name = 'jobs'");
}

static void test_postgres_doctor__says_what_a_managed_server_keeps_to_itself(void **state)
{
    (void)state;
    static const char *const barred[] = {"pg_control_system()", "pg_current_wal_insert_lsn()",
                                         "pg_walfile_name(pg_lsn)"};
    char uri[POSTGRES_URI];
    char identifier[64];
    postgres_server_needed();
    snprintf(
        identifier, sizeof identifier, "system_identifier %" PRId64,
        postgres_server_ask(&world_server, "select system_identifier from pg_control_system()"));
    postgres_server_do(&world_server, "create role tenant login");
    postgres_server_do(&world_server, "grant usage on schema coord to tenant");
    postgres_server_do(&world_server, "grant select, insert, update on coord.term to tenant");
    snprintf(uri, sizeof uri, "postgresql://tenant@/postgres?host=%s", world_server.folder);
    examine(uri, false);
    expect("server", COORD_VERDICT_OK, identifier);
    for (size_t i = 0; i < sizeof barred / sizeof barred[0]; i++) {
        postgres_server_do(&world_server, "revoke execute on function %s from public", barred[i]);
        examine(uri, false);
        postgres_server_do(&world_server, "grant execute on function %s to public", barred[i]);
        assert_int_equal(failures(), 0);
        expect("run", COORD_VERDICT_SKIPPED, "keeps it to itself");
        assert_non_null(strstr(finding("run")->cure, barred[i]));
        expect("server", COORD_VERDICT_OK, "system_identifier not told");
    }
    postgres_server_do(&world_server, "drop owned by tenant");
    postgres_server_do(&world_server, "drop role tenant");
}

/* A database in which the server gives another version out. */
static void test_postgres_doctor__fails_on_a_server_before_14(void **state)
{
    (void)state;
    struct postgres_server old = world_server;
    postgres_server_needed();
    postgres_server_do(&world_server, "create database old");
    snprintf(old.uri, sizeof old.uri, "postgresql://postgres@/old?host=%s", world_server.folder);
    world_prepare(&old);
    postgres_server_do(&old, "set allow_system_table_mods = on; "
                             "alter function current_setting(text) rename to real_setting; "
                             "create function pg_catalog.current_setting(text) returns text "
                             "language sql return case $1 when 'server_version_num' then '130022' "
                             "else pg_catalog.real_setting($1) end");
    examine(old.uri, false);
    postgres_server_do(&world_server, "drop database old with (force)");
    assert_int_equal(failures(), 1);
    expect("version", COORD_VERDICT_FAIL, "PostgreSQL 13");
    assert_non_null(strstr(finding("version")->why, "end a session that is silent"));
    assert_non_null(strstr(finding("version")->cure, "14 or later"));
    assert_false(is_found("idle_session_timeout")); /* an old one has none to set */
}

static void test_postgres_doctor__knows_a_small_primary_and_its_standby(void **state)
{
    (void)state;
    static const char *const options[] = {"port=auto", "max_connections=12",
                                          "tcp_keepalives_idle=77", NULL};
    struct postgres_server primary;
    struct postgres_server standby;
    char address[64];
    postgres_server_needed();
    postgres_server_start(&primary, options);
    postgres_server_follow(&standby, &primary);
    /* Those of its base backup may still be there. */
    postgres_server_until(&primary, "select count(*) = 1 and bool_and(application_name = "
                                    "'walreceiver') from pg_stat_replication");
    examine(primary.tcp_uri, false);
    snprintf(address, sizeof address, "127.0.0.1 port %d", primary.port);
    expect("server", COORD_VERDICT_OK, address);
    expect("primary", COORD_VERDICT_OK, "the primary");
    expect("sessions", COORD_VERDICT_WARN, " of 9 in use");
    expect("standbys", COORD_VERDICT_WARN, "1");
    expect("tcp_keepalives", COORD_VERDICT_OK, "77, ");
    expect("tcp_user_timeout", COORD_VERDICT_OK, "0; the elector's session sets its lease");
    examine(standby.uri, false);
    expect("primary", COORD_VERDICT_FAIL, "a standby");
    expect("version", COORD_VERDICT_OK, "PostgreSQL");
    postgres_server_stop(&standby);
    postgres_server_stop(&primary);
}

static int64_t sessions; /* of doctor, when it asks for our time */

static uint64_t note_sessions(void)
{
    sessions = postgres_server_ask(&world_server, "select count(*) from pg_stat_activity where "
                                                  "application_name = 'coord'");
    return coord_clock_wall_us();
}

static void test_postgres_doctor__compares_clocks_once_it_is_connected(void **state)
{
    (void)state;
    postgres_server_needed();
    /* Those of an earlier look take a moment to end. */
    postgres_server_until(&world_server, "select count(*) = 0 from pg_stat_activity where "
                                         "application_name = 'coord'");
    count = coord_postgres_doctor(world_server.uri, false, note_sessions, found);
    assert_int_equal(sessions, 2);
    assert_int_equal(finding("clock")->verdict, COORD_VERDICT_OK);
}

static void test_postgres_doctor__names_init_and_the_grants(void **state)
{
    (void)state;
    char uri[POSTGRES_URI];
    postgres_server_needed();
    postgres_server_do(&world_server, "create database unprepared");
    snprintf(uri, sizeof uri, "postgresql://postgres@/unprepared?host=%s", world_server.folder);
    examine(uri, false);
    assert_int_equal(finding("schema")->verdict, COORD_VERDICT_FAIL);
    assert_non_null(strstr(finding("schema")->cure, "coordctl init"));
    postgres_server_do(&world_server, "drop database unprepared with (force)");
    postgres_server_do(&world_server, "create role bare login");
    postgres_server_do(&world_server, "grant usage on schema coord to bare");
    snprintf(uri, sizeof uri, "postgresql://bare@/postgres?host=%s", world_server.folder);
    examine(uri, false);
    assert_int_equal(finding("elector's rights")->verdict, COORD_VERDICT_FAIL);
    assert_non_null(strstr(finding("elector's rights")->cure, "TO bare"));
    postgres_server_do(&world_server, "drop owned by bare");
    postgres_server_do(&world_server, "drop role bare");
}

static void test_postgres_doctor__a_server_that_is_gone_is_a_finding(void **state)
{
    (void)state;
    examine("postgresql:///x?host=/nonexistent", false);
    assert_int_equal(count, 1);
    assert_int_equal(finding("connection")->verdict, COORD_VERDICT_FAIL);
}

static void test_postgres_doctor__tells_the_modes_of_a_pooler_apart(void **state)
{
    (void)state;
    struct pgbouncer pooler;
    postgres_server_needed();
    pgbouncer_needed();
    pgbouncer_start(&pooler, &world_server, "session", 5, "");
    examine(pooler.uri, false);
    assert_int_equal(finding("pooler")->verdict, COORD_VERDICT_FAIL);
    assert_non_null(strstr(finding("pooler")->cure, "coord.pooler=session"));
    examine(pooler.uri, true);
    assert_int_equal(finding("pooler")->verdict, COORD_VERDICT_OK);
    expect("pool lifetime", COORD_VERDICT_SKIPPED, "not told through the pool");
    assert_non_null(strstr(finding("pool lifetime")->cure, "server_reset_query"));
    pgbouncer_stop(&pooler);
    pgbouncer_start(&pooler, &world_server, "transaction", 1, "");
    examine(pooler.uri, true);
    assert_int_equal(finding("pooler")->verdict, COORD_VERDICT_FAIL);
    assert_string_equal(finding("pooler")->value, "two clients got one lock");
    /* The pool's one session goes on as it was. */
    PGconn *next = PQconnectdb(pooler.uri);
    PGresult *left = PQexec(next, "select count(*) from pg_settings where source = 'session' and "
                                  "name ~ '_timeout$|_interval$|^search_path$'");
    assert_int_equal(PQntuples(left), 1);
    assert_string_equal(PQgetvalue(left, 0, 0), "0");
    PQclear(left);
    PQfinish(next);
    pgbouncer_stop(&pooler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_doctor__finds_nothing_that_fails_on_a_prepared_server),
        cmocka_unit_test(test_postgres_doctor__tells_what_the_session_sets_by_itself),
        cmocka_unit_test(test_postgres_doctor__fails_where_a_later_version_made_the_schema),
        cmocka_unit_test(test_postgres_doctor__warns_of_a_transaction_timeout_below_an_attempt),
        cmocka_unit_test(test_postgres_doctor__fails_where_the_session_cannot_be_set_up),
        cmocka_unit_test(test_postgres_doctor__finds_a_row_under_another_names_key),
        cmocka_unit_test(test_postgres_doctor__finds_a_stranger_with_an_elections_lock),
        cmocka_unit_test(test_postgres_doctor__says_what_a_managed_server_keeps_to_itself),
        cmocka_unit_test(test_postgres_doctor__fails_on_a_server_before_14),
        cmocka_unit_test(test_postgres_doctor__knows_a_small_primary_and_its_standby),
        cmocka_unit_test(test_postgres_doctor__compares_clocks_once_it_is_connected),
        cmocka_unit_test(test_postgres_doctor__names_init_and_the_grants),
        cmocka_unit_test(test_postgres_doctor__a_server_that_is_gone_is_a_finding),
        cmocka_unit_test(test_postgres_doctor__tells_the_modes_of_a_pooler_apart),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
