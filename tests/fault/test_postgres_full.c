/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_full.c - a server whose connection table is full: what is told, how
 * often it is asked again, and who comes in when a place falls free.
 */
#include "tests/support/postgres_world.h"

#include <poll.h>
#include <stdlib.h>

enum {
    ORDINARY = 5, /* places, beside that of `admin`, for all but superusers */
    EVERYBODY = 7,
    TRIES = 40,
    LEASE = 6000,
    PAUSE_FIRST = 50, /* ms, as in electors/postgres_session.c; doubled with each refusal */
    PAUSE_CAP = 5000, /* ms */
    LOOK = LEASE / 3  /* between two looks of a candidate whether the pause is over */
};

#define RESERVED_TEXT "remaining connection slots are reserved"

static PGconn *admin; /* has its place while a test runs */

static void uri_of(const char *role, char *out)
{
    snprintf(out, POSTGRES_URI, "postgresql://%s@/postgres?host=%s&port=5432", role,
             world_server.folder);
}

/* ---------------------------------------------------------------- who fills it */

struct crowd {
    PGconn *conns[EVERYBODY];
    size_t count;
};

/* So many that there is no place for one more: sessions that are ending still have theirs. */
static void crowd_in(struct crowd *crowd, const char *role, size_t count, const char *refusal)
{
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    char uri[POSTGRES_URI];
    bool full = false;
    uri_of(role, uri);
    strncat(uri, "&application_name=stranger", sizeof uri - strlen(uri) - 1);
    while (!full) {
        PGconn *conn = PQconnectdb(uri);
        const bool in = PQstatus(conn) == CONNECTION_OK;
        full = !in && count == 0;
        if (in) {
            assert_true(count > 0);
            count--;
            crowd->conns[crowd->count++] = conn;
            continue;
        }
        assert_non_null(strstr(PQerrorMessage(conn), refusal));
        PQfinish(conn);
        assert_true(coord_clock_now() < guard);
    }
}

static void crowd_out(struct crowd *crowd, size_t left)
{
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    size_t there = crowd->count;
    while (crowd->count > left) {
        PQfinish(crowd->conns[--crowd->count]);
    }
    while (there > left) {
        PGresult *result = PQexec(admin, "select count(*) from pg_stat_activity where "
                                         "application_name = 'stranger'");
        there = strtoul(PQgetvalue(result, 0, 0), NULL, 10);
        PQclear(result);
        assert_true(coord_clock_now() < guard);
    }
}

static void full_open(struct world *w, const char *what, const char *role)
{
    static char uri[POSTGRES_URI];
    world_open(w, what);
    admin = postgres_server_connect(&world_server);
    uri_of(role, uri);
    w->wish.uri = uri;
    w->wish.ttl = LEASE;
}

static void full_close(struct world *w, struct crowd *crowd)
{
    crowd_out(crowd, 0);
    world_close(w);
    PQfinish(admin);
}

static void terminate(const char *condition)
{
    char text[256];
    snprintf(text, sizeof text,
             "select pg_terminate_backend(pid, 60000) from pg_stat_activity where %s", condition);
    assert_string_equal(postgres_server_try(admin, "%s", text), "");
}

static void until_it_listens(struct world *w, int count)
{
    world_until(w, "select count(*) = %d from pg_stat_activity where query like 'listen coord%%'",
                count);
}

static void told_that_it_is_full(const struct candidate *c, const char *refusal)
{
    assert_int_equal(candidate_reason(c), COORD_REASON_RETRYING);
    assert_int_equal(c->lease->error.code, COORD_E_SERVER_FULL);
    assert_non_null(strstr(c->lease->error.text, refusal));
    assert_non_null(strstr(c->lease->error.text, "53300"));
    assert_non_null(strstr(c->lease->error.text, "raise max_connections"));
}

/* ---------------------------------------------------------------- how often it is tried */

/* A candidate with a clock of its own, which goes on only when there is nothing to wait for from
 * the server: how fast that is, is no part of any pause. */
struct patient {
    struct candidate *c;
    coord_ms now;
    const char *refusal;
    size_t log;
    coord_ms tries[TRIES];
    unsigned count;
};

static void patient_step(struct patient *p)
{
    struct coord_descriptor d[COORD_DESCRIPTORS_MAX];
    struct pollfd fds[COORD_DESCRIPTORS_MAX];
    const size_t count = coord_elector_descriptors(p->c->elector, d);
    const coord_ms due = coord_elector_deadline(p->c->elector);
    for (size_t i = 0; i < count; i++) {
        fds[i] = (struct pollfd){
            .fd = d[i].fd,
            .events = (short)((d[i].read ? POLLIN : 0) | (d[i].write ? POLLOUT : 0))};
    }
    if (count == 0) {
        p->now = coord_ms_max(p->now, due);
    } else if (due > p->now) {
        assert_true(poll(fds, (nfds_t)count, CANDIDATE_PATIENCE) > 0);
    }
    coord_elector_process(p->c->elector, p->now);
    const unsigned refused = postgres_server_counted(&world_server, p->log, p->refusal);
    assert_true(refused <= p->count + 1);
    if (refused > p->count) {
        assert_true(p->count < TRIES);
        p->tries[p->count++] = p->now;
    }
}

static void pauses_grow_to_the_cap(const struct patient *p)
{
    coord_ms least = PAUSE_FIRST;
    for (unsigned i = 1; i < p->count; i++) {
        const coord_ms pause = p->tries[i] - p->tries[i - 1];
        assert_true(pause >= least);
        assert_true(pause <= least + LOOK);
        least = coord_ms_min(2 * least, PAUSE_CAP);
    }
    assert_int_equal(least, PAUSE_CAP);
}

static void waits_for_a_place(const char *role, size_t places, const char *refusal)
{
    struct world w;
    struct crowd crowd = {.count = 0};
    full_open(&w, "patient", role);
    crowd_in(&crowd, role, places, refusal);
    struct patient p = {.c = world_join(&w), .now = coord_clock_now(), .refusal = refusal};
    p.log = postgres_server_log_size(&world_server);
    const coord_ms begun = p.now;
    coord_lease_stand(p.c->lease, p.now);
    while (p.now < begun + 60000) {
        patient_step(&p);
    }
    told_that_it_is_full(p.c, refusal);
    pauses_grow_to_the_cap(&p);
    crowd_out(&crowd, places - 1);
    const coord_ms freed = p.now;
    while (!coord_elector_leading_at(p.c->elector, p.now)) {
        patient_step(&p);
    }
    assert_true(p.now - freed <= PAUSE_CAP + LOOK);
    full_close(&w, &crowd);
}

static void test_postgres_full__a_candidate_tries_again_in_pauses_that_grow_to_a_cap(void **state)
{
    (void)state;
    waits_for_a_place("worker", ORDINARY, RESERVED_TEXT);
}

static void test_postgres_full__so_does_one_for_whom_nothing_is_reserved(void **state)
{
    (void)state;
    waits_for_a_place("postgres", EVERYBODY, "sorry, too many clients already");
}

/* ---------------------------------------------------------------- who is in already */

static void test_postgres_full__a_leader_whose_place_is_taken_hears_of_it_and_comes_back(
    void **state)
{
    (void)state;
    struct world w;
    struct crowd crowd = {.count = 0};
    full_open(&w, "leader", "worker");
    w.wish.ttl = 60000; /* no renewal comes near it */
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    until_it_listens(&w, 1);
    crowd_in(&crowd, "worker", ORDINARY - 2, RESERVED_TEXT);
    terminate("usename = 'worker' and application_name = 'coord'");
    crowd_in(&crowd, "worker", 2, RESERVED_TEXT);
    const uint64_t fence = a->fence;
    candidates_until(&w.all, a, candidate_leads_not);
    assert_true(coord_clock_now() < a->lease->term.hard);
    assert_int_equal(a->lease->last_end, COORD_END_LOST);
    assert_int_equal(a->stopped, 1);
    candidates_until_error(&w.all, a, COORD_E_SERVER_FULL);
    told_that_it_is_full(a, RESERVED_TEXT);
    assert_int_equal(world_holder(&w), 0);
    crowd_out(&crowd, 0);
    candidates_until(&w.all, a, candidate_leads); /* its own term: no wait */
    candidates_turn(&w.all, 0);
    assert_true(a->fence > fence);
    full_close(&w, &crowd);
}

static void test_postgres_full__one_that_is_in_takes_over_from_one_that_is_kept_out(void **state)
{
    (void)state;
    struct world w;
    struct crowd crowd = {.count = 0};
    full_open(&w, "stand-by", "worker");
    w.wish.ttl = 3000;
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    until_it_listens(&w, 2);
    crowd_in(&crowd, "worker", ORDINARY - 4, RESERVED_TEXT);
    terminate("usename = 'worker' and pid in (select pid from pg_locks where locktype = "
              "'advisory' and granted)");
    terminate("usename = 'worker' and query like 'listen%'");
    crowd_in(&crowd, "worker", 3, RESERVED_TEXT);
    candidates_until_error(&w.all, a, COORD_E_SERVER_FULL);
    candidates_until(&w.all, b, candidate_leads);
    candidates_turn(&w.all, 0);
    assert_true(b->fence > a->fence);
    assert_int_equal(a->lease->error.code, COORD_E_SERVER_FULL);
    crowd_out(&crowd, 1);
    candidates_until(&w.all, a, candidate_is_held);
    full_close(&w, &crowd);
}

/* Hints cost speed alone: a process does not keep itself out with the session that listens. */
static void test_postgres_full__a_leader_comes_back_by_the_place_of_its_own_listener(void **state)
{
    (void)state;
    struct world w;
    struct crowd crowd = {.count = 0};
    full_open(&w, "own", "worker");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    until_it_listens(&w, 1);
    crowd_in(&crowd, "worker", ORDINARY - 2, RESERVED_TEXT);
    terminate("usename = 'worker' and pid in (select pid from pg_locks where locktype = "
              "'advisory' and granted)");
    crowd_in(&crowd, "worker", 1, RESERVED_TEXT);
    candidates_until(&w.all, a, candidate_leads_not);
    candidates_until(&w.all, a, candidate_leads);
    assert_int_equal(crowd.count, ORDINARY - 1);
    full_close(&w, &crowd);
}

/* What listens asks again and again, too, and a term does not end by it. */
static void test_postgres_full__a_lost_listener_is_asked_for_in_pauses_that_grow(void **state)
{
    (void)state;
    struct world w;
    struct crowd crowd = {.count = 0};
    full_open(&w, "listener", "worker");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    until_it_listens(&w, 1);
    crowd_in(&crowd, "worker", ORDINARY - 2, RESERVED_TEXT);
    terminate("usename = 'worker' and query like 'listen%'");
    crowd_in(&crowd, "worker", 1, RESERVED_TEXT);
    const size_t log = postgres_server_log_size(&world_server);
    const coord_ms begun = coord_clock_now();
    while (postgres_server_counted(&world_server, log, RESERVED_TEXT) < 3) {
        candidates_turn(&w.all, 50);
    }
    /* 250 ms before the first, and doubled from one to the next. */
    assert_true(coord_clock_now() - begun >= 250 + 500 + 1000);
    assert_true(candidate_leads(a));
    assert_int_equal(a->started, 1);
    assert_int_equal(a->lease->error.code, COORD_OK);
    crowd_out(&crowd, 0);
    until_it_listens(&w, 1);
    full_close(&w, &crowd);
}

static int start(void **state)
{
    (void)state;
    static const char *const options[] = {"max_connections=8", "superuser_reserved_connections=2",
                                          NULL};
    if (world_start_with(options) == 0 && world_server.pid != 0) {
        postgres_server_do(&world_server,
                           "create role worker login; grant usage on schema coord to worker; "
                           "grant select, insert, update on coord.term to worker");
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_full__a_candidate_tries_again_in_pauses_that_grow_to_a_cap),
        cmocka_unit_test(test_postgres_full__so_does_one_for_whom_nothing_is_reserved),
        cmocka_unit_test(
            test_postgres_full__a_leader_whose_place_is_taken_hears_of_it_and_comes_back),
        cmocka_unit_test(test_postgres_full__one_that_is_in_takes_over_from_one_that_is_kept_out),
        cmocka_unit_test(test_postgres_full__a_leader_comes_back_by_the_place_of_its_own_listener),
        cmocka_unit_test(test_postgres_full__a_lost_listener_is_asked_for_in_pauses_that_grow),
    };
    return cmocka_run_group_tests(tests, start, world_stop);
}
