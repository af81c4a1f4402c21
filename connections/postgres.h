/* SPDX-License-Identifier: MIT
 * connections/postgres.h - one connection to a PostgreSQL server, never blocking.
 *
 * Statements leave in the order in which they were sent, each with a Sync of its own in the same
 * write, and are answered in that order. Whatever ends the session is heard as it arrives, also
 * while nothing was asked. Nothing here knows of elections.
 */
#ifndef COORD_POSTGRES_CONNECTION_H
#define COORD_POSTGRES_CONNECTION_H

#include "coord/backend.h"
#include "coord/resolver.h"

#include <libpq-fe.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD__POSTGRES_FLYING_MAX = 16, /* statements that wait for their answer */
    COORD__POSTGRES_STATE_BYTES = 6  /* an SQLSTATE and its NUL */
};

struct coord__postgres;
struct coord__postgres_target;

/** Text of a statement. One with a name is prepared on its first use in a session. */
struct coord__postgres_statement {
    unsigned index;   /* 0 to 31, its own among those with a name */
    const char *name; /* NULL: not prepared */
    const char *text;
    int columns; /* of its answer */
    bool one_row;
};

/** The whole answer to one statement: its Sync came, so it was committed or rolled back. */
struct coord__postgres_reply {
    const PGresult *rows;                       /* NULL where it failed */
    char sqlstate[COORD__POSTGRES_STATE_BYTES]; /* "" where it did not */
    struct coord_error error;                   /* COORD_OK, or what the SQLSTATE means */
};

/** All are called from coord__postgres_process() only. */
struct coord__postgres_events {
    void *ctx;
    /* The login is done: send what sets the session up. */
    void (*opened)(void *ctx, coord_ms now);
    /* The answer to the oldest unanswered statement; borrowed. */
    void (*replied)(void *ctx, const struct coord__postgres_reply *reply, coord_ms now);
    /* NULL: ignored. */
    void (*notified)(void *ctx, const char *channel, const char *payload, coord_ms now);
    /* The session has ended, or none could be opened (`opened` was not called). Unanswered
     * statements are forgotten. */
    void (*closed)(void *ctx, const struct coord_error *why, coord_ms now);
};

/**
 * Read a URI of PostgreSQL's own form.
 *
 * @param uri    without `coord.` options; copied.
 * @param out    written on success; give it back with coord__postgres_target_free().
 * @param error  filled in on failure, without the secret; may be NULL.
 * @return       COORD_OK, BAD_URI or NO_MEMORY.
 * Thread: any.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/postgres.md#uri, tests/contract/test_postgres.c.
 */
COORD_MUST_CHECK enum coord_err coord__postgres_target_new(const char *uri,
                                                           struct coord__postgres_target **out,
                                                           struct coord_error *error);

/** NULL: nothing happens. Thread: confined. */
void coord__postgres_target_free(struct coord__postgres_target *target);

/** How many hosts it names, at least one. Thread: confined. */
size_t coord__postgres_target_hosts(const struct coord__postgres_target *target);

/** The name to resolve before connecting to that host; NULL: none. Thread: confined. */
const char *coord__postgres_target_name(const struct coord__postgres_target *target, size_t host);

/** "HOST:PORT" or the socket's folder, for people. @return out. Thread: confined. */
const char *coord__postgres_target_show(const struct coord__postgres_target *target, size_t host,
                                        char *out, size_t room);

/** Begin to connect, without blocking. @return NULL: no memory. Thread: confined. */
PGconn *coord__postgres_target_start(const struct coord__postgres_target *target, size_t host,
                                     const char *address);

/** A parameter that the URI gives. @return NULL: it does not. Thread: confined. */
const char *coord__postgres_target_option(const struct coord__postgres_target *target,
                                          const char *keyword);

/**
 * Connect and wait for it, five seconds an address or as many as `connect_timeout` says: for
 * init and doctor. Of several hosts the primary is taken; a standby where there is no other.
 *
 * @return NULL: `why` has the last address's cause.
 */
PGconn *coord__postgres_ask(const struct coord__postgres_target *target, struct coord_error *why);

/* ---- the connection ---- */

/**
 * Make a connection that is closed.
 *
 * @param target    kept, borrowed; outlives the connection.
 * @param resolver  kept; NULL: only literal addresses and sockets.
 * @param events    copied.
 * @return          NULL: no memory.
 * Thread: confined.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/postgres.md#terms, tests/contract/test_postgres.c.
 */
struct coord__postgres *coord__postgres_new(const struct coord__postgres_target *target,
                                            const struct coord_resolver *resolver,
                                            const struct coord__postgres_events *events);

/** NULL: nothing happens. In a forked child (`forked`) not a byte is sent. Thread: confined. */
void coord__postgres_free(struct coord__postgres *pg, bool forked);

/** Begin to connect; each address gets `patience` ms. Must be closed. Thread: confined. */
void coord__postgres_open(struct coord__postgres *pg, coord_ms patience, coord_ms now);

/** Close without an event. Closed already: nothing happens. Thread: confined. */
void coord__postgres_close(struct coord__postgres *pg);

/** This host will not do: try the next one, or end with `why`. Thread: confined. */
void coord__postgres_refuse(struct coord__postgres *pg, const struct coord_error *why,
                            coord_ms now);

/** Read, let time pass, write; events come from here. Thread: confined. */
void coord__postgres_process(struct coord__postgres *pg, coord_ms now);

bool coord__postgres_is_closed(const struct coord__postgres *pg); /* Thread: confined. */
bool coord__postgres_is_open(const struct coord__postgres *pg);   /* Thread: confined. */

/**
 * Send a statement with its Sync.
 *
 * @param values  `count` texts, NULL is SQL's null; borrowed for the call.
 * @return        false: it did not leave; process() will say that the session has ended.
 * Thread: confined.   Blocks: never.   Allocates: libpq's buffers.   Calls back: never.
 * Source: docs/postgres.md#terms, tests/contract/test_postgres.c.
 */
bool coord__postgres_send(struct coord__postgres *pg,
                          const struct coord__postgres_statement *statement, int count,
                          const char *const *values);

/** What to wait for. @return 0 or 1. Thread: confined. */
size_t coord__postgres_descriptor(const struct coord__postgres *pg, struct coord_descriptor *out);

/** When process() is due without an event. Thread: confined. */
coord_ms coord__postgres_deadline(const struct coord__postgres *pg);

/** The server's process as the login told it; behind a pooler it is not. Thread: confined. */
int coord__postgres_backend(const struct coord__postgres *pg);

/** Such as 150007; 0 while closed. Thread: confined. */
int coord__postgres_version(const struct coord__postgres *pg);

/** The text of one value; "" where it is null, or not there. Thread: any. */
const char *coord__postgres_text(const PGresult *rows, int row, int column);

/* ---- errors ---- */

/** What a failed statement means: code, cause and cure. Thread: any. */
void coord__postgres_explain_result(const PGresult *result, struct coord_error *out);

/** What a failed login means. Thread: confined. */
void coord__postgres_explain_login(const PGconn *conn, const char *where, struct coord_error *out);

/** Does this notice or result say that the session is over? Thread: any. */
bool coord__postgres_is_fatal(const PGresult *result);

#ifdef __cplusplus
}
#endif
#endif /* COORD_POSTGRES_CONNECTION_H */
