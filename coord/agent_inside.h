/* SPDX-License-Identifier: MIT
 * coord/agent_inside.h - between the sources of agents only.
 */
#ifndef COORD_AGENT_INSIDE_H
#define COORD_AGENT_INSIDE_H

#include "coord/agent.h"

enum {
    COORD__AGENT_NAMES_ROOM = 64 * 1024 /* bytes of a list of subscriptions */
};

struct coord_agent {
    struct coord_coordinator *coordinator;
    struct coord_agent_bus bus;
    struct coord_elector *elector; /* NULL: none, or driven elsewhere */
    struct coord_lease *lease;     /* NULL: none */
    bool stands;
    bool observer;
    bool publishes_only;
    char id[COORD_NAME_MAX + 1];
    char topic[COORD_MESSAGE_TYPES][COORD_TOPIC_MAX];
    coord_ms now;

    struct coord_claim told; /* to the coordinator */
    uint64_t term;           /* the latest that was seen */
    bool edge_given;
    bool connected;
    uint64_t ups;   /* of the bus, when it was looked at last */
    bool due;       /* the host said something, or messages may be waiting still */
    bool quiet;     /* every event was pulled, so that a message may be handed in */
    bool handed_in; /* one was, and another may follow */

    coord_ms interval; /* of its heartbeats */
    coord_ms said_at;  /* all that was due */

    enum coord_agent_phase phase;
    bool announce; /* the notice has to get out before anything else is done */
    bool drained;
    bool heard; /* the last word came back */
    enum coord_intent intent;
    coord_ms deadline;
    coord_ms drain_by;
    enum coord_agent_phase told_phase;
    bool told_notice; /* as it is now */

    struct coord_event event;
    struct coord_agent_counts counts;
    unsigned char message[COORD_MESSAGE_MAX]; /* that was handed in last; its views point here */
    unsigned char names[COORD__AGENT_NAMES_ROOM];
};

void coord__agent_pass(struct coord_agent *agent, coord_ms now);

/* agent_leave.c. Each step ends when it is done, and all of them at the deadline. */
void coord__agent_advance(struct coord_agent *agent);
bool coord__agent_tell_notice(struct coord_agent *agent, struct coord_agent_event *out);
bool coord__agent_tell_phase(struct coord_agent *agent, struct coord_agent_event *out);

#endif /* COORD_AGENT_INSIDE_H */
