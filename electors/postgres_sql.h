/* SPDX-License-Identifier: MIT
 * electors/postgres_sql.h - every statement that the PostgreSQL elector sends, and what it answers.
 *
 * docs/postgres.md has the table and the reasons. Names, identities and owners are printable ASCII
 * (coord/escape.h), numbers come as decimal text, metadata as bytea's hex.
 */
#ifndef COORD_ELECTOR_POSTGRES_SQL_H
#define COORD_ELECTOR_POSTGRES_SQL_H

#include "connections/postgres.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD__POSTGRES_FORMAT = 1 /* of a row of coord.term */
};

/* Indexes of the prepared ones. */
enum coord__postgres_sql {
    COORD__POSTGRES_ACQUIRE = 0,
    COORD__POSTGRES_GATE,
    COORD__POSTGRES_RENEW,
    COORD__POSTGRES_RENEW_LOCKS,
    COORD__POSTGRES_STRIKE,
    COORD__POSTGRES_RELEASE,
    COORD__POSTGRES_UNLOCK,
    COORD__POSTGRES_OBSERVE,
    COORD__POSTGRES_ASK,
    COORD__POSTGRES_INIT,
    COORD__POSTGRES_BLOCKERS,
    COORD__POSTGRES_OPENING, /* from here on not prepared: once in a session */
    COORD__POSTGRES_SETTINGS,
    COORD__POSTGRES_PROBE,
    COORD__POSTGRES_PROBE_LESS,
    COORD__POSTGRES_STATEMENTS
};

/** Static. Thread: any. */
const struct coord__postgres_statement *coord__postgres_sql(enum coord__postgres_sql which);

/* Columns of ACQUIRE. Parameters: name, key, owner, identity, lease, run's head, timeline, seen,
 * takeover, metadata. */
enum coord__postgres_acquire_column {
    COORD__ACQUIRE_WON = 0, /* the lock was free */
    COORD__ACQUIRE_HELD,    /* it is ours now, and so is the row */
    COORD__ACQUIRE_FENCE,
    COORD__ACQUIRE_OWED,
    COORD__ACQUIRE_KNOWN, /* not granted, from here on: there is a row */
    COORD__ACQUIRE_IDENTITY,
    COORD__ACQUIRE_ROW_FENCE,
    COORD__ACQUIRE_DEBT,
    COORD__ACQUIRE_RESIGNED,
    COORD__ACQUIRE_SINCE_US,
    COORD__ACQUIRE_METADATA,
    COORD__ACQUIRE_SUCCESSOR, /* for whom it is kept; "" */
    COORD__ACQUIRE_RESERVED_MS,
    COORD__ACQUIRE_KEY_MATCHES,
    COORD__ACQUIRE_TAKEOVER,
    COORD__ACQUIRE_SAME_RUN,
    COORD__ACQUIRE_FORMAT
};

/* Columns of RENEW, one line for each key asked for that has a row. Parameters: keys. */
enum coord__postgres_renew_column {
    COORD__RENEW_BACKEND = 0,
    COORD__RENEW_KEY,
    COORD__RENEW_FENCE,
    COORD__RENEW_OWNER,
    COORD__RENEW_PID,
    COORD__RENEW_RESIGNED,
    COORD__RENEW_ASKED,
    COORD__RENEW_ASKED_FOR,
    COORD__RENEW_LOCKED /* RENEW_LOCKS only tells; RENEW says true */
};

/* Columns of OBSERVE, one line. Parameters: name, key, identity. */
enum coord__postgres_observe_column {
    COORD__OBSERVE_LOCKED = 0, /* somebody has the lock */
    COORD__OBSERVE_LEADS,      /* and the row is that session's */
    COORD__OBSERVE_IDENTITY,
    COORD__OBSERVE_FENCE,
    COORD__OBSERVE_DEBT,
    COORD__OBSERVE_SINCE_US,
    COORD__OBSERVE_METADATA,
    COORD__OBSERVE_SUCCESSOR, /* for whom it is kept; "" */
    COORD__OBSERVE_RESERVED_MS,
    COORD__OBSERVE_FOREIGN /* application_name of a holder that is not in the row; "" */
};

/* Columns of PROBE. PROBE_LESS is for servers that keep their system functions to themselves. */
enum coord__postgres_probe_column {
    COORD__PROBE_PID = 0,
    COORD__PROBE_STANDBY,
    COORD__PROBE_LEASE_MS, /* idle_session_timeout as the server holds it */
    COORD__PROBE_LOCK_MS,
    COORD__PROBE_STATEMENT_MS,
    COORD__PROBE_COMMIT,
    COORD__PROBE_ISOLATION,
    COORD__PROBE_READ_ONLY,
    COORD__PROBE_TIMELINE, /* 0: unknown */
    COORD__PROBE_RUN       /* head of the run: system identifier and timeline; "": unknown */
};

/* ---- of `coordctl init` ---- */

enum {
    COORD__POSTGRES_INIT_STEPS = 3
};

/** Schema, table, function, in that order; each is run only where it is missing. */
extern const char *const coord__postgres_init_steps[COORD__POSTGRES_INIT_STEPS];

/** "coord format 1: ..." as the comments of the table and the function say. @return 0: not ours. */
unsigned long coord__postgres_format_of(const char *note);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTOR_POSTGRES_SQL_H */
