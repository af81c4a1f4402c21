/* SPDX-License-Identifier: MIT
 * runtime/stand.c - standing, ending a term, and what the host says about itself.
 */
#include "runtime/inside.h"

#include "coord/escape.h"

#include <string.h>

enum coord_err coord_election_stand(struct coord_election *election)
{
    if (!coord__enter(election->runtime)) {
        return COORD_E_FORKED;
    }
    election->silent = false;
    election->one_term = false;
    coord_lease_stand(election->lease, coord_clock_now());
    coord__touch(election);
    coord__leave(election->runtime);
    return COORD_OK;
}

enum coord_err coord_election_withdraw(struct coord_election *election)
{
    if (!coord__enter(election->runtime)) {
        return COORD_E_FORKED;
    }
    coord_lease_withdraw(election->lease, coord_clock_now());
    coord__touch(election);
    coord__leave(election->runtime);
    return COORD_OK;
}

enum coord_err coord_election_acknowledge(struct coord_election *election, uint64_t term)
{
    if (!coord__enter(election->runtime)) {
        return COORD_E_FORKED;
    }
    coord__acknowledge(election, term, coord_clock_now());
    coord__leave(election->runtime);
    return COORD_OK;
}

enum coord_err coord_election_step_down(struct coord_election *election, const char *to)
{
    char escaped[COORD_ESCAPED_MAX];
    if (to != NULL && coord_escape(to, strlen(to), escaped) != COORD_OK) {
        return COORD_E_BAD_NAME;
    }
    if (!coord__enter(election->runtime)) {
        return COORD_E_FORKED;
    }
    const enum coord_err rc =
        coord_lease_step_down(election->lease, to != NULL ? escaped : NULL, coord_clock_now());
    coord__touch(election);
    coord__leave(election->runtime);
    return rc;
}

static enum coord_err pause_or_resume(struct coord_election *election, bool paused)
{
    if (!coord__enter(election->runtime)) {
        return COORD_E_FORKED;
    }
    coord_lease_pause(election->lease, paused, coord_clock_now());
    coord__touch(election);
    coord__leave(election->runtime);
    return COORD_OK;
}

enum coord_err coord_election_pause(struct coord_election *election)
{
    return pause_or_resume(election, true);
}

enum coord_err coord_election_resume(struct coord_election *election)
{
    return pause_or_resume(election, false);
}

enum coord_err coord_election_report_health(struct coord_election *election, bool healthy)
{
    if (!coord__enter(election->runtime)) {
        return COORD_E_FORKED;
    }
    coord_lease_health(election->lease, healthy, coord_clock_now());
    coord__touch(election);
    coord__leave(election->runtime);
    return COORD_OK;
}

/* ---------------------------------------------------------------- stop */

static bool settled(struct coord_election *election, void *ctx)
{
    (void)ctx;
    return coord_lease_settled(election->lease); /* an edge that is being told is not done */
}

static enum coord_stop outcome(const struct coord_election *election, bool held)
{
    struct coord_lease_status lease;
    coord_lease_status(election->lease, &lease);
    if (!coord_lease_settled(election->lease)) {
        const bool resigning = lease.ended && lease.acknowledged;
        return resigning || lease.undoing ? COORD_STOP_UNKNOWN : COORD_STOP_LAPSING;
    }
    switch (lease.release) {
    case COORD_RELEASE_RELEASED:
        return COORD_STOP_RELEASED;
    case COORD_RELEASE_LAPSING:
        return COORD_STOP_LAPSING;
    case COORD_RELEASE_UNKNOWN:
        return COORD_STOP_UNKNOWN;
    case COORD_RELEASE_NONE:
        break;
    }
    /* Nothing was sent: nothing was held, or the store itself took it away. */
    return held ? COORD_STOP_LAPSING : COORD_STOP_RELEASED;
}

/* Who could not be told of the end says by this very call that the work has ended. */
static bool acknowledges_itself(const struct coord_election *election)
{
    return !election->explicit_ack && !coord__has_callbacks(election);
}

/* From inside a callback nobody can wait for it to return, nor for others to be told. */
static bool cannot_wait(const struct coord_election *election)
{
    return coord__in_own_callback(election) ||
           (coord__in_a_callback(election->runtime) && coord_lease_edge_pending(election->lease));
}

enum coord_err coord_election_stop(struct coord_election *election, coord_ms bound,
                                   enum coord_stop *out)
{
    const coord_ms now = coord_clock_now();
    if (!coord__enter(election->runtime)) {
        return COORD_E_FORKED;
    }
    enum coord_stop result = COORD_STOP_BUSY;
    struct coord_lease_status before;
    coord_lease_status(election->lease, &before);
    coord__pin(election);
    coord_lease_withdraw(election->lease, now);
    coord__touch(election);
    if (acknowledges_itself(election)) {
        coord__acknowledge(election, before.term, now);
    }
    if (!cannot_wait(election)) {
        coord__await(election, coord_ms_add(now, bound), settled, NULL);
        if (election->closed) {
            result = COORD_STOP_LAPSING;
        } else if (election->runtime->told != election) {
            result = outcome(election, before.begun);
        }
    }
    election->silent = true;
    coord__unpin(election);
    coord__leave(election->runtime);
    if (out != NULL) {
        *out = result;
    }
    return COORD_OK;
}
