/* SPDX-License-Identifier: MIT
 * tests/unit/agents.h - whole agents over a bus of this page and the store of agents_store.h, in
 * virtual time.
 *
 * Every message takes one millisecond, in fair weather. The store keeps one lease and loses
 * nothing. A node can be cut off from either, stopped, killed and started again; its log has a line
 * for each event.
 */
#ifndef COORD_TESTS_AGENTS_H
#define COORD_TESTS_AGENTS_H

#include "tests/unit/agents_store.h"

/* ---- the bus ---- */

static inline void post(struct agent_node *to, const char *topic, const void *bytes, size_t count)
{
    struct world *w = to->world;
    struct letter **at = &to->inbox;
    if (w->loss > 0 && world_random(w, 1000) < w->loss) {
        return;
    }
    struct letter *letter = malloc(sizeof *letter + count);
    assert_non_null(letter);
    letter->at = w->now + 1 + (w->delay > 0 ? world_random(w, w->delay) : 0);
    letter->count = count;
    snprintf(letter->topic, sizeof letter->topic, "%s", topic);
    memcpy(letter->bytes, bytes, count);
    while (*at != NULL && (*at)->at <= letter->at) {
        at = &(*at)->next;
    }
    letter->next = *at;
    *at = letter;
}

/* Into the log, except heartbeats, and tables with nothing in them. */
static inline void note_message(struct agent_node *node, const char *topic, const void *bytes,
                                size_t count)
{
    struct coord_message m;
    enum coord_message_type type;
    assert_true(coord_topic_type(NULL, topic, strlen(topic), &type));
    assert_int_equal(coord_message_decode(type, bytes, count, &m), COORD_FAULT_NONE);
    if (type == COORD_MESSAGE_ORPHANS && (m.kind != COORD_ORPHANS_TABLE || m.reports.count > 0)) {
        world_say(node->world, node->id, "says orphans %s of %u, fence %u",
                  coord_orphans_kind_name(m.kind), m.reports.count, (unsigned)m.fence);
    } else if (type == COORD_MESSAGE_SHUTDOWN) {
        world_say(node->world, node->id, "says shutdown %s", coord_intent_name(m.intent));
    } else if (type == COORD_MESSAGE_FINISHED || type == COORD_MESSAGE_WORK_ASSIGNMENT) {
        world_say(node->world, node->id, "says %s", coord_message_type_name(type));
    }
}

static inline enum coord_err node_publish(void *ctx, const char *topic, const void *bytes,
                                          size_t count, coord_ms now)
{
    struct agent_node *node = ctx;
    struct world *w = node->world;
    (void)now;
    note_message(node, topic, bytes, count);
    for (unsigned i = 0; i < w->count && !node->bus_cut; i++) {
        if (w->node[i].agent != NULL && !w->node[i].bus_cut) {
            post(&w->node[i], topic, bytes, count);
        }
    }
    return node->bus_cut ? COORD_E_LIMIT : COORD_OK;
}

static inline void drop_first(struct agent_node *node)
{
    struct letter *letter = node->inbox;
    node->inbox = letter->next;
    free(letter);
}

static inline bool node_next(void *ctx, struct coord_broker_message *out)
{
    static struct letter *taken;
    struct agent_node *node = ctx;
    free(taken); /* borrowed until the next call */
    taken = NULL;
    if (node->inbox == NULL || node->inbox->at > node->world->now) {
        return false;
    }
    taken = node->inbox;
    node->inbox = taken->next;
    out->topic = taken->topic;
    out->bytes = taken->bytes;
    out->count = taken->count;
    return true;
}

static inline bool node_connected(void *ctx)
{
    return !((struct agent_node *)ctx)->bus_cut;
}

static inline coord_ms node_bus_deadline(void *ctx)
{
    const struct agent_node *node = ctx;
    return node->inbox != NULL ? node->inbox->at : COORD_NEVER;
}

/* ---- nodes ---- */

static inline struct agent_node *world_add(struct world *w, const char *id, const char *serves)
{
    struct agent_node *node = &w->node[w->count++];
    if (w->log == NULL) {
        w->log = calloc(1, AGENT_LOG);
        w->now = AGENT_START;
        assert_non_null(w->log);
    }
    *node = (struct agent_node){
        .world = w, .id = id, .serves = serves, .drained_at = COORD_NEVER, .ack_at = COORD_NEVER};
    return node;
}

static inline void make_elector(struct agent_node *node)
{
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    config.name = "fleet";
    config.name_bytes = 5;
    config.identity = node->id;
    config.identity_bytes = strlen(node->id);
    memset(config.owner, node->id[0], sizeof config.owner);
    config.owner[0] = (unsigned char)node->starts;
    config.backend_ctx = node;
    config.explicit_ack = node->explicit_ack;
    config.seed = (uint64_t)node->id[0];
    assert_int_equal(
        coord_elector_new(paper_elector(), &config, node->world->now, &node->elector, NULL),
        COORD_OK);
}

static inline void node_start(struct agent_node *node, bool stands, bool observes)
{
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    node->starts++;
    if (stands) {
        make_elector(node);
    }
    config.role = observes ? COORD_AGENT_OBSERVER : COORD_AGENT_MEMBER;
    config.coordinator.instance_id = node->id;
    memset(config.coordinator.incarnation, node->id[0], COORD_OWNER_BYTES);
    config.coordinator.incarnation[0] = (unsigned char)node->starts;
    config.coordinator.timeout = AGENT_T;
    config.coordinator.seed = (uint64_t)node->id[0];
    config.elector = node->elector;
    config.bus = (struct coord_agent_bus){.publish = node_publish,
                                          .next = node_next,
                                          .connected = node_connected,
                                          .deadline = node_bus_deadline,
                                          .ctx = node};
    assert_int_equal(coord_agent_new(&config, node->world->now, &node->agent, NULL), COORD_OK);
    if (node->serves != NULL) {
        assert_int_equal(coord_agent_serve(node->agent, &node->serves, 1, 1, 0.5), COORD_OK);
    }
    world_say(node->world, node->id, "starts");
}

static inline struct agent_node *world_join(struct world *w, const char *id, const char *serves)
{
    struct agent_node *node = world_add(w, id, serves);
    node_start(node, true, false);
    return node;
}

/* Without a word, as by SIGKILL. */
static inline void node_kill(struct agent_node *node)
{
    coord_agent_free(node->agent);
    coord_elector_free(node->elector, false);
    node->agent = NULL;
    node->elector = NULL;
    node->drained_at = COORD_NEVER;
    node->ack_at = COORD_NEVER;
    while (node->inbox != NULL) {
        drop_first(node);
    }
    world_say(node->world, node->id, "is gone");
}

static inline void world_end(struct world *w)
{
    struct coord_broker_message none;
    for (unsigned i = 0; i < w->count; i++) {
        node_kill(&w->node[i]);
        assert_false(node_next(&w->node[i], &none)); /* frees what was borrowed */
    }
    free(w->log);
}

static inline bool node_leads(const struct agent_node *node)
{
    return node->elector != NULL && coord_elector_leading_at(node->elector, node->world->now);
}

static inline enum coord_peer_status node_sees(const struct agent_node *node, const char *id)
{
    struct coord_peer peer;
    return coord_coordinator_find_peer(coord_agent_coordinator(node->agent), id, strlen(id), &peer)
               ? peer.status
               : COORD_PEER_UNKNOWN;
}

/* ---- what a host does with events ---- */

static inline void note_orphan(struct agent_node *node, const struct coord_event *event)
{
    const struct coord_orphan *o = &event->orphan;
    world_say(node->world, node->id, "hears %s %s of %.*s, %s, %s, %u.%u, safe in %.3f",
              coord_event_name(event->kind), o->subscription, (int)o->instance_id_bytes,
              o->instance_id, coord_cause_name(o->cause), coord_certainty_name(o->certainty),
              (unsigned)o->fence, (unsigned)o->seq, world_seconds(node->world, o->safe_after));
}

static inline void note_fleet(struct agent_node *node, const struct coord_event *event)
{
    if (event->kind >= COORD_EVENT_ORPHAN_OPENED) {
        note_orphan(node, event);
    } else if (event->kind == COORD_EVENT_ORDER) {
        world_say(node->world, node->id, "is ordered to leave, %s, within %.3f",
                  coord_intent_name(event->message->intent),
                  world_seconds(node->world, event->deadline));
    } else if (event->peer.id == NULL) {
        world_say(node->world, node->id, "hears %s", coord_event_name(event->kind));
    } else if (event->peer.id_bytes != strlen(node->id) ||
               memcmp(event->peer.id, node->id, event->peer.id_bytes) != 0) {
        world_say(node->world, node->id, "hears %s %.*s", coord_event_name(event->kind),
                  (int)event->peer.id_bytes, event->peer.id);
    }
}

static inline void note_edge(struct agent_node *node, const struct coord_edge *edge)
{
    static const char *const words[] = {"", "leads", "stops leading", "leads no more"};
    world_say(node->world, node->id, "%s, fence %u", words[edge->kind], (unsigned)edge->fence);
    if (edge->kind == COORD_EDGE_STOPPING && node->explicit_ack) {
        node->ack_at = coord_ms_add(node->world->now, node->acks_for);
        node->ack_term = edge->term;
    }
}

static inline void node_hear(struct agent_node *node, const struct coord_agent_event *event)
{
    struct world *w = node->world;
    switch (event->kind) {
    case COORD_AGENT_EVENT_EDGE:
        note_edge(node, &event->edge);
        return;
    case COORD_AGENT_EVENT_FLEET:
        note_fleet(node, event->fleet);
        return;
    case COORD_AGENT_EVENT_LEAVING:
        world_say(w, node->id, "leaves, %s, within %.3f", coord_intent_name(event->intent),
                  world_seconds(w, event->deadline));
        break;
    case COORD_AGENT_EVENT_DRAIN:
        world_say(w, node->id, "drains, until %.3f from now", world_seconds(w, event->drain_by));
        node->drained_at = coord_ms_add(w->now, node->drains_for);
        break;
    case COORD_AGENT_EVENT_STAYING:
        world_say(w, node->id, "stays");
        node->drained_at = COORD_NEVER;
        break;
    case COORD_AGENT_EVENT_LEFT:
        world_say(w, node->id, "has left%s%s%s", event->drained ? ", drained" : ", overrun",
                  event->heard ? ", heard" : "", event->released ? ", released" : "");
        break;
    }
    node->last = *event;
}

static inline void node_do(struct agent_node *node)
{
    struct world *w = node->world;
    struct coord_agent_event event;
    if (node->ack_at <= w->now) {
        node->ack_at = COORD_NEVER;
        coord_lease_acknowledge(coord_elector_lease(node->elector), node->ack_term, w->now);
    }
    if (node->drained_at <= w->now) {
        node->drained_at = COORD_NEVER;
        coord_agent_drained(node->agent, w->now);
    }
    unsigned events = 0;
    while (coord_agent_step(node->agent, w->now,
                            AGENT_WALL + (int64_t)(w->now - AGENT_START) * 1000, &event)) {
        node_hear(node, &event);
        assert_true(++events < 10000);
    }
}

/* Nobody comes late, and nobody has anything to do right after it was done. */
static inline void world_run(struct world *w, coord_ms length)
{
    coord_ms end = w->now + length;
    for (unsigned rounds = 0;; rounds++) {
        coord_ms next = COORD_NEVER;
        for (unsigned i = 0; i < w->count; i++) {
            struct agent_node *node = &w->node[i];
            if (node->agent != NULL && !node->stopped) {
                node_do(node);
            }
        }
        for (unsigned i = 0; i < w->count; i++) {
            struct agent_node *node = &w->node[i];
            if (node->agent != NULL && !node->stopped) {
                next = coord_ms_min(next, coord_agent_deadline(node->agent));
                next = coord_ms_min(next, coord_ms_min(node->ack_at, node->drained_at));
            }
        }
        if (next > w->now) {
            rounds = 0;
        }
        assert_true(rounds < 100); /* time stands still */
        next = coord_ms_max(next, w->now);
        if (next > end) {
            w->now = end;
            return;
        }
        w->now = next;
    }
}

static inline void node_leave(struct agent_node *node, enum coord_intent intent, coord_ms within)
{
    coord_agent_leave(node->agent, intent, coord_ms_add(node->world->now, within),
                      node->world->now);
}

/* A fleet of three whose leader is `a`. */
static inline struct agent_node *world_of_three(struct world *w)
{
    struct agent_node *a = world_join(w, "a", "orders");
    world_run(w, 20);
    world_join(w, "b", "ledger");
    world_join(w, "c", "mail");
    world_run(w, 40000);
    assert_true(node_leads(a));
    assert_int_equal(node_sees(a, "b"), COORD_PEER_HEALTHY);
    return a;
}

#endif /* COORD_TESTS_AGENTS_H */
