/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres.c - elections on a real PostgreSQL: terms, and what a takeover owes.
 */
#include "tests/support/postgres_world.h"

#include <inttypes.h>

/* ---------------------------------------------------------------- terms */

static void test_postgres__a_new_name_leads_at_once(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "new");
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until(&w.all, a, candidate_leads);
    assert_true(a->lease->term.fence > 0);
    candidate_resign(&w.all, a);
    assert_int_equal(a->lease->release, COORD_RELEASE_RELEASED);
    assert_int_equal(a->stopped, 1);
    assert_int_equal(world_holder(&w), 0);
    world_close(&w);
}

static void test_postgres__a_resigned_term_is_followed_at_once_by_a_higher_fence(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "follow");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    assert_string_equal(b->lease->leader.identity, "a");
    coord_lease_withdraw(a->lease, coord_clock_now());
    candidates_until(&w.all, b, candidate_leads);
    candidates_turn(&w.all, 0);
    assert_true(b->fence > a->fence);
    assert_int_equal(b->lease->term.debt, 0);
    world_close(&w);
}

static void test_postgres__a_term_is_renewed_for_longer_than_its_lease(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "renew");
    w.wish.ttl = 500;
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidates_run(&w.all, 1500);
    assert_true(candidate_leads(a));
    assert_int_equal(a->started, 1);
    world_close(&w);
}

static void test_postgres__any_byte_may_be_in_a_name(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "bytes");
    w.wish.name = "caf\xc3\xa9 {100%} \"'; \\ \xff\x01";
    w.wish.identity = "caf\xe9 \xf0\x9f\x90\x98";
    w.wish.metadata = "http://10.0.0.1:8080/ \"x\" \\ \xff";
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    const struct coord_request query = {.verb = COORD_VERB_OBSERVE};
    assert_int_equal(candidate_query(&w.all, a, &query), COORD_HELD);
    assert_true(a->lease->leader.leading);
    assert_string_equal(a->lease->leader.identity, "caf%e9 %f0%9f%90%98");
    assert_int_equal(a->lease->leader.metadata_bytes, strlen(w.wish.metadata));
    assert_memory_equal(a->lease->leader.metadata, w.wish.metadata, strlen(w.wish.metadata));
    candidate_resign(&w.all, a);
    world_close(&w);
}

static void test_postgres__many_elections_share_one_session(void **state)
{
    (void)state;
    struct world w;
    struct coord_share share = {.first = NULL};
    char names[10][128];
    world_open(&w, "many");
    w.wish.share = &share;
    w.wish.ttl = 3000;
    /* Those of earlier tests take a moment to end. */
    postgres_server_until(&world_server, "select count(*) = 0 from pg_stat_activity where "
                                         "application_name = 'coord'");
    for (size_t i = 0; i < 10; i++) {
        postgres_server_name(names[i], sizeof names[i], "one-of-many");
        w.wish.name = names[i];
        candidate_win(&w.all, world_join(&w));
    }
    candidates_run(&w.all, 1500);
    /* The one that elects, and the one that listens. */
    world_until(&w, "select count(*) = 2 from pg_stat_activity where application_name = 'coord'");
    candidate_free(&w.all, w.all.list[0]); /* its lock goes, the others stay */
    world_until(&w, "select count(*) = 9 from pg_locks where locktype = 'advisory'");
    for (size_t i = 0; i < w.all.count; i++) {
        assert_true(candidate_leads(w.all.list[i]));
        assert_int_equal(w.all.list[i]->started, 1);
    }
    world_close(&w);
}

/* Each has a shorter lease: the second is there before the server has told the settings for the
 * first. */
static void test_postgres__elections_that_join_in_a_row_cost_no_term(void **state)
{
    (void)state;
    struct world w;
    struct coord_share share = {.first = NULL};
    char names[2][128];
    world_open(&w, "row");
    w.wish.share = &share;
    w.wish.ttl = 4000;
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    for (size_t i = 0; i < 2; i++) {
        postgres_server_name(names[i], sizeof names[i], "joins");
        w.wish.name = names[i];
        w.wish.ttl /= 2;
        struct candidate *b = world_join(&w);
        candidate_stand(b);
        coord_elector_process(b->elector, coord_clock_now());
    }
    for (size_t i = 0; i < w.all.count; i++) {
        candidates_until(&w.all, w.all.list[i], candidate_leads);
    }
    candidates_turn(&w.all, 0); /* their edges */
    assert_int_equal(a->started, 1);
    assert_int_equal(a->stopping, 0);
    world_close(&w);
}

static void test_postgres__a_second_elector_of_a_name_on_one_session_is_refused(void **state)
{
    (void)state;
    struct world w;
    struct coord_share share = {.first = NULL};
    struct coord_error error;
    struct candidate *second = NULL;
    world_open(&w, "twice");
    w.wish.share = &share;
    struct candidate *a = world_join(&w);
    assert_int_equal(candidate_try(&w.all, &w.wish, &second, &error), COORD_E_DUPLICATE_ELECTION);
    candidate_win(&w.all, a);
    world_close(&w);
}

/* ---------------------------------------------------------------- what is owed */

static void test_postgres__after_a_crash_the_successor_waits_a_lease(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "crash");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    const coord_ms ended = coord_clock_now();
    candidate_free(&w.all, a); /* its session ends, nothing is marked */
    candidates_until(&w.all, b, candidate_waits);
    assert_true(b->lease->term.debt >= 1000);
    assert_int_equal(postgres_server_ask(
                         &world_server, "select debt_ms from coord.term where name = '%s'", w.name),
                     1000);
    candidates_until(&w.all, b, candidate_leads);
    assert_true(coord_clock_now() - ended >= 1000);
    /* The renewal with which it began to lead struck the debt. */
    assert_int_equal(postgres_server_ask(
                         &world_server, "select debt_ms from coord.term where name = '%s'", w.name),
                     0);
    world_close(&w);
}

static void test_postgres__a_debt_does_not_shrink_when_one_dies_that_waits(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "debt");
    w.wish.ttl = 3000;
    struct candidate *a = world_join(&w);
    w.wish.ttl = 600;
    struct candidate *b = world_join(&w);
    struct candidate *c = world_join(&w);
    candidate_win(&w.all, a);
    candidate_free(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_waits);
    candidate_free(&w.all, b);
    candidate_stand(c);
    candidates_until(&w.all, c, candidate_waits);
    assert_int_equal(c->lease->term.debt, 3000);
    world_close(&w);
}

static void test_postgres__one_that_gives_up_while_it_waits_leaves_the_debt(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "give-up");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    struct candidate *c = world_join(&w);
    candidate_win(&w.all, a);
    candidate_free(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_waits);
    candidate_resign(&w.all, b); /* an undo: resigns nothing */
    candidate_stand(c);
    candidates_until(&w.all, c, candidate_waits);
    assert_int_equal(c->lease->term.debt, 1000);
    world_close(&w);
}

static void test_postgres__its_own_ended_term_costs_no_wait(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "own");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    const uint64_t first = a->fence;
    world_terminate(&w);
    candidates_until(&w.all, a, candidate_leads_not);
    candidates_until(&w.all, a, candidate_leads);
    candidates_turn(&w.all, 0);
    assert_int_equal(a->started, 2);
    assert_int_equal(a->stopped, 1);
    assert_int_equal(a->lease->term.debt, 0);
    assert_true(a->fence > first);
    world_close(&w);
}

static void test_postgres__no_record_is_clear_only_in_a_table_that_was_never_emptied(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "truncate");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    postgres_server_do(&world_server, "truncate coord.term");
    candidates_until_error(&w.all, a, COORD_E_FOREIGN_RECORD); /* the row is gone: lost */
    assert_false(candidate_leads(a));
    coord_lease_withdraw(a->lease, coord_clock_now());
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_waits);
    assert_int_equal(b->lease->term.debt, 1000);
    candidates_until(&w.all, b, candidate_leads);
    /* So the next tests begin with new names that lead at once. */
    candidates_free(&w.all);
    postgres_server_do(&world_server, "drop table coord.term");
    world_prepare(&world_server);
    world_close(&w);
}

static void test_postgres__who_has_seen_a_fence_takes_no_record_for_clear(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "seen");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    const uint64_t seen = b->lease->seen;
    assert_true(seen >= a->fence);
    postgres_server_do(&world_server, "delete from coord.term where name = '%s'", w.name);
    candidate_free(&w.all, a);
    candidates_until(&w.all, b, candidate_waits);
    assert_int_equal(b->lease->term.debt, 1000);
    assert_true(b->lease->term.fence > seen);
    world_close(&w);
}

static void test_postgres__an_old_row_put_back_ends_the_term_and_gives_no_second_leader(
    void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "put-back");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidate_resign(&w.all, a);
    postgres_server_do(&world_server,
                       "create table old as select * from coord.term where name = '%s'", w.name);
    candidate_win(&w.all, a);
    const coord_ms hard = a->lease->term.hard;
    a->deaf = true; /* its host has not said that its work ended */
    postgres_server_do(&world_server,
                       "begin; delete from coord.term where name = '%s'; insert into coord.term "
                       "select * from old; drop table old; commit",
                       w.name);
    candidates_until(&w.all, a, candidate_leads_not);
    /* The record says resigned, but another wrote it; and the lock is kept until the term has
     * ended by its own clock. */
    struct candidate *c = world_join(&w);
    candidate_stand(c);
    candidates_until(&w.all, c, candidate_leads);
    candidates_turn(&w.all, 0);
    assert_true(c->started_at + 2 >= hard);
    assert_true(c->fence > a->fence);
    world_close(&w);
}

static void test_postgres__a_row_of_another_run_is_owed_and_its_fence_leaps(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "run");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidate_resign(&w.all, a);
    const uint64_t clock = coord_clock_wall_us();
    /* As a dump of another cluster brings it, or a standby that was promoted. */
    postgres_server_do(
        &world_server,
        "update coord.term set run = '7000000000000000000/1/16400' where name = '%s'", w.name);
    candidate_stand(a);
    candidates_until(&w.all, a, candidate_waits);
    assert_int_equal(a->lease->term.debt, 1000);
    assert_true(a->lease->term.fence > clock + (UINT64_C(1) << 32));
    candidates_until(&w.all, a, candidate_leads);
    world_close(&w);
}

static void test_postgres__a_server_behind_what_was_seen_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "stale");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidate_resign(&w.all, a);
    /* An old primary knows less than its successor, of which this process has heard. */
    a->lease->seen += 1000000;
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_STALE_SERVER);
    assert_int_equal(candidate_reason(a), COORD_REASON_REFUSED);
    assert_int_equal(world_holder(&w), 0);
    world_close(&w);
}

/* ---------------------------------------------------------------- options of the election */

static void test_postgres__fast_leads_without_the_wait_and_others_must_agree(void **state)
{
    (void)state;
    struct world w;
    char fast[POSTGRES_URI + 32];
    char said[POSTGRES_URI + 32];
    world_open(&w, "fast");
    snprintf(fast, sizeof fast, "%s&coord.takeover=fast", world_server.uri);
    snprintf(said, sizeof said, "%s&coord.takeover=safe", world_server.uri);
    w.wish.uri = fast;
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    w.wish.uri = world_server.uri;
    struct candidate *safe = world_join(&w);
    w.wish.uri = said;
    struct candidate *operator= world_join(&w);
    candidate_win(&w.all, a);
    candidate_free(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_leads);
    assert_int_equal(b->lease->term.debt, 0);
    candidate_resign(&w.all, b);
    candidate_stand(safe);
    candidates_until_error(&w.all, safe, COORD_E_TAKEOVER_MISMATCH);
    /* The operator's word changes it while nobody leads. */
    const struct coord_request init = {.verb = COORD_VERB_INIT};
    assert_int_equal(candidate_query(&w.all, safe, &init), COORD_DONE);
    candidates_run(&w.all, 500);
    assert_false(candidate_leads(safe)); /* what was not said stays */
    assert_int_equal(candidate_query(&w.all, operator, & init), COORD_DONE);
    candidates_until(&w.all, safe, candidate_leads);
    world_close(&w);
}

static void test_postgres__init_of_a_name_spares_the_wait_but_not_under_a_leader(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "init");
    const struct coord_request init = {.verb = COORD_VERB_INIT};
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    assert_int_equal(candidate_query(&w.all, b, &init), COORD_FAILED);
    assert_int_equal(b->lease->query_error.code, COORD_E_BUSY);
    assert_true(candidate_leads(a));
    const uint64_t first = a->fence;
    candidate_free(&w.all, a);
    /* The server needs a moment to see that its session has gone. */
    postgres_server_until(&world_server,
                          "select count(*) = 0 from pg_locks where locktype = 'advisory'");
    assert_int_equal(candidate_query(&w.all, b, &init), COORD_DONE);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_leads);
    assert_int_equal(b->lease->term.debt, 0);
    assert_true(b->lease->term.fence > first);
    world_close(&w);
}

static void test_postgres__a_step_down_goes_to_the_one_it_names(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "step-down");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    struct candidate *c = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidate_stand(c);
    candidates_until(&w.all, c, candidate_is_held);
    const struct coord_request ask = {
        .verb = COORD_VERB_ASK, .fence = a->fence, .successor = "c", .reserve = 5000};
    assert_int_equal(candidate_query(&w.all, b, &ask), COORD_DONE);
    candidates_until(&w.all, c, candidate_leads);
    assert_int_equal(b->started, 0);
    assert_int_equal(a->lease->last_end, COORD_END_STEPPED_DOWN);
    /* The request was for that fence alone. */
    assert_int_equal(candidate_query(&w.all, b, &ask), COORD_NOBODY);
    world_close(&w);
}

static void test_postgres__a_foreign_holder_of_the_lock_is_no_leader(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "foreign");
    struct candidate *a = world_join(&w);
    PGconn *conn = postgres_server_connect(&world_server);
    /* The lock manager of the seed library takes the same number. */
    assert_string_equal(postgres_server_try(conn, "select pg_advisory_lock(%" PRIu64 ")",
                                            coord_postgres_key(w.name, strlen(w.name))),
                        "");
    candidate_stand(a);
    candidates_until(&w.all, a, candidate_is_held);
    const struct coord_request query = {.verb = COORD_VERB_OBSERVE};
    assert_int_equal(candidate_query(&w.all, a, &query), COORD_HELD);
    assert_false(a->lease->leader.leading);
    assert_string_equal(a->lease->leader.identity, "");
    PQfinish(conn);
    candidates_until(&w.all, a, candidate_leads);
    world_close(&w);
}

static void test_postgres__two_names_on_one_key_are_told_apart(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "collision");
    struct candidate *a = world_join(&w);
    const uint64_t key = coord_postgres_key(w.name, strlen(w.name));
    postgres_server_do(&world_server,
                       "insert into coord.term (name, key, fence, takeover, owner, identity, pid, "
                       "lease_ms, debt_ms, resigned, since) values ('%.100s-other', %" PRIu64
                       ", 1, 'safe', 'x', 'x', 1, 0, 0, true, now())",
                       w.name, key);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_KEY_COLLISION);
    assert_int_equal(world_holder(&w), 0);
    postgres_server_do(&world_server,
                       "update coord.term set name = '%s', key = 5 where key = "
                       "%" PRIu64,
                       w.name, key);
    candidates_run(&w.all, 600);
    assert_int_equal(a->lease->error.code, COORD_E_KEY_COLLISION);
    postgres_server_do(&world_server, "delete from coord.term where name = '%s'", w.name);
    candidates_until(&w.all, a, candidate_leads);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres__a_new_name_leads_at_once),
        cmocka_unit_test(test_postgres__a_resigned_term_is_followed_at_once_by_a_higher_fence),
        cmocka_unit_test(test_postgres__a_term_is_renewed_for_longer_than_its_lease),
        cmocka_unit_test(test_postgres__any_byte_may_be_in_a_name),
        cmocka_unit_test(test_postgres__many_elections_share_one_session),
        cmocka_unit_test(test_postgres__elections_that_join_in_a_row_cost_no_term),
        cmocka_unit_test(test_postgres__a_second_elector_of_a_name_on_one_session_is_refused),
        cmocka_unit_test(test_postgres__after_a_crash_the_successor_waits_a_lease),
        cmocka_unit_test(test_postgres__a_debt_does_not_shrink_when_one_dies_that_waits),
        cmocka_unit_test(test_postgres__one_that_gives_up_while_it_waits_leaves_the_debt),
        cmocka_unit_test(test_postgres__its_own_ended_term_costs_no_wait),
        cmocka_unit_test(test_postgres__no_record_is_clear_only_in_a_table_that_was_never_emptied),
        cmocka_unit_test(test_postgres__who_has_seen_a_fence_takes_no_record_for_clear),
        cmocka_unit_test(
            test_postgres__an_old_row_put_back_ends_the_term_and_gives_no_second_leader),
        cmocka_unit_test(test_postgres__a_row_of_another_run_is_owed_and_its_fence_leaps),
        cmocka_unit_test(test_postgres__a_server_behind_what_was_seen_is_refused),
        cmocka_unit_test(test_postgres__fast_leads_without_the_wait_and_others_must_agree),
        cmocka_unit_test(test_postgres__init_of_a_name_spares_the_wait_but_not_under_a_leader),
        cmocka_unit_test(test_postgres__a_step_down_goes_to_the_one_it_names),
        cmocka_unit_test(test_postgres__a_foreign_holder_of_the_lock_is_no_leader),
        cmocka_unit_test(test_postgres__two_names_on_one_key_are_told_apart),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
