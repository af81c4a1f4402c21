/* SPDX-License-Identifier: MIT
 * tests/sim/postgres.h - what the sources of the simulated PostgreSQL share.
 */
#ifndef SIM_POSTGRES_H
#define SIM_POSTGRES_H

#include "tests/sim/world.h"

/* ---- postgres_model.c: the row ---- */
uint64_t sim_pg_wall(const struct sim_world *world);
bool sim_pg_is_of_run(const struct sim_pg_row *row, uint32_t run);
bool sim_pg_is_locked_for(const struct sim_world *world, const struct sim_pg_session *session);
bool sim_pg_take_row(struct sim_world *world, struct sim_pg_session *session);
void sim_pg_mark_row(struct sim_world *world, struct sim_pg_session *session);
void sim_pg_strike_row(struct sim_world *world, struct sim_pg_session *session);
void sim_pg_ask_row(struct sim_world *world, struct sim_pg_session *session);
void sim_pg_read_rows(const struct sim_world *world, struct sim_pg_session *session);
bool sim_pg_may_queue(const struct sim_pg_session *session);

/* ---- postgres_faults.c ---- */
void sim_pg_terminate(struct sim_world *world, size_t slot);

/* ---- postgres_server.c: sessions, their statements and their ends ---- */
void sim_pg_arrive(struct sim_world *world, const struct sim_pg_message *message);
/* NULL: the server knows none. */
struct sim_pg_session *sim_pg_session_of(struct sim_world *world, uint8_t process,
                                         uint32_t connection);
void sim_pg_end_session(struct sim_world *world, size_t slot, bool tells);
void sim_pg_wake(struct sim_world *world);
bool sim_pg_gate_is_wanted(const struct sim_world *world);

/* ---- postgres_writer.c: guarded work ---- */
bool sim_pg_work_is_open(const struct sim_world *world);
void sim_pg_writers_go_on(struct sim_world *world);
void sim_pg_writers_end(struct sim_world *world, bool quietly);

/* ---- postgres_net.c: the network ---- */
bool sim_pg_in_trouble(struct sim_world *world, enum sim_fault fault);
sim_us sim_pg_some_time(struct sim_world *world, coord_ms most);
sim_us sim_pg_one_way(struct sim_world *world);
void sim_pg_stall(struct sim_world *world, uint8_t process);
void sim_pg_open(struct sim_process *process);
void sim_pg_close(struct sim_process *process);
void sim_pg_send(struct sim_process *process, const struct sim_pg_call *call);
void sim_pg_tell(struct sim_world *world, const struct sim_pg_session *to,
                 const struct sim_pg_answer *answer);
/* The next answer on the open link; borrowed until the next call. NULL: none has come. */
const struct sim_pg_answer *sim_pg_receive(struct sim_process *process);

/* ---- postgres_rows.c ---- */
struct pg_result; /* libpq's PGresult */
/* Borrowed until the next call. */
const struct pg_result *sim_pg_rows(const struct sim_world *world,
                                    const struct sim_pg_answer *answer, int pid);

#endif /* SIM_POSTGRES_H */
