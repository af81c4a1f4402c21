/* SPDX-License-Identifier: MIT
 * tests/support/postgres_raw.h - the elector's own statements over raw libpq, written down by hand:
 * what the elector is measured against.
 */
#ifndef TEST_POSTGRES_RAW_H
#define TEST_POSTGRES_RAW_H

#include "tests/support/postgres_server.h"

#define POSTGRES_RAW_OWNER "0123456789abcdef0123456789abcdef"

struct postgres_raw {
    PGconn *conn;
    PGconn *listener;
    char key[24];
    char channel[24];
    char run[64];
    char timeline[24];
    char fence[24]; /* of the last acquire */
};

/** A session that is set up as the elector's, and one that listens to the name's channel. */
void postgres_raw_open(struct postgres_raw *raw, const struct postgres_server *server,
                       const char *name);
void postgres_raw_close(struct postgres_raw *raw);

/** Read what it was told, or wait for it. @param most ms. */
void postgres_raw_hear(struct postgres_raw *raw, int most);

/** Acquire and gate in one pipeline. Ends the process where it fails, as all of these do. */
void postgres_raw_acquire(struct postgres_raw *raw, const char *name);
void postgres_raw_release(struct postgres_raw *raw);
void postgres_raw_renew(struct postgres_raw *raw);

#endif /* TEST_POSTGRES_RAW_H */
