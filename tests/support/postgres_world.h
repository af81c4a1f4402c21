/* SPDX-License-Identifier: MIT
 * tests/support/postgres_world.h - one prepared PostgreSQL for a group of tests, and for each of
 * them a name and its candidates.
 */
#ifndef TEST_POSTGRES_WORLD_H
#define TEST_POSTGRES_WORLD_H

#include "runtime/clock.h"
#include "tests/support/postgres_candidate.h"
#include "tests/support/postgres_server.h"
#include "tests/support/support.h"

struct world {
    struct candidates all;
    char name[128];
    struct candidate_wish wish; /* of the next one that joins */
};

/** The server of the group. */
extern struct postgres_server world_server;

/** Group set-up and tear-down of cmocka: a server with coord's schema in it. */
int world_start(void **state);
int world_start_with(const char *const *options);
int world_stop(void **state);

/** Begin a test: a name of its own. Skips where there is no server. */
void world_open(struct world *world, const char *what);

/** One candidate more, as `world->wish` says. */
struct candidate *world_join(struct world *world);

/** End a test: forget the candidates, fail if two of them led at once, or if anything is locked. */
void world_close(struct world *world);

/** The same where the test is about two that lead at once, or about a server that is gone. */
void world_abandon(struct world *world);

/** The server's process that holds the lock of this test's name; 0: nobody. */
int64_t world_holder(const struct world *world);

/** Drive the candidates until a question to the server (its first value) is answered with true. */
void world_until(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Drive them until nobody holds the lock of this test's name. */
void world_until_free(struct world *world);

/** pg_terminate_backend() of it, and wait until it is gone. */
void world_terminate(const struct world *world);

/** Somebody who is driven through other eyes: prepare the database of a server. */
void world_prepare(const struct postgres_server *server);

/** Text of explain(). */
const char *world_explain(const struct candidate *candidate);

#endif /* TEST_POSTGRES_WORLD_H */
