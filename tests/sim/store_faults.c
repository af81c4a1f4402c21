/* SPDX-License-Identifier: MIT
 * tests/sim/store_faults.c - what happens to the server, and to the file.
 */
#include "tests/sim/world.h"

#include <inttypes.h>

enum boot_data {
    EMPTY,
    SNAPSHOT,
    EVERYTHING
};

static sim_us some_time(struct sim_world *world, coord_ms most)
{
    return world->now + 1 + sim_below(&world->random, most * 1000);
}

static sim_us window(const struct sim_world *world)
{
    return world->profile.lease_max * 1000 * 103 / 100;
}

static bool mixed_leases(const struct sim_world *world)
{
    return world->profile.lease_min != world->profile.lease_max;
}

/* ---------------------------------------------------------------- what is promised then */

static void judge_fences(struct sim_world *world)
{
    struct sim_check *check = &world->check;
    if ((check->losses >= 1 && check->stepped_us >= (uint64_t)1 << 32) ||
        (check->losses >= 2 && check->stepped_us > 0)) {
        check->fence_void = true;
    }
}

/* Data is lost; where the members' leases differ nothing is promised for one lease. */
void sim_lose(struct sim_world *world)
{
    world->check.losses++;
    world->net.lost_at = world->now;
    judge_fences(world);
    if (mixed_leases(world)) {
        world->check.void_until = world->now + window(world);
    }
}

/* What two steps of a clock hide from each other nobody can see. */
void sim_clock_steps(struct sim_world *world, int64_t by)
{
    struct sim_net *net = &world->net;
    const bool again = net->stepped_at > 0 && world->now < net->stepped_at + window(world);
    SIM_TRACE(world, "the store's clock steps by %" PRId64 " us", by);
    sim_clock_jump(&net->redis.wall, world->now, by);
    sim_clock_jump(&world->disk.wall, world->now, by);
    if (world->store == SIM_STORE_REDIS && (again || (by > 0 && mixed_leases(world)))) {
        world->check.void_until = world->now + window(world);
    }
    if (by < 0) {
        world->check.stepped_us += (uint64_t)-by;
        judge_fences(world);
    } else {
        net->jumped_at = world->now;
        net->jump_us = (uint64_t)by;
    }
    net->stepped_at = world->now;
}

static void jump(struct sim_world *world)
{
    const coord_ms most = sim_chance(&world->random, 1, 8) ? 7200000 : world->profile.lease_max * 2;
    const int64_t by = (int64_t)sim_between(&world->random, 20, most) * 1000;
    sim_clock_steps(world, sim_chance(&world->random, 1, 2) ? by : -by);
}

/* ---------------------------------------------------------------- the server */

static void restart(struct sim_world *world)
{
    struct sim_net *net = &world->net;
    net->comes_up = (uint8_t)sim_below(&world->random, 3);
    SIM_TRACE(world, "the server goes down");
    net->up = false;
    sim_net_crash(world);
    if (net->comes_up != EVERYTHING) {
        sim_lose(world);
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
    if (world->store == SIM_STORE_POSTGRES) {
        sim_postgres_up(world);
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

static void promote(struct sim_world *world)
{
    struct sim_net *net = &world->net;
    SIM_TRACE(world, "a replica is promoted");
    if (sim_chance(&world->random, 1, 2)) {
        sim_net_crash(world);
    }
    sim_lose(world);
    /* It has a clock of its own, and may have been behind all the time. */
    const bool behind = sim_has(world, SIM_FAULT_JUMP) && sim_chance(&world->random, 1, 2);
    const coord_ms most = behind ? 2 * world->profile.lease_max : 4;
    sim_clock_steps(world, 2000 - (int64_t)sim_below(&world->random, most * 1000));
    sim_redis_promote(&net->redis, &net->snapshot, world->now);
}

static void redis_suffers(struct sim_world *world, enum sim_fault fault)
{
    if (!world->net.up) {
        return;
    }
    if (fault == SIM_FAULT_RESTART) {
        restart(world);
    } else if (fault == SIM_FAULT_PROMOTE) {
        promote(world);
    } else if (fault == SIM_FAULT_FLUSH) {
        SIM_TRACE(world, "all keys are removed");
        world->net.redis.data = (struct sim_redis_data){.lease = {.present = false}};
        sim_lose(world);
    } else if (fault == SIM_FAULT_JUMP) {
        jump(world);
    }
}

/* ---------------------------------------------------------------- the file */

/* The host crashes: all processes end, the clock starts anew, and perhaps the file is older. */
static void reboot(struct sim_world *world)
{
    SIM_TRACE(world, "the host starts anew");
    world->crashes = true;
    for (size_t i = 0; i < world->profile.processes; i++) {
        struct sim_process *process = &world->processes[i];
        if (process->elector != NULL) {
            sim_kill(process);
        }
        process->clock.base = 1000000 + (process->time_namespace > 1 ? 50000000 : 0);
        process->clock.since = world->now;
        sim_plan(world, some_time(world, world->profile.lease_max), SIM_EVENT_BOOT, i, 0);
    }
    world->crashes = false;
    world->disk.boot++;
    if (sim_chance(&world->random, 1, 2)) {
        sim_disk_restore(&world->disk);
        sim_lose(world);
    }
}

static void file_suffers(struct sim_world *world, enum sim_fault fault)
{
    struct sim_disk *disk = &world->disk;
    const int inode = disk->linked;
    if (fault == SIM_FAULT_REBOOT) {
        reboot(world);
    } else if (fault == SIM_FAULT_JUMP) {
        jump(world);
    } else if (fault == SIM_FAULT_FLUSH && sim_disk_remove(disk)) {
        SIM_TRACE(world, "the file is removed");
        sim_lose(world);
        sim_file_changed(world, inode);
    } else if (fault == SIM_FAULT_COPY && sim_disk_copy(disk)) {
        SIM_TRACE(world, "the file is replaced by a copy");
        sim_lose(world);
        sim_file_changed(world, inode);
    }
}

void sim_snapshot(struct sim_world *world)
{
    if (world->quiet) {
        return;
    }
    if (world->store == SIM_STORE_POSTGRES) {
        world->pg.standby = world->pg.table;
    } else if (world->store == SIM_STORE_REDIS) {
        world->net.snapshot = world->net.redis.data;
    } else if (sim_has(world, SIM_FAULT_REBOOT)) {
        sim_disk_save(&world->disk);
    }
    sim_plan(world, some_time(world, 3 * world->profile.lease_max), SIM_EVENT_SNAPSHOT, 0, 0);
}

void sim_fault_store(struct sim_world *world)
{
    static const enum sim_fault choices[SIM_STORES][4] = {
        {SIM_FAULT_RESTART, SIM_FAULT_FLUSH, SIM_FAULT_PROMOTE, SIM_FAULT_JUMP},
        {SIM_FAULT_REBOOT, SIM_FAULT_FLUSH, SIM_FAULT_COPY, SIM_FAULT_JUMP}};
    if (world->quiet) {
        return;
    }
    if (world->store == SIM_STORE_POSTGRES) {
        sim_postgres_suffers(world);
        sim_plan(world, some_time(world, world->profile.lease_max), SIM_EVENT_STORE, 0, 0);
        return;
    }
    const enum sim_fault fault = choices[world->store][sim_below(&world->random, 4)];
    if (sim_has(world, fault)) {
        if (world->store == SIM_STORE_REDIS) {
            redis_suffers(world, fault);
        } else {
            file_suffers(world, fault);
        }
    }
    sim_plan(world, some_time(world, 3 * world->profile.lease_max), SIM_EVENT_STORE, 0, 0);
}
