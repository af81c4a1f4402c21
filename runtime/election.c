/* SPDX-License-Identifier: MIT
 * runtime/election.c - opening, closing, and the calls that do not wait.
 */
#include "runtime/inside.h"

#include "coord/escape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uuid/uuid.h>

/* ---------------------------------------------------------------- opening */

/* Host name, process id, random suffix: unique, and still of use to who reads it. */
static size_t make_identity(const unsigned char *random, char *out, size_t room)
{
    char host[128] = "";
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') {
        memcpy(host, "localhost", sizeof "localhost");
    }
    const int n = snprintf(out, room, "%s-%ld-%02x%02x%02x%02x", host, (long)getpid(), random[0],
                           random[1], random[2], random[3]);
    COORD_ASSERT(n > 0 && (size_t)n < room);
    return (size_t)n;
}

static void fill_config(const struct coord_runtime *runtime,
                        const struct coord_election_config *config,
                        struct coord_elector_config *out)
{
    out->name = config->name;
    out->name_bytes = config->name_bytes;
    out->metadata = config->metadata;
    out->metadata_bytes = config->metadata_bytes;
    out->ttl = config->ttl;
    out->grace = config->grace;
    out->rank = config->rank;
    out->explicit_ack = true; /* who acknowledges what is decided here, in tell.c */
    out->log = config->log.fn != NULL ? config->log : runtime->log;
}

static void join_runtime(struct coord_runtime *runtime, struct coord_election *election)
{
    struct coord_election **at = &runtime->first;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = election;
    coord__touch(election);
}

/* The elector is made under the lock: it may join a connection that is in use. */
static enum coord_err make_elector(struct coord_election *election,
                                   struct coord_elector_config *config, struct coord_error *error)
{
    struct coord_runtime *runtime = election->runtime;
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    config->share = &runtime->share;
    config->resolver = &runtime->resolver;
    const enum coord_err rc =
        coord_elector_new(election->ops, config, coord_clock_now(), &election->elector, error);
    if (rc == COORD_OK) {
        election->lease = coord_elector_lease(election->elector);
        election->timing = *coord_elector_timing(election->elector);
        snprintf(election->name, sizeof election->name, "%s",
                 coord_backend_name(election->elector));
        snprintf(election->identity, sizeof election->identity, "%s",
                 coord_backend_identity(election->elector));
        join_runtime(runtime, election);
    }
    coord__leave(runtime);
    return rc;
}

static enum coord_err open_elector(struct coord_runtime *runtime,
                                   const struct coord_backend_ops *ops,
                                   const struct coord_election_config *config,
                                   struct coord_elector_config *elector,
                                   struct coord_election **out, struct coord_error *error)
{
    char identity[COORD_NAME_MAX];
    struct coord_election *election = calloc(1, sizeof *election);
    struct coord__cell *cell = coord__cell_new();
    if (election == NULL || cell == NULL) {
        free(election);
        coord__cell_free(cell);
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    election->magic = COORD__ELECTION_MAGIC;
    election->cell = cell;
    election->runtime = runtime;
    election->ops = ops;
    election->explicit_ack = config->explicit_ack;
    election->watchdog = config->watchdog;
    election->watchdog_ctx = config->watchdog_ctx;
    election->watchdog_abort = config->watchdog_abort;
    election->silent_at = COORD_NEVER;

    fill_config(runtime, config, elector);
    uuid_generate(elector->owner);
    memcpy(&elector->seed, elector->owner, sizeof elector->seed);
    elector->identity = config->identity;
    elector->identity_bytes = config->identity_bytes;
    if (config->identity == NULL && config->identity_bytes == 0) {
        unsigned char random[16];
        uuid_generate(random);
        elector->identity = identity;
        elector->identity_bytes = make_identity(random, identity, sizeof identity);
    }
    const enum coord_err rc = make_elector(election, elector, error);
    if (rc != COORD_OK) {
        coord__cell_free(cell);
        free(election);
        return rc;
    }
    *out = election;
    return COORD_OK;
}

static enum coord_err check_config(const struct coord_election_config *config,
                                   struct coord_error *error)
{
    COORD_ASSERT(config != NULL);
    if (config->size != sizeof *config) {
        return coord_error_set(error, COORD_E_VERSION_MISMATCH,
                               "the program was compiled for another version of libcoord than %s: "
                               "compile it again",
                               coord_version());
    }
    return COORD_OK;
}

enum coord_err coord_election_open(struct coord_runtime *runtime, const struct coord_scheme *table,
                                   const char *uri, const struct coord_election_config *config,
                                   struct coord_election **out, struct coord_error *error)
{
    COORD_ASSERT(uri != NULL);
    COORD_ASSERT(out != NULL);
    enum coord_err rc = check_config(config, error);
    if (rc != COORD_OK) {
        return rc;
    }
    struct coord_uri *parsed = NULL;
    const struct coord_backend_ops *ops = NULL;
    struct coord_elector_config elector = COORD_ELECTOR_CONFIG_INIT;
    rc = coord__uri_new(uri, config->options, &parsed, error);
    if (rc == COORD_OK) {
        rc = coord_scheme_find(table, parsed->scheme, &ops, error);
    }
    if (rc == COORD_OK) {
        elector.uri = parsed;
        rc = open_elector(runtime, ops, config, &elector, out, error);
    }
    coord__uri_free(parsed);
    return rc;
}

enum coord_err coord_election_open_backend(struct coord_runtime *runtime,
                                           const struct coord_backend_ops *ops, void *backend_ctx,
                                           const struct coord_election_config *config,
                                           struct coord_election **out, struct coord_error *error)
{
    COORD_ASSERT(ops != NULL);
    COORD_ASSERT(out != NULL);
    const enum coord_err rc = check_config(config, error);
    if (rc != COORD_OK) {
        return rc;
    }
    if (config->options != NULL && config->options[0] != NULL) {
        return coord_error_set(error, COORD_E_UNKNOWN_OPTION,
                               "options are for elections that are opened by URI: set ttl, grace "
                               "and rank in the configuration");
    }
    struct coord_elector_config elector = COORD_ELECTOR_CONFIG_INIT;
    elector.backend_ctx = backend_ctx;
    return open_elector(runtime, ops, config, &elector, out, error);
}

/* ---------------------------------------------------------------- closing */

void coord__pin(struct coord_election *election)
{
    election->pins++;
}

void coord__unpin(struct coord_election *election)
{
    COORD_ASSERT(election->pins > 0);
    if (--election->pins > 0 || !election->closed) {
        return;
    }
    coord__free_callbacks(election);
    coord__cell_free(election->cell);
    election->magic = 0;
    free(election);
}

static void leave_runtime(struct coord_election *election)
{
    struct coord_election **at = &election->runtime->first;
    while (*at != NULL && *at != election) {
        at = &(*at)->next;
    }
    COORD_ASSERT(*at == election);
    *at = election->next;
}

void coord__close(struct coord_election *election, bool forked)
{
    const struct coord__published nobody = {.hard = 0};
    coord__cell_write(election->cell, &nobody); /* before the store hears of it */
    leave_runtime(election);
    election->runtime->sync = true;
    for (size_t i = 0; !forked && i < election->descriptor_count; i++) {
        coord__loop_forget(&election->runtime->loop, election->descriptors[i].fd);
    }
    coord_elector_free(election->elector, forked);
    election->elector = NULL;
    election->lease = NULL;
    election->closed = true;
    election->silent = true;
    if (!forked) {
        coord__loop_wake(&election->runtime->loop); /* its descriptors leave the loop */
        coord__wake_waiters(election->runtime);
    }
    coord__pin(election);
    coord__unpin(election);
}

void coord_election_close(struct coord_election *election)
{
    if (election == NULL) {
        return;
    }
    COORD_ASSERT(election->magic == COORD__ELECTION_MAGIC);
    struct coord_runtime *runtime = election->runtime;
    if (!coord__enter(runtime)) {
        /* This call may be inside it; what other threads of the parent held stays in memory. */
        coord__close(election, true);
        return;
    }
    coord__close(election, false);
    coord__leave(runtime);
}

/* ---------------------------------------------------------------- asking */

enum coord_err coord__say_forked(struct coord_error *error)
{
    return coord_error_set(error, COORD_E_FORKED,
                           "this belongs to the parent process: make a runtime and open an "
                           "election in the child");
}

enum coord_err coord__say_closed(struct coord_error *error)
{
    return coord_error_set(error, COORD_E_CLOSED,
                           "the election was closed while it was waited for: open it again");
}

bool coord_election_is_leader(const struct coord_election *election)
{
    const coord_ms hard = coord__cell_hard(election->cell);
    return hard != 0 && coord_clock_now() < hard;
}

struct coord_claim coord_election_claim(const struct coord_election *election)
{
    struct coord__published what;
    struct coord_claim claim = {.leading = false};
    coord__cell_read(election->cell, &what);
    const coord_ms now = coord_clock_now();
    if (now < what.hard) {
        claim.leading = true;
        claim.stopping = what.stopping;
        claim.term = what.term;
        claim.fence = what.fence;
        claim.remaining = what.hard - now;
        claim.hard = what.hard;
    }
    return claim;
}

static void name_ourselves(const struct coord_election *election, const struct coord_claim *own,
                           struct coord_observation *out)
{
    size_t bytes = 0;
    const void *metadata = coord_backend_metadata(election->elector, &bytes);
    if (strcmp(out->identity, election->identity) != 0) {
        out->since_us = 0;
    }
    out->leading = true;
    out->taking_over = false;
    memcpy(out->identity, election->identity, sizeof out->identity);
    out->fence = own->fence;
    out->last_fence = own->fence;
    out->remaining = own->remaining;
    out->metadata_bytes = bytes;
    if (bytes > 0) {
        memcpy(out->metadata, metadata, bytes);
    }
}

enum coord_err coord_election_leader(struct coord_election *election, struct coord_observation *out)
{
    if (!coord__enter(election->runtime)) {
        return COORD_E_FORKED;
    }
    const struct coord_lease *lease = election->lease;
    const struct coord_claim own = coord_lease_claim(lease, coord_clock_now());
    *out = *coord_lease_leader(lease);
    if (own.leading) {
        name_ourselves(election, &own, out);
    } else if (strcmp(out->identity, election->identity) == 0 && out->leading) {
        /* What the store said of us before our term ended. */
        out->leading = false;
        out->identity[0] = '\0';
        out->fence = 0;
        out->since_us = 0;
        out->metadata_bytes = 0;
    }
    coord__leave(election->runtime);
    return COORD_OK;
}

enum coord_err coord_election_explain(struct coord_election *election,
                                      struct coord_explanation *out)
{
    if (!coord__enter(election->runtime)) {
        *out = (struct coord_explanation){
            .reason = COORD_REASON_NOT_STANDING, .code = COORD_E_FORKED, .for_ms = COORD_NEVER};
        snprintf(out->text, sizeof out->text,
                 "this is a forked child: the parent stands; open an election here");
        return COORD_E_FORKED;
    }
    coord_elector_explain(election->elector, coord_clock_now(), out);
    coord__leave(election->runtime);
    return COORD_OK;
}

const char *coord_election_identity(const struct coord_election *election)
{
    return election->identity;
}

const char *coord_election_name(const struct coord_election *election)
{
    return election->name;
}

const char *coord_election_backend(const struct coord_election *election)
{
    return election->ops->name;
}

struct coord_elector *coord_election_elector(struct coord_election *election)
{
    return election->elector;
}

const struct coord_timing *coord_election_timing(const struct coord_election *election)
{
    return &election->timing;
}
