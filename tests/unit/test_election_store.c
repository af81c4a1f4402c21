/* SPDX-License-Identifier: MIT
 * tests/unit/test_election_store.c - what blocking calls say when the store is in trouble.
 */
#include "tests/support/election_fixture.h"

#include <pthread.h>

/* ---------------------------------------------------------------- asking in vain */

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

/* ---------------------------------------------------------------- how stop() left things */

static void test_stop__says_lapsing_when_the_store_takes_no_resignation(void **state)
{
    struct fixture *f = *state;
    enum coord_stop how = COORD_STOP_RELEASED;
    open_fake(f);
    f->store.release = COORD_FAILED;
    f->store.code = COORD_E_READ_ONLY;
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(coord_election_stop(f->election, GUARD, &how), COORD_OK);
    assert_int_equal(how, COORD_STOP_LAPSING);
    assert_int_equal(sent(f, COORD_VERB_RELEASE), 2); /* once more, then it is let go */
    assert_false(coord_election_is_leader(f->election));
}

static void test_stop__says_unknown_when_the_store_does_not_confirm(void **state)
{
    struct fixture *f = *state;
    enum coord_stop how = COORD_STOP_RELEASED;
    open_fake(f);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    atomic_store(&f->store.silent, true);
    const coord_ms before = coord_clock_now();
    assert_int_equal(coord_election_stop(f->election, 10, &how), COORD_OK); /* within its bound */
    assert_true(coord_clock_now() - before >= 10);
    assert_int_equal(how, COORD_STOP_UNKNOWN);
    assert_false(coord_election_is_leader(f->election));
    assert_int_equal(coord_election_stop(f->election, GUARD, &how), COORD_OK);
    assert_int_equal(how, COORD_STOP_UNKNOWN);
}

static void test_stop__says_lapsing_of_a_term_that_was_lost(void **state)
{
    struct fixture *f = *state;
    enum coord_stop how = COORD_STOP_RELEASED;
    open_fake(f);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    atomic_store(&f->store.lost, true);
    assert_int_equal(coord_election_renew(f->election, GUARD, NULL), COORD_E_NOT_LEADER);
    assert_int_equal(coord_election_stop(f->election, GUARD, &how), COORD_OK);
    assert_int_equal(how, COORD_STOP_LAPSING);
}

static void test_release__says_why_it_was_not_confirmed(void **state)
{
    struct fixture *f = *state;
    struct coord_error error = {.code = COORD_OK};
    open_fake(f);
    f->store.release = COORD_FAILED;
    f->store.code = COORD_E_READ_ONLY;
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(coord_election_release(f->election, GUARD, &error), COORD_E_READ_ONLY);
    assert_int_equal(error.code, COORD_E_READ_ONLY);
    assert_false(coord_election_is_leader(f->election));
    f->store.release = 0;
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    atomic_store(&f->store.silent, true);
    assert_int_equal(coord_election_release(f->election, 10, &error), COORD_E_TIMEOUT);
    assert_false(coord_election_is_leader(f->election));
}

/* ---------------------------------------------------------------- who leads */

static void test_election__does_not_take_old_news_of_itself_for_the_present(void **state)
{
    struct fixture *f = *state;
    struct coord_observation seen;
    struct coord_observation news = {.leading = true, .fence = 1, .last_fence = 1};
    f->config.identity = "me";
    f->config.identity_bytes = 2;
    snprintf(news.identity, sizeof news.identity, "me");
    f->store.leader = &news;
    open_fake(f);
    assert_int_equal(coord_election_try_acquire(f->election, GUARD, NULL), COORD_OK);
    assert_int_equal(coord_election_leader(f->election, &seen), COORD_OK);
    assert_true(seen.leading);
    assert_int_equal(seen.fence, 1);
    atomic_store(&f->store.lost, true);
    assert_int_equal(coord_election_renew(f->election, GUARD, NULL), COORD_E_NOT_LEADER);
    assert_int_equal(coord_election_leader(f->election, &seen), COORD_OK);
    assert_false(seen.leading);
    assert_string_equal(seen.identity, "");
    snprintf(news.identity, sizeof news.identity, "another");
    assert_int_equal(coord_election_observe(f->election, GUARD, &seen, NULL), COORD_OK);
    assert_int_equal(coord_election_leader(f->election, &seen), COORD_OK);
    assert_true(seen.leading);
    assert_string_equal(seen.identity, "another");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_election__try_acquire_says_why_the_store_could_not_be_asked),
        TEST(test_election__an_attempt_without_an_answer_is_undone),
        TEST(test_election__renew_says_when_it_was_lost_meanwhile),
        TEST(test_election__renew_without_an_answer_keeps_the_term),
        TEST(test_election__observe_says_why_the_store_could_not_be_asked),
        TEST(test_election__several_threads_may_ask_at_once),
        TEST(test_stop__says_lapsing_when_the_store_takes_no_resignation),
        TEST(test_stop__says_unknown_when_the_store_does_not_confirm),
        TEST(test_stop__says_lapsing_of_a_term_that_was_lost),
        TEST(test_release__says_why_it_was_not_confirmed),
        TEST(test_election__does_not_take_old_news_of_itself_for_the_present),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
