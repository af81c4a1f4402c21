/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_records.c - what the row says after its server's clock stepped, or
 * somebody put an older one back.
 */
#include "tests/support/postgres_world.h"

#include <inttypes.h>

static bool stands_aside(const struct candidate *candidate)
{
    return candidate_reason(candidate) == COORD_REASON_STANDING_ASIDE;
}

static void test_postgres_records__a_reservation_ends_though_the_clock_steps_back(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "reserved");
    w.wish.ttl = 4000;
    struct candidate *a = world_join(&w);
    struct candidate *b = world_join(&w);
    w.wish.rank = 1;
    struct candidate *c = world_join(&w);
    candidate_win(&w.all, a);
    assert_int_equal(coord_lease_step_down(a->lease, "absent", coord_clock_now()), COORD_OK);
    candidates_until(&w.all, a, stands_aside);
    coord_lease_withdraw(a->lease, coord_clock_now());
    /* As it looks when the clock has stepped back by two hours. */
    postgres_server_do(&world_server,
                       "update coord.term set reserved_until = reserved_until + interval '2 hours' "
                       "where name = '%s' and successor = 'absent'",
                       w.name);
    const struct coord_request look = {.verb = COORD_VERB_OBSERVE};
    assert_int_equal(candidate_query(&w.all, c, &look), COORD_FREE);
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_leads);
    world_close(&w);
}

/* It says that its term resigned, and it did: but others came after it. */
static void test_postgres_records__a_row_that_was_put_back_is_owed_and_its_fence_leaps(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "put-back");
    struct candidate *a = world_join(&w);
    candidate_win(&w.all, a);
    candidate_resign(&w.all, a);
    postgres_server_do(&world_server,
                       "create table copy as select * from coord.term where name = '%s'", w.name);
    candidate_win(&w.all, a);
    const uint64_t last = a->fence;
    candidate_resign(&w.all, a);
    candidate_free(&w.all, a);
    postgres_server_do(&world_server,
                       "begin; delete from coord.term where name = '%s'; "
                       "insert into coord.term select * from copy; drop table copy; commit",
                       w.name);
    const uint64_t clock = coord_clock_wall_us();
    struct candidate *b = world_join(&w); /* it has seen none of the fences */
    candidate_stand(b);
    candidates_until(&w.all, b, candidate_waits);
    assert_int_equal(b->lease->term.debt, 1000);
    candidates_until(&w.all, b, candidate_leads);
    candidates_turn(&w.all, 0);
    assert_true(b->fence > last);
    assert_true(b->fence > clock + (UINT64_C(1) << 32));
    /* Its own row is of the present run again. */
    candidate_resign(&w.all, b);
    candidate_win(&w.all, b);
    assert_int_equal(b->lease->term.debt, 0);
    world_close(&w);
}

static bool is_refused(const struct candidate *candidate)
{
    return candidate_reason(candidate) == COORD_REASON_REFUSED;
}

/* Neither comes from us: no fence can follow the one, and no answer has room for the other. */
static void test_postgres_records__values_that_coord_never_writes_are_called_that(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "never");
    struct candidate *a = world_join(&w);
    const struct coord_request look = {.verb = COORD_VERB_OBSERVE};
    candidate_win(&w.all, a);
    postgres_server_do(&world_server,
                       "update coord.term set since = '1901-01-01' where name = '%s'", w.name);
    assert_int_equal(candidate_query(&w.all, a, &look), COORD_HELD);
    assert_int_equal(a->lease->leader.since_us, 0); /* unknown */
    postgres_server_do(&world_server, "update coord.term set since = 'infinity' where name = '%s'",
                       w.name);
    assert_int_equal(candidate_query(&w.all, a, &look), COORD_FAILED);
    assert_int_equal(a->lease->query_error.code, COORD_E_FOREIGN_RECORD);
    candidate_resign(&w.all, a);
    postgres_server_do(
        &world_server,
        "update coord.term set since = now(), successor = 'absent', reserved_until = 'infinity' "
        "where name = '%s'",
        w.name);
    assert_int_equal(candidate_query(&w.all, a, &look), COORD_FAILED);
    assert_int_equal(a->lease->query_error.code, COORD_E_FOREIGN_RECORD);
    postgres_server_do(&world_server,
                       "update coord.term set fence = 9223372036854775807 where name = '%s'",
                       w.name);
    struct candidate *b = world_join(&w);
    candidate_stand(b);
    candidates_until(&w.all, b, is_refused);
    assert_int_equal(b->lease->error.code, COORD_E_FOREIGN_RECORD);
    assert_non_null(strstr(b->lease->error.text, "delete its row"));
    postgres_server_do(&world_server, "delete from coord.term where name = '%s'", w.name);
    candidates_until(&w.all, b, candidate_leads);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_records__a_reservation_ends_though_the_clock_steps_back),
        cmocka_unit_test(
            test_postgres_records__a_row_that_was_put_back_is_owed_and_its_fence_leaps),
        cmocka_unit_test(test_postgres_records__values_that_coord_never_writes_are_called_that),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
