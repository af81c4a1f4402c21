/* SPDX-License-Identifier: MIT
 * tests/support/fleet.h - some electors in one poll loop, watched: one leader, rising fences.
 */
#ifndef TEST_FLEET_H
#define TEST_FLEET_H

#include "coord/elector.h"

enum {
    FLEET_MEMBERS = 16,
    FLEET_GUARD = 60000 /* ms after which a test that hangs has failed; no measure of anything */
};

struct fleet_member {
    struct coord_elector *elector; /* NULL: gone */
    struct coord_lease *lease;
    char name[64];
    unsigned started;
    unsigned stopped;
    bool stuck;     /* is not driven: a process that was stopped */
    uint64_t fence; /* of its last term */
};

struct fleet {
    const struct coord_backend_ops *ops;
    struct coord_share share;
    struct fleet_member members[FLEET_MEMBERS];
    size_t count;
    long long wall_ms;        /* of the wall clock, less ours, at the beginning */
    struct coord_error error; /* of the last coord_elector_new() that failed */
    char log[64 * 1024];      /* every record, a line each */
    size_t log_bytes;
};

struct fleet_member_options {
    const char *name;
    const char *identity;
    const char *uri;
    coord_ms ttl;
    unsigned rank;
    const char *metadata;
    bool private; /* connections of its own */
    const struct coord_resolver *resolver;
};

coord_ms fleet_now(void);

void fleet_init(struct fleet *fleet, const struct coord_backend_ops *ops);
/** Let all go; nothing is told to the store. */
void fleet_fini(struct fleet *fleet);

/** @return NULL: refused, see fleet->error. */
struct fleet_member *fleet_add(struct fleet *fleet, const struct fleet_member_options *options);
/** Let one go, without a word to the store. */
void fleet_drop(struct fleet_member *member);

typedef bool (*fleet_condition)(void *ctx);
/** Drive until it holds; fails the test when it does not. */
void fleet_until(struct fleet *fleet, fleet_condition condition, void *ctx);
void fleet_drive(struct fleet *fleet, coord_ms duration);

bool fleet_leads(void *member);
bool fleet_leads_not(void *member);
bool fleet_settled(void *member);
/** The reason of a member. */
enum coord_reason fleet_reason(struct fleet_member *member);

/** Ask and wait for the answer: OBSERVE, ASK, INIT. */
enum coord_outcome fleet_query(struct fleet *fleet, struct fleet_member *member,
                               const struct coord_request *query);

bool fleet_logged(const struct fleet *fleet, const char *text);

#endif /* TEST_FLEET_H */
