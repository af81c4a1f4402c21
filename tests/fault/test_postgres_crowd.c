/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_crowd.c - fifty processes stand for one name: one leads at a time, its
 * fence is the highest so far, and the server's log stays quiet.
 */
#include "tests/support/postgres_world.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum {
    FIFTY = 50,
    TERMS = 12,
    TTL = 30000,   /* ms: patience with a server that fifty log into at once */
    GUARD = 120000 /* ms */
};

/* What the processes tell each other; nothing of it reaches an elector. */
struct board {
    _Atomic uint64_t leads_until[FIFTY]; /* by CLOCK_BOOTTIME, which all of them read; 0: over */
    _Atomic uint64_t fence;              /* the highest that led */
    _Atomic unsigned terms;
    _Atomic unsigned overlaps;
    _Atomic unsigned fences_back;
    _Atomic unsigned settled;
    _Atomic bool looked; /* at the log: who goes in the middle of a login makes it say so */
};

static void starts(struct board *board, unsigned self, uint64_t fence)
{
    const coord_ms now = coord_clock_now();
    for (unsigned i = 0; i < FIFTY; i++) {
        if (i != self && atomic_load(&board->leads_until[i]) > now) {
            atomic_fetch_add(&board->overlaps, 1);
        }
    }
    if (fence <= atomic_exchange(&board->fence, fence)) {
        atomic_fetch_add(&board->fences_back, 1);
    }
    atomic_fetch_add(&board->terms, 1);
}

/* The host of a term works for a moment, then steps down. */
static void take_edges(struct candidate *c, struct board *board, unsigned self)
{
    struct coord_edge edge;
    while (coord_lease_next_edge(c->lease, &edge)) {
        if (edge.kind == COORD_EDGE_STARTED) {
            starts(board, self, edge.fence);
            COORD_IGNORE(coord_lease_step_down(c->lease, NULL, coord_clock_now()),
                         "a term that is over needs none");
        } else {
            /* Its work has ended. What follows says so to the server, and lets another begin. */
            atomic_store(&board->leads_until[self], 0);
        }
        coord_lease_edge_done(c->lease, coord_clock_now());
        coord_elector_process(c->elector, coord_clock_now());
    }
}

static void stand(const struct world *w, struct board *board, unsigned self)
{
    struct candidates all = {.count = 0};
    struct candidate *c = candidate_new(&all, &w->wish);
    c->deaf = true; /* its edges are taken here */
    candidate_stand(c);
    while (!coord_lease_settled(c->lease)) {
        candidates_turn(&all, 50);
        const coord_ms now = coord_clock_now();
        const struct coord_claim claim = coord_lease_claim(c->lease, now);
        if (claim.leading) {
            atomic_store(&board->leads_until[self], now + claim.remaining);
        }
        take_edges(c, board, self);
        if (atomic_load(&board->terms) >= TERMS) {
            coord_lease_withdraw(c->lease, now);
        }
    }
    atomic_fetch_add(&board->settled, 1);
    while (!atomic_load(&board->looked)) {
        candidates_turn(&all, 50);
    }
    candidates_free(&all);
}

static pid_t launch(const struct world *w, struct board *board, unsigned self)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            stand(w, board, self);
        }
        _exit(0);
    }
    return pid;
}

/* @return all of them have come to an end of their terms. */
static bool await(const struct board *board)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    const coord_ms guard = coord_clock_now() + GUARD;
    while (atomic_load(&board->settled) < FIFTY && coord_clock_now() < guard) {
        nanosleep(&pause, NULL);
    }
    return atomic_load(&board->settled) == FIFTY;
}

static void test_postgres_crowd__of_fifty_processes_one_leads_and_the_log_is_quiet(void **state)
{
    (void)state;
    struct world w;
    pid_t pids[FIFTY];
    world_open(&w, "crowd");
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(board, MAP_FAILED);
    const size_t log = postgres_server_log_size(&world_server);
    w.wish.ttl = TTL;
    for (unsigned i = 0; i < FIFTY; i++) {
        pids[i] = launch(&w, board, i);
    }
    const bool settled = await(board);
    const bool quiet = !postgres_server_logged(&world_server, log, "ERROR") &&
                       !postgres_server_logged(&world_server, log, "WARNING") &&
                       !postgres_server_logged(&world_server, log, "FATAL");
    atomic_store(&board->looked, true);
    for (unsigned i = 0; i < FIFTY; i++) {
        int status = 1;
        if (!settled) {
            kill(pids[i], SIGKILL);
        }
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(!settled || status == 0);
    }
    print_message("%u terms\n", atomic_load(&board->terms));
    assert_true(settled);
    assert_true(quiet);
    assert_true(atomic_load(&board->terms) >= TERMS);
    assert_int_equal(atomic_load(&board->overlaps), 0);
    assert_int_equal(atomic_load(&board->fences_back), 0);
    munmap(board, sizeof *board);
    world_close(&w);
}

static int start(void **state)
{
    (void)state;
    static const char *const options[] = {"max_connections=200", "log_min_messages=warning", NULL};
    return world_start_with(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_crowd__of_fifty_processes_one_leads_and_the_log_is_quiet),
    };
    return cmocka_run_group_tests(tests, start, world_stop);
}
