/* SPDX-License-Identifier: MIT
 * tests/sim/postgres_model.h - a PostgreSQL server as far as electors/postgres*.c can tell: its
 * sessions, the advisory lock, the gate and the row of each election, and guarded work.
 */
#ifndef SIM_POSTGRES_MODEL_H
#define SIM_POSTGRES_MODEL_H

#include "coord/store.h"
#include "tests/sim/clock.h"

enum {
    SIM_PG_ELECTIONS = 3, /* the one that is watched most, and its companions */
    SIM_PG_SESSIONS = 64,
    SIM_PG_MESSAGES = 4096, /* under way, either way */
    SIM_PG_QUEUE = 8,       /* statements that a session has not begun, and answers not yet read */
    SIM_PG_WRITERS = 16,
    SIM_PG_LINKS = 5, /* one a process */
    SIM_PG_NOBODY = 255
};

/* Each as electors/postgres_sql.c has it. */
enum sim_pg_sql {
    SIM_PG_LOGIN = 1,
    SIM_PG_OPENING,
    SIM_PG_SETTINGS,
    SIM_PG_PROBE,
    SIM_PG_ACQUIRE,
    SIM_PG_GATE,
    SIM_PG_RENEW,
    SIM_PG_STRIKE,
    SIM_PG_RELEASE,
    SIM_PG_UNLOCK,
    SIM_PG_OBSERVE,
    SIM_PG_ASK,
    SIM_PG_BLOCKERS,
    SIM_PG_CLOSE /* the client is gone, or says that it goes */
};

struct sim_pg_row {
    bool present;
    bool resigned;
    bool strange; /* the transaction that wrote it is not the one that it names */
    uint8_t identity;
    uint8_t successor;
    uint8_t ask_for;
    uint32_t owner; /* incarnation */
    uint32_t pid;
    uint32_t run;
    uint64_t fence;
    coord_ms lease;
    coord_ms debt;
    uint64_t since_us;          /* by the server's clock, as the next two */
    uint64_t reserved_until_us; /* 0: not */
    uint64_t ask_until_us;
    uint64_t ask_fence;
};

struct sim_pg_table {
    struct sim_pg_row rows[SIM_PG_ELECTIONS];
};

struct sim_pg_call {
    enum sim_pg_sql sql;
    uint8_t election;
    uint8_t elections; /* RENEW, UNLOCK: a bit for each */
    uint32_t owner;
    uint32_t run; /* as the session was told */
    uint8_t identity;
    uint8_t successor;
    bool unlocks;
    bool fast;
    uint64_t fence;
    uint64_t seen;
    coord_ms lease;
    coord_ms statement_timeout; /* SETTINGS, as the next */
    coord_ms lock_timeout;
    coord_ms reserve;
};

enum sim_pg_kind {
    SIM_PG_ROWS = 0,
    SIM_PG_ERROR, /* a complete reply; the session lives */
    SIM_PG_GONE   /* FATAL, or the end of the stream */
};

struct sim_pg_answer {
    enum sim_pg_kind kind;
    struct sim_pg_call call; /* that it answers */
    bool won;
    bool held; /* ACQUIRE: granted; OBSERVE: somebody has the lock */
    bool done; /* GATE, STRIKE, RELEASE, ASK, BLOCKERS: one row */
    uint32_t pid;
    uint32_t run;
    uint64_t fence;
    coord_ms debt;
    coord_ms lease; /* PROBE: the settings, as the next two */
    coord_ms statement_timeout;
    coord_ms lock_timeout;
    struct sim_pg_table table; /* as the statement's snapshot has it */
    bool asked[SIM_PG_ELECTIONS];
    uint32_t lock_pid; /* OBSERVE */
    coord_ms reserved_ms;
};

struct sim_pg_message {
    bool up; /* to the server */
    uint8_t process;
    uint32_t owner;
    uint32_t connection;
    struct sim_pg_call call;
    struct sim_pg_answer answer;
};

enum sim_pg_step {
    SIM_PG_IDLE = 0,
    SIM_PG_BEGUN, /* about to take its snapshot, or waiting for the table */
    SIM_PG_TRY,   /* about to try the lock */
    SIM_PG_ROW,   /* about to write the row, or waiting for it */
    SIM_PG_COMMIT,
    SIM_PG_QUEUED /* for the gate */
};

struct sim_pg_session {
    bool alive;
    uint8_t process;
    uint32_t owner;
    uint32_t connection;
    uint32_t pid;
    unsigned locks[SIM_PG_ELECTIONS]; /* of the session */
    bool tried;                       /* the lock, for the transaction */
    coord_ms lease;                   /* idle_session_timeout; 0: not yet */
    coord_ms statement_timeout;
    coord_ms lock_timeout;
    enum sim_pg_step step;
    sim_us began;
    sim_us waits_since; /* for the row or the table; 0: not */
    uint32_t wake;      /* of its events, older ones are void */
    sim_us timer_at;    /* when its idle time is looked at; 0: not planned */
    struct sim_pg_table snapshot;
    struct sim_pg_row pending;
    bool writes; /* it has the row: pending is not committed */
    struct sim_pg_call call;
    struct sim_pg_answer answer;
    struct sim_pg_call queue[SIM_PG_QUEUE];
    unsigned queued;
};

enum sim_pg_work {
    SIM_PG_NONE = 0,
    SIM_PG_COMING,  /* its statement is not there yet */
    SIM_PG_WAITING, /* behind who waits for the gate */
    SIM_PG_OPEN,    /* it has the gate, and passed the look at the row */
    SIM_PG_BARE     /* planted: it passed the look without the gate */
};

/* A transaction of a leader's host that begins with coord.fence(). */
struct sim_pg_writer {
    enum sim_pg_work state;
    uint8_t process;
    bool dies; /* ended by the server before its commit */
    uint64_t fence;
    uint32_t order; /* of its term's grant */
    uint32_t wake;
};

struct sim_pg_link {
    uint32_t connection; /* grows with each one that is opened */
    bool open;
    sim_us stalled_until[2]; /* up, down */
    sim_us last_arrival[2];
    uint16_t inbox[SIM_PG_QUEUE]; /* what came and was not read */
    unsigned count;
};

struct sim_postgres {
    struct sim_clock clock; /* of its timers */
    uint64_t keys[SIM_PG_ELECTIONS];
    struct sim_pg_table table;
    struct sim_pg_table durable; /* a resignation does not wait for the disk */
    struct sim_pg_table standby; /* as far as a standby has it */
    struct sim_pg_table older;   /* what somebody may put back */
    uint32_t run;
    bool emptied; /* TRUNCATE, or another timeline: no record proves nothing */
    uint32_t pids;
    sim_us table_locked_until;
    bool guard_void; /* what led is not in this server's history */
    struct sim_pg_session sessions[SIM_PG_SESSIONS];
    struct sim_pg_writer writers[SIM_PG_WRITERS];
    struct sim_pg_link links[SIM_PG_LINKS];
    uint16_t free[SIM_PG_MESSAGES];
    unsigned free_count;
};

#endif /* SIM_POSTGRES_MODEL_H */
