/* SPDX-License-Identifier: MIT
 * tests/unit/test_runtime.c - the clock, the loop, the threads.
 */
#include "electors/memory.h"
#include "runtime/election.h"
#include "tests/support/fake_elector.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
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

/* ---------------------------------------------------------------- threads */

static bool read_line_of(const char *path, const char *begin, char *out, size_t room)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = strncmp(line, begin, strlen(begin)) == 0;
        if (found) {
            snprintf(out, room, "%s", line + strlen(begin));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* How many threads are called `name`; each blocks every signal that can be blocked. */
static int threads_called(const char *name)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    assert_non_null(tasks);
    while ((task = readdir(tasks)) != NULL) {
        char path[300];
        char text[256] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        if (task->d_name[0] == '.' || !read_line_of(path, "Name:\t", text, sizeof text)) {
            continue;
        }
        text[strcspn(text, "\n")] = '\0';
        if (strcmp(text, name) != 0) {
            continue;
        }
        count++;
        assert_true(read_line_of(path, "SigBlk:", text, sizeof text));
        const uint64_t blocked = strtoull(text, NULL, 16);
        for (int signal = 1; signal <= 31; signal++) {
            if (signal != SIGKILL && signal != SIGSTOP) {
                assert_true((blocked >> (signal - 1) & 1) != 0);
            }
        }
    }
    closedir(tasks);
    return count;
}

static void test_threads__are_named_and_deaf_to_signals(void **state)
{
    (void)state;
    sigset_t before;
    sigset_t after;
    struct fake_store store = {.fd = 0};
    struct coord_runtime *runtime = make_runtime();
    struct coord_election *election = open_over(runtime, &store, "a");
    memset(&before, 0, sizeof before); /* the kernel fills in the first words only */
    memset(&after, 0, sizeof after);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(coord_runtime_start(runtime, NULL), COORD_OK);
    assert_int_equal(coord_runtime_start(runtime, NULL), COORD_OK); /* once is enough */
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(coord_election_wait(election, GUARD, NULL), COORD_OK);
    assert_int_equal(threads_called("coord-io"), 1);
    assert_int_equal(threads_called("coord-callbacks"), 1);
    assert_int_equal(coord_runtime_stop(runtime, COORD_NEVER), COORD_OK);
    assert_int_equal(coord_runtime_stop(runtime, COORD_NEVER), COORD_OK);
    assert_int_equal(threads_called("coord-io"), 0);
    assert_int_equal(threads_called("coord-callbacks"), 0);
    assert_int_equal(coord_election_renew(election, GUARD, NULL), COORD_OK); /* drives itself */
    coord_runtime_free(runtime);
}

static void test_threads__leave_nothing_for_process_to_do(void **state)
{
    (void)state;
    struct fake_store store = {.fd = 0};
    struct coord_runtime *runtime = make_runtime();
    struct coord_election *election = open_over(runtime, &store, "a");
    assert_int_equal(coord_runtime_start(runtime, NULL), COORD_OK);
    assert_int_equal(coord_election_wait(election, GUARD, NULL), COORD_OK);
    process(runtime);
    coord_runtime_free(runtime);
}

struct gate {
    sem_t entered;
    sem_t go;
};

static void pass_gate(void *ctx, struct coord_election *election, bool leading)
{
    struct gate *gate = ctx;
    (void)election;
    if (leading) {
        sem_post(&gate->entered);
        while (sem_wait(&gate->go) != 0) {
        }
    }
}

static void test_threads__stop_is_busy_while_a_callback_runs(void **state)
{
    (void)state;
    struct fake_store store = {.fd = 0};
    struct gate gate;
    sem_init(&gate.entered, 0, 0);
    sem_init(&gate.go, 0, 0);
    struct coord_runtime *runtime = make_runtime();
    struct coord_election *election = open_over(runtime, &store, "a");
    assert_int_equal(coord_election_on_leader_change(election, pass_gate, &gate), COORD_OK);
    assert_int_equal(coord_runtime_start(runtime, NULL), COORD_OK);
    assert_int_equal(coord_election_stand(election), COORD_OK);
    while (sem_wait(&gate.entered) != 0) {
    }
    assert_int_equal(coord_runtime_stop(runtime, 20), COORD_E_BUSY);
    assert_int_equal(threads_called("coord-io"), 1); /* they go on */
    sem_post(&gate.go);
    assert_int_equal(coord_runtime_stop(runtime, COORD_NEVER), COORD_OK);
    coord_runtime_free(runtime);
    sem_destroy(&gate.entered);
    sem_destroy(&gate.go);
}

struct inside {
    struct coord_runtime *runtime;
    atomic_int code;
};

static void stop_inside(void *ctx, struct coord_election *election, bool leading)
{
    struct inside *inside = ctx;
    (void)election;
    if (leading) {
        atomic_store(&inside->code, coord_runtime_stop(inside->runtime, COORD_NEVER));
    }
}

static void test_threads__stop_from_inside_a_callback_is_busy(void **state)
{
    (void)state;
    struct fake_store store = {.fd = 0};
    struct coord_runtime *runtime = make_runtime();
    struct inside inside = {.runtime = runtime, .code = 1};
    struct coord_election *election = open_over(runtime, &store, "a");
    assert_int_equal(coord_election_on_leader_change(election, stop_inside, &inside), COORD_OK);
    assert_int_equal(coord_runtime_start(runtime, NULL), COORD_OK);
    assert_int_equal(coord_election_stand(election), COORD_OK);
    while (atomic_load(&inside.code) == 1) {
        sched_yield();
    }
    assert_int_equal(inside.code, COORD_E_BUSY);
    coord_runtime_free(runtime);
}

static void *wait_elsewhere(void *ctx)
{
    return coord_election_wait(ctx, GUARD, NULL) == COORD_OK ? ctx : NULL;
}

static void test_threads__blocking_calls_hand_over_when_they_start_and_when_they_end(void **state)
{
    (void)state;
    struct fake_store store = {.silent = true};
    struct coord_runtime *runtime = make_runtime();
    struct coord_election *election = open_over(runtime, &store, "a");
    pthread_t threads[3];
    void *result = NULL;
    for (int i = 0; i < 3; i++) { /* one of them drives, the others wait */
        assert_int_equal(pthread_create(&threads[i], NULL, wait_elsewhere, election), 0);
    }
    while (atomic_load(&store.requests[COORD_VERB_ACQUIRE]) == 0) {
        sched_yield();
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(coord_runtime_start(runtime, NULL), COORD_OK);
        assert_int_equal(coord_runtime_stop(runtime, COORD_NEVER), COORD_OK);
    }
    atomic_store(&store.silent, false);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, election);
    }
    coord_runtime_free(runtime);
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
        cmocka_unit_test(test_threads__are_named_and_deaf_to_signals),
        cmocka_unit_test(test_threads__leave_nothing_for_process_to_do),
        cmocka_unit_test(test_threads__stop_is_busy_while_a_callback_runs),
        cmocka_unit_test(test_threads__stop_from_inside_a_callback_is_busy),
        cmocka_unit_test(test_threads__blocking_calls_hand_over_when_they_start_and_when_they_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
