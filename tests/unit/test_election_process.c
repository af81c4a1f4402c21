/* SPDX-License-Identifier: MIT
 * tests/unit/test_election_process.c - watchdogs, and a fork in an awkward place.
 */
#include "tests/support/election_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---------------------------------------------------------------- watchdog */

static void bark(void *ctx, struct coord_election *election, uint64_t term)
{
    struct fixture *f = ctx;
    assert_ptr_equal(election, f->election);
    f->barks++;
    f->barked_at_term = term;
}

static void test_watchdog__barks_once_when_hard_passes_unacknowledged(void **state)
{
    struct fixture *f = *state;
    f->config.explicit_ack = true;
    f->config.watchdog = bark;
    f->config.watchdog_ctx = f;
    open_fake(f);
    assert_int_equal(coord_election_stand(f->election), COORD_OK);
    drive_until_reason(f, COORD_REASON_LEADING);
    drive_for(f, 2 * TTL); /* it is renewed */
    assert_int_equal(f->barks, 0);
    const coord_ms hard = coord_clock_now() + coord_election_claim(f->election).remaining;
    assert_int_equal(coord_election_withdraw(f->election), COORD_OK);
    while (f->barks == 0) {
        drive(f);
    }
    assert_true(coord_clock_now() >= hard);
    assert_int_equal(f->barked_at_term, 1);
    assert_false(coord_election_is_leader(f->election));
    drive_for(f, TTL);
    assert_int_equal(f->barks, 1);
    assert_int_equal(coord_election_acknowledge(f->election, 1), COORD_OK);
    drive_until_reason(f, COORD_REASON_NOT_STANDING);
}

static void test_watchdog__wakes_the_loop_by_itself_after_a_lost_term(void **state)
{
    struct fixture *f = *state;
    f->config.explicit_ack = true;
    f->config.watchdog = bark;
    f->config.watchdog_ctx = f;
    open_fake(f);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    const coord_ms hard = coord_clock_now() + coord_election_claim(f->election).remaining;
    atomic_store(&f->store.lost, true);
    assert_int_equal(coord_election_renew(f->election, GUARD, NULL), COORD_E_NOT_LEADER);
    struct pollfd wait = {.fd = coord_runtime_fd(f->runtime), .events = POLLIN};
    while (f->barks == 0) { /* nothing is left to wait for but this deadline */
        assert_int_equal(poll(&wait, 1, GUARD), 1);
        assert_int_equal(coord_runtime_process(f->runtime), COORD_OK);
    }
    assert_true(coord_clock_now() + 1 >= hard);
}

static void test_watchdog__stays_silent_when_the_callbacks_return(void **state)
{
    struct fixture *f = *state;
    f->config.watchdog = bark;
    f->config.watchdog_ctx = f;
    open_fake(f);
    assert_int_equal(coord_election_on_edge(f->election, on_edge, f), COORD_OK);
    assert_int_equal(coord_election_stand(f->election), COORD_OK);
    drive_until_reason(f, COORD_REASON_LEADING);
    atomic_store(&f->store.silent, true); /* the term runs out */
    while (f->told[COORD_EDGE_STOPPED] == 0) {
        drive(f);
    }
    drive_for(f, TTL);
    assert_int_equal(f->barks, 0);
}

static void test_watchdog__aborts_where_it_was_told_to(void **state)
{
    struct fixture *f = *state;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {.rlim_cur = 0, .rlim_max = 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        struct fixture *own = calloc(1, sizeof *own);
        own->config = f->config;
        own->config.watchdog_abort = true;
        own->config.explicit_ack = true;
        if (coord_runtime_new(NULL, &own->runtime, NULL) != COORD_OK ||
            coord_election_open_backend(own->runtime, fake_elector(), &own->store, &own->config,
                                        &own->election, NULL) != COORD_OK ||
            coord_election_try_acquire(own->election, GUARD, NULL) != COORD_OK) {
            _exit(1);
        }
        coord_election_stop(own->election, GUARD, NULL); /* waits for a host that says nothing */
        _exit(2);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* ---------------------------------------------------------------- a fork inside a callback */

static void fork_inside(void *ctx, struct coord_election *election, bool leading)
{
    pid_t *child = ctx;
    (void)election;
    if (leading) {
        *child = fork();
    }
}

static void test_election__a_child_forked_in_a_callback_finds_its_way_out(void **state)
{
    struct fixture *f = *state;
    pid_t child = -1;
    int status = -1;
    open_fake(f);
    assert_int_equal(coord_election_on_leader_change(f->election, fork_inside, &child), COORD_OK);
    assert_int_equal(coord_election_on_edge(f->election, on_edge, f), COORD_OK);
    const enum coord_err rc = coord_election_try_acquire(f->election, GUARD, NULL);
    if (child == 0) {
        const bool good = rc == COORD_E_FORKED && !coord_election_is_leader(f->election) &&
                          coord_runtime_process(f->runtime) == COORD_E_FORKED;
        coord_election_close(f->election);
        coord_runtime_free(f->runtime);
        _exit(good && atomic_load(&f->store.forked_ends) == 1 ? 0 : 1);
    }
    assert_int_equal(rc, COORD_OK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(coord_election_is_leader(f->election));
}

/* A backend that is busy, with a lock of its own as memory, libc or a library may hold one. */
struct busy {
    struct fixture *fixture;
    pthread_mutex_t lock;
    atomic_bool end;
};

static void be_busy(void *ctx, enum coord_verb verb)
{
    struct busy *busy = ctx;
    (void)verb;
    pthread_mutex_lock(&busy->lock);
    for (uint64_t until = coord_clock_wall_us() + 300; coord_clock_wall_us() < until;) {
    }
    pthread_mutex_unlock(&busy->lock);
}

static void *renew_often(void *ctx)
{
    struct busy *busy = ctx;
    while (!atomic_load(&busy->end)) {
        if (coord_election_renew(busy->fixture->election, GUARD, NULL) != COORD_OK) {
            return NULL;
        }
    }
    return busy;
}

static void test_election__a_fork_finds_every_list_whole(void **state)
{
    struct fixture *f = *state;
    struct busy busy = {.fixture = f, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    void *result = NULL;
    f->config.ttl = 60000;
    f->store.at_request = be_busy;
    f->store.ctx = &busy;
    open_fake(f);
    assert_int_equal(coord_runtime_start(f->runtime, NULL), COORD_OK);
    assert_int_equal(coord_election_wait(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(pthread_create(&thread, NULL, renew_often, &busy), 0);
    for (int i = 0; i < 100; i++) { /* whatever the threads are at just now */
        int status = -1;
        const pid_t child = fork();
        if (child == 0) {
            /* Nobody was at work as it was forked, and so nothing stays locked or half-written. */
            const int rc = pthread_mutex_trylock(&busy.lock);
            coord_election_close(f->election);
            coord_runtime_free(f->runtime);
            _exit(rc == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&busy.end, true);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &busy);
    coord_election_close(f->election); /* before busy is gone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_watchdog__barks_once_when_hard_passes_unacknowledged),
        TEST(test_watchdog__wakes_the_loop_by_itself_after_a_lost_term),
        TEST(test_watchdog__stays_silent_when_the_callbacks_return),
        TEST(test_watchdog__aborts_where_it_was_told_to),
        TEST(test_election__a_fork_finds_every_list_whole),
        TEST(test_election__a_child_forked_in_a_callback_finds_its_way_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
