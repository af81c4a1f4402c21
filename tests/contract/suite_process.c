/* SPDX-License-Identifier: MIT
 * tests/contract/suite_process.c - forks, other threads, and what is left behind.
 */
#include "tests/contract/suite.h"

#include <dirent.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* ---------------------------------------------------------------- fork */

/* @return the line that was wrong, 0: none. */
static int look_from_child(struct suite_side *side)
{
    struct coord_explanation why;
    struct coord_observation seen;
    if (coord_election_is_leader(side->election) || coord_election_claim(side->election).leading) {
        return __LINE__ % 256;
    }
    if (coord_election_stand(side->election) != COORD_E_FORKED ||
        coord_election_try_acquire(side->election, GUARD, NULL) != COORD_E_FORKED ||
        coord_election_wait(side->election, GUARD, NULL) != COORD_E_FORKED ||
        coord_election_renew(side->election, GUARD, NULL) != COORD_E_FORKED ||
        coord_election_release(side->election, GUARD, NULL) != COORD_E_FORKED ||
        coord_election_observe(side->election, GUARD, &seen, NULL) != COORD_E_FORKED ||
        coord_election_leader(side->election, &seen) != COORD_E_FORKED ||
        coord_election_step_down(side->election, NULL) != COORD_E_FORKED ||
        coord_election_stop(side->election, GUARD, NULL) != COORD_E_FORKED) {
        return __LINE__ % 256;
    }
    if (coord_election_explain(side->election, &why) != COORD_E_FORKED ||
        why.code != COORD_E_FORKED) {
        return __LINE__ % 256;
    }
    if (coord_runtime_process(side->runtime) != COORD_E_FORKED ||
        coord_runtime_fd(side->runtime) != -1 ||
        coord_runtime_start(side->runtime, NULL) != COORD_E_FORKED) {
        return __LINE__ % 256;
    }
    coord_election_close(side->election);
    coord_runtime_free(side->runtime);
    return 0;
}

static void a_forked_child_does_not_lead_and_harms_nobody(struct suite_world *world)
{
    struct coord_election_config config = suite_config(world);
    config.ttl = 60000;
    struct suite_side *side = suite_open_with(world, 0, &config);
    struct suite_side *rival = suite_open_with(world, 1, &config);
    suite_win(side);
    const uint64_t fence = coord_election_claim(side->election).fence;
    for (int i = 0; i < 5; i++) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0) {
            _exit(look_from_child(side));
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_true(suite_leads(side));
        assert_int_equal(coord_election_renew(side->election, GUARD, NULL), COORD_OK);
        assert_int_equal(coord_election_try_acquire(rival->election, GUARD, NULL),
                         COORD_E_NOT_LEADER);
    }
    assert_int_equal(coord_election_claim(side->election).fence, fence);
}

/* ---------------------------------------------------------------- other threads */

struct asker {
    struct coord_election *election;
    uint64_t fence;
    atomic_bool end;
    atomic_ulong yes;
    atomic_ulong wrong;
};

static void *keep_asking(void *ctx)
{
    struct asker *asker = ctx;
    while (!atomic_load(&asker->end)) {
        const bool leads = coord_election_is_leader(asker->election);
        const struct coord_claim claim = coord_election_claim(asker->election);
        atomic_fetch_add(&asker->yes, leads ? 1 : 0);
        if (claim.leading && (claim.fence != asker->fence || claim.term != 1)) {
            atomic_fetch_add(&asker->wrong, 1);
        }
    }
    return NULL;
}

static void other_threads_may_ask_while_it_renews(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct asker asker;
    pthread_t threads[2];
    suite_win(side);
    asker = (struct asker){.election = side->election,
                           .fence = coord_election_claim(side->election).fence};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, keep_asking, &asker), 0);
    }
    while (atomic_load(&asker.yes) == 0) { /* they have begun */
        assert_int_equal(coord_election_renew(side->election, GUARD, NULL), COORD_OK);
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(coord_election_renew(side->election, GUARD, NULL), COORD_OK);
    }
    suite_give_up(side);
    assert_false(suite_leads(side));
    atomic_store(&asker.end, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(asker.wrong, 0);
}

/* ---------------------------------------------------------------- one leader */

struct arena {
    atomic_int leaders;
    atomic_int most;
    atomic_int terms;
    _Atomic uint64_t fence;
    atomic_int backwards;
};

static void enter(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    struct arena *arena = ctx;
    (void)election;
    if (edge->kind == COORD_EDGE_STARTED) {
        const int now = atomic_fetch_add(&arena->leaders, 1) + 1;
        if (now > atomic_load(&arena->most)) {
            atomic_store(&arena->most, now);
        }
        if (atomic_exchange(&arena->fence, edge->fence) >= edge->fence) {
            atomic_fetch_add(&arena->backwards, 1);
        }
        atomic_fetch_add(&arena->terms, 1);
    } else if (edge->kind == COORD_EDGE_STOPPING) {
        atomic_fetch_sub(&arena->leaders, 1); /* our work ends as soon as we are told */
    }
}

static bool ten_terms(void *ctx)
{
    return atomic_load(&((struct arena *)ctx)->terms) >= 10;
}

static bool any_leads(void *ctx)
{
    struct suite_world *world = ctx;
    for (int i = 0; i < 3; i++) {
        if (suite_leads(&world->sides[i])) {
            return true;
        }
    }
    return false;
}

static void there_is_never_more_than_one(struct suite_world *world)
{
    struct arena arena = {.leaders = 0};
    struct coord_election_config config = suite_config(world);
    config.ttl = 60000; /* a term ends because it was given up, and for nothing else */
    for (int i = 0; i < 3; i++) {
        struct coord_election_config copy = config;
        struct suite_side *side = suite_open_with(world, i, &copy);
        assert_int_equal(coord_election_on_edge(side->election, enter, &arena), COORD_OK);
        assert_int_equal(coord_election_stand(side->election), COORD_OK);
    }
    while (!ten_terms(&arena)) {
        suite_until(world, any_leads, world);
        for (int i = 0; i < 3; i++) {
            if (suite_leads(&world->sides[i])) {
                assert_int_equal(coord_election_stop(world->sides[i].election, GUARD, NULL),
                                 COORD_OK);
                assert_int_equal(coord_election_stand(world->sides[i].election), COORD_OK);
            }
        }
    }
    for (int i = 0; i < 3; i++) { /* the arena ends before the sides do */
        assert_int_equal(coord_election_stop(world->sides[i].election, COORD_NEVER, NULL),
                         COORD_OK);
    }
    assert_int_equal(arena.most, 1);
    assert_int_equal(arena.backwards, 0);
}

/* ---------------------------------------------------------------- nothing left behind */

static int entries(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

/*
 * What is left behind grows with each term, by the least block of the heap at least; what the heap
 * keeps at hand, and libraries' buffers, grow now and then. So that some of the terms in a row did
 * not grow it shows that nothing is left behind.
 */
enum {
    LOOKS = 5,
    LEAST_BLOCK = 32 /* bytes; half of it a term is no leak */
};

struct heap_watch {
    size_t last;
    size_t least; /* growth from one look to the next */
};

static void heap_look(struct heap_watch *heap)
{
    const size_t now = mallinfo2().uordblks;
    const size_t growth = now > heap->last ? now - heap->last : 0;
    heap->least = growth < heap->least ? growth : heap->least;
    heap->last = now;
}

static bool heap_rests(const struct heap_watch *heap, size_t rounds)
{
    return heap->least <= rounds * LEAST_BLOCK / 2;
}

static struct heap_watch heap_first_look(void)
{
    return (struct heap_watch){mallinfo2().uordblks, SIZE_MAX};
}

static void one_term(struct suite_side *side)
{
    suite_win(side);
    suite_give_up(side);
}

static void a_thousand_terms_leave_nothing_behind(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    const int terms = world->store->terms > 0 ? world->store->terms : 1000;
    suite_listen(side);
    for (int i = 0; i < 100; i++) {
        one_term(side);
    }
    const int descriptors = entries("/proc/self/fd");
    const int threads = entries("/proc/self/task");
    struct heap_watch heap = heap_first_look();
    for (int i = 1; i <= terms; i++) {
        one_term(side);
        if (i % (terms / LOOKS) == 0) {
            heap_look(&heap);
        }
    }
    assert_int_equal(entries("/proc/self/fd"), descriptors);
    assert_int_equal(entries("/proc/self/task"), threads);
    if (!SANITIZED) {
        assert_true(heap_rests(&heap, (size_t)(terms / LOOKS)));
    }
    assert_int_equal(coord_election_stop(side->election, GUARD, NULL), COORD_OK);
}

/* What is kept for good, by a library for TLS above all, is full in the end; a leak has no end. */
static void opening_and_closing_leaves_nothing_behind(struct suite_world *world)
{
    const bool weighs = !SANITIZED && world->mode != SUITE_THREADS; /* their arenas come and go */
    int descriptors = 0;
    int threads = 0;
    struct heap_watch heap = {0, SIZE_MAX};
    char name[sizeof world->name];
    const size_t length = strlen(world->name);
    memcpy(name, world->name, sizeof name);
    for (int i = 0; i < 30 || (weighs && !heap_rests(&heap, 20 / LOOKS) && i < 300); i++) {
        struct suite_side *side = suite_open(world, 0);
        suite_listen(side);
        one_term(side);
        suite_win(side);
        if (i % 2 == 0) {
            assert_int_equal(coord_election_stop(side->election, GUARD, NULL), COORD_OK);
        }
        coord_election_close(side->election);
        coord_runtime_free(side->runtime);
        side->runtime = NULL;
        if (i == 9) {
            descriptors = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
            heap = heap_first_look();
        } else if (i > 9 && (i - 9) % (20 / LOOKS) == 0) {
            heap_look(&heap);
        }
        snprintf(world->name, sizeof world->name, "%.*s again %2d", (int)length, name, i);
        side->count = 0;
    }
    assert_int_equal(entries("/proc/self/fd"), descriptors);
    assert_int_equal(entries("/proc/self/task"), threads);
    assert_true(!weighs || heap_rests(&heap, 20 / LOOKS));
}

const struct suite_case suite_process[] = {
    {"a_forked_child_does_not_lead_and_harms_nobody", a_forked_child_does_not_lead_and_harms_nobody,
     SUITE_ALL, true},
    {"other_threads_may_ask_while_it_renews", other_threads_may_ask_while_it_renews,
     SUITE_BLOCKING | SUITE_THREADS, false},
    {"there_is_never_more_than_one", there_is_never_more_than_one, SUITE_THREADS | SUITE_LOOP,
     true},
    {"a_thousand_terms_leave_nothing_behind", a_thousand_terms_leave_nothing_behind,
     SUITE_BLOCKING | SUITE_THREADS, false},
    {"opening_and_closing_leaves_nothing_behind", opening_and_closing_leaves_nothing_behind,
     SUITE_ALL, false},
    {NULL, NULL, 0, false},
};
