/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_server.c - the sessions of the simulated PostgreSQL: how a statement goes
 * from its snapshot to its commit, what it waits for, and how sessions end.
 */
#include "tests/sim/postgres.h"

#include <inttypes.h>

static const char *const sql_names[] = {"",        "login",   "opening", "settings", "probe",
                                        "acquire", "gate",    "renew",   "strike",   "release",
                                        "unlock",  "observe", "ask",     "blockers", "close"};

static size_t slot_of(const struct sim_world *world, const struct sim_pg_session *session)
{
    return (size_t)(session - world->pg.sessions);
}

static void plan(struct sim_world *world, struct sim_pg_session *session, sim_us at)
{
    sim_plan(world, at, SIM_EVENT_SESSION, slot_of(world, session), ++session->wake);
}

/* The server's process may stand still for a while between any two steps. */
static sim_us pause(struct sim_world *world, enum sim_pg_step before)
{
    const unsigned share = before == SIM_PG_TRY ? 4 : 1;
    if (sim_has(world, SIM_FAULT_SLOW) && sim_chance(&world->random, share, 12)) {
        return sim_below(&world->random, world->profile.lease_min * 1000 / 8);
    }
    return 1 + sim_below(&world->random, 30);
}

static sim_us idle_until(const struct sim_world *world, const struct sim_pg_session *session)
{
    const struct sim_clock *clock = &world->pg.clock;
    if (session->lease == 0) {
        return SIM_NEVER;
    }
    return sim_clock_when(clock, sim_clock_ms(clock, session->began) + session->lease + 1,
                          session->began);
}

/* One event at a time looks after the idle time of a session, not one for each statement. */
static void arm(struct sim_world *world, struct sim_pg_session *session)
{
    const sim_us at = idle_until(world, session);
    if (at != SIM_NEVER && (session->timer_at == 0 || at < session->timer_at)) {
        session->timer_at = at;
        sim_plan(world, at, SIM_EVENT_SESSION, slot_of(world, session), 0);
    }
}

static void begin_next(struct sim_world *world, struct sim_pg_session *session);

/* ---------------------------------------------------------------- waiting */

bool sim_pg_gate_is_wanted(const struct sim_world *world)
{
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        const struct sim_pg_session *session = &world->pg.sessions[i];
        if (session->alive && session->step == SIM_PG_QUEUED && session->waits_since > 0 &&
            session->call.election == 0) {
            return true;
        }
    }
    return false;
}

/* Something that they may wait for was let go. */
void sim_pg_wake(struct sim_world *world)
{
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        struct sim_pg_session *session = &world->pg.sessions[i];
        if (session->alive && session->waits_since > 0) {
            plan(world, session, world->now);
        }
    }
}

static bool row_is_written(const struct sim_world *world, const struct sim_pg_session *by)
{
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        const struct sim_pg_session *session = &world->pg.sessions[i];
        if (session != by && session->alive && session->writes &&
            session->call.election == by->call.election) {
            return true;
        }
    }
    return false;
}

static void finish(struct sim_world *world, struct sim_pg_session *session, enum sim_pg_kind kind)
{
    const bool queued = session->step == SIM_PG_QUEUED;
    session->answer.kind = kind;
    SIM_TRACE(world, "   server: p%u %s %s%s", session->process, sql_names[session->call.sql],
              session->call.election > 0 ? sim_elections[session->call.election] : "",
              kind == SIM_PG_ERROR ? " fails" : "");
    sim_pg_tell(world, session, &session->answer);
    session->step = SIM_PG_IDLE;
    session->began = world->now;
    session->waits_since = 0;
    session->writes = false;
    session->tried = false;
    sim_pg_wake(world);
    if (queued) {
        sim_pg_writers_go_on(world);
    }
    begin_next(world, session);
}

/* lock_timeout: half an attempt. */
static void wait(struct sim_world *world, struct sim_pg_session *session)
{
    session->waits_since = session->waits_since > 0 ? session->waits_since : world->now;
    const sim_us until = session->waits_since + session->lock_timeout * 1000;
    if (world->now >= until) {
        finish(world, session, SIM_PG_ERROR);
    } else {
        plan(world, session, until);
    }
}

/* ---------------------------------------------------------------- statements */

static void go_to(struct sim_world *world, struct sim_pg_session *session, enum sim_pg_step step)
{
    session->step = step;
    session->waits_since = 0;
    plan(world, session, world->now + pause(world, step));
}

/* What sets a session up reads and writes no row. */
static bool set_up(struct sim_world *world, struct sim_pg_session *session)
{
    const struct sim_pg_call *call = &session->call;
    struct sim_pg_answer *answer = &session->answer;
    if (call->sql == SIM_PG_SETTINGS) {
        session->lease = call->lease;
        session->statement_timeout = call->statement_timeout;
        session->lock_timeout = call->lock_timeout;
    } else if (call->sql == SIM_PG_PROBE) {
        answer->pid = session->pid;
        answer->run = world->pg.run;
        answer->lease = session->lease;
        answer->statement_timeout = session->statement_timeout;
        answer->lock_timeout = session->lock_timeout;
    } else if (call->sql != SIM_PG_OPENING) {
        return false;
    }
    finish(world, session, SIM_PG_ROWS);
    return true;
}

static bool gate_comes_first(const struct sim_pg_session *session)
{
    return sim_planted(SIM_PLANT_PG_GATE_FIRST) && session->call.sql == SIM_PG_ACQUIRE;
}

static void begin(struct sim_world *world, struct sim_pg_session *session)
{
    const enum sim_pg_sql sql = session->call.sql;
    if (set_up(world, session)) {
        return;
    }
    if (world->now < world->pg.table_locked_until && sql != SIM_PG_UNLOCK &&
        sql != SIM_PG_BLOCKERS) {
        wait(world, session);
        return;
    }
    session->snapshot = world->pg.table;
    go_to(world, session,
          sql == SIM_PG_GATE || gate_comes_first(session) ? SIM_PG_QUEUED
          : sql == SIM_PG_ACQUIRE                         ? SIM_PG_TRY
                                                          : SIM_PG_ROW);
}

static void try_lock(struct sim_world *world, struct sim_pg_session *session)
{
    if (sim_pg_is_locked_for(world, session)) {
        sim_pg_read_rows(world, session);
        finish(world, session, SIM_PG_ROWS);
        return;
    }
    session->tried = true;
    session->answer.won = true;
    go_to(world, session, SIM_PG_ROW);
}

static void unlock(struct sim_pg_session *session, size_t election)
{
    if (session->locks[election] > 0) {
        session->locks[election]--;
    }
}

static void unlock_all(struct sim_world *world, struct sim_pg_session *session)
{
    for (size_t i = 0; i < SIM_PG_ELECTIONS; i++) {
        if ((session->call.elections >> i & 1) != 0) {
            struct sim_pg_row *row = &world->pg.table.rows[i];
            row->resigned |= sim_planted(SIM_PLANT_PG_RESIGNED_IN_WAIT) && row->debt > 0 &&
                             row->pid == session->pid;
            unlock(session, i);
        }
    }
}

static bool holds(const struct sim_pg_session *session)
{
    bool any = false;
    for (size_t i = 0; i < SIM_PG_ELECTIONS; i++) {
        any = any || (session->alive && session->locks[i] > 0);
    }
    return any;
}

static void write_row(struct sim_world *world, struct sim_pg_session *session)
{
    if (row_is_written(world, session)) {
        wait(world, session);
        return;
    }
    if (session->call.sql == SIM_PG_ACQUIRE) {
        if (!sim_pg_take_row(world, session)) {
            sim_pg_read_rows(world, session);
            finish(world, session, SIM_PG_ROWS);
            return;
        }
    } else if (session->call.sql == SIM_PG_RELEASE) {
        sim_pg_mark_row(world, session);
        if (session->call.unlocks) {
            /* Before the commit: whoever gets the lock waits for the row. */
            unlock(session, session->call.election);
        }
    } else if (session->call.sql == SIM_PG_STRIKE) {
        sim_pg_strike_row(world, session);
    } else {
        sim_pg_ask_row(world, session);
    }
    go_to(world, session, SIM_PG_COMMIT);
}

/* A holder that has just renewed loses its session while another is about to try the lock. */
static void end_at_the_worst(struct sim_world *world, struct sim_pg_session *session)
{
    bool rival = false;
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        rival = rival || (world->pg.sessions[i].alive && world->pg.sessions[i].step == SIM_PG_TRY);
    }
    if (holds(session) && sim_has(world, SIM_FAULT_TERMINATE) &&
        sim_chance(&world->random, 1, rival ? 2 : 30)) {
        sim_pg_terminate(world, slot_of(world, session));
    }
}

static void at_row(struct sim_world *world, struct sim_pg_session *session)
{
    const enum sim_pg_sql sql = session->call.sql;
    if (sql == SIM_PG_RENEW || sql == SIM_PG_OBSERVE) {
        sim_pg_read_rows(world, session);
        session->answer.held = session->answer.lock_pid != 0;
        finish(world, session, SIM_PG_ROWS);
        end_at_the_worst(world, session);
    } else if (sql == SIM_PG_UNLOCK) {
        unlock_all(world, session);
        finish(world, session, SIM_PG_ROWS);
    } else if (sql == SIM_PG_BLOCKERS) {
        session->answer.done = session->call.election == 0 && sim_pg_work_is_open(world);
        finish(world, session, SIM_PG_ROWS);
    } else {
        write_row(world, session);
    }
}

static void note_grant(struct sim_world *world, const struct sim_pg_session *session)
{
    world->counts.grants++;
    world->counts.owed += session->pending.debt > 0;
    SIM_TRACE(world, "   server: p%u gets fence %" PRIu64 " of %s, owes %" PRIu64, session->process,
              session->pending.fence, sim_elections[session->call.election], session->pending.debt);
    if (world->processes[session->process].owner == session->call.owner) {
        sim_check_grant(&world->processes[session->process], session->pending.fence);
    }
}

static void tell_hints(struct sim_world *world, uint8_t by)
{
    for (size_t i = 0; i < world->profile.processes; i++) {
        if (i != by && !sim_pg_in_trouble(world, SIM_FAULT_LOSS)) {
            sim_plan(world, world->now + sim_pg_one_way(world), SIM_EVENT_HINT, i, 0);
        }
    }
}

static void commit(struct sim_world *world, struct sim_pg_session *session)
{
    const enum sim_pg_sql sql = session->call.sql;
    if (sql == SIM_PG_ACQUIRE) {
        session->locks[session->call.election]++;
        if (sim_has(world, SIM_FAULT_COMMIT) && sim_chance(&world->random, 1, 4)) {
            SIM_TRACE(world, "   server: p%u cannot commit, and keeps the lock", session->process);
            finish(world, session, SIM_PG_ERROR);
            return;
        }
        session->answer.held = true;
        session->answer.fence = session->pending.fence;
        session->answer.debt = session->pending.debt;
        note_grant(world, session);
    }
    if (session->writes) {
        const uint8_t election = session->call.election;
        struct sim_pg_row *row = &world->pg.table.rows[election];
        if (row->present && row->resigned) {
            world->pg.older.rows[election] = *row;
        }
        *row = session->pending;
        if (sql == SIM_PG_RELEASE) {
            tell_hints(world, session->process);
        } else {
            world->pg.durable.rows[election] = *row;
        }
    }
    finish(world, session, SIM_PG_ROWS);
}

/* Behind guarded work that is open, and before any that comes later. */
static void pass_gate(struct sim_world *world, struct sim_pg_session *session)
{
    const bool open = session->call.election == 0 && sim_pg_work_is_open(world);
    if (session->call.sql == SIM_PG_GATE && !sim_pg_may_queue(session)) {
        finish(world, session, SIM_PG_ROWS);
    } else if (open &&
               (session->call.sql == SIM_PG_ACQUIRE || !sim_planted(SIM_PLANT_PG_GATE_FIRST))) {
        wait(world, session);
    } else if (session->call.sql == SIM_PG_ACQUIRE) {
        go_to(world, session, SIM_PG_TRY);
    } else {
        session->answer.done = true;
        finish(world, session, SIM_PG_ROWS);
    }
}

static void take_step(struct sim_world *world, struct sim_pg_session *session)
{
    if (session->statement_timeout > 0 && session->step != SIM_PG_COMMIT &&
        world->now > session->began + session->statement_timeout * 1000) {
        finish(world, session, SIM_PG_ERROR); /* statement_timeout */
        return;
    }
    switch (session->step) {
    case SIM_PG_BEGUN:
        begin(world, session);
        break;
    case SIM_PG_TRY:
        try_lock(world, session);
        break;
    case SIM_PG_ROW:
        at_row(world, session);
        break;
    case SIM_PG_COMMIT:
        commit(world, session);
        break;
    case SIM_PG_QUEUED:
        pass_gate(world, session);
        break;
    case SIM_PG_IDLE:
        break;
    }
}

/* ---------------------------------------------------------------- sessions */

/* All that it held falls free; what it had not committed never was. */
void sim_pg_end_session(struct sim_world *world, size_t slot, bool tells)
{
    struct sim_pg_session *session = &world->pg.sessions[slot];
    const struct sim_pg_answer gone = {.kind = SIM_PG_GONE};
    SIM_TRACE(world, "   server: the session of p%u ends, %s locks", session->process,
              holds(session) ? "with" : "without");
    session->alive = false;
    session->wake++;
    if (tells) {
        sim_pg_tell(world, session, &gone);
    }
    sim_pg_wake(world);
    sim_pg_writers_go_on(world);
}

static void begin_next(struct sim_world *world, struct sim_pg_session *session)
{
    if (session->queued == 0) {
        arm(world, session);
        return;
    }
    session->call = session->queue[0];
    session->queued--;
    for (unsigned i = 0; i < session->queued; i++) {
        session->queue[i] = session->queue[i + 1];
    }
    if (session->call.sql == SIM_PG_CLOSE) {
        sim_pg_end_session(world, slot_of(world, session), false);
        return;
    }
    session->answer = (struct sim_pg_answer){.call = session->call};
    session->began = world->now;
    session->step = SIM_PG_BEGUN;
    plan(world, session, world->now);
}

/* idle_session_timeout */
static void look_idle(struct sim_world *world, struct sim_pg_session *session)
{
    session->timer_at = world->now >= session->timer_at ? 0 : session->timer_at;
    if (!session->alive || session->step != SIM_PG_IDLE) {
        return;
    }
    if (world->now >= idle_until(world, session)) {
        sim_pg_end_session(world, slot_of(world, session), true);
    } else {
        arm(world, session);
    }
}

void sim_postgres_session(struct sim_world *world, size_t slot, uint32_t wake)
{
    struct sim_pg_session *session = &world->pg.sessions[slot];
    if (wake == 0) {
        look_idle(world, session);
    } else if (session->alive && session->wake == wake && session->step != SIM_PG_IDLE) {
        take_step(world, session);
    }
}

struct sim_pg_session *sim_pg_session_of(struct sim_world *world, uint8_t process,
                                         uint32_t connection)
{
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        struct sim_pg_session *session = &world->pg.sessions[i];
        if (session->alive && session->process == process && session->connection == connection) {
            return session;
        }
    }
    return NULL;
}

static struct sim_pg_session *room(struct sim_world *world)
{
    for (size_t i = 0; i < SIM_PG_SESSIONS; i++) {
        if (!world->pg.sessions[i].alive) {
            return &world->pg.sessions[i];
        }
    }
    return NULL;
}

static void log_in(struct sim_world *world, const struct sim_pg_message *message,
                   struct sim_pg_session *session)
{
    const uint32_t wake = session->wake;
    const sim_us timer_at = session->timer_at;
    *session = (struct sim_pg_session){.alive = true,
                                       .process = message->process,
                                       .owner = message->owner,
                                       .connection = message->connection,
                                       .pid = ++world->pg.pids,
                                       .began = world->now,
                                       .wake = wake,
                                       .timer_at = timer_at};
    const struct sim_pg_answer answer = {.call = message->call, .pid = session->pid};
    sim_pg_tell(world, session, &answer);
}

void sim_pg_arrive(struct sim_world *world, const struct sim_pg_message *message)
{
    const struct sim_pg_answer gone = {.kind = SIM_PG_GONE};
    struct sim_pg_session *session =
        sim_pg_session_of(world, message->process, message->connection);
    struct sim_pg_session *free_one = room(world);
    if (session != NULL) {
        COORD_ASSERT(session->queued < SIM_PG_QUEUE);
        session->queue[session->queued++] = message->call;
        if (session->step == SIM_PG_IDLE) {
            begin_next(world, session);
        }
    } else if (message->call.sql == SIM_PG_LOGIN && world->net.up && free_one != NULL) {
        log_in(world, message, free_one);
    } else if (message->call.sql == SIM_PG_LOGIN || world->net.up) {
        /* Nobody knows that connection, or takes one. */
        const struct sim_pg_session nobody = {.process = message->process,
                                              .owner = message->owner,
                                              .connection = message->connection};
        sim_pg_tell(world, &nobody, &gone);
    }
}
