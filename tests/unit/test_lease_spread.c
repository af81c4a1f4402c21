/* SPDX-License-Identifier: MIT
 * tests/unit/test_lease_spread.c - when candidates go that hear of the same release: one at once,
 * many not all in one instant.
 */
#include "coord/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum {
    L = 6000,
    JITTER = 4,
    START = 100000,
    MOST = 50
};

/* A store that answers at once, and its candidates. */
struct bench {
    struct coord_lease leases[MOST];
    unsigned count;
    unsigned leader; /* index; `count`: nobody */
    uint64_t fence;
    coord_ms now;
    unsigned tries;   /* after the last release */
    unsigned at_once; /* of them in its very millisecond */
    coord_ms took;    /* until somebody led */
};

static void tell_edges(struct bench *b, struct coord_lease *lease)
{
    struct coord_edge edge;
    while (coord_lease_next_edge(lease, &edge)) {
        coord_lease_edge_done(lease, b->now);
    }
}

static void serve(struct bench *b, unsigned i)
{
    struct coord_request request;
    struct coord_lease *lease = &b->leases[i];
    while (coord_lease_next(lease, b->now, &request)) {
        struct coord_observation leader = {.leading = true, .remaining = COORD_NEVER};
        struct coord_reply reply = {.id = request.id, .outcome = COORD_DONE};
        if (request.verb == COORD_VERB_RENEW) {
            reply.outcome = COORD_RENEWED;
        } else if (request.verb == COORD_VERB_RELEASE) {
            b->leader = b->count;
        } else if (b->leader == b->count) {
            b->tries++;
            b->leader = i;
            reply.outcome = COORD_GRANTED;
            reply.fence = ++b->fence;
        } else {
            b->tries++;
            leader.fence = b->fence;
            reply.outcome = COORD_HELD;
            reply.retry_in = L / 3;
            reply.leader = &leader;
        }
        coord_lease_reply(lease, &reply, b->now);
        tell_edges(b, lease);
    }
}

static void pass(struct bench *b, coord_ms ms, coord_ms step)
{
    for (const coord_ms end = b->now + ms; b->now < end; b->now += step) {
        for (unsigned i = 0; i < b->count; i++) {
            serve(b, i);
        }
    }
}

static void begin(struct bench *b, unsigned count)
{
    memset(b, 0, sizeof *b);
    b->now = START;
    b->count = count;
    b->leader = count;
    for (unsigned i = 0; i < count; i++) {
        struct coord_lease_config config = {.seed = i + 1, .hint_jitter = JITTER};
        assert_int_equal(coord_timing_derive(L, 0, &config.timing, NULL), COORD_OK);
        coord_lease_init(&b->leases[i], &config, b->now);
        coord_lease_stand(&b->leases[i], b->now);
    }
    pass(b, 100, 1);
    assert_true(b->leader < count);
}

/* The leader steps down, everybody is told of it in one instant. */
static void hand_over(struct bench *b)
{
    assert_int_equal(coord_lease_step_down(&b->leases[b->leader], NULL, b->now), COORD_OK);
    tell_edges(b, &b->leases[b->leader]);
    serve(b, b->leader);
    assert_int_equal(b->leader, b->count);
    const coord_ms start = b->now;
    b->tries = 0;
    for (unsigned i = 0; i < b->count; i++) {
        coord_lease_hint(&b->leases[i], b->now);
    }
    pass(b, 1, 1);
    b->at_once = b->tries;
    while (b->leader == b->count) {
        pass(b, 1, 1);
    }
    b->took = b->now - 1 - start;
    pass(b, 20, 1);
}

static void test_lease_spread__one_that_waits_alone_goes_at_once(void **state)
{
    (void)state;
    static struct bench b;
    begin(&b, 2);
    for (int round = 0; round < 10; round++) {
        pass(&b, L, 20);
        hand_over(&b);
        assert_int_equal(b.at_once, 1);
        assert_int_equal(b.took, 0);
    }
}

static void test_lease_spread__fifty_are_no_herd_after_the_first_time(void **state)
{
    (void)state;
    static struct bench b;
    begin(&b, MOST);
    for (int round = 0; round < 20; round++) {
        pass(&b, L, 20);
        hand_over(&b);
        assert_true(b.took <= JITTER);
        if (round >= 3) {
            assert_true(b.at_once < MOST / 2);
        }
    }
}

static void test_lease_spread__whoever_is_left_alone_goes_at_once_again(void **state)
{
    (void)state;
    static struct bench b;
    begin(&b, MOST);
    for (int round = 0; round < 5; round++) {
        pass(&b, L, 20);
        hand_over(&b);
    }
    const struct coord_lease rival = b.leases[(b.leader + 1) % MOST];
    b.leases[0] = b.leases[b.leader];
    b.leases[1] = rival;
    b.leader = 0;
    b.count = 2;
    for (int round = 0; round < 10; round++) {
        pass(&b, L, 20);
        hand_over(&b);
    }
    assert_int_equal(b.took, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lease_spread__one_that_waits_alone_goes_at_once),
        cmocka_unit_test(test_lease_spread__fifty_are_no_herd_after_the_first_time),
        cmocka_unit_test(test_lease_spread__whoever_is_left_alone_goes_at_once_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
