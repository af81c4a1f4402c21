/* SPDX-License-Identifier: MIT
 * tests/unit/test_threads.c - helper threads: what they are, beside other ways to drive, and
 * from inside.
 */
#include "tests/support/election_fixture.h"
#include "tests/support/guard.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>

enum {
    ROUNDS = 10
};

/* With the usual lease, which no pause of this machine ends. */
static void open_calm(struct fixture *f)
{
    f->config.ttl = 0;
    open_fake(f);
}

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
    struct fixture *f = *state;
    sigset_t before;
    sigset_t after;
    open_calm(f);
    memset(&before, 0, sizeof before); /* the kernel fills in the first words only */
    memset(&after, 0, sizeof after);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(coord_runtime_start(f->runtime, NULL), COORD_OK);
    assert_int_equal(coord_runtime_start(f->runtime, NULL), COORD_OK); /* once is enough */
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(coord_election_wait(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(threads_called("coord-io"), 1);
    assert_int_equal(threads_called("coord-callbacks"), 1);
    assert_int_equal(coord_runtime_stop(f->runtime, COORD_NEVER), COORD_OK);
    assert_int_equal(coord_runtime_stop(f->runtime, COORD_NEVER), COORD_OK);
    assert_int_equal(threads_called("coord-io"), 0);
    assert_int_equal(threads_called("coord-callbacks"), 0);
    assert_int_equal(coord_election_renew(f->election, GUARD, NULL), COORD_OK); /* drives itself */
}

static void test_threads__leave_nothing_for_process_to_do(void **state)
{
    struct fixture *f = *state;
    open_calm(f);
    assert_int_equal(coord_runtime_start(f->runtime, NULL), COORD_OK);
    assert_int_equal(coord_election_wait(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(coord_runtime_process(f->runtime), COORD_OK);
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
    struct fixture *f = *state;
    struct gate gate;
    sem_init(&gate.entered, 0, 0);
    sem_init(&gate.go, 0, 0);
    open_calm(f);
    assert_int_equal(coord_election_on_leader_change(f->election, pass_gate, &gate), COORD_OK);
    assert_int_equal(coord_runtime_start(f->runtime, NULL), COORD_OK);
    assert_int_equal(coord_election_stand(f->election), COORD_OK);
    while (sem_wait(&gate.entered) != 0) {
    }
    assert_int_equal(coord_runtime_stop(f->runtime, 20), COORD_E_BUSY);
    assert_int_equal(threads_called("coord-io"), 1); /* they go on */
    sem_post(&gate.go);
    assert_int_equal(coord_runtime_stop(f->runtime, COORD_NEVER), COORD_OK);
    sem_destroy(&gate.entered);
    sem_destroy(&gate.go);
}

/* ---------------------------------------------------------------- beside blocking calls */

/* Somebody serves its deadlines: one time may be the answer to a call, a second is not. */
static void see_it_driven(struct fixture *f, const char *by)
{
    const unsigned before = atomic_load(&f->store.processed);
    const struct guard guard = guard_for(by);
    while (atomic_load(&f->store.processed) < before + 3) {
        wait_on(&guard);
    }
}

static void *wait_elsewhere(void *ctx)
{
    struct fixture *f = ctx;
    return coord_election_wait(f->election, COORD_NEVER, NULL) == COORD_OK ? ctx : NULL;
}

static void test_threads__drive_on_where_a_blocking_call_did(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    void *result = NULL;
    atomic_store(&f->store.silent, true); /* requests are given up and made again: there is work */
    open_fake(f);
    assert_int_equal(pthread_create(&thread, NULL, wait_elsewhere, f), 0);
    for (int i = 0; i < ROUNDS; i++) {
        see_it_driven(f, "the blocking call to drive");
        assert_int_equal(coord_runtime_start(f->runtime, NULL), COORD_OK);
        see_it_driven(f, "the helper threads to drive");
        assert_int_equal(coord_runtime_stop(f->runtime, COORD_NEVER), COORD_OK);
    }
    atomic_store(&f->store.silent, false);
    pthread_join(thread, &result);
    assert_ptr_equal(result, f);
}

static void test_threads__blocking_calls_hand_over_when_they_start_and_when_they_end(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[3];
    void *result = NULL;
    atomic_store(&f->store.silent, true);
    open_calm(f);
    for (int i = 0; i < 3; i++) { /* one of them drives, the others wait */
        assert_int_equal(pthread_create(&threads[i], NULL, wait_elsewhere, f), 0);
    }
    while (sent(f, COORD_VERB_ACQUIRE) == 0) {
        sched_yield();
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(coord_runtime_start(f->runtime, NULL), COORD_OK);
        assert_int_equal(coord_runtime_stop(f->runtime, COORD_NEVER), COORD_OK);
    }
    atomic_store(&f->store.silent, false);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, f);
    }
}

/* ---------------------------------------------------------------- from inside */

struct inside {
    struct coord_runtime *runtime;
    atomic_int code;
};

static void stop_inside(void *ctx, struct coord_election *election, uint64_t term)
{
    struct inside *inside = ctx;
    (void)election;
    (void)term;
    atomic_store(&inside->code, coord_runtime_stop(inside->runtime, COORD_NEVER));
}

static void test_threads__stop_from_inside_a_watchdog_is_busy(void **state)
{
    struct fixture *f = *state;
    struct inside inside = {.runtime = f->runtime, .code = COORD_OK};
    f->config.explicit_ack = true;
    f->config.watchdog = stop_inside;
    f->config.watchdog_ctx = &inside;
    open_fake(f);
    assert_int_equal(coord_runtime_start(f->runtime, NULL), COORD_OK);
    assert_int_equal(coord_election_wait(f->election, COORD_NEVER, NULL), COORD_OK);
    atomic_store(&f->store.silent, true); /* the term runs out, and nobody acknowledges */
    const struct guard guard = guard_for("the watchdog");
    while (atomic_load(&inside.code) == COORD_OK) {
        wait_on(&guard);
    }
    assert_int_equal(atomic_load(&inside.code), COORD_E_BUSY);
    assert_int_equal(coord_runtime_stop(f->runtime, COORD_NEVER), COORD_OK);
}

static void stop_as_leader(void *ctx, struct coord_election *election, bool leading)
{
    struct inside *inside = ctx;
    (void)election;
    if (leading) {
        atomic_store(&inside->code, coord_runtime_stop(inside->runtime, COORD_NEVER));
    }
}

static void test_threads__stop_from_inside_a_callback_is_busy(void **state)
{
    struct fixture *f = *state;
    struct inside inside = {.runtime = f->runtime, .code = 1};
    open_calm(f);
    assert_int_equal(coord_election_on_leader_change(f->election, stop_as_leader, &inside),
                     COORD_OK);
    assert_int_equal(coord_runtime_start(f->runtime, NULL), COORD_OK);
    assert_int_equal(coord_election_stand(f->election), COORD_OK);
    while (atomic_load(&inside.code) == 1) {
        sched_yield();
    }
    assert_int_equal(inside.code, COORD_E_BUSY);
}

static void fork_and_close(void *ctx, struct coord_election *election, bool leading)
{
    pid_t *child = ctx;
    if (leading) {
        *child = fork();
    }
    if (*child == 0) {
        coord_election_close(election);
    }
}

static void test_election__a_child_may_close_inside_the_callback_that_forked_it(void **state)
{
    struct fixture *f = *state;
    pid_t child = -1;
    int status = -1;
    open_fake(f);
    assert_int_equal(coord_election_on_leader_change(f->election, fork_and_close, &child),
                     COORD_OK);
    const enum coord_err rc = coord_election_try_acquire(f->election, GUARD, NULL);
    if (child == 0) {
        coord_runtime_free(f->runtime);
        _exit(rc == COORD_E_FORKED && atomic_load(&f->store.forked_ends) == 1 ? 0 : 1);
    }
    assert_int_equal(rc, COORD_OK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(coord_election_is_leader(f->election));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_threads__are_named_and_deaf_to_signals),
        TEST(test_threads__leave_nothing_for_process_to_do),
        TEST(test_threads__stop_is_busy_while_a_callback_runs),
        TEST(test_threads__drive_on_where_a_blocking_call_did),
        TEST(test_threads__blocking_calls_hand_over_when_they_start_and_when_they_end),
        TEST(test_threads__stop_from_inside_a_watchdog_is_busy),
        TEST(test_threads__stop_from_inside_a_callback_is_busy),
        TEST(test_election__a_child_may_close_inside_the_callback_that_forked_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
