/* SPDX-License-Identifier: MIT
 * coord/lease_reply.c - the lease machine: what the store's answers do to it.
 */
#include "coord/lease.h"

#include "coord/rule.h"

#include <string.h>

enum {
    BACKOFF_FIRST = 50,     /* ms, doubled with each failure */
    BACKOFF_DOUBLINGS = 10, /* then the cap decides */
    BACKOFF_CAP = 5000,     /* ms */
    CLOCK_GRAIN = 2         /* ms: what two roundings can make of no jump at all */
};

static void see_fence(struct coord_lease *lease, uint64_t fence)
{
    if (fence > lease->seen) {
        lease->seen = fence;
    }
}

static void see_leader(struct coord_lease *lease, const struct coord_observation *leader)
{
    if (leader != NULL) {
        lease->leader = *leader;
        see_fence(lease, leader->fence);
        see_fence(lease, leader->last_fence);
    }
}

/*
 * The store's clock went forward by more than ours allows since its last answer: leases that were
 * running then may have been cut short. What is granted within one lease of it proves nothing.
 */
static void see_server_clock(struct coord_lease *lease, uint64_t server_us, coord_ms sent)
{
    if (server_us == 0) {
        return;
    }
    if (lease->server_us != 0 && server_us > lease->server_us) {
        const coord_ms local = coord_ms_sub(lease->now, lease->server_at);
        const coord_ms allowed = local + local / COORD_RATE_ERROR_DIVISOR + CLOCK_GRAIN;
        if ((server_us - lease->server_us) / 1000 > allowed) {
            lease->clock_jumps++;
            lease->jump_until = coord_ms_add(lease->now, lease->config.timing.lease);
            lease->waits_from = lease->now;
        }
    }
    lease->server_us = server_us;
    lease->server_at = sent;
}

static coord_ms backoff(struct coord_lease *lease)
{
    const unsigned doublings =
        lease->failures < BACKOFF_DOUBLINGS ? lease->failures : BACKOFF_DOUBLINGS;
    const coord_ms cap = coord_ms_min(BACKOFF_CAP, lease->config.timing.renew);
    const coord_ms wait = coord_ms_min((coord_ms)BACKOFF_FIRST << doublings, cap);
    return wait - coord__lease_jitter(lease, wait / 4 + 1);
}

/* ---------------------------------------------------------------- candidates */

/* When a candidate that was told "held" looks again: at the known end, and now and then before. */
static void wait_for(struct coord_lease *lease, coord_ms retry_in)
{
    const coord_ms poll = lease->config.timing.lease / 3;
    const coord_ms at_end =
        coord_ms_add(retry_in, 1 + coord__lease_jitter(lease, lease->config.hint_jitter + 1));
    const coord_ms wait = coord_ms_min(at_end, poll - coord__lease_jitter(lease, poll / 8 + 1));
    lease->try_at = coord_ms_add(lease->now, wait);
    lease->claim_at = COORD_NEVER;
    lease->last_retry_at = coord_ms_add(lease->now, retry_in);
}

/*
 * A waiter goes at once when it hears that the lease is free: alone, it loses nothing. Who finds
 * that another was faster has rivals, and keeps out of their way next time; fifty that hear of the
 * same release spread out after the first of them.
 */
static void see_race(struct coord_lease *lease, const struct coord_request *request,
                     const struct coord_reply *reply)
{
    const bool waited = lease->last_outcome == COORD_HELD || lease->last_outcome == COORD_RESERVED;
    if (request->verb != COORD_VERB_ACQUIRE) {
        return;
    }
    if (reply->outcome == COORD_GRANTED) {
        lease->spread /= 2;
    } else if (waited && reply->outcome == COORD_HELD && reply->leader != NULL &&
               reply->leader->fence > lease->seen) {
        lease->spread = coord_ms_min(2 * lease->spread + 1, lease->config.hint_jitter);
    }
}

static void granted(struct coord_lease *lease, const struct coord_request *request,
                    const struct coord_reply *reply)
{
    struct coord__term *term = &lease->term;
    const struct coord_timing *timing = &lease->config.timing;
    const coord_ms hard =
        coord_timing_hard(timing, COORD__RULE(grant_counts_from_sending, request->sent));
    coord_ms owed = reply->owed;
    if (COORD__RULE(jump_makes_owed, lease->jump_until > lease->now)) {
        owed = coord_ms_max(owed, timing->lease);
    }
    see_fence(lease, reply->fence);
    lease->attempt_open = false;
    *term = (struct coord__term){.state = COORD__TERM_OWED,
                                 .fence = reply->fence,
                                 .attempt = request->attempt,
                                 .hard = hard,
                                 .soft = hard - timing->grace,
                                 .clear_at = coord_ms_add(lease->now, owed),
                                 .debt = owed,
                                 .renew_at = request->sent + timing->renew};
    if (owed > 0) {
        lease->waits_from = lease->now;
    }
    if (!coord__lease_may_stand(lease)) {
        coord__lease_drop_grant(lease, true);
        return;
    }
    if (lease->now >= hard) {
        coord__lease_drop_grant(lease, false);
        lease->try_at = lease->now;
        return;
    }
    if (owed == 0 && lease->now < term->soft) {
        coord__lease_start_term(lease);
        return;
    }
    /* Past soft, or owed: a renewal comes before it leads; a debt that only we know of is
     * written down at once, for whoever comes after us. */
    if (lease->now >= term->soft || owed > reply->owed) {
        term->renew_at = lease->now;
    } else {
        term->renew_at = coord_ms_min(term->renew_at, term->clear_at);
    }
}

static void try_failed(struct coord_lease *lease, const struct coord_reply *reply)
{
    /* The first retry goes at once, with the same attempt. */
    const bool at_once = lease->failures == 1 && reply->outcome == COORD_UNKNOWN;
    lease->try_at = coord_ms_add(lease->now, at_once ? 0 : backoff(lease));
}

static void acquire_replied(struct coord_lease *lease, const struct coord_request *request,
                            const struct coord_reply *reply)
{
    lease->last_outcome = reply->outcome;
    switch (reply->outcome) {
    case COORD_GRANTED:
        granted(lease, request, reply);
        return;
    case COORD_HELD:
    case COORD_RESERVED:
        wait_for(lease, reply->retry_in);
        break;
    case COORD_DEAD_ATTEMPT:
        lease->attempt++;
        lease->attempt_open = false;
        lease->try_at = lease->now;
        break;
    case COORD_UNKNOWN:
        lease->attempt_open = true;
        try_failed(lease, reply);
        if (lease->config.rank > 0) {
            lease->claim_at = lease->try_at; /* it may be ours: asked again, not looked at */
        }
        break;
    case COORD_FREE:
    case COORD_RENEWED:
    case COORD_LOST:
    case COORD_DONE:
    case COORD_NOBODY:
    case COORD_FAILED:
        try_failed(lease, reply);
        break;
    }
    if (!coord__lease_may_stand(lease) && lease->attempt_open) {
        lease->undo_tries = 2; /* it was given up while we asked, and may be ours */
    }
}

/*
 * What looks taken for longer than it can be, as the store's clock stepped back, is set right by
 * an attempt and never by a look: somebody has to make one, of whatever rank, and at once. It
 * jumps no queue: the lease falls free one lease later, and then the ranks count.
 */
static coord_ms claim_in(const struct coord_lease *lease, const struct coord_reply *reply,
                         coord_ms delay)
{
    if (reply->outcome == COORD_RESERVED) {
        return coord_ms_add(reply->retry_in, delay);
    }
    const bool too_long =
        reply->retry_in != COORD_NEVER && reply->retry_in > lease->config.timing.lease;
    return COORD__RULE(tries_what_is_held_too_long, too_long) ? 0 : COORD_NEVER;
}

static void observe_replied(struct coord_lease *lease, const struct coord_reply *reply)
{
    const coord_ms delay = reply->for_us ? 0 : lease->config.rank * lease->config.timing.renew;
    lease->last_outcome = reply->outcome;
    if (reply->outcome == COORD_FREE) {
        lease->claim_at = coord_ms_min(lease->claim_at, coord_ms_add(lease->now, delay));
        lease->try_at = coord_ms_add(lease->now, lease->config.timing.lease / 3);
    } else if (reply->outcome == COORD_HELD || reply->outcome == COORD_RESERVED) {
        const coord_ms claim_in_ms = claim_in(lease, reply, delay);
        const coord_ms before = claim_in_ms == COORD_NEVER ? COORD_NEVER : lease->claim_at;
        wait_for(lease, reply->retry_in);
        lease->claim_at = coord_ms_min(before, coord_ms_add(lease->now, claim_in_ms));
    } else {
        try_failed(lease, reply);
    }
}

/* ---------------------------------------------------------------- holders */

static void extend(struct coord_lease *lease, coord_ms sent)
{
    struct coord__term *term = &lease->term;
    const struct coord_timing *timing = &lease->config.timing;
    const coord_ms hard = coord_timing_hard(timing, COORD__RULE(renewal_counts_from_sending, sent));
    if (hard > term->hard) {
        term->hard = hard;
        term->soft = hard - timing->grace;
    }
    term->renew_at = sent + timing->renew - coord__lease_jitter(lease, timing->renew / 10 + 1);
}

static void renewed_while_owed(struct coord_lease *lease, const struct coord_request *request,
                               const struct coord_reply *reply)
{
    struct coord__term *term = &lease->term;
    if (reply->owed != COORD_NEVER) {
        term->clear_at = coord_ms_add(lease->now, reply->owed);
    }
    const bool clear = request->led && (reply->owed == 0 || reply->owed == COORD_NEVER);
    if (clear && lease->now < term->soft) {
        coord__lease_start_term(lease);
    } else if (clear || lease->now >= term->clear_at) {
        term->renew_at = lease->now;
    } else {
        term->renew_at = coord_ms_min(term->renew_at, term->clear_at);
    }
}

static void renew_replied(struct coord_lease *lease, const struct coord_request *request,
                          const struct coord_reply *reply)
{
    struct coord__term *term = &lease->term;
    if (term->fence != request->fence || term->state == COORD__TERM_NONE ||
        term->state == COORD__TERM_STOPPED) {
        return; /* a yes that arrives after hard changes nothing: the term has ended */
    }
    if (reply->outcome == COORD_RENEWED) {
        extend(lease, request->sent);
        if (term->state == COORD__TERM_OWED) {
            renewed_while_owed(lease, request, reply);
        }
        if (reply->asked) {
            coord__lease_begin_stop(lease, COORD_END_STEPPED_DOWN, reply->asked_for);
        }
    } else if (reply->outcome == COORD_LOST) {
        coord_lease_lost(lease, &reply->error, lease->now);
    } else {
        const coord_ms wait = lease->failures <= 1 ? 0 : lease->config.timing.attempt / 4;
        term->renew_at = coord_ms_add(lease->now, wait);
    }
}

static void ended(struct coord_lease *lease, const struct coord_reply *reply, unsigned *tries,
                  enum coord_release done)
{
    if (reply->outcome == COORD_DONE) {
        *tries = 0;
        lease->release = done;
    } else {
        (*tries)--;
        lease->release = reply->outcome == COORD_FAILED && *tries == 0 ? COORD_RELEASE_LAPSING
                                                                       : COORD_RELEASE_UNKNOWN;
    }
}

static void release_replied(struct coord_lease *lease, const struct coord_reply *reply)
{
    ended(lease, reply, &lease->release_tries, COORD_RELEASE_RELEASED);
    if (lease->release_tries == 0) {
        coord__lease_retire_term(lease);
    }
}

static void undo_replied(struct coord_lease *lease, const struct coord_reply *reply)
{
    ended(lease, reply, &lease->undo_tries, COORD_RELEASE_RELEASED);
    if (lease->undo_tries == 0) {
        lease->attempt += COORD__RULE(attempt_dies_with_its_undo, 1);
        lease->attempt_open = false;
        lease->try_at = lease->now;
    }
}

static void query_replied(struct coord_lease *lease, const struct coord_reply *reply)
{
    lease->query.verb = COORD_VERB_NONE;
    lease->query_running = false;
    lease->query_outcome = reply->outcome;
    lease->query_error = reply->error;
}

/* ---------------------------------------------------------------- the one way in */

static void count_failure(struct coord_lease *lease, const struct coord_reply *reply)
{
    if (reply->outcome == COORD_FAILED || reply->outcome == COORD_UNKNOWN) {
        lease->failures++;
        coord__lease_note_error(lease, &reply->error);
    } else {
        lease->failures = 0;
        lease->error = reply->error; /* none, or what holds up a grant */
    }
}

static void verb_replied(struct coord_lease *lease, const struct coord_request *request,
                         const struct coord_reply *reply)
{
    switch (request->verb) {
    case COORD_VERB_ACQUIRE:
        acquire_replied(lease, request, reply);
        break;
    case COORD_VERB_OBSERVE:
        observe_replied(lease, reply);
        break;
    case COORD_VERB_RENEW:
        renew_replied(lease, request, reply);
        break;
    case COORD_VERB_RELEASE:
        release_replied(lease, reply);
        break;
    case COORD_VERB_UNDO:
        undo_replied(lease, reply);
        break;
    case COORD_VERB_ASK:
    case COORD_VERB_INIT:
    case COORD_VERB_NONE:
        break;
    }
}

void coord_lease_reply(struct coord_lease *lease, const struct coord_reply *reply, coord_ms now)
{
    if (lease->request.verb == COORD_VERB_NONE || reply->id != lease->request.id) {
        return; /* given up long ago; whatever it says is asked for again */
    }
    const struct coord_request request = lease->request;
    lease->request.verb = COORD_VERB_NONE;
    coord__lease_pass_time(lease, now);
    count_failure(lease, reply);
    see_race(lease, &request, reply);
    see_leader(lease, reply->leader);
    see_server_clock(lease, reply->server_us, request.sent);
    if (lease->query_running) {
        query_replied(lease, reply);
    } else {
        verb_replied(lease, &request, reply);
    }
    if (lease->hinted) {
        lease->hinted = false;
        coord_lease_hint(lease, lease->now);
    }
}
