/* SPDX-License-Identifier: MIT
 * coord/lease.c - the lease machine: what it is asked to do, what time does to it, what it sends.
 *
 * coord/lease_reply.c has what answers do to it, coord/lease_edge.c what the host is told.
 */
#include "coord/lease.h"

#include "coord/rule.h"

#include <stdio.h>
#include <string.h>

enum {
    TRIES = 2
}; /* of an undo or a resignation: an attempt and one more */

/* ---------------------------------------------------------------- small parts */

/* splitmix64: a seed per object, so that a simulated run can be replayed. */
static uint64_t next_random(struct coord_lease *lease)
{
    uint64_t z = (lease->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

coord_ms coord__lease_jitter(struct coord_lease *lease, coord_ms below)
{
    return below == 0 ? 0 : next_random(lease) % below;
}

/* Time that goes back is read as no step: deadlines that were given out stay true. */
static void see_time(struct coord_lease *lease, coord_ms now)
{
    if (now < lease->now) {
        lease->went_back++;
        return;
    }
    lease->now = now;
}

static void push_edge(struct coord_lease *lease, enum coord_edge_kind kind)
{
    COORD_ASSERT(lease->edge_count < COORD__EDGES);
    struct coord_edge *edge = &lease->edges[(lease->edge_first + lease->edge_count) % COORD__EDGES];
    *edge = (struct coord_edge){.kind = kind,
                                .term = lease->term.number,
                                .fence = lease->term.fence,
                                .hard = lease->term.hard};
    lease->edge_count++;
}

/* A dead attempt is never asked for again: a stalled undo of it may still arrive. */
static void kill_attempt(struct coord_lease *lease)
{
    lease->attempt++;
    lease->attempt_open = false;
    lease->try_at = lease->now;
}

bool coord__lease_may_stand(const struct coord_lease *lease)
{
    return lease->standing && !lease->paused && !lease->sick;
}

void coord__lease_note_error(struct coord_lease *lease, const struct coord_error *error)
{
    if (error->code != COORD_OK) {
        lease->error = *error;
    }
}

/* ---------------------------------------------------------------- a term's life */

void coord__lease_start_term(struct coord_lease *lease)
{
    struct coord__term *term = &lease->term;
    COORD_ASSERT(term->state == COORD__TERM_OWED);
    COORD_ASSERT(lease->now < term->soft);
    COORD_ASSERT(lease->edge_count == 0);
    term->state = COORD__TERM_STARTED;
    term->number = ++lease->terms;
    lease->last_end = COORD_END_NONE;
    push_edge(lease, COORD_EDGE_STARTED);
}

/* Who ends a term like this leaves the next one to others. */
static bool makes_room(enum coord_end why)
{
    return why == COORD_END_STEPPED_DOWN || why == COORD_END_SICK;
}

void coord__lease_begin_stop(struct coord_lease *lease, enum coord_end why, const char *to)
{
    struct coord__term *term = &lease->term;
    if (term->state == COORD__TERM_STARTED) { /* one way, once */
        term->state = COORD__TERM_STOPPING;
        term->renew_until = coord_ms_add(lease->now, lease->config.timing.grace);
        push_edge(lease, COORD_EDGE_STOPPING);
    } else if (term->state != COORD__TERM_STOPPING || !makes_room(why)) {
        return;
    }
    term->end = why; /* of one that stops for another reason as well: it makes room all the same */
    if (to != NULL) {
        (void)snprintf(term->successor, sizeof term->successor, "%s", to);
    }
}

void coord__lease_end_term(struct coord_lease *lease, enum coord_end why)
{
    struct coord__term *term = &lease->term;
    COORD_ASSERT(coord__term_leads(term));
    if (term->state == COORD__TERM_STARTED) {
        term->end = why;
    }
    term->state = COORD__TERM_STOPPED;
    lease->last_end = term->end;
    push_edge(lease, COORD_EDGE_STOPPED);
}

void coord__lease_drop_grant(struct coord_lease *lease, bool undo)
{
    COORD_ASSERT(lease->term.state == COORD__TERM_OWED);
    lease->term.state = COORD__TERM_NONE;
    if (undo) {
        lease->undo_tries = TRIES;
    } else {
        kill_attempt(lease);
    }
}

/* The host's work of a term has ended: only now may a successor be told that it has. */
static void host_ended(struct coord_lease *lease)
{
    struct coord__term *term = &lease->term;
    COORD_ASSERT(term->state == COORD__TERM_STOPPED);
    if (term->acknowledged) {
        return;
    }
    term->acknowledged = true;
    lease->release_tries = term->lost ? 0 : TRIES;
}

/* Forget a term that is over for the host and for the store. */
void coord__lease_retire_term(struct coord_lease *lease)
{
    const struct coord__term *term = &lease->term;
    if (term->state != COORD__TERM_STOPPED || !term->acknowledged || lease->release_tries > 0) {
        return;
    }
    if (makes_room(term->end)) {
        lease->aside_until =
            coord_ms_add(lease->now, COORD__RULE(stands_aside, lease->config.timing.lease / 2));
    }
    lease->term.state = COORD__TERM_NONE;
    kill_attempt(lease);
    lease->claim_at = COORD_NEVER;
}

/* Give up what a candidate holds or may hold; a term that leads is stopped by its caller. */
static void give_up(struct coord_lease *lease)
{
    if (lease->term.state == COORD__TERM_OWED) {
        coord__lease_drop_grant(lease, true);
    } else if (lease->attempt_open && lease->request.verb != COORD_VERB_ACQUIRE) {
        lease->undo_tries = TRIES;
    }
    lease->claim_at = COORD_NEVER;
}

/* ---------------------------------------------------------------- what the caller asks */

void coord_lease_init(struct coord_lease *lease, const struct coord_lease_config *config,
                      coord_ms now)
{
    COORD_ASSERT(config->timing.lease >= COORD_TTL_MIN);
    memset(lease, 0, sizeof *lease);
    lease->config = *config;
    lease->now = now;
    lease->random = config->seed;
    lease->attempt = 1;
    lease->claim_at = COORD_NEVER;
    lease->last_retry_at = COORD_NEVER;
    lease->waits_from = COORD_NEVER;
}

void coord_lease_stand(struct coord_lease *lease, coord_ms now)
{
    see_time(lease, now);
    if (lease->standing) {
        return;
    }
    lease->standing = true;
    lease->release = COORD_RELEASE_NONE;
    lease->failures = 0;
    lease->last_outcome = 0;
    lease->try_at = lease->now;
}

void coord_lease_withdraw(struct coord_lease *lease, coord_ms now)
{
    see_time(lease, now);
    if (!lease->standing) {
        return;
    }
    lease->standing = false;
    lease->release = COORD_RELEASE_NONE; /* what became of earlier terms is another matter */
    give_up(lease);
    coord__lease_begin_stop(lease, COORD_END_STOPPED, NULL);
}

enum coord_err coord_lease_step_down(struct coord_lease *lease, const char *to, coord_ms now)
{
    see_time(lease, now);
    if (!coord_lease_leading_at(lease, lease->now)) {
        return COORD_E_NOT_LEADER;
    }
    coord__lease_begin_stop(lease, COORD_END_STEPPED_DOWN, to);
    return COORD_OK;
}

void coord_lease_pause(struct coord_lease *lease, bool paused, coord_ms now)
{
    see_time(lease, now);
    lease->paused = paused;
    if (paused) {
        give_up(lease);
    } else {
        lease->try_at = lease->now;
    }
}

void coord_lease_health(struct coord_lease *lease, bool healthy, coord_ms now)
{
    see_time(lease, now);
    if (lease->sick == !healthy) {
        return;
    }
    lease->sick = !healthy;
    if (lease->sick) {
        give_up(lease);
        coord__lease_begin_stop(lease, COORD_END_SICK, NULL);
    } else {
        lease->try_at = lease->now;
    }
}

void coord_lease_acknowledge(struct coord_lease *lease, uint64_t term, coord_ms now)
{
    coord__lease_pass_time(lease, now);
    if (term == 0 || COORD__RULE(acknowledges_its_own_term, lease->term.number != term)) {
        return;
    }
    if (coord__term_leads(&lease->term)) {
        coord__lease_end_term(lease, COORD_END_STOPPED);
    }
    if (lease->term.state == COORD__TERM_STOPPED) {
        host_ended(lease);
        coord__lease_retire_term(lease);
    }
}

void coord_lease_renew(struct coord_lease *lease, coord_ms now)
{
    see_time(lease, now);
    lease->term.renew_at = lease->now;
}

void coord_lease_hint(struct coord_lease *lease, coord_ms now)
{
    see_time(lease, now);
    if (lease->request.verb != COORD_VERB_NONE) {
        lease->hinted = true; /* the answer that is on its way may be older than the news */
        return;
    }
    /* A channel that anybody may write to must not make a storm of tries. */
    const coord_ms gap = lease->config.hint_jitter > 0 ? lease->config.timing.attempt / 64 : 1;
    const coord_ms soonest = coord_ms_max(lease->now, coord_ms_add(lease->last_sent, gap));
    const coord_ms at = soonest + coord__lease_jitter(lease, lease->spread + 1);
    lease->term.renew_at = coord_ms_min(lease->term.renew_at, at);
    if (lease->failures == 0) {
        lease->try_at = coord_ms_min(lease->try_at, at);
    }
}

void coord_lease_lost(struct coord_lease *lease, const struct coord_error *why, coord_ms now)
{
    coord__lease_pass_time(lease, now);
    coord__lease_note_error(lease, why);
    if (coord__term_leads(&lease->term)) {
        lease->term.lost = true;
        coord__lease_end_term(lease, COORD_END_LOST);
    } else if (lease->term.state == COORD__TERM_OWED) {
        coord__lease_drop_grant(lease, false);
    }
}

enum coord_err coord_lease_query(struct coord_lease *lease, const struct coord_request *query,
                                 coord_ms now)
{
    see_time(lease, now);
    COORD_ASSERT(query->verb == COORD_VERB_OBSERVE || query->verb == COORD_VERB_ASK ||
                 query->verb == COORD_VERB_INIT);
    if (lease->query.verb != COORD_VERB_NONE) {
        return COORD_E_BUSY;
    }
    lease->query = *query;
    lease->query_outcome = 0;
    return COORD_OK;
}

/* ---------------------------------------------------------------- time */

static void give_up_request(struct coord_lease *lease)
{
    struct coord_reply reply = {.id = lease->request.id, .outcome = COORD_UNKNOWN};
    reply.error.code = COORD_E_NO_ANSWER;
    strcpy(reply.error.text,
           "the store did not answer in time: see whether it is stopped, overloaded or cut off");
    coord_lease_reply(lease, &reply, lease->now);
}

/* Whoever is stopped between reading its clock and reading an answer takes that for older than it
 * is: a wait that begins with it begins with the first time that was read afterwards. */
static void begin_waits(struct coord_lease *lease)
{
    if (lease->now <= lease->waits_from) {
        return;
    }
    const coord_ms late = COORD__RULE(waits_from_a_fresh_time, lease->now - lease->waits_from);
    if (lease->term.state == COORD__TERM_OWED) {
        lease->term.clear_at = coord_ms_add(lease->term.clear_at, late);
    }
    lease->jump_until = coord_ms_add(lease->jump_until, late);
    lease->waits_from = COORD_NEVER;
}

void coord__lease_pass_time(struct coord_lease *lease, coord_ms now)
{
    struct coord__term *term = &lease->term;
    see_time(lease, now);
    begin_waits(lease);
    if (term->state == COORD__TERM_STARTED && lease->now >= term->soft) {
        coord__lease_begin_stop(lease, COORD_END_UNRENEWED, NULL);
    }
    if (coord__term_leads(term) && lease->now >= term->hard) {
        coord__lease_end_term(lease, COORD_END_UNRENEWED);
    }
    if (term->state == COORD__TERM_OWED && lease->now >= term->hard) {
        coord__lease_drop_grant(lease, false); /* it has lapsed; a new attempt carries the debt */
    }
}

bool coord_lease_tick(struct coord_lease *lease, coord_ms now)
{
    coord__lease_pass_time(lease, now);
    if (lease->request.verb == COORD_VERB_NONE ||
        lease->now < coord_ms_add(lease->request.sent, lease->config.timing.attempt)) {
        return false;
    }
    give_up_request(lease);
    return true;
}

static bool renewable(const struct coord_lease *lease)
{
    const struct coord__term *term = &lease->term;
    return term->state == COORD__TERM_OWED || term->state == COORD__TERM_STARTED ||
           (term->state == COORD__TERM_STOPPING &&
            COORD__RULE(stopping_renews_for_grace, lease->now < term->renew_until));
}

bool coord_lease_renew_along(struct coord_lease *lease, coord_ms now)
{
    see_time(lease, now);
    const coord_ms soon = coord_ms_add(lease->now, lease->config.timing.renew / 4);
    const bool along =
        lease->request.verb == COORD_VERB_NONE && renewable(lease) && lease->term.renew_at <= soon;
    lease->term.renew_at = along ? lease->now : lease->term.renew_at;
    return along;
}

/* May a candidate send ACQUIRE or OBSERVE when its time has come? */
static bool candidate(const struct coord_lease *lease)
{
    return coord__lease_may_stand(lease) && lease->edge_count == 0 &&
           COORD__RULE(stands_after_its_host, lease->term.state == COORD__TERM_NONE);
}

static coord_ms candidate_at(const struct coord_lease *lease)
{
    return coord_ms_max(coord_ms_min(lease->try_at, lease->claim_at), lease->aside_until);
}

coord_ms coord_lease_deadline(const struct coord_lease *lease)
{
    const struct coord__term *term = &lease->term;
    coord_ms at = COORD_NEVER;
    if (lease->request.verb != COORD_VERB_NONE) {
        at = coord_ms_add(lease->request.sent, lease->config.timing.attempt);
    } else if (lease->undo_tries > 0 || lease->release_tries > 0) {
        return lease->now;
    } else {
        if (renewable(lease)) {
            at = coord_ms_min(at, term->renew_at);
        }
        if (candidate(lease)) {
            at = coord_ms_min(at, candidate_at(lease));
        }
        if (lease->query.verb != COORD_VERB_NONE && !lease->query_running) {
            return lease->now;
        }
    }
    if (term->state == COORD__TERM_STARTED) {
        at = coord_ms_min(at, term->soft);
    }
    if (term->state != COORD__TERM_NONE && term->state != COORD__TERM_STOPPED) {
        at = coord_ms_min(at, term->hard);
    }
    return lease->standing ? coord_ms_min(at, coord_ms_add(lease->waits_from, 1)) : at;
}

/* ---------------------------------------------------------------- what is sent */

static void send(struct coord_lease *lease, enum coord_verb verb, struct coord_request *out)
{
    struct coord_request *request = &lease->request;
    *request = (struct coord_request){.verb = verb,
                                      .id = ++lease->last_id,
                                      .sent = lease->now,
                                      .attempt = lease->attempt,
                                      .seen = COORD__RULE(tells_what_it_saw, lease->seen),
                                      .lease = lease->config.timing.lease};
    lease->last_sent = lease->now;
    if (verb == COORD_VERB_RENEW || verb == COORD_VERB_RELEASE) {
        request->attempt = lease->term.attempt;
        request->fence = lease->term.fence;
    }
    if (verb == COORD_VERB_RELEASE && lease->term.successor[0] != '\0') {
        request->successor = lease->term.successor;
        request->reserve = lease->config.timing.lease / 2;
    }
    *out = *request;
}

static void send_renewal(struct coord_lease *lease, struct coord_request *out)
{
    const struct coord__term *term = &lease->term;
    send(lease, COORD_VERB_RENEW, out);
    lease->request.led = COORD__RULE(waits_without_having_led, term->state != COORD__TERM_OWED ||
                                                                   lease->now >= term->clear_at);
    lease->request.debt = lease->request.led ? 0 : term->debt;
    *out = lease->request;
}

static void send_query(struct coord_lease *lease, struct coord_request *out)
{
    send(lease, lease->query.verb, out);
    lease->request.fence = lease->query.fence;
    lease->request.successor = lease->query.successor;
    lease->request.reserve = lease->query.reserve;
    lease->query_running = true;
    *out = lease->request;
}

static void send_try(struct coord_lease *lease, struct coord_request *out)
{
    /* Those of a worse rank look first, and claim when the better ones had their time. */
    const bool claim = lease->config.rank == 0 || lease->now >= lease->claim_at;
    if (!claim) {
        send(lease, COORD_VERB_OBSERVE, out);
        return;
    }
    lease->claim_at = COORD_NEVER;
    send(lease, COORD_VERB_ACQUIRE, out);
}

bool coord_lease_next(struct coord_lease *lease, coord_ms now, struct coord_request *out)
{
    coord__lease_pass_time(lease, now);
    if (lease->request.verb != COORD_VERB_NONE) {
        return false;
    }
    if (lease->undo_tries > 0) {
        send(lease, COORD_VERB_UNDO, out);
    } else if (lease->release_tries > 0) {
        send(lease, COORD_VERB_RELEASE, out);
    } else if (renewable(lease) && lease->now >= lease->term.renew_at) {
        send_renewal(lease, out);
    } else if (candidate(lease) && lease->now >= candidate_at(lease)) {
        send_try(lease, out);
    } else if (lease->query.verb != COORD_VERB_NONE && !lease->query_running) {
        send_query(lease, out);
    } else {
        return false;
    }
    return true;
}
