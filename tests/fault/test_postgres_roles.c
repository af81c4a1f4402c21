/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_roles.c - what a database and its roles may lack, or set: each refusal
 * has its code and its cure, and nothing stays locked.
 */
#include "tests/support/postgres_world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static char uri_text[POSTGRES_URI];

/* The URI of a role, or of another database. */
static const char *uri_of(const char *role, const char *database)
{
    snprintf(uri_text, sizeof uri_text, "postgresql://%s@/%s?host=%s&port=%d", role, database,
             world_server.folder, world_server.port);
    return uri_text;
}

static const char *tcp_uri_of(const char *role)
{
    snprintf(uri_text, sizeof uri_text, "postgresql://%s@127.0.0.1:%d/postgres", role,
             world_server.port);
    return uri_text;
}

static void grant_elector(const char *role)
{
    postgres_server_do(&world_server,
                       "grant usage on schema coord to %s; grant select, insert, update on table "
                       "coord.term to %s",
                       role, role);
}

/* ---------------------------------------------------------------- init */

static void test_postgres_roles__init_names_what_is_missing_and_creates_it(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "init");
    postgres_server_do(&world_server, "create database bare");
    char bare[POSTGRES_URI];
    snprintf(bare, sizeof bare, "%s", uri_of("postgres", "bare"));
    w.wish.uri = bare;
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_NOT_INITIALISED);
    assert_non_null(strstr(a->lease->error.text, "coordctl init"));
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_postgres_init(bare, grants, &error), COORD_OK);
    assert_non_null(strstr(grants, "GRANT SELECT, INSERT, UPDATE ON TABLE coord.term TO elector"));
    assert_non_null(strstr(grants, "GRANT EXECUTE ON FUNCTION coord.fence"));
    candidates_until(&w.all, a, candidate_leads);
    assert_int_equal(coord_postgres_init(bare, grants, &error), COORD_OK); /* again: nothing */
    assert_true(candidate_leads(a));
    candidate_resign(&w.all, a);
    world_close(&w);
    postgres_server_do(&world_server, "drop database bare with (force)");
}

static void test_postgres_roles__twenty_may_init_at_once(void **state)
{
    (void)state;
    enum {
        TWENTY = 20
    };
    pid_t children[TWENTY];
    postgres_server_needed();
    postgres_server_do(&world_server, "create database crowd");
    for (int i = 0; i < TWENTY; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            char grants[COORD_POSTGRES_INIT_TEXT_MAX];
            _exit(coord_postgres_init(uri_of("postgres", "crowd"), grants, NULL) != COORD_OK);
        }
    }
    for (int i = 0; i < TWENTY; i++) {
        int status = 1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    postgres_server_do(&world_server, "drop database crowd with (force)");
}

static void test_postgres_roles__init_without_the_right_says_who_can(void **state)
{
    (void)state;
    postgres_server_needed();
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    struct coord_error error = {.code = COORD_OK};
    postgres_server_do(&world_server, "create role nobody_much login");
    postgres_server_do(&world_server, "create role maker login");
    postgres_server_do(&world_server, "create database owned");
    assert_int_equal(coord_postgres_init(uri_of("nobody_much", "owned"), grants, &error),
                     COORD_E_NO_RIGHT);
    assert_non_null(strstr(error.text, "GRANT CREATE ON DATABASE owned TO nobody_much"));
    postgres_server_do(&world_server, "grant create on database owned to maker");
    assert_int_equal(coord_postgres_init(uri_of("maker", "owned"), grants, &error), COORD_OK);
    /* What another made is checked, and not replaced. */
    assert_int_equal(coord_postgres_init(uri_of("postgres", "owned"), grants, &error), COORD_OK);
    struct postgres_server owned = world_server;
    snprintf(owned.uri, sizeof owned.uri, "%s", uri_of("maker", "owned"));
    postgres_server_do(&owned, "grant usage on schema coord to nobody_much");
    assert_int_equal(coord_postgres_init(uri_of("nobody_much", "owned"), grants, &error), COORD_OK);
    postgres_server_do(&world_server, "drop database owned with (force)");
    postgres_server_do(&world_server, "drop role nobody_much, maker");
}

/* Whatever the names: what is to be granted can be pasted as it stands. */
static void test_postgres_roles__the_grant_that_is_named_works(void **state)
{
    (void)state;
    postgres_server_needed();
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    struct coord_error error = {.code = COORD_OK};
    postgres_server_do(&world_server, "create role \"Role-of \"\"63\"\" bytes, "
                                      "0123456789012345678901234567890123456789012\" login");
    postgres_server_do(&world_server, "create database \"my-\"\"db\"\"\"");
    static const char role[] = "Role-of%20%2263%22%20bytes,%20"
                               "0123456789012345678901234567890123456789012";
    const char *uri = uri_of(role, "my-%22db%22");
    assert_int_equal(coord_postgres_init(uri, grants, &error), COORD_E_NO_RIGHT);
    char *grant = strstr(error.text, "GRANT CREATE");
    assert_non_null(grant);
    *strstr(grant, " first") = '\0';
    postgres_server_do(&world_server, "%s", grant);
    assert_int_equal(coord_postgres_init(uri, grants, &error), COORD_OK);
    postgres_server_do(&world_server, "drop database \"my-\"\"db\"\"\" with (force)");
    postgres_server_do(&world_server, "drop role \"Role-of \"\"63\"\" bytes, "
                                      "0123456789012345678901234567890123456789012\"");
}

static void test_postgres_roles__init_takes_nothing_foreign_for_its_own(void **state)
{
    (void)state;
    postgres_server_needed();
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    struct coord_error error = {.code = COORD_OK};
    postgres_server_do(&world_server, "create database foreign_one");
    struct postgres_server other = world_server;
    snprintf(other.uri, sizeof other.uri, "%s", uri_of("postgres", "foreign_one"));
    postgres_server_do(&other, "create schema coord create table term (a int)");
    assert_int_equal(coord_postgres_init(other.uri, grants, &error), COORD_E_FOREIGN_RECORD);
    postgres_server_do(&other, "comment on table coord.term is 'coord format 9: later'");
    assert_int_equal(coord_postgres_init(other.uri, grants, &error), COORD_E_NEWER_FORMAT);
    postgres_server_do(&world_server, "drop database foreign_one with (force)");
}

/* ---------------------------------------------------------------- rights */

static void test_postgres_roles__a_missing_right_names_the_grant(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "rights");
    postgres_server_do(&world_server, "create role plain login");
    w.wish.uri = uri_of("plain", "postgres");
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_NO_RIGHT);
    assert_non_null(strstr(a->lease->error.text, "GRANT"));
    assert_int_equal(candidate_reason(a), COORD_REASON_REFUSED);
    assert_int_equal(world_holder(&w), 0);
    grant_elector("plain");
    candidates_until(&w.all, a, candidate_leads); /* nothing more is needed */
    candidate_resign(&w.all, a);
    world_close(&w);
    postgres_server_do(&world_server, "drop owned by plain; drop role plain");
}

static void test_postgres_roles__a_watcher_sees_who_leads(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "watch");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    postgres_server_do(&world_server, "create role watcher login; grant usage on schema coord to "
                                      "watcher; grant select on table coord.term to watcher");
    w.wish.uri = uri_of("watcher", "postgres");
    struct candidate *b = world_join(&w);
    const struct coord_request query = {.verb = COORD_VERB_OBSERVE};
    assert_int_equal(candidate_query(&w.all, b, &query), COORD_HELD);
    assert_string_equal(b->lease->leader.identity, "a");
    assert_true(b->lease->leader.fence == a->fence);
    world_close(&w);
    postgres_server_do(&world_server, "drop owned by watcher; drop role watcher");
}

/* ---------------------------------------------------------------- settings of a role */

static void test_postgres_roles__settings_of_a_role_change_nothing(void **state)
{
    (void)state;
    static const char *const settings[] = {
        "statement_timeout = '40ms'",
        "lock_timeout = '1ms'",
        "idle_session_timeout = '100ms'",
        "idle_in_transaction_session_timeout = '1ms'",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "search_path = 'nowhere'",
        "datestyle = 'German'",
        "bytea_output = 'escape'",
        "synchronous_commit = 'remote_apply'",
        "timezone = 'Asia/Kathmandu'",
        "standard_conforming_strings = off",
    };
    struct world w;
    postgres_server_needed();
    postgres_server_do(&world_server, "create role odd login");
    grant_elector("odd");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        world_open(&w, "odd");
        postgres_server_do(&world_server, "alter role odd reset all");
        postgres_server_do(&world_server, "alter role odd set %s", settings[i]);
        w.wish.uri = uri_of("odd", "postgres");
        w.wish.metadata = "\\x41 and \\ more";
        struct candidate *a = world_join(&w);
        struct candidate *b = world_join(&w);
        candidate_win(&w.all, a);
        candidate_stand(b);
        candidates_run(&w.all, 400); /* a renewal comes after 333 */
        assert_true(candidate_leads(a));
        assert_int_equal(b->lease->leader.metadata_bytes, strlen(w.wish.metadata));
        coord_lease_withdraw(a->lease, coord_clock_now());
        candidates_until(&w.all, b, candidate_leads);
        assert_int_equal(b->lease->term.debt, 0);
        world_close(&w);
    }
    postgres_server_do(&world_server, "drop owned by odd; drop role odd");
}

/* Of a role that may run for less than this grant waits, for a table that another has locked. */
static void test_postgres_roles__a_grant_waits_as_long_as_its_own_session_says(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "hasty");
    const size_t log = postgres_server_log_size(&world_server);
    postgres_server_do(&world_server, "create role hasty login; "
                                      "alter role hasty set statement_timeout = '250ms'; "
                                      "alter role hasty set lock_timeout = '250ms'");
    if (postgres_server_ask(&world_server,
                            "select current_setting('server_version_num')::int >= 170000") == 1) {
        postgres_server_do(&world_server, "alter role hasty set transaction_timeout = '250ms'");
    }
    grant_elector("hasty");
    PGconn *other = postgres_server_connect(&world_server);
    assert_string_equal(postgres_server_try(other, "begin; lock table coord.term"), "");
    w.wish.uri = uri_of("hasty", "postgres");
    w.wish.ttl = 600000; /* it waits for 37 seconds at most */
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    world_until(&w, "select count(*) = 1 from pg_stat_activity where usename = 'hasty' and "
                    "wait_event_type = 'Lock' and clock_timestamp() - query_start > '500 ms'");
    PQfinish(other);
    candidates_until(&w.all, a, candidate_leads);
    candidate_resign(&w.all, a);
    world_close(&w);
    /* A server before 17 is not asked for the one of the three that it does not have. */
    assert_false(postgres_server_logged(&world_server, log, "unrecognized configuration"));
    postgres_server_do(&world_server, "drop owned by hasty; drop role hasty");
}

/* Of a managed server: without a name of its run no record proves that a term is over. */
static void test_postgres_roles__a_server_that_keeps_its_run_to_itself_costs_a_wait(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "tenant");
    postgres_server_do(&world_server, "create role tenant login");
    grant_elector("tenant");
    postgres_server_do(&world_server, "revoke execute on function pg_control_system() from public");
    w.wish.uri = uri_of("tenant", "postgres");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    assert_int_equal(a->lease->error.code, COORD_OK);
    candidate_resign(&w.all, a);
    assert_int_equal(a->lease->release, COORD_RELEASE_RELEASED);
    candidate_win(&w.all, b);
    assert_int_equal(b->lease->term.debt, 1000);
    assert_true(b->fence > a->fence);
    postgres_server_do(&world_server, "grant execute on function pg_control_system() to public");
    world_close(&w);
    postgres_server_do(&world_server, "drop owned by tenant; drop role tenant");
}

/* ---------------------------------------------------------------- logins */

static void test_postgres_roles__a_wrong_password_is_told_and_not_repeated(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "password");
    postgres_server_do(&world_server, "set password_encryption = 'scram-sha-256'; create role "
                                      "locked login password 'right'");
    grant_elector("locked");
    postgres_server_put_in_hba(&world_server, "local all locked scram-sha-256");
    w.wish.uri = uri_of("locked:wr0ng-s3cret", "postgres");
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_WRONG_PASSWORD);
    assert_null(strstr(a->lease->error.text, "s3cret"));
    w.wish.uri = uri_of("locked", "postgres");
    struct candidate *b = world_join(&w);
    candidate_stand(b);
    candidates_until_error(&w.all, b, COORD_E_WRONG_PASSWORD);
    candidates_free(&w.all);
    w.wish.uri = uri_of("locked:right", "postgres");
    candidate_win(&w.all, world_join(&w));
    world_close(&w);
    postgres_server_do(&world_server, "drop owned by locked; drop role locked");
}

static void test_postgres_roles__a_server_that_wants_tls_says_so(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "tls");
    postgres_server_do(&world_server, "create role secure login");
    postgres_server_put_in_hba(&world_server, "hostnossl all secure 127.0.0.1/32 reject");
    w.wish.uri = tcp_uri_of("secure");
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_WRONG_PASSWORD);
    assert_non_null(strstr(a->lease->error.text, "sslmode"));
    world_close(&w);
    postgres_server_do(&world_server, "drop role secure");
}

static void test_postgres_roles__a_full_server_is_waited_for(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "full");
    postgres_server_do(&world_server, "create role many login connection limit 0");
    grant_elector("many");
    w.wish.uri = uri_of("many", "postgres");
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_SERVER_FULL);
    assert_non_null(strstr(a->lease->error.text, "CONNECTION LIMIT of the role"));
    assert_int_equal(candidate_reason(a), COORD_REASON_RETRYING);
    postgres_server_do(&world_server, "alter role many connection limit 5");
    candidates_until(&w.all, a, candidate_leads);
    candidate_resign(&w.all, a);
    world_close(&w);
    postgres_server_do(&world_server, "drop owned by many; drop role many");
}

static void test_postgres_roles__unreachable_and_unknown_are_told(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "unreachable");
    w.wish.uri = "postgresql:///postgres?host=/nonexistent/folder";
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_UNREACHABLE);
    w.wish.uri = uri_of("postgres", "no_such_database");
    struct candidate *b = world_join(&w);
    candidate_stand(b);
    candidates_until_error(&w.all, b, COORD_E_NOT_INITIALISED);
    char nonsense[sizeof uri_text + 32];
    snprintf(nonsense, sizeof nonsense, "%s&options=-cnonsense%%3D1",
             uri_of("postgres", "postgres"));
    w.wish.uri = nonsense;
    struct candidate *o = world_join(&w);
    candidate_stand(o);
    candidates_until_error(&w.all, o, COORD_E_BAD_URI);
    assert_non_null(strstr(o->lease->error.text, "nonsense"));
    w.wish.uri = "postgresql://no-resolver.invalid/postgres";
    struct candidate *c = world_join(&w);
    candidate_stand(c);
    candidates_until_error(&w.all, c, COORD_E_NAME_UNRESOLVED);
    struct candidate *d = NULL;
    struct coord_error error;
    w.wish.uri = "postgresql://u:s3cret@127.0.0.1/x?no_such_parameter=1";
    assert_int_equal(candidate_try(&w.all, &w.wish, &d, &error), COORD_E_BAD_URI);
    assert_null(strstr(error.text, "s3cret"));
    world_close(&w);
}

static void test_postgres_roles__elections_of_two_databases_are_two(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "databases");
    postgres_server_do(&world_server, "create database other encoding 'LATIN1' lc_collate 'C' "
                                      "lc_ctype 'C' template template0");
    char uri[POSTGRES_URI];
    snprintf(uri, sizeof uri, "%s", uri_of("postgres", "other"));
    struct postgres_server other = world_server;
    snprintf(other.uri, sizeof other.uri, "%s", uri);
    world_prepare(&other);
    struct candidate *a = world_join(&w);
    w.wish.uri = uri;
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_win(&w.all, b);
    assert_true(candidate_leads(a));
    candidate_resign(&w.all, a);
    /* Nobody leads in the one, though the other's lock has the same number. */
    const struct coord_request query = {.verb = COORD_VERB_OBSERVE};
    assert_int_equal(candidate_query(&w.all, a, &query), COORD_FREE);
    world_abandon(&w);
    postgres_server_do(&world_server, "drop database other with (force)");
}

static int start(void **state)
{
    (void)state;
    static const char *const options[] = {"port=auto", NULL};
    return world_start_with(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_roles__init_names_what_is_missing_and_creates_it),
        cmocka_unit_test(test_postgres_roles__twenty_may_init_at_once),
        cmocka_unit_test(test_postgres_roles__init_without_the_right_says_who_can),
        cmocka_unit_test(test_postgres_roles__the_grant_that_is_named_works),
        cmocka_unit_test(test_postgres_roles__init_takes_nothing_foreign_for_its_own),
        cmocka_unit_test(test_postgres_roles__a_missing_right_names_the_grant),
        cmocka_unit_test(test_postgres_roles__a_watcher_sees_who_leads),
        cmocka_unit_test(test_postgres_roles__settings_of_a_role_change_nothing),
        cmocka_unit_test(test_postgres_roles__a_grant_waits_as_long_as_its_own_session_says),
        cmocka_unit_test(test_postgres_roles__a_server_that_keeps_its_run_to_itself_costs_a_wait),
        cmocka_unit_test(test_postgres_roles__a_wrong_password_is_told_and_not_repeated),
        cmocka_unit_test(test_postgres_roles__a_server_that_wants_tls_says_so),
        cmocka_unit_test(test_postgres_roles__a_full_server_is_waited_for),
        cmocka_unit_test(test_postgres_roles__unreachable_and_unknown_are_told),
        cmocka_unit_test(test_postgres_roles__elections_of_two_databases_are_two),
    };
    return cmocka_run_group_tests(tests, start, world_stop);
}
