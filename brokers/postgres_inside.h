/* SPDX-License-Identifier: MIT
 * brokers/postgres_inside.h - the state of the session that brokers share, for its sources.
 */
#ifndef COORD_BROKER_POSTGRES_INSIDE_H
#define COORD_BROKER_POSTGRES_INSIDE_H

#include "brokers/postgres_parts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD__BUS_KEY = 64,
    COORD__BUS_RETRY_FIRST = 50,  /* ms, behind a retry that goes at once; doubled with each */
    COORD__BUS_RETRY_CAP = 1000,  /* ms */
    COORD__BUS_GOOD_LIFE = 1000,  /* ms; a session that lived so long starts afresh */
    COORD__BUS_RETRY_LONG = 10000 /* ms, where somebody has to change something first */
};

enum coord__bus_job_kind {
    COORD__BUS_JOB_SET_UP,
    COORD__BUS_JOB_PROBE,
    COORD__BUS_JOB_LISTEN,
    COORD__BUS_JOB_UNLISTEN,
    COORD__BUS_JOB_NOTIFY
};

struct coord__bus_channel_state {
    struct coord__bus_channel_state *next;
    char name[COORD__BUS_CHANNEL];
    char topic[COORD_BROKER_TOPIC_MAX];
    size_t users;
    bool asked; /* a statement of it is unanswered: it must not be freed */
    bool in_force;
    char text[64]; /* of that statement */
    struct coord__postgres_statement statement;
    struct coord__bus_parts parts;
};

struct coord__bus_job {
    enum coord__bus_job_kind kind;
    struct coord__bus_member *member;         /* NOTIFY; NULL: it is gone */
    struct coord__bus_channel_state *channel; /* LISTEN, UNLISTEN */
    coord_ms sent;
};

struct coord__bus_session {
    struct coord_shared shared; /* first */
    char key[COORD__BUS_KEY];
    struct coord__postgres_target *target;
    struct coord__postgres *link;
    struct coord__bus_member *first;
    struct coord__bus_channel_state *channels;
    bool pooler;
    bool ready;
    bool notified_once; /* in this session: only then is the statement surely prepared */
    struct coord__bus_job jobs[COORD__POSTGRES_FLYING_MAX]; /* a ring */
    unsigned first_job;
    unsigned job_count;
    unsigned messages; /* of them */
    uint64_t random;
    uint64_t messages_sent;
    coord_ms attempt;
    coord_ms ready_since;
    coord_ms heard_at;
    coord_ms retry_at;
    coord_ms word_at; /* a LISTEN was refused: not before */
    unsigned failures;
    struct coord_error why; /* it is not ready */
};

/* ---- postgres_channel.c ---- */

bool coord__bus_has_room(const struct coord__bus_session *session);
/* Send a statement and keep its job. @return false: it did not leave, the session has ended. */
bool coord__bus_put_job(struct coord__bus_session *session, const struct coord__bus_job *job,
                        const struct coord__postgres_statement *statement, int count,
                        const char *const *values);
struct coord__bus_job coord__bus_take_job(struct coord__bus_session *session);

void coord__bus_free_channel(struct coord__bus_channel_state *channel);
/* The server has to be told of it. */
bool coord__bus_wants_word(const struct coord__bus_channel_state *c);
void coord__bus_tend_channels(struct coord__bus_session *session, coord_ms now);

/* ---- postgres_events.c ---- */

struct coord__postgres_events coord__bus_events(struct coord__bus_session *session);
void coord__bus_closed(void *ctx, const struct coord_error *why, coord_ms now);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_POSTGRES_INSIDE_H */
