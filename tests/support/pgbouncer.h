/* SPDX-License-Identifier: MIT
 * tests/support/pgbouncer.h - a private pgbouncer before a test's PostgreSQL, on a unix socket.
 */
#ifndef TEST_PGBOUNCER_H
#define TEST_PGBOUNCER_H

#include "tests/support/postgres_server.h"

struct pgbouncer {
    pid_t pid;
    char folder[64];
    char uri[POSTGRES_URI];
};

/** Skip with a reason when it is not installed; in CI that is a failure. PGBOUNCER may name it. */
void pgbouncer_needed(void);

/**
 * @param mode      "session" or "transaction".
 * @param size      sessions of the server in the pool.
 * @param settings  more lines of its file, or "".
 */
void pgbouncer_start(struct pgbouncer *pooler, const struct postgres_server *server,
                     const char *mode, int size, const char *settings);

void pgbouncer_stop(struct pgbouncer *pooler);

#endif /* TEST_PGBOUNCER_H */
