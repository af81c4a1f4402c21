/* SPDX-License-Identifier: MIT
 * tests/unit/test_memory.c - the memory elector's store, on a time that the test makes.
 */
#include "electors/memory.h"
#include "tests/support/support.h"

enum {
    NOW = 1000,
    TTL = 1000
};

static struct coord_elector *open_as(struct coord_memory_state *state, const char *identity,
                                     unsigned char owner)
{
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    struct coord_elector *elector = NULL;
    config.name = "jobs";
    config.name_bytes = 4;
    config.identity = identity;
    config.identity_bytes = strlen(identity);
    config.owner[0] = owner;
    config.ttl = TTL;
    config.backend_ctx = state;
    assert_int_equal(coord_elector_new(coord_memory_elector(), &config, NOW, &elector, NULL),
                     COORD_OK);
    return elector;
}

/* Stand, and let it do what it can at `now`. */
static bool leads_when_it_stands(struct coord_elector *elector, coord_ms now)
{
    coord_lease_stand(coord_elector_lease(elector), now);
    coord_elector_process(elector, now);
    return coord_elector_leading_at(elector, now);
}

static enum coord_reason reason(struct coord_elector *elector, coord_ms now)
{
    coord_ms rest = 0;
    return coord_lease_reason(coord_elector_lease(elector), now, &rest);
}

static uint64_t fence(struct coord_elector *elector, coord_ms now)
{
    return coord_lease_claim(coord_elector_lease(elector), now).fence;
}

/* Tell the host of everything, which says that its work has ended when it is told to. */
static void tell(struct coord_elector *elector, coord_ms now)
{
    struct coord_edge edge;
    while (coord_lease_next_edge(coord_elector_lease(elector), &edge)) {
        coord_lease_edge_done(coord_elector_lease(elector), now);
    }
    coord_elector_process(elector, now);
}

static void run_until(struct coord_elector *elector, coord_ms from, coord_ms to)
{
    for (coord_ms now = from; now <= to; now++) {
        coord_elector_process(elector, now);
    }
}

static void test_memory__alone_leads_always(void **state)
{
    (void)state;
    struct coord_elector *a = open_as(NULL, "a", 1);
    struct coord_elector *b = open_as(NULL, "b", 2);
    struct coord_descriptor descriptors[COORD_DESCRIPTORS_MAX];
    assert_int_equal(coord_elector_descriptors(a, descriptors), 0);
    assert_true(leads_when_it_stands(a, NOW));
    assert_true(leads_when_it_stands(b, NOW));
    coord_elector_free(a, false);
    coord_elector_free(b, false);
}

static void test_memory__the_same_identity_is_not_the_same_candidate(void **state)
{
    (void)state;
    struct coord_memory_state *store = coord_memory_state_new();
    struct coord_elector *a = open_as(store, "twin", 1);
    struct coord_elector *b = open_as(store, "twin", 2);
    coord_memory_state_free(store); /* it lives on with its electors */
    assert_true(leads_when_it_stands(a, NOW));
    assert_false(leads_when_it_stands(b, NOW));
    assert_int_equal(reason(b, NOW), COORD_REASON_HELD);
    coord_elector_free(a, false);
    coord_elector_free(b, false);
}

static void test_memory__a_lease_ends_with_its_time(void **state)
{
    (void)state;
    struct coord_memory_state *store = coord_memory_state_new();
    struct coord_elector *a = open_as(store, "a", 1);
    struct coord_elector *b = open_as(store, "b", 2);
    assert_true(leads_when_it_stands(a, NOW));
    assert_false(leads_when_it_stands(b, NOW));
    /* a is stopped; b looks when the lease has run out, and then leads at once. */
    run_until(b, NOW, NOW + TTL - 1);
    assert_false(coord_elector_leading_at(b, NOW + TTL - 1));
    run_until(b, NOW + TTL, NOW + TTL + 10);
    assert_true(coord_elector_leading_at(b, NOW + TTL + 10));
    assert_false(coord_elector_leading_at(a, NOW + TTL - 1)); /* it knew before */
    assert_true(fence(b, NOW + TTL + 10) > 1);
    coord_elector_free(a, false);
    coord_elector_free(b, false);
    coord_memory_state_free(store);
}

static void test_memory__who_has_seen_a_higher_fence_waits_one_lease(void **state)
{
    (void)state;
    struct coord_elector *a = open_as(NULL, "a", 1);
    coord_elector_lease(a)->seen = 50; /* of a store that forgot it */
    assert_false(leads_when_it_stands(a, NOW));
    assert_int_equal(reason(a, NOW), COORD_REASON_TAKING_OVER);
    run_until(a, NOW, NOW + TTL - 1);
    assert_false(coord_elector_leading_at(a, NOW + TTL - 1));
    run_until(a, NOW + TTL, NOW + TTL + 50);
    assert_true(coord_elector_leading_at(a, NOW + TTL + 50));
    assert_int_equal(fence(a, NOW + TTL + 50), 51);
    coord_elector_free(a, false);
}

static void test_memory__a_debt_is_inherited_until_the_operator_clears_it(void **state)
{
    (void)state;
    struct coord_memory_state *store = coord_memory_state_new();
    struct coord_elector *a = open_as(store, "a", 1);
    struct coord_elector *b = open_as(store, "b", 2);
    coord_elector_lease(a)->seen = 50;
    assert_false(leads_when_it_stands(a, NOW));
    coord_lease_withdraw(coord_elector_lease(a), NOW + 10); /* gives up: that resigns nothing */
    coord_elector_process(a, NOW + 10);
    assert_true(coord_lease_settled(coord_elector_lease(a)));
    assert_false(leads_when_it_stands(b, NOW + 20));
    assert_int_equal(reason(b, NOW + 20), COORD_REASON_TAKING_OVER);
    coord_lease_withdraw(coord_elector_lease(b), NOW + 30);
    coord_elector_process(b, NOW + 30);

    const struct coord_request init = {.verb = COORD_VERB_INIT};
    assert_int_equal(coord_lease_query(coord_elector_lease(a), &init, NOW + 40), COORD_OK);
    coord_elector_process(a, NOW + 40);
    assert_int_equal(coord_elector_lease(a)->query_outcome, COORD_DONE);
    assert_true(leads_when_it_stands(b, NOW + 50));
    assert_int_equal(coord_lease_query(coord_elector_lease(a), &init, NOW + 60), COORD_OK);
    coord_elector_process(a, NOW + 60);
    assert_int_equal(coord_elector_lease(a)->query_outcome, COORD_HELD);
    coord_elector_free(a, false);
    coord_elector_free(b, false);
    coord_memory_state_free(store);
}

static void test_memory__a_reservation_ends_with_its_time(void **state)
{
    (void)state;
    struct coord_memory_state *store = coord_memory_state_new();
    struct coord_elector *a = open_as(store, "a", 1);
    struct coord_elector *b = open_as(store, "b", 2);
    assert_true(leads_when_it_stands(a, NOW));
    assert_int_equal(coord_lease_step_down(coord_elector_lease(a), "c", NOW + 10), COORD_OK);
    tell(a, NOW + 10);
    assert_false(leads_when_it_stands(b, NOW + 20)); /* kept for c, who never comes */
    assert_int_equal(reason(b, NOW + 20), COORD_REASON_RESERVED);
    run_until(b, NOW + 21, NOW + 10 + TTL / 2 - 1);
    assert_false(coord_elector_leading_at(b, NOW + 10 + TTL / 2 - 1));
    run_until(b, NOW + 10 + TTL / 2, NOW + 20 + TTL / 2);
    assert_true(coord_elector_leading_at(b, NOW + 20 + TTL / 2));
    coord_elector_free(a, false);
    coord_elector_free(b, false);
    coord_memory_state_free(store);
}

static enum coord_outcome ask(struct coord_elector *elector, uint64_t whom, coord_ms now)
{
    const struct coord_request what = {
        .verb = COORD_VERB_ASK, .fence = whom, .reserve = 100, .successor = "b"};
    assert_int_equal(coord_lease_query(coord_elector_lease(elector), &what, now), COORD_OK);
    coord_elector_process(elector, now);
    return coord_elector_lease(elector)->query_outcome;
}

static void test_memory__a_request_to_step_down_is_for_one_fence_and_a_time(void **state)
{
    (void)state;
    struct coord_memory_state *store = coord_memory_state_new();
    struct coord_elector *a = open_as(store, "a", 1);
    struct coord_elector *b = open_as(store, "b", 2);
    assert_int_equal(ask(b, 1, NOW), COORD_NOBODY);
    assert_true(leads_when_it_stands(a, NOW));
    assert_int_equal(ask(b, fence(a, NOW) + 1, NOW + 1), COORD_NOBODY);
    assert_int_equal(ask(b, fence(a, NOW), NOW + 2), COORD_DONE);
    /* a was woken, and is too late: the request has expired */
    coord_elector_process(a, NOW + 200);
    assert_int_equal(reason(a, NOW + 200), COORD_REASON_LEADING);
    assert_int_equal(ask(b, fence(a, NOW + 200), NOW + 201), COORD_DONE);
    coord_elector_process(a, NOW + 210);
    assert_int_equal(reason(a, NOW + 210), COORD_REASON_STOPPING);
    tell(a, NOW + 220);
    assert_true(leads_when_it_stands(b, NOW + 230));
    coord_elector_free(a, false);
    coord_elector_free(b, false);
    coord_memory_state_free(store);
}

static void test_memory__what_was_taken_away_is_lost_at_once(void **state)
{
    (void)state;
    struct coord_memory_state *store = coord_memory_state_new();
    struct coord_elector *a = open_as(store, "a", 1);
    assert_false(coord_memory_state_revoke(store, "jobs"));
    assert_false(coord_memory_state_revoke(store, "others"));
    assert_false(coord_memory_state_revoke(store, ""));
    assert_true(leads_when_it_stands(a, NOW));
    assert_true(coord_memory_state_revoke(store, "jobs"));
    coord_elector_process(a, NOW + 1);
    assert_false(coord_elector_leading_at(a, NOW + 1));
    assert_int_equal(coord_elector_lease(a)->last_end, COORD_END_LOST);
    coord_elector_free(a, false);
    coord_memory_state_free(store);
}

static void test_memory__a_named_state_goes_with_its_last_user(void **state)
{
    (void)state;
    struct coord_memory_state *first = coord_memory_state_named("shared");
    struct coord_memory_state *second = coord_memory_state_named("shared");
    struct coord_memory_state *other = coord_memory_state_named("other");
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, other);
    struct coord_elector *a = open_as(first, "a", 1);
    assert_true(leads_when_it_stands(a, NOW));
    coord_elector_free(a, false);
    coord_memory_state_free(first);
    coord_memory_state_free(second);
    second = coord_memory_state_named("shared"); /* a new one: nothing is held in it */
    struct coord_elector *b = open_as(second, "b", 2);
    assert_true(leads_when_it_stands(b, NOW));
    assert_int_equal(fence(b, NOW), 1);
    coord_elector_free(b, false);
    coord_memory_state_free(second);
    coord_memory_state_free(other);
    coord_memory_state_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory__alone_leads_always),
        cmocka_unit_test(test_memory__the_same_identity_is_not_the_same_candidate),
        cmocka_unit_test(test_memory__a_lease_ends_with_its_time),
        cmocka_unit_test(test_memory__who_has_seen_a_higher_fence_waits_one_lease),
        cmocka_unit_test(test_memory__a_debt_is_inherited_until_the_operator_clears_it),
        cmocka_unit_test(test_memory__a_reservation_ends_with_its_time),
        cmocka_unit_test(test_memory__a_request_to_step_down_is_for_one_fence_and_a_time),
        cmocka_unit_test(test_memory__what_was_taken_away_is_lost_at_once),
        cmocka_unit_test(test_memory__a_named_state_goes_with_its_last_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
