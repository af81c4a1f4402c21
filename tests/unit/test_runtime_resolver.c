/* SPDX-License-Identifier: MIT
 * tests/unit/test_runtime_resolver.c - names become addresses on a thread of their own.
 *
 * Only names that need no network: digits, localhost, and one that RFC 6761 says has no address.
 */
#include "runtime/resolve.h"
#include "tests/support/support.h"

#include "runtime/clock.h"

#include <sys/resource.h>
#include <unistd.h>

enum {
    GUARD = 60000 /* ms */
};

static struct coord__loop loop;

static int set_up(void **state)
{
    assert_int_equal(coord__loop_init(&loop, NULL), COORD_OK);
    *state = coord__resolve_new(&loop);
    return *state == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    coord__resolve_free(*state, false);
    coord__loop_fini(&loop);
    return 0;
}

/* Sleeps on the loop only, as a runtime does. */
static enum coord_err wait_for(struct coord__resolve *resolve, struct coord_resolution *question,
                               struct coord_addresses *out, struct coord_error *error)
{
    const coord_ms guard = coord_clock_now() + GUARD;
    enum coord_err rc;
    while ((rc = coord__resolve_poll(resolve, question, out, error)) == COORD_E_BUSY) {
        assert_true(coord_clock_now() < guard);
        coord__loop_wait(&loop, GUARD);
    }
    return rc;
}

static void test_resolver__takes_digits(void **state)
{
    struct coord_addresses out = {.count = 0};
    struct coord_resolution *v4 = coord__resolve_start(*state, "127.0.0.1");
    struct coord_resolution *v6 = coord__resolve_start(*state, "::1");
    assert_non_null(v4);
    assert_non_null(v6);
    assert_int_equal(wait_for(*state, v6, &out, NULL), COORD_OK);
    assert_int_equal(out.count, 1);
    assert_string_equal(out.text[0], "::1");
    assert_int_equal(wait_for(*state, v4, &out, NULL), COORD_OK);
    assert_int_equal(out.count, 1);
    assert_string_equal(out.text[0], "127.0.0.1");
    assert_true(coord__resolve_answered(*state));
    assert_false(coord__resolve_answered(*state)); /* told once */
    coord__resolve_drop(*state, v4);
    coord__resolve_drop(*state, v6);
}

static void test_resolver__knows_the_local_host_once(void **state)
{
    struct coord_addresses out = {.count = 0};
    struct coord_resolution *question = coord__resolve_start(*state, "localhost");
    assert_int_equal(wait_for(*state, question, &out, NULL), COORD_OK);
    assert_in_range(out.count, 1, COORD_ADDRESSES_MAX);
    for (size_t i = 0; i < out.count; i++) {
        for (size_t j = i + 1; j < out.count; j++) {
            assert_string_not_equal(out.text[i], out.text[j]);
        }
    }
    coord__resolve_drop(*state, question);
}

static void test_resolver__names_the_host_that_it_cannot_find(void **state)
{
    struct coord_addresses out = {.count = 0};
    struct coord_error error = {.code = COORD_OK};
    struct coord_resolution *question = coord__resolve_start(*state, "coord.invalid");
    assert_int_equal(wait_for(*state, question, &out, &error), COORD_E_NAME_UNRESOLVED);
    assert_int_equal(error.code, COORD_E_NAME_UNRESOLVED);
    assert_non_null(strstr(error.text, "coord.invalid"));
    coord__resolve_drop(*state, question);
}

static void test_resolver__does_not_blame_the_name_for_a_full_table_of_descriptors(void **state)
{
    struct coord_addresses out = {.count = 0};
    struct coord_error error = {.code = COORD_OK};
    struct rlimit before;
    struct rlimit none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = dup(STDERR_FILENO); /* the lowest that is free */
    assert_true(next > 0);
    close(next);
    none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct coord_resolution *question = coord__resolve_start(*state, "localhost");
    const enum coord_err rc = wait_for(*state, question, &out, &error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    coord__resolve_drop(*state, question);
    assert_int_equal(rc, COORD_E_SYSTEM);
    assert_non_null(strstr(error.text, "open files"));
}

static void test_resolver__questions_may_be_dropped_at_any_time(void **state)
{
    struct coord_addresses out = {.count = 0};
    for (int i = 0; i < 50; i++) {
        struct coord_resolution *first = coord__resolve_start(*state, "localhost");
        struct coord_resolution *second = coord__resolve_start(*state, "127.0.0.1");
        struct coord_resolution *third = coord__resolve_start(*state, "localhost");
        if (i % 2 == 0) {
            assert_int_equal(wait_for(*state, first, &out, NULL), COORD_OK);
        }
        coord__resolve_drop(*state, third);
        coord__resolve_drop(*state, first);
        coord__resolve_drop(*state, second);
    }
}

static void test_resolver__ends_with_questions_open(void **state)
{
    struct coord__resolve *resolve = coord__resolve_new(&loop);
    (void)state;
    assert_non_null(resolve);
    struct coord_resolution *question = coord__resolve_start(resolve, "localhost");
    coord__resolve_drop(resolve, question);
    coord__resolve_free(resolve, false);
    coord__resolve_free(coord__resolve_new(&loop), false); /* never asked: no thread */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_resolver__takes_digits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resolver__knows_the_local_host_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_resolver__names_the_host_that_it_cannot_find, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_resolver__does_not_blame_the_name_for_a_full_table_of_descriptors, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(test_resolver__questions_may_be_dropped_at_any_time, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_resolver__ends_with_questions_open, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
