/* SPDX-License-Identifier: MIT
 * runtime/tell.c - tells the host of edges: one at a time, no lock held, no backend on the stack.
 */
#include "runtime/inside.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- the list of callbacks */

bool coord__has_callbacks(const struct coord_election *election)
{
    for (const struct coord__callback *c = election->callbacks; c != NULL; c = c->next) {
        if (!c->removed) {
            return true;
        }
    }
    return false;
}

static void sweep_callbacks(struct coord_election *election)
{
    struct coord__callback **at = &election->callbacks;
    while (*at != NULL) {
        struct coord__callback *c = *at;
        if (c->removed) {
            *at = c->next;
            free(c);
        } else {
            at = &c->next;
        }
    }
}

void coord__free_callbacks(struct coord_election *election)
{
    for (struct coord__callback *c = election->callbacks; c != NULL; c = c->next) {
        c->removed = true;
    }
    sweep_callbacks(election);
}

static enum coord_err add_callback(struct coord_election *election,
                                   const struct coord__callback *what)
{
    if (!coord__enter(election->runtime)) {
        return COORD_E_FORKED;
    }
    struct coord__callback *fresh = malloc(sizeof *fresh);
    if (fresh != NULL) {
        *fresh = *what;
        fresh->serial = ++election->callback_serial;
        struct coord__callback **at = &election->callbacks;
        while (*at != NULL) {
            at = &(*at)->next;
        }
        *at = fresh;
    }
    coord__leave(election->runtime);
    return fresh != NULL ? COORD_OK : COORD_E_NO_MEMORY;
}

static bool remove_callback(struct coord_election *election, const struct coord__callback *what)
{
    if (!coord__enter(election->runtime)) {
        return false;
    }
    struct coord__callback *c = election->callbacks;
    while (c != NULL && (c->removed || c->kind != what->kind || c->edge != what->edge ||
                         c->leader != what->leader || c->ctx != what->ctx)) {
        c = c->next;
    }
    const bool found = c != NULL;
    if (found) {
        c->removed = true;
        if (election->walks == 0) {
            sweep_callbacks(election);
        }
    }
    coord__leave(election->runtime);
    return found;
}

enum coord_err coord_election_on_edge(struct coord_election *election, coord_edge_fn fn, void *ctx)
{
    const struct coord__callback what = {.kind = COORD__CALLBACK_EDGE, .edge = fn, .ctx = ctx};
    return fn == NULL ? COORD_E_BAD_ARGUMENT : add_callback(election, &what);
}

bool coord_election_remove_edge_callback(struct coord_election *election, coord_edge_fn fn,
                                         void *ctx)
{
    const struct coord__callback what = {.kind = COORD__CALLBACK_EDGE, .edge = fn, .ctx = ctx};
    return remove_callback(election, &what);
}

enum coord_err coord_election_on_leader_change(struct coord_election *election,
                                               coord_leader_change_fn fn, void *ctx)
{
    const struct coord__callback what = {.kind = COORD__CALLBACK_LEADER, .leader = fn, .ctx = ctx};
    return fn == NULL ? COORD_E_BAD_ARGUMENT : add_callback(election, &what);
}

bool coord_election_remove_leader_change_callback(struct coord_election *election,
                                                  coord_leader_change_fn fn, void *ctx)
{
    const struct coord__callback what = {.kind = COORD__CALLBACK_LEADER, .leader = fn, .ctx = ctx};
    return remove_callback(election, &what);
}

/* ---------------------------------------------------------------- telling */

bool coord__in_a_callback(const struct coord_runtime *runtime)
{
    return runtime->telling && pthread_equal(runtime->teller, pthread_self()) != 0;
}

bool coord__in_own_callback(const struct coord_election *election)
{
    return election->runtime->told == election && coord__in_a_callback(election->runtime);
}

/* Call all of one kind that were there when the edge was taken. @return true: there was one. */
static bool call_all(struct coord_election *election, enum coord__callback_kind kind,
                     const struct coord_edge *edge, uint64_t last_serial)
{
    struct coord_runtime *runtime = election->runtime;
    bool any = false;
    for (struct coord__callback *c = election->callbacks;
         c != NULL && c->serial <= last_serial && !election->silent && !coord__forked(runtime);
         c = c->next) {
        if (c->removed || c->kind != kind) {
            continue;
        }
        const struct coord__callback call = *c;
        any = true;
        coord__leave(runtime);
        if (kind == COORD__CALLBACK_EDGE) {
            call.edge(call.ctx, election, edge);
        } else {
            call.leader(call.ctx, election, edge->kind == COORD_EDGE_STARTED);
        }
        coord__enter_again(runtime);
    }
    return any;
}

static bool has_leader_callbacks(const struct coord_election *election)
{
    for (const struct coord__callback *c = election->callbacks; c != NULL; c = c->next) {
        if (!c->removed && c->kind == COORD__CALLBACK_LEADER) {
            return true;
        }
    }
    return false;
}

/*
 * Those who hear of leader changes only are told "no" while the lease is still held, so that their
 * return can be waited for before anybody else may lead; and as they must find is_leader() = false,
 * it is so for everybody from here on.
 */
static bool tell_no_early(struct coord_election *election, const struct coord_edge *edge,
                          uint64_t last_serial)
{
    if (election->explicit_ack || election->closed || election->silent ||
        !has_leader_callbacks(election)) {
        return false;
    }
    election->told_no = edge->term;
    coord__publish(election, coord_clock_now());
    return call_all(election, COORD__CALLBACK_LEADER, edge, last_serial);
}

static bool tell_all(struct coord_election *election, const struct coord_edge *edge)
{
    const uint64_t last = election->callback_serial;
    bool told = false;
    election->walks = 1;
    told = call_all(election, COORD__CALLBACK_EDGE, edge, last);
    if (edge->kind == COORD_EDGE_STOPPING) {
        told = tell_no_early(election, edge, last) || told;
    } else if (edge->kind == COORD_EDGE_STARTED || election->told_no != edge->term) {
        told = call_all(election, COORD__CALLBACK_LEADER, edge, last) || told;
    }
    election->walks = 0;
    sweep_callbacks(election);
    return told;
}

static bool awaits_host(const struct coord_lease *lease, uint64_t term)
{
    struct coord_lease_status status;
    coord_lease_status(lease, &status);
    return status.term == term && status.begun && !status.acknowledged;
}

void coord__acknowledge(struct coord_election *election, uint64_t term, coord_ms now)
{
    if (election->one_term && awaits_host(election->lease, term)) {
        coord_lease_withdraw(election->lease, now);
    }
    coord_lease_acknowledge(election->lease, term, now);
    if (election->silent_term == term) {
        election->silent_at = COORD_NEVER;
    }
    coord__touch(election); /* "no" is published before anybody is told that the lease is free */
}

/* What the end of the dispatch means for the term. */
static void after_telling(struct coord_election *election, const struct coord_edge *edge, bool told)
{
    const coord_ms now = coord_clock_now();
    coord_lease_edge_done(election->lease, now);
    coord__touch(election);
    if (edge->kind == COORD_EDGE_STARTED || election->explicit_ack) {
        return;
    }
    if (told) {
        coord__acknowledge(election, edge->term, now);
    } else if (edge->kind == COORD_EDGE_STOPPED && election->watchdog == NULL &&
               !election->watchdog_abort) {
        /* Nobody was there to be told. The work has to be over by hard in any case. */
        election->silent_term = edge->term;
        election->silent_at = edge->hard;
    }
}

static struct coord_election *next_to_tell(struct coord_runtime *runtime)
{
    struct coord_election *next = NULL;
    for (struct coord_election *e = runtime->first; e != NULL; e = e->next) {
        if (coord_lease_edge_pending(e->lease) &&
            (next == NULL || e->told_last < next->told_last)) {
            next = e;
        }
    }
    return next;
}

bool coord__edge_waits(const struct coord_runtime *runtime)
{
    for (const struct coord_election *e = runtime->first; e != NULL; e = e->next) {
        if (coord_lease_edge_pending(e->lease) && e != runtime->told) {
            return true;
        }
    }
    return coord__riders_next_to_tell(runtime) != NULL;
}

bool coord__tell_one(struct coord_runtime *runtime)
{
    struct coord_edge edge;
    if (runtime->telling || coord__forked(runtime)) {
        return false; /* its thread goes on with the next one: edges are told in order */
    }
    struct coord_election *election = next_to_tell(runtime);
    struct coord__rider *rider = coord__riders_next_to_tell(runtime);
    if (rider != NULL && (election == NULL || rider->told_last < election->told_last)) {
        coord__rider_tell(rider);
        return true;
    }
    if (election == NULL || !coord_lease_next_edge(election->lease, &edge)) {
        return false;
    }
    election->told_last = ++runtime->tellings;
    runtime->telling = true;
    runtime->teller = pthread_self();
    runtime->told = election;
    coord__pin(election);
    const bool told = tell_all(election, &edge);
    runtime->telling = false;
    runtime->told = NULL;
    if (!election->closed) {
        after_telling(election, &edge, told);
    }
    coord__unpin(election);
    coord__wake_waiters(runtime);
    return true;
}
