/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_net.c - connections to the simulated PostgreSQL: they keep their order, lose
 * nothing, and may stand still for as long as the trouble lasts.
 */
#include "tests/sim/postgres.h"

#include <string.h>

#include "electors/postgres.h"

enum {
    UP = 0,
    DOWN = 1
};

bool sim_pg_in_trouble(struct sim_world *world, enum sim_fault fault)
{
    return sim_has(world, fault) && sim_chance(&world->random, world->profile.trouble, 1000);
}

/* At some time from now on, but in the quiet no more. */
sim_us sim_pg_some_time(struct sim_world *world, coord_ms most)
{
    const sim_us at = world->now + sim_below(&world->random, most * 1000);
    return at < world->quiet_from ? at : world->quiet_from;
}

sim_us sim_pg_one_way(struct sim_world *world)
{
    const sim_us latency = world->profile.latency;
    sim_us takes = latency + sim_below(&world->random, latency);
    if (sim_has(world, SIM_FAULT_SLOW) && sim_chance(&world->random, 1, 12)) {
        takes += sim_below(&world->random, world->profile.lease_min * 1000 / 4);
    }
    return takes;
}

/* A cable that is cut is a link that stands still both ways until the trouble is over. */
static sim_us arrival(struct sim_world *world, struct sim_pg_link *link, int way)
{
    if (sim_pg_in_trouble(world, SIM_FAULT_STALL)) {
        link->stalled_until[way] = sim_pg_some_time(world, 3 * world->profile.lease_max);
    }
    if (sim_pg_in_trouble(world, SIM_FAULT_LOSS)) {
        link->stalled_until[UP] = world->quiet_from;
        link->stalled_until[DOWN] = world->quiet_from;
    }
    sim_us at = world->now + sim_pg_one_way(world);
    at = at > link->stalled_until[way] ? at : link->stalled_until[way];
    at = at > link->last_arrival[way] ? at : link->last_arrival[way] + 1;
    link->last_arrival[way] = at;
    return at;
}

void sim_pg_stall(struct sim_world *world, uint8_t process)
{
    world->pg.links[process].stalled_until[DOWN] =
        sim_pg_some_time(world, 2 * world->profile.lease_max);
}

static size_t take_message(struct sim_world *world)
{
    COORD_ASSERT(world->pg.free_count > 0);
    return world->pg.free[--world->pg.free_count];
}

static void give_message(struct sim_world *world, size_t index)
{
    world->pg.free[world->pg.free_count++] = (uint16_t)index;
}

void sim_postgres_init(struct sim_world *world)
{
    struct sim_postgres *pg = &world->pg;
    for (size_t i = 0; i < SIM_PG_MESSAGES; i++) {
        pg->free[i] = (uint16_t)(SIM_PG_MESSAGES - 1 - i);
    }
    pg->free_count = SIM_PG_MESSAGES;
    pg->run = 1;
    for (size_t i = 0; i < SIM_PG_ELECTIONS; i++) {
        pg->keys[i] = coord_postgres_key(sim_elections[i], strlen(sim_elections[i]));
    }
    pg->clock.ppm = (int64_t)sim_between(&world->random, 0, 9900) - 4950;
}

void sim_pg_open(struct sim_process *process)
{
    struct sim_pg_link *link = &process->world->pg.links[process->index];
    *link = (struct sim_pg_link){.connection = link->connection + 1, .open = true};
    /* The login takes some rounds. */
    link->last_arrival[UP] =
        process->world->now + 2 * (sim_pg_one_way(process->world) + sim_pg_one_way(process->world));
}

static void forget_inbox(struct sim_world *world, struct sim_pg_link *link)
{
    for (unsigned i = 0; i < link->count; i++) {
        give_message(world, link->inbox[i]);
    }
    link->count = 0;
}

/* The word that it is gone comes behind whatever was sent before. */
void sim_pg_close(struct sim_process *process)
{
    struct sim_world *world = process->world;
    struct sim_pg_link *link = &world->pg.links[process->index];
    if (!link->open) {
        return;
    }
    const struct sim_pg_call call = {.sql = SIM_PG_CLOSE};
    sim_pg_send(process, &call);
    forget_inbox(world, link);
    link->open = false;
}

void sim_pg_send(struct sim_process *process, const struct sim_pg_call *call)
{
    struct sim_world *world = process->world;
    struct sim_pg_link *link = &world->pg.links[process->index];
    const size_t index = take_message(world);
    world->pg_messages[index] = (struct sim_pg_message){.up = true,
                                                        .process = process->index,
                                                        .owner = process->owner,
                                                        .connection = link->connection,
                                                        .call = *call};
    sim_plan(world, arrival(world, link, UP), SIM_EVENT_ARRIVE, index, 0);
}

void sim_pg_tell(struct sim_world *world, const struct sim_pg_session *to,
                 const struct sim_pg_answer *answer)
{
    struct sim_pg_link *link = &world->pg.links[to->process];
    if (link->connection != to->connection || !link->open) {
        return; /* nobody reads it */
    }
    const size_t index = take_message(world);
    world->pg_messages[index] = (struct sim_pg_message){.process = to->process,
                                                        .owner = to->owner,
                                                        .connection = to->connection,
                                                        .answer = *answer};
    sim_plan(world, arrival(world, link, DOWN), SIM_EVENT_REPLY, index, 0);
}

void sim_postgres_arrive(struct sim_world *world, size_t index)
{
    const struct sim_pg_message message = world->pg_messages[index];
    give_message(world, index);
    sim_pg_arrive(world, &message);
}

/* It is in the socket; a stopped process reads it later. */
void sim_postgres_reply(struct sim_world *world, size_t index)
{
    const struct sim_pg_message *message = &world->pg_messages[index];
    struct sim_process *process = &world->processes[message->process];
    struct sim_pg_link *link = &world->pg.links[message->process];
    if (process->elector == NULL || !link->open || link->connection != message->connection) {
        give_message(world, index);
        return;
    }
    COORD_ASSERT(link->count < SIM_PG_QUEUE);
    link->inbox[link->count++] = (uint16_t)index;
    sim_run(process);
}

bool sim_postgres_unread(const struct sim_process *process)
{
    const struct sim_pg_link *link = &process->world->pg.links[process->index];
    return process->wants_hint || (link->open && link->count > 0);
}

const struct sim_pg_answer *sim_pg_receive(struct sim_process *process)
{
    struct sim_world *world = process->world;
    struct sim_pg_link *link = &world->pg.links[process->index];
    if (!link->open || link->count == 0) {
        return NULL;
    }
    const size_t index = link->inbox[0];
    static struct sim_pg_answer answer;
    answer = world->pg_messages[index].answer;
    give_message(world, index);
    link->count--;
    for (unsigned i = 0; i < link->count; i++) {
        link->inbox[i] = link->inbox[i + 1];
    }
    return &answer;
}
