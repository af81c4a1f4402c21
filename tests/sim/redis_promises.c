/* SPDX-License-Identifier: MIT
 * tests/sim/redis_promises.c - for how long E1 is not promised: data was lost, the clock stepped.
 */
#include "tests/sim/world.h"

static void promise_nothing(struct sim_world *world, sim_us until)
{
    if (world->check.void_until < until) {
        world->check.void_until = until;
    }
}

static sim_us window(const struct sim_world *world)
{
    return world->profile.lease_max * 1000 * 103 / 100;
}

/* Data was lost, and one who never heard of the name cannot know: that is not promised. */
void sim_redis_note_grant(struct sim_world *world, const struct sim_call *call)
{
    const struct sim_redis_answer *got = &call->answer;
    const sim_us until = world->net.lost_at + window(world);
    world->counts.grants++;
    world->counts.owed += got->owed > 0;
    if (got->owed == 0 && got->no_record && call->innocent && world->net.lost_at > 0 &&
        world->now < until) {
        promise_nothing(world, until);
    }
}

/*
 * The server's clock went forward since the last answer. That shows, unless the answers before or
 * after it took so long that they hide it.
 */
void sim_redis_note_contact(struct sim_process *process, const struct sim_call *call)
{
    struct sim_world *world = process->world;
    const struct sim_net *net = &world->net;
    const sim_us until = net->jumped_at + window(world);
    if (process->contact < net->jumped_at && net->jumped_at <= call->executed) {
        const sim_us slack = world->now - call->executed + process->contact -
                             process->contact_sent +
                             (world->now - process->contact_sent) * 2 / 100 + 4000;
        const bool shows = process->contact > 0 && net->jump_us > slack &&
                           process->contact + window(world) > net->jumped_at;
        process->saw_jump = shows ? net->jumped_at : 0;
    }
    process->contact = call->executed;
    process->contact_sent = call->sent;
    if (call->answer.outcome == COORD_GRANTED && call->answer.owed == 0 && net->jumped_at > 0 &&
        world->now < until && process->saw_jump != net->jumped_at) {
        promise_nothing(world, until);
    }
}
