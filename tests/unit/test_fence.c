/* SPDX-License-Identifier: MIT
 * tests/unit/test_fence.c - fences only rise, also over stores that forget.
 */
#include "coord/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CLOCK_US UINT64_C(1800000000000000)

static void test_fence__is_the_clock_where_nothing_is_above_it(void **state)
{
    (void)state;
    assert_int_equal(coord_fence_next(0, 0, CLOCK_US, false), CLOCK_US);
    assert_int_equal(coord_fence_next(5, 7, CLOCK_US, false), CLOCK_US);
}

static void test_fence__is_above_the_stored_and_the_seen_one(void **state)
{
    (void)state;
    assert_int_equal(coord_fence_next(CLOCK_US, 0, CLOCK_US, false), CLOCK_US + 1);
    assert_int_equal(coord_fence_next(CLOCK_US + 9, 0, CLOCK_US, false), CLOCK_US + 10);
    assert_int_equal(coord_fence_next(CLOCK_US, CLOCK_US + 20, CLOCK_US, false), CLOCK_US + 21);
}

static void test_fence__leaps_where_terms_may_be_forgotten(void **state)
{
    (void)state;
    const uint64_t leapt = CLOCK_US + COORD_FENCE_LEAP;
    assert_int_equal(coord_fence_next(0, 0, CLOCK_US, true), leapt);
    assert_int_equal(coord_fence_next(leapt, 0, CLOCK_US, true), leapt + 1);
}

/* Added to the maximum, the leap of one who has seen fences would overtake that of another. */
static void test_fence__two_losses_do_not_go_backwards(void **state)
{
    (void)state;
    const uint64_t first = coord_fence_next(0, CLOCK_US + 5, CLOCK_US + 1000, true);
    const uint64_t second = coord_fence_next(0, 0, CLOCK_US + 2000, true);
    assert_true(second > first);
}

static void test_fence__a_store_whose_clock_is_71_minutes_behind_still_rises(void **state)
{
    (void)state;
    const uint64_t behind = CLOCK_US - UINT64_C(71) * 60 * 1000000;
    assert_true(coord_fence_next(0, 0, behind, true) > CLOCK_US);
}

static void test_fence__stays_below_what_json_and_lua_carry_for_two_centuries(void **state)
{
    (void)state;
    const uint64_t year_2200_us = UINT64_C(7258118400000000);
    assert_true(coord_fence_next(0, 0, year_2200_us, true) < COORD_FENCE_LIMIT);
}

static void test_fence__never_wraps(void **state)
{
    (void)state;
    assert_int_equal(coord_fence_next(UINT64_MAX, 0, 1, true), UINT64_MAX);
    assert_int_equal(coord_fence_next(0, UINT64_MAX, 1, false), UINT64_MAX);
    assert_int_equal(coord_fence_next(0, 0, UINT64_MAX, true), UINT64_MAX);
    assert_int_equal(coord_fence_next(0, 0, 0, false), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fence__is_the_clock_where_nothing_is_above_it),
        cmocka_unit_test(test_fence__is_above_the_stored_and_the_seen_one),
        cmocka_unit_test(test_fence__leaps_where_terms_may_be_forgotten),
        cmocka_unit_test(test_fence__two_losses_do_not_go_backwards),
        cmocka_unit_test(test_fence__a_store_whose_clock_is_71_minutes_behind_still_rises),
        cmocka_unit_test(test_fence__stays_below_what_json_and_lua_carry_for_two_centuries),
        cmocka_unit_test(test_fence__never_wraps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
