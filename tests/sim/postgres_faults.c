/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_faults.c - what happens to the simulated PostgreSQL.
 */
#include "tests/sim/postgres.h"

#include <inttypes.h>

/* All sessions end; whose host went down with the server hears nothing of it. */
static void end_all(struct sim_world *world)
{
    const bool tells = !sim_chance(&world->random, 1, 3);
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        if (world->pg.sessions[i].alive) {
            sim_pg_end_session(world, i, tells);
        }
    }
    sim_pg_writers_end(world, false);
}

static void restart(struct sim_world *world)
{
    struct sim_postgres *pg = &world->pg;
    SIM_TRACE(world, "the server goes down");
    world->net.up = false;
    end_all(world);
    if (sim_chance(&world->random, 1, 2)) {
        pg->table = pg->durable; /* a crash: a mark that was not on the disk is gone */
    }
    const bool is_short = sim_chance(&world->random, 1, 2);
    const coord_ms most = sim_planted(SIM_PLANT_PG_PATIENT) ? 8 * world->profile.lease_max
                          : is_short                        ? world->profile.lease_max / 20 + 1
                                                            : 2 * world->profile.lease_max;
    sim_plan(world, world->now + 1 + sim_below(&world->random, most * 1000), SIM_EVENT_SERVER_UP, 0,
             0);
}

void sim_postgres_up(struct sim_world *world)
{
    world->net.up = true;
    SIM_TRACE(world, "the server is up");
}

/* A standby that lags becomes the primary; the old one is gone. */
static void promote(struct sim_world *world)
{
    struct sim_postgres *pg = &world->pg;
    SIM_TRACE(world, "a standby is promoted");
    end_all(world);
    sim_lose(world);
    pg->guard_void = pg->guard_void || pg->standby.rows[0].fence != pg->table.rows[0].fence;
    pg->table = pg->standby;
    pg->durable = pg->standby;
    pg->older = (struct sim_pg_table){.rows = {{.present = false}}};
    pg->run++;
    pg->emptied = true;
    sim_clock_steps(world, (int64_t)sim_below(&world->random, 4000) - 2000);
}

static bool table_is_busy(const struct sim_world *world)
{
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        const struct sim_pg_session *session = &world->pg.sessions[i];
        if (session->alive && session->step != SIM_PG_IDLE) {
            return true;
        }
    }
    return sim_pg_work_is_open(world);
}

static void empty(struct sim_world *world)
{
    SIM_TRACE(world, "TRUNCATE");
    world->pg.table = (struct sim_pg_table){.rows = {{.present = false}}};
    world->pg.durable = world->pg.table;
    world->pg.emptied = true;
    sim_lose(world);
}

static void put_back(struct sim_world *world)
{
    const size_t election =
        world->profile.elections > 1 ? sim_below(&world->random, world->profile.elections) : 0;
    struct sim_pg_row *row = &world->pg.table.rows[election];
    const struct sim_pg_row *older = &world->pg.older.rows[election];
    if (!older->present || !row->present || older->run != world->pg.run) {
        return;
    }
    SIM_TRACE(world, "an older row of %s is put back: fence %" PRIu64, sim_elections[election],
              older->fence);
    *row = *older;
    row->strange = true;
    world->pg.durable.rows[election] = *row;
    sim_lose(world);
}

/* Perhaps behind a cable that is cut: then its client does not hear of it. */
void sim_pg_terminate(struct sim_world *world, size_t slot)
{
    SIM_TRACE(world, "pg_terminate_backend");
    if (sim_has(world, SIM_FAULT_STALL) && sim_chance(&world->random, 1, 2)) {
        sim_pg_stall(world, world->pg.sessions[slot].process);
    }
    sim_pg_end_session(world, slot, true);
}

static void terminate(struct sim_world *world)
{
    const size_t first = sim_below(&world->random, SIM_PG_SESSIONS);
    const bool holder = sim_chance(&world->random, 2, 3);
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        const size_t slot = (first + i) % SIM_PG_SESSIONS;
        const struct sim_pg_session *session = &world->pg.sessions[slot];
        if (session->alive && (!holder || session->locks[0] > 0)) {
            sim_pg_terminate(world, slot);
            return;
        }
    }
}

static void jump(struct sim_world *world)
{
    const coord_ms most = sim_chance(&world->random, 1, 8) ? 7200000 : world->profile.lease_max * 2;
    const int64_t by = (int64_t)sim_between(&world->random, 20, most) * 1000;
    const bool reserved = world->pg.table.rows[0].reserved_until_us > sim_pg_wall(world);
    /* A reservation that has just been made is what a step back is worst for. */
    const bool back = sim_chance(&world->random, reserved ? 3 : 1, reserved ? 4 : 2);
    sim_clock_steps(world, back ? -by : by);
}

static void lock_table(struct sim_world *world)
{
    world->pg.table_locked_until = sim_pg_some_time(world, world->profile.lease_max);
    SIM_TRACE(world, "LOCK TABLE until %" PRIu64 " ms", world->pg.table_locked_until / 1000);
}

void sim_postgres_suffers(struct sim_world *world)
{
    static const enum sim_fault choices[] = {
        SIM_FAULT_TERMINATE, SIM_FAULT_TERMINATE, SIM_FAULT_TERMINATE,
        SIM_FAULT_RESTART,   SIM_FAULT_PROMOTE,   SIM_FAULT_FLUSH,
        SIM_FAULT_COPY,      SIM_FAULT_TABLE,     SIM_FAULT_JUMP};
    const enum sim_fault fault =
        choices[sim_below(&world->random, sizeof choices / sizeof choices[0])];
    if (!sim_has(world, fault) || !world->net.up) {
        return;
    }
    if (fault == SIM_FAULT_TERMINATE) {
        terminate(world);
    } else if (fault == SIM_FAULT_RESTART) {
        restart(world);
    } else if (fault == SIM_FAULT_PROMOTE) {
        promote(world);
    } else if (fault == SIM_FAULT_JUMP) {
        jump(world);
    } else if (table_is_busy(world)) {
        return; /* it would have to wait, and comes another time */
    } else if (fault == SIM_FAULT_FLUSH) {
        empty(world);
    } else if (fault == SIM_FAULT_COPY) {
        put_back(world);
    } else {
        lock_table(world);
    }
}

/* A login whose server was gone in the middle of it would hang for a second. */
static void end_hung_logins(struct sim_world *world)
{
    const struct sim_pg_answer gone = {.kind = SIM_PG_GONE};
    for (size_t i = 0; i < world->profile.processes; i++) {
        const struct sim_pg_link *link = &world->pg.links[i];
        const struct sim_pg_session nobody = {.process = (uint8_t)i,
                                              .connection = link->connection};
        if (sim_pg_session_of(world, (uint8_t)i, link->connection) == NULL) {
            sim_pg_tell(world, &nobody, &gone);
        }
    }
}

void sim_postgres_heals(struct sim_world *world)
{
    sim_fault_server_over(world);
    sim_pg_writers_end(world, true);
    end_hung_logins(world);
}

bool sim_postgres_holds(const struct sim_world *world, const struct sim_process *process)
{
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        const struct sim_pg_session *session = &world->pg.sessions[i];
        if (!session->alive) {
            continue;
        }
        for (size_t k = 0; process == NULL && k < SIM_PG_ELECTIONS; k++) {
            if (session->locks[k] > 0) {
                return true;
            }
        }
        if (session->locks[0] > 0 && process != NULL && session->process == process->index &&
            session->owner == process->owner) {
            return true;
        }
    }
    return false;
}
