/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_search_path.c - a database whose search_path begins with a schema that
 * anybody may write into: functions, operators and tables of the server's names lie there as traps.
 */
#include "tests/support/postgres_world.h"

#include "brokers/postgres.h"

#include <inttypes.h>

static struct postgres_server trapped; /* the database of the traps, on the server of the group */

/* Each has the name and the arguments of one of the server's own, and only complains. */
static const char traps[] =
    "create schema traps; grant usage on schema traps to public;\n"
    "do $do$ declare it record; body text := ' language plpgsql as $t$begin raise exception "
    "$m$trapped$m$; end$t$'; begin\n"
    "for it in select p.proname, pg_get_function_identity_arguments(p.oid) as arguments,\n"
    "    p.prorettype::regtype as result from pg_proc p\n"
    "  where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f'\n"
    "    and p.proargmodes is null and not p.proretset and p.provariadic = 0\n"
    "    and p.proname ~ '^(set_config|current_setting|clock_timestamp|obj_desc|substr|regexp_re|'\n"
    "      'inet_server|host|oidvectortypes|has_|to_reg|pg_backend_pid|pg_is_in|pg_try_adv|'\n"
    "      'pg_adv|pg_notif|pg_current_|pg_relation_file|pg_walfile_name)'\n"
    "    and not exists (select from unnest(p.proargtypes::oid[] || p.prorettype) a\n"
    "      join pg_type t on t.oid = a where t.typtype = 'p' and t.typname <> 'void')\n"
    "loop execute format('create function traps.%I(%s) returns %s' || body,\n"
    "    it.proname, it.arguments, it.result);\n"
    "end loop;\n"
    "for it in select oprname, oprleft::regtype as l, oprright::regtype as r,\n"
    "    oprresult::regtype as result, 'trap_' || oid as function from pg_operator\n"
    "  where oprnamespace = 'pg_catalog'::regnamespace and oprleft <> 0\n"
    "    and oprname in ('=', '<>', '<', '>', '<=', '||', '+', '-', '*', '/', '&', '|', '<<',\n"
    "      '>>', '~')\n"
    "    and oprleft::regtype::text ~ '^(text|name|integer|bigint|oid|interval|timest.*)$'\n"
    "    and oprright::regtype::text ~ '^(text|name|integer|bigint|oid|interval|timest.*)$'\n"
    "loop execute format('create function traps.%I(%s, %s) returns %s' || body,\n"
    "    it.function, it.l, it.r, it.result);\n"
    "  execute format('create operator traps.%s (leftarg = %s, rightarg = %s, function = "
    "traps.%I)',\n"
    "    it.oprname, it.l, it.r, it.function);\n"
    "end loop;\n"
    "for it in select unnest(array['pg_locks', 'pg_settings', 'pg_stat_activity', 'pg_class',\n"
    "  'pg_proc', 'pg_namespace', 'pg_database', 'pg_roles', 'pg_stat_replication']) as name\n"
    "loop execute format('create table traps.%I (trapped int)', it.name); end loop;\n"
    "end $do$";

static int start(void **state)
{
    const int rc = world_start(state);
    if (rc != 0 || world_server.pid == 0) {
        return rc;
    }
    postgres_server_do(&world_server, "create database trapped");
    trapped = world_server;
    snprintf(trapped.uri, sizeof trapped.uri, "postgresql://postgres@/trapped?host=%s",
             world_server.folder);
    PGconn *conn = postgres_server_connect(&trapped);
    PGresult *result = PQexec(conn, traps);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        fail_msg("%s", PQresultErrorMessage(result));
    }
    PQclear(result);
    PQfinish(conn);
    postgres_server_do(&world_server, "alter database trapped set search_path = traps, pg_catalog");
    conn = postgres_server_connect(&trapped); /* they bite */
    assert_string_equal(postgres_server_try(conn, "select set_config('a.b', 'c', false)"), "P0001");
    assert_string_equal(postgres_server_try(conn, "select 'a'::text || 'b'::text"), "P0001");
    PQfinish(conn);
    return 0;
}

static void test_postgres_search_path__does_not_matter_to_init(void **state)
{
    (void)state;
    postgres_server_needed();
    world_prepare(&trapped);
    world_prepare(&trapped); /* it looks at what is there, too */
}

static void test_postgres_search_path__does_not_matter_to_electors(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "trapped");
    w.wish.uri = trapped.uri;
    w.wish.ttl = 30000; /* what is heard comes before what is polled for */
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    world_until(&w, "select count(*) = 2 from pg_stat_activity where query like 'listen coord%%'");
    const struct coord_request ask = {
        .verb = COORD_VERB_ASK, .fence = a->fence, .successor = "b", .reserve = 5000};
    assert_int_equal(candidate_query(&w.all, b, &ask), COORD_DONE);
    candidates_until(&w.all, b, candidate_leads);
    PGconn *work = postgres_server_connect(&trapped);
    assert_string_equal(postgres_server_try(work, "begin; select coord.fence('%s', %" PRIu64 ")",
                                            w.name, b->lease->term.fence),
                        "");
    PQfinish(work);
    world_close(&w);
}

static void test_postgres_search_path__does_not_matter_to_doctor(void **state)
{
    (void)state;
    struct coord_check found[COORD_CHECKS_MAX];
    postgres_server_needed();
    size_t count = coord_postgres_doctor(trapped.uri, false, coord_clock_wall_us, found);
    assert_true(count > 10);
    count += coord_postgres_bus_doctor(trapped.uri, false, coord_clock_wall_us, found + count);
    for (size_t i = 0; i < count; i++) {
        if (found[i].verdict == COORD_VERDICT_FAIL) {
            fail_msg("%s: %s: %s", found[i].name, found[i].value, found[i].cure);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_search_path__does_not_matter_to_init),
        cmocka_unit_test(test_postgres_search_path__does_not_matter_to_electors),
        cmocka_unit_test(test_postgres_search_path__does_not_matter_to_doctor),
    };
    return cmocka_run_group_tests(tests, start, world_stop);
}
