/* SPDX-License-Identifier: MIT
 * tests/sim/agents/schedule.c - what a seed makes of it: a fleet, bad weather, and the calm behind.
 */
#include <string.h>

#include "tests/sim/agents/world.h"

enum {
    TIMES = 4,       /* to choose T from */
    STORM_LEAST = 3, /* T of bad weather */
    STORM_MOST = 9,
    WRONG_BY = 600 * 1000 /* ms that a wall clock is wrong at most */
};

static uint64_t below(struct fleet_world *w, uint64_t bound)
{
    return sim_below(&w->random, bound);
}

/* ---- time ---- */

static bool may_run(const struct fleet_world *w, const struct fleet_process *process)
{
    return process->runs && process->stopped_until <= w->now;
}

static coord_ms next_event(const struct fleet_world *w)
{
    coord_ms at = fleet_next_letter(w);
    for (unsigned i = 0; i < w->hosts; i++) {
        const struct fleet_host *host = &w->host[i];
        at = coord_ms_min(at, coord_ms_min(host->turns_at, host->back_at));
        if (host->process < FLEET_PROCESSES && w->process[host->process].runs) {
            const struct fleet_process *process = &w->process[host->process];
            at = coord_ms_min(at, coord_ms_max(process->wake_at, process->stopped_until));
        }
    }
    return at;
}

static void start(struct fleet_world *w, unsigned host)
{
    const unsigned former = w->host[host].process;
    const bool anew = former < FLEET_PROCESSES;
    const enum fleet_kind kind = anew ? w->process[former].kind : w->host[host].kind;
    const unsigned works = 1U << below(w, FLEET_WORKS) | 1U << below(w, FLEET_WORKS);
    const bool same = anew && sim_chance(&w->random, 1, 2);
    const unsigned serves = kind == FLEET_OBSERVER ? 0 : same ? w->process[former].serves : works;
    /* What a peer of the seed library does not list any more when it comes back is nobody's loss
     * that could be seen. */
    fleet_start(w, host, kind, anew && kind == FLEET_SEED ? w->process[former].serves : serves);
}

static void run_until(struct fleet_world *w, coord_ms end)
{
    unsigned rounds = 0;
    while (w->broken == FLEET_KEPT) {
        const coord_ms at = next_event(w);
        if (at > end) {
            break;
        }
        rounds = at > w->now ? 0 : rounds + 1;
        if (rounds == 1000) {
            fleet_break(w, FLEET_TIME, "somebody wakes for ever and does nothing");
        }
        w->now = coord_ms_max(at, w->now);
        fleet_turn(w);
        fleet_deliver(w);
        for (unsigned i = 0; i < w->hosts && w->broken == FLEET_KEPT; i++) {
            if (w->host[i].back_at <= w->now) {
                start(w, i);
            }
            const unsigned number = w->host[i].process;
            if (number < FLEET_PROCESSES && may_run(w, &w->process[number]) &&
                w->process[number].wake_at <= w->now) {
                fleet_wake(&w->process[number]);
            }
        }
    }
    w->now = coord_ms_max(w->now, end);
}

/* ---- the fleet ---- */

static void make_fleet(struct fleet_world *w)
{
    static const coord_ms timeouts[TIMES] = {15000, 15000, 4000, 60000};
    w->timeout = timeouts[below(w, TIMES)];
    w->interval = w->timeout / 4;
    w->ttl = w->timeout / (1 + below(w, 3));
    w->hosts = 3 + (unsigned)below(w, FLEET_HOSTS - 2);
    w->store.holder = FLEET_PROCESSES;
    for (unsigned i = 0; i < w->hosts; i++) {
        struct fleet_host *host = &w->host[i];
        host->base = 1000000 + below(w, 1000000);
        host->wall_off = (w->faults & FLEET_CLOCK) != 0
                             ? ((int64_t)below(w, 2 * WRONG_BY) - WRONG_BY) * 1000
                             : 0;
        host->up = true;
        host->turns_at = COORD_NEVER;
        host->back_at = COORD_NEVER;
        host->process = FLEET_PROCESSES;
        host->kind = FLEET_MEMBER;
    }
    if ((w->faults & FLEET_SEEDS) != 0) {
        w->host[w->hosts - 1].kind = FLEET_SEED;
    }
    /* An observer has nothing but its connection to know by. */
    w->untold = (w->faults & FLEET_OBSERVERS) == 0 && sim_chance(&w->random, 1, 2);
    if ((w->faults & FLEET_OBSERVERS) != 0) {
        w->host[w->hosts > 3 ? w->hosts - 2 : 1].kind = FLEET_OBSERVER;
    }
    w->twin = FLEET_HOSTS;
    for (unsigned i = 1; i < w->hosts && (w->faults & FLEET_TWINS) != 0; i++) {
        w->twin = w->host[i].kind == FLEET_MEMBER ? i : w->twin;
    }
    for (unsigned i = 0; i < w->hosts; i++) {
        const bool late = (w->faults & FLEET_JOIN) != 0 && sim_chance(&w->random, 1, 3);
        w->host[i].back_at = late ? below(w, 5 * w->timeout) : below(w, w->interval);
    }
}

/* ---- the weather ---- */

static struct fleet_process *somebody(struct fleet_world *w)
{
    const unsigned number = w->host[below(w, w->hosts)].process;
    return number < FLEET_PROCESSES && may_run(w, &w->process[number]) ? &w->process[number] : NULL;
}

/* Where nobody is told, interruptions that follow each other at once cannot be told from lost
 * heartbeats. */
static void turn_off(struct fleet_world *w, bool *off)
{
    if (*off || !w->untold || w->now >= w->back_at + w->timeout) {
        *off = !*off;
        w->back_at = w->now;
    }
}

static void strike_bus(struct fleet_world *w, uint32_t fault)
{
    struct fleet_host *host = &w->host[below(w, w->hosts)];
    switch (fault) {
    case FLEET_LOSS:
        w->loss = (unsigned)below(w, 5) * 100;
        break;
    case FLEET_DELAY:
        w->spread = below(w, 3);
        w->spread *= below(w, w->timeout * 3 / 10);
        w->spread_most = coord_ms_max(w->spread, w->spread_most);
        break;
    case FLEET_REPLAY:
        fleet_replay(w);
        break;
    case FLEET_PARTITION:
        host->deaf_to = host->deaf_to != 0 ? 0
                                           : (unsigned)below(w, 1U << w->hosts) &
                                                 ~(1U << (unsigned)(host - w->host));
        break;
    case FLEET_CUT:
        turn_off(w, &host->cut);
        break;
    default:
        turn_off(w, &w->outage);
        break;
    }
    fleet_say(w, NULL, "loss %u, delay %u, the bus is %s, %s is %s, deaf to %x", w->loss,
              (unsigned)w->spread, w->outage ? "down" : "up",
              fleet_host_name((unsigned)(host - w->host)), host->cut ? "cut off" : "not cut off",
              host->deaf_to);
}

static void strike_notice(struct fleet_world *w, struct fleet_process *process)
{
    const coord_ms lengths[] = {0, w->timeout / 3, w->timeout, 2 * w->timeout};
    const coord_ms drains[] = {0, w->timeout / 3, w->timeout, 2 * w->timeout, COORD_NEVER};
    if (process->kind == FLEET_OBSERVER) {
        return;
    }
    if (sim_chance(&w->random, 1, 3)) {
        fleet_stay(process);
    } else {
        /* One draw a statement: compilers differ in which argument comes first. */
        const coord_ms drain = drains[below(w, 5)];
        const coord_ms length = lengths[below(w, 4)];
        fleet_leave(process, (enum coord_intent)below(w, 4), length, drain);
    }
}

static void strike_process(struct fleet_world *w, uint32_t fault)
{
    struct fleet_process *process = somebody(w);
    if (process == NULL) {
        return;
    }
    switch (fault) {
    case FLEET_PAUSE:
        fleet_stop(process, w->now + below(w, 2 * w->timeout));
        break;
    case FLEET_KILL:
        fleet_kill(process);
        w->host[process->host].back_at = w->now + below(w, 4 * w->timeout);
        break;
    case FLEET_NOTICE:
        strike_notice(w, process);
        break;
    case FLEET_ORDER:
        if (process->kind == FLEET_MEMBER) {
            process->drains_for = below(w, 2 * w->timeout);
            fleet_publish_order(w, process->host, below(w, 2 * w->timeout));
        }
        break;
    case FLEET_CLOCK:
        w->host[process->host].wall_off += ((int64_t)below(w, 2 * WRONG_BY) - WRONG_BY) * 1000;
        break;
    case FLEET_STORE:
        w->host[process->host].store_cut = !w->host[process->host].store_cut;
        process->wake_at = w->now;
        break;
    default:
        if (process->elector != NULL && fleet_leads(process)) {
            COORD_IGNORE(coord_lease_step_down(coord_elector_lease(process->elector), NULL,
                                               fleet_local(process)) != COORD_OK,
                         "it may be stopping already");
            process->wake_at = w->now;
        }
        break;
    }
}

static void strike(struct fleet_world *w)
{
    const uint32_t bus =
        FLEET_LOSS | FLEET_DELAY | FLEET_REPLAY | FLEET_PARTITION | FLEET_CUT | FLEET_OUTAGE;
    const uint32_t process = FLEET_PAUSE | FLEET_KILL | FLEET_NOTICE | FLEET_ORDER | FLEET_CLOCK |
                             FLEET_STORE | FLEET_STEP_DOWN;
    const uint32_t fault = UINT32_C(1) << below(w, 14);
    if ((w->faults & fault & bus) != 0) {
        strike_bus(w, fault);
    } else if ((w->faults & fault & process) != 0) {
        strike_process(w, fault);
    }
}

/* Who has ended without a plan comes back some time later, or not. */
static void bring_back(struct fleet_world *w)
{
    for (unsigned i = 0; i < w->hosts; i++) {
        struct fleet_host *host = &w->host[i];
        if (host->process < FLEET_PROCESSES && !w->process[host->process].runs &&
            host->back_at == COORD_NEVER && sim_chance(&w->random, 1, 8)) {
            host->back_at = w->now + below(w, 2 * w->timeout);
        }
    }
}

/* ---- the calm ---- */

/* Nobody dies from here on: who is on its way out stays, ends now, or goes on working. */
static void settle(struct fleet_world *w, struct fleet_process *process)
{
    process->stopped_until = coord_ms_min(process->stopped_until, w->now);
    for (unsigned i = 0; i < process->pauses; i++) {
        process->pause[i].to = coord_ms_min(process->pause[i].to, w->now);
    }
    process->wake_at = w->now;
    if (process->kind == FLEET_SEED && process->leaving) {
        fleet_kill(process);
    } else if (process->leaving && sim_chance(&w->random, 1, 2)) {
        fleet_stay(process);
    } else if (process->leaving && sim_chance(&w->random, 1, 2)) {
        fleet_kill(process);
    }
}

static void clear_up(struct fleet_world *w)
{
    w->calm = true;
    w->loss = 0;
    w->spread = 0;
    w->outage = false;
    w->faults &= sim_chance(&w->random, 1, 2) ? ~(uint32_t)FLEET_TAKERS : UINT32_MAX;
    for (unsigned i = 0; i < w->hosts; i++) {
        struct fleet_host *host = &w->host[i];
        host->cut = false;
        host->deaf_to = 0;
        host->store_cut = false;
        if (host->process < FLEET_PROCESSES && w->process[host->process].runs) {
            settle(w, &w->process[host->process]);
        }
        const bool gone = host->process < FLEET_PROCESSES && !w->process[host->process].runs;
        host->back_at = gone && sim_chance(&w->random, 1, 2) ? w->now : COORD_NEVER;
    }
    fleet_say(w, NULL, "the faults cease");
}

static const struct fleet_process *leader_of(const struct fleet_world *w)
{
    for (unsigned i = 0; i < w->hosts; i++) {
        const unsigned number = w->host[i].process;
        if (number < FLEET_PROCESSES && fleet_leads(&w->process[number])) {
            return &w->process[number];
        }
    }
    return NULL;
}

static bool somebody_stands(const struct fleet_world *w)
{
    for (unsigned i = 0; i < w->hosts; i++) {
        const unsigned number = w->host[i].process;
        if (number < FLEET_PROCESSES && w->process[number].runs &&
            w->process[number].kind == FLEET_MEMBER && !w->process[number].leaving) {
            return true;
        }
    }
    return false;
}

/* A leader within the bound of the election, and 3 T later all that is known is in its table. */
static void calm_down(struct fleet_world *w)
{
    const coord_ms election = w->ttl * 5 / 2 + 1000;
    const struct fleet_process *leader = NULL;
    run_until(w, w->now + election);
    for (unsigned turns = 0; turns < 5 && w->broken == FLEET_KEPT; turns++) {
        const struct fleet_process *now = leader_of(w);
        if (now == NULL) {
            if (somebody_stands(w)) {
                fleet_break(w, FLEET_LEADER, "nobody leads");
            }
            return;
        }
        if (now == leader) {
            fleet_check_calm(w, leader);
            return;
        }
        leader = now;
        run_until(w, w->now + 3 * w->timeout);
    }
}

/* ---- a schedule ---- */

static void choose_faults(struct fleet_world *w)
{
    w->faults = (uint32_t)(sim_next(&w->random) & sim_next(&w->random) & (FLEET_FAULTS - 1));
    w->faults |= (uint32_t)(sim_next(&w->random) & sim_next(&w->random) & (FLEET_FAULTS - 1));
    w->faults |= fleet_plants[fleet_plant_now].faults;
    w->faults &= ~fleet_plants[fleet_plant_now].without;
}

static void clean(struct fleet_world *w)
{
    for (unsigned i = 0; i < w->processes; i++) {
        coord_agent_free(w->process[i].agent);
        coord_elector_free(w->process[i].elector, false);
        w->process[i].agent = NULL;
        w->process[i].elector = NULL;
    }
}

static void begin(struct fleet_world *w, uint64_t seed, FILE *trace)
{
    const unsigned rows = w->processes;
    memset(w->ear, 0, rows * sizeof w->ear[0]);
    memset(w->told, 0, rows * sizeof w->told[0]);
    memset(w->author, 0, rows * sizeof w->author[0]);
    memset(w->host, 0, sizeof w->host);
    memset(w->resolved_at, 0, sizeof w->resolved_at);
    w->taken_at = 0;
    memset(&w->store, 0, sizeof w->store);
    w->seed = seed;
    w->random.state = seed;
    w->trace = trace;
    w->now = 0;
    w->processes = 0;
    w->loss = 0;
    w->spread = 0;
    w->spread_most = 0;
    w->outage = false;
    w->back_at = 0;
    w->calm = false;
    w->letters = 0;
    w->order = 0;
    w->past_count = 0;
    w->arena_used = 0;
    w->broken = FLEET_KEPT;
}

void fleet_schedule(struct fleet_world *world, uint64_t seed, FILE *trace)
{
    struct fleet_world *w = world;
    begin(w, seed, trace);
    choose_faults(w);
    make_fleet(w);
    fleet_say(w, NULL, "seed %llu: faults %x, T %u, lease %u", (unsigned long long)seed, w->faults,
              (unsigned)w->timeout, (unsigned)w->ttl);
    run_until(w, w->timeout * 2);
    const coord_ms storm = (coord_ms)sim_between(&w->random, STORM_LEAST, STORM_MOST);
    for (const coord_ms end = w->now + storm * w->timeout; w->now < end;) {
        strike(w);
        bring_back(w);
        run_until(w, w->now + 1 + below(w, w->timeout / 4));
    }
    clear_up(w);
    calm_down(w);
    clean(w);
    w->counts.schedules++;
    w->counts.broken[w->broken]++;
}

uint64_t fleet_notice(struct fleet_world *world, enum fleet_plant plant, uint64_t first,
                      uint64_t most)
{
    fleet_plant_now = plant;
    uint64_t needed = 0;
    for (uint64_t i = 0; i < most && needed == 0; i++) {
        fleet_schedule(world, first + i, NULL);
        needed = world->broken != FLEET_KEPT ? i + 1 : 0;
    }
    fleet_plant_now = FLEET_PLANT_NONE;
    return needed;
}
