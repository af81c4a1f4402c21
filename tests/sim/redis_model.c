/* SPDX-License-Identifier: MIT
 * tests/sim/redis_model.c - see redis_model.h.
 */
#include "tests/sim/redis_model.h"

#include <string.h>

#include "tests/sim/plant.h"

enum {
    NO_RUN = 0
};

static coord_ms wall_ms(const struct sim_redis *redis, sim_us at)
{
    return sim_clock_ms(&redis->wall, at);
}

static uint32_t run_of(const struct sim_redis *redis)
{
    return redis->may_info ? redis->run : NO_RUN;
}

static bool same_run(const struct sim_redis *redis, uint32_t run)
{
    return sim_planted(SIM_PLANT_RUN_IGNORED) || (run != NO_RUN && run == run_of(redis));
}

/* For how long this run has lasted by the server's uptime; a promoted replica cannot tell. */
static coord_ms age_by_uptime(const struct sim_redis *redis, sim_us at)
{
    const uint64_t now_s = sim_clock_us(&redis->wall, at) / 1000000;
    const bool unknown = redis->was_promoted && !sim_planted(SIM_PLANT_UPTIME_OF_PROMOTED);
    if (!redis->may_info || unknown || now_s <= redis->started_s) {
        return 0;
    }
    const coord_ms shown = (now_s - redis->started_s) * 1000;
    return sim_planted(SIM_PLANT_UPTIME_NOT_ROUNDED) ? shown : shown - 1000;
}

/* ... or by what the client has known of it. */
static coord_ms age_of_run(const struct sim_redis *redis, const struct sim_redis_call *call,
                           sim_us at)
{
    const coord_ms age = age_by_uptime(redis, at);
    const uint32_t run = run_of(redis);
    const bool met = run != NO_RUN && call->run == run;
    return met || sim_planted(SIM_PLANT_AGE_OF_OLD_RUN) ? coord_ms_max(age, call->age) : age;
}

bool sim_redis_holds(struct sim_redis *redis, sim_us at)
{
    struct sim_redis_lease *lease = &redis->data.lease;
    if (lease->present && wall_ms(redis, at) > lease->expires_ms) {
        lease->present = false;
    }
    return lease->present;
}

static coord_ms remaining(const struct sim_redis *redis, sim_us at)
{
    return coord_ms_sub(redis->data.lease.expires_ms, wall_ms(redis, at));
}

static void see_holder(const struct sim_redis *redis, sim_us at, struct sim_redis_answer *answer)
{
    const struct sim_redis_lease *lease = &redis->data.lease;
    if (redis->data.record.fenced) {
        answer->last_fence = redis->data.record.fence;
    }
    if (lease->present) {
        answer->holder = lease->identity;
        answer->holder_fence = lease->fence;
        answer->taking_over = redis->data.record.fenced && redis->data.record.debt > 0;
        answer->remaining = remaining(redis, at);
    }
}

/* A lease that would live longer than it was asked for: the clock stepped back. */
static void cut_long_life(struct sim_redis *redis, sim_us at)
{
    struct sim_redis_lease *lease = &redis->data.lease;
    if (remaining(redis, at) > lease->lease && !sim_planted(SIM_PLANT_LONG_LIFE)) {
        lease->expires_ms = wall_ms(redis, at) + lease->lease;
    }
}

/* For how long it is kept for another: never for longer than was asked for. */
static coord_ms kept_for(struct sim_redis *redis, sim_us at)
{
    struct sim_redis_record *record = &redis->data.record;
    const uint64_t now = sim_clock_us(&redis->wall, at);
    if (!record->fenced || record->successor == SIM_NOBODY || record->reserved_until_us <= now) {
        return 0;
    }
    const coord_ms left = (record->reserved_until_us - now + 999) / 1000;
    if (left > record->reserve && !sim_planted(SIM_PLANT_LONG_RESERVE)) {
        record->reserved_until_us = now + record->reserve * 1000;
        return record->reserve;
    }
    return left;
}

struct worth {
    uint64_t fence;
    coord_ms owed;
};

/* What the record proves decides what a grant is worth; `sound`: it speaks of what it should. */
static struct worth worth_of(const struct sim_redis *redis, const struct sim_redis_call *call,
                             bool sound, sim_us at)
{
    const struct sim_redis_record *record = &redis->data.record;
    const uint64_t clock = sim_clock_us(&redis->wall, at);
    const uint64_t stored = record->fenced ? record->fence : 0;
    const uint64_t seen = call->seen;
    const bool seen_counts = seen > 0 && !sim_planted(SIM_PLANT_SEEN_IGNORED);
    const bool behind = seen > stored;
    uint64_t leap = (uint64_t)1 << 32;
    coord_ms owed = call->lease;
    if (record->fenced && !sound) {
        owed = coord_ms_max(owed, coord_ms_max(record->lease, record->debt));
    } else if (!record->fenced) {
        owed = sound && !seen_counts && age_of_run(redis, call, at) > owed ? 0 : owed;
    } else if (!behind && same_run(redis, record->run)) {
        leap = 0;
        owed = record->debt;
    } else {
        owed = coord_ms_max(owed, coord_ms_max(record->lease, record->debt));
        if (sim_planted(SIM_PLANT_OWN_LEASE)) {
            owed = coord_ms_max(record->lease, record->debt);
        }
        owed = !behind && age_of_run(redis, call, at) > owed ? 0 : owed;
    }
    uint64_t fence = stored + 1 > seen + 1 ? stored + 1 : seen + 1;
    if (sim_planted(SIM_PLANT_LEAP_OUTSIDE)) {
        fence = (fence > clock ? fence : clock) + leap;
    } else {
        fence = fence > clock + leap ? fence : clock + leap;
    }
    return (struct worth){.fence = fence, .owed = owed};
}

static void grant(struct sim_redis *redis, const struct sim_redis_call *call, bool sound, sim_us at,
                  struct sim_redis_answer *answer)
{
    struct sim_redis_data *data = &redis->data;
    struct worth worth = worth_of(redis, call, sound, at);
    if (data->lease.present && sim_planted(SIM_PLANT_SAME_FENCE)) {
        worth.fence = data->lease.fence;
    }
    if (data->lease.present && sim_planted(SIM_PLANT_DEBT_DROPPED)) {
        worth.owed = 0;
    }
    answer->no_record = !data->record.fenced;
    answer->granted_anew = true;
    answer->outcome = COORD_GRANTED;
    answer->owed = worth.owed;
    answer->fence = worth.fence;
    data->lease = (struct sim_redis_lease){.present = true,
                                           .identity = call->identity,
                                           .owner = call->owner,
                                           .attempt = call->attempt,
                                           .fence = worth.fence,
                                           .lease = call->lease,
                                           .expires_ms = wall_ms(redis, at) + call->lease};
    data->record.fenced = true;
    data->record.run = run_of(redis);
    data->record.owner = call->owner;
    data->record.attempt = call->attempt;
    data->record.fence = worth.fence;
    data->record.lease = call->lease;
    data->record.debt = worth.owed;
    data->record.successor = SIM_NOBODY;
}

/* What the record says that the holder still owes; COORD_NEVER when it speaks of another. */
static coord_ms owes(const struct sim_redis *redis)
{
    const struct sim_redis_data *data = &redis->data;
    return data->record.fenced && data->record.fence == data->lease.fence ? data->record.debt
                                                                          : COORD_NEVER;
}

/*
 * A lost reply: the grant stands, unless the server came back with an older state, in which a lease
 * may live again that had lapsed, and another have led since.
 */
static bool given_again(const struct sim_redis *redis, const struct sim_redis_call *call)
{
    const struct sim_redis_lease *lease = &redis->data.lease;
    const bool same = redis->data.record.run == run_of(redis) && call->seen <= lease->fence;
    return lease->attempt == call->attempt && owes(redis) != COORD_NEVER &&
           (same || sim_planted(SIM_PLANT_REGRANT_ANY_RUN));
}

static void acquire_held(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                         struct sim_redis_answer *answer)
{
    struct sim_redis_lease *lease = &redis->data.lease;
    const coord_ms debt = owes(redis);
    if (lease->owner != call->owner) {
        cut_long_life(redis, at);
        answer->outcome = COORD_HELD;
        answer->retry_in = remaining(redis, at);
    } else if (lease->attempt > call->attempt && !sim_planted(SIM_PLANT_UNORDERED)) {
        answer->outcome = COORD_DEAD_ATTEMPT;
    } else if (given_again(redis, call)) {
        answer->granted_anew = redis->data.record.run != run_of(redis);
        answer->outcome = COORD_GRANTED;
        answer->fence = lease->fence;
        answer->owed = sim_planted(SIM_PLANT_REGRANT_CLEAR) ? 0 : debt;
        if (!sim_planted(SIM_PLANT_REGRANT_EXPIRY)) {
            lease->expires_ms = wall_ms(redis, at) + call->lease;
        }
    } else {
        grant(redis, call, debt != COORD_NEVER, at, answer);
    }
}

static void acquire(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                    struct sim_redis_answer *answer)
{
    const struct sim_redis_record *record = &redis->data.record;
    const bool ordered = !sim_planted(SIM_PLANT_UNORDERED);
    if (sim_redis_holds(redis, at)) {
        acquire_held(redis, call, at, answer);
        return;
    }
    const coord_ms kept = kept_for(redis, at);
    if (ordered && record->fenced && record->owner == call->owner &&
        record->attempt >= call->attempt) {
        answer->outcome = COORD_DEAD_ATTEMPT;
    } else if (ordered && record->undone == call->owner &&
               record->undone_attempt >= call->attempt) {
        answer->outcome = COORD_DEAD_ATTEMPT;
    } else if (kept > 0 && record->successor != call->identity) {
        answer->outcome = COORD_RESERVED;
        answer->retry_in = kept;
    } else {
        grant(redis, call, true, at, answer);
    }
}

static bool holds_mine(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at)
{
    const struct sim_redis_lease *lease = &redis->data.lease;
    return sim_redis_holds(redis, at) && lease->owner == call->owner &&
           lease->attempt == call->attempt && lease->fence == call->fence;
}

static void renew(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                  struct sim_redis_answer *answer)
{
    struct sim_redis_data *data = &redis->data;
    if (!holds_mine(redis, call, at)) {
        if (!sim_planted(SIM_PLANT_BLIND_RENEWAL)) {
            answer->outcome = COORD_LOST;
            return;
        }
        data->lease = (struct sim_redis_lease){.present = true,
                                               .identity = call->identity,
                                               .owner = call->owner,
                                               .attempt = call->attempt,
                                               .fence = call->fence,
                                               .lease = call->lease};
    }
    answer->outcome = COORD_RENEWED;
    answer->owed = COORD_NEVER;
    data->lease.expires_ms = wall_ms(redis, at) + call->lease;
    if (data->record.fenced && data->record.fence == call->fence && call->touches) {
        data->record.debt = call->led ? 0 : coord_ms_max(data->record.debt, call->debt);
        if (call->led && call->run != NO_RUN && call->run == run_of(redis)) {
            data->record.run = call->run; /* what was lost with the former one has ended */
        }
    }
    if (data->ask.present && data->ask.fence == call->fence &&
        data->ask.expires_ms > wall_ms(redis, at)) {
        answer->asked = true;
        answer->asked_for = data->ask.to;
    }
}

static void release(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                    struct sim_redis_answer *answer)
{
    struct sim_redis_record *record = &redis->data.record;
    answer->outcome = COORD_DONE;
    if (!holds_mine(redis, call, at) && !sim_planted(SIM_PLANT_BARE_DELETE)) {
        return;
    }
    redis->data.lease.present = false;
    redis->data.ask.present = false;
    answer->published = true;
    if (record->fenced && record->fence == call->fence) {
        record->debt = 0;
        record->successor = call->successor;
        record->reserve = call->reserve;
        record->reserved_until_us = sim_clock_us(&redis->wall, at) + call->reserve * 1000;
    }
}

static void undo(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                 struct sim_redis_answer *answer)
{
    const struct sim_redis_lease *lease = &redis->data.lease;
    struct sim_redis_record *record = &redis->data.record;
    answer->outcome = COORD_DONE;
    if (sim_redis_holds(redis, at) && lease->owner == call->owner &&
        (lease->attempt <= call->attempt || sim_planted(SIM_PLANT_UNDO_BY_OWNER))) {
        redis->data.lease.present = false;
        if (sim_planted(SIM_PLANT_UNDO_RESIGNS)) {
            record->debt = 0;
        }
        answer->published = true;
    }
    if (!record->fenced || record->owner != call->owner || record->attempt < call->attempt) {
        record->undone = call->owner;
        record->undone_attempt = call->attempt;
    }
}

static void observe(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                    struct sim_redis_answer *answer)
{
    if (sim_redis_holds(redis, at)) {
        answer->outcome = COORD_HELD;
        answer->retry_in = remaining(redis, at);
        return;
    }
    const struct sim_redis_record before = redis->data.record;
    const coord_ms kept = kept_for(redis, at);
    redis->data.record = before; /* a look writes nothing */
    answer->for_us = kept > 0 && redis->data.record.successor == call->identity;
    answer->outcome = kept > 0 && !answer->for_us ? COORD_RESERVED : COORD_FREE;
    if (answer->outcome == COORD_RESERVED) {
        answer->retry_in = kept;
    }
}

static void ask(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                struct sim_redis_answer *answer)
{
    if (!sim_redis_holds(redis, at) || redis->data.lease.fence != call->fence) {
        answer->outcome = COORD_NOBODY;
        return;
    }
    answer->outcome = COORD_DONE;
    redis->data.ask = (struct sim_redis_ask){.present = true,
                                             .fence = call->fence,
                                             .to = call->successor,
                                             .expires_ms = wall_ms(redis, at) + call->reserve};
}

static void init_name(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                      struct sim_redis_answer *answer)
{
    if (sim_redis_holds(redis, at)) {
        answer->outcome = COORD_HELD;
        answer->retry_in = remaining(redis, at);
        return;
    }
    answer->outcome = COORD_DONE;
    redis->data.record = (struct sim_redis_record){.fenced = true,
                                                   .run = run_of(redis),
                                                   .fence = worth_of(redis, call, true, at).fence,
                                                   .successor = SIM_NOBODY};
}

void sim_redis_execute(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                       struct sim_redis_answer *answer)
{
    *answer = (struct sim_redis_answer){.server_us = sim_clock_us(&redis->wall, at),
                                        .retry_in = COORD_NEVER,
                                        .asked_for = SIM_NOBODY,
                                        .holder = SIM_NOBODY,
                                        .remaining = COORD_NEVER};
    switch (call->verb) {
    case COORD_VERB_ACQUIRE:
        acquire(redis, call, at, answer);
        break;
    case COORD_VERB_RENEW:
        renew(redis, call, at, answer);
        break;
    case COORD_VERB_RELEASE:
        release(redis, call, at, answer);
        break;
    case COORD_VERB_UNDO:
        undo(redis, call, at, answer);
        break;
    case COORD_VERB_OBSERVE:
        observe(redis, call, at, answer);
        break;
    case COORD_VERB_ASK:
        ask(redis, call, at, answer);
        break;
    case COORD_VERB_INIT:
        init_name(redis, call, at, answer);
        break;
    case COORD_VERB_NONE:
        break;
    }
    see_holder(redis, at, answer);
}

/* ---------------------------------------------------------------- a server's life */

static void drop_expired(struct sim_redis *redis, sim_us at)
{
    if (!sim_redis_holds(redis, at)) {
        redis->data.lease.present = false;
    }
}

void sim_redis_start(struct sim_redis *redis, const struct sim_redis_data *data, sim_us at)
{
    if (data != NULL) {
        redis->data = *data;
    } else {
        memset(&redis->data, 0, sizeof redis->data);
    }
    redis->run++;
    redis->was_promoted = false;
    redis->started_s = sim_clock_us(&redis->wall, at) / 1000000;
    drop_expired(redis, at);
}

void sim_redis_promote(struct sim_redis *redis, const struct sim_redis_data *data, sim_us at)
{
    redis->data = *data;
    redis->run++;
    redis->was_promoted = true;
    drop_expired(redis, at);
}
