/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_session.c - bad weather between the elector and its server: sessions
 * that end, links that fall silent, locks of others, a server that restarts.
 */
#include "tests/support/postgres_world.h"
#include "tests/support/proxy.h"
#include "tests/support/scratch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

/* ---------------------------------------------------------------- a link to spoil */

struct link {
    struct proxy proxy;
    char folder[64];
    char uri[POSTGRES_URI];
};

static void link_open(struct link *link)
{
    char path[160];
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", world_server.folder);
    proxy_start(&link->proxy, path);
    scratch_make("link", link->folder, sizeof link->folder);
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", link->folder);
    assert_int_equal(symlink(link->proxy.socket, path), 0);
    snprintf(link->uri, sizeof link->uri, "postgresql://postgres@/postgres?host=%s&port=5432",
             link->folder);
}

static void link_close(struct link *link)
{
    proxy_stop(&link->proxy);
    scratch_remove(link->folder);
}

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
    /* Far below the 10 s of a renewal; 50 ms are seen, the rest is for a busy machine. */
    assert_true(coord_clock_now() - ended < 2000);
    assert_int_equal(a->lease->last_end, COORD_END_LOST);
    assert_int_equal(a->stopped, 1);
    candidates_until(&w.all, a, candidate_leads);
    world_close(&w);
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
    candidates_run(&w.all, 300);
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

static void test_postgres_session__the_server_drops_a_holder_that_hangs(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "hang");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    a->frozen = true; /* as SIGSTOP does */
    candidates_until(&w.all, b, candidate_leads);
    a->frozen = false;
    assert_false(candidate_leads(a)); /* before it looks at its socket */
    candidates_run(&w.all, 100);
    assert_int_equal(a->stopped, 1);
    world_close(&w);
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
    assert_string_equal(postgres_server_try(other, "rollback"), "");
    PQfinish(other);
    candidate_stand(a);
    candidates_until(&w.all, a, candidate_leads);
    world_close(&w);
}

/* ---------------------------------------------------------------- silence */

static void test_postgres_session__a_silent_link_ends_the_term_at_its_hard_deadline(void **state)
{
    (void)state;
    struct world w;
    struct link link;
    world_open(&w, "silent");
    link_open(&link);
    w.wish.uri = link.uri;
    struct candidate *a = world_join(&w);
    w.wish.uri = world_server.uri;
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    proxy_stall(&link.proxy, true);
    candidates_until(&w.all, a, candidate_leads_not);
    assert_int_equal(a->lease->last_end, COORD_END_UNRENEWED);
    candidates_until(&w.all, b, candidate_leads); /* the server ended the silent session */
    proxy_stall(&link.proxy, false);
    candidates_until(&w.all, a, candidate_is_held);
    world_close(&w);
    link_close(&link);
}

static void test_postgres_session__a_short_silence_costs_no_term(void **state)
{
    (void)state;
    struct world w;
    struct link link;
    struct coord_share share = {.first = NULL};
    world_open(&w, "short");
    link_open(&link);
    w.wish.uri = link.uri;
    w.wish.share = &share;
    w.wish.ttl = 3000;
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    char second[128];
    postgres_server_name(second, sizeof second, "stalls");
    w.wish.name = second;
    struct candidate *b = world_join(&w);
    candidate_stand(b);
    proxy_stall(&link.proxy, true);
    /* Longer than an attempt, and its acquire is asked again: the session is not closed for it,
     * as that would end the other's term. */
    candidates_run(&w.all, 900);
    proxy_stall(&link.proxy, false);
    candidates_until(&w.all, b, candidate_leads);
    assert_true(candidate_leads(a));
    assert_int_equal(a->started, 1);
    assert_int_equal(a->stopping, 0);
    world_close(&w);
    link_close(&link);
}

/* Its former session hangs behind a link that is dead, and has the lock; another way is open. */
static void test_postgres_session__its_own_former_session_is_waited_out(void **state)
{
    (void)state;
    struct world w;
    struct link link;
    char uri[2 * POSTGRES_URI];
    world_open(&w, "former");
    link_open(&link);
    snprintf(uri, sizeof uri, "postgresql://postgres@/postgres?host=%s,%s&port=5432,5432",
             link.folder, world_server.folder);
    w.wish.uri = uri;
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    const uint64_t fence = a->fence;
    const int64_t former = world_holder(&w);
    proxy_stall(&link.proxy, true);
    candidates_until(&w.all, a, candidate_leads_not);
    candidates_until(&w.all, a, candidate_leads);
    candidates_turn(&w.all, 0); /* its edge */
    assert_true(a->fence > fence);
    assert_int_not_equal(world_holder(&w), former);
    proxy_stall(&link.proxy, false);
    world_close(&w);
    link_close(&link);
}

static void test_postgres_session__a_lost_reply_to_an_acquire_locks_nobody_out(void **state)
{
    (void)state;
    struct world w;
    struct link link;
    world_open(&w, "lost-reply");
    link_open(&link);
    w.wish.uri = link.uri;
    struct candidate *a = world_join(&w);
    proxy_drop_reply(&link.proxy, "coord_acquire");
    candidate_stand(a);
    candidates_until(&w.all, a, candidate_leads);
    assert_int_equal(proxy_dropped(&link.proxy), 1);
    candidates_turn(&w.all, 0);
    assert_int_equal(a->started, 1);
    world_close(&w);
    link_close(&link);
}

/* ---------------------------------------------------------------- locks of others */

static void test_postgres_session__a_table_locked_for_longer_than_a_lease_costs_no_term(
    void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "locked");
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
    candidates_run(&w.all, 200);
    assert_int_equal(world_holder(&w), 0);
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
    candidates_run(&w.all, 100);
    assert_int_equal(world_holder(&w), 0);
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
    candidates_run(&w.all, 300);
    const char *const listeners =
        "select count(*) = 2 from pg_stat_activity where query like 'listen coord%%'";
    assert_int_equal(postgres_server_ask(&world_server, "%s", listeners), 1);
    postgres_server_do(&world_server, "select pg_terminate_backend(pid) from pg_stat_activity "
                                      "where query like 'listen coord%%'");
    candidates_run(&w.all, 1000);
    assert_true(candidate_leads(a)); /* its own session is another */
    assert_int_equal(postgres_server_ask(&world_server, "%s", listeners), 1);
    coord_lease_withdraw(a->lease, coord_clock_now());
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
    w.wish.ttl = 3000;
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
        /* Waiters hold back no vacuum. */
        assert_int_equal(postgres_server_ask(&world_server,
                                             "select count(*) from pg_stat_activity where "
                                             "application_name = 'coord' and state <> 'active' "
                                             "and backend_xmin is not null"),
                         0);
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
        cmocka_unit_test(test_postgres_session__the_server_drops_a_holder_that_hangs),
        cmocka_unit_test(test_postgres_session__a_client_killed_in_mid_query_leaves_no_lock),
        cmocka_unit_test(test_postgres_session__a_silent_link_ends_the_term_at_its_hard_deadline),
        cmocka_unit_test(test_postgres_session__a_short_silence_costs_no_term),
        cmocka_unit_test(test_postgres_session__its_own_former_session_is_waited_out),
        cmocka_unit_test(test_postgres_session__a_lost_reply_to_an_acquire_locks_nobody_out),
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
