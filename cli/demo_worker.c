/* SPDX-License-Identifier: MIT
 * cli/demo_worker.c - one worker of a demo: it stands, and records each yes that it hears.
 */
#include "cli/demo.h"

#include "cli/exits.h"
#include "cli/schemes.h"
#include "runtime/election.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 1 /* between two questions: do I lead? */
};

const char *const cli_demo_names[CLI_DEMO_WORKERS] = {"anna", "ben", "cleo", "dan"};

uint64_t cli_demo_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

_Noreturn static void fail(struct cli_demo_page *page, enum coord_err code)
{
    atomic_store(&page->failed, (int)code);
    _exit(CLI_FAILED);
}

/* The times are inner bounds: a worker that is stopped in between claims too little. */
static void record(struct cli_demo_page *page, int worker, uint64_t fence, uint64_t before)
{
    const uint64_t after = cli_demo_now();
    const unsigned count = atomic_load(&page->term_count);
    for (unsigned i = 0; i < count; i++) {
        struct cli_demo_term *term = &page->terms[i];
        if (atomic_load(&term->worker) == worker + 1 && atomic_load(&term->fence) == fence) {
            if (before > atomic_load(&term->until)) {
                atomic_store(&term->until, before);
            }
            return;
        }
    }
    const unsigned mine = atomic_fetch_add(&page->term_count, 1);
    if (mine >= CLI_DEMO_TERMS) {
        fail(page, COORD_E_SYSTEM);
    }
    atomic_store(&page->terms[mine].fence, fence);
    atomic_store(&page->terms[mine].from, after);
    atomic_store(&page->terms[mine].until, after);
    atomic_store(&page->terms[mine].worker, worker + 1);
}

static void look(struct cli_demo_page *page, int worker, const struct coord_election *election)
{
    const uint64_t before = cli_demo_now();
    const struct coord_claim claim = coord_election_claim(election);
    if (claim.leading) {
        record(page, worker, claim.fence, before);
    }
    atomic_store(&page->workers[worker].leading, claim.leading);
    atomic_store(&page->workers[worker].looked, cli_demo_now());
}

static void hand_over_if_asked(struct cli_demo_page *page, int worker,
                               struct coord_election *election)
{
    int asked = worker + 1;
    if (atomic_compare_exchange_strong(&page->hand_over, &asked, 0)) {
        const char *to = cli_demo_names[atomic_load(&page->successor)];
        COORD_IGNORE(coord_election_step_down(election, to) != COORD_OK, "it does not lead then");
    }
}

/* Its work is to look; that ends when it is told to stop, and so the return acknowledges. */
static void on_edge(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    (void)ctx;
    (void)election;
    (void)edge;
}

static struct coord_election *stand(struct cli_demo_page *page, int worker, const char *uri,
                                    struct coord_runtime **runtime)
{
    struct coord_election *election = NULL;
    struct coord_error error;
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    config.name = "demo";
    config.name_bytes = strlen("demo");
    config.identity = cli_demo_names[worker];
    config.identity_bytes = strlen(cli_demo_names[worker]);
    if (coord_runtime_new(NULL, runtime, &error) != COORD_OK ||
        coord_election_open(*runtime, cli_schemes, uri, &config, &election, &error) != COORD_OK) {
        fail(page, error.code);
    }
    if (coord_election_on_edge(election, on_edge, NULL) != COORD_OK ||
        coord_election_stand(election) != COORD_OK) {
        fail(page, COORD_E_NO_MEMORY);
    }
    return election;
}

void cli_demo_work(struct cli_demo_page *page, int worker, const char *uri)
{
    struct coord_runtime *runtime = NULL;
    signal(SIGINT, SIG_IGN); /* the story ends them all */
    signal(SIGTERM, SIG_IGN);
    struct coord_election *election = stand(page, worker, uri, &runtime);
    atomic_fetch_add(&page->ready, 1);
    for (;;) {
        struct pollfd wait = {.fd = coord_runtime_fd(runtime), .events = POLLIN};
        poll(&wait, 1, LOOK_MS);
        look(page, worker, election); /* first of all: what does one hear that was stopped? */
        hand_over_if_asked(page, worker, election);
        if (coord_runtime_process(runtime) != COORD_OK) {
            fail(page, COORD_E_FORKED);
        }
        look(page, worker, election);
    }
}
