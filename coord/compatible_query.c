/* SPDX-License-Identifier: MIT
 * coord/compatible_query.c - what the seed library derives at each reading.
 */
#include "coord/compatible_inside.h"

#include <string.h>

static const char *const statuses[] = {"unknown", "healthy", "draining", "stale", "terminated"};

const char *coord_seed_status_name(enum coord_seed_status status)
{
    return (unsigned)status < sizeof statuses / sizeof statuses[0] ? statuses[status] : "unknown";
}

/* Microseconds as seconds, the nearest double there is for anything within 285 years. */
static double seconds(int64_t us)
{
    return (double)us / 1e6;
}

enum coord_err coord_notice_remaining(const struct coord_record *notice, int64_t wall, double *out)
{
    struct coord_time deadline = coord_record_time(notice, COORD_SHUTDOWN_EXPECTED_COMPLETION_AT);
    if (deadline.naive) {
        return COORD_E_BAD_MESSAGE;
    }
    int64_t left = coord_time_epoch(&deadline) - wall;
    *out = left > 0 ? seconds(left) : 0.0;
    return COORD_OK;
}

enum coord_err coord_notice_expired(const struct coord_record *notice, int64_t wall, bool *out)
{
    struct coord_time deadline = coord_record_time(notice, COORD_SHUTDOWN_EXPECTED_COMPLETION_AT);
    if (deadline.naive) {
        return COORD_E_BAD_MESSAGE;
    }
    *out = wall >= coord_time_epoch(&deadline);
    return COORD_OK;
}

enum coord_err coord_heartbeat_stale(const struct coord_record *heartbeat, double max_age_s,
                                     int64_t wall, bool *out)
{
    struct coord_time time = coord_record_time(heartbeat, COORD_HEARTBEAT_TIMESTAMP);
    if (time.naive) {
        return COORD_E_BAD_MESSAGE;
    }
    *out = seconds(wall - coord_time_epoch(&time)) > max_age_s;
    return COORD_OK;
}

enum coord_err coord_seed_status(const struct coord_seed_peer *peer, int64_t wall,
                                 enum coord_seed_status *out)
{
    bool over = false;
    enum coord_err err = COORD_OK;
    if (peer->notice != NULL) {
        err = coord_notice_expired(peer->notice, wall, &over);
        *out = over ? COORD_SEED_TERMINATED : COORD_SEED_DRAINING;
    } else if (peer->heartbeat != NULL) {
        err = coord_heartbeat_stale(peer->heartbeat, COORD_SEED_STALE_S, wall, &over);
        *out = over ? COORD_SEED_STALE : COORD_SEED_HEALTHY;
    } else {
        *out = COORD_SEED_UNKNOWN;
    }
    return err;
}

struct coord_value coord_seed_subscriptions(const struct coord_seed_peer *peer)
{
    if (peer->notice != NULL) {
        return peer->notice->field[COORD_SHUTDOWN_SUBSCRIPTIONS];
    }
    if (peer->heartbeat != NULL) {
        return peer->heartbeat->field[COORD_HEARTBEAT_SUBSCRIPTIONS];
    }
    return (struct coord_value){.kind = COORD_KIND_ABSENT};
}

static struct coord_seed_peer shown(const struct coord__seed_peer *peer)
{
    struct coord_seed_peer seen = {
        peer->id,
        peer->heartbeat.bytes != NULL ? &peer->heartbeat.record : NULL,
        peer->notice.bytes != NULL ? &peer->notice.record : NULL,
    };
    return seen;
}

size_t coord_compatible_known_peers(const struct coord_compatible *coordinator,
                                    struct coord_seed_peer *peers, size_t room)
{
    size_t count = 0;
    for (const struct coord__seed_peer *peer = coordinator->first; peer; peer = peer->next) {
        if (count < room) {
            peers[count] = shown(peer);
        }
        count++;
    }
    return count;
}

typedef bool (*wanted_fn)(const struct coord_seed_peer *peer, enum coord_seed_status status);

static enum coord_err collect(const struct coord_compatible *coordinator, int64_t wall,
                              wanted_fn wanted, struct coord_seed_peer *peers, size_t room,
                              size_t *count)
{
    size_t found = 0;
    for (const struct coord__seed_peer *peer = coordinator->first; peer; peer = peer->next) {
        struct coord_seed_peer seen = shown(peer);
        enum coord_seed_status status = COORD_SEED_UNKNOWN;
        enum coord_err err = coord_seed_status(&seen, wall, &status);
        if (err != COORD_OK) {
            return err;
        }
        if (wanted(&seen, status)) {
            if (found < room) {
                peers[found] = seen;
            }
            found++;
        }
    }
    *count = found;
    return COORD_OK;
}

static bool healthy(const struct coord_seed_peer *peer, enum coord_seed_status status)
{
    (void)peer;
    return status == COORD_SEED_HEALTHY;
}

static bool draining(const struct coord_seed_peer *peer, enum coord_seed_status status)
{
    (void)peer;
    return status == COORD_SEED_DRAINING;
}

static bool orphaned(const struct coord_seed_peer *peer, enum coord_seed_status status)
{
    struct coord_value subscriptions = coord_seed_subscriptions(peer);
    return (status == COORD_SEED_DRAINING || status == COORD_SEED_TERMINATED ||
            status == COORD_SEED_STALE) &&
           coord_names_count(&subscriptions) > 0;
}

enum coord_err coord_compatible_healthy_peers(const struct coord_compatible *coordinator,
                                              int64_t wall, struct coord_seed_peer *peers,
                                              size_t room, size_t *count)
{
    return collect(coordinator, wall, healthy, peers, room, count);
}

enum coord_err coord_compatible_draining_peers(const struct coord_compatible *coordinator,
                                               int64_t wall, struct coord_seed_peer *peers,
                                               size_t room, size_t *count)
{
    return collect(coordinator, wall, draining, peers, room, count);
}

enum coord_err coord_compatible_orphaned_subscriptions(const struct coord_compatible *coordinator,
                                                       int64_t wall, struct coord_seed_peer *peers,
                                                       size_t room, size_t *count)
{
    return collect(coordinator, wall, orphaned, peers, room, count);
}

struct coord_compatible_counts coord_compatible_counts(const struct coord_compatible *coordinator)
{
    return coordinator->counts;
}

bool coord_compatible_is_shutting_down(const struct coord_compatible *coordinator)
{
    return coordinator->shutting_down;
}

const struct coord_record *coord_compatible_shutdown_notification(
    const struct coord_compatible *coordinator)
{
    return coordinator->notice.bytes != NULL ? &coordinator->notice.record : NULL;
}
