/* SPDX-License-Identifier: MIT
 * tests/contract/broker_suite.c - runs every case over one bus.
 */
#include "tests/contract/broker_suite.h"

#include <stdlib.h>

static const struct bus_store *store;
static struct bus_world world;

static void run_case(void **state)
{
    static bool started;
    const struct bus_case *line = *state;
    if (!started && store->start != NULL) {
        store->start(); /* inside a case, as it may skip: then each one does */
        started = true;
    }
    bus_open_world(&world, store, line->name);
    line->run(&world);
}

static int tear_down(void **state)
{
    (void)state;
    bus_close_world(&world); /* with whatever a failed case left open */
    return 0;
}

static size_t add_cases(const struct bus_case *lines, struct CMUnitTest *tests, size_t count)
{
    static char names[BUS_CASES][128];
    static struct bus_case kept[BUS_CASES];
    const char *only = getenv("COORD_TEST_ONLY"); /* a part of a case's name */
    for (const struct bus_case *line = lines; line->name != NULL; line++) {
        if (only != NULL && strstr(line->name, only) == NULL) {
            continue;
        }
        assert_true(count < BUS_CASES);
        kept[count] = *line;
        snprintf(names[count], sizeof names[count], "test_broker_%s__%s", store->name, line->name);
        tests[count] = (struct CMUnitTest){.name = names[count],
                                           .test_func = run_case,
                                           .teardown_func = tear_down,
                                           .initial_state = &kept[count]};
        count++;
    }
    return count;
}

int bus_suite_run(const struct bus_store *what)
{
    static struct CMUnitTest tests[BUS_CASES];
    store = what;
    size_t count = add_cases(bus_carrying, tests, 0);
    count = add_cases(bus_limits, tests, count);
    const int failed = _cmocka_run_group_tests(what->name, tests, count, NULL, NULL);
    if (what->stop != NULL) {
        what->stop();
    }
    return failed;
}
