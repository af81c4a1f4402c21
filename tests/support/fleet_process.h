/* SPDX-License-Identifier: MIT
 * tests/support/fleet_process.h - one agent in a process of its own, and what agents note of each
 * other.
 */
#ifndef TEST_FLEET_PROCESS_H
#define TEST_FLEET_PROCESS_H

#include "runtime/member.h"
#include "tests/support/sanitized.h"

#include <sys/types.h>

/* T of these fleets: so long that a machine which is busy with other things is not silence. A
 * sanitizer makes each of them dear, and what is said grows with the square of the fleet. */
#if SANITIZED
#define FLEET_T      5000
#define FLEET_AGENTS 50
#else
#define FLEET_T      3000
#define FLEET_AGENTS 200
#endif

enum {
    FLEET_ID = 16,
    FLEET_DOOMED = 4, /* ids that may die: "halted-1", "halted-2", "killed-1", "killed-2" */
    FLEET_TTL = FLEET_T
};

/** The ids of those that may die; each serves work of its own name. */
extern const char *const fleet_doomed[FLEET_DOOMED];

/** What a server brings along. */
struct fleet_store {
    const char *name;
    const struct coord_bus_scheme *buses;
    const struct coord_scheme *electors;
    const char *uri;
};

/** Stand in the fleet's election. @return NULL: it was refused. */
struct coord_election *fleet_stand(struct coord_runtime *runtime, const struct fleet_store *store,
                                   const char *id);

/** What one was told: of the doomed by name, of all others by number only. */
struct fleet_news {
    unsigned silent[FLEET_DOOMED];
    unsigned opened[FLEET_DOOMED];
    unsigned resolved[FLEET_DOOMED];
    unsigned wrongly_silent; /* a death of somebody who lives */
    unsigned duplicates;
};

/** Note an event. */
void fleet_news_hear(struct fleet_news *news, const struct coord_agent_event *event);

/** How evenly a loop was driven. */
struct fleet_pace {
    coord_ms last;
    coord_ms longest; /* between two turns */
};

void fleet_pace_turn(struct fleet_pace *pace);

/** By the guarantees' own words: was the loop never kept from driving so long that a living peer
 * may have been taken for dead? */
bool fleet_pace_is_good(const struct fleet_pace *pace);

struct fleet_process {
    pid_t pid; /* 0: none */
    int end;   /* a byte: it ends, and reports */
    int report;
};

struct fleet_report {
    struct fleet_news news;
    struct fleet_pace pace;
};

/** Fork an agent of that id, which stands, and serves work of the same name. Nothing of coord may
 * be open. */
void fleet_process_start(struct fleet_process *process, const struct fleet_store *store,
                         const char *id);
void fleet_process_signal(const struct fleet_process *process, int number);
/** kill -9, and wait until it is gone. */
void fleet_process_kill(struct fleet_process *process);
/** Let it end by itself. */
struct fleet_report fleet_process_end(struct fleet_process *process);

#endif /* TEST_FLEET_PROCESS_H */
