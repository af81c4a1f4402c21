/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_link.c - connections/postgres.h over the simulated network: what electors/
 * postgres*.c sends as text becomes a call to the model.
 *
 * The session that listens is left out: its hints come by themselves.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "electors/postgres_parts.h"
#include "tests/sim/postgres.h"

struct coord__postgres_target {
    size_t unused;
};

struct coord__postgres {
    struct sim_process *process;
    struct coord__postgres_events events;
    enum {
        CLOSED,
        CONNECTING,
        OPEN
    } state;
    int backend;
    coord_ms give_up_at;
};

/* ---------------------------------------------------------------- what is sent */

static uint64_t number(const char *text)
{
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* The first bytes of an owner are its process and its number (sim_name_owner()). */
static uint32_t owner_of(const char *hex)
{
    char first[7];
    memcpy(first, hex, 6);
    first[6] = '\0';
    return (uint32_t)strtoul(first, NULL, 16) & 0xffff;
}

static uint8_t process_of(const char *identity)
{
    return identity != NULL ? (uint8_t)(identity[1] - '0') : SIM_PG_NOBODY;
}

static uint8_t election_of(const struct sim_world *world, const char *key)
{
    const uint64_t wanted = number(key);
    uint8_t election = 0;
    while (world->pg.keys[election] != wanted) {
        election++;
        COORD_ASSERT(election < SIM_PG_ELECTIONS);
    }
    return election;
}

/* "{KEY,KEY}" */
static uint8_t elections_of(const struct sim_world *world, const char *keys)
{
    unsigned bits = 0;
    while (*keys == '{' || *keys == ',') {
        bits |= 1u << election_of(world, keys + 1);
        keys += 1 + strcspn(keys + 1, ",}");
    }
    return (uint8_t)bits;
}

static uint8_t election_named(const char *name)
{
    uint8_t election = 0;
    while (strcmp(sim_elections[election], name) != 0) {
        election++;
        COORD_ASSERT(election < SIM_PG_ELECTIONS);
    }
    return election;
}

static void read_acquire(struct sim_pg_call *call, const char *const *values)
{
    call->sql = SIM_PG_ACQUIRE;
    call->election = election_named(values[0]);
    call->owner = owner_of(values[2]);
    call->identity = process_of(values[3]);
    call->lease = number(values[4]);
    call->run = (uint32_t)number(values[5]);
    call->seen = number(values[7]);
    call->fast = strcmp(values[8], "fast") == 0;
}

static void read_release(const struct sim_world *world, struct sim_pg_call *call,
                         const char *const *values)
{
    call->sql = SIM_PG_RELEASE;
    call->election = election_of(world, values[0]);
    call->owner = owner_of(values[1]);
    call->fence = number(values[2]);
    call->unlocks = values[3][0] == 't';
    call->successor = process_of(values[4]);
    call->reserve = number(values[5]);
}

static void read_row_call(const struct sim_world *world, enum sim_pg_sql sql,
                          struct sim_pg_call *call, int count, const char *const *values)
{
    call->sql = sql;
    call->election = election_of(world, values[0]);
    call->owner = count > 1 ? owner_of(values[1]) : 0;
    call->fence = count > 2 ? number(values[2]) : 0;
}

static void read_ask(struct sim_pg_call *call, const char *const *values)
{
    call->sql = SIM_PG_ASK;
    call->election = election_named(values[0]);
    call->fence = number(values[1]);
    call->successor = process_of(values[2]);
    call->reserve = number(values[3]);
}

static void read_keys(const struct sim_world *world, enum sim_pg_sql sql, struct sim_pg_call *call,
                      const char *const *values)
{
    call->sql = sql;
    call->elections = elections_of(world, values[0]);
}

static void read_call(const struct sim_world *world, enum coord__postgres_sql sql, int count,
                      const char *const *values, struct sim_pg_call *call)
{
    switch (sql) {
    case COORD__POSTGRES_ACQUIRE:
        read_acquire(call, values);
        break;
    case COORD__POSTGRES_GATE:
        read_row_call(world, SIM_PG_GATE, call, count, values);
        break;
    case COORD__POSTGRES_STRIKE:
        read_row_call(world, SIM_PG_STRIKE, call, count, values);
        break;
    case COORD__POSTGRES_BLOCKERS:
        read_row_call(world, SIM_PG_BLOCKERS, call, count, values);
        break;
    case COORD__POSTGRES_RENEW:
        read_keys(world, SIM_PG_RENEW, call, values);
        break;
    case COORD__POSTGRES_UNLOCK:
        read_keys(world, SIM_PG_UNLOCK, call, values);
        break;
    case COORD__POSTGRES_RELEASE:
        read_release(world, call, values);
        break;
    case COORD__POSTGRES_OBSERVE:
        call->sql = SIM_PG_OBSERVE;
        call->election = election_named(values[0]);
        break;
    case COORD__POSTGRES_ASK:
        read_ask(call, values);
        break;
    case COORD__POSTGRES_OPENING:
        call->sql = SIM_PG_OPENING;
        break;
    case COORD__POSTGRES_SETTINGS:
        call->sql = SIM_PG_SETTINGS;
        call->lease = number(values[0]);
        call->statement_timeout = number(values[1]);
        call->lock_timeout = number(values[2]);
        break;
    case COORD__POSTGRES_PROBE:
        call->sql = SIM_PG_PROBE;
        break;
    case COORD__POSTGRES_RENEW_LOCKS: /* of a pooler */
    case COORD__POSTGRES_INIT:
    case COORD__POSTGRES_PROBE_LESS:
    case COORD__POSTGRES_STATEMENTS:
        COORD_ASSERT(!"sent by a simulated elector");
    }
}

bool coord__postgres_send(struct coord__postgres *pg,
                          const struct coord__postgres_statement *statement, int count,
                          const char *const *values)
{
    struct sim_pg_call call = {.successor = SIM_PG_NOBODY};
    COORD_ASSERT(pg->state == OPEN);
    read_call(pg->process->world, (enum coord__postgres_sql)statement->index, count, values, &call);
    sim_pg_send(pg->process, &call);
    return true;
}

/* ---------------------------------------------------------------- the connection */

static void deliver(struct coord__postgres *pg, const struct sim_pg_answer *answer, coord_ms now)
{
    struct coord__postgres_reply reply = {.error.code = COORD_E_UNREACHABLE};
    if (answer->kind == SIM_PG_ROWS) {
        reply.rows = sim_pg_rows(pg->process->world, answer, pg->backend);
        reply.error.code = COORD_OK;
    }
    pg->events.replied(pg->events.ctx, &reply, now);
}

enum coord_err coord__postgres_target_new(const char *uri, struct coord__postgres_target **out,
                                          struct coord_error *error)
{
    (void)uri;
    *out = calloc(1, sizeof **out);
    return *out != NULL ? COORD_OK : coord_error_set(error, COORD_E_NO_MEMORY, "out of memory");
}

void coord__postgres_target_free(struct coord__postgres_target *target)
{
    free(target);
}

struct coord__postgres *coord__postgres_new(const struct coord__postgres_target *target,
                                            const struct coord_resolver *resolver,
                                            const struct coord__postgres_events *events)
{
    struct coord__postgres *pg = calloc(1, sizeof *pg);
    (void)target;
    if (pg != NULL) {
        pg->process = resolver->ctx;
        pg->events = *events;
    }
    return pg;
}

void coord__postgres_close(struct coord__postgres *pg)
{
    sim_pg_close(pg->process);
    pg->state = CLOSED;
}

/* The kernel closes the connection; the server hears of it behind what was sent before. */
void coord__postgres_free(struct coord__postgres *pg, bool forked)
{
    (void)forked;
    if (pg != NULL) {
        coord__postgres_close(pg);
    }
    free(pg);
}

void coord__postgres_open(struct coord__postgres *pg, coord_ms patience, coord_ms now)
{
    const struct sim_pg_call login = {.sql = SIM_PG_LOGIN};
    COORD_ASSERT(pg->state == CLOSED);
    pg->state = CONNECTING;
    pg->give_up_at = coord_ms_add(now, patience);
    sim_pg_open(pg->process);
    sim_pg_send(pg->process, &login);
}

void coord__postgres_refuse(struct coord__postgres *pg, const struct coord_error *why, coord_ms now)
{
    coord__postgres_close(pg);
    pg->events.closed(pg->events.ctx, why, now);
}

void coord__postgres_process(struct coord__postgres *pg, coord_ms now)
{
    const struct coord_error why = {.code = COORD_E_UNREACHABLE};
    const struct sim_pg_answer *answer = NULL;
    while (pg->state != CLOSED && (answer = sim_pg_receive(pg->process)) != NULL) {
        if (answer->kind == SIM_PG_GONE) {
            coord__postgres_refuse(pg, &why, now);
        } else if (answer->call.sql == SIM_PG_LOGIN) {
            pg->state = OPEN;
            pg->backend = (int)answer->pid;
            pg->events.opened(pg->events.ctx, now);
        } else {
            deliver(pg, answer, now);
        }
    }
    if (pg->state == CONNECTING && now >= pg->give_up_at) {
        coord__postgres_refuse(pg, &why, now);
    }
}

bool coord__postgres_is_closed(const struct coord__postgres *pg)
{
    return pg->state == CLOSED;
}

bool coord__postgres_is_open(const struct coord__postgres *pg)
{
    return pg->state == OPEN;
}

size_t coord__postgres_descriptor(const struct coord__postgres *pg, struct coord_descriptor *out)
{
    (void)pg;
    (void)out;
    return 0;
}

coord_ms coord__postgres_deadline(const struct coord__postgres *pg)
{
    return pg->state == CONNECTING ? pg->give_up_at : COORD_NEVER;
}

int coord__postgres_backend(const struct coord__postgres *pg)
{
    return pg->backend;
}

int coord__postgres_version(const struct coord__postgres *pg)
{
    (void)pg;
    return 150000;
}

/* ---------------------------------------------------------------- hints */

bool coord__postgres_listen_init(struct coord__postgres_session *session,
                                 const struct coord_resolver *resolver)
{
    session->listener.link = NULL;
    (void)resolver;
    return true;
}

void coord__postgres_listen_fini(struct coord__postgres_session *session, bool forked)
{
    (void)session;
    (void)forked;
}

void coord__postgres_listen_leave(struct coord__postgres_elector *elector)
{
    (void)elector;
}

void coord__postgres_listen_give_way(struct coord__postgres_session *session, coord_ms now)
{
    (void)session;
    (void)now;
}

void coord__postgres_listen_process(struct coord__postgres_session *session, bool look,
                                    coord_ms now)
{
    struct sim_process *process = session->link->process;
    for (struct coord__postgres_elector *e = session->first;
         e != NULL && look && process->wants_hint; e = e->next) {
        e->touched = true;
        coord_backend_hint(e->base, now);
    }
    process->wants_hint = process->wants_hint && !look;
}

coord_ms coord__postgres_listen_deadline(const struct coord__postgres_session *session)
{
    (void)session;
    return COORD_NEVER;
}
