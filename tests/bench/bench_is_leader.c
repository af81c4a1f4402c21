/* SPDX-License-Identifier: MIT
 * tests/bench/bench_is_leader.c - what a host pays for asking before each piece of work.
 *
 * The floor is one read of the same clock in the same run; the target is three of them.
 */
#include "electors/memory.h"
#include "runtime/election.h"
#include "tests/bench/measure.h"

#include <stdio.h>

enum {
    CALLS = 2000000,
    ROUNDS = 7
};

static double ns_per_call(double start)
{
    return (now_us() - start) * 1e3 / CALLS;
}

static double time_clock(void)
{
    struct timespec now;
    const double start = now_us();
    for (int i = 0; i < CALLS; i++) {
        clock_gettime(CLOCK_BOOTTIME, &now);
    }
    return ns_per_call(start);
}

static double time_is_leader(const struct coord_election *election, int *yes)
{
    const double start = now_us();
    for (int i = 0; i < CALLS; i++) {
        *yes += coord_election_is_leader(election);
    }
    return ns_per_call(start);
}

int main(void)
{
    const struct coord_runtime_config defaults = COORD_RUNTIME_CONFIG_INIT;
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    struct coord_runtime *runtime = NULL;
    struct coord_election *election = NULL;
    struct coord_error error = {.code = COORD_OK};
    config.name = "bench";
    config.name_bytes = 5;
    config.ttl = 60000;
    if (coord_runtime_new(&defaults, &runtime, &error) != COORD_OK ||
        coord_election_open_backend(runtime, coord_memory_elector(), NULL, &config, &election,
                                    &error) != COORD_OK ||
        coord_runtime_start(runtime, &error) != COORD_OK ||
        coord_election_wait(election, 10000, &error) != COORD_OK) {
        fprintf(stderr, "bench: %s\n", error.text);
        return 1;
    }
    double clock_best = 1e9, call_best = 1e9;
    int yes = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const double clock = time_clock();
        const double call = time_is_leader(election, &yes);
        clock_best = clock < clock_best ? clock : clock_best;
        call_best = call < call_best ? call : call_best;
    }
    printf("is_leader             %8.1f ns   %5.2fx of clock_gettime %.1f ns   (target 3.00x)\n",
           call_best, call_best / clock_best, clock_best);
    coord_election_close(election);
    coord_runtime_free(runtime);
    return yes == CALLS * ROUNDS ? 0 : 1;
}
