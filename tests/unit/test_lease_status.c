/* SPDX-License-Identifier: MIT
 * tests/unit/test_lease_status.c - the lease machine: what whoever waits for it can see.
 */
#include "coord/lease_status.h"

#include "tests/unit/lease_bench.h"

static struct coord_lease_status look(const struct bench *b)
{
    struct coord_lease_status status;
    coord_lease_status(&b->lease, &status);
    return status;
}

static void test_lease_status__follows_a_term_from_its_request_to_its_end(void **state)
{
    struct bench *b = *state;
    begin(b, 0, true);
    assert_false(look(b).standing);
    ask(b);
    assert_true(look(b).standing);
    assert_true(look(b).asking);
    assert_int_equal(look(b).sent, 1);
    assert_int_equal(look(b).answered, 0);
    grant(b, 10, 0);
    assert_true(look(b).held);
    assert_true(look(b).begun);
    assert_false(look(b).ended);
    assert_int_equal(look(b).term, 1);
    assert_int_equal(look(b).answered, 1);
    assert_int_equal(look(b).hard, coord_lease_claim(&b->lease, b->now).hard);
    expect_edge(b, COORD_EDGE_STARTED);
    coord_lease_acknowledge(&b->lease, 1, b->now);
    assert_true(look(b).ended);
    assert_true(look(b).acknowledged);
    expect(b, COORD_VERB_RELEASE);
    answer(b, 1, (struct coord_reply){.outcome = COORD_DONE});
    assert_false(look(b).held);
    assert_int_equal(look(b).release, COORD_RELEASE_RELEASED);
    assert_int_equal(look(b).terms, 1);
}

static void test_lease_status__of_a_grant_that_waits_has_not_begun(void **state)
{
    struct bench *b = *state;
    begin(b, 0, true);
    ask(b);
    grant(b, 10, L);
    assert_true(look(b).held);
    assert_false(look(b).begun);
    coord_lease_withdraw(&b->lease, b->now);
    assert_true(look(b).undoing);
}

static void test_lease_status__tells_the_last_outcome_and_why_it_failed(void **state)
{
    struct bench *b = *state;
    struct coord_reply failed = {.outcome = COORD_FAILED};
    begin(b, 0, true);
    ask(b);
    failed.error.code = COORD_E_UNREACHABLE;
    answer(b, 1, failed);
    assert_int_equal(look(b).failures, 1);
    assert_int_equal(look(b).why->code, COORD_E_UNREACHABLE);
    advance(b);
    expect(b, COORD_VERB_ACQUIRE);
    answer(b, 1, (struct coord_reply){.outcome = COORD_HELD, .retry_in = L});
    assert_int_equal(look(b).outcome, COORD_HELD);
    assert_int_equal(look(b).failures, 0);
    assert_int_equal(look(b).why->code, COORD_OK);
}

static void test_lease_status__of_a_query_has_no_answer_before_the_store_has(void **state)
{
    struct bench *b = *state;
    const struct coord_error *why = NULL;
    const struct coord_observation leader = {.leading = true, .identity = "rival", .fence = 7};
    const struct coord_request observe = {.verb = COORD_VERB_OBSERVE};
    begin(b, 0, true);
    assert_int_equal(coord_lease_answer(&b->lease, NULL), 0);
    assert_int_equal(coord_lease_query(&b->lease, &observe, b->now), COORD_OK);
    assert_true(coord_lease_querying(&b->lease));
    expect(b, COORD_VERB_OBSERVE);
    assert_int_equal(coord_lease_answer(&b->lease, NULL), 0);
    answer(b, 1, (struct coord_reply){.outcome = COORD_HELD, .leader = &leader});
    assert_false(coord_lease_querying(&b->lease));
    assert_int_equal(coord_lease_answer(&b->lease, &why), COORD_HELD);
    assert_int_equal(why->code, COORD_OK);
    assert_string_equal(coord_lease_leader(&b->lease)->identity, "rival");
}

#define TEST(name) cmocka_unit_test_setup(test_lease_status__##name, bench_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(follows_a_term_from_its_request_to_its_end),
        TEST(of_a_grant_that_waits_has_not_begun),
        TEST(tells_the_last_outcome_and_why_it_failed),
        TEST(of_a_query_has_no_answer_before_the_store_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
