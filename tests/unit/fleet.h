/* SPDX-License-Identifier: MIT
 * tests/unit/fleet.h - a few coordinators on one table, who hear each other as the test has it.
 */
#ifndef COORD_TESTS_FLEET_H
#define COORD_TESTS_FLEET_H

#include "coord/coordinator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    T = 1000,
    I = 200,
    START = 100000,
    NODES = 4,
    LOG_MAX = 65536
};

#define WALL INT64_C(1772366400000000)

/* A coordinator and what came out of it. */
struct node {
    struct coord_coordinator *c;
    char log[LOG_MAX]; /* events, such as "SILENT b; " */
    struct coord_orphan last;
    coord_ms order;
    bool deaf;        /* hears nothing */
    bool mute;        /* sends nothing */
    unsigned deaf_to; /* nodes, a bit each: hears nothing of them */
    int64_t skew_us;
};

struct fleet {
    struct node node[NODES];
    coord_ms now;
    unsigned count;
};

static inline void note(struct node *node, const struct coord_event *event)
{
    size_t used = strlen(node->log);
    const char *name = coord_event_name(event->kind);
    name = strncmp(name, "PEER_", 5) == 0 ? name + 5 : name;
    if (event->kind >= COORD_EVENT_ORPHAN_OPENED) {
        snprintf(node->log + used, LOG_MAX - used, "%s %.*s/%.*s %s; ", name,
                 (int)event->orphan.instance_id_bytes, event->orphan.instance_id,
                 (int)event->orphan.subscription_bytes, event->orphan.subscription,
                 coord_cause_name(event->orphan.cause));
        node->last = event->orphan;
    } else {
        snprintf(node->log + used, LOG_MAX - used, "%s%s%.*s; ", name,
                 event->peer.id != NULL ? " " : "", (int)event->peer.id_bytes,
                 event->peer.id != NULL ? event->peer.id : "");
    }
    if (event->kind == COORD_EVENT_ORDER) {
        node->order = event->deadline;
    }
}

static inline void pull(struct fleet *f, struct node *node)
{
    struct coord_event event;
    while (node->c != NULL && coord_coordinator_next_event(node->c, f->now, &event)) {
        note(node, &event);
    }
}

static inline void deliver(struct fleet *f, struct node *node, enum coord_message_type type,
                           const void *bytes, size_t count)
{
    if (node->c != NULL && !node->deaf) {
        pull(f, node);
        assert_int_equal(coord_coordinator_handle(node->c, type, bytes, count, f->now), COORD_OK);
        pull(f, node);
    }
}

/* Everything that is due is said, and heard by all, the speaker included. */
static inline void settle(struct fleet *f)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_outgoing out;
    for (unsigned i = 0; i < f->count; i++) {
        struct node *node = &f->node[i];
        pull(f, node);
        while (node->c != NULL &&
               coord_coordinator_next_message(node->c, f->now, WALL + node->skew_us, &out)) {
            memcpy(bytes, out.bytes, out.count);
            for (unsigned j = 0; j < f->count && !node->mute; j++) {
                if ((f->node[j].deaf_to >> i & 1) == 0) {
                    deliver(f, &f->node[j], out.type, bytes, out.count);
                }
            }
        }
        pull(f, node);
    }
}

/* Nobody comes late, and nothing is due after it was done. */
static inline void run(struct fleet *f, coord_ms length)
{
    coord_ms end = f->now + length;
    for (;;) {
        settle(f);
        settle(f);
        coord_ms next = COORD_NEVER;
        for (unsigned i = 0; i < f->count; i++) {
            if (f->node[i].c != NULL) {
                coord_ms at = coord_coordinator_deadline(f->node[i].c);
                assert_true(at > f->now);
                next = coord_ms_min(next, at);
            }
        }
        if (next > end) {
            f->now = end;
            return;
        }
        f->now = next;
    }
}

static inline struct coord_coordinator_config config_of(const char *id, unsigned char incarnation)
{
    struct coord_coordinator_config config = COORD_COORDINATOR_CONFIG_INIT;
    config.instance_id = id;
    config.timeout = T;
    config.interval = I;
    config.tick = 10;
    config.seed = incarnation;
    memset(config.incarnation, incarnation, sizeof config.incarnation);
    return config;
}

/* With a configuration of its own. */
static inline struct node *join_as(struct fleet *f, struct coord_coordinator_config config)
{
    struct node *node = &f->node[f->count++];
    assert_int_equal(coord_coordinator_new(&config, f->now, &node->c, NULL), COORD_OK);
    return node;
}

static inline struct node *observe(struct fleet *f, struct coord_coordinator_config config)
{
    config.observer = true;
    struct node *node = join_as(f, config);
    coord_coordinator_connected(node->c, true, f->now);
    return node;
}

/* A list of that name, or of none (NULL), until the next one is made. */
static inline struct coord_value list_of(const char *name)
{
    static unsigned char buffer[512];
    struct coord_value list;
    assert_int_equal(coord_texts(&name, name != NULL, buffer, sizeof buffer, &list), COORD_OK);
    return list;
}

static inline void serve(struct node *node, const char *subscription)
{
    const struct coord_value list = list_of(subscription);
    assert_int_equal(coord_coordinator_serve(node->c, &list, 1, 0.5), COORD_OK);
}

/* @param subscription  what it looks after; NULL: nothing. */
static inline struct node *join(struct fleet *f, const char *id, const char *subscription)
{
    struct node *node = join_as(f, config_of(id, (unsigned char)(id[0] + (int)f->count + 1)));
    if (subscription != NULL) {
        serve(node, subscription);
    }
    return node;
}

static inline void leave_all(struct fleet *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        coord_coordinator_free(f->node[i].c);
    }
}

/* What a test finds in its state. */
static inline int fleet_begin(void **state)
{
    static struct fleet f;
    memset(&f, 0, sizeof f);
    f.now = START;
    *state = &f;
    return 0;
}

static inline int fleet_end(void **state)
{
    leave_all(*state);
    return 0;
}

static inline void lead(struct fleet *f, struct node *node, uint64_t fence)
{
    coord_coordinator_lead(node->c, true, fence, COORD_NEVER, f->now);
}

/* It leads as soon as all have met. */
static inline void elect(struct fleet *f, struct node *node, uint64_t fence)
{
    run(f, 2 * T);
    lead(f, node, fence);
}

static inline void crash(struct node *node)
{
    coord_coordinator_free(node->c);
    node->c = NULL;
}

static inline enum coord_peer_status status_of(const struct node *node, const char *id)
{
    struct coord_peer peer;
    return coord_coordinator_find_peer(node->c, id, strlen(id), &peer) ? peer.status
                                                                       : COORD_PEER_UNKNOWN;
}

static inline unsigned open_reports(const struct node *node)
{
    return coord_coordinator_counts(node->c).orphans;
}

static inline unsigned seen(const struct node *node, const char *what)
{
    unsigned count = 0;
    for (const char *at = node->log; (at = strstr(at, what)) != NULL; at++) {
        count++;
    }
    return count;
}

/* A message made by hand, as a stranger would send it. */
static inline struct coord_message beat(const char *id, const char *incarnation, uint64_t seq)
{
    struct coord_message message = {.type = COORD_MESSAGE_HEARTBEAT, .at_us = WALL, .seq = seq};
    message.instance_id = coord_text(id, strlen(id));
    if (incarnation != NULL) {
        message.incarnation = coord_text(incarnation, strlen(incarnation));
    }
    return message;
}

/* To leave within so many milliseconds. */
static inline struct coord_message order_for(const char *id, int64_t at_us, int64_t within)
{
    struct coord_message message = {
        .type = COORD_MESSAGE_SHUTDOWN, .at_us = at_us, .completion_us = at_us + within * 1000};
    message.instance_id = coord_text(id, strlen(id));
    return message;
}

static inline void say(struct fleet *f, struct node *node, const struct coord_message *message)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    size_t count = 0;
    assert_int_equal(coord_message_encode(message, COORD_FORM_MSGPACK, bytes, sizeof bytes, &count),
                     COORD_OK);
    deliver(f, node, message->type, bytes, count);
}

/* @param subscription  what it lists; NULL: nothing. */
static inline void say_beat(struct fleet *f, struct node *node, const char *id,
                            const char *incarnation, uint64_t seq, const char *subscription)
{
    struct coord_message message = beat(id, incarnation, seq);
    if (subscription != NULL) {
        message.subscriptions = list_of(subscription);
    }
    say(f, node, &message);
}

static inline uint64_t refused(const struct node *node, enum coord_refusal why)
{
    return coord_coordinator_counts(node->c).refused[why];
}

#endif /* COORD_TESTS_FLEET_H */
