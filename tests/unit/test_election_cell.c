/* SPDX-License-Identifier: MIT
 * tests/unit/test_election_cell.c - what is published is read whole, and wiped in a child.
 */
#include "runtime/cell.h"
#include "tests/support/support.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

enum {
    READS = 1000000
};

struct race {
    struct coord__cell *cell;
    atomic_bool end;
    atomic_ulong torn;
    atomic_ulong reads;
};

static void *read_often(void *ctx)
{
    struct race *race = ctx;
    struct coord__published what;
    while (!atomic_load(&race->end)) {
        coord__cell_read(race->cell, &what);
        const bool whole = what.term == what.hard && what.fence == what.hard &&
                           what.stopping == (what.hard % 2 == 1);
        atomic_fetch_add(&race->torn, whole ? 0 : 1);
        atomic_fetch_add(&race->reads, 1);
    }
    return NULL;
}

static void test_cell__is_read_whole_while_it_is_written(void **state)
{
    (void)state;
    struct race race = {.cell = coord__cell_new()};
    pthread_t threads[2];
    assert_non_null(race.cell);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, &race), 0);
    }
    for (uint64_t n = 1; atomic_load(&race.reads) < READS; n++) {
        const struct coord__published what = {
            .hard = n, .term = n, .fence = n, .stopping = n % 2 == 1};
        coord__cell_write(race.cell, &what);
    }
    atomic_store(&race.end, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(race.torn, 0);
    coord__cell_free(race.cell);
}

static void test_cell__is_empty_in_a_child(void **state)
{
    (void)state;
    struct coord__cell *cell = coord__cell_new();
    const struct coord__published what = {.hard = 9, .term = 9, .fence = 9, .stopping = true};
    int status = -1;
    assert_non_null(cell);
    coord__cell_write(cell, &what);
    assert_true(coord__cell_alive(cell));
    const pid_t child = fork();
    if (child == 0) {
        struct coord__published seen = what;
        coord__cell_read(cell, &seen);
        _exit(coord__cell_alive(cell) || coord__cell_hard(cell) != 0 || seen.hard != 0 ||
              seen.term != 0 || seen.fence != 0 || seen.stopping);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(coord__cell_hard(cell), 9);
    coord__cell_free(cell);
    coord__cell_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cell__is_read_whole_while_it_is_written),
        cmocka_unit_test(test_cell__is_empty_in_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
