/* SPDX-License-Identifier: MIT
 * coord/agent.h - one member of a fleet: an elector, a bus and a coordinator joined, and the way
 * out, one bounded step after another. Pure: bytes and times go in, events come out.
 *
 * coord_agent_step() does all that can be done at `now` and stops at each thing that the host is to
 * hear; call it again until it says false, then wait for coord_agent_descriptors() or until
 * coord_agent_deadline(). runtime/member.h does that on a thread, for programs. `now` is ms of one
 * clock that never goes back; `wall` is us since the epoch and only stamps messages.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * unless it is said otherwise.
 */
#ifndef COORD_AGENT_H
#define COORD_AGENT_H

#include "coord/broker.h"
#include "coord/coordinator.h"
#include "coord/elector.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_agent;

enum coord_agent_role {
    COORD_AGENT_MEMBER = 0,  /* sends heartbeats; stands, if it has an elector */
    COORD_AGENT_OBSERVER = 1 /* sends no heartbeats, and works on nothing */
};

/** How far it is on its way out. A step ends by itself or by the deadline of leaving. */
enum coord_agent_phase {
    COORD_AGENT_STAYING = 0,
    COORD_AGENT_RELEASING = 1, /* leader-only work ends; at the end of the term at the latest */
    COORD_AGENT_DRAINING = 2,  /* all other work ends: until coord_agent_drained() */
    COORD_AGENT_FINISHING = 3, /* its last word is said, until it comes back */
    COORD_AGENT_LEFT = 4
};

/**
 * What carries its messages. An application's own bus gives `publish` and `next`, and hears the
 * topics of coord_agent_topic() by itself. Where messages are pushed, `next` is NULL and the host
 * hands them to coord_agent_take(). The other members may be NULL: somebody else drives the bus.
 */
struct coord_agent_bus {
    /* Send to everybody who hears the topic, us included. What fails is dropped and counted. */
    enum coord_err (*publish)(void *ctx, const char *topic, const void *bytes, size_t count,
                              coord_ms now);
    /* The oldest message that came in, borrowed until the next call. @return false: none. */
    bool (*next)(void *ctx, struct coord_broker_message *out);
    bool (*connected)(void *ctx); /* NULL: always */
    /* How often it came up. More than before: something may have been missed, though it was never
     * seen down. NULL: that cannot be. */
    uint64_t (*ups)(void *ctx);
    void (*process)(void *ctx, coord_ms now);
    coord_ms (*deadline)(void *ctx);
    size_t (*descriptors)(void *ctx, struct coord_descriptor *out);
    void *ctx;
};

/** Start from COORD_AGENT_CONFIG_INIT. Everything is copied but what is said to be kept. */
struct coord_agent_config {
    size_t size; /* sizeof(struct coord_agent_config) */
    enum coord_agent_role role;
    struct coord_coordinator_config coordinator; /* its `observer` follows from the role */
    const char *topic_prefix;                    /* NULL: COORD_TOPIC_PREFIX */
    struct coord_agent_bus bus;                  /* as coord_agent_bus_of() fills it in */
    struct coord_elector *elector; /* kept; driven here, its edges are told here. NULL: none */
    struct coord_lease *lease;     /* kept; instead of elector: driven, told and acknowledged
                                      elsewhere. Step the agent after each change of it */
    bool publishes_only;           /* a member that stands for nothing and follows nobody, in a
                                      large fleet: it hears what is for itself, and nothing more */
};

#define COORD_AGENT_CONFIG_INIT \
    COORD__INIT(coord_agent_config, COORD__SET(coordinator, COORD_COORDINATOR_CONFIG_INIT))

enum coord_agent_event_kind {
    COORD_AGENT_EVENT_EDGE = 1,    /* of a term. Unless the elector has explicit_ack, the next step
                                      after a stopping one says that the work has ended */
    COORD_AGENT_EVENT_FLEET = 2,   /* of the coordinator: peers, orphans, assignments, orders */
    COORD_AGENT_EVENT_LEAVING = 3, /* take no new work; again when the notice changes */
    COORD_AGENT_EVENT_DRAIN = 4,   /* end all work, then coord_agent_drained() */
    COORD_AGENT_EVENT_STAYING = 5, /* the notice was withdrawn: take work again */
    COORD_AGENT_EVENT_LEFT = 6     /* end the process */
};

/** Borrowed until the next call that is no query. */
struct coord_agent_event {
    enum coord_agent_event_kind kind;
    struct coord_edge edge;          /* EDGE */
    const struct coord_event *fleet; /* FLEET */
    enum coord_intent intent;        /* LEAVING, DRAIN, LEFT */
    coord_ms deadline;               /* LEAVING, DRAIN, LEFT: of the notice */
    coord_ms drain_by; /* LEAVING, DRAIN: a little earlier, so that the last word gets out */
    bool drained;      /* LEFT: the work had ended before the deadline */
    bool heard;        /* LEFT: ... and the last word was heard on the bus */
    bool released;     /* LEFT: nothing is held in the store, or it never stood */
};

struct coord_agent_counts {
    uint64_t published; /* taken by the bus */
    uint64_t unsent;    /* refused by it */
    uint64_t received;  /* on a topic of ours */
    uint64_t strange;   /* on another */
    uint64_t went_back; /* how often time did */
};

/**
 * Make an agent. A member that has an elector stands from now on.
 *
 * @param config  borrowed; see the struct for what is kept.
 * @param error   filled in on failure; may be NULL.
 * @return        COORD_OK; BAD_ARGUMENT: of the topic prefix, the coordinator's config, or a
 *                combination that makes no sense; VERSION_MISMATCH; NO_MEMORY.
 * Thread: confined.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/fleet.md, tests/unit/test_agent.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_agent_new(const struct coord_agent_config *config,
                                                          coord_ms now, struct coord_agent **out,
                                                          struct coord_error *error);

/** Let go without a word: peers will see it fall silent. NULL is accepted. */
COORD_API void coord_agent_free(struct coord_agent *agent);

/**
 * Do what can be done at `now`, up to the next event.
 *
 * @param wall  us since the epoch.
 * @param out   written when true.
 * @return      false: nothing more before coord_agent_deadline(), a descriptor or a message.
 * Thread: confined.   Blocks: never.   Allocates: for peers and names that are new.
 * Calls back: coord_agent_bus.
 * Source: docs/fleet.md, tests/unit/test_agent.c, tests/trace.
 */
COORD_API bool coord_agent_step(struct coord_agent *agent, coord_ms now, int64_t wall,
                                struct coord_agent_event *out);

/** When to step again without anything else; absolute, one that has passed: at once. */
COORD_API coord_ms coord_agent_deadline(struct coord_agent *agent);

/** What to wait for, 2 * COORD_DESCRIPTORS_MAX at most. @return how many. */
COORD_API size_t coord_agent_descriptors(struct coord_agent *agent, struct coord_descriptor *out);

/**
 * A message came in: for buses that push. The steps that follow judge nobody's silence, as more may
 * wait to be handed in; the next one at the deadline does.
 *
 * @param bytes  borrowed for the call.
 * @return       COORD_OK: taken in, or dropped and counted; BUSY: step until false, then again.
 * Thread: confined.   Blocks: never.   Allocates: for peers and names that are new.
 * Calls back: never.
 * Source: docs/fleet.md#an-applications-own-bus, tests/unit/test_agent.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_agent_take(struct coord_agent *agent,
                                                           const char *topic, const void *bytes,
                                                           size_t count, coord_ms now);

/** The topic of a type, where this agent has to hear it; else NULL. */
COORD_API const char *coord_agent_topic(const struct coord_agent *agent,
                                        enum coord_message_type type);

/**
 * What it works on, as its heartbeats say it.
 *
 * @param names  borrowed for the call; each NUL-terminated.
 * @return       COORD_OK; BAD_ARGUMENT; LIMIT; NO_MEMORY.
 * Thread: confined.   Blocks: never.   Allocates: for the copy.   Calls back: never.
 * Source: docs/fleet.md, tests/unit/test_agent.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_agent_serve(struct coord_agent *agent,
                                                            const char *const *names, size_t count,
                                                            int64_t in_flight_count,
                                                            double load_factor);

/**
 * Begin to leave: a preemption notice, a signal, a planned window. It stops standing, says so on
 * the bus, gives leadership up, then drains. Said again, the notice changes, except that graceful,
 * as a signal is, neither replaces a reason nor puts its deadline off.
 *
 * @param deadline  absolute ms: when it has to be gone. COORD_NEVER: it takes its time.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#leaving, tests/unit/test_agent.c.
 */
COORD_API void coord_agent_leave(struct coord_agent *agent, enum coord_intent intent,
                                 coord_ms deadline, coord_ms now);

/**
 * The notice was withdrawn. A term that is being stopped ends all the same; then it stands again.
 *
 * @return  COORD_OK; CLOSED: its work has ended and its last word is said, a new agent is needed.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#leaving, tests/unit/test_agent.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_agent_stay(struct coord_agent *agent, coord_ms now);

/** All work of the host has ended, that of a term included. Without a notice nothing happens. */
COORD_API void coord_agent_drained(struct coord_agent *agent, coord_ms now);

/** Work for a peer. All borrowed. */
struct coord_agent_work {
    const char *target;
    const char *const *names; /* of subscriptions */
    size_t count;
    int64_t priority;
};

/**
 * Assign work to a peer, under the fence of our term.
 *
 * @return  COORD_OK: given to the bus; NOT_LEADER; BAD_ARGUMENT; LIMIT; or what the bus says.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: coord_agent_bus.
 * Source: docs/fleet.md, tests/unit/test_agent.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_agent_assign(struct coord_agent *agent,
                                                             const struct coord_agent_work *work,
                                                             coord_ms now, int64_t wall);

COORD_API enum coord_agent_phase coord_agent_phase(const struct coord_agent *agent);

/** The coordinator inside, for its queries; change it only through this header. */
COORD_API struct coord_coordinator *coord_agent_coordinator(struct coord_agent *agent);

COORD_API struct coord_agent_counts coord_agent_counts(const struct coord_agent *agent);

/** Its elector or lease is gone, or about to be: it goes on without. */
COORD_API void coord_agent_forget_elector(struct coord_agent *agent, coord_ms now);

/**
 * A bus that is a broker.
 *
 * @param broker  kept by the bus.
 * @param driven  false: the agent drives it; true: somebody else does.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md, tests/unit/test_agent_bus.c.
 */
COORD_API struct coord_agent_bus coord_agent_bus_of(struct coord_broker *broker, bool driven);

/** Hear on a broker what the agent has to hear. @return COORD_OK, or what the broker says. */
COORD_API COORD_MUST_CHECK enum coord_err coord_agent_subscribe(const struct coord_agent *agent,
                                                                struct coord_broker *broker,
                                                                coord_ms now,
                                                                struct coord_error *error);

/** The word of a phase, such as "draining". Thread: any. */
COORD_API const char *coord_agent_phase_name(enum coord_agent_phase phase);

/** The stable name of an event, such as "DRAIN". Thread: any. */
COORD_API const char *coord_agent_event_name(enum coord_agent_event_kind kind);

#ifdef __cplusplus
}
#endif
#endif /* COORD_AGENT_H */
