/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_pooler.c - pgbouncer in between: refused, unless it keeps a session
 * with its client and the URI says so.
 */
#include "tests/support/pgbouncer.h"
#include "tests/support/postgres_world.h"

/* In seconds. A session that a client has is kept, and so is the client. */
static const char short_lives[] = "server_lifetime = 1\nserver_idle_timeout = 1\n"
                                  "client_idle_timeout = 1\nserver_check_delay = 0";

static void open_as(struct world *w, struct pgbouncer *pooler, const char *mode, int size,
                    const char *settings, char uri[POSTGRES_URI + 32], const char *option)
{
    pgbouncer_needed();
    world_open(w, mode);
    pgbouncer_start(pooler, &world_server, mode, size, settings);
    snprintf(uri, POSTGRES_URI + 32, "%s%s", pooler->uri, option);
    w->wish.uri = uri;
}

static void open_with(struct world *w, struct pgbouncer *pooler, const char *mode, int size,
                      char uri[POSTGRES_URI + 32], const char *option)
{
    open_as(w, pooler, mode, size, short_lives, uri, option);
}

static void refused_in(const char *mode)
{
    struct world w;
    struct pgbouncer pooler;
    char uri[POSTGRES_URI + 32];
    open_with(&w, &pooler, mode, 5, uri, "");
    struct candidate *a = world_join(&w);
    candidate_stand(a);
    candidates_until_error(&w.all, a, COORD_E_POOLER);
    assert_non_null(strstr(a->lease->error.text, "coord.pooler=session"));
    assert_int_equal(a->started, 0);
    assert_int_equal(world_holder(&w), 0);
    world_abandon(&w);
    pgbouncer_stop(&pooler);
}

static void test_postgres_pooler__is_refused_in_session_mode(void **state)
{
    (void)state;
    refused_in("session");
}

static void test_postgres_pooler__is_refused_in_transaction_mode(void **state)
{
    (void)state;
    refused_in("transaction");
}

static void test_postgres_pooler__works_in_session_mode_when_the_uri_says_so(void **state)
{
    (void)state;
    struct world w;
    struct pgbouncer pooler;
    char uri[POSTGRES_URI + 32];
    open_with(&w, &pooler, "session", 20, uri, "&coord.pooler=session");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    w.wish.uri = world_server.uri;
    struct candidate *direct = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidate_stand(direct);
    candidates_run(&w.all, 1500);
    assert_true(candidate_leads(a));
    assert_int_equal(a->started, 1);
    coord_lease_withdraw(a->lease, coord_clock_now());
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (!candidate_leads(b) && !candidate_leads(direct)) {
        candidates_turn(&w.all, 50);
        assert_true(coord_clock_now() < guard);
    }
    assert_int_equal(w.all.overlaps, 0);
    world_abandon(&w);
    pgbouncer_stop(&pooler);
}

/* What a client of the pool is answered; in transaction mode over whatever session is free. */
static void through(const struct pgbouncer *pooler, const char *text, char *out, size_t room)
{
    PGconn *conn = PQconnectdb(pooler->uri);
    PGresult *result = PQexec(conn, text);
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK) {
        fail_msg("%s: %s", text, PQerrorMessage(conn));
    }
    snprintf(out, room, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(conn);
}

static void test_postgres_pooler__outlives_the_lifetime_of_its_sessions(void **state)
{
    (void)state;
    struct world w;
    struct pgbouncer pooler;
    char uri[POSTGRES_URI + 32];
    char younger[16];
    open_with(&w, &pooler, "session", 20, uri, "&coord.pooler=session");
    w.wish.ttl = 6000; /* renewed every two seconds: its client is idle for longer than allowed */
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    const int64_t holder = world_holder(&w);
    PGconn *idle = PQconnectdb(pooler.uri); /* asks nothing, so it has no session of the server */
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (PQconsumeInput(idle) == 1) {
        candidates_run(&w.all, 20);
        assert_true(coord_clock_now() < guard);
    }
    PQfinish(idle);
    through(&pooler, "select pg_backend_pid()", younger, sizeof younger);
    world_until(&w, "select count(*) = 0 from pg_stat_activity where pid = %s", younger);
    assert_true(candidate_leads(a));
    assert_int_equal(a->started, 1);
    assert_int_equal(world_holder(&w), holder);
    world_abandon(&w);
    pgbouncer_stop(&pooler);
}

/* In transaction mode a pool of one gives every client the same session of the server. Said to be
 * in session mode, it must not make two leaders. */
static void test_postgres_pooler__that_lies_makes_no_two_leaders(void **state)
{
    (void)state;
    struct world w;
    struct pgbouncer pooler;
    char uri[POSTGRES_URI + 32];
    open_with(&w, &pooler, "transaction", 1, uri, "&coord.pooler=session");
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_stand(a);
    candidate_stand(b);
    candidates_run(&w.all, 3000);
    assert_int_equal(w.all.overlaps, 0);
    world_abandon(&w);
    pgbouncer_stop(&pooler);
}

/* A pool of one in transaction mode, and a leader whose statements are prepared in its session. */
static struct candidate *lead_through_one(struct world *w, struct pgbouncer *pooler,
                                          char uri[POSTGRES_URI + 32])
{
    open_as(w, pooler, "transaction", 1, "", uri, "&coord.pooler=session");
    w->wish.ttl = 3000;
    struct candidate *a = world_join(w);
    candidate_win(&w->all, a);
    coord_lease_renew(a->lease, coord_clock_now());
    candidates_run(&w->all, 100);
    return a;
}

static void expect_loss(struct world *w, struct pgbouncer *pooler, const struct candidate *a)
{
    char answer[16];
    candidates_until(&w->all, a, candidate_leads_not);
    assert_int_equal(a->lease->last_end, COORD_END_LOST);
    assert_int_equal(a->lease->error.code, COORD_E_POOLER);
    /* What it leads on next is set up as the first one was. */
    candidates_until(&w->all, a, candidate_leads);
    through(pooler, "show synchronous_commit", answer, sizeof answer);
    assert_string_equal(answer, "local");
    world_abandon(w);
    pgbouncer_stop(pooler);
}

static void reset_by(const char *statement)
{
    struct world w;
    struct pgbouncer pooler;
    char uri[POSTGRES_URI + 32];
    struct candidate *a = lead_through_one(&w, &pooler, uri);
    PGconn *other = PQconnectdb(pooler.uri); /* gets the same session */
    assert_string_equal(postgres_server_try(other, "%s", statement), "");
    PQfinish(other);
    expect_loss(&w, &pooler, a);
}

static void test_postgres_pooler__that_unlocks_is_noticed(void **state)
{
    (void)state;
    reset_by("select pg_advisory_unlock_all()");
}

static void test_postgres_pooler__that_resets_its_session_is_noticed(void **state)
{
    (void)state;
    reset_by("discard all");
}

/* What we prepared is not known to the new one: that it answers proves nothing. */
static void test_postgres_pooler__that_replaces_its_session_is_noticed(void **state)
{
    (void)state;
    struct world w;
    struct pgbouncer pooler;
    char uri[POSTGRES_URI + 32];
    struct candidate *a = lead_through_one(&w, &pooler, uri);
    world_terminate(&w);
    expect_loss(&w, &pooler, a);
}

static bool leads_or_knows_why(const struct candidate *candidate)
{
    return candidate_leads(candidate) || candidate->lease->error.code == COORD_E_POOLER;
}

/* Whoever died in this pool leaves its lock, and what it had prepared, to the next client. */
static void test_postgres_pooler__that_resets_nothing_gives_no_term_away(void **state)
{
    (void)state;
    struct world w;
    struct pgbouncer pooler;
    char uri[POSTGRES_URI + 32];
    open_as(&w, &pooler, "session", 20, "server_reset_query =", uri, "&coord.pooler=session");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    const coord_ms hard = a->lease->term.hard;
    const uint64_t fence = a->fence;
    candidate_free(&w.all, a);
    struct candidate *b = world_join(&w);
    candidate_stand(b);
    candidates_until(&w.all, b, leads_or_knows_why);
    if (candidate_leads(b)) {
        candidates_turn(&w.all, 0); /* its edge */
        assert_true(b->started_at + 2 >= hard);
        assert_true(b->fence > fence);
    } else {
        assert_non_null(strstr(b->lease->error.text, "server_reset_query"));
    }
    world_abandon(&w);
    pgbouncer_stop(&pooler);
}

static void test_postgres_pooler__that_goes_away_ends_the_term(void **state)
{
    (void)state;
    struct world w;
    struct pgbouncer pooler;
    char uri[POSTGRES_URI + 32];
    open_with(&w, &pooler, "session", 20, uri, "&coord.pooler=session");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidates_run(&w.all, 100);
    pgbouncer_stop(&pooler); /* both its sides end */
    candidates_until(&w.all, a, candidate_leads_not);
    assert_int_equal(a->lease->last_end, COORD_END_LOST);
    world_abandon(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_pooler__is_refused_in_session_mode),
        cmocka_unit_test(test_postgres_pooler__is_refused_in_transaction_mode),
        cmocka_unit_test(test_postgres_pooler__works_in_session_mode_when_the_uri_says_so),
        cmocka_unit_test(test_postgres_pooler__outlives_the_lifetime_of_its_sessions),
        cmocka_unit_test(test_postgres_pooler__that_lies_makes_no_two_leaders),
        cmocka_unit_test(test_postgres_pooler__that_unlocks_is_noticed),
        cmocka_unit_test(test_postgres_pooler__that_resets_its_session_is_noticed),
        cmocka_unit_test(test_postgres_pooler__that_replaces_its_session_is_noticed),
        cmocka_unit_test(test_postgres_pooler__that_resets_nothing_gives_no_term_away),
        cmocka_unit_test(test_postgres_pooler__that_goes_away_ends_the_term),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
