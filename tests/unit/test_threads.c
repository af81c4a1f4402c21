/* SPDX-License-Identifier: MIT
 * tests/unit/test_threads.c - helper threads beside other ways to drive, and from inside.
 */
#include "tests/support/election_fixture.h"
#include "tests/support/guard.h"

#include <pthread.h>
#include <sys/wait.h>

enum {
    ROUNDS = 10
};

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
        TEST(test_threads__drive_on_where_a_blocking_call_did),
        TEST(test_threads__stop_from_inside_a_watchdog_is_busy),
        TEST(test_election__a_child_may_close_inside_the_callback_that_forked_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
