/* SPDX-License-Identifier: MIT
 * tests/sim/redis_net.c - a backend over a simulated network to one simulated Redis server.
 *
 * A connection keeps the order of its bytes, may stand still, and goes on delivering what was
 * written before it was closed, beside the one that was opened in its place.
 */
#include "tests/sim/world.h"

#include <inttypes.h>
#include <string.h>

struct redis_state {
    struct sim_process *process;
    bool outstanding;
    uint64_t id;
    bool settled;    /* the record says that this term led */
    bool touches;    /* the outstanding renewal writes it */
    uint32_t run;    /* that the record names */
    uint32_t adopts; /* the outstanding renewal puts it into the record; 0: none */
    int reply;       /* index of the call whose reply was read, -1: none */
};

static const char *const identities[] = {"p0", "p1", "p2", "p3", "p4"};

static const char *identity_of(uint8_t index)
{
    return index < SIM_PROCESSES ? identities[index] : NULL;
}

static uint8_t index_of(const char *identity)
{
    return identity == NULL ? SIM_NOBODY : (uint8_t)(identity[1] - '0');
}

/* ---------------------------------------------------------------- the network */

static bool in_trouble(struct sim_world *world, enum sim_fault fault)
{
    return sim_has(world, fault) && sim_chance(&world->random, world->profile.trouble, 1000);
}

/* At some time from now on, but in the quiet no more. */
static sim_us some_time(struct sim_world *world, coord_ms most)
{
    const sim_us at = world->now + sim_below(&world->random, most * 1000);
    return at < world->quiet_from ? at : world->quiet_from;
}

static sim_us one_way(struct sim_world *world)
{
    const sim_us latency = world->profile.latency;
    sim_us takes = latency + sim_below(&world->random, latency);
    if (in_trouble(world, SIM_FAULT_SLOW)) {
        takes += sim_below(&world->random, world->profile.lease_min * 1000 / 4);
    }
    return takes;
}

static void open_link(struct sim_world *world, struct sim_link *link)
{
    link->connection++;
    link->open = true;
    link->stalled_until = 0;
    /* There and back, before any request. */
    link->greeted_at = world->now + 2 * one_way(world);
    link->last_arrival = link->greeted_at;
}

/* Which run it speaks with is told as it connects, and its age counts from there. */
static void meet_run(struct sim_process *process)
{
    struct sim_world *world = process->world;
    struct sim_link *link = &world->net.links[process->index];
    if (!link->open || link->greeted_at == 0 || world->now < link->greeted_at) {
        return;
    }
    const uint32_t run = world->net.redis.may_info ? world->net.redis.run : 0;
    link->greeted_at = 0;
    if (run != link->run) {
        link->run = run;
        link->run_since = sim_local(process);
    }
}

static coord_ms age_of_run(const struct sim_process *process)
{
    const struct sim_link *link = &process->world->net.links[process->index];
    const coord_ms age = link->run != 0 ? sim_local(process) - link->run_since : 0;
    return age - age / COORD_RATE_ERROR_DIVISOR;
}

static sim_us arrival(struct sim_world *world, struct sim_link *link)
{
    if (in_trouble(world, SIM_FAULT_STALL)) {
        link->stalled_until = some_time(world, 3 * world->profile.lease_max);
    }
    sim_us at = world->now + one_way(world);
    at = at > link->stalled_until ? at : link->stalled_until;
    at = at > link->last_arrival ? at : link->last_arrival + 1;
    link->last_arrival = at;
    return at;
}

static size_t take_call(struct sim_net *net)
{
    COORD_ASSERT(net->free_count > 0);
    const size_t index = net->free[--net->free_count];
    net->calls[index].used = true;
    return index;
}

static void give_call(struct sim_net *net, size_t index)
{
    COORD_ASSERT(net->calls[index].used);
    net->calls[index].used = false;
    net->free[net->free_count++] = (uint16_t)index;
}

static void answer(struct sim_world *world, size_t index, enum coord_outcome outcome, sim_us at)
{
    world->net.calls[index].answer.outcome = outcome;
    sim_plan(world, at, SIM_EVENT_REPLY, index, 0);
}

void sim_net_init(struct sim_world *world)
{
    struct sim_net *net = &world->net;
    for (size_t i = 0; i < SIM_CALLS; i++) {
        net->free[i] = (uint16_t)(SIM_CALLS - 1 - i);
    }
    net->free_count = SIM_CALLS;
    net->up = true;
    net->epoch = 1;
    net->redis.run = 1;
    net->redis.may_info = !sim_has(world, SIM_FAULT_NO_INFO);
    net->redis.wall.base = 1700000000000000u + sim_below(&world->random, 1000000000);
    net->redis.wall.ppm = (int64_t)sim_between(&world->random, 0, 9900) - 4950;
    /* Most servers have run for long. */
    net->redis.started_s = net->redis.wall.base / 1000000;
    if (!sim_chance(&world->random, 1, 4)) {
        net->redis.started_s -= 1000000;
    }
    if (sim_chance(&world->random, 1, 4)) { /* the operator has said that nobody leads */
        const struct sim_redis_call call = {.verb = COORD_VERB_INIT, .successor = SIM_NOBODY};
        struct sim_redis_answer answer;
        sim_redis_execute(&net->redis, &call, 0, &answer);
        net->snapshot = net->redis.data;
    }
}

/* ---------------------------------------------------------------- requests */

/* A plain renewal touches the lease alone; see electors/redis.c. */
static void add_run(struct redis_state *state, struct sim_redis_call *call)
{
    const struct sim_link *link = &state->process->world->net.links[state->process->index];
    const coord_ms age = age_of_run(state->process);
    if (call->verb == COORD_VERB_ACQUIRE) {
        call->run = link->run;
        call->age = age;
    } else if (call->verb == COORD_VERB_RENEW) {
        const bool adopts = call->led && link->run != state->run && age > call->lease;
        state->adopts = adopts ? link->run : 0;
        state->touches = call->led && (!state->settled || adopts);
        call->touches = !call->led || state->touches;
        call->run = state->adopts;
    }
}

static void note_answer(struct redis_state *state, enum coord_outcome outcome)
{
    const struct sim_link *link = &state->process->world->net.links[state->process->index];
    if (outcome == COORD_GRANTED) {
        state->settled = false;
        state->run = link->run;
    } else if (outcome == COORD_RENEWED && state->touches) {
        state->settled = true;
        state->run = state->adopts != 0 ? link->run : state->run;
    }
}

static void request(struct coord_elector *elector, const struct coord_request *asked, coord_ms now)
{
    struct redis_state *state = coord_backend_state(elector);
    struct sim_process *process = state->process;
    struct sim_world *world = process->world;
    struct sim_net *net = &world->net;
    struct sim_link *link = &net->links[process->index];
    (void)now;
    COORD_ASSERT(!state->outstanding);
    meet_run(process);
    if (!link->open) {
        open_link(world, link);
    }
    const size_t index = take_call(net);
    struct sim_call *call = &net->calls[index];
    call->process = process->index;
    call->owner = process->owner;
    call->connection = link->connection;
    call->server = net->epoch;
    call->id = asked->id;
    call->sent = world->now;
    call->innocent = process->machine->seen == 0;
    call->answer = (struct sim_redis_answer){.asked_for = SIM_NOBODY, .holder = SIM_NOBODY};
    call->request = (struct sim_redis_call){.verb = asked->verb,
                                            .identity = process->index,
                                            .successor = index_of(asked->successor),
                                            .led = asked->led,
                                            .owner = process->owner,
                                            .attempt = asked->attempt,
                                            .fence = asked->fence,
                                            .seen = asked->seen,
                                            .lease = asked->lease,
                                            .debt = asked->debt,
                                            .reserve = asked->reserve};
    add_run(state, &call->request);
    state->outstanding = true;
    state->id = asked->id;
    SIM_TRACE(world, "p%u #%" PRIu64 " %s, attempt %" PRIu64 " fence %" PRIu64 " led %d",
              process->index, asked->id, sim_verb_name(asked->verb), asked->attempt, asked->fence,
              asked->led);
    if (!net->up) {
        answer(world, index, COORD_FAILED, world->now + 2 * one_way(world));
    } else if (in_trouble(world, SIM_FAULT_LOSS)) {
        SIM_TRACE(world, "p%u #%" PRIu64 " gets lost", process->index, asked->id);
        give_call(net, index);
    } else {
        sim_plan(world, arrival(world, link), SIM_EVENT_ARRIVE, index, 0);
    }
}

/* Forget it, and the connection: what was written to it may still arrive. */
static void abandon(struct coord_elector *elector, coord_ms now)
{
    struct redis_state *state = coord_backend_state(elector);
    (void)now;
    state->outstanding = false;
    state->reply = -1;
    state->process->world->net.links[state->process->index].open = false;
    SIM_TRACE(state->process->world, "p%u gives up #%" PRIu64, state->process->index, state->id);
}

static void tell_hints(struct sim_world *world, uint8_t by)
{
    for (size_t i = 0; i < world->profile.processes; i++) {
        if (i != by && !in_trouble(world, SIM_FAULT_LOSS)) {
            sim_plan(world, world->now + one_way(world), SIM_EVENT_HINT, i, 0);
        }
    }
}

static void execute(struct sim_world *world, struct sim_call *call)
{
    struct sim_redis_answer *got = &call->answer;
    call->executed = world->now;
    sim_redis_execute(&world->net.redis, &call->request, world->now, got);
    SIM_TRACE(world,
              "   server: p%u #%" PRIu64 " %s, attempt %" PRIu64 ": %s fence %" PRIu64
              " owed %" PRId64 "; holder %d for %" PRId64,
              call->process, call->id, sim_verb_name(call->request.verb), call->request.attempt,
              sim_outcome_name(got->outcome), got->fence, (int64_t)got->owed,
              got->holder == SIM_NOBODY ? -1 : got->holder, (int64_t)got->remaining);
    if (got->outcome == COORD_GRANTED && got->granted_anew) {
        sim_redis_note_grant(world, call);
        sim_check_grant(&world->processes[call->process], got->fence);
        if (sim_has(world, SIM_FAULT_PROMOTE) && sim_chance(&world->random, 1, 4)) {
            world->net.snapshot = world->net.redis.data; /* the last that the replica has heard */
        }
    }
    if (got->outcome == COORD_HELD && world->net.redis.data.lease.owner == call->owner &&
        call->request.verb == COORD_VERB_ACQUIRE) {
        sim_broke(world, SIM_E5, "p%u: its own lease looked foreign", call->process);
    }
    if (got->published) {
        tell_hints(world, call->process);
        /* A reservation that has just been made should not outlive itself by the server's clock. */
        if (call->request.successor != SIM_NOBODY && sim_has(world, SIM_FAULT_JUMP) &&
            sim_chance(&world->random, 1, 4)) {
            sim_clock_steps(world, -7200000000);
        }
    }
}

void sim_net_arrive(struct sim_world *world, size_t index)
{
    struct sim_net *net = &world->net;
    struct sim_call *call = &net->calls[index];
    if (!net->up || call->server != net->epoch) {
        give_call(net, index); /* the server that it was sent to is gone */
        return;
    }
    execute(world, call);
    if (in_trouble(world, SIM_FAULT_TWICE)) {
        const size_t again = take_call(net);
        net->calls[again] = *call;
        net->calls[again].id = 0; /* nobody waits for that reply */
        sim_plan(world, some_time(world, 2 * world->profile.lease_max), SIM_EVENT_ARRIVE, again, 0);
    }
    if (call->id == 0 || in_trouble(world, SIM_FAULT_LOSS)) {
        SIM_TRACE(world, "   reply #%" PRIu64 " to p%u gets lost", call->id, call->process);
        give_call(net, index);
        return;
    }
    sim_plan(world, world->now + one_way(world), SIM_EVENT_REPLY, index, 0);
}

/* The reply is in the socket; a stopped process reads it later. */
void sim_net_reply(struct sim_world *world, size_t index)
{
    struct sim_net *net = &world->net;
    const struct sim_call *call = &net->calls[index];
    struct sim_process *process = &world->processes[call->process];
    if (process->elector == NULL || process->owner != call->owner) {
        give_call(net, index);
        return;
    }
    struct redis_state *state = coord_backend_state(process->elector);
    if (!state->outstanding || state->id != call->id ||
        net->links[process->index].connection != call->connection) {
        give_call(net, index);
        return;
    }
    state->reply = (int)index;
    sim_run(process);
}

/* All connections die; who waits for an answer is told that there will be none. */
void sim_net_crash(struct sim_world *world)
{
    struct sim_net *net = &world->net;
    net->epoch++;
    for (size_t i = 0; i < world->profile.processes; i++) {
        struct sim_process *process = &world->processes[i];
        net->links[i].open = false;
        if (process->elector == NULL || sim_chance(&world->random, 1, 4)) {
            continue; /* its host went down with it: silence */
        }
        const struct redis_state *state = coord_backend_state(process->elector);
        if (state->outstanding && state->reply < 0) {
            const size_t index = take_call(net);
            net->calls[index] =
                (struct sim_call){.used = true,
                                  .process = process->index,
                                  .owner = process->owner,
                                  .connection = net->links[i].connection,
                                  .id = state->id,
                                  .answer = {.asked_for = SIM_NOBODY, .holder = SIM_NOBODY}};
            answer(world, index, COORD_UNKNOWN, world->now + one_way(world));
        }
    }
}

/* ---------------------------------------------------------------- replies */

static void fill_leader(const struct sim_redis_answer *got, struct coord_observation *leader)
{
    /* Its metadata is left out: it is of no consequence, and large. */
    leader->leading = got->holder != SIM_NOBODY && !got->taking_over;
    leader->taking_over = got->holder != SIM_NOBODY && got->taking_over;
    leader->identity[0] = '\0';
    if (got->holder != SIM_NOBODY) {
        memcpy(leader->identity, identities[got->holder], 3);
    }
    leader->fence = got->holder_fence;
    leader->last_fence = got->last_fence;
    leader->remaining = got->remaining;
}

static void deliver(struct coord_elector *elector, const struct sim_call *call, coord_ms now)
{
    static struct coord_observation leader; /* borrowed by the machine for the call */
    const struct sim_redis_answer *got = &call->answer;
    struct coord_reply reply;
    fill_leader(got, &leader);
    reply.id = call->id;
    reply.outcome = got->outcome;
    reply.fence = got->fence;
    reply.owed = got->owed;
    reply.retry_in = got->retry_in;
    reply.server_us = got->server_us;
    reply.asked = got->asked;
    reply.for_us = got->for_us;
    reply.asked_for = identity_of(got->asked_for);
    reply.leader = got->server_us != 0 ? &leader : NULL;
    reply.error.code = COORD_OK;
    reply.error.text[0] = '\0';
    if (got->outcome == COORD_FAILED || got->outcome == COORD_UNKNOWN) {
        reply.error.code = COORD_E_UNREACHABLE;
    }
    coord_backend_reply(elector, &reply, now);
}

static void process_redis(struct coord_elector *elector, coord_ms now)
{
    struct redis_state *state = coord_backend_state(elector);
    struct sim_process *process = state->process;
    struct sim_world *world = process->world;
    if (state->reply >= 0) {
        const size_t index = (size_t)state->reply;
        const struct sim_call call = world->net.calls[index];
        state->reply = -1;
        state->outstanding = false;
        give_call(&world->net, index);
        if (call.answer.server_us != 0) {
            sim_redis_note_contact(process, &call);
        } else {
            world->net.links[process->index].open = false;
        }
        SIM_TRACE(world, "p%u #%" PRIu64 ": %s", process->index, call.id,
                  sim_outcome_name(call.answer.outcome));
        note_answer(state, call.answer.outcome);
        deliver(elector, &call, now);
    }
    if (process->wants_hint) {
        process->wants_hint = false;
        coord_backend_hint(elector, now);
    }
}

static coord_ms deadline(struct coord_elector *elector)
{
    const struct redis_state *state = coord_backend_state(elector);
    return state->reply >= 0 ? 0 : COORD_NEVER;
}

static size_t descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    (void)elector;
    (void)out;
    return 0;
}

static enum coord_err init(struct coord_elector *elector, const struct coord_elector_config *config,
                           struct coord_error *error)
{
    struct redis_state *state = coord_backend_state(elector);
    (void)error;
    state->process = config->backend_ctx;
    state->reply = -1;
    state->process->world->net.links[state->process->index] = (struct sim_link){
        .connection = state->process->world->net.links[state->process->index].connection};
    return COORD_OK;
}

static void fini(struct coord_elector *elector, bool forked)
{
    struct redis_state *state = coord_backend_state(elector);
    (void)forked;
    if (state->reply >= 0) {
        give_call(&state->process->world->net, (size_t)state->reply);
    }
    state->process->world->net.links[state->process->index].open = false;
}

const struct coord_backend_ops sim_redis_ops = {
    .size = sizeof(struct coord_backend_ops),
    .abi = COORD_BACKEND_ABI,
    .name = "redis",
    .state_bytes = sizeof(struct redis_state),
    .default_ttl = 15000,
    .hint_jitter = 4,
    .init = init,
    .fini = fini,
    .request = request,
    .abandon = abandon,
    .process = process_redis,
    .descriptors = descriptors,
    .deadline = deadline,
};
