/* SPDX-License-Identifier: MIT
 * runtime/query.c - asking the store for the caller: who leads, step down, nobody leads.
 */
#include "runtime/inside.h"

#include "coord/escape.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOK_AGAIN = 100,           /* ms, at most: while another is asked to step down */
    REQUEST_MAX = COORD_TTL_MAX /* ms: servers refuse an end that they cannot write down */
};

/* ---------------------------------------------------------------- one query */

static bool query_free(struct coord_election *election, void *ctx)
{
    (void)ctx;
    return !election->querying;
}

static bool query_answered(struct coord_election *election, void *ctx)
{
    (void)ctx;
    return !coord_lease_querying(election->lease);
}

static enum coord_err not_answered(const struct coord_election *election, struct coord_error *error)
{
    if (election->closed) {
        return coord__say_closed(error);
    }
    if (coord__forked(election->runtime)) {
        return coord__say_forked(error);
    }
    struct coord_lease_status lease;
    coord_lease_status(election->lease, &lease);
    const struct coord_error *why = lease.why;
    if (why->code != COORD_OK) {
        if (error != NULL) {
            *error = *why;
        }
        return why->code;
    }
    return coord_error_set(error, COORD_E_TIMEOUT,
                           "the store has not answered in time: allow more, or see doctor");
}

/* The machine keeps the query's text until the answer, which the caller may not wait for. */
static bool begin_query(struct coord_election *election, const struct coord_request *what)
{
    struct coord_request request = *what;
    if (coord_lease_querying(election->lease)) {
        return false;
    }
    if (what->successor != NULL) {
        snprintf(election->asked_to, sizeof election->asked_to, "%s", what->successor);
        request.successor = election->asked_to;
    }
    return coord_lease_query(election->lease, &request, coord_clock_now()) == COORD_OK;
}

/*
 * Ask, one query of an election at a time. A request that the store could not be asked is asked
 * again until the time is up; one that it refuses is an answer.
 */
static enum coord_err query(struct coord_election *election, const struct coord_request *what,
                            coord_ms until, enum coord_outcome *outcome, struct coord_error *error)
{
    struct coord_lease *lease = election->lease;
    if (!coord__await(election, until, query_free, NULL)) {
        return not_answered(election, error);
    }
    election->querying = true;
    enum coord_err rc = COORD_E_TIMEOUT;
    if (coord_lease_querying(lease)) { /* one that was given up still runs */
        COORD_IGNORE(coord__await(election, until, query_answered, NULL), "asked below");
    }
    if (!election->closed && begin_query(election, what)) {
        coord__touch(election);
        if (coord__await(election, until, query_answered, NULL)) {
            rc = COORD_OK;
        }
    }
    *outcome = COORD_FAILED;
    if (rc != COORD_OK) {
        rc = not_answered(election, error);
    } else {
        const struct coord_error *why = NULL;
        *outcome = coord_lease_answer(lease, &why);
        if (*outcome == COORD_FAILED || *outcome == COORD_UNKNOWN) {
            rc = why->code;
            if (error != NULL) {
                *error = *why;
            }
        }
    }
    election->querying = false;
    return rc;
}

static bool never(struct coord_election *election, void *ctx)
{
    (void)election;
    (void)ctx;
    return false;
}

/*
 * The machine spaces its own tries; these are the caller's, and a store may just be starting. One
 * that answers nothing within an attempt may still be connecting on a busy host: it is asked again
 * for as long as the caller waits. One that says no is asked twice. For OBSERVE and INIT only,
 * which may be done twice.
 */
static enum coord_err query_patiently(struct coord_election *election,
                                      const struct coord_request *what, coord_ms until,
                                      enum coord_outcome *outcome, struct coord_error *error)
{
    for (unsigned tries = 1;; tries++) {
        const enum coord_err rc = query(election, what, until, outcome, error);
        const bool again =
            *outcome == COORD_UNKNOWN ? coord_clock_now() < until : rc != COORD_OK && tries == 1;
        if (!again || coord_err_class(rc) != COORD_CLASS_RETRY || election->closed) {
            return rc;
        }
        const coord_ms pause = coord_ms_add(coord_clock_now(), LOOK_AGAIN / 4);
        coord__await(election, coord_ms_min(until, pause), never, NULL);
    }
}

/* ---------------------------------------------------------------- observe and init */

enum coord_err coord_election_observe(struct coord_election *election, coord_ms timeout,
                                      struct coord_observation *out, struct coord_error *error)
{
    const coord_ms until = coord_ms_add(coord_clock_now(), timeout);
    struct coord_runtime *runtime = election->runtime;
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    coord__pin(election);
    const struct coord_request what = {.verb = COORD_VERB_OBSERVE};
    enum coord_outcome outcome = COORD_FREE;
    const enum coord_err rc = query_patiently(election, &what, until, &outcome, error);
    if (rc == COORD_OK) {
        *out = *coord_lease_leader(election->lease);
    }
    coord__unpin(election);
    coord__leave(runtime);
    return rc;
}

static enum coord_err say_held(const struct coord_election *election, struct coord_error *error)
{
    const struct coord_observation *leader = coord_lease_leader(election->lease);
    const char *who = leader->identity[0] != '\0' ? leader->identity : "somebody";
    return coord_error_set(error, COORD_E_BUSY,
                           leader->taking_over ? "%s takes over %s, and leads when it has waited: "
                                                 "let it, or end it first"
                                               : "%s leads %s: have it step down first",
                           who, election->name);
}

enum coord_err coord_election_init_record(struct coord_election *election, coord_ms timeout,
                                          struct coord_error *error)
{
    const coord_ms until = coord_ms_add(coord_clock_now(), timeout);
    struct coord_runtime *runtime = election->runtime;
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    coord__pin(election);
    const struct coord_request what = {.verb = COORD_VERB_INIT};
    enum coord_outcome outcome = COORD_FREE;
    enum coord_err rc = query_patiently(election, &what, until, &outcome, error);
    if (rc == COORD_OK && outcome == COORD_HELD) {
        rc = say_held(election, error);
    }
    coord__unpin(election);
    coord__leave(runtime);
    return rc;
}

/* ---------------------------------------------------------------- ask to step down */

static enum coord_err look(struct coord_election *election, coord_ms until, uint64_t *fence,
                           struct coord_error *error)
{
    const struct coord_request what = {.verb = COORD_VERB_OBSERVE};
    enum coord_outcome outcome = COORD_FREE;
    const enum coord_err rc = query_patiently(election, &what, until, &outcome, error);
    if (rc == COORD_OK) {
        const struct coord_observation *leader = coord_lease_leader(election->lease);
        *fence = outcome == COORD_HELD && leader->leading ? leader->fence : 0;
    }
    return rc;
}

/* Look again and again until the term of this fence is over. */
static enum coord_err see_it_end(struct coord_election *election, uint64_t fence, coord_ms until,
                                 struct coord_error *error)
{
    bool leads_still = false; /* as far as the store has said */
    for (;;) {
        uint64_t present = 0;
        const enum coord_err rc = look(election, until, &present, error);
        if (rc == COORD_OK && present != fence) {
            return COORD_OK;
        }
        leads_still = leads_still || rc == COORD_OK;
        const coord_ms now = coord_clock_now();
        if (now >= until && leads_still && !election->closed) {
            return coord_error_set(error, COORD_E_TIMEOUT,
                                   "%s was asked to step down and leads still: its work may need "
                                   "its stop grace to end; wait longer",
                                   coord_lease_leader(election->lease)->identity);
        }
        const bool retry = rc == COORD_OK || coord_err_class(rc) == COORD_CLASS_RETRY;
        if (!retry || now >= until) {
            return rc;
        }
        const coord_ms pause = coord_ms_min(LOOK_AGAIN, election->timing.renew / 4 + 1);
        coord__await(election, coord_ms_min(until, coord_ms_add(now, pause)), never, NULL);
    }
}

static enum coord_err ask(struct coord_election *election, const char *to, coord_ms until,
                          struct coord_error *error)
{
    uint64_t fence = 0;
    enum coord_outcome outcome = COORD_NOBODY;
    enum coord_err rc = look(election, until, &fence, error);
    if (rc == COORD_OK && fence != 0) {
        const coord_ms left = coord_ms_sub(until, coord_clock_now());
        const struct coord_request what = {.verb = COORD_VERB_ASK,
                                           .fence = fence,
                                           .successor = to,
                                           .reserve = coord_ms_min(left, REQUEST_MAX)};
        rc = query(election, &what, until, &outcome, error);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    if (outcome == COORD_NOBODY) {
        return coord_error_set(error, COORD_E_NO_LEADER, "nobody leads %s, so nobody can step down",
                               election->name);
    }
    return see_it_end(election, fence, until, error);
}

enum coord_err coord_election_ask_step_down(struct coord_election *election, const char *to,
                                            coord_ms wait, struct coord_error *error)
{
    const coord_ms now = coord_clock_now();
    const coord_ms until = coord_ms_add(now, wait);
    struct coord_runtime *runtime = election->runtime;
    char escaped[COORD_ESCAPED_MAX];
    if (to != NULL && coord_escape(to, strlen(to), escaped) != COORD_OK) {
        return coord_error_set(error, COORD_E_BAD_NAME, "the successor has %zu bytes: use 1 to %d",
                               strlen(to), COORD_NAME_MAX);
    }
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    coord__pin(election);
    enum coord_err rc;
    const uint64_t own = election->published.hard > now ? election->published.fence : 0;
    if (own != 0 &&
        coord_lease_step_down(election->lease, to != NULL ? escaped : NULL, now) == COORD_OK) {
        coord__touch(election);
        rc = see_it_end(election, own, until, error);
    } else {
        rc = ask(election, to != NULL ? escaped : NULL, until, error);
    }
    coord__unpin(election);
    coord__leave(runtime);
    return rc;
}
