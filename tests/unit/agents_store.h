/* SPDX-License-Identifier: MIT
 * tests/unit/agents_store.h - a world of agents in virtual time: its log, and the store of their
 * election. tests/unit/agents.h has the bus and the agents.
 */
#ifndef COORD_TESTS_AGENTS_STORE_H
#define COORD_TESTS_AGENTS_STORE_H

#include "coord/agent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    AGENTS = 8,
    AGENT_LOG = 256 * 1024,
    AGENT_START = 1000000,
    AGENT_T = 15000,
    AGENT_TTL = 15000
};

#define AGENT_WALL INT64_C(1772366400000000) /* 2026-03-01T12:00:00Z, at AGENT_START */

struct world;

struct letter {
    struct letter *next;
    coord_ms at;
    size_t count;
    char topic[COORD_TOPIC_MAX];
    unsigned char bytes[];
};

struct agent_node {
    struct world *world;
    const char *id;
    const char *serves; /* one subscription, or NULL */
    struct coord_agent *agent;
    struct coord_elector *elector;
    struct letter *inbox;
    unsigned starts;
    bool bus_cut;
    bool store_cut;
    bool stopped;        /* the whole process, as by SIGSTOP */
    coord_ms drains_for; /* how long its work takes to end; COORD_NEVER: for ever */
    coord_ms drained_at; /* COORD_NEVER: nothing to be drained now */
    bool explicit_ack;   /* its leader-only work ends with coord_lease_acknowledge() alone */
    coord_ms acks_for;   /* ... and how long that takes; COORD_NEVER: for ever */
    coord_ms ack_at;
    uint64_t ack_term;
    struct coord_agent_event last; /* LEAVING, DRAIN or LEFT */
};

struct world {
    coord_ms now;
    unsigned count;
    struct agent_node node[AGENTS];
    /* the store */
    struct agent_node *holder;
    unsigned holder_start; /* which of its processes */
    uint64_t attempt;
    uint64_t fence;
    coord_ms valid_until;
    /* the weather; all zero: fair */
    uint64_t random;
    unsigned loss;  /* of 1,000 copies of a message */
    coord_ms delay; /* at most, besides the millisecond */
    bool quiet;     /* no log */
    char *log;
};

static inline uint64_t world_random(struct world *w, uint64_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return below == 0 ? 0 : (w->random >> 33) % below;
}

/* ---- the log ---- */

static inline void world_say(struct world *w, const char *who, const char *format, ...)
    COORD_PRINTF(3, 4);
static inline void world_say(struct world *w, const char *who, const char *format, ...)
{
    size_t used = strlen(w->log);
    coord_ms at = w->now - AGENT_START;
    va_list list;
    if (w->quiet) {
        return;
    }
    assert_true(used + 512 < AGENT_LOG);
    int n = snprintf(w->log + used, 64, "%3u.%03u %s ", (unsigned)(at / 1000),
                     (unsigned)(at % 1000), who);
    va_start(list, format);
    (void)vsnprintf(w->log + used + n, 400, format, list);
    va_end(list);
    memcpy(w->log + strlen(w->log), "\n", 2);
}

static inline bool world_said(const struct world *w, const char *text)
{
    return strstr(w->log, text) != NULL;
}

static inline double world_seconds(const struct world *w, coord_ms at)
{
    return at == COORD_NEVER ? -1.0 : ((double)at - (double)w->now) / 1000.0;
}

/* ---- the store ---- */

struct paper {
    struct agent_node *node;
    struct coord_request request;
};

static inline enum coord_err paper_init(struct coord_elector *elector,
                                        const struct coord_elector_config *config,
                                        struct coord_error *error)
{
    struct paper *paper = coord_backend_state(elector);
    (void)error;
    paper->node = config->backend_ctx;
    return COORD_OK;
}

static inline void paper_fini(struct coord_elector *elector, bool forked)
{
    (void)elector;
    (void)forked;
}

static inline void paper_request(struct coord_elector *elector, const struct coord_request *request,
                                 coord_ms now)
{
    struct paper *paper = coord_backend_state(elector);
    (void)now;
    paper->request = *request;
}

static inline void paper_abandon(struct coord_elector *elector, coord_ms now)
{
    struct paper *paper = coord_backend_state(elector);
    (void)now;
    paper->request.verb = COORD_VERB_NONE;
}

static inline bool paper_is_ours(const struct paper *paper)
{
    const struct world *w = paper->node->world;
    return w->holder == paper->node && w->holder_start == paper->node->starts &&
           w->attempt == paper->request.attempt;
}

static inline enum coord_outcome paper_outcome(struct paper *paper, struct coord_reply *reply)
{
    struct world *w = paper->node->world;
    if (w->holder != NULL && w->now >= w->valid_until) {
        w->holder = NULL; /* it ran out */
    }
    switch (paper->request.verb) {
    case COORD_VERB_ACQUIRE:
        if (w->holder != NULL && !paper_is_ours(paper)) {
            reply->retry_in = w->valid_until - w->now;
            return COORD_HELD;
        }
        w->fence += w->holder == NULL ? 1 : 0;
        w->holder = paper->node;
        w->holder_start = paper->node->starts;
        w->attempt = paper->request.attempt;
        w->valid_until = w->now + AGENT_TTL;
        reply->fence = w->fence;
        return COORD_GRANTED;
    case COORD_VERB_RENEW:
        if (!paper_is_ours(paper)) {
            return COORD_LOST;
        }
        w->valid_until = w->now + AGENT_TTL;
        return COORD_RENEWED;
    case COORD_VERB_RELEASE:
    case COORD_VERB_UNDO:
        w->holder = paper_is_ours(paper) ? NULL : w->holder;
        return COORD_DONE;
    case COORD_VERB_OBSERVE:
        return w->holder != NULL ? COORD_HELD : COORD_FREE;
    case COORD_VERB_NONE:
    case COORD_VERB_ASK:
    case COORD_VERB_INIT:
        break;
    }
    return COORD_DONE;
}

static inline void paper_process(struct coord_elector *elector, coord_ms now)
{
    struct paper *paper = coord_backend_state(elector);
    if (paper->request.verb == COORD_VERB_NONE || paper->node->store_cut) {
        return;
    }
    const struct agent_node *holder = paper->node->world->holder;
    struct coord_reply reply = {.id = paper->request.id, .retry_in = COORD_NEVER};
    reply.outcome = paper_outcome(paper, &reply);
    paper->request.verb = COORD_VERB_NONE;
    coord_backend_reply(elector, &reply, now);
    struct world *w = paper->node->world;
    for (unsigned i = 0; holder != NULL && w->holder == NULL && i < w->count; i++) {
        struct agent_node *other = &w->node[i];
        if (other != paper->node && other->elector != NULL && !other->store_cut) {
            coord_backend_hint(other->elector, now); /* a release is told, as stores do */
        }
    }
}

static inline size_t paper_descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    (void)elector;
    (void)out;
    return 0;
}

static inline coord_ms paper_deadline(struct coord_elector *elector)
{
    const struct paper *paper = coord_backend_state(elector);
    return paper->request.verb != COORD_VERB_NONE && !paper->node->store_cut ? 0 : COORD_NEVER;
}

static inline const struct coord_backend_ops *paper_elector(void)
{
    static const struct coord_backend_ops ops = {.size = sizeof ops,
                                                 .abi = COORD_BACKEND_ABI,
                                                 .name = "paper",
                                                 .state_bytes = sizeof(struct paper),
                                                 .default_ttl = AGENT_TTL,
                                                 .init = paper_init,
                                                 .fini = paper_fini,
                                                 .request = paper_request,
                                                 .abandon = paper_abandon,
                                                 .process = paper_process,
                                                 .descriptors = paper_descriptors,
                                                 .deadline = paper_deadline};
    return &ops;
}

#endif /* COORD_TESTS_AGENTS_STORE_H */
