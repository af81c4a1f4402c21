/* SPDX-License-Identifier: MIT
 * electors/postgres.c - the backend's table: options, requests, and what to wait for.
 */
#include "electors/postgres.h"

#include "electors/postgres_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct coord__postgres_elector *of(struct coord_elector *base)
{
    return coord_backend_state(base);
}

static enum coord_err read_options(const struct coord_uri *uri, bool *fast, bool *pooler,
                                   struct coord_error *error)
{
    const char *takeover = coord_uri_option(uri, "takeover");
    const char *mode = coord_uri_option(uri, "pooler");
    *fast = takeover != NULL && strcmp(takeover, "fast") == 0;
    *pooler = mode != NULL;
    if (takeover != NULL && !*fast && strcmp(takeover, "safe") != 0) {
        return coord_error_set(
            error, COORD_E_BAD_OPTION,
            "coord.takeover=%.40s is not known: use safe (waits until an earlier "
            "term has surely ended) or fast (the fence alone protects)",
            takeover);
    }
    if (mode != NULL && strcmp(mode, "session") != 0) {
        return coord_error_set(
            error, COORD_E_BAD_OPTION,
            "coord.pooler=%.40s cannot work: only a pool in session mode keeps a "
            "lock with its client; use coord.pooler=session, or connect to the "
            "server itself",
            mode);
    }
    return COORD_OK;
}

static enum coord_err init(struct coord_elector *base, const struct coord_elector_config *config,
                           struct coord_error *error)
{
    struct coord__postgres_elector *e = of(base);
    bool pooler = false;
    size_t bytes = 0;
    if (config->uri == NULL) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "the postgres elector needs a URI, such as "
                               "postgresql://USER@HOST/DATABASE");
    }
    enum coord_err rc = read_options(config->uri, &e->fast, &pooler, error);
    if (rc == COORD_OK) {
        rc = coord_timing_derive(coord_backend_lease(base), 0, &e->timing, error);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    const void *name = coord_backend_raw_name(base, &bytes);
    e->says_takeover = coord_uri_option(config->uri, "takeover") != NULL;
    e->base = base;
    e->key = coord_postgres_key(name, bytes);
    e->unlock_at = COORD_NEVER;
    e->random = config->seed ^ e->key;
    coord__postgres_number(e->key, e->key_text);
    if (snprintf(e->channel, sizeof e->channel, "coord_%016" PRIx64, e->key) < 0) {
        return COORD_E_SYSTEM;
    }
    return coord__postgres_session_join(e, config, pooler, error);
}

static void fini(struct coord_elector *base, bool forked)
{
    coord__postgres_session_leave(of(base), forked);
}

static void request(struct coord_elector *base, const struct coord_request *request, coord_ms now)
{
    struct coord__postgres_elector *e = of(base);
    COORD_ASSERT(e->phase == COORD__POSTGRES_IDLE);
    e->request = *request;
    e->phase = COORD__POSTGRES_WAITING;
    e->stirs = true; /* process() sends it */
    if (request->verb == COORD_VERB_RELEASE && request->fence != e->fence) {
        e->release_failures = 0;
    }
    (void)now;
}

/*
 * The statement itself cannot be called back: its answer, whenever it comes, is met by
 * postgres_answer.c, and a grant in it is let go. The session lives on: closing it would end the
 * terms of the other elections as well.
 */
static void abandon(struct coord_elector *base, coord_ms now)
{
    struct coord__postgres_elector *e = of(base);
    if (e->granted) {
        e->granted = false;
        e->unlock_due = true;
    }
    if (e->request.verb == COORD_VERB_UNDO && e->held) {
        e->unlock_due = true;
    }
    e->phase = COORD__POSTGRES_IDLE;
    e->stirs = true;
    (void)now;
}

static void process(struct coord_elector *base, coord_ms now)
{
    struct coord__postgres_elector *e = of(base);
    /* One of many reads for all, or each event would cost as many times as there are electors.
     * Where a host calls another one alone, that one does. */
    const bool drives = e->session->driver == e || e->session->looked_at != now;
    /* What was just asked for, or learned, is dealt with first: nothing can have come since. The
     * next call reads. */
    const bool look = drives && !e->touched && !e->stirs;
    const bool gathers = e->stirs && coord__postgres_gather(e, now);
    const bool works = e->stirs && !gathers;
    e->touched = false;
    e->stirs = false;
    if (works || (drives && !gathers)) {
        coord__postgres_session_process(e->session, look, now);
    }
}

static size_t descriptors(struct coord_elector *base, struct coord_descriptor *out)
{
    const struct coord__postgres_session *session = of(base)->session;
    size_t count = coord__postgres_descriptor(session->link, out);
    count += coord__postgres_descriptor(session->listener.link, out + count);
    return count;
}

static coord_ms deadline(struct coord_elector *base)
{
    const struct coord__postgres_elector *e = of(base);
    if (e->touched || e->stirs) {
        return 0;
    }
    return coord_ms_min(e->session->due_at, coord__postgres_gather_at(e->session));
}

static const char *const options[] = {"takeover", "pooler", NULL};

static const struct coord_backend_ops ops = {
    .size = sizeof(struct coord_backend_ops),
    .abi = COORD_BACKEND_ABI,
    .name = "postgres",
    .state_bytes = sizeof(struct coord__postgres_elector),
    .default_ttl = 6000,
    .hint_jitter = 4,
    .options = options,
    .init = init,
    .fini = fini,
    .request = request,
    .abandon = abandon,
    .process = process,
    .descriptors = descriptors,
    .deadline = deadline,
};

const struct coord_backend_ops *coord_postgres_elector(void)
{
    return &ops;
}
