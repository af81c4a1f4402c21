/* SPDX-License-Identifier: MIT
 * tests/unit/test_cli_demo_check.c - a demo whose workers saw a promise broken says so and fails.
 */
#include "cli/demo.h"
#include "cli/exits.h"
#include "tests/support/support.h"

static struct cli_demo_page page;
static struct cli_demo demo = {.page = &page};

static int set_up(void **state)
{
    (void)state;
    memset(&page, 0, sizeof page);
    return 0;
}

static void add_term(int worker, uint64_t fence, uint64_t from, uint64_t until)
{
    struct cli_demo_term *term = &page.terms[atomic_fetch_add(&page.term_count, 1)];
    atomic_store(&term->worker, worker + 1);
    atomic_store(&term->fence, fence);
    atomic_store(&term->from, from);
    atomic_store(&term->until, until);
}

static void test_demo__with_one_leader_after_the_other_holds(void **state)
{
    unsigned a = 77;
    unsigned b = 77;
    (void)state;
    add_term(1, 8, 300, 400); /* they are recorded in any order */
    add_term(0, 7, 100, 299);
    add_term(0, 9, 401, 401);
    assert_int_equal(cli_demo_overlaps(&page, &a, &b), 0);
    assert_int_equal(a, 77);
    assert_true(cli_demo_fences_rise(&page));
    assert_int_equal(cli_demo_judge(&demo), CLI_DONE);
}

static void test_demo__with_two_leaders_at_one_instant_fails(void **state)
{
    unsigned a = 77;
    unsigned b = 77;
    (void)state;
    add_term(0, 7, 100, 200);
    add_term(1, 8, 300, 400);
    add_term(2, 9, 400, 500);
    assert_int_equal(cli_demo_overlaps(&page, &a, &b), 1);
    assert_int_equal(a, 1);
    assert_int_equal(b, 2);
    assert_true(cli_demo_fences_rise(&page));
    assert_int_equal(cli_demo_judge(&demo), CLI_FAILED);
}

static void test_demo__with_a_term_inside_of_another_counts_each_pair(void **state)
{
    unsigned a = 77;
    unsigned b = 77;
    (void)state;
    add_term(0, 7, 100, 900);
    add_term(1, 8, 300, 400);
    add_term(2, 9, 500, 600);
    assert_int_equal(cli_demo_overlaps(&page, &a, &b), 2);
    assert_int_equal(a, 0);
    assert_int_equal(b, 1);
    assert_int_equal(cli_demo_judge(&demo), CLI_FAILED);
}

static void test_demo__with_a_fence_that_falls_or_comes_twice_fails(void **state)
{
    static const uint64_t later[] = {6, 7};
    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        set_up(NULL);
        add_term(0, 7, 100, 200);
        add_term(1, later[i], 300, 400);
        assert_false(cli_demo_fences_rise(&page));
        assert_int_equal(cli_demo_judge(&demo), CLI_FAILED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_demo__with_one_leader_after_the_other_holds, set_up),
        cmocka_unit_test_setup(test_demo__with_two_leaders_at_one_instant_fails, set_up),
        cmocka_unit_test_setup(test_demo__with_a_term_inside_of_another_counts_each_pair, set_up),
        cmocka_unit_test_setup(test_demo__with_a_fence_that_falls_or_comes_twice_fails, set_up),
    };
    return cmocka_run_group_tests_name("cli_demo_check", tests, NULL, NULL);
}
