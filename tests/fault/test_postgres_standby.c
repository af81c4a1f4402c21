/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_standby.c - standbys, promotions, and an old primary that goes on.
 */
#include "tests/support/postgres_world.h"

#include <inttypes.h>

static struct postgres_server standby;

static int start(void **state)
{
    (void)state;
    static const char *const options[] = {"wal_level=replica", "hot_standby=on", NULL};
    if (postgres_server_programs() != NULL) {
        postgres_server_start(&world_server, options);
        world_prepare(&world_server);
    }
    return 0;
}

static void follow(void)
{
    postgres_server_follow(&standby, &world_server);
}

static void promote(void)
{
    postgres_server_do(&standby, "select pg_promote(true, 30)");
    postgres_server_until(&standby, "select not pg_is_in_recovery()");
}

static void catch_up(void)
{
    PGconn *conn = postgres_server_connect(&world_server);
    PGresult *result = PQexec(conn, "select pg_current_wal_flush_lsn()");
    postgres_server_until(&standby, "select pg_last_wal_replay_lsn() >= '%s'::pg_lsn",
                          PQgetvalue(result, 0, 0));
    PQclear(result);
    PQfinish(conn);
}

static void cut_off(void)
{
    postgres_server_do(&standby, "alter system set primary_conninfo = ''");
    postgres_server_do(&standby, "select pg_reload_conf()");
    postgres_server_until(&world_server, "select count(*) = 0 from pg_stat_replication");
}

static void test_postgres_standby__is_refused(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "standby");
    follow();
    w.wish.uri = standby.uri;
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_STANDBY);
    assert_int_equal(candidate_reason(a), COORD_REASON_REFUSED);
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    assert_int_equal(coord_postgres_init(standby.uri, grants, NULL), COORD_E_STANDBY);
    world_close(&w);
    postgres_server_stop(&standby);
}

static void expect_primary(const char *uri)
{
    struct coord_check found[COORD_CHECKS_MAX];
    const size_t count = coord_postgres_doctor(uri, false, coord_clock_wall_us, found);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(found[i].name, "primary") == 0) {
            assert_string_equal(found[i].value, "the primary");
            return;
        }
    }
    fail_msg("%zu findings, and none is of the primary", count);
}

static void test_postgres_standby__of_several_hosts_the_primary_is_taken(void **state)
{
    (void)state;
    struct world w;
    char both[2 * POSTGRES_URI];
    world_open(&w, "hosts");
    follow();
    snprintf(both, sizeof both, "postgresql://postgres@/postgres?host=%s,/nonexistent,%s",
             standby.folder, world_server.folder);
    w.wish.uri = both;
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    assert_true(world_holder(&w) > 0);
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    assert_int_equal(coord_postgres_init(both, grants, NULL), COORD_OK);
    expect_primary(both);
    world_close(&w);
    postgres_server_stop(&standby);
}

/* The new side waits out the term of the old one, though its row says whatever it says, and its
 * fences are higher; who has heard of them refuses the old primary. */
static void test_postgres_standby__a_promotion_is_owed_and_the_old_primary_is_stale(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "promotion");
    follow();
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidate_resign(&w.all, a);
    catch_up();
    cut_off(); /* what follows is not replicated */
    candidate_win(&w.all, a);
    const uint64_t lost = a->fence;
    promote();
    assert_int_equal(
        postgres_server_ask(
            &standby, "select fence < %" PRIu64 " from coord.term where name = '%s'", lost, w.name),
        1);
    w.wish.uri = standby.uri;
    struct candidate *b = world_join(&w);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_waits);
    assert_int_equal(b->lease->term.debt, 1000);
    candidates_until(&w.all, b, candidate_leads);
    candidates_turn(&w.all, 0);
    assert_true(b->fence > lost);
    candidate_resign(&w.all, a);
    /* One that knows the new side's fence comes back to the old primary. */
    w.wish.uri = world_server.uri;
    struct candidate *c = world_join(&w);
    c->lease->seen = b->fence;
    candidate_stand(c);
    candidates_until_error(&w.all, c, COORD_E_STALE_SERVER);
    assert_int_equal(world_holder(&w), 0);
    world_abandon(&w);
    postgres_server_stop(&standby);
}

/* A standby that is gone holds up no grant. */
static void test_postgres_standby__a_missing_synchronous_one_stalls_nobody(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "synchronous");
    postgres_server_do(&world_server, "alter system set synchronous_standby_names = 'gone'");
    postgres_server_do(&world_server, "select pg_reload_conf()");
    postgres_server_until(&world_server,
                          "select current_setting('synchronous_standby_names') = 'gone'");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidate_resign(&w.all, a);
    world_close(&w);
    postgres_server_do(&world_server, "alter system reset all");
    postgres_server_do(&world_server, "select pg_reload_conf()");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_standby__is_refused),
        cmocka_unit_test(test_postgres_standby__of_several_hosts_the_primary_is_taken),
        cmocka_unit_test(test_postgres_standby__a_promotion_is_owed_and_the_old_primary_is_stale),
        cmocka_unit_test(test_postgres_standby__a_missing_synchronous_one_stalls_nobody),
    };
    return cmocka_run_group_tests(tests, start, world_stop);
}
