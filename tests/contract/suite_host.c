/* SPDX-License-Identifier: MIT
 * tests/contract/suite_host.c - what a host may do in a callback, and what stop() promises.
 */
#include "tests/contract/suite.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

/* ---------------------------------------------------------------- order, and changes while told */

struct ordered {
    struct chorus *chorus;
    char letter;
};

struct chorus {
    pthread_mutex_t lock;
    char sung[64];
    size_t count;
    struct ordered voices[4];
};

static void sing(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    struct ordered *voice = ctx;
    struct chorus *chorus = voice->chorus;
    (void)election;
    (void)edge;
    pthread_mutex_lock(&chorus->lock);
    if (chorus->count + 1 < sizeof chorus->sung) {
        chorus->sung[chorus->count++] = voice->letter;
    }
    pthread_mutex_unlock(&chorus->lock);
}

static void init_chorus(struct chorus *chorus)
{
    *chorus = (struct chorus){.count = 0};
    pthread_mutex_init(&chorus->lock, NULL);
    for (size_t i = 0; i < 4; i++) {
        chorus->voices[i] = (struct ordered){.chorus = chorus, .letter = (char)('a' + i)};
    }
}

static size_t sung(struct chorus *chorus, char *out)
{
    pthread_mutex_lock(&chorus->lock);
    const size_t count = chorus->count;
    memcpy(out, chorus->sung, sizeof chorus->sung);
    pthread_mutex_unlock(&chorus->lock);
    return count;
}

static bool sung_nine(void *ctx)
{
    char text[64];
    return sung(ctx, text) >= 9;
}

static void callbacks_run_in_the_order_of_registration(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct chorus chorus;
    char text[64];
    init_chorus(&chorus);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(coord_election_on_edge(side->election, sing, &chorus.voices[i]), COORD_OK);
    }
    suite_win(side);
    suite_give_up(side);
    suite_until(world, sung_nine, &chorus);
    assert_int_equal(sung(&chorus, text), 9);
    assert_string_equal(text, "abcabcabc");
}

/* Sings, then removes itself and the next voice, and adds the last one. */
static void sing_and_change(void *ctx, struct coord_election *election,
                            const struct coord_edge *edge)
{
    struct ordered *voice = ctx;
    sing(ctx, election, edge);
    coord_election_remove_edge_callback(election, sing_and_change, ctx);
    coord_election_remove_edge_callback(election, sing, voice + 1);
    if (coord_election_on_edge(election, sing, voice + 3) != COORD_OK) {
        voice->letter = '!';
    }
}

static bool sung_six(void *ctx)
{
    char text[64];
    return sung(ctx, text) >= 6;
}

static void callbacks_may_change_the_list_while_it_is_told(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct chorus chorus;
    char text[64];
    init_chorus(&chorus);
    assert_int_equal(coord_election_on_edge(side->election, sing_and_change, &chorus.voices[0]),
                     COORD_OK);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(coord_election_on_edge(side->election, sing, &chorus.voices[i]), COORD_OK);
    }
    suite_win(side);
    suite_give_up(side);
    suite_until(world, sung_six, &chorus);
    suite_drive(world, 20);
    /* started: a, then b is gone, c; d hears of the next edges. */
    assert_int_equal(sung(&chorus, text), 6);
    assert_string_equal(text, "accdcd");
}

/* ---------------------------------------------------------------- what a callback sees */

static bool heard_two(void *ctx)
{
    return suite_count(ctx) >= 2;
}

static bool heard_five(void *ctx)
{
    return suite_count(ctx) >= 5;
}

static void is_leader_inside_callbacks_is_the_new_state(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    suite_win(side);
    suite_until(world, heard_two, side);
    if (coord_election_step_down(side->election, NULL) != COORD_OK) {
        fail_msg("the term ended before its time");
    }
    suite_until(world, heard_five, side);
    static const struct {
        enum coord_edge_kind kind;
        bool is_leader;
    } wanted[5] = {{COORD_EDGE_STARTED, true},
                   {0, true},
                   {COORD_EDGE_STOPPING, true},
                   {0, false},
                   {COORD_EDGE_STOPPED, false}};
    for (size_t i = 0; i < 5; i++) {
        const struct suite_entry entry = suite_entry(side, i);
        assert_int_equal(entry.kind, wanted[i].kind);
        assert_int_equal(entry.is_leader, wanted[i].is_leader);
        if (entry.kind == 0) {
            assert_int_equal(entry.leading, entry.is_leader);
        }
    }
}

/* ---------------------------------------------------------------- closing, calling everything */

struct caller {
    atomic_int calls;
    atomic_int wrong;
};

static void close_it(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    struct caller *caller = ctx;
    (void)edge;
    coord_election_close(election);
    /* It lives until we return, and leads no more. */
    if (coord_election_is_leader(election)) {
        atomic_store(&caller->wrong, __LINE__);
    }
    atomic_fetch_add(&caller->calls, 1);
}

static bool was_called(void *ctx)
{
    return atomic_load(&((struct caller *)ctx)->calls) > 0;
}

static void a_callback_may_close_its_election(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct caller caller = {.calls = 0};
    assert_int_equal(coord_election_on_edge(side->election, close_it, &caller), COORD_OK);
    suite_listen(side); /* they come later, and are not called any more */
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, was_called, &caller);
    suite_drive(world, 20);
    assert_int_equal(caller.calls, 1);
    assert_int_equal(caller.wrong, 0);
    assert_int_equal(suite_count(side), 0);
    suite_open(world, 0); /* the runtime is as good as before */
}

#define expect(condition)                  \
    do {                                   \
        if (!(condition)) {                \
            atomic_store(wrong, __LINE__); \
        }                                  \
    } while (0)

static void call_everything(void *ctx, struct coord_election *election,
                            const struct coord_edge *edge)
{
    struct caller *caller = ctx;
    atomic_int *wrong = &caller->wrong;
    struct coord_observation seen;
    struct coord_explanation why;
    enum coord_stop how = COORD_STOP_RELEASED;
    if (edge->kind != COORD_EDGE_STARTED) {
        return;
    }
    expect(coord_election_is_leader(election));
    expect(coord_election_claim(election).term == edge->term);
    expect(coord_election_leader(election, &seen) == COORD_OK);
    expect(coord_election_explain(election, &why) == COORD_OK);
    expect(coord_election_try_acquire(election, GUARD, NULL) == COORD_OK);
    expect(coord_election_wait(election, GUARD, NULL) == COORD_OK);
    expect(coord_election_renew(election, GUARD, NULL) == COORD_OK);
    expect(coord_election_observe(election, GUARD, &seen, NULL) == COORD_OK);
    expect(seen.leading);
    expect(coord_election_pause(election) == COORD_OK);
    expect(coord_election_resume(election) == COORD_OK);
    expect(coord_election_report_health(election, true) == COORD_OK);
    expect(coord_election_release(election, GUARD, NULL) == COORD_OK);
    expect(!coord_election_is_leader(election));
    expect(coord_election_stand(election) == COORD_OK);
    expect(coord_election_stop(election, GUARD, &how) == COORD_OK);
    expect(how == COORD_STOP_BUSY);
    atomic_fetch_add(&caller->calls, 1);
}

static void a_callback_may_call_everything(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct caller caller = {.calls = 0};
    assert_int_equal(coord_election_on_edge(side->election, call_everything, &caller), COORD_OK);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, was_called, &caller);
    assert_int_equal(caller.wrong, 0);
}

/* ---------------------------------------------------------------- stop */

struct hanging {
    sem_t entered;
    sem_t go;
};

static void hang(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    struct hanging *hanging = ctx;
    (void)election;
    (void)edge;
    sem_post(&hanging->entered);
    while (sem_wait(&hanging->go) != 0) {
    }
}

static void stop_says_busy_while_a_callback_hangs(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct hanging hanging;
    enum coord_stop how = COORD_STOP_RELEASED;
    sem_init(&hanging.entered, 0, 0);
    sem_init(&hanging.go, 0, 0);
    assert_int_equal(coord_election_on_edge(side->election, hang, &hanging), COORD_OK);
    suite_listen(side);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    while (sem_wait(&hanging.entered) != 0) {
    }
    const coord_ms before = coord_clock_now();
    assert_int_equal(coord_election_stop(side->election, 50, &how), COORD_OK);
    assert_true(coord_clock_now() - before >= 50);
    assert_int_equal(how, COORD_STOP_BUSY);
    for (int i = 0; i < 3; i++) {
        sem_post(&hanging.go);
    }
    assert_int_equal(coord_election_stop(side->election, GUARD, &how), COORD_OK);
    assert_int_not_equal(how, COORD_STOP_BUSY);
    assert_int_equal(suite_count(side), 0); /* no callback began after the first stop */
    coord_election_close(side->election);
    sem_destroy(&hanging.entered);
    sem_destroy(&hanging.go);
}

static void stop_resigns_what_ran(struct suite_world *world)
{
    struct coord_election_config config = suite_config(world);
    config.ttl = 600000;
    struct suite_side *side = suite_open_with(world, 0, &config);
    enum coord_stop how = COORD_STOP_BUSY;
    struct coord_observation seen;
    suite_listen(side);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, suite_leads, side);
    assert_int_equal(coord_election_stop(side->election, GUARD, &how), COORD_OK);
    assert_int_equal(how, COORD_STOP_RELEASED);
    assert_false(suite_leads(side));
    assert_int_equal(suite_count(side), 5);
    assert_int_equal(coord_election_observe(side->election, GUARD, &seen, NULL), COORD_OK);
    assert_false(seen.leading);
    assert_false(seen.taking_over);
}

static void stop_of_one_that_never_led_says_released(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    enum coord_stop how = COORD_STOP_BUSY;
    assert_int_equal(coord_election_stop(side->election, GUARD, &how), COORD_OK);
    assert_int_equal(how, COORD_STOP_RELEASED);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    assert_int_equal(coord_election_stop(side->election, GUARD, &how), COORD_OK);
    assert_true(how == COORD_STOP_RELEASED || how == COORD_STOP_LAPSING);
    assert_int_equal(coord_election_stop(side->election, GUARD, NULL), COORD_OK);
}

static void no_callback_begins_after_stop(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(coord_election_stand(side->election), COORD_OK);
        suite_drive(world, (coord_ms)i % 3);
        enum coord_stop how = COORD_STOP_BUSY;
        assert_int_equal(coord_election_stop(side->election, (coord_ms)(i * 7 % 5), &how),
                         COORD_OK);
        const size_t count = suite_count(side);
        suite_drive(world, 3);
        /* BUSY: one had begun, and is counted a moment later. */
        assert_in_range(suite_count(side), count, count + (how == COORD_STOP_BUSY ? 1 : 0));
    }
}

/* ---------------------------------------------------------------- acknowledgement */

static bool waits_for_host(void *ctx)
{
    return suite_reason(ctx) == COORD_REASON_WAITING_FOR_HOST;
}

static bool heard_three(void *ctx)
{
    return suite_count(ctx) >= 3;
}

static void an_explicit_acknowledgement_is_waited_for(struct suite_world *world)
{
    struct coord_election_config config = suite_config(world);
    config.explicit_ack = true;
    struct suite_side *side = suite_open_with(world, 0, &config);
    suite_listen(side);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, suite_leads, side);
    const struct coord_claim claim = coord_election_claim(side->election);
    assert_int_equal(coord_election_step_down(side->election, NULL), COORD_OK);
    suite_until(world, heard_three, side); /* started, true, stopping: the callbacks returned */
    assert_true(coord_election_claim(side->election).stopping);
    assert_true(suite_leads(side));
    suite_until(world, waits_for_host, side); /* hard has passed */
    assert_false(suite_leads(side));
    suite_drive(world, world->store->ttl);
    assert_true(waits_for_host(side));
    assert_int_equal(coord_election_acknowledge(side->election, claim.term + 1), COORD_OK);
    assert_true(waits_for_host(side));
    assert_int_equal(coord_election_acknowledge(side->election, claim.term), COORD_OK);
    suite_until(world, suite_leads, side);
    assert_int_equal(coord_election_claim(side->election).term, claim.term + 1);
}

static void stop_without_an_acknowledgement_says_lapsing(struct suite_world *world)
{
    struct coord_election_config config = suite_config(world);
    config.ttl = 600000;
    config.explicit_ack = true;
    struct suite_side *side = suite_open_with(world, 0, &config);
    enum coord_stop how = COORD_STOP_BUSY;
    suite_win(side);
    const struct coord_claim claim = coord_election_claim(side->election);
    assert_int_equal(coord_election_stop(side->election, 30, &how), COORD_OK);
    assert_int_equal(how, COORD_STOP_LAPSING);
    assert_true(coord_election_claim(side->election).stopping);
    assert_int_equal(coord_election_acknowledge(side->election, claim.term), COORD_OK);
    assert_false(suite_leads(side));
    assert_int_equal(coord_election_stop(side->election, GUARD, &how), COORD_OK);
    assert_int_equal(how, COORD_STOP_RELEASED);
}

static void dawdle(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    const struct timespec pause = {.tv_nsec = 30000000};
    (void)ctx;
    (void)election;
    if (edge->kind != COORD_EDGE_STARTED) {
        nanosleep(&pause, NULL);
    }
}

static void release_and_stop_return_after_the_callbacks(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    assert_int_equal(coord_election_on_edge(side->election, dawdle, side), COORD_OK);
    suite_listen(side);
    suite_win(side);
    assert_int_equal(coord_election_release(side->election, GUARD, NULL), COORD_OK);
    assert_int_equal(suite_count(side), 5);
    suite_win(side);
    assert_int_equal(coord_election_stop(side->election, GUARD, NULL), COORD_OK);
    assert_int_equal(suite_count(side), 10);
}

static void sleep_through(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    const struct suite_side *side = ctx;
    if (edge->kind == COORD_EDGE_STARTED) {
        const coord_ms lease = coord_election_timing(election)->lease;
        const struct timespec pause = {.tv_sec = (time_t)(3 * lease / 1000),
                                       .tv_nsec = (long)(3 * lease % 1000) * 1000000};
        nanosleep(&pause, NULL);
        (void)side;
    }
}

static bool heard_one(void *ctx)
{
    return suite_count(ctx) >= 1;
}

static void a_slow_callback_delays_no_renewal(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    assert_int_equal(coord_election_on_edge(side->election, sleep_through, side), COORD_OK);
    suite_listen(side);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, suite_leads, side);
    suite_until(world, heard_one, side); /* three leases later */
    assert_true(suite_leads(side));
    assert_int_equal(coord_election_claim(side->election).term, 1);
}

const struct suite_case suite_hosts[] = {
    {"callbacks_run_in_the_order_of_registration", callbacks_run_in_the_order_of_registration,
     SUITE_ALL, false},
    {"callbacks_may_change_the_list_while_it_is_told",
     callbacks_may_change_the_list_while_it_is_told, SUITE_ALL, false},
    {"is_leader_inside_callbacks_is_the_new_state", is_leader_inside_callbacks_is_the_new_state,
     SUITE_ALL, false},
    {"a_callback_may_close_its_election", a_callback_may_close_its_election, SUITE_ALL, false},
    {"a_callback_may_call_everything", a_callback_may_call_everything, SUITE_ALL, false},
    {"stop_says_busy_while_a_callback_hangs", stop_says_busy_while_a_callback_hangs, SUITE_THREADS,
     false},
    {"stop_resigns_what_ran", stop_resigns_what_ran, SUITE_ALL, false},
    {"stop_of_one_that_never_led_says_released", stop_of_one_that_never_led_says_released,
     SUITE_ALL, false},
    {"no_callback_begins_after_stop", no_callback_begins_after_stop, SUITE_ALL, false},
    {"an_explicit_acknowledgement_is_waited_for", an_explicit_acknowledgement_is_waited_for,
     SUITE_THREADS | SUITE_LOOP, false},
    {"stop_without_an_acknowledgement_says_lapsing", stop_without_an_acknowledgement_says_lapsing,
     SUITE_ALL, false},
    {"release_and_stop_return_after_the_callbacks", release_and_stop_return_after_the_callbacks,
     SUITE_ALL, false},
    {"a_slow_callback_delays_no_renewal", a_slow_callback_delays_no_renewal, SUITE_THREADS, false},
    {NULL, NULL, 0, false},
};
