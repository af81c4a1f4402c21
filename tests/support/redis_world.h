/* SPDX-License-Identifier: MIT
 * tests/support/redis_world.h - a private redis-server, a proxy before it, and a fleet of electors.
 */
#ifndef TEST_REDIS_WORLD_H
#define TEST_REDIS_WORLD_H

#include "tests/support/fleet.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

enum {
    REDIS_TTL = 600 /* ms */
};

struct redis_world {
    struct redis_server server;
    struct proxy proxy; /* its uri leads through it */
    bool has_proxy;
    struct fleet fleet;
    char name[64];
};

/** Fixtures: a server; one that loses nothing; one for replicas; one with a proxy before it. */
int redis_set_up(void **state);
int redis_set_up_durable(void **state);
int redis_set_up_primary(void **state);
int redis_set_up_proxy(void **state);
int redis_tear_down(void **state);

/** A member of the fleet that does not stand yet; fails the test when it is refused. */
struct fleet_member *redis_join(struct redis_world *w, const char *identity, const char *uri);
/** The same, and it stands. */
struct fleet_member *redis_stand(struct redis_world *w, const char *identity, const char *uri);
/** "anna" stands where nothing is owed, and leads. */
struct fleet_member *redis_lead(struct redis_world *w, const char *uri);
/** A field of the record, or "". */
void redis_read_field(const struct redis_world *w, const char *field, char *out, size_t bytes);
/** The operator's word that nobody leads, so that nothing is owed. */
void redis_clear(struct redis_world *w);

/* Conditions; ctx is a member, and the world for the last two. */
bool redis_takes_over(void *ctx);
bool redis_is_held(void *ctx);
bool redis_is_refused(void *ctx);
bool redis_has_failed(void *ctx);
bool redis_is_starting(void *ctx);
bool redis_either_leads(void *ctx);
bool redis_neither_leads(void *ctx);

#endif /* TEST_REDIS_WORLD_H */
