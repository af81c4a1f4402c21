/* SPDX-License-Identifier: MIT
 * electors/memory.c - a store of records in this process, and the electors that contend over it.
 *
 * A mutex guards each state, as two runtimes may share one; it is held for a few comparisons and
 * never while anything waits. A runtime holds its own lock around every call that comes here, and
 * holds that still while its process forks, so that a child finds this one free.
 */
#include "electors/memory_store.h"

#include "coord/escape.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The named ones of this process. */
static pthread_mutex_t named_lock = PTHREAD_MUTEX_INITIALIZER;
static struct coord_memory_state *named;
static atomic_uint_fast64_t generations;

/* ---------------------------------------------------------------- states */

struct coord_memory_state *coord_memory_state_new(void)
{
    struct coord_memory_state *state = calloc(1, sizeof *state);
    if (state != NULL) {
        pthread_mutex_init(&state->lock, NULL);
        state->users = 1;
    }
    return state;
}

static void forget_name(struct coord_memory_state *state)
{
    struct coord_memory_state **at = &named;
    while (*at != NULL && *at != state) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = state->next;
    }
}

void coord_memory_state_free(struct coord_memory_state *state)
{
    if (state == NULL) {
        return;
    }
    pthread_mutex_lock(&named_lock); /* nobody finds it by name while its last user goes */
    pthread_mutex_lock(&state->lock);
    COORD_ASSERT(state->users > 0);
    const bool last = --state->users == 0;
    pthread_mutex_unlock(&state->lock);
    if (last) {
        forget_name(state);
    }
    pthread_mutex_unlock(&named_lock);
    if (!last) {
        return;
    }
    while (state->records != NULL) {
        struct record *r = state->records;
        state->records = r->next;
        free(r);
    }
    pthread_mutex_destroy(&state->lock);
    free(state->name);
    free(state);
}

static void add_user(struct coord_memory_state *state)
{
    pthread_mutex_lock(&state->lock);
    state->users++;
    pthread_mutex_unlock(&state->lock);
}

struct coord_memory_state *coord_memory_state_named(const char *name)
{
    COORD_ASSERT(name[0] != '\0');
    pthread_mutex_lock(&named_lock);
    struct coord_memory_state *state = named;
    while (state != NULL && strcmp(state->name, name) != 0) {
        state = state->next;
    }
    if (state != NULL) {
        add_user(state);
    } else if ((state = coord_memory_state_new()) != NULL) {
        state->name = strdup(name);
        if (state->name == NULL) {
            pthread_mutex_destroy(&state->lock);
            free(state);
            state = NULL;
        } else {
            state->next = named;
            named = state;
        }
    }
    pthread_mutex_unlock(&named_lock);
    return state;
}

bool coord_memory_state_revoke(struct coord_memory_state *state, const char *name)
{
    char escaped[COORD_ESCAPED_MAX];
    if (coord_escape(name, strlen(name), escaped) != COORD_OK) {
        return false;
    }
    pthread_mutex_lock(&state->lock);
    struct record *r = coord__memory_find(state, escaped);
    const bool held = r != NULL && r->held;
    if (held) {
        r->held = false;
        r->revoked = true;
        coord__memory_wake(state, escaped, NULL);
    }
    pthread_mutex_unlock(&state->lock);
    return held;
}

/* ---------------------------------------------------------------- the backend */

static enum coord_err no_memory(struct coord_error *error)
{
    return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
}

static struct coord_memory_state *state_of(const struct coord_elector_config *config, bool *alone)
{
    const char *name = config->uri != NULL ? config->uri->path : NULL;
    *alone = false;
    if (config->backend_ctx != NULL) {
        add_user(config->backend_ctx);
        return config->backend_ctx;
    }
    if (name != NULL && name[0] != '\0') {
        return coord_memory_state_named(name);
    }
    *alone = true;
    return coord_memory_state_new();
}

static enum coord_err begin(struct coord_elector *elector,
                            const struct coord_elector_config *config, struct coord_error *error)
{
    struct member *m = coord_backend_state(elector);
    bool alone = false;
    m->state = state_of(config, &alone);
    if (m->state == NULL) {
        return no_memory(error);
    }
    m->name = coord_backend_name(elector);
    m->owner = coord_backend_owner(elector);
    m->wake = alone ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->generation = atomic_fetch_add(&generations, 1) + 1;
    if (!alone && m->wake < 0) {
        const int why = errno;
        coord_memory_state_free(m->state);
        return coord_error_set(error, COORD_E_SYSTEM,
                               "cannot make an eventfd (%s): raise the limit of open files",
                               strerrorname_np(why));
    }
    pthread_mutex_lock(&m->state->lock);
    /* Made now, so that no request can fail for want of memory. */
    m->record = coord__memory_record(m->state, m->name);
    const bool made = m->record != NULL;
    if (made) {
        m->next = m->state->members;
        m->state->members = m;
    }
    pthread_mutex_unlock(&m->state->lock);
    if (!made) {
        close(m->wake);
        coord_memory_state_free(m->state);
        return no_memory(error);
    }
    return COORD_OK;
}

static void end(struct coord_elector *elector, bool forked)
{
    struct member *m = coord_backend_state(elector);
    struct coord_memory_state *state = m->state;
    (void)forked; /* the state of a child is a copy: nothing of the parent's is touched */
    pthread_mutex_lock(&state->lock);
    struct member **at = &state->members;
    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
    pthread_mutex_unlock(&state->lock);
    if (m->wake >= 0) {
        close(m->wake);
    }
    coord_memory_state_free(state);
}

static void request(struct coord_elector *elector, const struct coord_request *what, coord_ms now)
{
    struct member *m = coord_backend_state(elector);
    (void)now;
    m->request = *what;
    if (what->successor != NULL) {
        snprintf(m->successor, sizeof m->successor, "%s", what->successor);
        m->request.successor = m->successor;
    }
    m->pending = true;
}

static void abandon(struct coord_elector *elector, coord_ms now)
{
    struct member *m = coord_backend_state(elector);
    (void)now;
    m->pending = false;
}

static void take_hints(struct coord_elector *elector, struct member *m, coord_ms now)
{
    uint64_t count = 0;
    if (m->wake < 0 || read(m->wake, &count, sizeof count) != (ssize_t)sizeof count) {
        return;
    }
    pthread_mutex_lock(&m->state->lock);
    const struct record *r = m->record;
    const bool lost = r->revoked && strcmp(r->owner, m->owner) == 0;
    pthread_mutex_unlock(&m->state->lock);
    if (lost) {
        struct coord_error why;
        COORD_IGNORE(coord_error_set(&why, COORD_E_NOT_LEADER, "the lease was taken away"),
                     "it is the reason");
        coord_backend_lost(elector, &why, now);
    }
    coord_backend_hint(elector, now);
}

static void process(struct coord_elector *elector, coord_ms now)
{
    struct member *m = coord_backend_state(elector);
    take_hints(elector, m, now);
    if (!m->pending) {
        return;
    }
    m->pending = false;
    struct coord_observation seen;
    char asked_for[COORD_ESCAPED_MAX];
    struct coord_reply reply = {
        .id = m->request.id, .retry_in = COORD_NEVER, .leader = &seen, .error.code = COORD_OK};
    pthread_mutex_lock(&m->state->lock);
    coord__memory_answer(elector, m, &reply, &seen, now);
    if (reply.asked_for != NULL) { /* it lies in the record, which is others' as soon as unlocked */
        snprintf(asked_for, sizeof asked_for, "%s", reply.asked_for);
        reply.asked_for = asked_for;
    }
    pthread_mutex_unlock(&m->state->lock);
    coord_backend_reply(elector, &reply, now);
}

static size_t descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    const struct member *m = coord_backend_state(elector);
    if (m->wake < 0) {
        return 0;
    }
    *out = (struct coord_descriptor){.fd = m->wake, .read = true, .generation = m->generation};
    return 1;
}

static coord_ms deadline(struct coord_elector *elector)
{
    const struct member *m = coord_backend_state(elector);
    return m->pending ? 0 : COORD_NEVER;
}

const struct coord_backend_ops *coord_memory_elector(void)
{
    static const struct coord_backend_ops ops = {
        .size = sizeof ops,
        .abi = COORD_BACKEND_ABI,
        .name = "memory",
        .state_bytes = sizeof(struct member),
        .default_ttl = 3000,
        .hint_jitter = 0,
        .options = NULL,
        .init = begin,
        .fini = end,
        .request = request,
        .abandon = abandon,
        .process = process,
        .descriptors = descriptors,
        .deadline = deadline,
    };
    return &ops;
}
