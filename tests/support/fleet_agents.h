/* SPDX-License-Identifier: MIT
 * tests/support/fleet_agents.h - a fleet over a real server: two hundred whole agents in this
 * process, on one runtime and so on its connections, and more in processes of their own.
 *
 * One loop of the test drives those of this process. Each agent notes what it is told of the
 * others. How long the loop was kept from driving is measured: who is not driven is not heard.
 */
#ifndef TEST_FLEET_AGENTS_H
#define TEST_FLEET_AGENTS_H

#include "runtime/member.h"
#include "tests/support/fleet_process.h"

#include <sys/types.h>

enum {
    FLEET_GUARD_MS = 90000 /* a guard against hanging, no measure of anything */
};

struct fleet_agents;

struct fleet_agent {
    struct fleet_agents *all;
    char id[FLEET_ID];
    struct coord_bus *bus;
    struct coord_election *election; /* of the first; NULL: it does not stand */
    struct coord_member *member;     /* NULL: not open */
    struct fleet_news news;
};

struct fleet_agents {
    const struct fleet_store *store;
    struct coord_runtime *runtime;
    struct fleet_agent agent[FLEET_AGENTS];
    struct fleet_agent late;    /* an observer that joins later */
    struct coord_bus *stranger; /* nobody's: publishes what should not be there */
    struct fleet_pace pace;
    const char *copied_of; /* whose heartbeat is kept */
    unsigned char beat[COORD_MESSAGE_MAX];
    size_t beat_bytes;
};

/** Open them all. Zero-initialised before; close with fleet_agents_close(). */
void fleet_agents_open(struct fleet_agents *all, const struct fleet_store *store);
/** Without a word. */
void fleet_agents_close(struct fleet_agents *all);

/** Open the observer that comes late. */
void fleet_agents_join_late(struct fleet_agents *all);

typedef bool (*fleet_agents_condition)(struct fleet_agents *all, void *ctx);
/** Drive until it holds; fails the test when it does not within the guard. */
void fleet_agents_until(struct fleet_agents *all, const char *what,
                        fleet_agents_condition condition, void *ctx);

/** Publish something as nobody, and fail the test when it is refused. */
void fleet_agents_publish(struct fleet_agents *all, enum coord_message_type type, const void *bytes,
                          size_t count);

/** The view of one of them. */
struct coord_member_view fleet_agents_view(struct fleet_agent *agent);

/** What they are told to serve beside what is theirs. */
void fleet_agents_serve(struct fleet_agent *agent, const char *const *names, size_t count);

/* ---- conditions; ctx is what is said ---- */

/** All buses are up; are down. ctx: unused. */
bool fleet_all_are_up(struct fleet_agents *all, void *ctx);
bool fleet_all_are_down(struct fleet_agents *all, void *ctx);
/** Each sees so many others in good health, and judges. ctx: an unsigned. */
bool fleet_all_see(struct fleet_agents *all, void *ctx);
/** Somebody leads, by the word of the store. ctx: unused. */
bool fleet_somebody_leads(struct fleet_agents *all, void *ctx);
/** The clock says so. ctx: a coord_ms. */
bool fleet_time_is(struct fleet_agents *all, void *ctx);
/** A heartbeat of `copied_of` was kept. ctx: unused. */
bool fleet_has_beat(struct fleet_agents *all, void *ctx);

#endif /* TEST_FLEET_AGENTS_H */
