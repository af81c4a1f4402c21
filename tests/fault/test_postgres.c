/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres.c - elections on a real PostgreSQL: terms, takeovers, rights.
 */
#include "electors/postgres.h"
#include "runtime/clock.h"
#include "tests/support/postgres_candidate.h"
#include "tests/support/postgres_server.h"
#include "tests/support/support.h"

#include <stdlib.h>

static struct postgres_server server;

static int start_server(void **state)
{
    (void)state;
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    struct coord_error error = {.code = COORD_OK};
    if (postgres_server_programs() == NULL) {
        return 0; /* each test says so */
    }
    postgres_server_start(&server, NULL);
    if (coord_postgres_init(server.uri, grants, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    postgres_server_stop(&server);
    return 0;
}

struct world {
    struct candidates all;
    char name[128];
    struct candidate_wish wish;
};

static struct world open_world(const char *what)
{
    postgres_server_needed();
    struct world w = {.all = {.count = 0}};
    postgres_server_name(w.name, sizeof w.name, what);
    w.wish.uri = server.uri;
    return w;
}

static struct candidate *join(struct world *w)
{
    w->wish.name = w->name;
    return candidate_new(&w->all, &w->wish);
}

static void close_world(struct world *w)
{
    candidates_free(&w->all);
}

/* ---------------------------------------------------------------- terms */

static void test_postgres__a_new_name_leads_at_once(void **state)
{
    (void)state;
    struct world w = open_world("new");
    struct candidate *a = join(&w);
    candidate_stand(a);
    candidates_until(&w.all, a, candidate_leads);
    assert_true(candidate_reason(a) == COORD_REASON_LEADING);
    assert_true(a->lease->term.fence > 0);
    candidate_resign(&w.all, a);
    assert_int_equal(a->lease->release, COORD_RELEASE_RELEASED);
    assert_int_equal(a->stopped, 1);
    close_world(&w);
}

static void test_postgres__a_resigned_term_is_followed_at_once_by_a_higher_fence(void **state)
{
    (void)state;
    struct world w = open_world("follow");
    struct candidate *a = join(&w);
    struct candidate *b = join(&w);
    candidate_win(&w.all, a);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_is_held);
    assert_string_equal(b->lease->leader.identity, "a");
    candidate_resign(&w.all, a);
    candidates_until(&w.all, b, candidate_leads);
    candidates_turn(&w.all, 0);
    assert_true(b->fence > a->fence);
    assert_int_equal(w.all.overlaps, 0);
    close_world(&w);
}

static void test_postgres__a_term_is_renewed_for_longer_than_its_lease(void **state)
{
    (void)state;
    struct world w = open_world("renew");
    w.wish.ttl = 300;
    struct candidate *a = join(&w);
    candidate_win(&w.all, a);
    candidates_run(&w.all, 1000);
    assert_true(candidate_leads(a));
    assert_int_equal(a->started, 1);
    assert_int_equal(a->stopping, 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres__a_new_name_leads_at_once),
        cmocka_unit_test(test_postgres__a_resigned_term_is_followed_at_once_by_a_higher_fence),
        cmocka_unit_test(test_postgres__a_term_is_renewed_for_longer_than_its_lease),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
