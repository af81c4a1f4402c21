/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_driver.h - the state of the simulated PostgreSQL backend of one elector.
 */
#ifndef SIM_POSTGRES_DRIVER_H
#define SIM_POSTGRES_DRIVER_H

#include "tests/sim/postgres.h"

enum {
    SIM_PG_FLYING = 4
};

enum sim_pg_phase {
    SIM_PG_AT_REST = 0,
    SIM_PG_ASKED,
    SIM_PG_SENT
};

struct sim_pg_job {
    enum sim_pg_sql sql;
    uint64_t id;
    coord_ms sent;
};

struct sim_pg_state {
    struct sim_process *process;
    struct coord_elector *base;
    enum sim_pg_phase phase;
    struct coord_request request;
    uint8_t successor;
    bool touched;

    bool held;
    uint64_t fence;
    coord_ms debt;
    coord_ms proved;
    bool gate_passed;
    bool gate_flying;
    coord_ms gate_at;
    bool granted;
    struct coord_reply grant;
    bool unlock_due;
    bool unlock_flying;
    coord_ms unlock_at;
    unsigned release_failures;

    bool ready;
    uint32_t pid;
    uint32_t run;
    struct sim_pg_job jobs[SIM_PG_FLYING];
    unsigned job_count;
    coord_ms last_sent;
    coord_ms retry_at;
    unsigned failures;
};

static inline struct sim_world *sim_pg_world(const struct sim_pg_state *e)
{
    return e->process->world;
}

static inline coord_ms sim_pg_attempt(const struct sim_pg_state *e)
{
    return coord_backend_attempt(e->base);
}

static inline coord_ms sim_pg_slice(const struct sim_pg_state *e)
{
    return coord_ms_max(sim_pg_attempt(e) / 4, 1);
}

static inline coord_ms sim_pg_hard(const struct sim_pg_state *e)
{
    return coord_timing_hard(e->process->timing, e->proved);
}

/* ---- postgres_answer.c ---- */
void sim_pg_reply(struct sim_pg_state *e, enum coord_outcome outcome, coord_ms now);
void sim_pg_forget_term(struct sim_pg_state *e);
void sim_pg_grant(struct sim_pg_state *e, coord_ms now);
void sim_pg_answer_job(struct sim_pg_state *e, const struct sim_pg_job *job,
                       const struct sim_pg_answer *got, coord_ms now);

#endif /* SIM_POSTGRES_DRIVER_H */
