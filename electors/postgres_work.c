/* SPDX-License-Identifier: MIT
 * electors/postgres_work.c - what the session sends next.
 *
 * One statement at a time, an acquire with its gate: so whatever may wait for a lock holds up a
 * renewal for half an attempt at most. Renewals come first, and several share one statement.
 */
#include "electors/postgres_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    KEYS_TEXT = COORD__POSTGRES_BATCH * 21 + 3,
    METADATA_TEXT = 2 * COORD_METADATA_MAX + 3
};

const char *coord__postgres_number(uint64_t value, char *out)
{
    if (snprintf(out, COORD__POSTGRES_NUMBER, "%" PRIu64, value) < 0) {
        out[0] = '\0';
    }
    return out;
}

struct keys {
    char text[KEYS_TEXT]; /* an array of SQL, not yet closed */
    size_t length;
    unsigned count;
};

static void add_key(struct keys *keys, const char *key)
{
    const int n = snprintf(keys->text + keys->length, sizeof keys->text - keys->length, "%c%s",
                           keys->count == 0 ? '{' : ',', key);
    COORD_ASSERT(n > 0);
    keys->length += (size_t)n;
    keys->count++;
}

static const char *close_keys(struct keys *keys)
{
    keys->text[keys->length] = '}';
    keys->text[keys->length + 1] = '\0';
    return keys->text;
}

/* ---------------------------------------------------------------- locks to let go */

static bool send_unlocks(struct coord__postgres_session *session, coord_ms now)
{
    struct keys keys = {.count = 0};
    char number[COORD__POSTGRES_NUMBER];
    for (struct coord__postgres_elector *e = session->first;
         e != NULL && keys.count < COORD__POSTGRES_BATCH; e = e->next) {
        if (e->unlock_due || now >= e->unlock_at) {
            add_key(&keys, e->key_text);
            e->unlock_due = false;
            e->unlock_at = COORD_NEVER;
            e->unlock_flying = true;
        }
    }
    session->orphans_flying = 0;
    while (session->orphans_flying < session->orphan_count && keys.count < COORD__POSTGRES_BATCH) {
        const uint64_t key = session->orphans[session->orphans_flying++];
        add_key(&keys, coord__postgres_number(key, number));
    }
    if (keys.count == 0) {
        return false;
    }
    const char *const values[] = {close_keys(&keys)};
    coord__postgres_session_send(session, COORD__POSTGRES_UNLOCK, NULL, 1, values, now);
    return true;
}

/* ---------------------------------------------------------------- renewals */

static bool must_strike(const struct coord__postgres_elector *e)
{
    return e->request.led && e->debt > 0 && e->gate_passed;
}

static bool send_renewals(struct coord__postgres_session *session, bool all, coord_ms now)
{
    struct keys keys = {.count = 0};
    coord__postgres_gathered(session);
    for (struct coord__postgres_elector *e = session->first;
         e != NULL && keys.count < COORD__POSTGRES_BATCH; e = e->next) {
        const bool asked = e->phase == COORD__POSTGRES_WAITING &&
                           e->request.verb == COORD_VERB_RENEW && !must_strike(e);
        if (asked) {
            e->phase = COORD__POSTGRES_FLYING;
        }
        if (asked || (all && e->held)) {
            add_key(&keys, e->key_text);
        }
    }
    if (keys.count == 0) {
        return false;
    }
    const char *const values[] = {close_keys(&keys)};
    coord__postgres_session_send(
        session, session->pooler ? COORD__POSTGRES_RENEW_LOCKS : COORD__POSTGRES_RENEW, NULL, 1,
        values, now);
    return true;
}

static void send_strike(struct coord__postgres_elector *e, coord_ms now)
{
    char fence[COORD__POSTGRES_NUMBER];
    const char *const values[] = {e->key_text, coord_backend_owner(e->base),
                                  coord__postgres_number(e->request.fence, fence)};
    coord__postgres_session_send(e->session, COORD__POSTGRES_STRIKE, e, 3, values, now);
}

/* ---------------------------------------------------------------- the other verbs */

static const char *metadata_text(const struct coord__postgres_elector *e, char *out)
{
    static const char digits[] = "0123456789abcdef";
    size_t bytes = 0;
    const unsigned char *metadata = coord_backend_metadata(e->base, &bytes);
    if (bytes == 0) {
        return NULL;
    }
    size_t length = 0;
    out[length++] = '\\';
    out[length++] = 'x';
    for (size_t i = 0; i < bytes; i++) {
        out[length++] = digits[metadata[i] >> 4];
        out[length++] = digits[metadata[i] & 15];
    }
    out[length] = '\0';
    return out;
}

static bool send_gate(struct coord__postgres_elector *e, coord_ms now)
{
    const char *const values[] = {e->key_text, coord_backend_owner(e->base)};
    e->gate_flying = true;
    return coord__postgres_session_send(e->session, COORD__POSTGRES_GATE, e, 2, values, now);
}

static void send_acquire(struct coord__postgres_elector *e, coord_ms now)
{
    const struct coord__postgres_session *session = e->session;
    char lease[COORD__POSTGRES_NUMBER];
    char timeline[COORD__POSTGRES_NUMBER];
    char seen[COORD__POSTGRES_NUMBER];
    char metadata[METADATA_TEXT];
    const char *const values[] = {
        coord_backend_name(e->base),
        e->key_text,
        coord_backend_owner(e->base),
        coord_backend_identity(e->base),
        coord__postgres_number(e->request.lease, lease),
        session->run[0] != '\0' ? session->run : NULL,
        coord__postgres_number(session->timeline, timeline),
        coord__postgres_number(e->request.seen, seen),
        e->fast ? "fast" : "safe",
        metadata_text(e, metadata),
    };
    e->wants_hints = true;
    /* The gate right behind it: a clear grant leads after one round trip. */
    if (coord__postgres_session_send(e->session, COORD__POSTGRES_ACQUIRE, e, 10, values, now) &&
        !session->pooler) {
        send_gate(e, now);
    }
}

static void send_release(struct coord__postgres_elector *e, coord_ms now)
{
    char fence[COORD__POSTGRES_NUMBER];
    char reserve[COORD__POSTGRES_NUMBER];
    const char *const values[] = {
        e->key_text,
        coord_backend_owner(e->base),
        coord__postgres_number(e->request.fence, fence),
        e->held ? "t" : "f",
        e->request.successor,
        coord__postgres_number(e->request.reserve, reserve),
        e->channel,
    };
    coord__postgres_session_send(e->session, COORD__POSTGRES_RELEASE, e, 7, values, now);
}

static void send_observe(struct coord__postgres_elector *e, coord_ms now)
{
    const char *const values[] = {coord_backend_name(e->base), e->key_text};
    coord__postgres_session_send(e->session, COORD__POSTGRES_OBSERVE, e, 2, values, now);
}

static void send_ask(struct coord__postgres_elector *e, coord_ms now)
{
    char fence[COORD__POSTGRES_NUMBER];
    char reserve[COORD__POSTGRES_NUMBER];
    const char *const values[] = {
        coord_backend_name(e->base),
        coord__postgres_number(e->request.fence, fence),
        e->request.successor,
        coord__postgres_number(e->request.reserve, reserve),
        e->channel,
    };
    coord__postgres_session_send(e->session, COORD__POSTGRES_ASK, e, 5, values, now);
}

static void send_init(struct coord__postgres_elector *e, coord_ms now)
{
    const char *run = e->session->run;
    char seen[COORD__POSTGRES_NUMBER];
    const char *const values[] = {
        coord_backend_name(e->base),
        e->key_text,
        coord_backend_owner(e->base),
        coord_backend_identity(e->base),
        run[0] != '\0' ? run : NULL,
        coord__postgres_number(e->request.seen, seen),
        e->fast            ? "fast"
        : e->says_takeover ? "safe"
                           : NULL, /* as it is */
    };
    coord__postgres_session_send(e->session, COORD__POSTGRES_INIT, e, 7, values, now);
}

/* @return true: a statement left. */
static bool send_request(struct coord__postgres_elector *e, coord_ms now)
{
    struct coord_reply done = {.outcome = COORD_DONE};
    const bool locked = e->held || e->unlock_flying;
    switch (e->request.verb) {
    case COORD_VERB_ACQUIRE:
        if (COORD__RULE(takes_no_lock_twice, locked || e->unlock_at != COORD_NEVER)) {
            e->unlock_due = true; /* of a term that is over: the lock would re-enter */
            return send_unlocks(e->session, now);
        }
        e->phase = COORD__POSTGRES_FLYING;
        send_acquire(e, now);
        return true;
    case COORD_VERB_RENEW: /* the others went together */
        e->phase = COORD__POSTGRES_FLYING;
        send_strike(e, now);
        return true;
    case COORD_VERB_RELEASE:
        e->phase = COORD__POSTGRES_FLYING;
        send_release(e, now);
        return true;
    case COORD_VERB_UNDO:
        e->phase = COORD__POSTGRES_FLYING;
        if (!locked) {
            coord__postgres_finish(e, &done, now);
            return false;
        }
        e->unlock_due = true; /* its answer finishes this as well */
        return send_unlocks(e->session, now);
    case COORD_VERB_OBSERVE:
        e->phase = COORD__POSTGRES_FLYING;
        send_observe(e, now);
        return true;
    case COORD_VERB_ASK:
        e->phase = COORD__POSTGRES_FLYING;
        send_ask(e, now);
        return true;
    case COORD_VERB_INIT:
        e->phase = COORD__POSTGRES_FLYING;
        send_init(e, now);
        return true;
    case COORD_VERB_NONE:
        break;
    }
    return false;
}

/* ---------------------------------------------------------------- turns */

static bool gate_due(const struct coord__postgres_elector *e, coord_ms now)
{
    return e->held && !e->gate_passed && !e->gate_flying && now >= e->gate_at;
}

static bool serve(struct coord__postgres_elector *e, coord_ms now)
{
    if (e->phase == COORD__POSTGRES_WAITING && send_request(e, now)) {
        return true;
    }
    if (e->blockers_due) {
        const char *const values[] = {e->key_text};
        e->blockers_due = false;
        return coord__postgres_session_send(e->session, COORD__POSTGRES_BLOCKERS, e, 1, values,
                                            now);
    }
    return gate_due(e, now) && send_gate(e, now);
}

/* Each elector has its turn, so that many candidates keep no gate waiting. */
static void serve_next(struct coord__postgres_session *session, coord_ms now)
{
    struct coord__postgres_elector *start = session->cursor != NULL ? session->cursor->next : NULL;
    struct coord__postgres_elector *e = start != NULL ? start : session->first;
    struct coord__postgres_elector *const first = e;
    while (e != NULL) {
        if (serve(e, now)) {
            session->cursor = e;
            return;
        }
        e = e->next != NULL ? e->next : session->first;
        if (e == first) {
            return;
        }
    }
}

static coord_ms ping_at(const struct coord__postgres_session *session)
{
    for (const struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (e->held) {
            return coord_ms_add(session->last_sent, session->lease / 2);
        }
    }
    return COORD_NEVER;
}

/* A gate that does not open at once must not cost the grant its reply. */
static coord_ms grant_at(const struct coord__postgres_elector *e)
{
    return e->granted ? e->request.sent + coord_backend_attempt(e->base) / 4 * 3 : COORD_NEVER;
}

void coord__postgres_work(struct coord__postgres_session *session, coord_ms now)
{
    for (struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        if (now >= grant_at(e)) {
            coord__postgres_grant(e, now);
        }
    }
    if (!session->ready || session->job_count > 0 || !coord__postgres_is_open(session->link)) {
        return;
    }
    if (session->settings_due) {
        coord__postgres_setup_settle(session, now);
    } else if (!send_unlocks(session, now) && !send_renewals(session, false, now)) {
        serve_next(session, now);
        if (session->job_count == 0 && now >= ping_at(session)) {
            /* An election with a longer lease renews less often than the session may be silent. */
            send_renewals(session, true, now);
        }
    }
}

coord_ms coord__postgres_work_at(const struct coord__postgres_session *session)
{
    coord_ms at = COORD_NEVER;
    const bool idle = session->ready && session->job_count == 0;
    for (const struct coord__postgres_elector *e = session->first; e != NULL; e = e->next) {
        at = coord_ms_min(at, grant_at(e));
        if (idle && e->held && !e->gate_passed && !e->gate_flying) {
            at = coord_ms_min(at, e->gate_at);
        }
        if (idle) {
            at = coord_ms_min(at, e->unlock_at);
        }
        if (idle && (e->unlock_due || e->blockers_due)) {
            at = 0;
        }
    }
    return idle ? coord_ms_min(at, ping_at(session)) : at;
}
