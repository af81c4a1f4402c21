/* SPDX-License-Identifier: MIT
 * examples/embed_thread.c - a service that is told when to work, with coord's helper threads.
 *
 * usage: embed_thread [URI [NAME]]     runs until SIGTERM or SIGINT; with no URI, for a moment
 */
#include <electors/file.h>
#include <electors/memory.h>
#include <runtime/election.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* On the callback thread: it may take its time, renewals go on meanwhile. */
static void on_edge(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    const char *name = ctx;
    switch (edge->kind) {
    case COORD_EDGE_STARTED:
        printf("%s: %s leads with fence %" PRIu64 ": begin to work\n", name,
               coord_election_identity(election), edge->fence);
        break;
    case COORD_EDGE_STOPPING:
        /* The return says that the work has ended; only then somebody else may lead. */
        printf("%s: end the work, within %" PRIu64 " ms\n", name,
               coord_ms_sub(edge->hard, coord_clock_now()));
        break;
    case COORD_EDGE_STOPPED:
        printf("%s: term %" PRIu64 " is over\n", name, edge->term);
        break;
    }
}

int main(int argc, char **argv)
{
    const struct coord_scheme schemes[] = {{"memory", coord_memory_elector, NULL},
                                           {"file", coord_file_elector, NULL},
                                           {NULL, NULL, NULL}};
    char name[] = "example";
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    struct coord_runtime *runtime = NULL;
    struct coord_election *election = NULL;
    struct coord_error error = {.code = COORD_OK};
    enum coord_stop how = COORD_STOP_BUSY;
    config.name = argc > 2 ? argv[2] : name;
    config.name_bytes = strlen(config.name);

    setvbuf(stdout, NULL, _IOLBF, 0); /* a line at a time, into a pipe too */
    sigset_t end; /* blocked everywhere, taken by sigwait below: coord touches no disposition */
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigaddset(&end, SIGINT);
    sigprocmask(SIG_BLOCK, &end, NULL);

    if (coord_runtime_new(NULL, &runtime, &error) != COORD_OK ||
        coord_election_open(runtime, schemes, argc > 1 ? argv[1] : "memory:", &config, &election,
                            &error) != COORD_OK ||
        coord_election_on_edge(election, on_edge, argc > 2 ? argv[2] : name) != COORD_OK ||
        coord_runtime_start(runtime, &error) != COORD_OK) {
        fprintf(stderr, "%s\n", error.text);
        coord_runtime_free(runtime);
        return 2;
    }
    coord_election_stand(election);
    const struct timespec moment = {.tv_nsec = 300000000};
    sigtimedwait(&end, NULL, argc > 1 ? NULL : &moment);
    coord_election_stop(election, 5000, &how); /* waits for on_edge, then resigns */
    coord_election_close(election);
    coord_runtime_free(runtime);
    return how == COORD_STOP_RELEASED ? 0 : 1;
}
