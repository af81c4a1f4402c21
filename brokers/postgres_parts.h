/* SPDX-License-Identifier: MIT
 * brokers/postgres_parts.h - the session that brokers share, its channels, and what a message looks
 * like as notifications.
 *
 * Between brokers/postgres*.c only.
 */
#ifndef COORD_BROKER_POSTGRES_PARTS_H
#define COORD_BROKER_POSTGRES_PARTS_H

#include "connections/postgres.h"
#include "coord/broker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- postgres_parts.c */

enum {
    COORD__BUS_CHANNEL = 43,      /* "coord_bus_", 32 hex and the NUL */
    COORD__BUS_PART_BYTES = 5940, /* of a message in one notification: 7,920 of base64 */
    COORD__BUS_PARTS_MAX = 12
};

/* A message that comes in, in parts. */
struct coord__bus_parts {
    uint64_t id;
    unsigned next; /* the part that is awaited; 0: none is */
    unsigned count;
    size_t bytes;
    unsigned char *data; /* of COORD_BROKER_MESSAGE_MAX; NULL before the first */
};

enum coord__bus_part {
    COORD__BUS_MORE = 0,   /* it is not complete yet */
    COORD__BUS_WHOLE,      /* `data` and `bytes` are the message */
    COORD__BUS_DAMAGED,    /* not of our form */
    COORD__BUS_INCOMPLETE, /* a part of it never came */
    COORD__BUS_NO_MEMORY
};

/* The channel of a topic. @param out room for COORD__BUS_CHANNEL. */
void coord__bus_channel(const char *topic, char *out);

/*
 * A message as an array of notifications, {"1 ID PART PARTS BASE64",...}. @return NULL: no memory;
 * else the caller frees it.
 */
char *coord__bus_split(uint64_t id, const void *bytes, size_t count);

/* One notification. */
enum coord__bus_part coord__bus_join(struct coord__bus_parts *parts, const char *payload);
void coord__bus_parts_clear(struct coord__bus_parts *parts);

/* ---------------------------------------------------------------- postgres_session.c */

struct coord__bus_session;

/* A broker's state. */
struct coord__bus_member {
    struct coord__bus_member *next;
    struct coord_broker *broker;
    struct coord__bus_session *session;
    struct coord_share *share;
    unsigned flying; /* messages that the server has not answered for */
    struct coord_error refused;
    bool said_up;
};

COORD_MUST_CHECK enum coord_err coord__bus_session_join(struct coord__bus_member *member,
                                                        const struct coord_broker_config *config,
                                                        bool pooler, struct coord_error *error);
void coord__bus_session_leave(struct coord__bus_member *member, bool forked);

/* The topics of a member have changed. */
void coord__bus_session_count(struct coord__bus_session *session);
void coord__bus_session_process(struct coord__bus_session *session, coord_ms now);
coord_ms coord__bus_session_deadline(const struct coord__bus_session *session);
size_t coord__bus_session_descriptor(const struct coord__bus_session *session,
                                     struct coord_descriptor *out);

/* COORD_OK, BUSY, or another with *error. */
enum coord_err coord__bus_session_send(struct coord__bus_member *member,
                                       const struct coord_broker_message *what, coord_ms now,
                                       struct coord_error *error);
/* Publishing works, and all its topics are listened to. */
bool coord__bus_session_is_up(const struct coord__bus_member *member);
const struct coord_error *coord__bus_session_trouble(const struct coord__bus_session *session);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_POSTGRES_PARTS_H */
