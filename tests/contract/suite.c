/* SPDX-License-Identifier: MIT
 * tests/contract/suite.c - worlds, their sides, and the list of cases.
 */
#include "tests/contract/suite.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum {
    CASES = 400
};

/* ---------------------------------------------------------------- sides */

struct coord_election_config suite_config(const struct suite_world *world)
{
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    config.ttl = world->store->ttl;
    return config;
}

static void clear_record(struct suite_side *side)
{
    struct coord_error error = {.code = COORD_OK};
    const enum coord_err rc = coord_election_init_record(side->election, GUARD, &error);
    /* Where somebody leads there is a record already. */
    if (rc != COORD_OK && rc != COORD_E_BUSY) {
        fail_msg("init_record: %s: %s", coord_err_name(rc), error.text);
    }
}

struct suite_side *suite_open_with(struct suite_world *world, int i,
                                   struct coord_election_config *config)
{
    struct suite_side *side = &world->sides[i];
    struct coord_error error = {.code = COORD_OK};
    if (config->name == NULL) {
        config->name = world->name;
        config->name_bytes = strlen(world->name);
    }
    if (config->identity == NULL) {
        config->identity = side->identity;
        config->identity_bytes = strlen(side->identity);
    }
    if (side->runtime == NULL) {
        assert_int_equal(coord_runtime_new(NULL, &side->runtime, &error), COORD_OK);
    }
    const enum coord_err rc = coord_election_open(
        side->runtime, world->store->schemes, world->store->uri(), config, &side->election, &error);
    if (rc != COORD_OK) {
        fail_msg("open: %s: %s", coord_err_name(rc), error.text);
    }
    if (i == 0) {
        clear_record(side);
    }
    if (world->mode == SUITE_THREADS) {
        assert_int_equal(coord_runtime_start(side->runtime, &error), COORD_OK);
    }
    return side;
}

struct suite_side *suite_open(struct suite_world *world, int i)
{
    struct coord_election_config config = suite_config(world);
    return suite_open_with(world, i, &config);
}

/* ---------------------------------------------------------------- the journal */

static void note(struct suite_side *side, const struct suite_entry *entry)
{
    pthread_mutex_lock(&side->lock);
    if (side->count < JOURNAL) {
        side->entries[side->count] = *entry;
    }
    side->count++;
    pthread_mutex_unlock(&side->lock);
}

static void note_edge(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    const struct suite_entry entry = {.kind = edge->kind,
                                      .is_leader = coord_election_is_leader(election),
                                      .term = edge->term,
                                      .fence = edge->fence};
    note(ctx, &entry);
}

static void note_change(void *ctx, struct coord_election *election, bool leading)
{
    const struct suite_entry entry = {.leading = leading,
                                      .is_leader = coord_election_is_leader(election)};
    note(ctx, &entry);
}

void suite_listen(struct suite_side *side)
{
    assert_int_equal(coord_election_on_edge(side->election, note_edge, side), COORD_OK);
    assert_int_equal(coord_election_on_leader_change(side->election, note_change, side), COORD_OK);
}

size_t suite_count(struct suite_side *side)
{
    pthread_mutex_lock(&side->lock);
    const size_t count = side->count;
    pthread_mutex_unlock(&side->lock);
    return count;
}

struct suite_entry suite_entry(struct suite_side *side, size_t i)
{
    assert_true(i < JOURNAL);
    pthread_mutex_lock(&side->lock);
    const struct suite_entry entry = side->entries[i];
    pthread_mutex_unlock(&side->lock);
    return entry;
}

/* ---------------------------------------------------------------- driving */

static void wait_for_any(struct suite_world *world, coord_ms most)
{
    struct pollfd wait[SIDES];
    nfds_t count = 0;
    coord_ms at = coord_ms_add(coord_clock_now(), most);
    for (int i = 0; i < SIDES; i++) {
        if (world->sides[i].runtime != NULL) {
            wait[count++] =
                (struct pollfd){.fd = coord_runtime_fd(world->sides[i].runtime), .events = POLLIN};
            at = coord_ms_min(at, coord_runtime_deadline(world->sides[i].runtime));
        }
    }
    poll(wait, count, (int)coord_ms_sub(at, coord_clock_now()));
    for (int i = 0; i < SIDES; i++) {
        if (world->sides[i].runtime != NULL) {
            assert_int_equal(coord_runtime_process(world->sides[i].runtime), COORD_OK);
        }
    }
}

/* Threads drive themselves: a condition of theirs is looked at again and again. */
static void look_again(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
}

static void drive_once(struct suite_world *world, coord_ms most)
{
    if (world->mode == SUITE_THREADS) {
        look_again();
    } else {
        wait_for_any(world, most);
    }
}

void suite_until(struct suite_world *world, suite_condition condition, void *ctx)
{
    const coord_ms guard = coord_clock_now() + GUARD;
    while (!condition(ctx)) {
        if (coord_clock_now() > guard) {
            fail_msg("nothing happened for %d ms", GUARD);
        }
        drive_once(world, 10);
    }
}

void suite_drive(struct suite_world *world, coord_ms duration)
{
    const coord_ms end = coord_clock_now() + duration;
    while (coord_clock_now() < end) {
        drive_once(world, 10);
    }
}

bool suite_leads(void *ctx)
{
    return coord_election_is_leader(((struct suite_side *)ctx)->election);
}

bool suite_leads_not(void *ctx)
{
    return !suite_leads(ctx);
}

void suite_win(struct suite_side *side)
{
    struct coord_error error = {.code = COORD_OK};
    if (side->world->mode == SUITE_LOOP) {
        assert_int_equal(coord_election_stand(side->election), COORD_OK);
        suite_until(side->world, suite_leads, side);
        return;
    }
    enum coord_err rc = COORD_E_NO_ANSWER;
    for (int tries = 0; tries < 10 && rc == COORD_E_NO_ANSWER; tries++) { /* a machine at load */
        rc = coord_election_try_acquire(side->election, GUARD, &error);
    }
    if (rc != COORD_OK) {
        fail_msg("try_acquire: %s: %s", coord_err_name(rc), error.text);
    }
}

static bool is_silent(void *ctx)
{
    const struct suite_side *side = ctx;
    struct coord_explanation why;
    assert_int_equal(coord_election_explain(side->election, &why), COORD_OK);
    return why.reason == COORD_REASON_NOT_STANDING;
}

void suite_give_up(struct suite_side *side)
{
    struct coord_error error = {.code = COORD_OK};
    if (side->world->mode == SUITE_LOOP) {
        const struct coord_claim claim = coord_election_claim(side->election);
        assert_int_equal(coord_election_withdraw(side->election), COORD_OK);
        assert_int_equal(coord_election_acknowledge(side->election, claim.term), COORD_OK);
        suite_until(side->world, is_silent, side);
        return;
    }
    const enum coord_err rc = coord_election_release(side->election, GUARD, &error);
    if (rc != COORD_OK) {
        fail_msg("release: %s: %s", coord_err_name(rc), error.text);
    }
}

enum coord_reason suite_reason(struct suite_side *side)
{
    struct coord_explanation why;
    assert_int_equal(coord_election_explain(side->election, &why), COORD_OK);
    assert_string_not_equal(why.text, "");
    return why.reason;
}

/* ---------------------------------------------------------------- running */

struct run {
    const struct suite_store *store;
    const struct suite_case *line;
    enum suite_mode mode;
    char title[160];
};

static const char *mode_name(enum suite_mode mode)
{
    return mode == SUITE_BLOCKING ? "blocking" : mode == SUITE_THREADS ? "threads" : "loop";
}

static int set_up(void **state)
{
    static unsigned serial;
    const struct run *run = *state;
    struct suite_world *world = calloc(1, sizeof *world);
    if (world == NULL) {
        return -1;
    }
    world->store = run->store;
    world->line = run->line;
    world->mode = run->mode;
    snprintf(world->name, sizeof world->name, "case %u of %ld", ++serial, (long)getpid());
    for (int i = 0; i < SIDES; i++) {
        world->sides[i].world = world;
        pthread_mutex_init(&world->sides[i].lock, NULL);
        snprintf(world->sides[i].identity, sizeof world->sides[i].identity, "side-%d", i);
    }
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct suite_world *world = *state;
    for (int i = 0; i < SIDES; i++) {
        coord_runtime_free(world->sides[i].runtime); /* with whatever a failed case left open */
        pthread_mutex_destroy(&world->sides[i].lock);
    }
    free(world);
    return 0;
}

static void run_case(void **state)
{
    static bool started;
    struct suite_world *world = *state;
    if (!started && world->store->start != NULL) {
        world->store->start(); /* inside a case, as it may skip: then each one does */
        started = true;
    }
    world->line->run(world);
}

static size_t add_run(struct run *runs, struct CMUnitTest *tests, size_t count,
                      const struct suite_store *store, const struct suite_case *line,
                      enum suite_mode mode)
{
    assert_true(count < CASES);
    runs[count] = (struct run){.store = store, .line = line, .mode = mode};
    snprintf(runs[count].title, sizeof runs[count].title, "test_%s__%s [%s]", store->name,
             line->name, mode_name(mode));
    tests[count] = (struct CMUnitTest){.name = runs[count].title,
                                       .test_func = run_case,
                                       .setup_func = set_up,
                                       .teardown_func = tear_down,
                                       .initial_state = &runs[count]};
    return count + 1;
}

int suite_run(const struct suite_store *store)
{
    static struct run runs[CASES];
    static struct CMUnitTest tests[CASES];
    static const struct suite_case *const lists[] = {suite_basics, suite_terms, suite_hosts,
                                                     suite_calls, suite_process};
    static const enum suite_mode modes[] = {SUITE_BLOCKING, SUITE_THREADS, SUITE_LOOP};
    const char *only = getenv("COORD_TEST_ONLY"); /* a part of a case's name */
    const unsigned wanted = store->modes != 0 ? store->modes : SUITE_ALL;
    size_t count = 0;
    for (size_t list = 0; list < sizeof lists / sizeof lists[0]; list++) {
        for (const struct suite_case *line = lists[list]; line->name != NULL; line++) {
            for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
                if ((line->modes & wanted & modes[m]) != 0 && (store->contends || !line->rivals) &&
                    (only == NULL || strstr(line->name, only) != NULL)) {
                    count = add_run(runs, tests, count, store, line, modes[m]);
                }
            }
        }
    }
    const int failed = _cmocka_run_group_tests(store->name, tests, count, NULL, NULL);
    if (store->stop != NULL) {
        store->stop();
    }
    return failed;
}
