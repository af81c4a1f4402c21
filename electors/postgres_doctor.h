/* SPDX-License-Identifier: MIT
 * electors/postgres_doctor.h - what the two sources of doctor for PostgreSQL share.
 */
#ifndef COORD_ELECTOR_POSTGRES_DOCTOR_H
#define COORD_ELECTOR_POSTGRES_DOCTOR_H

#include "connections/postgres.h"
#include "coord/check.h"

/* Before a question, in one message with it: that is one transaction, so that nothing stays behind
 * in a session that a pool gives to others. Whose search_path it was does not matter, either. */
#define COORD__POSTGRES_BOUNDED \
    "set local statement_timeout = '10s'; set local search_path = pg_catalog;\n"

#ifdef __cplusplus
extern "C" {
#endif

/** What the elector's session sets for itself, tried and undone; one FAIL where it cannot. */
void coord__postgres_doctor_settings(PGconn *conn, struct coord_checks *checks);

/** Rows of coord.term under a lock that is not their name's. */
void coord__postgres_doctor_keys(PGconn *conn, struct coord_checks *checks);

/** Somebody who has an election's lock and is not in its row. */
void coord__postgres_doctor_holders(PGconn *conn, struct coord_checks *checks);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTOR_POSTGRES_DOCTOR_H */
