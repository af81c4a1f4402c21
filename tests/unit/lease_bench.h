/* SPDX-License-Identifier: MIT
 * tests/unit/lease_bench.h - a lease machine on the bench: its answers are made by hand.
 */
#ifndef TEST_LEASE_BENCH_H
#define TEST_LEASE_BENCH_H

#include "coord/lease.h"
#include "tests/support/support.h"

enum {
    L = 3000,
    START = 100000
};

struct bench {
    struct coord_lease lease;
    struct coord_request request;
    coord_ms now;
};

static inline void begin(struct bench *b, unsigned rank, bool explicit_ack)
{
    struct coord_lease_config config = {.rank = rank, .explicit_ack = explicit_ack, .seed = 7};
    assert_int_equal(coord_timing_derive(L, 0, &config.timing, NULL), COORD_OK);
    b->now = START;
    coord_lease_init(&b->lease, &config, b->now);
}

/* What a test finds in its state: rank 0, and nothing to acknowledge. */
static inline int bench_begin(void **state)
{
    static struct bench b;
    memset(&b, 0, sizeof b);
    begin(&b, 0, false);
    *state = &b;
    return 0;
}

static inline void expect(struct bench *b, enum coord_verb verb)
{
    assert_true(coord_lease_next(&b->lease, b->now, &b->request));
    assert_int_equal(b->request.verb, verb);
}

/* It stands, and asks for the lease. */
static inline void ask(struct bench *b)
{
    coord_lease_stand(&b->lease, b->now);
    expect(b, COORD_VERB_ACQUIRE);
}

static inline void expect_nothing(struct bench *b)
{
    assert_false(coord_lease_next(&b->lease, b->now, &b->request));
}

/* Answers the last request `after` ms later. */
static inline void answer(struct bench *b, coord_ms after, struct coord_reply reply)
{
    b->now += after;
    reply.id = b->request.id;
    coord_lease_reply(&b->lease, &reply, b->now);
}

static inline void grant(struct bench *b, uint64_t fence, coord_ms owed)
{
    answer(b, 1, (struct coord_reply){.outcome = COORD_GRANTED, .fence = fence, .owed = owed});
}

static inline void renew(struct bench *b)
{
    answer(b, 1, (struct coord_reply){.outcome = COORD_RENEWED, .owed = COORD_NEVER});
}

/* Goes to the machine's own next deadline. */
static inline void advance(struct bench *b)
{
    const coord_ms at = coord_lease_deadline(&b->lease);
    assert_true(at != COORD_NEVER);
    b->now = coord_ms_max(b->now, at);
    COORD_IGNORE(coord_lease_tick(&b->lease, b->now), "what is due is looked at by the caller");
}

static inline void expect_edge(struct bench *b, enum coord_edge_kind kind)
{
    struct coord_edge edge;
    assert_true(coord_lease_next_edge(&b->lease, &edge));
    assert_int_equal(edge.kind, kind);
    coord_lease_edge_done(&b->lease, b->now);
}

static inline void lead(struct bench *b)
{
    ask(b);
    grant(b, 10, 0);
    assert_true(coord_lease_leading_at(&b->lease, b->now));
    expect_edge(b, COORD_EDGE_STARTED);
}

#endif /* TEST_LEASE_BENCH_H */
