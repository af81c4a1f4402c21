/* SPDX-License-Identifier: MIT
 * connections/postgres_inside.h - the state of one connection, for its sources.
 */
#ifndef COORD_POSTGRES_INSIDE_H
#define COORD_POSTGRES_INSIDE_H

#include "connections/postgres.h"

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum coord__postgres_state {
    COORD__POSTGRES_CLOSED = 0,
    COORD__POSTGRES_RESOLVING,
    COORD__POSTGRES_CONNECTING,
    COORD__POSTGRES_OPEN
};

struct coord__postgres_flying {
    const struct coord__postgres_statement *statement;
    bool prepares;
};

struct coord__postgres {
    const struct coord__postgres_target *target;
    const struct coord_resolver *resolver;
    struct coord__postgres_events events;

    enum coord__postgres_state state;
    PGconn *conn;
    PostgresPollingStatusType polling;
    int fd;
    ino_t file;          /* behind fd */
    uint64_t generation; /* of fd */
    uint64_t session;    /* counts sessions, so that a handler's close() is noticed */
    bool unsent;         /* libpq holds bytes that the socket did not take */

    size_t host;
    struct coord_resolution *resolution;
    struct coord_addresses addresses;
    size_t address;
    coord_ms patience;
    coord_ms give_up_at;
    struct coord_error last; /* why the last address would not do */

    uint32_t prepared; /* one bit a statement */
    struct coord__postgres_flying flying[COORD__POSTGRES_FLYING_MAX];
    unsigned first;
    unsigned count;

    PGresult *rows; /* the answer that is being read */
    struct coord__postgres_reply reply;
    bool doomed; /* the server has said that the session is over, or it broke */
    struct coord_error doom;
};

/* ---- connections/postgres.c ---- */

void coord__postgres_drop_conn(struct coord__postgres *pg);
void coord__postgres_drop_resolution(struct coord__postgres *pg);
/** Close, and tell. */
void coord__postgres_end(struct coord__postgres *pg, const struct coord_error *why, coord_ms now);
bool coord__postgres_ready_for(int fd, short events);

/* ---- connections/postgres_login.c: from a name to a session ---- */

void coord__postgres_resolve(struct coord__postgres *pg, coord_ms now);
void coord__postgres_log_in(struct coord__postgres *pg, coord_ms now);

#ifdef __cplusplus
}
#endif
#endif /* COORD_POSTGRES_INSIDE_H */
