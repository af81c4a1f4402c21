/* SPDX-License-Identifier: MIT
 * tests/unit/test_lease_stop.c - the lease machine: how terms end, and who stands aside.
 */
#include "tests/unit/lease_bench.h"

static void test_lease__without_renewal_it_stops_at_soft_and_has_stopped_at_hard(void **state)
{
    struct bench *b = *state;
    begin(b, 0, true);
    lead(b);
    b->now = b->lease.term.soft;
    COORD_IGNORE(coord_lease_tick(&b->lease, b->now), "nothing is outstanding");
    expect_edge(b, COORD_EDGE_STOPPING);
    assert_true(coord_lease_claim(&b->lease, b->now).stopping);
    b->now = b->lease.term.hard;
    COORD_IGNORE(coord_lease_tick(&b->lease, b->now), "nothing is outstanding");
    expect_edge(b, COORD_EDGE_STOPPED);
    assert_true(coord_lease_overdue(&b->lease, b->now));
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b->lease, b->now, &for_ms), COORD_REASON_WAITING_FOR_HOST);
    expect_nothing(b);
    coord_lease_acknowledge(&b->lease, 1, b->now);
    assert_false(coord_lease_overdue(&b->lease, b->now));
    expect(b, COORD_VERB_RELEASE);
}

static void test_lease__stopping_renews_for_the_grace_and_then_no_more(void **state)
{
    struct bench *b = *state;
    begin(b, 0, true);
    lead(b);
    assert_int_equal(coord_lease_step_down(&b->lease, NULL, b->now), COORD_OK);
    expect_edge(b, COORD_EDGE_STOPPING);
    coord_lease_renew(&b->lease, b->now);
    expect(b, COORD_VERB_RENEW);
    renew(b);
    assert_true(coord_lease_claim(&b->lease, b->now).stopping);
    b->now += b->lease.config.timing.grace;
    coord_lease_renew(&b->lease, b->now);
    expect_nothing(b);
}

static void test_lease__a_resignation_waits_for_the_host(void **state)
{
    struct bench *b = *state;
    begin(b, 0, true);
    lead(b);
    coord_lease_withdraw(&b->lease, b->now);
    expect_edge(b, COORD_EDGE_STOPPING);
    assert_true(coord_lease_leading_at(&b->lease, b->now));
    expect_nothing(b);
    coord_lease_acknowledge(&b->lease, 1, b->now);
    assert_false(coord_lease_leading_at(&b->lease, b->now));
    expect_edge(b, COORD_EDGE_STOPPED);
    expect(b, COORD_VERB_RELEASE);
    assert_int_equal(b->request.fence, 10);
    answer(b, 1, (struct coord_reply){.outcome = COORD_DONE});
    assert_int_equal(b->lease.release, COORD_RELEASE_RELEASED);
    assert_true(coord_lease_settled(&b->lease));
}

static void test_lease__a_term_is_dead_once_its_resignation_was_sent(void **state)
{
    struct bench *b = *state;
    lead(b);
    coord_lease_withdraw(&b->lease, b->now);
    expect_edge(b, COORD_EDGE_STOPPING);
    expect_edge(b, COORD_EDGE_STOPPED);
    expect(b, COORD_VERB_RELEASE);
    answer(b, 1, (struct coord_reply){.outcome = COORD_UNKNOWN});
    assert_false(coord_lease_leading_at(&b->lease, b->now));
    expect(b, COORD_VERB_RELEASE);
    answer(b, 1, (struct coord_reply){.outcome = COORD_UNKNOWN});
    assert_int_equal(b->lease.release, COORD_RELEASE_UNKNOWN);
    assert_true(coord_lease_settled(&b->lease));
}

static void test_lease__who_stepped_down_names_its_successor_and_stands_aside(void **state)
{
    struct bench *b = *state;
    lead(b);
    assert_int_equal(coord_lease_step_down(&b->lease, "other", b->now), COORD_OK);
    expect_edge(b, COORD_EDGE_STOPPING);
    expect_edge(b, COORD_EDGE_STOPPED);
    expect(b, COORD_VERB_RELEASE);
    assert_string_equal(b->request.successor, "other");
    assert_int_equal(b->request.reserve, L / 2);
    answer(b, 1, (struct coord_reply){.outcome = COORD_DONE});
    coord_ms for_ms = 0;
    assert_int_equal(coord_lease_reason(&b->lease, b->now, &for_ms), COORD_REASON_STANDING_ASIDE);
    assert_int_equal(for_ms, L / 2);
    coord_lease_hint(&b->lease, b->now);
    expect_nothing(b);
    advance(b);
    expect(b, COORD_VERB_ACQUIRE);
}

static void test_lease__a_request_from_outside_steps_it_down(void **state)
{
    struct bench *b = *state;
    lead(b);
    advance(b);
    expect(b, COORD_VERB_RENEW);
    answer(b, 1,
           (struct coord_reply){
               .outcome = COORD_RENEWED, .owed = COORD_NEVER, .asked = true, .asked_for = "b"});
    expect_edge(b, COORD_EDGE_STOPPING);
    assert_string_equal(b->lease.term.successor, "b");
}

static void test_lease__a_sick_host_steps_down_and_stands_again_when_well(void **state)
{
    struct bench *b = *state;
    lead(b);
    coord_lease_health(&b->lease, false, b->now);
    expect_edge(b, COORD_EDGE_STOPPING);
    expect_edge(b, COORD_EDGE_STOPPED);
    expect(b, COORD_VERB_RELEASE);
    answer(b, 1, (struct coord_reply){.outcome = COORD_DONE});
    b->now += L;
    expect_nothing(b);
    coord_lease_health(&b->lease, true, b->now);
    expect(b, COORD_VERB_ACQUIRE);
}

static void test_lease__pause_ends_no_term_but_gives_up_a_wait(void **state)
{
    struct bench *b = *state;
    lead(b);
    coord_lease_pause(&b->lease, true, b->now);
    assert_true(coord_lease_leading_at(&b->lease, b->now));
    assert_false(coord_lease_claim(&b->lease, b->now).stopping);

    begin(b, 0, false);
    ask(b);
    grant(b, 10, L);
    coord_lease_pause(&b->lease, true, b->now);
    expect(b, COORD_VERB_UNDO);
    answer(b, 1, (struct coord_reply){.outcome = COORD_DONE});
    expect_nothing(b);
    coord_lease_pause(&b->lease, false, b->now);
    expect(b, COORD_VERB_ACQUIRE);
}

#define TEST(name) cmocka_unit_test_setup(test_lease__##name, bench_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_renewal_it_stops_at_soft_and_has_stopped_at_hard),
        TEST(stopping_renews_for_the_grace_and_then_no_more),
        TEST(a_resignation_waits_for_the_host),
        TEST(a_term_is_dead_once_its_resignation_was_sent),
        TEST(who_stepped_down_names_its_successor_and_stands_aside),
        TEST(a_request_from_outside_steps_it_down),
        TEST(a_sick_host_steps_down_and_stands_again_when_well),
        TEST(pause_ends_no_term_but_gives_up_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
