/* SPDX-License-Identifier: MIT
 * coord/coordinator_query.c - what is known, for whoever asks; and functions that are called.
 */
#include "coord/coordinator_callbacks.h"
#include "coord/coordinator_inside.h"

#include <stdlib.h>
#include <string.h>

static const char *const statuses[] = {"unknown", "healthy", "leaving",
                                       "overrun", "silent",  "finished"};
static const char *const events[] = {"",
                                     "PEER_APPEARED",
                                     "PEER_HEARTBEAT",
                                     "PEER_SILENT",
                                     "PEER_RECOVERED",
                                     "PEER_LEAVING",
                                     "PEER_WITHDREW",
                                     "PEER_OVERRUN",
                                     "PEER_FINISHED",
                                     "DUPLICATE_IDENTITY",
                                     "ASSIGNMENT",
                                     "ORDER",
                                     "ORPHAN_OPENED",
                                     "ORPHAN_UPDATED",
                                     "ORPHAN_RESOLVED"};
static const char *const refusals[COORD_REFUSALS] = {
    "PEERS_FULL", "INCARNATIONS_FULL", "SUBSCRIPTIONS_FULL", "REPORTS_FULL", "NO_MEMORY",
    "OLD_SEQ",    "OLD_TIME",          "AFTER_FINISHED",     "STALE_FENCE",  "FORGED_SELF"};

#define NAME(words, value) \
    ((size_t)(value) < sizeof(words) / sizeof((words)[0]) ? (words)[value] : "unknown")

const char *coord_peer_status_name(enum coord_peer_status status)
{
    return NAME(statuses, status);
}

const char *coord_event_name(enum coord_event_kind kind)
{
    return NAME(events, kind);
}

const char *coord_refusal_name(enum coord_refusal refusal)
{
    return NAME(refusals, refusal);
}

static enum coord_peer_status status_of(const struct coord__peer *peer)
{
    if ((peer->flags & COORD__PEER_FINISHED) != 0) {
        return COORD_PEER_FINISHED;
    }
    if ((peer->flags & COORD__PEER_SILENT) != 0) {
        return COORD_PEER_SILENT;
    }
    if ((peer->flags & COORD__PEER_OVERRUN) != 0) {
        return COORD_PEER_OVERRUN;
    }
    return coord__peer_leaving(peer) ? COORD_PEER_LEAVING : COORD_PEER_HEALTHY;
}

void coord__show_peer(const struct coord_coordinator *c, uint32_t ref, struct coord_peer *out)
{
    const struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    *out = (struct coord_peer){
        .id = coord__peer_id(peer),
        .id_bytes = peer->id_bytes,
        .has_incarnation = (peer->flags & COORD__PEER_INCARNATION) != 0,
        .status = status_of(peer),
        .last_heard = peer->last_heard,
        .deadline = peer->extra != NULL ? peer->extra->deadline : COORD_NEVER,
        .intent = peer->extra != NULL ? peer->extra->intent : COORD_INTENT_GRACEFUL,
        .in_flight_count = peer->in_flight,
        .load_factor = (double)peer->load,
        .is_leader = (peer->flags & COORD__PEER_LEADER) != 0,
        .subscription_count = peer->set != COORD__NO_REF ? c->names.set[peer->set]->count : 0};
    memcpy(out->incarnation, peer->incarnation, sizeof out->incarnation);
}

bool coord_coordinator_next_peer(const struct coord_coordinator *coordinator, uint32_t *at,
                                 struct coord_peer *out)
{
    const struct coord__peers *peers = &coordinator->peers;
    while (*at < peers->made) {
        uint32_t ref = (*at)++;
        if (ref != coordinator->self &&
            (coord__peer_at(peers, ref)->flags & COORD__PEER_USED) != 0) {
            coord__show_peer(coordinator, ref, out);
            return true;
        }
    }
    return false;
}

bool coord_coordinator_find_peer(const struct coord_coordinator *coordinator, const char *id,
                                 size_t id_bytes, struct coord_peer *out)
{
    uint32_t ref = coord__peer_find(coordinator, id, id_bytes, NULL);
    if (ref == COORD__NO_REF) {
        return false;
    }
    coord__show_peer(coordinator, ref, out);
    return true;
}

bool coord_coordinator_subscription(const struct coord_coordinator *coordinator, const char *id,
                                    size_t id_bytes, uint32_t index, const char **name,
                                    size_t *name_bytes)
{
    uint32_t ref = coord__peer_find(coordinator, id, id_bytes, NULL);
    uint32_t set =
        ref != COORD__NO_REF ? coord__peer_at(&coordinator->peers, ref)->set : COORD__NO_REF;
    if (set == COORD__NO_REF || index >= coordinator->names.set[set]->count) {
        return false;
    }
    const struct coord__name *found =
        coordinator->names.name[coordinator->names.set[set]->names[index]];
    *name = found->text;
    *name_bytes = found->bytes;
    return true;
}

bool coord_coordinator_next_orphan(const struct coord_coordinator *coordinator, uint32_t *at,
                                   struct coord_orphan *out)
{
    while (*at < coordinator->reports.count) {
        const struct coord__report *report = coordinator->reports.at[(*at)++];
        if (report != NULL && (report->flags & COORD__REPORT_OPEN) != 0) {
            coord__report_show(coordinator, report, out);
            return true;
        }
    }
    return false;
}

bool coord_coordinator_judging(const struct coord_coordinator *coordinator, coord_ms now,
                               coord_ms *heard)
{
    const struct coord_coordinator *c = coordinator;
    now = coord_ms_max(now, c->now);
    bool judging = coord__judging_at(c, now);
    *heard = judging ? coord_ms_sub(now, c->anew) : 0;
    return judging;
}

struct coord_coordinator_counts coord_coordinator_counts(
    const struct coord_coordinator *coordinator)
{
    struct coord_coordinator_counts counts = coordinator->counts;
    counts.peers = coordinator->peers.count - (coordinator->self != COORD__NO_REF ? 1 : 0);
    counts.healthy = coordinator->peers.healthy;
    counts.orphans = coordinator->reports.open;
    return counts;
}

/* ---- registered functions ---- */

struct coord_dispatcher {
    struct coord__callbacks callbacks;
};

enum coord_err coord_dispatcher_new(struct coord_dispatcher **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? COORD_OK : COORD_E_NO_MEMORY;
}

void coord_dispatcher_free(struct coord_dispatcher *dispatcher)
{
    free(dispatcher);
}

enum coord_err coord_dispatcher_on(struct coord_dispatcher *dispatcher, enum coord_event_kind kind,
                                   coord_event_fn fn, void *ctx)
{
    bool added =
        coord__callbacks_add(&dispatcher->callbacks, (int)kind, (coord__callback_fn)fn, ctx);
    return added ? COORD_OK : COORD_E_LIMIT;
}

bool coord_dispatcher_remove(struct coord_dispatcher *dispatcher, enum coord_event_kind kind,
                             coord_event_fn fn, void *ctx)
{
    return coord__callbacks_remove(&dispatcher->callbacks, (int)kind, (coord__callback_fn)fn, ctx);
}

size_t coord_dispatcher_run(struct coord_dispatcher *dispatcher,
                            struct coord_coordinator *coordinator, coord_ms now)
{
    struct coord_event event;
    size_t count = 0;
    while (coord_coordinator_next_event(coordinator, now, &event)) {
        unsigned bound = coord__callbacks_begin(&dispatcher->callbacks);
        unsigned at = 0;
        void *ctx = NULL;
        coord__callback_fn fn;
        while ((fn = coord__callbacks_next(&dispatcher->callbacks, (int)event.kind, bound, &at,
                                           &ctx)) != NULL) {
            ((coord_event_fn)fn)(ctx, &event);
        }
        coord__callbacks_end(&dispatcher->callbacks);
        count++;
    }
    return count;
}
