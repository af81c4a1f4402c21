/* SPDX-License-Identifier: MIT
 * runtime/member_inside.h - between the sources of members only. The runtime's lock guards it all.
 */
#ifndef COORD_MEMBER_INSIDE_H
#define COORD_MEMBER_INSIDE_H

#include "runtime/inside.h"
#include "runtime/member.h"

enum {
    COORD__MEMBER_MAGIC = 0x6d656d62,
    COORD__MEMBER_SINKS = 8,
    COORD__MEMBER_EVENTS = 4096,        /* that wait for the host */
    COORD__MEMBER_EVENT_BYTES = 8 << 20 /* of them, with the messages that they show */
};

/* An event that waits for the host. Its texts and its message lie behind it. */
struct coord__notice {
    struct coord__notice *next;
    size_t size;
    struct coord_agent_event event;
    struct coord_event fleet;
    struct coord_message message;
    unsigned char bytes[];
};

struct coord_member {
    struct coord__rider rider; /* first */
    uint32_t magic;
    char id[COORD_NAME_MAX + 1];
    char fleet[COORD_ESCAPED_MAX];
    struct coord_election *election; /* NULL: none */
    struct coord_agent *agent;       /* NULL: closed */
    struct coord_bus *bus;           /* pinned; NULL: closed */
    int signal;
    uint64_t generation; /* of that descriptor */
    coord_ms leave_within;
    bool explicit_drain;
    coord_member_fn fn;
    void *ctx;
    struct coord_log log;

    struct coord__notice *first;
    struct coord__notice *last;
    size_t notices;
    size_t notice_bytes;
    uint64_t lost_events;
    bool left;
    struct coord_agent_event left_event;
    struct coord_sink *sinks[COORD__MEMBER_SINKS];
    size_t sink_count;
    unsigned char work[COORD_MESSAGE_MAX];
};

static inline struct coord_member *coord__member_of(struct coord__rider *rider)
{
    return (struct coord_member *)(void *)rider; /* its first member */
}

/* Begin a call. @return false: this is a forked child, nothing is locked. */
bool coord__member_enter(struct coord_member *member);
/* The agent was told something: have it and its election driven. */
void coord__member_touch(struct coord_member *member);

/* member_tell.c */
void coord__member_note(struct coord_member *member, const struct coord_agent_event *event,
                        coord_ms now);
bool coord__member_tells(const struct coord__rider *rider);
void coord__member_tell(struct coord__rider *rider);
void coord__member_forget_notices(struct coord_member *member);

/* member_bus.c */
struct coord_agent_bus coord__member_bus(struct coord_member *member);
enum coord_err coord__member_join_bus(struct coord_member *member, coord_ms now,
                                      struct coord_error *error);
void coord__member_leave_bus(struct coord_member *member, bool forked);
bool coord__member_bus_up(const struct coord_member *member);

#endif /* COORD_MEMBER_INSIDE_H */
