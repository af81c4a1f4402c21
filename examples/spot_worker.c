/* SPDX-License-Identifier: MIT
 * examples/spot_worker.c - a worker on a machine that may be taken away: from the notice to its
 * last word. Whatever learns of a notice (a metadata service, a signal) makes one call.
 *
 * usage: spot_worker [BUS ID]     runs until SIGTERM; with no bus, a notice comes after a moment
 */
#include <brokers/local.h>
#include <brokers/memory.h>
#include <runtime/member.h>

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static atomic_bool taking = true; /* new work */
static atomic_int signal_fd = -1;

static void on_term(int number)
{
    (void)number;
    coord_member_leave_signal(signal_fd);
}

static void on_event(void *ctx, struct coord_member *member, const struct coord_agent_event *event)
{
    (void)ctx;
    if (event->kind == COORD_AGENT_EVENT_LEAVING) {
        taking = false;
        printf("%s leaves, %s: no new work\n", coord_member_id(member),
               coord_intent_name(event->intent));
    } else if (event->kind == COORD_AGENT_EVENT_DRAIN) {
        /* Here the work that has begun comes to its end; the return says that it did. */
        printf("draining, for %" PRIu64 " ms at most\n",
               coord_ms_sub(event->drain_by, coord_clock_now()));
    } else if (event->kind == COORD_AGENT_EVENT_STAYING) {
        taking = true;
    }
}

int main(int argc, char **argv)
{
    const struct coord_bus_scheme schemes[] = {{"memory", coord_memory_broker, NULL},
                                               {"local", coord_local_broker, NULL},
                                               {NULL, NULL, NULL}};
    const char *const serves[] = {"orders", "ledger"};
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_runtime *runtime = NULL;
    struct coord_bus *bus = NULL;
    struct coord_member *member = NULL;
    struct coord_error error = {.code = COORD_OK};
    struct coord_agent_event left;

    setvbuf(stdout, NULL, _IOLBF, 0); /* a line at a time, into a pipe too */
    config.id = argc > 2 ? argv[2] : "w-1";
    config.fn = on_event;
    if (coord_runtime_new(NULL, &runtime, &error) != COORD_OK ||
        coord_bus_open(runtime, schemes, argc > 1 ? argv[1] : "memory:", NULL, &bus, &error) !=
            COORD_OK ||
        (config.bus = bus, coord_member_open(runtime, &config, &member, &error)) != COORD_OK ||
        coord_member_serve(member, serves, 2, 0, 0.0) != COORD_OK ||
        coord_runtime_start(runtime, &error) != COORD_OK) {
        fprintf(stderr, "%s\n", error.text);
        coord_runtime_free(runtime);
        return 2;
    }
    signal_fd = coord_member_signal_fd(member);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
    if (argc == 1) { /* "this machine goes away in two minutes" */
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        coord_member_leave(member, COORD_INTENT_PREEMPTION, 120000);
    }
    coord_member_wait(member, COORD_NEVER, &left);
    printf("%s, and the others %s\n", left.drained ? "all work has ended" : "the time was up",
           left.heard ? "know it" : "have to find out");
    coord_runtime_free(runtime); /* closes the member and the bus */
    return left.drained ? 0 : 1;
}
