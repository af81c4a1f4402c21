/* SPDX-License-Identifier: MIT
 * runtime/member_look.c - copies of what a member knows, each in one block of memory.
 */
#include "runtime/member_inside.h"

#include <stdlib.h>
#include <string.h>

enum coord_err coord_member_look(struct coord_member *member, struct coord_member_view *out)
{
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    const struct coord_coordinator *c = coord_agent_coordinator(member->agent);
    out->now = coord_clock_now();
    out->phase = coord_agent_phase(member->agent);
    out->judging = coord_coordinator_judging(c, out->now, &out->heard);
    out->bus_up = coord__member_bus_up(member);
    out->lost_events = member->lost_events;
    out->fleet = coord_coordinator_counts(c);
    out->messages = coord_agent_counts(member->agent);
    coord__leave(member->rider.runtime);
    return COORD_OK;
}

/* Where texts go; with `at` NULL they are only counted. */
struct bag {
    char *at;
    size_t bytes;
};

static const char *keep(struct bag *bag, const char *text, size_t bytes)
{
    char *kept = bag->at;
    bag->bytes += bytes + 1;
    if (kept == NULL) {
        return NULL;
    }
    memcpy(kept, text, bytes);
    kept[bytes] = '\0';
    bag->at += bytes + 1;
    return kept;
}

/* ---------------------------------------------------------------- peers */

/* What a peer's id says that it works on belongs to the incarnation that was heard last. */
static bool is_latest(const struct coord_coordinator *c, const struct coord_peer *peer)
{
    struct coord_peer latest;
    return coord_coordinator_find_peer(c, peer->id, peer->id_bytes, &latest) &&
           memcmp(latest.incarnation, peer->incarnation, COORD_OWNER_BYTES) == 0;
}

struct peers {
    struct coord_member_peers head;
    struct coord_peer *peer;
    const char *const **lists;
    const char **names;
    struct bag bag;
    size_t name_count;
};

/* One walk; with `peer` NULL it only counts. */
static void walk_peers(const struct coord_coordinator *c, struct peers *p)
{
    struct coord_peer peer;
    uint32_t at = 0;
    p->head.count = 0;
    p->name_count = 0;
    while (coord_coordinator_next_peer(c, &at, &peer)) {
        const size_t first = p->name_count;
        const char *name;
        size_t bytes;
        for (uint32_t i = 0;
             is_latest(c, &peer) && i < peer.subscription_count &&
             coord_coordinator_subscription(c, peer.id, peer.id_bytes, i, &name, &bytes);
             i++) {
            const char *kept = keep(&p->bag, name, bytes);
            if (p->names != NULL) {
                p->names[p->name_count] = kept;
            }
            p->name_count++;
        }
        const char *id = keep(&p->bag, peer.id, peer.id_bytes);
        if (p->peer != NULL) {
            p->peer[p->head.count] = peer;
            p->peer[p->head.count].id = id;
            p->lists[p->head.count] = p->names + first;
            p->names[p->name_count] = NULL;
        }
        p->name_count++;
        p->head.count++;
    }
}

enum coord_err coord_member_peers(struct coord_member *member, struct coord_member_peers **out)
{
    struct peers count = {.name_count = 0};
    enum coord_err rc = COORD_E_NO_MEMORY;
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    const struct coord_coordinator *c = coord_agent_coordinator(member->agent);
    walk_peers(c, &count);
    struct coord_member_peers *head =
        malloc(sizeof *head + count.head.count * (sizeof *count.peer + sizeof *count.lists) +
               count.name_count * sizeof *count.names + count.bag.bytes);
    if (head != NULL) {
        struct peers p = {.peer = (struct coord_peer *)(void *)(head + 1)};
        p.lists = (const char *const **)(void *)(p.peer + count.head.count);
        p.names = (const char **)(void *)(p.lists + count.head.count);
        p.bag.at = (char *)(p.names + count.name_count);
        walk_peers(c, &p);
        head->count = p.head.count;
        head->peer = p.peer;
        head->subscriptions = p.lists;
        *out = head;
        rc = COORD_OK;
    }
    coord__leave(member->rider.runtime);
    return rc;
}

void coord_member_peers_free(struct coord_member_peers *peers)
{
    free(peers);
}

/* ---------------------------------------------------------------- orphans */

static size_t walk_orphans(const struct coord_coordinator *c, struct coord_orphan *out,
                           struct bag *bag)
{
    struct coord_orphan orphan;
    uint32_t at = 0;
    size_t count = 0;
    while (coord_coordinator_next_orphan(c, &at, &orphan)) {
        orphan.instance_id = keep(bag, orphan.instance_id, orphan.instance_id_bytes);
        orphan.subscription = keep(bag, orphan.subscription, orphan.subscription_bytes);
        if (out != NULL) {
            out[count] = orphan;
        }
        count++;
    }
    return count;
}

enum coord_err coord_member_orphans(struct coord_member *member, struct coord_member_orphans **out)
{
    struct bag bag = {.at = NULL};
    enum coord_err rc = COORD_E_NO_MEMORY;
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    const struct coord_coordinator *c = coord_agent_coordinator(member->agent);
    const size_t count = walk_orphans(c, NULL, &bag);
    struct coord_member_orphans *head =
        malloc(sizeof *head + count * sizeof(struct coord_orphan) + bag.bytes);
    if (head != NULL) {
        struct coord_orphan *orphans = (struct coord_orphan *)(void *)(head + 1);
        bag.at = (char *)(orphans + count);
        head->count = walk_orphans(c, orphans, &bag);
        head->orphan = orphans;
        *out = head;
        rc = COORD_OK;
    }
    coord__leave(member->rider.runtime);
    return rc;
}

void coord_member_orphans_free(struct coord_member_orphans *orphans)
{
    free(orphans);
}
