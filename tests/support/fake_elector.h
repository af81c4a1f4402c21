/* SPDX-License-Identifier: MIT
 * tests/support/fake_elector.h - a backend that does what a test tells it, and counts.
 *
 * Header only. Everything in struct fake_store belongs to the test, which changes it between two
 * drives; the counters may be read at any time.
 */
#ifndef COORD_TESTS_FAKE_ELECTOR_H
#define COORD_TESTS_FAKE_ELECTOR_H

#include "coord/elector.h"

#include <stdatomic.h>

enum {
    FAKE_VERBS = 8
};

struct fake_store {
    enum coord_outcome acquire;             /* 0: GRANTED */
    enum coord_outcome renew;               /* 0: RENEWED */
    enum coord_outcome release;             /* 0: DONE */
    enum coord_err code;                    /* with FAILED and UNKNOWN */
    atomic_bool silent;                     /* answers nothing */
    atomic_bool lost;                       /* tells once that the term is gone */
    const struct coord_observation *leader; /* told with every answer, true or not */
    uint64_t fence;                         /* of the newest grant */
    int fd;                                 /* what to wait for; 0: nothing */
    uint64_t generation;
    atomic_uint processed;
    atomic_uint requests[FAKE_VERBS]; /* by verb */
    atomic_uint forked_ends;
    void (*at_request)(void *ctx, enum coord_verb verb);
    void *ctx;
};

struct fake_elector {
    struct fake_store *store;
    struct coord_request request; /* verb NONE: none */
};

static inline enum coord_err fake_init(struct coord_elector *elector,
                                       const struct coord_elector_config *config,
                                       struct coord_error *error)
{
    struct fake_elector *fake = coord_backend_state(elector);
    (void)error;
    fake->store = config->backend_ctx;
    return COORD_OK;
}

static inline void fake_fini(struct coord_elector *elector, bool forked)
{
    struct fake_elector *fake = coord_backend_state(elector);
    atomic_fetch_add(&fake->store->forked_ends, forked ? 1 : 0);
}

static inline void fake_request(struct coord_elector *elector, const struct coord_request *request,
                                coord_ms now)
{
    struct fake_elector *fake = coord_backend_state(elector);
    (void)now;
    fake->request = *request;
    if (fake->store->at_request != NULL) {
        fake->store->at_request(fake->store->ctx, request->verb);
    }
    atomic_fetch_add(&fake->store->requests[request->verb], 1);
}

static inline void fake_abandon(struct coord_elector *elector, coord_ms now)
{
    struct fake_elector *fake = coord_backend_state(elector);
    (void)now;
    fake->request.verb = COORD_VERB_NONE;
}

static inline enum coord_outcome fake_outcome(struct fake_elector *fake)
{
    struct fake_store *store = fake->store;
    switch (fake->request.verb) {
    case COORD_VERB_ACQUIRE:
        return store->acquire != 0 ? store->acquire : COORD_GRANTED;
    case COORD_VERB_RENEW:
        return store->renew != 0 ? store->renew : COORD_RENEWED;
    case COORD_VERB_OBSERVE:
        return store->code != COORD_OK ? COORD_FAILED : COORD_FREE;
    case COORD_VERB_RELEASE:
        return store->release != 0 ? store->release : COORD_DONE;
    case COORD_VERB_NONE:
    case COORD_VERB_UNDO:
    case COORD_VERB_ASK:
    case COORD_VERB_INIT:
        break;
    }
    return COORD_DONE;
}

static inline void fake_process(struct coord_elector *elector, coord_ms now)
{
    struct fake_elector *fake = coord_backend_state(elector);
    struct fake_store *store = fake->store;
    atomic_fetch_add(&store->processed, 1);
    if (atomic_exchange(&store->lost, false)) {
        const struct coord_error why = {.code = COORD_E_NOT_LEADER,
                                        .text = "gone: as the test said"};
        coord_backend_lost(elector, &why, now);
    }
    if (fake->request.verb == COORD_VERB_NONE || atomic_load(&store->silent)) {
        return;
    }
    struct coord_reply reply = {
        .id = fake->request.id, .retry_in = COORD_NEVER, .leader = store->leader};
    reply.outcome = fake_outcome(fake);
    if (reply.outcome == COORD_GRANTED) {
        reply.fence = ++store->fence;
    }
    if (reply.outcome == COORD_FAILED || reply.outcome == COORD_UNKNOWN) {
        COORD_IGNORE(coord_error_set(&reply.error, store->code, "as the test said: change it"),
                     "it is the reply");
    }
    fake->request.verb = COORD_VERB_NONE;
    coord_backend_reply(elector, &reply, now);
}

static inline size_t fake_descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    const struct fake_elector *fake = coord_backend_state(elector);
    if (fake->store->fd <= 0) {
        return 0;
    }
    *out = (struct coord_descriptor){
        .fd = fake->store->fd, .read = true, .generation = fake->store->generation};
    return 1;
}

static inline coord_ms fake_deadline(struct coord_elector *elector)
{
    const struct fake_elector *fake = coord_backend_state(elector);
    const bool answers =
        fake->request.verb != COORD_VERB_NONE && !atomic_load(&fake->store->silent);
    return answers || atomic_load(&fake->store->lost) ? 0 : COORD_NEVER;
}

static inline const struct coord_backend_ops *fake_elector(void)
{
    static const struct coord_backend_ops ops = {
        .size = sizeof ops,
        .abi = COORD_BACKEND_ABI,
        .name = "fake",
        .state_bytes = sizeof(struct fake_elector),
        .default_ttl = 1000,
        .init = fake_init,
        .fini = fake_fini,
        .request = fake_request,
        .abandon = fake_abandon,
        .process = fake_process,
        .descriptors = fake_descriptors,
        .deadline = fake_deadline,
    };
    return &ops;
}

#endif /* COORD_TESTS_FAKE_ELECTOR_H */
