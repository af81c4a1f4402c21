/* SPDX-License-Identifier: MIT
 * tests/unit/test_timing.c - the intervals of an election, and the ttl that leaves them no room.
 */
#include "coord/timing.h"

#include "tests/support/support.h"

static struct coord_timing derive(coord_ms ttl, coord_ms grace)
{
    struct coord_timing t;
    struct coord_error error = {0};
    if (coord_timing_derive(ttl, grace, &t, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
    return t;
}

static void test_timing__the_defaults_of_the_backends_are_as_the_guide_says(void **state)
{
    (void)state;
    const struct coord_timing redis = derive(15000, 0);
    assert_int_equal(redis.lease, 15000);
    assert_int_equal(redis.renew, 5000);
    assert_int_equal(redis.attempt, 1875);
    assert_int_equal(redis.margin, 500);
    assert_int_equal(redis.grace, 3000);
    const struct coord_timing file = derive(3000, 0);
    assert_int_equal(file.renew, 1000);
    assert_int_equal(file.attempt, 375);
    assert_int_equal(file.margin, 100);
    assert_int_equal(file.grace, 600);
}

static void test_timing__a_long_lease_is_still_renewed_often(void **state)
{
    (void)state;
    const struct coord_timing t = derive(3600000, 0);
    assert_int_equal(t.renew, 10000);
    assert_int_equal(t.attempt, 5000);
}

static void test_timing__every_ttl_that_is_taken_has_room_for_two_tries(void **state)
{
    (void)state;
    for (coord_ms ttl = COORD_TTL_MIN; ttl <= COORD_TTL_MAX; ttl += 1 + ttl / 7) {
        const struct coord_timing t = derive(ttl, 0);
        const coord_ms hard = coord_timing_hard(&t, 0);
        assert_true(t.renew + 2 * t.attempt <= hard - t.grace);
        assert_true(t.attempt > 0);
    }
}

static void test_timing__a_term_ends_before_the_store_can_give_it_away(void **state)
{
    (void)state;
    const struct coord_timing t = derive(10000, 0);
    /* Even by a clock that is one per cent slow, and with the margin on top. */
    assert_int_equal(coord_timing_hard(&t, 1000), 1000 + 10000 - 100 - t.margin);
    const struct coord_timing odd = derive(1001, 0);
    assert_int_equal(coord_timing_hard(&odd, 0), 1001 - 11 - odd.margin);
}

static void test_timing__no_sum_wraps_around(void **state)
{
    (void)state;
    const struct coord_timing t = derive(COORD_TTL_MAX, 0);
    assert_true(coord_timing_hard(&t, COORD_NEVER - 5) > COORD_NEVER - 2 * COORD_TTL_MAX);
}

static void test_timing__a_ttl_out_of_range_is_refused(void **state)
{
    (void)state;
    static const coord_ms bad[] = {0, 1, COORD_TTL_MIN - 1, COORD_TTL_MAX + 1, COORD_NEVER};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct coord_timing t = {.lease = 77};
        struct coord_error error = {0};
        assert_int_equal(coord_timing_derive(bad[i], 0, &t, &error), COORD_E_BAD_TTL);
        assert_non_null(strstr(error.text, "100ms to 24h"));
        assert_int_equal(t.lease, 77);
    }
}

static void test_timing__a_grace_that_leaves_no_room_names_the_least_ttl(void **state)
{
    (void)state;
    struct coord_timing t;
    struct coord_error error = {0};
    assert_int_equal(coord_timing_derive(1000, 900, &t, &error), COORD_E_BAD_TTL);
    unsigned least = 0;
    const char *named = strstr(error.text, "at least ");
    assert_non_null(named);
    assert_int_equal(sscanf(named, "at least %ums", &least), 1);
    /* The cure works, and nothing less would. */
    assert_int_equal(coord_timing_derive(least, 900, &t, NULL), COORD_OK);
    assert_int_equal(coord_timing_derive(least - 1, 900, &t, NULL), COORD_E_BAD_TTL);
}

static void test_timing__a_grace_that_no_ttl_can_hold_is_refused(void **state)
{
    (void)state;
    struct coord_timing t;
    struct coord_error error = {0};
    assert_int_equal(coord_timing_derive(COORD_TTL_MAX, COORD_TTL_MAX - 1, &t, &error),
                     COORD_E_BAD_TTL);
    assert_non_null(strstr(error.text, "smaller grace"));
    assert_int_equal(coord_timing_derive(15000, COORD_NEVER, &t, &error), COORD_E_BAD_TTL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timing__the_defaults_of_the_backends_are_as_the_guide_says),
        cmocka_unit_test(test_timing__a_long_lease_is_still_renewed_often),
        cmocka_unit_test(test_timing__every_ttl_that_is_taken_has_room_for_two_tries),
        cmocka_unit_test(test_timing__a_term_ends_before_the_store_can_give_it_away),
        cmocka_unit_test(test_timing__no_sum_wraps_around),
        cmocka_unit_test(test_timing__a_ttl_out_of_range_is_refused),
        cmocka_unit_test(test_timing__a_grace_that_leaves_no_room_names_the_least_ttl),
        cmocka_unit_test(test_timing__a_grace_that_no_ttl_can_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
