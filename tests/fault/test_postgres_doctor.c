/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_doctor.c - what doctor finds on good and on bad servers.
 */
#include "tests/support/pgbouncer.h"
#include "tests/support/postgres_world.h"

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
    postgres_server_needed();
    examine(world_server.uri, false);
    assert_int_equal(failures(), 0);
    assert_int_equal(finding("pooler")->verdict, COORD_VERDICT_OK);
    assert_int_equal(finding("clock")->verdict, COORD_VERDICT_OK);
    assert_int_equal(finding("fsync")->verdict, COORD_VERDICT_WARN); /* the tests' own server */
}

static int64_t sessions; /* of doctor, when it asks for our time */

static uint64_t note_sessions(void)
{
    sessions = postgres_server_ask(&world_server,
                                   "select count(*) from pg_stat_activity where backend_type = "
                                   "'client backend' and pid <> pg_backend_pid()");
    return coord_clock_wall_us();
}

static void test_postgres_doctor__compares_clocks_once_it_is_connected(void **state)
{
    (void)state;
    postgres_server_needed();
    count = coord_postgres_doctor(world_server.uri, false, note_sessions, found);
    assert_true(sessions >= 2);
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
    assert_non_null(strstr(finding("elector's rights")->cure, "TO \"bare\""));
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
    pgbouncer_start(&pooler, &world_server, "session", 5);
    examine(pooler.uri, false);
    assert_int_equal(finding("pooler")->verdict, COORD_VERDICT_FAIL);
    assert_non_null(strstr(finding("pooler")->cure, "coord.pooler=session"));
    examine(pooler.uri, true);
    assert_int_equal(finding("pooler")->verdict, COORD_VERDICT_OK);
    pgbouncer_stop(&pooler);
    pgbouncer_start(&pooler, &world_server, "transaction", 1);
    examine(pooler.uri, true);
    assert_int_equal(finding("pooler")->verdict, COORD_VERDICT_FAIL);
    assert_string_equal(finding("pooler")->value, "two clients got one lock");
    pgbouncer_stop(&pooler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_doctor__finds_nothing_that_fails_on_a_prepared_server),
        cmocka_unit_test(test_postgres_doctor__compares_clocks_once_it_is_connected),
        cmocka_unit_test(test_postgres_doctor__names_init_and_the_grants),
        cmocka_unit_test(test_postgres_doctor__a_server_that_is_gone_is_a_finding),
        cmocka_unit_test(test_postgres_doctor__tells_the_modes_of_a_pooler_apart),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
