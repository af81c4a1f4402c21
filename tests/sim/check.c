/* SPDX-License-Identifier: MIT
 * tests/sim/check.c - the promises, looked at after every event.
 */
#include "tests/sim/world.h"

#include <inttypes.h>

const char *sim_promise_name(enum sim_promise promise)
{
    static const char *const names[] = {"kept", "E1", "E1-work", "E2",        "E3",   "E4",
                                        "E5",   "E6", "E7",      "step-down", "guard"};
    return names[promise];
}

/* With coord.takeover=fast E1 is not, and fences alone protect. */
bool sim_check_promised(const struct sim_world *world)
{
    return !world->profile.fast && world->now >= world->check.void_until;
}

/* ---------------------------------------------------------------- E1, E3 */

static void two_leaders(struct sim_world *world, enum sim_promise promise, uint8_t one,
                        uint8_t other)
{
    if (sim_check_promised(world)) {
        sim_broke(world, promise, "p%u and p%u at once", one, other);
    } else {
        world->counts.outside++;
        SIM_TRACE(world, "p%u and p%u lead at once, which is not promised now", one, other);
    }
}

static void check_claim(struct sim_process *process, bool leads)
{
    const struct coord_claim claim = coord_lease_claim(process->machine, sim_local(process));
    if (claim.leading != leads || claim.leading != (claim.term != 0) ||
        claim.leading != (claim.fence != 0) || claim.leading != (claim.remaining != 0)) {
        sim_broke(process->world, SIM_E3, "p%u: its claim contradicts itself", process->index);
    }
}

/*
 * E7, in the quiet: somebody leads, without being about to stop. What went wrong before may still
 * cost a term; but once the bound is over the leader stays.
 */
static void note_leader(struct sim_world *world, const struct sim_process *leader)
{
    struct sim_check *check = &world->check;
    const bool steady = leader != NULL && leader->machine->term.state == COORD__TERM_STARTED;
    const bool same = steady && check->leader_since != 0 && leader->index == check->leader;
    if (world->now >= check->leader_by && !same) {
        sim_broke(world, SIM_E7, "p%u led in the quiet, and does not any more", check->leader);
    }
    if (!same) {
        check->leader_since = steady ? world->now : 0;
        check->leader = steady ? leader->index : 0;
    }
}

void sim_check_leaders(struct sim_world *world)
{
    const struct sim_process *leader = NULL;
    for (size_t i = 0; i < world->profile.processes; i++) {
        struct sim_process *process = &world->processes[i];
        if (process->elector == NULL) {
            continue;
        }
        const bool leads = sim_leads(process);
        check_claim(process, leads);
        if (leads && leader != NULL) {
            two_leaders(world, SIM_E1, leader->index, process->index);
        }
        leader = leads ? process : leader;
    }
    if (world->quiet && world->check.leader_by != 0) {
        note_leader(world, leader);
    }
    sim_companions_check(world);
}

void sim_check_work(struct sim_process *process)
{
    struct sim_world *world = process->world;
    for (size_t i = 0; i < world->profile.processes; i++) {
        struct sim_process *other = &world->processes[i];
        if (other != process && other->elector != NULL && sim_host_works(other)) {
            two_leaders(world, SIM_WORK, other->index, process->index);
        }
    }
}

/* ---------------------------------------------------------------- E2 */

/* The store has given a number to a new term. */
void sim_check_grant(struct sim_process *process, uint64_t fence)
{
    process->grants[process->grant_count++ % SIM_GRANTS] =
        (struct sim_grant){.fence = fence, .order = ++process->world->check.grants};
}

/* Of its last grant: an older row put back may have a number that nobody led with given anew. */
uint32_t sim_check_order(const struct sim_process *process, uint64_t fence)
{
    uint32_t order = 0;
    for (unsigned i = 0; i < SIM_GRANTS && i < process->grant_count; i++) {
        const struct sim_grant *grant = &process->grants[i];
        order = grant->fence == fence && grant->order > order ? grant->order : order;
    }
    return order > 0 ? order : process->world->check.grants;
}

/* Guarded work is committed: nobody whose term was granted later has led. */
void sim_check_guarded(struct sim_world *world, uint8_t process, uint64_t fence, uint32_t order)
{
    for (unsigned i = 0; i < world->check.led_count; i++) {
        const struct sim_led *led = &world->check.led[i];
        if (led->order > order) {
            sim_broke(world, SIM_GUARD,
                      "work of p%u under fence %" PRIu64 " commits, and p%u has led with %" PRIu64,
                      process, fence, led->process, led->fence);
            return;
        }
    }
}

/* A term leads: its fence is above those of all that led before it and were granted before it. */
static void check_fence(struct sim_process *process, uint64_t fence)
{
    struct sim_world *world = process->world;
    struct sim_check *check = &world->check;
    const struct sim_led led = {
        .fence = fence, .order = sim_check_order(process, fence), .process = process->index};
    for (unsigned i = 0; i < check->led_count; i++) {
        const struct sim_led *former = &check->led[i];
        const bool counts = former->order < led.order || sim_check_promised(world);
        if (former->fence >= led.fence && counts && !check->fence_void) {
            sim_broke(world, SIM_E2, "p%u leads with fence %" PRIu64 ", p%u did with %" PRIu64,
                      led.process, led.fence, former->process, former->fence);
        }
    }
    COORD_ASSERT(check->led_count < SIM_TERMS);
    check->led[check->led_count++] = led;
    world->counts.terms++;
    if (fence >= (uint64_t)1 << 53) {
        sim_broke(world, SIM_E2, "the fence %" PRIu64 " is not below 2^53", fence);
    }
}

/* ---------------------------------------------------------------- E4 */

void sim_check_edge(struct sim_process *process, const struct coord_edge *edge)
{
    struct sim_world *world = process->world;
    bool right = false;
    switch (edge->kind) {
    case COORD_EDGE_STARTED:
        right = process->edge_kind == COORD_EDGE_STOPPED && edge->term == process->edge_term + 1;
        break;
    case COORD_EDGE_STOPPING:
        right = process->edge_kind == COORD_EDGE_STARTED && edge->term == process->edge_term;
        break;
    case COORD_EDGE_STOPPED:
        right = process->edge_kind != COORD_EDGE_STOPPED && edge->term == process->edge_term;
        break;
    }
    if (!right) {
        sim_broke(world, SIM_E4, "p%u: edge %d of term %" PRIu64 " after edge %d of term %" PRIu64,
                  process->index, (int)edge->kind, edge->term, (int)process->edge_kind,
                  process->edge_term);
    }
    if (edge->kind == COORD_EDGE_STARTED && process->host.term != 0) {
        sim_broke(world, SIM_E4,
                  "p%u: term %" PRIu64 " begins before the end of term %" PRIu64
                  " was acknowledged",
                  process->index, edge->term, process->host.term);
    }
    if (edge->kind == COORD_EDGE_STARTED && sim_local(process) < process->aside_until) {
        sim_broke(world, SIM_ASIDE, "p%u leads again right after it stepped down", process->index);
    }
    process->edge_term = edge->term;
    process->edge_kind = edge->kind;
    /* One that was stopped meanwhile may hear of a term that is over: it has never led. */
    if (edge->kind == COORD_EDGE_STARTED && sim_leads(process)) {
        check_fence(process, edge->fence);
    }
}

/* ---------------------------------------------------------------- E6, E7 */

/*
 * What it says that it released it does not hold any more, unless an older state came back, or an
 * attempt that was given up long ago: that lapses.
 */
static bool still_holds(const struct sim_process *process)
{
    struct sim_world *world = process->world;
    uint32_t ghosts = SIM_FAULT_TWICE | SIM_FAULT_STALL | SIM_FAULT_SLOW;
    ghosts |= world->store == SIM_STORE_POSTGRES ? SIM_FAULT_LOSS : 0;
    if (world->check.losses > 1 || (world->profile.faults & ghosts) != 0) {
        return false;
    }
    if (world->store == SIM_STORE_REDIS) {
        return sim_redis_holds(&world->net.redis, world->now) &&
               world->net.redis.data.lease.owner == process->owner;
    }
    if (world->store == SIM_STORE_POSTGRES) {
        return sim_postgres_holds(world, process);
    }
    for (unsigned i = 0; i < world->disk.lock_count; i++) {
        if (world->disk.locks[i].process == process->index) {
            return true;
        }
    }
    return false;
}

/* It withdrew: once it says that it has settled it asks for nothing and holds nothing. */
void sim_check_settled(struct sim_process *process)
{
    static const char *const released[] = {"nothing held", "RELEASED", "LAPSING", "UNKNOWN"};
    struct sim_world *world = process->world;
    if (process->settled || !coord_lease_settled(process->machine)) {
        return;
    }
    process->settled = true;
    SIM_TRACE(world, "p%u has settled: %s", process->index, released[process->machine->release]);
    if (process->edge_kind != COORD_EDGE_STOPPED) {
        sim_broke(world, SIM_E4, "p%u: term %" PRIu64 " never stopped", process->index,
                  process->edge_term);
    }
    if (coord_lease_deadline(process->machine) != COORD_NEVER) {
        sim_broke(world, SIM_E6, "p%u has settled, and wants to be woken", process->index);
    }
    if (process->machine->release == COORD_RELEASE_RELEASED && still_holds(process)) {
        sim_broke(world, SIM_E6, "p%u says RELEASED, and holds it", process->index);
    }
    if (sim_host_works(process)) {
        sim_broke(world, SIM_E6, "p%u has settled while its host works", process->index);
    }
}

void sim_check_end(struct sim_world *world)
{
    for (size_t i = 0; i < world->profile.processes; i++) {
        struct sim_process *process = &world->processes[i];
        if (process->elector == NULL) {
            continue;
        }
        if (!process->settled) {
            sim_broke(world, SIM_E6, "p%u has not settled", process->index);
        }
        sim_companions_check_end(process);
    }
    if (world->store == SIM_STORE_REDIS && sim_redis_holds(&world->net.redis, world->now)) {
        sim_broke(world, SIM_E6, "p%u left its lease behind", world->net.redis.data.lease.identity);
    }
    if (world->store == SIM_STORE_POSTGRES && sim_postgres_holds(world, NULL)) {
        sim_broke(world, SIM_E6, "a lock was left behind");
    }
}
