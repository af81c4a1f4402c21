/* SPDX-License-Identifier: MIT
 * tests/sim/host.c - the program around an elector: work under a fence, callbacks, a guardian.
 *
 * Work begins when STARTED is told and a fresh look at the claim still says yes. It ends some
 * time after STOPPING, and at hard at the latest: the guardian sees to that by the clock of the
 * host, also when the process is stopped. Only then is the end acknowledged, by the return of
 * the callback or, with explicit_ack, by a call.
 */
#include "tests/sim/world.h"

#include <inttypes.h>

enum {
    CHURNED_MAX = 200
}; /* terms of a schedule that end as they begin */

static void plan(struct sim_process *process, sim_us at)
{
    process->host.ends_at = at;
    process->host.wake++;
    sim_plan(process->world, at, SIM_EVENT_HOST, process->index, process->host.wake);
}

static sim_us hard_at(const struct sim_process *process)
{
    return sim_clock_when(&process->clock, process->host.hard, process->world->now);
}

static bool past_hard(const struct sim_process *process)
{
    return sim_local(process) >= process->host.hard;
}

/* Is anything being done under its fence at this true instant? */
bool sim_host_works(struct sim_process *process)
{
    struct sim_host *host = &process->host;
    if (host->work && past_hard(process)) {
        host->work = false; /* the guardian's doing */
        SIM_TRACE(process->world, "p%u work of term %" PRIu64 " ended at hard", process->index,
                  host->term);
    }
    return host->work;
}

static void end_work(struct sim_process *process)
{
    if (sim_host_works(process)) {
        process->host.work = false;
        SIM_TRACE(process->world, "p%u work of term %" PRIu64 " ends", process->index,
                  process->host.term);
    }
}

/* The guardian shares the term's hard, which moves with each renewal. */
void sim_host_watch(struct sim_process *process)
{
    struct sim_host *host = &process->host;
    if (host->term == 0 || !sim_host_works(process)) {
        return;
    }
    const struct coord_claim claim = coord_lease_claim(process->machine, sim_local(process));
    if (claim.leading && claim.term == host->term) {
        host->hard = sim_local(process) + claim.remaining;
        if (claim.fence != host->fence) {
            sim_broke(process->world, SIM_E3, "p%u: the fence of term %" PRIu64 " changed",
                      process->index, host->term);
        }
    }
}

static void begin_work(struct sim_process *process, const struct coord_edge *edge)
{
    struct sim_host *host = &process->host;
    const struct coord_claim claim = coord_lease_claim(process->machine, sim_local(process));
    host->term = edge->term;
    host->fence = edge->fence;
    host->hard = edge->hard;
    if (claim.leading && claim.term == edge->term && !claim.stopping) {
        host->work = true;
        host->hard = sim_local(process) + claim.remaining;
        SIM_TRACE(process->world, "p%u work of term %" PRIu64 " begins, hard in %" PRIu64,
                  process->index, edge->term, claim.remaining);
        sim_check_work(process);
    }
}

/* How long a callback that was just entered takes until it returns. */
static sim_us callback_time(struct sim_process *process)
{
    struct sim_world *world = process->world;
    if (sim_has(world, SIM_FAULT_SLOW_HOST) && sim_chance(&world->random, 1, 4)) {
        return sim_below(&world->random, process->lease * 1000);
    }
    return 0;
}

/* When the work ends that was just told to end. */
static sim_us end_of_work(struct sim_process *process)
{
    struct sim_world *world = process->world;
    const sim_us hard = hard_at(process);
    if (process->host.hangs) {
        return SIM_NEVER / 2;
    }
    if (sim_has(world, SIM_FAULT_HUNG_HOST) && sim_chance(&world->random, 1, 3)) {
        return hard + sim_below(&world->random, 3 * process->lease * 1000);
    }
    if (sim_has(world, SIM_FAULT_SLOW_HOST) && sim_chance(&world->random, 1, 2)) {
        const sim_us left = hard > world->now ? hard - world->now : 0;
        return world->now + sim_below(&world->random, left + 1);
    }
    return world->now + sim_below(&world->random, process->timing->grace * 1000 / 2);
}

static void callback_returns(struct sim_process *process)
{
    process->host.callback = false;
    coord_lease_edge_done(process->machine, sim_local(process));
}

static void acknowledge(struct sim_process *process)
{
    struct sim_host *host = &process->host;
    const uint64_t term = host->term;
    end_work(process);
    SIM_TRACE(process->world, "p%u host has ended term %" PRIu64, process->index, term);
    host->state = SIM_HOST_IDLE;
    host->term = 0;
    if (host->explicit_ack) {
        coord_lease_acknowledge(process->machine, term, sim_local(process));
    } else if (host->callback) {
        callback_returns(process);
    }
}

static void told_started(struct sim_process *process, const struct coord_edge *edge)
{
    begin_work(process, edge);
    process->host.state = SIM_HOST_WORKING;
    const sim_us takes = callback_time(process);
    if (takes > 0) {
        process->host.state = SIM_HOST_STARTING;
        plan(process, process->world->now + takes);
    } else {
        callback_returns(process);
    }
    if (sim_has(process->world, SIM_FAULT_CHURN) && takes == 0 &&
        process->world->check.led_count < CHURNED_MAX) {
        process->host.state = SIM_HOST_ENDING;
        plan(process, process->world->now + sim_below(&process->world->random, 1000));
    }
}

static void told_to_end(struct sim_process *process, const struct coord_edge *edge)
{
    struct sim_host *host = &process->host;
    if (host->term != edge->term || host->state == SIM_HOST_ENDING) {
        callback_returns(process); /* it has ended, or is about to end, already */
        return;
    }
    host->state = SIM_HOST_ENDING;
    plan(process, host->work || host->hangs ? end_of_work(process) : process->world->now);
    if (host->explicit_ack) {
        callback_returns(process);
    }
}

/* Take the edges that are there, one at a time as runtime/ does. @return something was told. */
bool sim_host_edges(struct sim_process *process)
{
    struct sim_world *world = process->world;
    struct coord_edge edge;
    bool told = false;
    while (!process->host.callback && coord_lease_next_edge(process->machine, &edge)) {
        static const char *const names[] = {"", "STARTED", "STOPPING", "STOPPED"};
        told = true;
        process->host.callback = true;
        SIM_TRACE(world, "p%u %s term %" PRIu64 " fence %" PRIu64, process->index, names[edge.kind],
                  edge.term, edge.fence);
        sim_check_edge(process, &edge);
        if (edge.kind == COORD_EDGE_STARTED) {
            told_started(process, &edge);
        } else {
            told_to_end(process, &edge);
        }
    }
    return told;
}

/* What the host had in mind for now: a callback returns, or its work ends. */
void sim_host_event(struct sim_process *process)
{
    struct sim_host *host = &process->host;
    if (process->elector == NULL) {
        return;
    }
    if (process->stopped) {
        plan(process, process->world->now + process->timing->attempt * 1000); /* it waits */
        return;
    }
    if (host->state == SIM_HOST_STARTING) {
        host->state = SIM_HOST_WORKING;
        callback_returns(process);
    } else if (host->state == SIM_HOST_ENDING) {
        acknowledge(process);
    }
    sim_run(process);
}

/* The work comes to its end without being told to. */
void sim_host_ends_itself(struct sim_process *process)
{
    struct sim_host *host = &process->host;
    if (host->explicit_ack && host->state == SIM_HOST_WORKING) {
        acknowledge(process);
    }
}

/* It says once more that an earlier term has ended. */
void sim_host_repeats(struct sim_process *process)
{
    if (process->edge_term > 1) {
        coord_lease_acknowledge(process->machine, process->edge_term - 1, sim_local(process));
    }
}

/* A host that hangs comes back, when its work has been ended for it at the latest. */
void sim_host_relents(struct sim_process *process)
{
    const sim_us hard = hard_at(process);
    process->host.hangs = false;
    if (process->host.state == SIM_HOST_ENDING && process->host.ends_at > hard) {
        plan(process, hard);
    }
}

void sim_host_died(struct sim_process *process)
{
    end_work(process);
    process->host.state = SIM_HOST_IDLE;
    process->host.term = 0;
    process->host.callback = false;
    process->host.wake++;
}
