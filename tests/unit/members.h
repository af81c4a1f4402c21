/* SPDX-License-Identifier: MIT
 * tests/unit/members.h - a host with a member of a fleet, and what it was told.
 */
#ifndef COORD_TESTS_MEMBERS_H
#define COORD_TESTS_MEMBERS_H

#include "runtime/member.h"

#include "brokers/memory.h"
#include "electors/memory.h"
#include "tests/support/support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

enum {
    LONG = 30000 /* ms; a guard, never reached */
};

static const struct coord_bus_scheme buses[] = {{"memory", coord_memory_broker, NULL},
                                                {NULL, NULL, NULL}};
static const struct coord_scheme schemes[] = {{"memory", coord_memory_elector, NULL},
                                              {NULL, NULL, NULL}};

struct host {
    struct coord_runtime *runtime;
    struct coord_election *election;
    struct coord_bus *bus;
    struct coord_member *member;
    pthread_mutex_t lock;
    char said[65536];
    atomic_uint events;
    bool close_inside;
};

static inline void say(struct host *h, const char *text, const char *more, size_t bytes)
{
    pthread_mutex_lock(&h->lock);
    size_t used = strlen(h->said);
    snprintf(h->said + used, sizeof h->said - used, "%s %.*s; ", text, (int)bytes, more);
    pthread_mutex_unlock(&h->lock);
}

static inline bool said(struct host *h, const char *text)
{
    pthread_mutex_lock(&h->lock);
    bool found = strstr(h->said, text) != NULL;
    pthread_mutex_unlock(&h->lock);
    return found;
}

static inline void hear(void *ctx, struct coord_member *member,
                        const struct coord_agent_event *event)
{
    struct host *h = ctx;
    if (event->kind != COORD_AGENT_EVENT_FLEET) {
        say(h, coord_agent_event_name(event->kind), "", 0);
    } else if (event->fleet->kind >= COORD_EVENT_ORPHAN_OPENED) {
        say(h, coord_event_name(event->fleet->kind), event->fleet->orphan.subscription,
            event->fleet->orphan.subscription_bytes);
    } else if (event->fleet->message != NULL) {
        const struct coord_value *list = &event->fleet->message->subscriptions;
        struct coord_walk walk;
        struct coord_value name = {.kind = COORD_KIND_ABSENT};
        coord_walk_begin(list, &walk);
        if (coord_walk_next(&walk, NULL, &name)) {
            say(h, coord_event_name(event->fleet->kind), name.of.text, name.count);
        } else {
            say(h, coord_event_name(event->fleet->kind), "", 0);
        }
    } else {
        say(h, coord_event_name(event->fleet->kind), event->fleet->peer.id,
            event->fleet->peer.id_bytes);
    }
    if (h->close_inside) {
        coord_member_close(member);
    }
    atomic_fetch_add(&h->events, 1);
}

static inline void on_edge(void *ctx, struct coord_election *election,
                           const struct coord_edge *edge)
{
    static const char *const words[] = {"", "LEADS", "STOPS", "STOPPED"};
    (void)election;
    say(ctx, words[edge->kind], "", 0);
}

struct plan {
    const char *id;
    const char *bus;
    const char *election; /* NULL: none */
    bool threads;
    bool explicit_drain;
    bool deaf; /* no callback */
    enum coord_agent_role role;
};

static inline void open_host(struct host *h, const struct plan *plan)
{
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_error error;
    memset(h, 0, sizeof *h);
    pthread_mutex_init(&h->lock, NULL);
    assert_int_equal(coord_runtime_new(NULL, &h->runtime, &error), COORD_OK);
    if (plan->election != NULL) {
        struct coord_election_config election = COORD_ELECTION_CONFIG_INIT;
        election.name = "fleet";
        election.name_bytes = 5;
        election.identity = plan->id;
        election.identity_bytes = strlen(plan->id);
        election.ttl = 2000;
        assert_int_equal(coord_election_open(h->runtime, schemes, plan->election, &election,
                                             &h->election, &error),
                         COORD_OK);
        assert_int_equal(coord_election_on_edge(h->election, on_edge, h), COORD_OK);
    }
    config.role = plan->role;
    config.id = plan->election != NULL ? NULL : plan->id;
    config.election = h->election;
    assert_int_equal(coord_bus_open(h->runtime, buses, plan->bus, NULL, &h->bus, &error), COORD_OK);
    config.bus = h->bus;
    config.timeout = 1000;
    config.explicit_drain = plan->explicit_drain;
    config.fn = plan->deaf ? NULL : hear;
    config.ctx = h;
    assert_int_equal(coord_member_open(h->runtime, &config, &h->member, &error), COORD_OK);
    if (plan->threads) {
        assert_int_equal(coord_runtime_start(h->runtime, &error), COORD_OK);
    }
}

static inline void close_host(struct host *h)
{
    coord_member_close(h->member);
    coord_bus_close(h->bus);
    if (h->election != NULL) {
        coord_election_close(h->election);
    }
    coord_runtime_free(h->runtime);
    pthread_mutex_destroy(&h->lock);
}

static inline bool within(coord_ms start)
{
    return coord_clock_now() < start + LONG;
}

static inline void wait_said(struct host *h, const char *text)
{
    const coord_ms start = coord_clock_now();
    while (!said(h, text)) {
        assert_true(within(start));
        const struct timespec moment = {.tv_nsec = 2000000};
        nanosleep(&moment, NULL);
    }
}

#endif /* COORD_TESTS_MEMBERS_H */
