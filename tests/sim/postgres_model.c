/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_model.c - what the statements of electors/postgres_sql.c read and write.
 */
#include "tests/sim/postgres.h"

static const uint64_t leap = (uint64_t)1 << 32;

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t sim_pg_wall(const struct sim_world *world)
{
    return sim_clock_us(&world->net.redis.wall, world->now);
}

static struct sim_pg_row *row_of(struct sim_world *world, const struct sim_pg_session *session)
{
    return &world->pg.table.rows[session->call.election];
}

/* Who has the lock, for its session or for its transaction; NULL: nobody but `session`. */
static const struct sim_pg_session *holder(const struct sim_world *world, uint8_t election,
                                           const struct sim_pg_session *session)
{
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        const struct sim_pg_session *other = &world->pg.sessions[i];
        const bool tried = other->tried && other->call.election == election;
        if (other != session && other->alive && (other->locks[election] > 0 || tried)) {
            return other;
        }
    }
    return NULL;
}

bool sim_pg_is_locked_for(const struct sim_world *world, const struct sim_pg_session *session)
{
    return holder(world, session->call.election, session) != NULL;
}

/* Of the present run, and written by who should have. */
bool sim_pg_is_of_run(const struct sim_pg_row *row, uint32_t run)
{
    return row->run == run && (!row->strange || sim_planted(SIM_PLANT_PG_STRANGE_ROW));
}

/* What the former term leaves to be waited for. */
static coord_ms debt_of(const struct sim_world *world, const struct sim_pg_session *session,
                        const struct sim_pg_row *former)
{
    const struct sim_pg_call *call = &session->call;
    const uint64_t now = sim_pg_wall(world);
    const coord_ms lease = call->lease;
    if (call->fast || sim_planted(SIM_PLANT_PG_NO_WAIT)) {
        return 0;
    }
    if (!former->present) {
        const bool whole = !world->pg.emptied && call->seen == 0;
        return whole || sim_planted(SIM_PLANT_PG_TRUNCATED_CLEAR) ? 0 : lease;
    }
    if (sim_planted(SIM_PLANT_PG_LEASE_IS_PROOF) && now > former->since_us + former->lease * 1000) {
        return 0;
    }
    const coord_ms former_debt = sim_planted(SIM_PLANT_PG_DEBT_SHRINKS) ? 0 : former->debt;
    const coord_ms all = coord_ms_max(lease, coord_ms_max(former->lease, former_debt));
    if (!sim_pg_is_of_run(former, call->run)) {
        return all;
    }
    return former->resigned ? 0 : former->owner == call->owner ? former_debt : all;
}

/* For half a lease; one that looks longer was made before the clock stepped back. */
static coord_ms reserved_for(const struct sim_world *world, const struct sim_pg_row *row)
{
    const uint64_t now = sim_pg_wall(world);
    const bool too_long = row->reserved_until_us > now + row->lease / 2 * 1000;
    if (row->reserved_until_us <= now || (too_long && !sim_planted(SIM_PLANT_PG_LONG_RESERVE))) {
        return 0;
    }
    return (row->reserved_until_us - now + 999) / 1000;
}

static bool may_take(const struct sim_world *world, const struct sim_pg_call *call,
                     const struct sim_pg_row *row)
{
    const bool newest = call->seen <= row->fence || !sim_pg_is_of_run(row, call->run);
    return newest && (row->successor == SIM_PG_NOBODY || row->successor == call->identity ||
                      reserved_for(world, row) == 0);
}

/* The upsert: it has waited for the row, and sees it as it is now. @return false: not given. */
bool sim_pg_take_row(struct sim_world *world, struct sim_pg_session *session)
{
    const struct sim_pg_row *row = row_of(world, session);
    const struct sim_pg_call *call = &session->call;
    const uint64_t now = sim_pg_wall(world);
    if (row->present && !may_take(world, call, row)) {
        return false;
    }
    const struct sim_pg_row *former = row;
    if (sim_planted(SIM_PLANT_PG_FORMER_BESIDE)) {
        former = &session->snapshot.rows[call->election];
    }
    session->pending = (struct sim_pg_row){.present = true,
                                           .identity = call->identity,
                                           .owner = call->owner,
                                           .pid = session->pid,
                                           .run = call->run,
                                           .lease = call->lease,
                                           .debt = debt_of(world, session, former),
                                           .since_us = now,
                                           .successor = SIM_PG_NOBODY,
                                           .ask_for = SIM_PG_NOBODY};
    const bool leaps = !row->present || !sim_pg_is_of_run(row, call->run);
    session->pending.fence =
        most(row->present ? row->fence + 1 : 0, most(call->seen + 1, now + (leaps ? leap : 0)));
    session->writes = true;
    return true;
}

/* @return the row is this term's. */
static bool is_of(const struct sim_pg_row *row, const struct sim_pg_call *call)
{
    return row->present && row->owner == call->owner && row->fence == call->fence && !row->resigned;
}

static bool is_asked(const struct sim_world *world, const struct sim_pg_row *row)
{
    return row->ask_fence == row->fence && row->ask_until_us > sim_pg_wall(world);
}

void sim_pg_mark_row(struct sim_world *world, struct sim_pg_session *session)
{
    const struct sim_pg_call *call = &session->call;
    const struct sim_pg_row *row = row_of(world, session);
    session->answer.done = is_of(row, call);
    if (!session->answer.done) {
        return;
    }
    session->pending = *row;
    session->pending.resigned = true;
    session->pending.strange = false;
    session->pending.debt = 0;
    session->pending.successor = call->successor;
    session->pending.reserved_until_us =
        call->successor != SIM_PG_NOBODY ? sim_pg_wall(world) + call->reserve * 1000 : 0;
    session->writes = true;
}

void sim_pg_strike_row(struct sim_world *world, struct sim_pg_session *session)
{
    struct sim_pg_answer *answer = &session->answer;
    const struct sim_pg_row *row = row_of(world, session);
    answer->done = is_of(row, &session->call) && row->pid == session->pid;
    if (answer->done) {
        session->pending = *row;
        session->pending.debt = 0;
        session->pending.strange = false;
        session->writes = true;
        answer->asked[session->call.election] = is_asked(world, row);
        answer->table.rows[session->call.election] = session->pending;
    }
}

void sim_pg_ask_row(struct sim_world *world, struct sim_pg_session *session)
{
    const struct sim_pg_call *call = &session->call;
    const struct sim_pg_row *row = row_of(world, session);
    session->answer.done = row->present && row->fence == call->fence && !row->resigned;
    if (session->answer.done) {
        session->pending = *row;
        session->pending.strange = true; /* it may write its own columns only */
        session->pending.ask_fence = call->fence;
        session->pending.ask_for = call->successor;
        session->pending.ask_until_us = sim_pg_wall(world) + call->reserve * 1000;
        session->writes = true;
    }
}

/* Who was not granted, who renews and who only looks read the rows of the snapshot. */
void sim_pg_read_rows(const struct sim_world *world, struct sim_pg_session *session)
{
    struct sim_pg_answer *answer = &session->answer;
    const uint8_t election = session->call.election;
    answer->table = session->snapshot;
    for (size_t i = 0; i < SIM_PG_ELECTIONS; i++) {
        answer->asked[i] = is_asked(world, &session->snapshot.rows[i]);
    }
    answer->reserved_ms = reserved_for(world, &session->snapshot.rows[election]);
    if (answer->reserved_ms == 0) {
        answer->table.rows[election].successor = SIM_PG_NOBODY;
    }
    const struct sim_pg_session *other = holder(world, election, NULL);
    answer->lock_pid = other != NULL ? other->pid : 0;
}

/* A row of this session's own term in its snapshot lets it pass the gate. */
bool sim_pg_may_queue(const struct sim_pg_session *session)
{
    const struct sim_pg_row *row = &session->snapshot.rows[session->call.election];
    return row->present && row->owner == session->call.owner && row->pid == session->pid &&
           !row->resigned;
}
