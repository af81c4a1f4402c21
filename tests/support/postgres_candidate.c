/* SPDX-License-Identifier: MIT
 * tests/support/postgres_candidate.c - see postgres_candidate.h.
 */
#include "tests/support/postgres_candidate.h"

#include "runtime/clock.h"
#include "tests/support/support.h"

#include <poll.h>
#include <stdlib.h>

enum coord_err candidate_try(struct candidates *all, const struct candidate_wish *wish,
                             struct candidate **out, struct coord_error *error)
{
    static unsigned serial;
    char identity[16];
    assert_true(all->count < CANDIDATES_MAX);
    struct candidate *c = calloc(1, sizeof *c);
    struct coord_uri *uri = calloc(1, sizeof *uri);
    assert_non_null(c);
    assert_non_null(uri);
    if (coord_uri_parse(wish->uri, uri, error) != COORD_OK) {
        fail_msg("%s", error->text);
    }
    serial++;
    snprintf(identity, sizeof identity, "%c", (char)('a' + all->count % 26));
    c->share = wish->share != NULL ? wish->share : &c->own;
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    config.name = wish->name;
    config.name_bytes = strlen(wish->name);
    config.identity = wish->identity != NULL ? wish->identity : identity;
    config.identity_bytes = strlen(config.identity);
    config.ttl = coord_uri_option(uri, "ttl") != NULL ? 0 : wish->ttl != 0 ? wish->ttl : 1000;
    config.rank = wish->rank;
    config.metadata = wish->metadata;
    config.metadata_bytes = wish->metadata != NULL ? strlen(wish->metadata) : 0;
    config.explicit_ack = wish->explicit_ack;
    config.seed = serial;
    config.uri = uri;
    config.share = c->share;
    config.resolver = wish->resolver;
    memcpy(config.owner, &serial, sizeof serial);
    const pid_t pid = getpid();
    memcpy(config.owner + sizeof serial, &pid, sizeof pid);
    const enum coord_err rc =
        coord_elector_new(coord_postgres_elector(), &config, coord_clock_now(), &c->elector, error);
    free(uri);
    if (rc != COORD_OK) {
        free(c);
        return rc;
    }
    c->lease = coord_elector_lease(c->elector);
    all->list[all->count++] = c;
    *out = c;
    return COORD_OK;
}

struct candidate *candidate_new(struct candidates *all, const struct candidate_wish *wish)
{
    struct coord_error error = {.code = COORD_OK};
    struct candidate *c = NULL;
    if (candidate_try(all, wish, &c, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
    return c;
}

void candidate_free(struct candidates *all, struct candidate *candidate)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i] == candidate) {
            all->list[i] = all->list[--all->count];
            break;
        }
    }
    coord_elector_free(candidate->elector, false);
    free(candidate);
}

void candidates_free(struct candidates *all)
{
    while (all->count > 0) {
        candidate_free(all, all->list[all->count - 1]);
    }
}

static void tell(struct candidate *c, coord_ms now)
{
    struct coord_edge edge;
    while (!c->deaf && coord_lease_next_edge(c->lease, &edge)) {
        if (edge.kind == COORD_EDGE_STARTED) {
            c->started++;
            c->fence = edge.fence;
            c->started_at = now;
        } else if (edge.kind == COORD_EDGE_STOPPING) {
            c->stopping++;
        } else {
            c->stopped++;
        }
        coord_lease_edge_done(c->lease, now);
        coord_elector_process(c->elector, now);
    }
}

static void watch(struct candidates *all, coord_ms now)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct candidate *a = all->list[i];
        for (size_t j = i + 1; j < all->count; j++) {
            const struct candidate *b = all->list[j];
            if (coord_elector_leading_at(a->elector, now) &&
                coord_elector_leading_at(b->elector, now) &&
                strcmp(coord_backend_name(a->elector), coord_backend_name(b->elector)) == 0) {
                all->overlaps++;
            }
        }
    }
}

void candidates_turn(struct candidates *all, coord_ms most)
{
    struct pollfd fds[CANDIDATES_MAX * COORD_DESCRIPTORS_MAX];
    nfds_t count = 0;
    coord_ms at = coord_clock_now() + most;
    for (size_t i = 0; i < all->count; i++) {
        struct coord_descriptor d[COORD_DESCRIPTORS_MAX];
        if (all->list[i]->frozen) {
            continue;
        }
        const size_t n = coord_elector_descriptors(all->list[i]->elector, d);
        for (size_t k = 0; k < n; k++) {
            fds[count++] = (struct pollfd){
                .fd = d[k].fd,
                .events = (short)((d[k].read ? POLLIN : 0) | (d[k].write ? POLLOUT : 0))};
        }
        at = coord_ms_min(at, coord_elector_deadline(all->list[i]->elector));
    }
    poll(fds, count, (int)coord_ms_sub(at, coord_clock_now()));
    for (size_t i = 0; i < all->count; i++) {
        if (!all->list[i]->frozen) {
            coord_elector_process(all->list[i]->elector, coord_clock_now());
            tell(all->list[i], coord_clock_now());
        }
    }
    watch(all, coord_clock_now());
}

void candidates_run(struct candidates *all, coord_ms duration)
{
    const coord_ms end = coord_clock_now() + duration;
    while (coord_clock_now() < end) {
        candidates_turn(all, end - coord_clock_now());
    }
}

static void give_up(const struct candidate *c)
{
    struct coord_explanation why;
    coord_elector_explain(c->elector, coord_clock_now(), &why);
    fail_msg("it never came: %s: %s", coord_reason_name(why.reason), why.text);
}

void candidates_until(struct candidates *all, const struct candidate *candidate,
                      candidate_condition condition)
{
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (!condition(candidate)) {
        if (coord_clock_now() > guard) {
            give_up(candidate);
        }
        candidates_turn(all, 50);
    }
}

void candidates_until_error(struct candidates *all, const struct candidate *candidate,
                            enum coord_err code)
{
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (candidate->lease->error.code != code) {
        if (coord_clock_now() > guard) {
            give_up(candidate);
        }
        candidates_turn(all, 50);
    }
}

bool candidate_leads(const struct candidate *candidate)
{
    return coord_elector_leading_at(candidate->elector, coord_clock_now());
}

/* By its clock, and its machine has seen it too: only then is it known why. */
bool candidate_leads_not(const struct candidate *candidate)
{
    return !candidate_leads(candidate) && !coord__term_leads(&candidate->lease->term);
}

bool candidate_settled(const struct candidate *candidate)
{
    return coord_lease_settled(candidate->lease);
}

enum coord_reason candidate_reason(const struct candidate *candidate)
{
    coord_ms for_ms = 0;
    return coord_lease_reason(candidate->lease, coord_clock_now(), &for_ms);
}

bool candidate_waits(const struct candidate *candidate)
{
    return candidate_reason(candidate) == COORD_REASON_TAKING_OVER;
}

bool candidate_is_held(const struct candidate *candidate)
{
    return candidate_reason(candidate) == COORD_REASON_HELD;
}

void candidate_stand(struct candidate *candidate)
{
    coord_lease_stand(candidate->lease, coord_clock_now());
}

void candidate_win(struct candidates *all, struct candidate *candidate)
{
    candidate_stand(candidate);
    candidates_until(all, candidate, candidate_leads);
    candidates_turn(all, 0); /* its edge */
}

void candidate_resign(struct candidates *all, struct candidate *candidate)
{
    coord_lease_withdraw(candidate->lease, coord_clock_now());
    candidates_until(all, candidate, candidate_settled);
}

enum coord_outcome candidate_query(struct candidates *all, struct candidate *candidate,
                                   const struct coord_request *query)
{
    assert_int_equal(coord_lease_query(candidate->lease, query, coord_clock_now()), COORD_OK);
    const coord_ms guard = coord_clock_now() + CANDIDATE_PATIENCE;
    while (candidate->lease->query_outcome == 0) {
        if (coord_clock_now() > guard) {
            give_up(candidate);
        }
        candidates_turn(all, 50);
    }
    return candidate->lease->query_outcome;
}
