/* SPDX-License-Identifier: MIT
 * tests/sim/faults.c - what happens to processes, to the store, and how it all ends well.
 */
#include "tests/sim/world.h"

#include <inttypes.h>

static sim_us some_time(struct sim_world *world, coord_ms most)
{
    return world->now + 1 + sim_below(&world->random, most * 1000);
}

/* ---------------------------------------------------------------- processes */

static void stop(struct sim_process *process)
{
    struct sim_world *world = process->world;
    static const unsigned tenths[] = {1, 3, 10, 30}; /* of a lease */
    const unsigned most = tenths[sim_below(&world->random, 4)];
    process->stopped = true;
    process->go_on++;
    process->stale = sim_has(world, SIM_FAULT_STALE) && sim_chance(&world->random, 1, 3);
    process->stale_now = sim_local(process);
    sim_plan(world, some_time(world, world->profile.lease_max * most / 10 + 1), SIM_EVENT_GO_ON,
             process->index, process->go_on);
    SIM_TRACE(world, "p%u is stopped%s", process->index,
              process->stale ? " after reading its clock" : "");
}

static void kill_it(struct sim_process *process)
{
    struct sim_world *world = process->world;
    sim_kill(process);
    sim_plan(world, some_time(world, world->profile.lease_max * 3 / 2), SIM_EVENT_BOOT,
             process->index, process->resume);
}

void sim_withdraw(struct sim_process *process)
{
    if (process->leaving) {
        return;
    }
    SIM_TRACE(process->world, "p%u withdraws", process->index);
    process->leaving = true;
    process->settled = false;
    process->withdrawn_at = process->world->now;
    coord_lease_withdraw(process->machine, sim_local(process));
}

static void step_down(struct sim_process *process)
{
    struct sim_world *world = process->world;
    const bool named = sim_chance(&world->random, 1, 2);
    const size_t to = sim_below(&world->random, world->profile.processes);
    const char *successor = named ? world->processes[to].identity : NULL;
    if (coord_lease_step_down(process->machine, successor, sim_local(process)) == COORD_OK) {
        SIM_TRACE(world, "p%u steps down for %s", process->index, named ? successor : "anybody");
        process->aside_until = sim_local(process) + process->lease / 2;
    }
}

static void ask_from_outside(struct sim_process *process)
{
    struct sim_world *world = process->world;
    const size_t to = sim_below(&world->random, world->profile.processes);
    const bool observes = sim_chance(&world->random, 1, 3);
    const bool named = sim_chance(&world->random, 1, 2);
    const struct coord_request query = {.verb = observes ? COORD_VERB_OBSERVE : COORD_VERB_ASK,
                                        .fence = process->machine->leader.fence,
                                        .successor = named ? world->processes[to].identity : NULL,
                                        .reserve = 2 * process->lease};
    SIM_TRACE(world, "p%u asks from outside: %s", process->index, sim_verb_name(query.verb));
    COORD_IGNORE(coord_lease_query(process->machine, &query, sim_local(process)),
                 "busy is as good");
}

static void turn_health(struct sim_process *process, bool healthy)
{
    SIM_TRACE(process->world, "p%u is %s", process->index, healthy ? "well" : "sick");
    coord_lease_health(process->machine, healthy, sim_local(process));
}

static void pause_candidacy(struct sim_process *process, bool paused)
{
    SIM_TRACE(process->world, "p%u %s", process->index, paused ? "pauses" : "resumes");
    coord_lease_pause(process->machine, paused, sim_local(process));
}

static enum sim_fault pick(struct sim_world *world)
{
    static const enum sim_fault choices[] = {
        SIM_FAULT_PAUSE,     SIM_FAULT_PAUSE,     SIM_FAULT_KILL, SIM_FAULT_WITHDRAW,
        SIM_FAULT_STEP_DOWN, SIM_FAULT_STEP_DOWN, SIM_FAULT_ASK,  SIM_FAULT_HEALTH,
        SIM_FAULT_CANDIDACY, SIM_FAULT_SLOW_HOST};
    return choices[sim_below(&world->random, sizeof choices / sizeof choices[0])];
}

static void suffer(struct sim_process *process, enum sim_fault fault)
{
    struct sim_world *world = process->world;
    const sim_us over = some_time(world, world->profile.lease_max * 3 / 2);
    if (fault == SIM_FAULT_PAUSE) {
        stop(process);
        return;
    }
    if (fault == SIM_FAULT_KILL) {
        kill_it(process);
        return;
    }
    if (fault == SIM_FAULT_WITHDRAW) {
        sim_withdraw(process);
        sim_plan(world, over, SIM_EVENT_RESUME, process->index, process->resume);
    } else if (fault == SIM_FAULT_STEP_DOWN) {
        step_down(process);
    } else if (fault == SIM_FAULT_ASK) {
        ask_from_outside(process);
    } else if (fault == SIM_FAULT_HEALTH) {
        turn_health(process, false);
        sim_plan(world, over, SIM_EVENT_RESUME, process->index, process->resume);
    } else if (fault == SIM_FAULT_CANDIDACY) {
        pause_candidacy(process, true);
        sim_plan(world, over, SIM_EVENT_RESUME, process->index, process->resume);
    } else if (sim_chance(&world->random, 1, 4)) {
        sim_host_ends_itself(process);
    } else if (sim_chance(&world->random, 1, 2)) {
        sim_host_repeats(process);
    } else {
        coord_lease_renew(process->machine, sim_local(process));
    }
    sim_run(process);
}

static void plan_next(struct sim_process *process)
{
    struct sim_world *world = process->world;
    sim_plan(world, some_time(world, world->profile.lease_max * 3 / 2), SIM_EVENT_FAULT,
             process->index, 0);
}

void sim_fault_process(struct sim_process *process)
{
    struct sim_world *world = process->world;
    if (world->quiet) {
        return;
    }
    const enum sim_fault fault = pick(world);
    const bool able = !process->stopped || fault == SIM_FAULT_KILL;
    if (process->elector != NULL && able && sim_has(world, fault)) {
        suffer(process, fault);
    }
    if (process->elector != NULL && !process->stopped) {
        sim_companions_suffer(process);
    }
    plan_next(process);
}

/* What ails a process is over. */
static void recover(struct sim_process *process)
{
    struct sim_world *world = process->world;
    if (process->leaving) {
        if (process->settled && sim_chance(&world->random, 1, 2)) {
            sim_kill(process); /* a polite restart: freed after it has settled */
            sim_boot(process);
            return;
        }
        process->leaving = false;
        SIM_TRACE(world, "p%u stands again", process->index);
        coord_lease_stand(process->machine, sim_local(process));
    }
    if (process->machine->sick) {
        turn_health(process, true);
    }
    if (process->machine->paused) {
        pause_candidacy(process, false);
    }
}

void sim_resume(struct sim_process *process, uint32_t which)
{
    struct sim_world *world = process->world;
    if (process->elector == NULL || process->resume != which) {
        return;
    }
    if (process->stopped) { /* it cannot be told now */
        sim_plan(world, world->now + process->lease * 1000 / 20, SIM_EVENT_RESUME, process->index,
                 which);
        return;
    }
    recover(process);
    sim_run(process);
}

void sim_go_on(struct sim_process *process, uint32_t which)
{
    if (process->elector == NULL || !process->stopped || process->go_on != which) {
        return;
    }
    process->stopped = false;
    process->go_on++;
    sim_run(process);
}

/* ---------------------------------------------------------------- the quiet */

/* The leader turns sick, and its host hangs: the others have to do without it. */
static void hang_leader(struct sim_world *world)
{
    for (size_t i = 0; i < world->profile.processes; i++) {
        struct sim_process *process = &world->processes[i];
        if (sim_leads(process) && process->host.state == SIM_HOST_WORKING) {
            process->host.hangs = true;
            turn_health(process, false);
            sim_run(process);
            return;
        }
    }
}

static size_t count_running(const struct sim_world *world)
{
    size_t running = 0;
    for (size_t i = 0; i < world->profile.processes; i++) {
        running += world->processes[i].elector != NULL;
    }
    return running;
}

/* From here on nothing goes wrong. Everybody stands, but for those who stay dead. */
void sim_heal(struct sim_world *world)
{
    const bool hung_hosts = sim_has(world, SIM_FAULT_HUNG_HOST);
    world->quiet = true;
    SIM_TRACE(world, "faults cease");
    if (world->store == SIM_STORE_REDIS) {
        sim_fault_server_over(world);
    } else if (world->store == SIM_STORE_POSTGRES) {
        sim_postgres_heals(world);
    }
    for (size_t i = 0; i < world->profile.processes; i++) {
        struct sim_process *process = &world->processes[i];
        if (process->elector != NULL) {
            sim_go_on(process, process->go_on);
            COORD_ASSERT(!process->stopped);
            recover(process);
            sim_companions_heal(process);
            process->resume++;
            sim_host_relents(process);
            sim_run(process);
        } else if (count_running(world) < 1 || !sim_chance(&world->random, 1, 3)) {
            sim_boot(process);
        }
    }
    if (hung_hosts && count_running(world) > 1 && sim_chance(&world->random, 1, 2)) {
        hang_leader(world);
    }
}
