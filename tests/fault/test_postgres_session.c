/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_session.c - bad weather between the elector and its server: sessions
 * that end, locks of others, a server that restarts.
 */
#include "tests/support/postgres_world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

/* ---------------------------------------------------------------- ends of sessions */

static void test_postgres_session__a_terminated_backend_is_told_on_the_fatal(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "terminate");
    w.wish.ttl = 60000; /* no renewal comes near it */
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidates_run(&w.all, 50);
    postgres_server_do(&world_server, "select pg_terminate_backend(%" PRId64 ")", world_holder(&w));
    const coord_ms ended = coord_clock_now();
    while (candidate_leads(a)) {
        candidates_turn(&w.all, 5000);
    }
    /* Below the 10 s of a renewal: a guard. `make bench` tells how long it takes. */
    assert_true(coord_clock_now() - ended < 8000);
    assert_int_equal(a->lease->last_end, COORD_END_LOST);
    assert_int_equal(a->stopped, 1);
    candidates_until(&w.all, a, candidate_leads);
    world_close(&w);
}

static bool is_retrying(const struct candidate *candidate)
{
    return candidate_reason(candidate) == COORD_REASON_RETRYING;
}

static void restart_with(int signal_number)
{
    struct world w;
    world_open(&w, "restart");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    postgres_server_end(&world_server, signal_number);
    candidates_until(&w.all, a, candidate_leads_not);
    /* A server that takes longer to end than a lease is noticed by the deadline instead. */
    assert_true(a->lease->last_end == COORD_END_LOST || a->lease->last_end == COORD_END_UNRENEWED);
    candidates_until(&w.all, b, is_retrying);
    assert_int_equal(coord_err_class(b->lease->error.code), COORD_CLASS_RETRY);
    postgres_server_again(&world_server);
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (!candidate_leads(a) && !candidate_leads(b)) {
        candidates_turn(&w.all, 50);
        assert_true(coord_clock_now() < guard);
    }
    world_close(&w);
}

static void test_postgres_session__a_restart_ends_the_term_and_begins_another(void **state)
{
    (void)state;
    restart_with(SIGINT);
}

static void test_postgres_session__so_does_an_immediate_shutdown(void **state)
{
    (void)state;
    restart_with(SIGQUIT);
}

/* A process that is killed while its statement waits in the server. */
static void test_postgres_session__a_client_killed_in_mid_query_leaves_no_lock(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "killed");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidate_resign(&w.all, a);
    PGconn *other = postgres_server_connect(&world_server);
    assert_string_equal(postgres_server_try(other, "begin"), "");
    assert_string_equal(
        postgres_server_try(other, "select 1 from coord.term where name = '%s' for update", w.name),
        "");
    w.wish.ttl = 10000; /* its statement waits for longer than we take to kill it */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct candidates all = {.count = 0};
        candidate_stand(candidate_new(&all, &w.wish));
        for (;;) {
            candidates_turn(&all, 50);
        }
    }
    postgres_server_until(&world_server, "select count(*) > 0 from pg_stat_activity where "
                                         "wait_event_type = 'Lock'");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    postgres_server_until(&world_server, "select count(*) = 0 from pg_stat_activity where "
                                         "wait_event_type = 'Lock'");
    assert_string_equal(postgres_server_try(other, "rollback"), "");
    PQfinish(other);
    candidate_stand(a);
    candidates_until(&w.all, a, candidate_leads);
    world_close(&w);
}

/* ---------------------------------------------------------------- locks of others */

static void test_postgres_session__a_table_locked_for_longer_than_a_lease_costs_no_term(
    void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "locked");
    w.wish.ttl = 2000;
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    PGconn *other = postgres_server_connect(&world_server);
    assert_string_equal(postgres_server_try(other, "begin; lock table coord.term"), "");
    candidates_run(&w.all, 2500);
    assert_true(candidate_leads(a));
    assert_int_equal(a->stopping, 0);
    PQfinish(other);
    candidates_run(&w.all, 500);
    assert_true(candidate_leads(a));
    /* It could not resign meanwhile, and lets the lock go all the same. */
    other = postgres_server_connect(&world_server);
    assert_string_equal(postgres_server_try(other, "begin; lock table coord.term"), "");
    candidate_resign(&w.all, a);
    assert_int_equal(a->lease->release, COORD_RELEASE_LAPSING);
    world_until_free(&w);
    PQfinish(other);
    world_close(&w);
}

static void test_postgres_session__a_commit_that_fails_leaves_no_lock(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "commit");
    struct candidate *a = world_join(&w);
    postgres_server_do(&world_server,
                       "create function refuse() returns trigger language plpgsql as "
                       "'begin raise exception ''not at commit''; end'; "
                       "create constraint trigger refuse after insert on coord.term "
                       "deferrable initially deferred for each row execute function refuse()");
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_PROTOCOL);
    world_until_free(&w);
    postgres_server_do(&world_server, "drop trigger refuse on coord.term; drop function refuse()");
    candidates_until(&w.all, a, candidate_leads);
    world_close(&w);
}

static void test_postgres_session__a_host_that_hangs_keeps_the_lock_no_longer_than_its_term(
    void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "hung-host");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    a->deaf = true; /* it never says that its work has ended; its session lives */
    coord_lease_health(a->lease, false, coord_clock_now());
    candidates_until(&w.all, a, candidate_leads_not);
    candidates_until(&w.all, b, candidate_leads);
    assert_true(b->fence > a->fence);
    assert_int_equal(w.all.overlaps, 0);
    world_close(&w);
}

static void test_postgres_session__a_lost_listener_costs_speed_only(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "listen");
    w.wish.ttl = 30000; /* polls each second: a hint is faster */
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    const char *const listeners = "from pg_stat_activity where query like 'listen coord%'";
    world_until(&w, "select count(*) = 2 %s", listeners);
    const int64_t last = postgres_server_ask(
        &world_server, "select (extract(epoch from max(backend_start)) * 1000000)::bigint %s",
        listeners);
    postgres_server_do(&world_server, "select pg_terminate_backend(pid) %s", listeners);
    world_until(&w,
                "select count(*) = 2 %s and extract(epoch from backend_start) * 1000000 > "
                "%" PRId64,
                listeners, last);
    assert_true(candidate_leads(a)); /* its own session is another */
    /* What happens while it does not listen is told to nobody. */
    b->frozen = true;
    postgres_server_do(&world_server, "select pg_terminate_backend(pid) from pg_stat_activity "
                                      "where query like 'listen coord%%'");
    candidate_resign(&w.all, a);
    b->frozen = false;
    candidates_until(&w.all, b, candidate_leads);
    world_close(&w);
}

/* ---------------------------------------------------------------- many */

static void test_postgres_session__of_fifty_candidates_one_leads_and_the_log_is_quiet(void **state)
{
    (void)state;
    enum {
        FIFTY = 40 /* sessions of two each; the rest is for the test */
    };
    struct world w;
    world_open(&w, "fifty");
    const size_t log = postgres_server_log_size(&world_server);
    w.wish.ttl = 30000; /* patience: whoever gives a login up makes the server say so */
    for (size_t i = 0; i < FIFTY; i++) {
        candidate_stand(world_join(&w));
    }
    uint64_t fence = 0;
    for (int round = 0; round < 5; round++) {
        struct candidate *leader = NULL;
        const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
        while (leader == NULL) {
            candidates_turn(&w.all, 50);
            for (size_t i = 0; i < w.all.count; i++) {
                leader = candidate_leads(w.all.list[i]) ? w.all.list[i] : leader;
            }
            assert_true(coord_clock_now() < guard);
        }
        candidates_turn(&w.all, 0);
        assert_true(leader->fence > fence);
        fence = leader->fence;
        /* Waiters hold back no vacuum: whatever one asks ends by itself. */
        world_until(&w, "select count(*) = 0 from pg_stat_activity where application_name = "
                        "'coord' and backend_xmin is not null");
        candidate_resign(&w.all, leader);
    }
    assert_int_equal(w.all.overlaps, 0);
    for (size_t i = 0; i < w.all.count; i++) {
        coord_lease_withdraw(w.all.list[i]->lease, coord_clock_now());
    }
    candidates_run(&w.all, 300);
    assert_false(postgres_server_logged(&world_server, log, "ERROR"));
    assert_false(postgres_server_logged(&world_server, log, "WARNING"));
    assert_false(postgres_server_logged(&world_server, log, "FATAL"));
    world_close(&w);
}

static int start(void **state)
{
    (void)state;
    static const char *const options[] = {"max_connections=200", "log_min_messages=warning", NULL};
    return world_start_with(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_session__a_terminated_backend_is_told_on_the_fatal),
        cmocka_unit_test(test_postgres_session__a_restart_ends_the_term_and_begins_another),
        cmocka_unit_test(test_postgres_session__so_does_an_immediate_shutdown),
        cmocka_unit_test(test_postgres_session__a_client_killed_in_mid_query_leaves_no_lock),
        cmocka_unit_test(
            test_postgres_session__a_table_locked_for_longer_than_a_lease_costs_no_term),
        cmocka_unit_test(test_postgres_session__a_commit_that_fails_leaves_no_lock),
        cmocka_unit_test(
            test_postgres_session__a_host_that_hangs_keeps_the_lock_no_longer_than_its_term),
        cmocka_unit_test(test_postgres_session__a_lost_listener_costs_speed_only),
        cmocka_unit_test(test_postgres_session__of_fifty_candidates_one_leads_and_the_log_is_quiet),
    };
    return cmocka_run_group_tests(tests, start, world_stop);
}
