/* SPDX-License-Identifier: MIT
 * tests/sim/schedule.c - one schedule from its first event to its verdict.
 *
 * Faults for 6 to 16 leases, then the quiet: a leader within the bound (E7), who stays; then
 * everybody withdraws, and nothing is left (E6).
 */
#include "tests/sim/world.h"

#include <string.h>

static void trace_profile(struct sim_world *world)
{
    static const char *const names[] = {
        "loss",     "slow",      "stall",   "twice",     "pause",     "stale",     "kill",
        "withdraw", "step-down", "ask",     "health",    "candidacy", "slow-host", "hung-host",
        "restart",  "flush",     "promote", "jump",      "no-info",   "leases",    "ranks",
        "late",     "torn",      "copy",    "namespace", "reboot",    "churn",     "terminate",
        "writers",  "commit",    "table",
    };
    const struct sim_profile *profile = &world->profile;
    if (world->trace == NULL) {
        return;
    }
    sim_trace(world, "seed %llu: %zu processes, lease %llu ms; what may happen:",
              (unsigned long long)world->seed, profile->processes,
              (unsigned long long)profile->lease_max);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((profile->faults >> i & 1) != 0) {
            fprintf(world->trace, "            %s\n", names[i]);
        }
    }
}

static void begin(struct sim_world *world, enum sim_store store, uint64_t seed, FILE *trace)
{
    const struct sim_counts counts = world->counts;
    memset(world, 0, offsetof(struct sim_world, events));
    world->counts = counts;
    world->check.losses = 1;
    world->seed = seed;
    world->store = store;
    world->trace = trace;
    struct sim_random mixer = {.state = seed ^ ((uint64_t)store << 56)};
    world->random.state = sim_next(&mixer) ^ seed;
    sim_choose(world);
    world->quiet_from = world->profile.leases * world->profile.lease_max * 1000;
    sim_net_init(world);
    if (store == SIM_STORE_POSTGRES) {
        sim_postgres_init(world);
    }
    sim_disk_init(&world->disk);
    world->disk.wall = world->net.redis.wall;
    const struct sim_profile *profile = &world->profile;
    trace_profile(world);
    const sim_us lease = profile->lease_max * 1000;
    for (size_t i = 0; i < profile->processes; i++) {
        sim_plan(world, sim_below(&world->random, lease / 2), SIM_EVENT_BOOT, i, 0);
        sim_plan(world, sim_below(&world->random, 2 * lease), SIM_EVENT_FAULT, i, 0);
    }
    sim_plan(world, sim_below(&world->random, 3 * lease), SIM_EVENT_STORE, 0, 0);
    sim_plan(world, sim_below(&world->random, 2 * lease), SIM_EVENT_SNAPSHOT, 0, 0);
    sim_plan(world, world->quiet_from, SIM_EVENT_QUIET, 0, 0);
}

/*
 * E7, the bound of docs/guarantees.md: a lease that nobody renews runs out, what is owed is waited
 * for, a former leader stands aside while a successor has the first right, a candidate that heard
 * nothing looks again, the rank's delay, two attempts; on PostgreSQL one more lease, for which
 * guarded work of a former leader may stay open. All by clocks that may be slow, and late wakes.
 */
static sim_us bound(const struct sim_world *world)
{
    const coord_ms lease = world->profile.lease_max;
    const coord_ms renew = coord_ms_min(lease / 3, 10000);
    const coord_ms attempt = coord_ms_min(lease / 8, 5000);
    const coord_ms all = lease + lease + lease / 2 + lease / 3 + world->profile.rank_max * renew +
                         2 * attempt + (world->store == SIM_STORE_POSTGRES ? lease : 0);
    return all * 1000 * 102 / 100 + 20000;
}

static void quiet(struct sim_world *world)
{
    struct sim_check *check = &world->check;
    sim_heal(world);
    check->quiet_at = world->now;
    check->leader_by = world->now + bound(world);
    sim_plan(world, check->leader_by - 1, SIM_EVENT_LEADER, 0, 0);
}

/* Where fences went back, whoever saw a higher one refuses the PostgreSQL that gives them. */
static bool may_be_refused(const struct sim_world *world)
{
    return world->store == SIM_STORE_POSTGRES && world->check.fence_void;
}

static void leader_is_due(struct sim_world *world)
{
    const struct sim_check *check = &world->check;
    sim_check_leaders(world);
    if (may_be_refused(world) && check->leader_since == 0) {
        sim_plan(world, world->now, SIM_EVENT_LEAVE, 0, 0);
        return;
    }
    if (!may_be_refused(world)) {
        sim_companions_are_led(world);
    }
    if (check->leader_since == 0) {
        sim_broke(world, SIM_E7, "no leader within the bound of %llu ms",
                  (unsigned long long)(check->leader_by - check->quiet_at) / 1000);
        return;
    }
    const uint64_t share =
        (check->leader_since - check->quiet_at) * 1000 / (check->leader_by - check->quiet_at);
    if (share > world->counts.bound_used) {
        world->counts.bound_used = share;
    }
    sim_plan(world, world->now + 2 * world->profile.lease_max * 1000, SIM_EVENT_LEAVE, 0, 0);
}

static void leave(struct sim_world *world)
{
    world->check.leader_by = 0;
    for (size_t i = 0; i < world->profile.processes; i++) {
        struct sim_process *process = &world->processes[i];
        if (process->elector != NULL) {
            sim_host_relents(process);
            sim_withdraw(process);
            sim_companions_withdraw(process);
            sim_run(process);
        }
    }
    sim_plan(world, world->now + 4 * world->profile.lease_max * 1000, SIM_EVENT_END, 0, 0);
}

static void handle_process(const struct sim_event *event, struct sim_process *process)
{
    const enum sim_event_kind kind = (enum sim_event_kind)event->kind;
    if (kind == SIM_EVENT_WAKE) {
        if (event->wake == process->wake) {
            process->wakes_at = SIM_NEVER;
            sim_run(process);
        }
    } else if (kind == SIM_EVENT_HOST) {
        if (event->wake == process->host.wake) {
            sim_host_event(process);
        }
    } else if (kind == SIM_EVENT_HINT) {
        process->wants_hint = true;
        sim_run(process);
    } else if (kind == SIM_EVENT_FAULT) {
        sim_fault_process(process);
    } else if (kind == SIM_EVENT_RESUME) {
        sim_resume(process, event->wake);
    } else if (kind == SIM_EVENT_GO_ON) {
        sim_go_on(process, event->wake);
    } else if (process->elector == NULL && !process->world->quiet) {
        sim_boot(process);
    }
}

static void handle(struct sim_world *world, const struct sim_event *event)
{
    switch ((enum sim_event_kind)event->kind) {
    case SIM_EVENT_ARRIVE:
        if (world->store == SIM_STORE_POSTGRES) {
            sim_postgres_arrive(world, event->index);
        } else {
            sim_net_arrive(world, event->index);
        }
        break;
    case SIM_EVENT_REPLY:
        if (world->store == SIM_STORE_POSTGRES) {
            sim_postgres_reply(world, event->index);
        } else {
            sim_net_reply(world, event->index);
        }
        break;
    case SIM_EVENT_SESSION:
        sim_postgres_session(world, event->index, event->wake);
        break;
    case SIM_EVENT_WRITER:
        sim_postgres_writer(world, event->index, event->wake);
        break;
    case SIM_EVENT_STORE:
        sim_fault_store(world);
        break;
    case SIM_EVENT_SERVER_UP:
        sim_fault_server_over(world);
        break;
    case SIM_EVENT_SNAPSHOT:
        sim_snapshot(world);
        break;
    case SIM_EVENT_QUIET:
        quiet(world);
        break;
    case SIM_EVENT_LEADER:
        leader_is_due(world);
        break;
    case SIM_EVENT_LEAVE:
        leave(world);
        break;
    case SIM_EVENT_END:
        sim_check_end(world);
        world->over = true;
        break;
    case SIM_EVENT_WAKE:
    case SIM_EVENT_HOST:
    case SIM_EVENT_HINT:
    case SIM_EVENT_FAULT:
    case SIM_EVENT_RESUME:
    case SIM_EVENT_GO_ON:
    case SIM_EVENT_BOOT:
        handle_process(event, &world->processes[event->index]);
        break;
    }
}

static void finish(struct sim_world *world)
{
    for (size_t i = 0; i < world->profile.processes; i++) {
        coord_elector_free(world->processes[i].elector, false);
        sim_companions_free(&world->processes[i]);
    }
    world->counts.schedules++;
    world->counts.broken[world->check.broken]++;
}

void sim_schedule(struct sim_world *world, enum sim_store store, uint64_t seed, FILE *trace)
{
    struct sim_event event;
    begin(world, store, seed, trace);
    while (!world->over && sim_take(world, &event)) {
        world->now = event.at;
        world->counts.events++;
        handle(world, &event);
    }
    finish(world);
}

uint64_t sim_notice(struct sim_world *world, enum sim_plant plant, uint64_t first, uint64_t most)
{
    uint64_t needed = 0;
    sim_plant_now = plant;
    for (uint64_t i = 0; i < most && needed == 0; i++) {
        sim_schedule(world, sim_plants[plant].store, first + i, NULL);
        needed = world->check.broken != SIM_KEPT ? i + 1 : 0;
    }
    sim_plant_now = SIM_PLANT_NONE;
    return needed;
}
