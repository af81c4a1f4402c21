/* SPDX-License-Identifier: MIT
 * tests/sim/companion.c - other elections of the same processes: on PostgreSQL they share a
 * session with the one that is watched most.
 *
 * Their hosts do no work. Looked at are E1, E2, a leader within the bound, and what is left behind.
 */
#include "tests/sim/world.h"

#include <inttypes.h>

const char *const sim_elections[SIM_PG_ELECTIONS] = {"jobs", "mail", "logs"};

static void stand(struct sim_process *process, size_t k)
{
    struct sim_companion *companion = &process->companions[k];
    SIM_TRACE(process->world, "p%u stands for %s, too", process->index, sim_elections[k]);
    *companion = (struct sim_companion){
        .elector = sim_make(process, k, process->world->profile.lease_of[k], true)};
    coord_lease_stand(coord_elector_lease(companion->elector), sim_local(process));
}

void sim_companions_boot(struct sim_process *process)
{
    for (size_t k = 1; k < process->world->profile.elections; k++) {
        stand(process, k);
    }
}

static void let_go(struct sim_companion *companion)
{
    coord_elector_free(companion->elector, false);
    companion->elector = NULL;
}

void sim_companions_free(struct sim_process *process)
{
    for (size_t k = 1; k < SIM_PG_ELECTIONS; k++) {
        let_go(&process->companions[k]);
    }
}

static bool leads(const struct sim_process *process, size_t k)
{
    const struct coord_elector *elector = process->companions[k].elector;
    return elector != NULL && coord_elector_leading_at(elector, sim_local(process));
}

/* ---------------------------------------------------------------- its host */

static void acknowledge(struct sim_process *process, struct sim_companion *companion)
{
    coord_lease_acknowledge(coord_elector_lease(companion->elector), companion->term,
                            sim_local(process));
}

static void check_fence(struct sim_process *process, size_t k, uint64_t fence)
{
    struct sim_check *check = &process->world->check;
    if (sim_check_promised(process->world) && !check->fence_void && fence <= check->fence_of[k]) {
        sim_broke(process->world, SIM_E2, "p%u leads %s with fence %" PRIu64 " after %" PRIu64,
                  process->index, sim_elections[k], fence, check->fence_of[k]);
    }
    check->fence_of[k] = fence;
}

/* @return something was told. */
static bool take_edges(struct sim_process *process, size_t k)
{
    struct sim_companion *companion = &process->companions[k];
    struct coord_lease *machine = coord_elector_lease(companion->elector);
    struct coord_edge edge;
    bool told = false;
    while (coord_lease_next_edge(machine, &edge)) {
        told = true;
        SIM_TRACE(process->world, "p%u %s edge %d term %" PRIu64 " fence %" PRIu64, process->index,
                  sim_elections[k], (int)edge.kind, edge.term, edge.fence);
        companion->term = edge.term;
        coord_lease_edge_done(machine, sim_local(process));
        if (edge.kind == COORD_EDGE_STARTED && leads(process, k)) {
            check_fence(process, k, edge.fence);
        } else if (edge.kind != COORD_EDGE_STARTED && !companion->hangs) {
            acknowledge(process, companion);
        }
    }
    return told;
}

bool sim_companions_run(struct sim_process *process, coord_ms now)
{
    bool told = false;
    for (size_t k = 1; k < process->world->profile.elections; k++) {
        if (process->companions[k].elector != NULL) {
            coord_elector_process(process->companions[k].elector, now);
            told = take_edges(process, k) || told;
        }
    }
    return told;
}

coord_ms sim_companions_deadline(const struct sim_process *process)
{
    coord_ms at = COORD_NEVER;
    for (size_t k = 1; k < process->world->profile.elections; k++) {
        if (process->companions[k].elector != NULL) {
            at = coord_ms_min(at, coord_elector_deadline(process->companions[k].elector));
        }
    }
    return at;
}

/* ---------------------------------------------------------------- what happens to it */

static void relent(struct sim_process *process, struct sim_companion *companion)
{
    companion->hangs = false;
    acknowledge(process, companion);
}

void sim_companions_suffer(struct sim_process *process)
{
    struct sim_world *world = process->world;
    if (world->profile.elections < 2) {
        return;
    }
    const size_t k = sim_between(&world->random, 1, world->profile.elections - 1);
    struct sim_companion *companion = &process->companions[k];
    /* One that leaves while its acquire flies is rare otherwise. */
    const bool leaves = sim_planted(SIM_PLANT_PG_LATE_GRANT);
    const uint64_t dice = sim_below(&world->random, leaves ? 1 : 6);
    if (companion->elector == NULL) {
        stand(process, k);
    } else if (dice == 0) {
        SIM_TRACE(world, "p%u leaves %s", process->index, sim_elections[k]);
        let_go(companion);
    } else if (dice == 1) {
        coord_lease_withdraw(coord_elector_lease(companion->elector), sim_local(process));
    } else if (dice == 2) {
        companion->hangs = true;
    } else if (dice == 3) {
        relent(process, companion);
    } else if (dice == 4) {
        COORD_IGNORE(coord_lease_step_down(coord_elector_lease(companion->elector), NULL,
                                           sim_local(process)),
                     "it may not lead");
    } else {
        coord_lease_stand(coord_elector_lease(companion->elector), sim_local(process));
    }
    sim_run(process);
}

void sim_companions_heal(struct sim_process *process)
{
    for (size_t k = 1; k < process->world->profile.elections; k++) {
        struct sim_companion *companion = &process->companions[k];
        if (companion->elector == NULL) {
            stand(process, k);
        } else {
            relent(process, companion);
            coord_lease_stand(coord_elector_lease(companion->elector), sim_local(process));
        }
    }
}

void sim_companions_withdraw(struct sim_process *process)
{
    for (size_t k = 1; k < process->world->profile.elections; k++) {
        coord_lease_withdraw(coord_elector_lease(process->companions[k].elector),
                             sim_local(process));
    }
}

/* ---------------------------------------------------------------- what is looked at */

void sim_companions_check(struct sim_world *world)
{
    for (size_t k = 1; k < world->profile.elections; k++) {
        unsigned leaders = 0;
        for (size_t i = 0; i < world->profile.processes; i++) {
            leaders += leads(&world->processes[i], k);
        }
        if (leaders > 1 && sim_check_promised(world)) {
            sim_broke(world, SIM_E1, "%u lead %s at once", leaders, sim_elections[k]);
        }
    }
}

/* Within the bound after the faults there has to be a leader. */
void sim_companions_are_led(struct sim_world *world)
{
    for (size_t k = 1; k < world->profile.elections; k++) {
        bool led = false;
        for (size_t i = 0; i < world->profile.processes; i++) {
            led = led || leads(&world->processes[i], k);
        }
        if (!led) {
            sim_broke(world, SIM_E7, "nobody leads %s", sim_elections[k]);
        }
    }
}

void sim_companions_check_end(struct sim_process *process)
{
    for (size_t k = 1; k < process->world->profile.elections; k++) {
        if (!coord_lease_settled(coord_elector_lease(process->companions[k].elector))) {
            sim_broke(process->world, SIM_E6, "p%u has not settled %s", process->index,
                      sim_elections[k]);
        }
    }
}
