/* SPDX-License-Identifier: MIT
 * tests/sim/agents/store.c - the store of the election: one lease on true time, which loses
 * nothing. What breaks electors is simulated elsewhere (tests/sim); here leaders come and go.
 */
#include <string.h>

#include "coord/backend.h"
#include "tests/sim/agents/world.h"

struct paper {
    struct fleet_process *process;
    struct coord_request request;
};

static enum coord_err init(struct coord_elector *elector, const struct coord_elector_config *config,
                           struct coord_error *error)
{
    struct paper *paper = coord_backend_state(elector);
    (void)error;
    paper->process = config->backend_ctx;
    return COORD_OK;
}

static void fini(struct coord_elector *elector, bool forked)
{
    (void)elector;
    (void)forked;
}

static void request(struct coord_elector *elector, const struct coord_request *wanted, coord_ms now)
{
    struct paper *paper = coord_backend_state(elector);
    (void)now;
    paper->request = *wanted;
}

static void abandon(struct coord_elector *elector, coord_ms now)
{
    struct paper *paper = coord_backend_state(elector);
    (void)now;
    paper->request.verb = COORD_VERB_NONE;
}

static bool is_ours(const struct paper *paper)
{
    const struct fleet_store *store = &paper->process->world->store;
    return store->holder == paper->process->number && store->attempt == paper->request.attempt;
}

static enum coord_outcome acquire(struct paper *paper, struct coord_reply *reply)
{
    struct fleet_world *w = paper->process->world;
    struct fleet_store *store = &w->store;
    if (store->holder != FLEET_PROCESSES && !is_ours(paper)) {
        reply->retry_in = store->valid_until - w->now;
        return COORD_HELD;
    }
    store->fence += store->holder == FLEET_PROCESSES ? 1 : 0;
    store->holder = paper->process->number;
    store->attempt = paper->request.attempt;
    store->valid_until = w->now + w->ttl;
    reply->fence = store->fence;
    return COORD_GRANTED;
}

static enum coord_outcome answer(struct paper *paper, struct coord_reply *reply)
{
    struct fleet_world *w = paper->process->world;
    struct fleet_store *store = &w->store;
    if (w->now >= store->valid_until) {
        store->holder = FLEET_PROCESSES;
    }
    switch (paper->request.verb) {
    case COORD_VERB_ACQUIRE:
        return acquire(paper, reply);
    case COORD_VERB_RENEW:
        if (!is_ours(paper)) {
            return COORD_LOST;
        }
        store->valid_until = w->now + w->ttl;
        return COORD_RENEWED;
    case COORD_VERB_RELEASE:
    case COORD_VERB_UNDO:
        store->holder = is_ours(paper) ? FLEET_PROCESSES : store->holder;
        return COORD_DONE;
    case COORD_VERB_OBSERVE:
        return store->holder != FLEET_PROCESSES ? COORD_HELD : COORD_FREE;
    case COORD_VERB_NONE:
    case COORD_VERB_ASK:
    case COORD_VERB_INIT:
        break;
    }
    return COORD_DONE;
}

/* A release is told, as stores do. */
static void tell_others(struct fleet_process *from)
{
    struct fleet_world *w = from->world;
    for (unsigned i = 0; i < w->hosts; i++) {
        const unsigned number = w->host[i].process;
        if (number < FLEET_PROCESSES && number != from->number && !w->host[i].store_cut &&
            w->process[number].runs && w->process[number].elector != NULL) {
            struct fleet_process *other = &w->process[number];
            coord_backend_hint(other->elector, fleet_local(other));
            other->wake_at = coord_ms_min(other->wake_at, w->now + 1);
        }
    }
}

static void process(struct coord_elector *elector, coord_ms now)
{
    struct paper *paper = coord_backend_state(elector);
    struct fleet_world *w = paper->process->world;
    if (paper->request.verb == COORD_VERB_NONE || w->host[paper->process->host].store_cut) {
        return;
    }
    const unsigned before = w->store.holder;
    struct coord_reply reply = {.id = paper->request.id, .retry_in = COORD_NEVER};
    reply.outcome = answer(paper, &reply);
    paper->request.verb = COORD_VERB_NONE;
    coord_backend_reply(elector, &reply, now);
    if (before != FLEET_PROCESSES && w->store.holder == FLEET_PROCESSES) {
        tell_others(paper->process);
    }
}

static size_t descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    (void)elector;
    (void)out;
    return 0;
}

static coord_ms deadline(struct coord_elector *elector)
{
    const struct paper *paper = coord_backend_state(elector);
    const struct fleet_process *from = paper->process;
    return paper->request.verb != COORD_VERB_NONE && !from->world->host[from->host].store_cut
               ? 0
               : COORD_NEVER;
}

const struct coord_backend_ops *fleet_store_ops(void)
{
    static const struct coord_backend_ops ops = {.size = sizeof ops,
                                                 .abi = COORD_BACKEND_ABI,
                                                 .name = "paper",
                                                 .state_bytes = sizeof(struct paper),
                                                 .default_ttl = 15000,
                                                 .init = init,
                                                 .fini = fini,
                                                 .request = request,
                                                 .abandon = abandon,
                                                 .process = process,
                                                 .descriptors = descriptors,
                                                 .deadline = deadline};
    return &ops;
}
