/* SPDX-License-Identifier: MIT
 * tests/sim/agents/process.c - a process with an agent in it, and what its host does.
 */
#include <stdarg.h>
#include <string.h>

#include "tests/sim/agents/world.h"

const char *fleet_host_name(unsigned host)
{
    static const char *const names[FLEET_HOSTS] = {"a", "b", "c", "d", "e", "f"};
    return names[host];
}

const char *fleet_work_name(unsigned work)
{
    static const char *const names[FLEET_WORKS] = {"orders", "ledger", "mail", "audit", "search"};
    return names[work];
}

void fleet_say(const struct fleet_world *world, const struct fleet_process *process,
               const char *format, ...)
{
    va_list list;
    if (world->trace == NULL) {
        return;
    }
    fprintf(world->trace, "%7.3f ", (double)world->now / 1000);
    if (process != NULL) {
        fprintf(world->trace, "%s#%u ", fleet_host_name(process->host), process->number);
    }
    va_start(list, format);
    vfprintf(world->trace, format, list);
    va_end(list);
    fputc('\n', world->trace);
}

/* ---- its bus ---- */

static enum coord_err publish(void *ctx, const char *topic, const void *bytes, size_t count,
                              coord_ms now)
{
    enum coord_message_type type;
    (void)now;
    COORD_ASSERT(coord_topic_type(NULL, topic, strlen(topic), &type));
    return fleet_publish(ctx, type, bytes, count);
}

static bool next(void *ctx, struct coord_broker_message *out)
{
    static const char *const topics[COORD_MESSAGE_TYPES] = {
        COORD_TOPIC_PREFIX ".heartbeat", COORD_TOPIC_PREFIX ".shutdown",
        COORD_TOPIC_PREFIX ".work_assignment", COORD_TOPIC_PREFIX ".finished",
        COORD_TOPIC_PREFIX ".orphans"};
    struct fleet_process *process = ctx;
    if (process->inbox_count == 0) {
        return false;
    }
    const struct fleet_message *message = process->inbox[process->inbox_first];
    process->inbox_first = (process->inbox_first + 1) % FLEET_INBOX;
    process->inbox_count--;
    fleet_hear(process, message);
    out->topic = topics[message->type];
    out->bytes = message->bytes;
    out->count = message->count;
    return true;
}

static bool connected(void *ctx)
{
    const struct fleet_process *process = ctx;
    return fleet_connected(process->world, process->host);
}

/* ---- its life ---- */

void fleet_serve(struct fleet_process *process, unsigned serves)
{
    const char *names[FLEET_WORKS];
    size_t count = 0;
    for (unsigned i = 0; i < FLEET_WORKS; i++) {
        if ((serves >> i & 1) != 0) {
            names[count++] = fleet_work_name(i);
        }
    }
    process->serves = serves;
    process->holds = serves;
    if (process->agent != NULL) {
        COORD_ASSERT(coord_agent_serve(process->agent, names, count, (int64_t)count, 0.5) ==
                     COORD_OK);
    }
}

static const char *id_of(const struct fleet_process *process)
{
    return fleet_host_name(fleet_called(process->world, process->host));
}

static void make_elector(struct fleet_process *process)
{
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    config.name = "fleet";
    config.name_bytes = 5;
    config.identity = id_of(process);
    config.identity_bytes = strlen(id_of(process));
    memcpy(config.owner, process->incarnation, sizeof config.owner);
    config.backend_ctx = process;
    config.explicit_ack = process->explicit_ack;
    config.ttl = process->world->ttl;
    config.seed = process->seed;
    COORD_ASSERT(coord_elector_new(fleet_store_ops(), &config, fleet_local(process),
                                   &process->elector, NULL) == COORD_OK);
}

static void make_agent(struct fleet_process *process)
{
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    if (process->kind == FLEET_MEMBER) {
        make_elector(process);
    }
    config.role = process->kind == FLEET_OBSERVER ? COORD_AGENT_OBSERVER : COORD_AGENT_MEMBER;
    config.coordinator.instance_id = id_of(process);
    memcpy(config.coordinator.incarnation, process->incarnation, COORD_OWNER_BYTES);
    config.coordinator.timeout = process->world->timeout;
    config.coordinator.tick = FLEET_TICK;
    config.coordinator.seed = process->seed;
    config.elector = process->elector;
    config.bus = (struct coord_agent_bus){
        .publish = publish, .next = next, .connected = connected, .ctx = process};
    COORD_ASSERT(coord_agent_new(&config, fleet_local(process), &process->agent, NULL) == COORD_OK);
}

/* A peer of the seed library that comes back is the same peer, as it has no incarnation. */
static struct fleet_process *place_for(struct fleet_world *w, unsigned host, enum fleet_kind kind)
{
    const unsigned former = w->host[host].process;
    if (kind == FLEET_SEED && former < FLEET_PROCESSES) {
        return &w->process[former];
    }
    if (w->processes == FLEET_PROCESSES) {
        return NULL;
    }
    struct fleet_process *process = &w->process[w->processes];
    memset(process, 0, sizeof *process);
    process->number = w->processes++;
    return process;
}

void fleet_start(struct fleet_world *world, unsigned host, enum fleet_kind kind, unsigned serves)
{
    struct fleet_world *w = world;
    struct fleet_process *process = place_for(w, host, kind);
    if (process == NULL) {
        return;
    }
    w->host[host].process = process->number;
    w->host[host].back_at = COORD_NEVER;
    process->world = w;
    process->host = host;
    process->kind = kind;
    process->runs = true;
    process->started = w->now;
    process->ended = COORD_NEVER;
    memset(process->incarnation, (int)process->number + 1, COORD_OWNER_BYTES);
    process->wake_at = w->now;
    process->promised = COORD_NEVER;
    process->drained_at = COORD_NEVER;
    process->ack_at = COORD_NEVER;
    process->deadline = COORD_NEVER;
    process->leaving = false;
    process->silenced = false;
    process->notice_due = false;
    process->stopped_until = 0;
    process->echo = COORD_NEVER;
    process->anew = w->now;
    process->next_beat = w->now;
    process->seed = sim_next(&w->random);
    process->explicit_ack = sim_chance(&w->random, 1, 2);
    process->acks_for = sim_below(&w->random, w->ttl / 3);
    if (kind != FLEET_SEED) {
        make_agent(process);
    }
    fleet_say(w, process, "starts");
    fleet_serve(process, serves);
}

void fleet_kill(struct fleet_process *process)
{
    fleet_say(process->world, process, "ends");
    coord_agent_free(process->agent);
    coord_elector_free(process->elector, false);
    process->agent = NULL;
    process->elector = NULL;
    process->runs = false;
    process->ended = process->world->now;
    process->holds = 0;
    process->inbox_count = 0;
    process->wake_at = COORD_NEVER;
}

void fleet_stop(struct fleet_process *process, coord_ms until)
{
    if (process->pauses < FLEET_PAUSES) {
        fleet_say(process->world, process, "is stopped");
        process->pause[process->pauses++] = (struct fleet_pause){process->world->now, until};
        process->stopped_until = until;
    }
}

bool fleet_leads(const struct fleet_process *process)
{
    return process->elector != NULL &&
           coord_elector_leading_at(process->elector, fleet_local(process));
}

/* ---- leaving ---- */

void fleet_leave(struct fleet_process *process, enum coord_intent intent, coord_ms within,
                 coord_ms drains_for)
{
    process->drains_for = drains_for;
    if (process->kind == FLEET_SEED) {
        process->leaving = true;
        process->notice_due = true;
        process->noticed = true;
        process->intent = intent;
        process->deadline = process->world->now + within;
        process->drained_at = process->deadline;
    } else {
        coord_agent_leave(process->agent, intent, coord_ms_add(fleet_local(process), within),
                          fleet_local(process));
    }
    process->wake_at = process->world->now;
}

void fleet_stay(struct fleet_process *process)
{
    if (process->agent != NULL) {
        COORD_IGNORE(coord_agent_stay(process->agent, fleet_local(process)) != COORD_OK,
                     "too late is fine");
        process->wake_at = process->world->now;
    }
}

static void end_work(struct fleet_process *process)
{
    process->drained_at = COORD_NEVER;
    process->holds = 0;
    coord_agent_drained(process->agent, fleet_local(process));
    process->silenced = process->silenced || coord_agent_phase(process->agent) == COORD_AGENT_LEFT;
}

static void hear_agent(struct fleet_process *process, const struct coord_agent_event *event)
{
    struct fleet_world *w = process->world;
    switch (event->kind) {
    case COORD_AGENT_EVENT_EDGE:
        fleet_say(w, process, "%s, fence %u",
                  event->edge.kind == COORD_EDGE_STARTED    ? "leads"
                  : event->edge.kind == COORD_EDGE_STOPPING ? "stops leading"
                                                            : "leads no more",
                  (unsigned)event->edge.fence);
        if (event->edge.kind == COORD_EDGE_STOPPING && process->explicit_ack) {
            process->ack_at = w->now + process->acks_for;
            process->ack_term = event->edge.term;
        }
        break;
    case COORD_AGENT_EVENT_FLEET:
        fleet_check_event(process, event->fleet);
        break;
    case COORD_AGENT_EVENT_LEAVING:
        process->leaving = true;
        process->deadline = fleet_true(process, event->deadline);
        fleet_say(w, process, "leaves until %.3f", (double)process->deadline / 1000);
        break;
    case COORD_AGENT_EVENT_DRAIN:
        process->drained_at = coord_ms_add(w->now, process->drains_for);
        fleet_say(w, process, "drains");
        break;
    case COORD_AGENT_EVENT_STAYING:
        process->leaving = false;
        process->deadline = COORD_NEVER;
        process->drained_at = COORD_NEVER;
        process->holds = process->serves;
        fleet_say(w, process, "stays");
        break;
    case COORD_AGENT_EVENT_LEFT:
        process->silenced = event->drained;
        fleet_say(w, process, "has left%s", event->drained ? ", drained" : ", overrun");
        break;
    }
}

/* A member takes up work that is safe to take, as far as it can know. */
static void take_work(struct fleet_process *process)
{
    struct fleet_world *w = process->world;
    struct coord_coordinator *coordinator = coord_agent_coordinator(process->agent);
    struct coord_orphan orphan;
    uint32_t at = 0;
    unsigned takes = 0;
    if ((w->faults & FLEET_TAKERS) == 0 || process->kind != FLEET_MEMBER || process->leaving ||
        coord_coordinator_counts(coordinator).orphans == 0 || !sim_chance(&w->random, 1, 4)) {
        return;
    }
    while (coord_coordinator_next_orphan(coordinator, &at, &orphan)) {
        for (unsigned i = 0; i < FLEET_WORKS && orphan.fence != 0; i++) {
            const char *work = fleet_work_name(i);
            if (orphan.safe_after <= fleet_local(process) &&
                orphan.subscription_bytes == strlen(work) &&
                memcmp(orphan.subscription, work, orphan.subscription_bytes) == 0) {
                fleet_check_take(process, &orphan);
                takes |= 1U << i;
            }
        }
    }
    if ((takes & ~process->serves) != 0) {
        fleet_say(w, process, "takes %x", takes);
        w->counts.taken++;
        w->taken_at = w->now;
        fleet_serve(process, process->serves | takes);
    }
}

/* ---- a step ---- */

static void act(struct fleet_process *process)
{
    const coord_ms now = process->world->now;
    if (process->ack_at <= now) {
        process->ack_at = COORD_NEVER;
        coord_lease_acknowledge(coord_elector_lease(process->elector), process->ack_term,
                                fleet_local(process));
    }
    if (process->drained_at <= now) {
        end_work(process);
    }
}

static void sleep_on(struct fleet_process *process)
{
    struct fleet_world *w = process->world;
    const coord_ms deadline = fleet_true(process, coord_agent_deadline(process->agent));
    process->promised = coord_ms_max(deadline, w->now);
    coord_ms at =
        coord_ms_min(process->promised, coord_ms_min(process->ack_at, process->drained_at));
    if (at != COORD_NEVER && at > w->now && (w->faults & FLEET_LATE) != 0) {
        at += sim_below(&w->random, FLEET_TICK);
    }
    process->wake_at = at;
}

void fleet_wake(struct fleet_process *process)
{
    struct fleet_world *w = process->world;
    struct coord_agent_event event;
    w->counts.steps++;
    if (process->kind == FLEET_SEED) {
        fleet_seed_wake(process);
        return;
    }
    fleet_woke(process);
    act(process);
    unsigned events = 0;
    while (coord_agent_step(process->agent, fleet_local(process), fleet_wall(process), &event)) {
        hear_agent(process, &event);
        COORD_ASSERT(++events < 10000);
    }
    if (coord_agent_phase(process->agent) == COORD_AGENT_FINISHING) {
        process->silenced = true;
    }
    fleet_check_step(process);
    if (coord_agent_phase(process->agent) == COORD_AGENT_LEFT &&
        (process->silenced || (!w->calm && sim_chance(&w->random, 1, 2)))) {
        fleet_kill(process);
        return;
    }
    take_work(process);
    sleep_on(process);
}
