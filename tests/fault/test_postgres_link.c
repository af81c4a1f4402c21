/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_link.c - links between the elector and its server that fall silent, for
 * a while or for good, or lose an answer.
 */
#include "tests/support/postgres_link.h"
#include "tests/support/postgres_world.h"

/* ---------------------------------------------------------------- silence */

static void test_postgres_link__a_silent_link_ends_the_term_at_its_hard_deadline(void **state)
{
    (void)state;
    struct world w;
    struct link link;
    world_open(&w, "silent");
    link_open(&link, &world_server);
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

static void test_postgres_link__a_short_silence_costs_no_term(void **state)
{
    (void)state;
    struct world w;
    struct link link;
    struct coord_share share = {.first = NULL};
    world_open(&w, "short");
    link_open(&link, &world_server);
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
static void test_postgres_link__its_own_former_session_is_waited_out(void **state)
{
    (void)state;
    struct world w;
    struct link link;
    char uri[2 * POSTGRES_URI];
    world_open(&w, "former");
    link_open(&link, &world_server);
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

static void test_postgres_link__a_lost_reply_to_an_acquire_locks_nobody_out(void **state)
{
    (void)state;
    struct world w;
    struct link link;
    world_open(&w, "lost-reply");
    link_open(&link, &world_server);
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

static void test_postgres_link__a_server_that_ends_each_session_is_not_hurried(void **state)
{
    enum {
        WHILE = 2000, /* ms */
        MOST = 15     /* connections: the pauses grow, so it makes some 8, however fast they end */
    };
    (void)state;
    struct world w;
    struct link link;
    world_open(&w, "ended");
    link_open(&link, &world_server);
    w.wish.uri = link.uri;
    struct candidate *a = world_join(&w);
    proxy_end_behind(&link.proxy, "pg_is_in_recovery"); /* the answer to its probe */
    candidate_stand(a);
    candidates_run(&w.all, WHILE);
    assert_in_range(proxy_clients(&link.proxy), 2, MOST);
    proxy_end_behind(&link.proxy, NULL);
    candidates_until(&w.all, a, candidate_leads);
    world_close(&w);
    link_close(&link);
}

/* ---------------------------------------------------------------- many on one link */

static void test_postgres_link__renewals_of_many_elections_go_together(void **state)
{
    (void)state;
    enum {
        MANY = 20,
        TTL = 3000,
        WHILE = 3000 /* ms: three renewals of each */
    };
    struct world w;
    struct link link;
    struct coord_share share = {.first = NULL};
    char names[MANY][128];
    world_open(&w, "together");
    link_open(&link, &world_server);
    w.wish.uri = link.uri;
    w.wish.share = &share;
    w.wish.ttl = TTL;
    for (size_t i = 0; i < MANY; i++) {
        postgres_server_name(names[i], sizeof names[i], "together");
        w.wish.name = names[i];
        candidate_win(&w.all, world_join(&w));
    }
    const unsigned before = proxy_requests(&link.proxy);
    candidates_run(&w.all, WHILE);
    /* One by one they would be sixty. */
    assert_true(proxy_requests(&link.proxy) - before < 30);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(candidate_leads(w.all.list[i]));
        assert_int_equal(w.all.list[i]->started, 1);
    }
    world_close(&w);
    link_close(&link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_link__a_silent_link_ends_the_term_at_its_hard_deadline),
        cmocka_unit_test(test_postgres_link__a_short_silence_costs_no_term),
        cmocka_unit_test(test_postgres_link__its_own_former_session_is_waited_out),
        cmocka_unit_test(test_postgres_link__a_lost_reply_to_an_acquire_locks_nobody_out),
        cmocka_unit_test(test_postgres_link__a_server_that_ends_each_session_is_not_hurried),
        cmocka_unit_test(test_postgres_link__renewals_of_many_elections_go_together),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
