/* SPDX-License-Identifier: MIT
 * electors/postgres.h - who leads, by an advisory lock of PostgreSQL that is a lease.
 *
 * One private session carries all elections of a loop. The server drops a session that is silent
 * for a lease; a row in coord.term says what each term owes and owns; coord.fence() refuses the
 * writes of a term that is over. docs/postgres.md has the whole of it.
 */
#ifndef COORD_ELECTOR_POSTGRES_H
#define COORD_ELECTOR_POSTGRES_H

#include "coord/backend.h"
#include "coord/check.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_POSTGRES_INIT_TEXT_MAX = 2048
};

/**
 * The backend for `postgresql://` and `postgres://`. Options: coord.takeover=safe|fast,
 * coord.pooler=session; default ttl 6 s.
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/postgres.md, tests/contract/test_postgres.c.
 */
COORD_API const struct coord_backend_ops *coord_postgres_elector(void);

/**
 * The advisory lock of a name: the first 8 bytes of its SHA-256, big-endian, without the top bit.
 *
 * @param name   any bytes, not escaped.
 * @param bytes  how many.
 * @return       0 to 2^63-1; what pg_locks shows as classid << 32 | objid, with objsubid 1.
 * Thread: any.   Blocks: never.   Allocates: libcrypto may.   Calls back: never.
 * Source: docs/postgres.md#key, tests/unit/test_postgres_key.c.
 */
COORD_API uint64_t coord_postgres_key(const void *name, size_t bytes);

/**
 * Prepare a database: create what is missing of schema coord, table coord.term and function
 * coord.fence(), and check what is there. Safe when many run at once; changes nothing that exists.
 * For `coordctl init`: it blocks.
 *
 * @param uri    of PostgreSQL; without `coord.` options.
 * @param grants room for COORD_POSTGRES_INIT_TEXT_MAX; on success the GRANT lines for a role that
 *               elects, one that writes under a fence, one that watches and one that operates.
 * @param error  filled in on failure: cause and cure; may be NULL.
 * @return       COORD_OK; BAD_URI, UNREACHABLE, WRONG_PASSWORD, SERVER_FULL, SERVER_TOO_OLD,
 *               STANDBY, NO_RIGHT (the sentence says who can), FOREIGN_RECORD (something else
 *               has these names), NEWER_FORMAT, NO_ANSWER, NO_MEMORY. Nothing half-made is left.
 * Thread: any.   Blocks: up to 10 s to connect and 10 s for other sessions' locks.
 * Allocates: libpq's buffers.   Calls back: never.
 * Source: docs/postgres.md#init, tests/contract/test_postgres.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_postgres_init(const char *uri, char *grants,
                                                              struct coord_error *error);

/**
 * Look at a server and a database as `coordctl doctor` does; changes nothing. It blocks.
 *
 * @param uri     of PostgreSQL; without `coord.` options.
 * @param pooler  coord.pooler=session was asked for.
 * @param wall    us since 1970 by this host's clock, asked just before and after the server's.
 * @param out     room for COORD_CHECKS_MAX; a server that cannot be asked is one FAIL, too.
 * @return        how many were written; 0: out of memory, or the URI cannot be read.
 * Thread: any.   Blocks: up to 10 s to connect, twice, and 10 s a question.
 * Allocates: libpq's buffers.   Calls back: wall.
 * Source: docs/postgres.md#doctor, tests/fault/test_postgres_doctor.c.
 */
COORD_API size_t coord_postgres_doctor(const char *uri, bool pooler, uint64_t (*wall)(void),
                                       struct coord_check *out);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTOR_POSTGRES_H */
