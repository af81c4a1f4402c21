/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_writer.c - guarded work: transactions of the leaders' hosts that begin with
 * coord.fence(), on connections of their own, some of which outlast their leader by far.
 */
#include "tests/sim/postgres.h"

#include <inttypes.h>

static void plan(struct sim_world *world, struct sim_pg_writer *writer, sim_us at)
{
    sim_plan(world, at, SIM_EVENT_WRITER, (size_t)(writer - world->pg.writers), ++writer->wake);
}

/* A host that leads now, by its own look, writes; its statement may be on its way for long. */
void sim_postgres_writer_begins(struct sim_process *process)
{
    struct sim_world *world = process->world;
    if (!sim_has(world, SIM_FAULT_WRITERS) || !process->host.work ||
        !sim_chance(&world->random, 1, 3)) {
        return;
    }
    for (size_t i = 0; i < SIM_PG_WRITERS; i++) {
        struct sim_pg_writer *writer = &world->pg.writers[i];
        if (writer->state == SIM_PG_NONE) {
            writer->state = SIM_PG_COMING;
            writer->process = process->index;
            writer->fence = process->host.fence;
            writer->order = sim_check_order(process, process->host.fence);
            writer->dies = sim_chance(&world->random, 1, 8);
            sim_us takes = sim_pg_one_way(world);
            if (sim_chance(&world->random, 1, 4)) {
                takes += sim_below(&world->random, 2 * world->profile.lease_max * 1000);
            }
            plan(world, writer, world->now + takes);
            return;
        }
    }
}

bool sim_pg_work_is_open(const struct sim_world *world)
{
    for (size_t i = 0; i < SIM_PG_WRITERS; i++) {
        if (world->pg.writers[i].state == SIM_PG_OPEN) {
            return true;
        }
    }
    return false;
}

/* Idle in its transaction it is ended after a lease; a statement may run for longer. */
static sim_us duration(struct sim_world *world)
{
    const sim_us lease = world->profile.lease_max * 1000;
    if (world->quiet || sim_chance(&world->random, 1, 2)) {
        return sim_below(&world->random, world->profile.lease_min * 1000 / 20);
    }
    return sim_below(&world->random, sim_chance(&world->random, 1, 2) ? lease : 3 * lease);
}

/* Behind the gate it reads the row as it is then. */
static void enter(struct sim_world *world, struct sim_pg_writer *writer)
{
    const struct sim_pg_row *row = &world->pg.table.rows[0];
    writer->state = SIM_PG_NONE;
    if (!row->present || row->fence != writer->fence || row->resigned) {
        SIM_TRACE(world, "   server: work under fence %" PRIu64 " is stale", writer->fence);
        return;
    }
    writer->state = sim_planted(SIM_PLANT_PG_EXISTS) ? SIM_PG_BARE : SIM_PG_OPEN;
    SIM_TRACE(world, "   server: work of p%u under fence %" PRIu64 " is open", writer->process,
              writer->fence);
    plan(world, writer, world->now + duration(world));
}

static void finish(struct sim_world *world, struct sim_pg_writer *writer)
{
    writer->state = SIM_PG_NONE;
    SIM_TRACE(world, "   server: work of p%u under fence %" PRIu64 " %s", writer->process,
              writer->fence, writer->dies ? "is rolled back" : "commits");
    if (!writer->dies && !world->pg.guard_void) {
        sim_check_guarded(world, writer->process, writer->fence, writer->order);
    }
    sim_pg_wake(world);
}

void sim_postgres_writer(struct sim_world *world, size_t index, uint32_t wake)
{
    struct sim_pg_writer *writer = &world->pg.writers[index];
    if (writer->wake != wake) {
        return;
    }
    if (writer->state == SIM_PG_OPEN || writer->state == SIM_PG_BARE) {
        finish(world, writer);
    } else if (!world->net.up || world->now < world->pg.table_locked_until) {
        writer->state = SIM_PG_NONE;
    } else if (sim_pg_gate_is_wanted(world) && !sim_planted(SIM_PLANT_PG_EXISTS)) {
        writer->state = SIM_PG_WAITING;
    } else {
        enter(world, writer);
    }
}

/* The queue at the gate is a fair one: who came behind a waiting term goes on now. */
void sim_pg_writers_go_on(struct sim_world *world)
{
    if (sim_pg_gate_is_wanted(world)) {
        return;
    }
    for (size_t i = 0; i < SIM_PG_WRITERS; i++) {
        struct sim_pg_writer *writer = &world->pg.writers[i];
        if (writer->state == SIM_PG_WAITING) {
            enter(world, writer);
        }
    }
}

/* The server went down with them; or, quietly, all come to their end at once. */
void sim_pg_writers_end(struct sim_world *world, bool quietly)
{
    for (size_t i = 0; i < SIM_PG_WRITERS; i++) {
        struct sim_pg_writer *writer = &world->pg.writers[i];
        if (!quietly) {
            writer->state = SIM_PG_NONE;
            writer->wake++;
        } else if (writer->state == SIM_PG_OPEN || writer->state == SIM_PG_BARE) {
            plan(world, writer, world->now);
        }
    }
}
