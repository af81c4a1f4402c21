/* SPDX-License-Identifier: MIT
 * runtime/ask.c - the blocking calls. Each drives the same machine and waits for what it becomes.
 */
#include "runtime/inside.h"

/* ---------------------------------------------------------------- small parts */

/* The time was up, or something else came in between: say what it was waiting for. */
static enum coord_err explained(const struct coord_election *election, enum coord_err code,
                                struct coord_error *error)
{
    if (coord__forked(election->runtime)) {
        return coord__say_forked(error);
    }
    if (election->closed) {
        return coord__say_closed(error);
    }
    struct coord_explanation why;
    coord_elector_explain(election->elector, coord_clock_now(), &why);
    return coord_error_set(error, code, "%s", why.text);
}

static enum coord_err failed(const struct coord_error *why, struct coord_error *error)
{
    if (error != NULL) {
        *error = *why;
    }
    return why->code;
}

static bool leads(const struct coord_election *election, coord_ms now)
{
    const struct coord_claim claim = coord_lease_claim(election->lease, now);
    return claim.leading && !claim.stopping;
}

static void acknowledge_ended_term(struct coord_election *election, coord_ms now)
{
    struct coord_lease_status lease;
    coord_lease_acknowledge(election->lease, 0, now); /* time may have ended it, undriven */
    coord_lease_status(election->lease, &lease);
    if (lease.ended) {
        coord__acknowledge(election, lease.term, now);
    }
}

/* ---------------------------------------------------------------- acquire */

struct attempt {
    uint64_t answered; /* before it: an answer that counts comes later */
    uint64_t terms;    /* before it */
    enum coord_err code;
};

static bool attempt_decided(struct coord_election *election, void *ctx)
{
    struct attempt *attempt = ctx;
    const struct coord_claim claim = coord_lease_claim(election->lease, coord_clock_now());
    struct coord_lease_status lease;
    coord_lease_status(election->lease, &lease);
    if (claim.leading) {
        attempt->code = claim.stopping ? COORD_E_NOT_LEADER : COORD_OK;
        return true;
    }
    if (!lease.standing || lease.terms != attempt->terms) {
        /* Won, and over again before anybody looked: a callback took long, or the session ended.
         * Or somebody withdrew. No answer would come. */
        attempt->code = COORD_E_NOT_LEADER;
        return true;
    }
    if (lease.answered <= attempt->answered || lease.held) {
        return false;
    }
    if (lease.failures > 0) {
        /* The machine itself asks once more at once: a connection may just have been stale. */
        attempt->code = lease.why->code;
        return lease.failures > 1 || coord_err_class(lease.why->code) == COORD_CLASS_REFUSED;
    }
    attempt->code = COORD_E_NOT_LEADER;
    return lease.outcome == COORD_HELD || lease.outcome == COORD_RESERVED;
}

static void give_attempt_up(struct coord_election *election)
{
    coord_lease_withdraw(election->lease, coord_clock_now());
    coord__touch(election);
    if (!election->runtime->threads && !election->runtime->driven) {
        coord__drive(election->runtime); /* what may have been granted is undone, without waiting */
    }
}

enum coord_err coord_election_try_acquire(struct coord_election *election, coord_ms timeout,
                                          struct coord_error *error)
{
    const coord_ms now = coord_clock_now();
    struct coord_runtime *runtime = election->runtime;
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    coord__pin(election);
    election->silent = false;
    acknowledge_ended_term(election, now);
    struct coord_lease_status before;
    coord_lease_status(election->lease, &before);
    struct attempt attempt = {
        .answered = before.answered, .terms = before.terms, .code = COORD_E_TIMEOUT};
    if (!before.standing) {
        election->one_term = true;
        coord_lease_stand(election->lease, now);
    } else if (!leads(election, now)) {
        coord_lease_hint(election->lease, now);
    }
    coord__touch(election);
    const bool decided =
        coord__await(election, coord_ms_add(now, timeout), attempt_decided, &attempt);
    enum coord_err rc = decided ? attempt.code : COORD_E_TIMEOUT;
    if (rc != COORD_OK) {
        const bool store =
            coord_err_class(rc) == COORD_CLASS_RETRY || coord_err_class(rc) == COORD_CLASS_REFUSED;
        rc = store ? failed(before.why, error) : explained(election, rc, error);
        if (!before.standing && !election->closed) {
            give_attempt_up(election);
        }
    }
    coord__unpin(election);
    coord__leave(runtime);
    return rc;
}

static bool leading(struct coord_election *election, void *ctx)
{
    (void)ctx;
    return leads(election, coord_clock_now());
}

enum coord_err coord_election_wait(struct coord_election *election, coord_ms timeout,
                                   struct coord_error *error)
{
    const coord_ms now = coord_clock_now();
    struct coord_runtime *runtime = election->runtime;
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    coord__pin(election);
    election->silent = false;
    election->one_term = false;
    acknowledge_ended_term(election, now);
    struct coord_lease_status before;
    coord_lease_status(election->lease, &before);
    coord_lease_stand(election->lease, now);
    coord__touch(election);
    enum coord_err rc = COORD_OK;
    if (!coord__await(election, coord_ms_add(now, timeout), leading, NULL)) {
        rc = explained(election, COORD_E_TIMEOUT, error);
        if (!before.standing && !election->closed) {
            give_attempt_up(election);
        }
    }
    coord__unpin(election);
    coord__leave(runtime);
    return rc;
}

/* ---------------------------------------------------------------- release and renew */

static bool released(struct coord_election *election, void *ctx)
{
    (void)ctx;
    struct coord_lease_status lease;
    coord_lease_status(election->lease, &lease);
    const bool over = !lease.held && !lease.undoing && !lease.asking;
    /* From inside a callback nobody can wait for the edges. */
    return over &&
           (!coord_lease_edge_pending(election->lease) || coord__in_a_callback(election->runtime));
}

enum coord_err coord_election_release(struct coord_election *election, coord_ms timeout,
                                      struct coord_error *error)
{
    const coord_ms now = coord_clock_now();
    struct coord_runtime *runtime = election->runtime;
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    coord__pin(election);
    struct coord_lease_status lease;
    coord_lease_status(election->lease, &lease);
    const bool held = lease.held;
    coord_lease_withdraw(election->lease, now);
    coord__acknowledge(election, lease.term, now);
    enum coord_err rc = COORD_OK;
    const bool over = coord__await(election, coord_ms_add(now, timeout), released, NULL);
    if (!election->closed) {
        coord_lease_status(election->lease, &lease);
    }
    const bool known = !election->closed && lease.why->code != COORD_OK;
    if (!over) {
        rc = known ? failed(lease.why, error) : explained(election, COORD_E_TIMEOUT, error);
    } else if (known && held && lease.release != COORD_RELEASE_RELEASED) {
        rc = failed(lease.why, error);
    }
    coord__unpin(election);
    coord__leave(runtime);
    return rc;
}

struct renewal {
    uint64_t sent; /* before the call: what counts is sent later */
    coord_ms hard; /* the least that it gives */
    enum coord_err code;
};

static bool renewal_decided(struct coord_election *election, void *ctx)
{
    struct renewal *renewal = ctx;
    const coord_ms now = coord_clock_now();
    struct coord_lease_status lease;
    coord_lease_status(election->lease, &lease);
    if (!coord_lease_leading_at(election->lease, now)) {
        renewal->code = COORD_E_NOT_LEADER;
        return true;
    }
    if (lease.sent == renewal->sent && !lease.asking) {
        /* One was under way at the call, and its answer set the time of the next. */
        coord_lease_renew(election->lease, now);
        coord__touch(election);
    }
    renewal->code = COORD_OK;
    return lease.answered > renewal->sent && lease.why->code == COORD_OK &&
           lease.hard >= renewal->hard;
}

enum coord_err coord_election_renew(struct coord_election *election, coord_ms timeout,
                                    struct coord_error *error)
{
    const coord_ms now = coord_clock_now();
    struct coord_runtime *runtime = election->runtime;
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    coord__pin(election);
    struct coord_lease_status lease;
    coord_lease_status(election->lease, &lease);
    struct renewal renewal = {.sent = lease.sent,
                              .hard = coord_timing_hard(&election->timing, now),
                              .code = COORD_E_NOT_LEADER};
    enum coord_err rc = COORD_E_NOT_LEADER;
    if (coord_lease_leading_at(election->lease, now)) {
        coord_lease_renew(election->lease, now);
        coord__touch(election);
        const bool decided =
            coord__await(election, coord_ms_add(now, timeout), renewal_decided, &renewal);
        rc = decided ? renewal.code : COORD_E_TIMEOUT;
        if (!decided && !election->closed && lease.why->code != COORD_OK) {
            rc = lease.why->code;
        }
    }
    if (rc != COORD_OK) {
        const bool store = rc != COORD_E_TIMEOUT && rc != COORD_E_NOT_LEADER;
        rc = store ? failed(lease.why, error) : explained(election, rc, error);
    }
    coord__unpin(election);
    coord__leave(runtime);
    return rc;
}
