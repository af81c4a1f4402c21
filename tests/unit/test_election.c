/* SPDX-License-Identifier: MIT
 * tests/unit/test_election.c - what runtime/ adds to the machine: who is told, and when a term is
 * acknowledged.
 */
#include "electors/memory.h"
#include "tests/support/election_fixture.h"

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

static void outlast_the_term(void *ctx, struct coord_election *election,
                             const struct coord_edge *edge)
{
    struct fixture *f = ctx;
    (void)election;
    f->told[edge->kind]++;
    while (edge->kind == COORD_EDGE_STARTED && coord_clock_now() <= edge->hard) {
    }
}

static void test_election__an_attempt_whose_term_is_over_at_once_is_decided(void **state)
{
    struct fixture *f = *state;
    struct coord_error error = {.code = COORD_OK};
    open_fake(f);
    assert_int_equal(coord_election_on_edge(f->election, outlast_the_term, f), COORD_OK);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, &error), COORD_E_NOT_LEADER);
    assert_int_equal(f->told[COORD_EDGE_STARTED], 1);
    assert_int_equal(coord_election_stop(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(f->told[COORD_EDGE_STOPPED], 1);
}

static void stop_being_silent(void *ctx, enum coord_verb verb)
{
    struct fixture *f = ctx;
    if (verb == COORD_VERB_INIT && sent(f, COORD_VERB_INIT) == 3) {
        atomic_store(&f->store.silent, false);
    }
}

static void test_election__a_question_without_an_answer_is_asked_until_the_time_is_up(void **state)
{
    struct fixture *f = *state;
    open_fake(f);
    f->store.at_request = stop_being_silent;
    f->store.ctx = f;
    atomic_store(&f->store.silent, true);
    assert_int_equal(coord_election_init_record(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(sent(f, COORD_VERB_INIT), 4);
    atomic_store(&f->store.silent, true);
    assert_int_equal(coord_election_init_record(f->election, TTL, NULL), COORD_E_NO_ANSWER);
}

struct others {
    struct coord_election *release;
    struct coord_election *stop;
    enum coord_err code;
    enum coord_stop how;
};

static void end_others(void *ctx, struct coord_election *election, bool leading)
{
    struct others *others = ctx;
    (void)election;
    if (leading) {
        others->code = coord_election_release(others->release, GUARD, NULL);
        COORD_IGNORE(coord_election_stop(others->stop, COORD_NEVER, &others->how), "never forked");
    }
}

/* Nobody else can be told anything meanwhile: whoever waited for that would wait in vain. */
static void test_election__others_may_be_ended_inside_a_callback(void **state)
{
    struct fixture *f = *state;
    struct others others = {.code = COORD_E_TIMEOUT, .how = COORD_STOP_RELEASED};
    f->config.ttl = 60000;
    open_fake(f);
    others.release = f->election;
    open_fake(f);
    others.stop = f->election;
    open_fake(f);
    assert_int_equal(coord_election_on_edge(others.release, on_edge, f), COORD_OK);
    assert_int_equal(coord_election_on_edge(others.stop, on_edge, f), COORD_OK);
    assert_int_equal(coord_election_try_acquire(others.release, GUARD, NULL), COORD_OK);
    assert_int_equal(coord_election_try_acquire(others.stop, GUARD, NULL), COORD_OK);
    assert_int_equal(coord_election_on_leader_change(f->election, end_others, &others), COORD_OK);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(others.code, COORD_OK);
    assert_int_equal(others.how, COORD_STOP_BUSY);
    assert_false(coord_election_is_leader(others.release));
    assert_true(coord_election_is_leader(f->election));
}

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
        TEST(test_election__an_attempt_whose_term_is_over_at_once_is_decided),
        TEST(test_election__others_may_be_ended_inside_a_callback),
        TEST(test_election__a_question_without_an_answer_is_asked_until_the_time_is_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
