/* SPDX-License-Identifier: MIT
 * tests/sim/process.c - a process: an elector that ships, its clock, and when it gets to run.
 */
#include "tests/sim/world.h"

#include <inttypes.h>
#include <string.h>

#include "electors/postgres.h"

enum {
    ROUNDS = 8
};

coord_ms sim_local(const struct sim_process *process)
{
    return sim_clock_ms(&process->clock, process->world->now);
}

bool sim_leads(const struct sim_process *process)
{
    return process->elector != NULL &&
           coord_elector_leading_at(process->elector, sim_local(process));
}

static void name_owner(const struct sim_process *process, uint32_t number, unsigned char *owner)
{
    memset(owner, 0, COORD_OWNER_BYTES);
    owner[0] = process->index;
    owner[1] = (unsigned char)(number >> 8);
    owner[2] = (unsigned char)number;
}

static const struct coord_backend_ops *backend(const struct sim_world *world)
{
    return world->store == SIM_STORE_REDIS  ? &sim_redis_ops
           : world->store == SIM_STORE_FILE ? &sim_file_ops
                                            : coord_postgres_elector();
}

struct coord_elector *sim_make(struct sim_process *process, size_t election, coord_ms ttl,
                               bool explicit_ack)
{
    struct sim_world *world = process->world;
    static const struct coord_uri uris[] = {{.rest = "postgresql://sim/coord"},
                                            {.rest = "postgresql://sim/coord",
                                             .options = {{.key = "takeover", .value = "fast"}},
                                             .option_count = 1}};
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    struct coord_elector *elector = NULL;
    struct coord_error error;
    process->resolver.ctx = process;
    config.name = sim_elections[election];
    config.name_bytes = 4;
    config.identity = process->identity;
    config.identity_bytes = 2;
    name_owner(process, ++world->owners, config.owner);
    config.ttl = ttl;
    config.rank = process->rank;
    config.explicit_ack = explicit_ack;
    config.seed = sim_next(&world->random);
    config.backend_ctx = process;
    config.share = &process->share;
    config.resolver = &process->resolver;
    config.uri = world->store == SIM_STORE_POSTGRES ? &uris[world->profile.fast] : NULL;
    const enum coord_err rc =
        coord_elector_new(backend(world), &config, sim_local(process), &elector, &error);
    COORD_ASSERT(rc == COORD_OK);
    return elector;
}

void sim_boot(struct sim_process *process)
{
    struct sim_world *world = process->world;
    COORD_ASSERT(process->elector == NULL);
    process->elector = sim_make(process, 0, process->lease, process->explicit_ack);
    process->owner = world->owners;
    process->machine = coord_elector_lease(process->elector);
    process->timing = coord_elector_timing(process->elector);
    process->host = (struct sim_host){.explicit_ack = process->explicit_ack,
                                      .ends_at = SIM_NEVER,
                                      .wake = process->host.wake + 1};
    process->leaving = false;
    process->settled = false;
    process->stopped = false;
    process->stale = false;
    process->contact = 0;
    process->contact_sent = 0;
    process->saw_jump = 0;
    process->edge_term = 0;
    process->aside_until = 0;
    process->edge_kind = COORD_EDGE_STOPPED;
    process->grant_count = 0;
    SIM_TRACE(world, "p%u boots as owner %" PRIu32 ", lease %" PRIu64 ", rank %u", process->index,
              process->owner, process->lease, process->rank);
    sim_companions_boot(process);
    coord_lease_stand(process->machine, sim_local(process));
    sim_run(process);
}

void sim_kill(struct sim_process *process)
{
    SIM_TRACE(process->world, "p%u is gone", process->index);
    sim_host_died(process);
    coord_elector_free(process->elector, false);
    sim_companions_free(process);
    process->elector = NULL;
    process->machine = NULL;
    process->stopped = false;
    process->stale = false;
    process->leaving = false;
    process->wake++;
    process->wakes_at = SIM_NEVER;
    process->resume++;
    process->go_on++;
}

static sim_us lag(struct sim_world *world)
{
    if (sim_has(world, SIM_FAULT_LATE) && sim_chance(&world->random, 1, 50)) {
        return sim_below(&world->random, world->profile.lease_min * 1000 / 3);
    }
    return sim_between(&world->random, 5, 150);
}

static void plan_wake(struct sim_process *process)
{
    struct sim_world *world = process->world;
    const coord_ms due =
        coord_ms_min(coord_elector_deadline(process->elector), sim_companions_deadline(process));
    const sim_us at = world->store == SIM_STORE_POSTGRES && sim_postgres_unread(process)
                          ? world->now
                          : sim_clock_when(&process->clock, due, world->now);
    if (at == process->wakes_at && at > world->now) {
        return; /* planned already */
    }
    process->wakes_at = at;
    process->wake++;
    if (at != SIM_NEVER) {
        sim_plan(world, at + lag(world), SIM_EVENT_WAKE, process->index, process->wake);
    }
}

/* @return something was told. */
static bool run_once(struct sim_process *process, coord_ms now)
{
    struct sim_world *world = process->world;
    bool told = sim_companions_run(process, now);
    coord_elector_process(process->elector, now);
    if (process->stopped) {
        return false; /* within that call */
    }
    sim_check_leaders(world);
    sim_host_watch(process);
    told = sim_host_edges(process) || told;
    if (world->store == SIM_STORE_POSTGRES) {
        sim_postgres_writer_begins(process);
    }
    return told;
}

/* What a program of the library does when its loop wakes: process, then the edges, until quiet. */
void sim_run(struct sim_process *process)
{
    struct sim_world *world = process->world;
    if (process->elector == NULL || process->stopped) {
        return;
    }
    coord_ms now = sim_local(process);
    if (process->stale) {
        now = process->stale_now;
        process->stale = false;
    }
    for (int round = 0; round < ROUNDS && run_once(process, now); round++) {
        now = sim_local(process);
    }
    sim_check_leaders(world);
    if (process->leaving) {
        sim_check_settled(process);
    }
    if (!process->stopped) {
        plan_wake(process);
    }
}
