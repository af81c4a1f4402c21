/* SPDX-License-Identifier: MIT
 * electors/postgres_parts.h - what the sources of the PostgreSQL elector share: one session for
 * many elections, the state of each, and the listener.
 */
#ifndef COORD_ELECTOR_POSTGRES_PARTS_H
#define COORD_ELECTOR_POSTGRES_PARTS_H

#include "connections/postgres.h"
#include "coord/elector.h"
#include "coord/rule.h"
#include "electors/postgres_sql.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD__POSTGRES_NUMBER = 24,  /* a decimal text and its NUL */
    COORD__POSTGRES_CHANNEL = 24, /* "coord_", 16 hex digits and the NUL */
    COORD__POSTGRES_ORPHANS = 16, /* locks of electors that are gone */
    COORD__POSTGRES_BATCH = 256,  /* keys of one statement */
    COORD__POSTGRES_SHARE_KEY = 96,
    COORD__POSTGRES_RUN = 64
};

enum coord__postgres_phase {
    COORD__POSTGRES_IDLE = 0,
    COORD__POSTGRES_WAITING, /* a request that was not sent */
    COORD__POSTGRES_FLYING   /* one that was */
};

struct coord__postgres_session;

/** The backend's state of one elector. */
struct coord__postgres_elector {
    struct coord__postgres_elector *next; /* of the session */
    struct coord_elector *base;
    struct coord__postgres_session *session;
    struct coord_share *share;
    struct coord_timing timing; /* for its hard deadline alone */
    uint64_t key;
    char key_text[COORD__POSTGRES_NUMBER];
    char channel[COORD__POSTGRES_CHANNEL];
    bool fast; /* coord.takeover=fast */
    bool says_takeover;
    uint64_t random; /* of the jitter of its tries */

    enum coord__postgres_phase phase;
    struct coord_request request;
    bool touched; /* something was reported: its base has to run */
    bool stirs;   /* something is asked of the session */
    bool called;  /* its renewal is waited for, to go with those of others */

    bool held;       /* this session has the lock for it */
    uint64_t fence;  /* of the term that holds it */
    coord_ms debt;   /* what the row says is owed */
    coord_ms proved; /* when the last answered statement of the term was sent */
    bool gate_passed;
    bool gate_flying;
    coord_ms gate_at;    /* the next slice */
    coord_ms gate_since; /* the first try */
    bool blockers_due;   /* only guarded work is waited for: find out whose */
    bool granted;        /* a grant that waits for its first slice */
    struct coord_reply grant;
    struct coord_error blocked; /* COORD_OK: nobody is in the way */
    bool unlock_due;            /* let the lock go, without a mark, with the next write */
    bool unlock_flying;
    coord_ms unlock_at; /* the same, later; COORD_NEVER: not */
    unsigned release_failures;

    bool wants_hints;
    bool listening;
};

/** What was sent, in order. */
struct coord__postgres_job {
    enum coord__postgres_sql sql;
    struct coord__postgres_elector *elector; /* NULL: the session's own, or its elector is gone */
    uint64_t key;
    uint64_t id; /* of the request that it answers */
    coord_ms sent;
};

struct coord__postgres_listener {
    struct coord__postgres *link;
    struct coord__postgres_elector *asked; /* whose LISTEN flies */
    struct coord__postgres_statement listen;
    char text[64]; /* of listen */
    bool flying;
    bool set_up;
    coord_ms retry_at;
    unsigned failures;
};

struct coord__postgres_session {
    struct coord_shared shared; /* first */
    char share_key[COORD__POSTGRES_SHARE_KEY];
    struct coord__postgres_target *target;
    struct coord__postgres *link;
    /* coord.pooler=session. One statement at a time then: some poolers give a server's session to
     * the next client before all Syncs of the former one were answered. */
    bool pooler;
    struct coord__postgres_elector *first;
    struct coord__postgres_elector *driver; /* one of them reads for all */
    coord_ms looked_at;                     /* when it was read last */
    coord_ms due_at;                        /* as it was when it was processed last */
    struct coord__postgres_elector *cursor; /* where the next round begins */
    unsigned called;                        /* renewals that are waited for */
    coord_ms gather_until;                  /* for so long at most */

    bool ready;        /* set up and probed */
    bool settings_due; /* the least lease has changed */
    bool probe_less;   /* the server keeps its system functions to itself */
    coord_ms lease;    /* the least of its elections */
    coord_ms attempt;  /* A of that lease */
    int backend;       /* the server's process */
    unsigned timeline;
    char run[COORD__POSTGRES_RUN]; /* "": unknown, and then no record is of the present run */

    struct coord__postgres_job jobs[COORD__POSTGRES_FLYING_MAX];
    unsigned first_job;
    unsigned job_count;
    coord_ms last_sent;

    coord_ms opened_at;
    coord_ms retry_at; /* no connect before */
    unsigned failures;
    struct coord_error why;

    uint64_t orphans[COORD__POSTGRES_ORPHANS];
    unsigned orphan_count;
    unsigned orphans_flying; /* the first ones, in the unlock that flies */
    bool overflow;           /* more than there is room for: only closing frees them */

    struct coord__postgres_listener listener;
};

/* ---- electors/postgres_session.c ---- */

/** Find or make the session of a URI. */
enum coord_err coord__postgres_session_join(struct coord__postgres_elector *elector,
                                            const struct coord_elector_config *config, bool pooler,
                                            struct coord_error *error);
void coord__postgres_session_leave(struct coord__postgres_elector *elector, bool forked);
/** @param look  read what has come; else only send. */
void coord__postgres_session_process(struct coord__postgres_session *session, bool look,
                                     coord_ms now);
/** Send one statement, and remember for whom. @return false: the session is ending. */
bool coord__postgres_session_send(struct coord__postgres_session *session,
                                  enum coord__postgres_sql sql,
                                  struct coord__postgres_elector *elector, int count,
                                  const char *const *values, coord_ms now);

/* ---- electors/postgres_setup.c: from a login to a session that is ready ---- */

/** @param ctx  the session, which has just been opened. */
void coord__postgres_setup_begin(void *ctx, coord_ms now);
/** Send the settings of the least lease, and look at them. */
void coord__postgres_setup_settle(struct coord__postgres_session *session, coord_ms now);
/** The answer to one of its own statements. */
void coord__postgres_setup_answered(struct coord__postgres_session *session,
                                    enum coord__postgres_sql sql,
                                    const struct coord__postgres_reply *reply, coord_ms now);

/* ---- electors/postgres_gather.c: renewals that go together ---- */

/** Its request waits. @return true: others are about to renew, too; they are waited for. */
bool coord__postgres_gather(struct coord__postgres_elector *elector, coord_ms now);
/** Nobody is waited for any more. */
void coord__postgres_gathered(struct coord__postgres_session *session);
void coord__postgres_gather_leave(struct coord__postgres_elector *elector);
coord_ms coord__postgres_gather_at(const struct coord__postgres_session *session);

/* ---- electors/postgres_work.c: what is sent next ---- */

void coord__postgres_work(struct coord__postgres_session *session, coord_ms now);
/** When there is work that no event will announce. */
coord_ms coord__postgres_work_at(const struct coord__postgres_session *session);

/* ---- electors/postgres_grant.c: what the answers to an acquire do ---- */

void coord__postgres_acquired(struct coord__postgres_elector *e,
                              const struct coord__postgres_job *job,
                              const struct coord__postgres_reply *reply, coord_ms now);
void coord__postgres_gate_answered(struct coord__postgres_elector *e,
                                   const struct coord__postgres_reply *reply, coord_ms now);
void coord__postgres_blockers_answered(struct coord__postgres_elector *e,
                                       const struct coord__postgres_reply *reply, coord_ms now);
/** When a candidate that was told "held" looks again. */
coord_ms coord__postgres_poll_in(struct coord__postgres_elector *e);

/* ---- electors/postgres_answer.c: what answers do ---- */

bool coord__postgres_yes(const PGresult *rows, int row, int column);
uint64_t coord__postgres_read(const PGresult *rows, int row, int column);
void coord__postgres_copy_text(const PGresult *rows, int column, char *out);
void coord__postgres_copy_metadata(const PGresult *rows, int column, struct coord_observation *out);
bool coord__postgres_is_current(const struct coord__postgres_elector *e,
                                const struct coord__postgres_job *job);
/** The term is proved to have lived when that statement was sent. */
void coord__postgres_proved(struct coord__postgres_elector *e, coord_ms sent);
/** From one slice at the gate to the next. */
coord_ms coord__postgres_slice_pause(const struct coord__postgres_elector *e);
void coord__postgres_fail(struct coord__postgres_elector *e, enum coord_outcome outcome,
                          const struct coord_error *why, coord_ms now);

void coord__postgres_answer(struct coord__postgres_session *session,
                            const struct coord__postgres_job *job,
                            const struct coord__postgres_reply *reply, coord_ms now);
/** Finish the elector's request; `reply` gets its id. */
void coord__postgres_finish(struct coord__postgres_elector *elector, struct coord_reply *reply,
                            coord_ms now);
/** Give the grant that waited for the gate. */
void coord__postgres_grant(struct coord__postgres_elector *elector, coord_ms now);
/** Every elector of the session loses what it held; what was asked is answered or kept. */
void coord__postgres_all_lost(struct coord__postgres_session *session,
                              const struct coord_error *why, coord_ms now);
/** No session can be had: whoever waits is told. */
void coord__postgres_all_failed(struct coord__postgres_session *session,
                                const struct coord_error *why, coord_ms now);

/* ---- electors/postgres_listen.c ---- */

bool coord__postgres_listen_init(struct coord__postgres_session *session,
                                 const struct coord_resolver *resolver);
void coord__postgres_listen_fini(struct coord__postgres_session *session, bool forked);
void coord__postgres_listen_process(struct coord__postgres_session *session, bool look,
                                    coord_ms now);
void coord__postgres_listen_leave(struct coord__postgres_elector *elector);
/** The server is full: the place is for the session that elects. */
void coord__postgres_listen_give_way(struct coord__postgres_session *session, coord_ms now);
coord_ms coord__postgres_listen_deadline(const struct coord__postgres_session *session);

/* ---- small helpers ---- */

/** Decimal text. @return out. */
const char *coord__postgres_number(uint64_t value, char *out);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTOR_POSTGRES_PARTS_H */
