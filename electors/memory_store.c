/* SPDX-License-Identifier: MIT
 * electors/memory_store.c - one request, one step on one record.
 */
#include "electors/memory_store.h"

#include "coord/fence.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct record *coord__memory_find(struct coord_memory_state *state, const char *name)
{
    for (struct record *r = state->records; r != NULL; r = r->next) {
        if (strcmp(r->name, name) == 0) {
            return r;
        }
    }
    return NULL;
}

struct record *coord__memory_record(struct coord_memory_state *state, const char *name)
{
    struct record *r = coord__memory_find(state, name);
    if (r == NULL && (r = calloc(1, sizeof *r)) != NULL) {
        snprintf(r->name, sizeof r->name, "%s", name);
        r->next = state->records;
        state->records = r;
    }
    return r;
}

void coord__memory_wake(const struct coord_memory_state *state, const char *name,
                        const struct member *except)
{
    for (const struct member *m = state->members; m != NULL; m = m->next) {
        if (m == except || m->wake < 0 || strcmp(m->name, name) != 0) {
            continue;
        }
        const uint64_t one = 1;
        const ssize_t n = write(m->wake, &one, sizeof one);
        COORD_ASSERT(n == (ssize_t)sizeof one || errno == EAGAIN); /* full: it is awake */
    }
}

/* ---------------------------------------------------------------- requests */

static bool is_held(const struct record *r, coord_ms now)
{
    return r->held && now < r->valid_until;
}

static bool is_reserved(const struct record *r, coord_ms now)
{
    return !is_held(r, now) && r->reserved_for[0] != '\0' && now < r->reserved_until;
}

static bool is_ours(const struct record *r, const struct member *m, coord_ms now)
{
    return is_held(r, now) && strcmp(r->owner, m->owner) == 0 && r->attempt == m->request.attempt &&
           (m->request.fence == 0 || r->fence == m->request.fence);
}

static void observe(const struct record *r, coord_ms now, struct coord_observation *out)
{
    memset(out, 0, sizeof *out);
    out->remaining = COORD_NEVER;
    out->last_fence = r->fence;
    if (is_held(r, now)) {
        out->leading = r->led;
        out->taking_over = !r->led;
        snprintf(out->identity, sizeof out->identity, "%s", r->identity);
        out->fence = r->fence;
        out->remaining = r->valid_until - now;
        out->metadata_bytes = r->metadata_bytes;
        memcpy(out->metadata, r->metadata, r->metadata_bytes);
    } else if (is_reserved(r, now)) {
        snprintf(out->identity, sizeof out->identity, "%s", r->reserved_for);
    }
}

static void grant(struct coord_elector *elector, struct member *m, struct record *r,
                  struct coord_reply *reply, coord_ms now)
{
    size_t bytes = 0;
    const void *metadata = coord_backend_metadata(elector, &bytes);
    /* A fence that the record does not know was lost with its term's end: one lease is owed. */
    if (m->request.seen > r->fence) {
        r->debt_until = coord_ms_max(r->debt_until, coord_ms_add(now, m->request.lease));
    }
    r->held = true;
    r->revoked = false;
    snprintf(r->owner, sizeof r->owner, "%s", m->owner);
    snprintf(r->identity, sizeof r->identity, "%s", coord_backend_identity(elector));
    r->attempt = m->request.attempt;
    r->fence = coord_fence_next(r->fence, m->request.seen, 0, false);
    r->valid_until = coord_ms_add(now, m->request.lease);
    r->reserved_for[0] = '\0';
    r->asked_fence = 0;
    r->metadata_bytes = bytes;
    if (bytes > 0) {
        memcpy(r->metadata, metadata, bytes);
    }
    reply->outcome = COORD_GRANTED;
    reply->fence = r->fence;
    reply->owed = coord_ms_sub(r->debt_until, now);
    r->led = reply->owed == 0;
}

static void acquire(struct coord_elector *elector, struct member *m, struct record *r,
                    struct coord_reply *reply, coord_ms now)
{
    if (m->request.attempt <= m->dead_attempt) {
        reply->outcome = COORD_DEAD_ATTEMPT;
    } else if (is_ours(r, m, now)) {
        reply->outcome = COORD_GRANTED; /* given again, with what it still owes */
        reply->fence = r->fence;
        reply->owed = coord_ms_sub(r->debt_until, now);
    } else if (is_held(r, now)) {
        reply->outcome = COORD_HELD;
        reply->retry_in = r->valid_until - now;
    } else if (is_reserved(r, now) &&
               strcmp(r->reserved_for, coord_backend_identity(elector)) != 0) {
        reply->outcome = COORD_RESERVED;
        reply->retry_in = r->reserved_until - now;
    } else {
        grant(elector, m, r, reply, now);
    }
}

static void renew(struct member *m, struct record *r, struct coord_reply *reply, coord_ms now)
{
    if (!is_ours(r, m, now)) {
        reply->outcome = COORD_LOST;
        COORD_IGNORE(coord_error_set(&reply->error, COORD_E_NOT_LEADER,
                                     "the lease ran out, or was taken away"),
                     "it is the reply");
        return;
    }
    r->valid_until = coord_ms_add(now, m->request.lease);
    if (m->request.led) {
        r->led = true;
        r->debt_until = 0;
    } else {
        r->debt_until = coord_ms_max(r->debt_until, coord_ms_add(m->request.sent, m->request.debt));
    }
    reply->outcome = COORD_RENEWED;
    reply->owed = m->request.led ? 0 : COORD_NEVER;
    if (r->asked_fence == r->fence && now < r->asked_until) {
        reply->asked = true;
        reply->asked_for = r->asked_to[0] != '\0' ? r->asked_to : NULL;
    }
}

/* RELEASE and UNDO: the same, but that only a term that led may resign or name a successor. */
static void let_go(struct member *m, struct record *r, struct coord_reply *reply, coord_ms now)
{
    m->dead_attempt = m->request.attempt;
    reply->outcome = COORD_DONE;
    if (!is_ours(r, m, now)) {
        return;
    }
    r->held = false;
    if (m->request.verb == COORD_VERB_RELEASE) {
        r->debt_until = 0;
        if (m->request.successor != NULL) {
            snprintf(r->reserved_for, sizeof r->reserved_for, "%s", m->request.successor);
            r->reserved_until = coord_ms_add(now, m->request.reserve);
        }
    }
    coord__memory_wake(m->state, m->name, m);
}

static void look(const struct coord_elector *elector, const struct record *r,
                 struct coord_reply *reply, coord_ms now)
{
    const bool reserved = is_reserved(r, now);
    const bool for_us = reserved && strcmp(r->reserved_for, coord_backend_identity(elector)) == 0;
    if (is_held(r, now)) {
        reply->outcome = COORD_HELD;
        reply->retry_in = r->valid_until - now;
    } else if (reserved && !for_us) {
        reply->outcome = COORD_RESERVED;
        reply->retry_in = r->reserved_until - now;
    } else {
        reply->outcome = COORD_FREE;
        reply->for_us = for_us;
    }
}

static void ask(const struct member *m, struct record *r, struct coord_reply *reply, coord_ms now)
{
    if (!is_held(r, now) || r->fence != m->request.fence) {
        reply->outcome = COORD_NOBODY;
        return;
    }
    r->asked_fence = r->fence;
    r->asked_until = coord_ms_add(now, m->request.reserve);
    snprintf(r->asked_to, sizeof r->asked_to, "%s",
             m->request.successor != NULL ? m->request.successor : "");
    reply->outcome = COORD_DONE;
    coord__memory_wake(m->state, m->name, m);
}

static void init_record(const struct member *m, struct record *r, struct coord_reply *reply,
                        coord_ms now)
{
    if (is_held(r, now)) {
        reply->outcome = COORD_HELD;
        return;
    }
    r->held = false;
    r->debt_until = 0;
    r->reserved_for[0] = '\0';
    reply->outcome = COORD_DONE;
    coord__memory_wake(m->state, m->name, m);
}

void coord__memory_answer(struct coord_elector *elector, struct member *m,
                          struct coord_reply *reply, struct coord_observation *seen, coord_ms now)
{
    struct record *r = m->record;
    switch (m->request.verb) {
    case COORD_VERB_ACQUIRE:
        acquire(elector, m, r, reply, now);
        break;
    case COORD_VERB_RENEW:
        renew(m, r, reply, now);
        break;
    case COORD_VERB_RELEASE:
    case COORD_VERB_UNDO:
        let_go(m, r, reply, now);
        break;
    case COORD_VERB_OBSERVE:
        look(elector, r, reply, now);
        break;
    case COORD_VERB_ASK:
        ask(m, r, reply, now);
        break;
    case COORD_VERB_INIT:
        init_record(m, r, reply, now);
        break;
    case COORD_VERB_NONE:
        break;
    }
    observe(r, now, seen);
}
