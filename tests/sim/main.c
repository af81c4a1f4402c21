/* SPDX-License-Identifier: MIT
 * tests/sim/main.c - the command: many seeds, one seed with its trace, or a planted fault.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/world.h"

static struct sim_world world;

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    FILE *trace = argc > 3 ? stdout : NULL;
    if (getenv("PLANT")) {
        for (int i = 1; i < SIM_PLANT_COUNT; i++) {
            if (!strcmp(sim_plants[i].name, getenv("PLANT"))) sim_plant_now = (enum sim_plant)i;
        }
    }
    int shown = 0;
    for (uint64_t s = first; s < first + n; s++) {
        sim_schedule(&world, SIM_STORE_REDIS, s, trace);
        if (world.check.broken && shown++ < 20) {
            printf("seed %" PRIu64 ": %s at %" PRIu64 ": %s\n", s,
                   sim_promise_name(world.check.broken), world.check.broken_at/1000, world.check.text);
        }
    }
    struct sim_counts *c = &world.counts;
    printf("schedules %" PRIu64 " events %" PRIu64 " terms %" PRIu64 " grants %" PRIu64 " owed %" PRIu64 " outside %" PRIu64 " bound %" PRIu64 "\n",
           c->schedules, c->events, c->terms, c->grants, c->owed, c->outside, c->bound_used);
    for (int i = 0; i < SIM_PROMISES; i++) {
        printf("%s %" PRIu64 "  ", sim_promise_name((enum sim_promise)i), c->broken[i]);
    }
    printf("\n");
    return 0;
}
