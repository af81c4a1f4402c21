/* SPDX-License-Identifier: MIT
 * tests/unit/test_election.c - what runtime/ adds to the machine: who is told, when a term is
 * acknowledged, what other threads and children see.
 */
#include "electors/memory.h"
#include "runtime/election.h"
#include "tests/support/fake_elector.h"
#include "tests/support/support.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum {
    GUARD = 30000, /* ms */
    TTL = 400
};

struct fixture {
    struct coord_runtime *runtime;
    struct coord_election *election;
    struct coord_election_config config;
    struct fake_store store;
    /* what callbacks saw */
    unsigned told[4]; /* by edge kind; 0: leader changes */
    bool released_inside;
    bool led_at_release;
    unsigned barks;
    uint64_t barked_at_term;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL || coord_runtime_new(NULL, &f->runtime, NULL) != COORD_OK) {
        free(f);
        return -1;
    }
    f->config = (struct coord_election_config)COORD_ELECTION_CONFIG_INIT;
    f->config.name = "jobs";
    f->config.name_bytes = 4;
    f->config.ttl = TTL;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    coord_runtime_free(f->runtime);
    free(f);
    return 0;
}

static void open_fake(struct fixture *f)
{
    assert_int_equal(coord_election_open_backend(f->runtime, fake_elector(), &f->store, &f->config,
                                                 &f->election, NULL),
                     COORD_OK);
}

static void drive(struct fixture *f)
{
    struct pollfd wait = {.fd = coord_runtime_fd(f->runtime), .events = POLLIN};
    poll(&wait, 1, 10);
    assert_int_equal(coord_runtime_process(f->runtime), COORD_OK);
}

static enum coord_reason reason(struct fixture *f)
{
    struct coord_explanation why;
    assert_int_equal(coord_election_explain(f->election, &why), COORD_OK);
    return why.reason;
}

static void drive_until_reason(struct fixture *f, enum coord_reason wanted)
{
    const coord_ms guard = coord_clock_now() + GUARD;
    while (reason(f) != wanted) {
        assert_true(coord_clock_now() < guard);
        drive(f);
    }
}

static void drive_for(struct fixture *f, coord_ms duration)
{
    const coord_ms end = coord_clock_now() + duration;
    while (coord_clock_now() < end) {
        drive(f);
    }
}

static unsigned sent(struct fixture *f, enum coord_verb verb)
{
    return atomic_load(&f->store.requests[verb]);
}

static void on_edge(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    struct fixture *f = ctx;
    (void)election;
    f->told[edge->kind]++;
    f->released_inside = f->released_inside || sent(f, COORD_VERB_RELEASE) > 0;
}

static void on_change(void *ctx, struct coord_election *election, bool leading)
{
    struct fixture *f = ctx;
    f->told[0]++;
    assert_int_equal(coord_election_is_leader(election), leading);
    f->released_inside = f->released_inside || (!leading && sent(f, COORD_VERB_RELEASE) > 0);
}

/* ---------------------------------------------------------------- opening */

static void test_election__makes_an_identity_where_none_is_given(void **state)
{
    struct fixture *f = *state;
    struct coord_election *other = NULL;
    open_fake(f);
    assert_int_equal(coord_election_open_backend(f->runtime, fake_elector(), &f->store, &f->config,
                                                 &other, NULL),
                     COORD_OK);
    char pid[32];
    snprintf(pid, sizeof pid, "-%ld-", (long)getpid());
    assert_non_null(strstr(coord_election_identity(f->election), pid));
    assert_string_not_equal(coord_election_identity(f->election), coord_election_identity(other));
}

static const struct coord_scheme schemes[] = {{"memory", coord_memory_elector, NULL},
                                              {NULL, NULL, NULL}};

static void test_election__options_replace_those_of_the_uri(void **state)
{
    struct fixture *f = *state;
    const char *options[] = {"ttl=7s", "grace=300ms", NULL};
    f->config.ttl = 0;
    assert_int_equal(coord_election_open(f->runtime, schemes, "memory:?coord.ttl=5s", &f->config,
                                         &f->election, NULL),
                     COORD_OK);
    assert_int_equal(coord_election_timing(f->election)->lease, 5000);
    coord_election_close(f->election);
    f->config.options = options;
    assert_int_equal(coord_election_open(f->runtime, schemes, "memory:?coord.ttl=5s", &f->config,
                                         &f->election, NULL),
                     COORD_OK);
    assert_int_equal(coord_election_timing(f->election)->lease, 7000);
    assert_int_equal(coord_election_timing(f->election)->grace, 300);
    coord_election_close(f->election);
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_election_open_backend(f->runtime, fake_elector(), &f->store, &f->config,
                                                 &f->election, &error),
                     COORD_E_UNKNOWN_OPTION);
}

static void test_election__of_another_version_is_refused(void **state)
{
    struct fixture *f = *state;
    struct coord_error error = {.code = COORD_OK};
    f->config.size++;
    assert_int_equal(coord_election_open_backend(f->runtime, fake_elector(), &f->store, &f->config,
                                                 &f->election, &error),
                     COORD_E_VERSION_MISMATCH);
    assert_int_equal(
        coord_election_open(f->runtime, schemes, "memory:", &f->config, &f->election, &error),
        COORD_E_VERSION_MISMATCH);
}

/* ---------------------------------------------------------------- acknowledgement */

static void look_at_release(void *ctx, enum coord_verb verb)
{
    struct fixture *f = ctx;
    if (verb == COORD_VERB_RELEASE) {
        f->led_at_release = coord_election_is_leader(f->election);
    }
}

static void test_election__resigns_when_the_callbacks_have_returned_and_says_no_before(void **state)
{
    struct fixture *f = *state;
    f->store.at_request = look_at_release;
    f->store.ctx = f;
    f->led_at_release = true;
    open_fake(f);
    assert_int_equal(coord_election_on_edge(f->election, on_edge, f), COORD_OK);
    assert_int_equal(coord_election_on_leader_change(f->election, on_change, f), COORD_OK);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(coord_election_step_down(f->election, NULL), COORD_OK);
    drive_until_reason(f, COORD_REASON_NOT_STANDING); /* try_acquire() is for one term */
    assert_int_equal(f->told[COORD_EDGE_STOPPING], 1);
    assert_int_equal(f->told[COORD_EDGE_STOPPED], 1);
    assert_int_equal(f->told[0], 2);
    assert_int_equal(sent(f, COORD_VERB_RELEASE), 1);
    assert_false(f->led_at_release); /* nobody can be granted it while we still say yes */
}

static void on_stopping_only(void *ctx, struct coord_election *election,
                             const struct coord_edge *edge)
{
    struct fixture *f = ctx;
    (void)election;
    if (edge->kind == COORD_EDGE_STOPPING) {
        f->told[edge->kind]++;
        f->released_inside = sent(f, COORD_VERB_RELEASE) > 0;
        assert_true(coord_election_is_leader(election)); /* its work ends under the lease */
    }
}

static void test_election__leads_on_while_its_work_ends(void **state)
{
    struct fixture *f = *state;
    open_fake(f);
    assert_int_equal(coord_election_on_edge(f->election, on_stopping_only, f), COORD_OK);
    assert_int_equal(coord_election_stand(f->election), COORD_OK);
    drive_until_reason(f, COORD_REASON_LEADING);
    assert_int_equal(coord_election_withdraw(f->election), COORD_OK);
    drive_until_reason(f, COORD_REASON_NOT_STANDING);
    assert_int_equal(f->told[COORD_EDGE_STOPPING], 1);
    assert_false(f->released_inside);
    assert_int_equal(sent(f, COORD_VERB_RELEASE), 1);
}

static void test_election__nobody_told_is_acknowledged_at_hard(void **state)
{
    struct fixture *f = *state;
    open_fake(f);
    assert_int_equal(coord_election_stand(f->election), COORD_OK);
    drive_until_reason(f, COORD_REASON_LEADING);
    assert_int_equal(coord_election_step_down(f->election, NULL), COORD_OK);
    drive(f);
    struct coord_claim claim = coord_election_claim(f->election);
    assert_true(claim.leading);
    assert_true(claim.stopping);
    const coord_ms hard = coord_clock_now() + claim.remaining;
    while (coord_election_is_leader(f->election)) {
        assert_int_equal(sent(f, COORD_VERB_RELEASE), 0);
        drive(f);
    }
    assert_true(coord_clock_now() >= hard);
    drive_until_reason(f, COORD_REASON_LEADING); /* no silent end: it stands again */
    assert_int_equal(coord_election_claim(f->election).term, 2);
}

static void test_election__a_lost_term_waits_for_hard_where_nobody_was_told(void **state)
{
    struct fixture *f = *state;
    f->config.ttl = 2000;
    open_fake(f);
    assert_int_equal(coord_election_stand(f->election), COORD_OK);
    drive_until_reason(f, COORD_REASON_LEADING);
    const coord_ms hard = coord_clock_now() + coord_election_claim(f->election).remaining;
    atomic_store(&f->store.lost, true);
    assert_int_equal(coord_election_stand(f->election), COORD_OK); /* has it driven */
    drive(f);
    assert_false(coord_election_is_leader(f->election));
    drive_until_reason(f, COORD_REASON_WAITING_FOR_HOST);
    drive_until_reason(f, COORD_REASON_LEADING);
    assert_true(coord_clock_now() + 1 >= hard);
    assert_int_equal(sent(f, COORD_VERB_RELEASE), 0); /* it was not ours any more */
}

static void test_election__try_acquire_acknowledges_a_term_that_ended(void **state)
{
    struct fixture *f = *state;
    f->config.explicit_ack = true;
    open_fake(f);
    assert_int_equal(coord_election_on_edge(f->election, on_edge, f), COORD_OK);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    atomic_store(&f->store.lost, true);
    assert_int_equal(coord_election_renew(f->election, GUARD, NULL), COORD_E_NOT_LEADER);
    assert_int_equal(reason(f), COORD_REASON_WAITING_FOR_HOST);
    assert_int_equal(f->told[COORD_EDGE_STOPPING], 0); /* lost: there is nothing to stop in time */
    assert_int_equal(f->told[COORD_EDGE_STOPPED], 1);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(coord_election_claim(f->election).term, 2);
}

static void test_election__one_attempt_is_for_one_term(void **state)
{
    struct fixture *f = *state;
    open_fake(f);
    assert_int_equal(coord_election_on_edge(f->election, on_edge, f), COORD_OK);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    atomic_store(&f->store.lost, true);
    assert_int_equal(coord_election_renew(f->election, GUARD, NULL), COORD_E_NOT_LEADER);
    drive_for(f, TTL);
    assert_int_equal(reason(f), COORD_REASON_NOT_STANDING);
    assert_int_equal(sent(f, COORD_VERB_ACQUIRE), 1);
    assert_int_equal(coord_election_stand(f->election), COORD_OK);
    drive_until_reason(f, COORD_REASON_LEADING);
}

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

/* ---------------------------------------------------------------- stores in trouble */

static void test_election__try_acquire_says_why_the_store_could_not_be_asked(void **state)
{
    struct fixture *f = *state;
    struct coord_error error = {.code = COORD_OK};
    f->config.ttl = 60000;
    open_fake(f);
    f->store.acquire = COORD_FAILED;
    f->store.code = COORD_E_UNREACHABLE;
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, &error), COORD_E_UNREACHABLE);
    assert_string_not_equal(error.text, "");
    assert_in_range(sent(f, COORD_VERB_ACQUIRE), 2, 3); /* a stale connection gets a second try */
    f->store.code = COORD_E_WRONG_PASSWORD;
    const unsigned before = sent(f, COORD_VERB_ACQUIRE);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, &error),
                     COORD_E_WRONG_PASSWORD);
    assert_int_equal(sent(f, COORD_VERB_ACQUIRE), before + 1);
    assert_int_equal(reason(f), COORD_REASON_NOT_STANDING);
    f->store.acquire = COORD_GRANTED;
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, &error), COORD_OK);
}

static void test_election__an_attempt_without_an_answer_is_undone(void **state)
{
    struct fixture *f = *state;
    open_fake(f);
    atomic_store(&f->store.silent, true);
    assert_int_equal(coord_election_try_acquire(f->election, 20, NULL), COORD_E_TIMEOUT);
    atomic_store(&f->store.silent, false); /* granted, though nobody waits for it any more */
    drive_until_reason(f, COORD_REASON_NOT_STANDING);
    drive_for(f, TTL);
    assert_false(coord_election_is_leader(f->election));
    assert_int_equal(sent(f, COORD_VERB_UNDO), 1);
}

static void test_election__renew_says_when_it_was_lost_meanwhile(void **state)
{
    struct fixture *f = *state;
    open_fake(f);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    f->store.renew = COORD_LOST;
    assert_int_equal(coord_election_renew(f->election, GUARD, NULL), COORD_E_NOT_LEADER);
    assert_false(coord_election_is_leader(f->election));
}

static void test_election__renew_without_an_answer_keeps_the_term(void **state)
{
    struct fixture *f = *state;
    f->config.ttl = 60000;
    open_fake(f);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    atomic_store(&f->store.silent, true);
    assert_int_equal(coord_election_renew(f->election, 20, NULL), COORD_E_TIMEOUT);
    assert_true(coord_election_is_leader(f->election));
}

static void test_election__observe_says_why_the_store_could_not_be_asked(void **state)
{
    struct fixture *f = *state;
    struct coord_observation seen;
    struct coord_error error = {.code = COORD_OK};
    open_fake(f);
    f->store.code = COORD_E_NO_RIGHT;
    assert_int_equal(coord_election_observe(f->election, GUARD, &seen, &error), COORD_E_NO_RIGHT);
    assert_int_equal(error.code, COORD_E_NO_RIGHT);
    atomic_store(&f->store.silent, true);
    f->store.code = COORD_OK;
    assert_int_not_equal(coord_election_observe(f->election, 20, &seen, &error), COORD_OK);
    atomic_store(&f->store.silent, false);
    assert_int_equal(coord_election_observe(f->election, GUARD, &seen, &error), COORD_OK);
}

static void *observe_often(void *ctx)
{
    struct fixture *f = ctx;
    struct coord_observation seen;
    for (int i = 0; i < 200; i++) {
        if (coord_election_observe(f->election, GUARD, &seen, NULL) != COORD_OK) {
            return NULL;
        }
    }
    return f;
}

static void test_election__several_threads_may_ask_at_once(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];
    open_fake(f);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, observe_often, f), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, f);
    }
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_election__makes_an_identity_where_none_is_given),
        TEST(test_election__options_replace_those_of_the_uri),
        TEST(test_election__of_another_version_is_refused),
        TEST(test_election__resigns_when_the_callbacks_have_returned_and_says_no_before),
        TEST(test_election__leads_on_while_its_work_ends),
        TEST(test_election__nobody_told_is_acknowledged_at_hard),
        TEST(test_election__a_lost_term_waits_for_hard_where_nobody_was_told),
        TEST(test_election__try_acquire_acknowledges_a_term_that_ended),
        TEST(test_election__one_attempt_is_for_one_term),
        TEST(test_watchdog__barks_once_when_hard_passes_unacknowledged),
        TEST(test_watchdog__stays_silent_when_the_callbacks_return),
        TEST(test_watchdog__aborts_where_it_was_told_to),
        TEST(test_election__try_acquire_says_why_the_store_could_not_be_asked),
        TEST(test_election__an_attempt_without_an_answer_is_undone),
        TEST(test_election__renew_says_when_it_was_lost_meanwhile),
        TEST(test_election__renew_without_an_answer_keeps_the_term),
        TEST(test_election__observe_says_why_the_store_could_not_be_asked),
        TEST(test_election__several_threads_may_ask_at_once),
        TEST(test_election__a_child_forked_in_a_callback_finds_its_way_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
