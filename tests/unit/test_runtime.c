/* SPDX-License-Identifier: MIT
 * tests/unit/test_runtime.c - the clock, the loop.
 */
#include "electors/memory.h"
#include "runtime/election.h"
#include "tests/support/fake_elector.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>

enum {
    GUARD = 30000 /* ms */
};

static struct coord_runtime *make_runtime(void)
{
    struct coord_runtime *runtime = NULL;
    assert_int_equal(coord_runtime_new(NULL, &runtime, NULL), COORD_OK);
    return runtime;
}

static struct coord_election *open_over(struct coord_runtime *runtime, struct fake_store *store,
                                        const char *name)
{
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    struct coord_election *election = NULL;
    config.name = name;
    config.name_bytes = strlen(name);
    assert_int_equal(
        coord_election_open_backend(runtime, fake_elector(), store, &config, &election, NULL),
        COORD_OK);
    return election;
}

static bool readable(struct coord_runtime *runtime, int timeout)
{
    struct pollfd wait = {.fd = coord_runtime_fd(runtime), .events = POLLIN};
    return poll(&wait, 1, timeout) == 1;
}

static void process(struct coord_runtime *runtime)
{
    assert_int_equal(coord_runtime_process(runtime), COORD_OK);
}

/* Until nothing is left to do but to wait for a deadline. */
static void settle(struct coord_runtime *runtime)
{
    for (int i = 0; readable(runtime, 0); i++) {
        assert_true(i < 100);
        process(runtime);
    }
}

/* ---------------------------------------------------------------- clock and schemes */

static void test_clock__goes_forward(void **state)
{
    (void)state;
    const coord_ms before = coord_clock_now();
    assert_true(before > 0);
    while (coord_clock_now() < before + 2) {
    }
    assert_true(coord_clock_wall_us() > UINT64_C(1600000000) * 1000000);
}

static const struct coord_backend_ops *not_installed(struct coord_error *error)
{
    COORD_IGNORE(coord_error_set(error, COORD_E_NOT_INSTALLED, "not here: install libcoord-x"),
                 "NULL says it");
    return NULL;
}

static void test_scheme__finds_loads_and_lists(void **state)
{
    (void)state;
    static const struct coord_scheme table[] = {
        {"memory", coord_memory_elector, NULL}, {"x", NULL, not_installed}, {NULL, NULL, NULL}};
    static const struct coord_scheme empty[] = {{NULL, NULL, NULL}};
    const struct coord_backend_ops *ops = NULL;
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_scheme_find(table, "memory", &ops, &error), COORD_OK);
    assert_ptr_equal(ops, coord_memory_elector());
    assert_int_equal(coord_scheme_find(table, "x", &ops, &error), COORD_E_NOT_INSTALLED);
    assert_non_null(strstr(error.text, "libcoord-x"));
    assert_int_equal(coord_scheme_find(table, "y", &ops, &error), COORD_E_UNKNOWN_SCHEME);
    assert_non_null(strstr(error.text, "memory:, x:"));
    assert_int_equal(coord_scheme_find(empty, "y", &ops, NULL), COORD_E_UNKNOWN_SCHEME);
}

/* ---------------------------------------------------------------- a foreign loop's descriptor */

static void test_runtime__free_takes_null_and_open_elections(void **state)
{
    (void)state;
    struct fake_store store = {.fd = 0};
    coord_runtime_free(NULL);
    struct coord_runtime *runtime = make_runtime();
    open_over(runtime, &store, "a");
    open_over(runtime, &store, "b");
    coord_runtime_free(runtime);
}

static void test_runtime__of_another_version_is_refused(void **state)
{
    (void)state;
    struct coord_runtime_config config = COORD_RUNTIME_CONFIG_INIT;
    struct coord_runtime *runtime = NULL;
    struct coord_error error = {.code = COORD_OK};
    config.size--;
    assert_int_equal(coord_runtime_new(&config, &runtime, &error), COORD_E_VERSION_MISMATCH);
    assert_null(runtime);
    assert_string_not_equal(error.text, "");
}

static void test_runtime__descriptor_is_readable_at_a_deadline_and_never_changes(void **state)
{
    (void)state;
    struct fake_store store = {.fd = 0};
    struct coord_runtime *runtime = make_runtime();
    const int fd = coord_runtime_fd(runtime);
    assert_int_equal(coord_runtime_deadline(runtime), COORD_NEVER);
    struct coord_election *election = open_over(runtime, &store, "a");
    assert_int_equal(coord_election_stand(election), COORD_OK);
    settle(runtime);
    assert_true(coord_election_is_leader(election));
    assert_false(readable(runtime, 0));
    const coord_ms deadline = coord_runtime_deadline(runtime);
    assert_true(deadline > coord_clock_now());
    for (unsigned renewals = 0; renewals < 2;) { /* no timer but the descriptor */
        assert_true(readable(runtime, GUARD));
        assert_true(coord_clock_now() >= deadline);
        process(runtime);
        renewals = atomic_load(&store.requests[COORD_VERB_RENEW]);
    }
    coord_election_close(election);
    settle(runtime);
    assert_int_equal(coord_runtime_fd(runtime), fd);
    assert_int_equal(coord_runtime_deadline(runtime), COORD_NEVER);
    coord_runtime_free(runtime);
}

static void *stand_elsewhere(void *ctx)
{
    return coord_election_stand(ctx) == COORD_OK ? ctx : NULL;
}

static void test_runtime__a_call_from_another_thread_wakes_the_loop(void **state)
{
    (void)state;
    struct fake_store store = {.fd = 0};
    struct coord_runtime *runtime = make_runtime();
    struct coord_election *election = open_over(runtime, &store, "a");
    pthread_t thread;
    settle(runtime);
    assert_int_equal(pthread_create(&thread, NULL, stand_elsewhere, election), 0);
    assert_true(readable(runtime, GUARD));
    pthread_join(thread, NULL);
    settle(runtime);
    assert_true(coord_election_is_leader(election));
    coord_runtime_free(runtime);
}

/* A host whose callbacks make new edges without end. */
static void resign_and_stand(void *ctx, struct coord_election *election,
                             const struct coord_edge *edge)
{
    atomic_fetch_add((atomic_uint *)ctx, 1);
    if (edge->kind == COORD_EDGE_STARTED) {
        coord_election_acknowledge(election, edge->term);
    }
}

static void test_runtime__a_restless_host_holds_neither_process_nor_the_others(void **state)
{
    (void)state;
    struct fake_store restless = {.fd = 0};
    struct fake_store calm = {.fd = 0};
    atomic_uint edges = 0;
    atomic_uint others = 0;
    struct coord_runtime *runtime = make_runtime();
    struct coord_election *first = open_over(runtime, &restless, "a");
    struct coord_election *second = open_over(runtime, &calm, "b");
    assert_int_equal(coord_election_on_edge(first, resign_and_stand, &edges), COORD_OK);
    assert_int_equal(coord_election_on_edge(second, resign_and_stand, &others), COORD_OK);
    assert_int_equal(coord_election_stand(first), COORD_OK);
    while (atomic_load(&edges) < 200) {
        assert_true(readable(runtime, GUARD));
        process(runtime); /* it returns, and there is more to do */
    }
    assert_int_equal(coord_election_stand(second), COORD_OK);
    const unsigned before = atomic_load(&edges);
    while (atomic_load(&others) == 0) {
        process(runtime);
    }
    assert_true(atomic_load(&edges) - before < 100);
    coord_runtime_free(runtime);
}

/* ---------------------------------------------------------------- the backends' descriptors */

static void write_one(int fd)
{
    assert_int_equal(write(fd, "x", 1), 1);
}

static void test_loop__two_electors_may_name_one_descriptor(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    struct fake_store a = {.fd = ends[0], .generation = 7};
    struct fake_store b = {.fd = ends[0], .generation = 7};
    struct coord_runtime *runtime = make_runtime();
    struct coord_election *first = open_over(runtime, &a, "a");
    open_over(runtime, &b, "b");
    settle(runtime);
    unsigned before_a = atomic_load(&a.processed);
    unsigned before_b = atomic_load(&b.processed);
    write_one(ends[1]);
    assert_true(readable(runtime, GUARD));
    process(runtime);
    assert_true(atomic_load(&a.processed) > before_a);
    assert_true(atomic_load(&b.processed) > before_b);

    coord_election_close(first); /* the other still waits for it */
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 1);
    settle(runtime);
    before_b = atomic_load(&b.processed);
    write_one(ends[1]);
    assert_true(readable(runtime, GUARD));
    process(runtime);
    assert_true(atomic_load(&b.processed) > before_b);
    coord_runtime_free(runtime);
    close(ends[0]);
    close(ends[1]);
}

static void test_loop__a_number_may_come_to_mean_another_file(void **state)
{
    (void)state;
    int old[2];
    int fresh[2];
    assert_int_equal(pipe2(old, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(fresh, O_CLOEXEC | O_NONBLOCK), 0);
    struct fake_store store = {.fd = old[0], .generation = 1};
    struct coord_runtime *runtime = make_runtime();
    struct coord_election *election = open_over(runtime, &store, "a");
    settle(runtime);
    assert_int_equal(dup3(fresh[0], old[0], O_CLOEXEC), old[0]); /* closed, and opened anew */
    store.generation = 2;
    assert_int_equal(coord_election_stand(election), COORD_OK); /* anything that drives it */
    settle(runtime);
    write_one(fresh[1]);
    const unsigned before = atomic_load(&store.processed);
    assert_true(readable(runtime, 0));
    process(runtime);
    assert_true(atomic_load(&store.processed) > before);
    coord_runtime_free(runtime);
    close(old[0]);
    close(old[1]);
    close(fresh[0]);
    close(fresh[1]);
}

static void test_loop__a_file_that_lives_on_in_a_child_does_not_spin(void **state)
{
    (void)state;
    int ends[2];
    int life[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(life, O_CLOEXEC), 0);
    struct fake_store store = {.fd = ends[0], .generation = 1};
    struct coord_runtime *runtime = make_runtime();
    struct coord_election *election = open_over(runtime, &store, "a");
    settle(runtime);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        close(life[1]);
        _exit(read(life[0], &byte, 1) == 0 ? 0 : 1); /* holds ends[0] until the parent is done */
    }
    assert_true(child > 0);
    write_one(ends[1]);
    close(ends[0]); /* closed here, and yet the epoll set keeps it, readable for ever */
    store.fd = 0;
    assert_int_equal(coord_election_stand(election), COORD_OK);
    settle(runtime);
    assert_false(readable(runtime, 0));
    assert_true(coord_election_is_leader(election));
    close(life[1]);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    coord_runtime_free(runtime);
    close(life[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock__goes_forward),
        cmocka_unit_test(test_scheme__finds_loads_and_lists),
        cmocka_unit_test(test_runtime__free_takes_null_and_open_elections),
        cmocka_unit_test(test_runtime__of_another_version_is_refused),
        cmocka_unit_test(test_runtime__descriptor_is_readable_at_a_deadline_and_never_changes),
        cmocka_unit_test(test_runtime__a_call_from_another_thread_wakes_the_loop),
        cmocka_unit_test(test_runtime__a_restless_host_holds_neither_process_nor_the_others),
        cmocka_unit_test(test_loop__two_electors_may_name_one_descriptor),
        cmocka_unit_test(test_loop__a_number_may_come_to_mean_another_file),
        cmocka_unit_test(test_loop__a_file_that_lives_on_in_a_child_does_not_spin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
