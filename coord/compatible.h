/* SPDX-License-Identifier: MIT
 * coord/compatible.h - a coordinator that answers as the seed library does, point for point.
 *
 * It judges by the wall clocks of senders against our own, keeps a notice for ever, tells a timeout
 * again at each check, and takes almost any value. Use coord/coordinator.h unless answers have to
 * agree with peers of the seed library; docs/guide.md#compatible tells what that costs.
 *
 * Every `wall` is microseconds since the epoch, UTC, by the local clock. Where the seed library
 * raises, a call here returns an error, and in the same cases.
 *
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * unless it is said otherwise.
 */
#ifndef COORD_COMPATIBLE_H
#define COORD_COMPATIBLE_H

#include "coord/leadership.h"
#include "coord/message.h"

#ifdef __cplusplus
extern "C" {
#endif

struct coord_compatible;

/** Computed at each reading; the order is the seed library's own. */
enum coord_seed_status {
    COORD_SEED_UNKNOWN = 0,
    COORD_SEED_HEALTHY = 1,
    COORD_SEED_DRAINING = 2,
    COORD_SEED_STALE = 3,
    COORD_SEED_TERMINATED = 4
};

/** What is known of a peer. Borrowed until the next call that changes the coordinator. */
struct coord_seed_peer {
    struct coord_value id;                /* text, as a rule */
    const struct coord_record *heartbeat; /* the last one, or NULL */
    const struct coord_record *notice;    /* the last one, or NULL */
};

/** The age at which a peer's status turns stale, whatever the configured timeout is. */
#define COORD_SEED_STALE_S 15.0

/** How long a drain takes unless it is said. */
#define COORD_SEED_DRAIN_S 30.0

struct coord_compatible_config {
    size_t size;             /* sizeof(struct coord_compatible_config) */
    const char *instance_id; /* copied; any text */
    size_t instance_id_bytes;
    double timeout_s;                          /* for the check of timeouts; any number */
    const struct coord_leadership *leadership; /* kept; NULL: no elector */
    size_t peers_max;                          /* more are refused and counted */
    size_t bytes_max; /* of all kept messages together; more are refused and counted */
};

#define COORD_COMPATIBLE_CONFIG_INIT                                                               \
    COORD__INIT(coord_compatible_config, COORD__SET(timeout_s, 15.0) COORD__SET(peers_max, 100000) \
                                             COORD__SET(bytes_max, (size_t)256 * 1024 * 1024))

/** What it had to refuse; each also came back as an error. */
struct coord_compatible_counts {
    uint64_t fault[COORD_FAULTS]; /* messages that could not be read, by enum coord_message_fault */
    uint64_t peers_full;          /* messages of a peer above peers_max */
    uint64_t bytes_full;          /* messages that would have passed bytes_max */
};

/** For callbacks: which, and about what. Borrowed for the call. */
enum coord_compatible_kind {
    COORD_COMPATIBLE_HEARTBEAT = 0,
    COORD_COMPATIBLE_PEER_SHUTDOWN = 1,
    COORD_COMPATIBLE_PEER_TIMEOUT = 2,
    COORD_COMPATIBLE_WORK_ASSIGNMENT = 3
};

struct coord_compatible_event {
    enum coord_compatible_kind kind;
    const struct coord_record *message; /* NULL for a timeout */
    const struct coord_value *id;       /* of the peer; of an assignment, its target */
};

/** It may call anything of the coordinator but coord_compatible_free(). */
typedef void (*coord_compatible_fn)(void *ctx, const struct coord_compatible_event *event);

/**
 * Make one.
 *
 * @param config  borrowed.
 * @param out     written on success; give it back with coord_compatible_free().
 * @return        COORD_OK, BAD_ARGUMENT or NO_MEMORY.
 * Thread: confined.   Blocks: never.   Allocates: once.   Calls back: never.
 * Source: docs/guide.md#compatible, tests/unit/test_compatible.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_new(
    const struct coord_compatible_config *config, struct coord_compatible **out);

/** NULL is accepted. */
COORD_API void coord_compatible_free(struct coord_compatible *coordinator);

/* ---- what comes in ---- */

/**
 * A message came in on a topic: keep it, and call what is registered for it. Messages of our own
 * id are ignored, and so is an assignment to another.
 *
 * @param bytes  borrowed; copied when kept.
 * @return       COORD_OK; BAD_MESSAGE: it could not be read, and changed nothing (a notice whose
 *               deadline has no offset is kept, and calls nobody); LIMIT, NO_MEMORY: not kept.
 * Thread: confined.   Blocks: never.   Allocates: per message.   Calls back: coord_compatible_fn.
 * Source: docs/guide.md#compatible, build/tests/vectors_eventsource.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_handle_heartbeat(
    struct coord_compatible *coordinator, const void *bytes, size_t count, int64_t wall);

/** As coord_compatible_handle_heartbeat(). Calls back: coord_compatible_fn. */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_handle_peer_shutdown(
    struct coord_compatible *coordinator, const void *bytes, size_t count, int64_t wall);

/** As coord_compatible_handle_heartbeat(), and nothing is kept. Calls back: coord_compatible_fn. */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_handle_work_assignment(
    struct coord_compatible *coordinator, const void *bytes, size_t count, int64_t wall);

/**
 * Find the peers whose last heartbeat is older than the timeout and who gave no notice, and call
 * what is registered for each; again at each check.
 *
 * @param ids    written up to `room`; borrowed until the next call that changes the coordinator.
 * @param count  written: how many there are.
 * @return       COORD_OK; BAD_MESSAGE: some peer's heartbeat has no offset, and nobody was called.
 * Thread: confined.   Blocks: never.   Allocates: per call.   Calls back: coord_compatible_fn.
 * Source: docs/guide.md#compatible, build/tests/vectors_eventsource.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_check_timeouts(
    struct coord_compatible *coordinator, int64_t wall, struct coord_value *ids, size_t room,
    size_t *count);

/** Forget a peer. @return false: it is not known. */
COORD_API bool coord_compatible_remove_peer(struct coord_compatible *coordinator,
                                            const struct coord_value *id);

/* ---- what is known ---- */

/** All peers in the order in which they were first heard. @return how many, also above `room`. */
COORD_API size_t coord_compatible_known_peers(const struct coord_compatible *coordinator,
                                              struct coord_seed_peer *peers, size_t room);

/**
 * The peers whose status is healthy; or draining; or whose work is orphaned (draining, terminated
 * or stale, with at least one subscription).
 *
 * @param peers  written up to `room`; may be NULL with room 0.
 * @param count  written on success: how many there are.
 * @return       COORD_OK; BAD_MESSAGE: some peer's time has no offset, and nothing can be told.
 * Source: docs/guide.md#compatible, build/tests/vectors_eventsource.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_healthy_peers(
    const struct coord_compatible *coordinator, int64_t wall, struct coord_seed_peer *peers,
    size_t room, size_t *count);
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_draining_peers(
    const struct coord_compatible *coordinator, int64_t wall, struct coord_seed_peer *peers,
    size_t room, size_t *count);
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_orphaned_subscriptions(
    const struct coord_compatible *coordinator, int64_t wall, struct coord_seed_peer *peers,
    size_t room, size_t *count);

/**
 * The status of a peer, which may also have been put together by hand.
 *
 * @return  COORD_OK; BAD_MESSAGE: the time that decides has no offset.
 * Source: docs/guide.md#compatible, build/tests/vectors_eventsource.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_seed_status(const struct coord_seed_peer *peer,
                                                            int64_t wall,
                                                            enum coord_seed_status *out);

/** What a peer serves: the notice's list if there is one, else the heartbeat's, else none. Walk it
 * with coord_names_begin(). */
COORD_API struct coord_value coord_seed_subscriptions(const struct coord_seed_peer *peer);

/** The word of a status, such as "stale". */
COORD_API const char *coord_seed_status_name(enum coord_seed_status status);

COORD_API struct coord_compatible_counts coord_compatible_counts(
    const struct coord_compatible *coordinator);

/* ---- derived values ---- */

/** Seconds until the deadline of a notice, not below zero. @return COORD_OK; BAD_MESSAGE: naive. */
COORD_API COORD_MUST_CHECK enum coord_err coord_notice_remaining(const struct coord_record *notice,
                                                                 int64_t wall, double *out);

/** Is the deadline reached? True exactly at it. @return COORD_OK; BAD_MESSAGE: naive. */
COORD_API COORD_MUST_CHECK enum coord_err coord_notice_expired(const struct coord_record *notice,
                                                               int64_t wall, bool *out);

/** Is a heartbeat older than that? Not at that very age. @return COORD_OK; BAD_MESSAGE: naive. */
COORD_API COORD_MUST_CHECK enum coord_err coord_heartbeat_stale(
    const struct coord_record *heartbeat, double max_age_s, int64_t wall, bool *out);

/* ---- what goes out: written into the caller's buffer ---- */

/**
 * Write a heartbeat, with `is_leader` as the elector says.
 *
 * @param subscriptions  an array of texts, see coord_texts(); an absent one is empty.
 * @param bytes          written on success.
 * @return               COORD_OK; LIMIT: the room is too small; BAD_ARGUMENT: wall has no year.
 * Calls back: coord_leadership.
 * Source: docs/guide.md#compatible, build/tests/vectors_eventsource.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_create_heartbeat(
    struct coord_compatible *coordinator, const struct coord_value *subscriptions,
    int64_t in_flight_count, double load_factor, int64_t wall, enum coord_form form, void *buffer,
    size_t room, size_t *bytes);

struct coord_compatible_drain {
    enum coord_intent intent;
    struct coord_value subscriptions;
    int64_t in_flight_count;
    double drain_s; /* until the deadline; any finite number, rounded to microseconds */
    struct coord_value metadata; /* absent: empty */
};

/**
 * Write a notice of our own shutdown, keep a copy, and be shutting down from now on. Leadership is
 * not touched. A second one replaces the first.
 *
 * @param drain  borrowed.
 * @param bytes  written on success.
 * @return       COORD_OK; LIMIT: the room is too small; BAD_ARGUMENT: no such deadline; NO_MEMORY.
 * Allocates: per call.
 * Source: docs/guide.md#compatible, build/tests/vectors_eventsource.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_create_shutdown_notification(
    struct coord_compatible *coordinator, const struct coord_compatible_drain *drain, int64_t wall,
    enum coord_form form, void *buffer, size_t room, size_t *bytes);

/**
 * Write an assignment of work to a peer. With an elector only one who leads at this instant may.
 *
 * @param target  1 to 255 bytes.
 * @param bytes   written on success.
 * @return        COORD_OK; NOT_LEADER; LIMIT: the room is too small; BAD_ARGUMENT.
 * Blocks: as the elector does.   Calls back: coord_leadership.
 * Source: docs/guide.md#compatible, tests/unit/test_compatible.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_create_work_assignment(
    struct coord_compatible *coordinator, const char *target,
    const struct coord_value *subscriptions, int64_t priority, int64_t wall, enum coord_form form,
    void *buffer, size_t room, size_t *bytes);

/**
 * Give leadership up, if it is ours at this instant.
 *
 * @return  COORD_OK; NOT_LEADER: nothing was released; or what the elector's release says.
 * Blocks: as the elector does.   Calls back: coord_leadership.
 * Source: docs/guide.md#compatible, tests/unit/test_compatible.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_initiate_leadership_handoff(
    struct coord_compatible *coordinator);

/** Is leadership ours now? Without an elector it is not. Calls back: coord_leadership. */
COORD_API bool coord_compatible_verify_leadership_lease(struct coord_compatible *coordinator);

COORD_API bool coord_compatible_is_shutting_down(const struct coord_compatible *coordinator);

/** Our own notice, or NULL. Borrowed until the next one is created. */
COORD_API const struct coord_record *coord_compatible_shutdown_notification(
    const struct coord_compatible *coordinator);

/* ---- callbacks ---- */

/**
 * Call a function for each event of a kind, after those that are registered already. The same one
 * registered twice is called twice.
 *
 * @return  COORD_OK, or LIMIT: COORD_CALLBACKS_MAX of all kinds.
 * Source: docs/guide.md#compatible, tests/unit/test_compatible.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_compatible_on(struct coord_compatible *coordinator,
                                                              enum coord_compatible_kind kind,
                                                              coord_compatible_fn fn, void *ctx);

/** Take the first equal registration away; it is not called any more. @return false: none. */
COORD_API bool coord_compatible_remove_callback(struct coord_compatible *coordinator,
                                                enum coord_compatible_kind kind,
                                                coord_compatible_fn fn, void *ctx);

#ifdef __cplusplus
}
#endif
#endif /* COORD_COMPATIBLE_H */
