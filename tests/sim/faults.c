/* SPDX-License-Identifier: MIT
 * tests/sim/faults.c - what happens to processes, to the store, and how it all ends well.
 */
#include "tests/sim/world.h"

#include <inttypes.h>

enum boot_data { EMPTY, SNAPSHOT, EVERYTHING };

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
    process->stale = sim_has(world, SIM_FAULT_STALE) && sim_chance(&world->random, 1, 3);
    process->stale_now = sim_local(process);
    sim_plan(world, some_time(world, world->profile.lease_max * most / 10 + 1), SIM_EVENT_RESUME,
             process->index, process->resume);
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
    const struct coord_request query = {
        .verb = sim_chance(&world->random, 1, 3) ? COORD_VERB_OBSERVE : COORD_VERB_ASK,
        .fence = process->machine->leader.fence,
        .successor = sim_chance(&world->random, 1, 2) ? world->processes[to].identity : NULL,
        .reserve = 2 * process->lease};
    SIM_TRACE(world, "p%u asks for verb %d", process->index, (int)query.verb);
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
        SIM_FAULT_PAUSE,  SIM_FAULT_PAUSE,     SIM_FAULT_KILL,      SIM_FAULT_WITHDRAW,
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
    if (process->elector != NULL && !process->stopped && sim_has(world, fault)) {
        suffer(process, fault);
    }
    plan_next(process);
}

/* What ails a process is over. */
static void recover(struct sim_process *process)
{
    struct sim_world *world = process->world;
    process->stopped = false;
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
    if (process->elector == NULL || process->resume != which) {
        return;
    }
    if (process->stopped) {
        process->stopped = false; /* a lesser ailment may go on */
        SIM_TRACE(process->world, "p%u goes on", process->index);
    } else {
        recover(process);
    }
    sim_run(process);
}

/* ---------------------------------------------------------------- the server */

static sim_us window(const struct sim_world *world)
{
    return world->profile.lease_max * 1000 * 103 / 100;
}

static void judge_fences(struct sim_world *world)
{
    const struct sim_net *net = &world->net;
    if ((net->losses >= 1 && net->stepped_us >= (uint64_t)1 << 32) ||
        (net->losses >= 2 && net->stepped_us > 0)) {
        world->check.fence_void = true;
    }
}

/* Data is lost; where the members' leases differ nothing is promised for one lease. */
static void lose(struct sim_world *world)
{
    struct sim_net *net = &world->net;
    net->losses++;
    net->lost_at = world->now;
    judge_fences(world);
    if (world->profile.lease_min != world->profile.lease_max) {
        world->check.void_until = world->now + window(world);
    }
}

static void restart(struct sim_world *world)
{
    struct sim_net *net = &world->net;
    net->comes_up = (uint8_t)sim_below(&world->random, 3);
    SIM_TRACE(world, "the server goes down");
    net->up = false;
    sim_net_crash(world);
    if (net->comes_up != EVERYTHING) {
        lose(world);
    }
    const coord_ms most = sim_chance(&world->random, 1, 2) ? world->profile.lease_max / 20 + 1
                                                           : 2 * world->profile.lease_max;
    sim_plan(world, some_time(world, most), SIM_EVENT_SERVER_UP, 0, 0);
}

void sim_fault_server_over(struct sim_world *world)
{
    struct sim_net *net = &world->net;
    if (net->up) {
        return;
    }
    const struct sim_redis_data kept = net->redis.data;
    net->up = true;
    if (net->comes_up == EMPTY) {
        sim_redis_start(&net->redis, NULL, world->now);
    } else {
        sim_redis_start(&net->redis, net->comes_up == SNAPSHOT ? &net->snapshot : &kept,
                        world->now);
    }
    SIM_TRACE(world, "the server is up, %s",
              net->comes_up == EMPTY      ? "empty"
              : net->comes_up == SNAPSHOT ? "from a snapshot"
                                          : "with everything");
}

static void flush(struct sim_world *world)
{
    SIM_TRACE(world, "all keys are removed");
    world->net.redis.data = (struct sim_redis_data){.lease = {.present = false}};
    lose(world);
}

/* What two steps hide from each other nobody can see. */
void sim_clock_steps(struct sim_world *world, int64_t by)
{
    struct sim_net *net = &world->net;
    SIM_TRACE(world, "the server's clock steps by %" PRId64 " us", by);
    sim_clock_jump(&net->redis.wall, world->now, by);
    if ((net->stepped_at > 0 && world->now < net->stepped_at + window(world)) ||
        (by > 0 && world->profile.lease_min != world->profile.lease_max)) {
        world->check.void_until = world->now + window(world);
    }
    if (by < 0) {
        net->stepped_us += (uint64_t)-by;
        judge_fences(world);
    } else {
        net->jumped_at = world->now;
        net->jump_us = (uint64_t)by;
    }
    net->stepped_at = world->now;
}

static void promote(struct sim_world *world)
{
    struct sim_net *net = &world->net;
    SIM_TRACE(world, "a replica is promoted");
    if (sim_chance(&world->random, 1, 2)) {
        sim_net_crash(world);
    }
    lose(world);
    sim_redis_promote(&net->redis, &net->snapshot, world->now);
    sim_clock_steps(world, (int64_t)sim_below(&world->random, 4000) - 2000);
}

static void jump(struct sim_world *world)
{
    const coord_ms most = sim_chance(&world->random, 1, 8) ? 7200000 : world->profile.lease_max * 2;
    const int64_t by = (int64_t)sim_between(&world->random, 20, most) * 1000;
    sim_clock_steps(world, sim_chance(&world->random, 1, 2) ? by : -by);
}

void sim_fault_server(struct sim_world *world)
{
    static const enum sim_fault choices[] = {SIM_FAULT_RESTART, SIM_FAULT_FLUSH, SIM_FAULT_PROMOTE,
                                             SIM_FAULT_JUMP};
    if (world->quiet) {
        return;
    }
    const enum sim_fault fault = choices[sim_below(&world->random, 4)];
    if (world->net.up && sim_has(world, fault)) {
        if (fault == SIM_FAULT_RESTART) {
            restart(world);
        } else if (fault == SIM_FAULT_FLUSH) {
            flush(world);
        } else if (fault == SIM_FAULT_PROMOTE) {
            promote(world);
        } else {
            jump(world);
        }
    }
    sim_plan(world, some_time(world, 3 * world->profile.lease_max), SIM_EVENT_SERVER, 0, 0);
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
    }
    for (size_t i = 0; i < world->profile.processes; i++) {
        struct sim_process *process = &world->processes[i];
        if (process->elector != NULL) {
            recover(process);
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
