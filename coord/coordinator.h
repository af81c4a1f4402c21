/* SPDX-License-Identifier: MIT
 * coord/coordinator.h - who is alive, who leaves, and whose work is nobody's. No I/O, no clock.
 *
 * Bytes of messages and times go in; events and messages to be sent come out. Every rule here has
 * its reason in docs/guarantees.md. `now` is milliseconds of one clock that never goes back; `wall`
 * is microseconds since the epoch, and only stamps messages. In one round: hand in all messages
 * that are there, pull events until there is none, pull messages until there is none, and come back
 * at coord_coordinator_deadline() or with the next message.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * unless it is said otherwise.
 */
#ifndef COORD_COORDINATOR_H
#define COORD_COORDINATOR_H

#include "coord/leadership.h"
#include "coord/log.h"
#include "coord/message.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_coordinator;

/** Start from COORD_COORDINATOR_CONFIG_INIT. */
struct coord_coordinator_config {
    size_t size;                                  /* sizeof(struct coord_coordinator_config) */
    const char *instance_id;                      /* UTF-8, 1 to 255 bytes; copied */
    unsigned char incarnation[COORD_OWNER_BYTES]; /* random: one for each start of the process */
    coord_ms timeout;      /* T: silence that long is death; COORD_TIMEOUT_DEFAULT */
    coord_ms interval;     /* I: between our heartbeats; 0: T / 4 */
    coord_ms tick;         /* how late the host may come; part of what is refused below */
    bool observer;         /* sends no heartbeats; tells coord_coordinator_connected() instead */
    bool refuses_orders;   /* a notice for our id from somebody else is no order to leave */
    bool heartbeat_events; /* an event for each heartbeat that counts */
    enum coord_form form;  /* of the messages that go out */
    uint32_t peers_max;    /* at most 2^24 - 2 */
    uint32_t incarnations_max;  /* of one id */
    uint32_t subscriptions_max; /* different names that are known at once */
    uint32_t reports_max;       /* open or lately resolved */
    uint64_t seed;              /* of its hashes and jitter */
};

#define COORD_TIMEOUT_DEFAULT 15000

/** The deadline of a peer that leaves, and said that it takes its time. */
#define COORD_ENDLESS (COORD_NEVER - 1)

#define COORD_COORDINATOR_CONFIG_INIT                                              \
    COORD__INIT(coord_coordinator_config,                                          \
                COORD__SET(timeout, COORD_TIMEOUT_DEFAULT) COORD__SET(tick, 100)   \
                    COORD__SET(peers_max, 1000000) COORD__SET(incarnations_max, 8) \
                        COORD__SET(subscriptions_max, 1000000) COORD__SET(reports_max, 100000))

/** Of a peer. */
enum coord_peer_status {
    COORD_PEER_UNKNOWN = 0, /* never heard */
    COORD_PEER_HEALTHY = 1,
    COORD_PEER_LEAVING = 2, /* said so, and its time is not up */
    COORD_PEER_OVERRUN = 3, /* leaving past its deadline, and still heard */
    COORD_PEER_SILENT = 4,  /* not heard for T: dead, as far as one can tell */
    COORD_PEER_FINISHED = 5 /* said that its work has ended */
};

/** What is known of a peer; borrowed until the next call that is not a query. */
struct coord_peer {
    const char *id;
    size_t id_bytes;
    unsigned char incarnation[COORD_OWNER_BYTES]; /* a hash, if its text is not 32 hex digits */
    bool has_incarnation;
    enum coord_peer_status status;
    coord_ms last_heard;
    coord_ms deadline; /* of its leaving; COORD_ENDLESS; COORD_NEVER: it does not leave */
    enum coord_intent intent;
    int64_t in_flight_count;
    double load_factor;
    bool is_leader; /* as it says */
    uint32_t subscription_count;
};

/** A report: work that its owner does not look after any more. Times by our own clock. */
struct coord_orphan {
    unsigned char report_id[COORD_REPORT_ID_BYTES];
    uint64_t fence; /* 0: no leader has told it yet */
    uint64_t seq;
    const char *instance_id;
    size_t instance_id_bytes;
    unsigned char incarnation[COORD_OWNER_BYTES];
    bool has_incarnation;
    const char *subscription;
    size_t subscription_bytes;
    enum coord_cause cause;
    enum coord_certainty certainty;
    coord_ms since;
    coord_ms deadline;   /* COORD_NEVER: none */
    coord_ms safe_after; /* nobody takes the work before */
    bool open;           /* false: resolved */
    coord_ms listed;     /* when a leader told it last, as it does each T; 0: none has */
};

enum coord_event_kind {
    COORD_EVENT_PEER_APPEARED = 1,
    COORD_EVENT_PEER_HEARTBEAT = 2, /* only with heartbeat_events */
    COORD_EVENT_PEER_SILENT = 3,    /* once for each silence */
    COORD_EVENT_PEER_RECOVERED = 4,
    COORD_EVENT_PEER_LEAVING = 5, /* a notice, or a new one */
    COORD_EVENT_PEER_WITHDREW = 6,
    COORD_EVENT_PEER_OVERRUN = 7,
    COORD_EVENT_PEER_FINISHED = 8,
    COORD_EVENT_DUPLICATE_IDENTITY = 9, /* two processes use one id */
    COORD_EVENT_ASSIGNMENT = 10,        /* for us */
    COORD_EVENT_ORDER = 11,             /* somebody wants us to leave */
    COORD_EVENT_ORPHAN_OPENED = 12,     /* told by the leader, who may be we */
    COORD_EVENT_ORPHAN_UPDATED = 13,
    COORD_EVENT_ORPHAN_RESOLVED = 14
};

/** Borrowed until the next call that is not a query. */
struct coord_event {
    enum coord_event_kind kind;
    struct coord_peer peer;              /* PEER_*, DUPLICATE_IDENTITY */
    struct coord_orphan orphan;          /* ORPHAN_* */
    const struct coord_message *message; /* ASSIGNMENT, ORDER, PEER_HEARTBEAT; else NULL */
    coord_ms deadline;                   /* ORDER: when we are to be gone */
};

/** Why something was not taken in. Each is counted by itself. */
enum coord_refusal {
    COORD_REFUSED_PEERS_FULL = 0,
    COORD_REFUSED_INCARNATIONS_FULL = 1,
    COORD_REFUSED_SUBSCRIPTIONS_FULL = 2,
    COORD_REFUSED_REPORTS_FULL = 3,
    COORD_REFUSED_NO_MEMORY = 4,
    COORD_REFUSED_OLD_SEQ = 5,        /* a copy, or overtaken */
    COORD_REFUSED_OLD_TIME = 6,       /* the same, of a peer that has no seq */
    COORD_REFUSED_AFTER_FINISHED = 7, /* the incarnation has said its last word */
    COORD_REFUSED_STALE_FENCE = 8,    /* from one who led before */
    COORD_REFUSED_FORGED_SELF = 9     /* our own id and incarnation, but not from us */
};

enum {
    COORD_REFUSALS = 10
};

struct coord_coordinator_counts {
    uint64_t fault[COORD_FAULTS];
    uint64_t refused[COORD_REFUSALS];
    uint64_t went_back; /* how often time did */
    uint64_t anew;      /* how often all silences started anew */
    uint32_t peers;     /* known, with those that are silent */
    uint32_t healthy;
    uint32_t orphans; /* open */
};

/**
 * Make one.
 *
 * @param config  borrowed.
 * @param error   filled in on failure; may be NULL.
 * @return        COORD_OK; BAD_ARGUMENT: among others unless 3 I + tick < T, as two lost
 *                heartbeats are to kill nobody; BAD_NAME; NO_MEMORY.
 * Thread: confined.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/guarantees.md#silence, tests/unit/test_coordinator.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_coordinator_new(
    const struct coord_coordinator_config *config, coord_ms now, struct coord_coordinator **out,
    struct coord_error *error);

/** NULL is accepted. */
COORD_API void coord_coordinator_free(struct coord_coordinator *coordinator);

/* ---- what comes in ---- */

/**
 * A message came in on the topic of its type.
 *
 * @param bytes  borrowed until the events are pulled.
 * @return       COORD_OK: taken in, or dropped and counted by its refusal; BAD_MESSAGE: dropped and
 *               counted by its fault; BUSY: pull events first, then hand it in again.
 * Thread: confined.   Blocks: never.   Allocates: for peers and names that are new.
 * Calls back: never.
 * Source: docs/guarantees.md#silence, tests/unit/test_coordinator.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_coordinator_handle(
    struct coord_coordinator *coordinator, enum coord_message_type type, const void *bytes,
    size_t count, coord_ms now);

/** The connection to the bus is there, or is not. Without it nobody is judged; when it is back, all
 * silences start anew, and a member beats at once. Until it is told, a member takes it for there
 * and an observer does not. */
COORD_API void coord_coordinator_connected(struct coord_coordinator *coordinator, bool connected,
                                           coord_ms now);

/**
 * Who leads: we do, under that fence, until that instant at the latest; or not.
 *
 * @param until  the term's hard deadline as known now; tell it again as it moves.
 */
COORD_API void coord_coordinator_lead(struct coord_coordinator *coordinator, bool leading,
                                      uint64_t fence, coord_ms until, coord_ms now);

/** Forget a peer of that id, all its incarnations. @return false: none is known. */
COORD_API bool coord_coordinator_remove_peer(struct coord_coordinator *coordinator, const char *id,
                                             size_t id_bytes);

/* ---- what we are ---- */

/**
 * What our heartbeats say that we serve.
 *
 * @param subscriptions  an array of texts, see coord_texts(); copied.
 * @return               COORD_OK, BAD_ARGUMENT or NO_MEMORY.
 * Allocates: for the copy.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_coordinator_serve(
    struct coord_coordinator *coordinator, const struct coord_value *subscriptions,
    int64_t in_flight_count, double load_factor);

/** Say that we leave, at once and in each heartbeat. Again: a new intent or deadline. */
COORD_API void coord_coordinator_leave(struct coord_coordinator *coordinator,
                                       enum coord_intent intent, coord_ms deadline, coord_ms now);

/** We stay after all; the next heartbeat says so. */
COORD_API void coord_coordinator_withdraw(struct coord_coordinator *coordinator, coord_ms now);

/** Our work has ended: what was served until now is said to be finished, until that comes back or
 * the deadline of leaving is over. No heartbeat follows. */
COORD_API void coord_coordinator_finish(struct coord_coordinator *coordinator, coord_ms now);

/** The last word has come back, or will not be said any more. */
COORD_API bool coord_coordinator_finished(const struct coord_coordinator *coordinator);

COORD_API bool coord_coordinator_is_leaving(const struct coord_coordinator *coordinator);

/* ---- what comes out ---- */

/**
 * The next event that messages have made. Nobody is judged yet by the time that has passed: for a
 * host that has more messages to hand in, as one that was stopped for a while has.
 *
 * @return  false: none.
 * Source: docs/guarantees.md#silence, tests/unit/test_agent_pauses.c.
 */
COORD_API bool coord_coordinator_next_heard(struct coord_coordinator *coordinator, coord_ms now,
                                            struct coord_event *out);

/**
 * The next event, of messages or of the time that has passed, once all messages are handed in.
 *
 * @return  false: none before coord_coordinator_deadline() or the next message.
 * Source: docs/guide.md#events, tests/unit/test_coordinator.c.
 */
COORD_API bool coord_coordinator_next_event(struct coord_coordinator *coordinator, coord_ms now,
                                            struct coord_event *out);

/** One message to be sent. */
struct coord_outgoing {
    enum coord_message_type type;
    const void *bytes; /* borrowed until the next call that is not a query */
    size_t count;
};

/**
 * The next message to send, after the events. What cannot be sent is dropped: all that matters is
 * said again.
 *
 * @return  false: none before coord_coordinator_deadline().
 * Source: docs/guide.md#events, tests/unit/test_coordinator.c.
 */
COORD_API bool coord_coordinator_next_message(struct coord_coordinator *coordinator, coord_ms now,
                                              int64_t wall, struct coord_outgoing *out);

/** When to pull again without a message; absolute, COORD_NEVER: not at all. Coming more than T / 2
 * later than that counts as having slept. */
COORD_API coord_ms coord_coordinator_deadline(struct coord_coordinator *coordinator);

/**
 * Write an assignment under our fence; the host sends it.
 *
 * @param subscriptions  an array of texts.
 * @param out            written on success.
 * @return               COORD_OK; NOT_LEADER: we do not lead at this instant; BAD_ARGUMENT; LIMIT.
 * Source: docs/guide.md#assignment, tests/unit/test_coordinator.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_coordinator_assign(
    struct coord_coordinator *coordinator, const char *target,
    const struct coord_value *subscriptions, int64_t priority, coord_ms now, int64_t wall,
    struct coord_outgoing *out);

/**
 * Give leadership up, if it is ours at this instant.
 *
 * @return  COORD_OK; NOT_LEADER: nothing was released; or what the elector's release says.
 * Blocks: as the elector does.   Calls back: coord_leadership.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_coordinator_hand_over(
    struct coord_coordinator *coordinator, const struct coord_leadership *leadership, coord_ms now);

/* ---- queries ---- */

/** The next peer, in no order that means anything. @param at begin with 0. @return false: none. */
COORD_API bool coord_coordinator_next_peer(const struct coord_coordinator *coordinator,
                                           uint32_t *at, struct coord_peer *out);

/** The peer of an id that was heard last. @return false: not known. */
COORD_API bool coord_coordinator_find_peer(const struct coord_coordinator *coordinator,
                                           const char *id, size_t id_bytes, struct coord_peer *out);

/** A subscription of the peer that was heard last. @return false: there is no such. */
COORD_API bool coord_coordinator_subscription(const struct coord_coordinator *coordinator,
                                              const char *id, size_t id_bytes, uint32_t index,
                                              const char **name, size_t *name_bytes);

/** The next report that is open, and told by a leader or held by us. @param at begin with 0. */
COORD_API bool coord_coordinator_next_orphan(const struct coord_coordinator *coordinator,
                                             uint32_t *at, struct coord_orphan *out);

/** Is silence being judged: do we hear ourselves, and for how long without starting anew? */
COORD_API bool coord_coordinator_judging(const struct coord_coordinator *coordinator, coord_ms now,
                                         coord_ms *heard);

COORD_API struct coord_coordinator_counts coord_coordinator_counts(
    const struct coord_coordinator *coordinator);

/** The word of a status, such as "leaving". Thread: any. */
COORD_API const char *coord_peer_status_name(enum coord_peer_status status);

/** The stable name of an event, such as "PEER_SILENT". Thread: any. */
COORD_API const char *coord_event_name(enum coord_event_kind kind);

/** The stable name of a refusal, such as "PEERS_FULL". Thread: any. */
COORD_API const char *coord_refusal_name(enum coord_refusal refusal);

/* ---- registered functions, for hosts that would rather be called ---- */

struct coord_dispatcher;
typedef void (*coord_event_fn)(void *ctx, const struct coord_event *event);

/** A list of functions. @return COORD_OK or NO_MEMORY. Allocates: once. */
COORD_API COORD_MUST_CHECK enum coord_err coord_dispatcher_new(struct coord_dispatcher **out);
COORD_API void coord_dispatcher_free(struct coord_dispatcher *dispatcher);

/** Call a function for each event of a kind, in the order of registration. @return COORD_OK or
 * LIMIT. */
COORD_API COORD_MUST_CHECK enum coord_err coord_dispatcher_on(struct coord_dispatcher *dispatcher,
                                                              enum coord_event_kind kind,
                                                              coord_event_fn fn, void *ctx);

/** Take the first equal registration away. @return false: none. */
COORD_API bool coord_dispatcher_remove(struct coord_dispatcher *dispatcher,
                                       enum coord_event_kind kind, coord_event_fn fn, void *ctx);

/** Pull all events and call what is registered for them. Calls back: coord_event_fn, which may
 * query, register and remove, and must not hand messages in. @return how many there were. */
COORD_API size_t coord_dispatcher_run(struct coord_dispatcher *dispatcher,
                                      struct coord_coordinator *coordinator, coord_ms now);

#ifdef __cplusplus
}
#endif
#endif /* COORD_COORDINATOR_H */
