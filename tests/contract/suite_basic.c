/* SPDX-License-Identifier: MIT
 * tests/contract/suite_basic.c - the eighteen behaviours that every elector of the seed library's
 * conformance suite shows.
 */
#include "tests/contract/suite.h"

#include <stdatomic.h>

static void conforms(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    assert_string_equal(coord_election_backend(side->election), world->store->name);
    assert_string_equal(coord_election_name(side->election), world->name);
    assert_int_equal(coord_election_timing(side->election)->lease, world->store->ttl);
}

static void identity_is_stable_and_not_empty(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    assert_string_equal(coord_election_identity(side->election), side->identity);
    suite_win(side);
    assert_string_equal(coord_election_identity(side->election), side->identity);
}

static void does_not_lead_at_the_start(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    const struct coord_claim claim = coord_election_claim(side->election);
    assert_false(coord_election_is_leader(side->election));
    assert_false(claim.leading);
    assert_int_equal(claim.term, 0);
    assert_int_equal(claim.fence, 0);
    assert_int_equal(claim.remaining, 0);
    assert_int_equal(suite_reason(side), COORD_REASON_NOT_STANDING);
}

static void the_leader_at_the_start_is_another(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_observation leader;
    assert_int_equal(coord_election_leader(side->election, &leader), COORD_OK);
    assert_string_not_equal(leader.identity, side->identity);
    assert_false(leader.leading);
}

static void acquire_makes_it_the_leader_and_names_it(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_observation leader;
    suite_win(side);
    const struct coord_claim claim = coord_election_claim(side->election);
    assert_true(claim.leading);
    assert_false(claim.stopping);
    assert_int_equal(claim.term, 1);
    assert_true(claim.fence > 0);
    assert_in_range(claim.remaining, 1, world->store->ttl);
    assert_int_equal(coord_election_leader(side->election, &leader), COORD_OK);
    assert_true(leader.leading);
    assert_string_equal(leader.identity, side->identity);
    assert_int_equal(leader.fence, claim.fence);
    assert_int_equal(suite_reason(side), COORD_REASON_LEADING);
}

static void acquiring_twice_is_one_term(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    suite_win(side);
    const struct coord_claim claim = coord_election_claim(side->election);
    suite_win(side);
    assert_int_equal(coord_election_claim(side->election).term, claim.term);
    assert_int_equal(coord_election_claim(side->election).fence, claim.fence);
    suite_give_up(side);
    /* started, true; stopping, false, stopped: no second edge */
    assert_int_equal(suite_count(side), 5);
}

static void release_gives_it_up(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_observation leader;
    suite_win(side);
    suite_give_up(side);
    assert_false(coord_election_is_leader(side->election));
    assert_int_equal(coord_election_claim(side->election).fence, 0);
    assert_int_equal(coord_election_leader(side->election, &leader), COORD_OK);
    assert_false(leader.leading);
    assert_string_equal(leader.identity, "");
}

static void release_without_a_term_is_harmless(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    assert_int_equal(coord_election_release(side->election, GUARD, NULL), COORD_OK);
    assert_int_equal(suite_count(side), 0);
}

static void releasing_twice_is_harmless(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    suite_win(side);
    suite_give_up(side);
    const size_t count = suite_count(side);
    assert_int_equal(coord_election_release(side->election, GUARD, NULL), COORD_OK);
    assert_int_equal(suite_count(side), count);
}

static void renew_without_a_term_says_so(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_election_renew(side->election, GUARD, &error), COORD_E_NOT_LEADER);
    assert_string_not_equal(error.text, "");
}

static void renew_prolongs_a_term(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_win(side);
    for (int i = 0; i < 3; i++) {
        const coord_ms asked = coord_clock_now();
        assert_int_equal(coord_election_renew(side->election, GUARD, NULL), COORD_OK);
        const struct coord_claim claim = coord_election_claim(side->election);
        const coord_ms now = coord_clock_now();
        assert_true(claim.leading);
        assert_true(now + claim.remaining + 1 >=
                    coord_timing_hard(coord_election_timing(side->election), asked));
    }
}

static void renew_after_release_says_so(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_win(side);
    suite_give_up(side);
    assert_int_equal(coord_election_renew(side->election, GUARD, NULL), COORD_E_NOT_LEADER);
    assert_false(coord_election_is_leader(side->election));
}

static bool heard_five(void *ctx)
{
    return suite_count(ctx) >= 5;
}

static void callbacks_hear_of_the_whole_cycle(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    suite_win(side);
    const struct coord_claim claim = coord_election_claim(side->election);
    suite_give_up(side);
    suite_until(world, heard_five, side);
    suite_drive(world, 20);
    assert_int_equal(suite_count(side), 5);
    bool changes[2] = {false, true};
    enum coord_edge_kind edges[3] = {0, 0, 0};
    size_t change = 0;
    size_t edge = 0;
    for (size_t i = 0; i < 5; i++) {
        const struct suite_entry entry = suite_entry(side, i);
        if (entry.kind == 0) {
            assert_true(change < 2);
            changes[change++] = entry.leading;
        } else {
            assert_true(edge < 3);
            edges[edge++] = entry.kind;
            assert_int_equal(entry.term, claim.term);
            assert_int_equal(entry.fence, claim.fence);
        }
    }
    assert_true(changes[0]);
    assert_false(changes[1]);
    assert_int_equal(edges[0], COORD_EDGE_STARTED);
    assert_int_equal(edges[1], COORD_EDGE_STOPPING);
    assert_int_equal(edges[2], COORD_EDGE_STOPPED);
}

static void count_change(void *ctx, struct coord_election *election, bool leading)
{
    (void)election;
    (void)leading;
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static void a_removed_callback_is_silent(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    atomic_int calls = 0;
    assert_int_equal(coord_election_on_leader_change(side->election, count_change, &calls),
                     COORD_OK);
    assert_true(coord_election_remove_leader_change_callback(side->election, count_change, &calls));
    suite_win(side);
    suite_give_up(side);
    assert_int_equal(calls, 0);
}

static void removing_an_unknown_callback_says_no(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    atomic_int calls = 0;
    assert_false(
        coord_election_remove_leader_change_callback(side->election, count_change, &calls));
    assert_false(coord_election_remove_edge_callback(side->election, NULL, NULL));
    assert_int_equal(coord_election_on_leader_change(side->election, count_change, &calls),
                     COORD_OK);
    assert_true(coord_election_remove_leader_change_callback(side->election, count_change, &calls));
    assert_false(
        coord_election_remove_leader_change_callback(side->election, count_change, &calls));
}

static void a_rival_cannot_acquire_and_sees_the_leader(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct suite_side *rival = suite_open(world, 1);
    struct coord_observation leader;
    struct coord_error error = {.code = COORD_OK};
    suite_win(side);
    assert_int_equal(coord_election_try_acquire(rival->election, GUARD, &error),
                     COORD_E_NOT_LEADER);
    assert_non_null(strstr(error.text, side->identity));
    assert_false(coord_election_is_leader(rival->election));
    assert_int_equal(coord_election_leader(rival->election, &leader), COORD_OK);
    assert_true(leader.leading);
    assert_string_equal(leader.identity, side->identity);
    assert_int_equal(leader.fence, coord_election_claim(side->election).fence);
    assert_true(coord_election_is_leader(side->election));
}

static void a_rival_acquires_after_release(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct suite_side *rival = suite_open(world, 1);
    suite_win(side);
    const uint64_t fence = coord_election_claim(side->election).fence;
    suite_give_up(side);
    suite_win(rival);
    assert_true(coord_election_claim(rival->election).fence > fence);
    assert_false(coord_election_is_leader(side->election));
}

static void a_rivals_renewal_says_no(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct suite_side *rival = suite_open(world, 1);
    suite_win(side);
    assert_int_equal(coord_election_renew(rival->election, GUARD, NULL), COORD_E_NOT_LEADER);
    assert_true(coord_election_is_leader(side->election));
}

const struct suite_case suite_basics[] = {
    {"conforms", conforms, SUITE_BLOCKING, false},
    {"identity_is_stable_and_not_empty", identity_is_stable_and_not_empty, SUITE_BLOCKING, false},
    {"does_not_lead_at_the_start", does_not_lead_at_the_start, SUITE_ALL, false},
    {"the_leader_at_the_start_is_another", the_leader_at_the_start_is_another, SUITE_BLOCKING,
     false},
    {"acquire_makes_it_the_leader_and_names_it", acquire_makes_it_the_leader_and_names_it,
     SUITE_ALL, false},
    {"acquiring_twice_is_one_term", acquiring_twice_is_one_term, SUITE_ALL, false},
    {"release_gives_it_up", release_gives_it_up, SUITE_ALL, false},
    {"release_without_a_term_is_harmless", release_without_a_term_is_harmless, SUITE_ALL, false},
    {"releasing_twice_is_harmless", releasing_twice_is_harmless, SUITE_ALL, false},
    {"renew_without_a_term_says_so", renew_without_a_term_says_so, SUITE_ALL, false},
    {"renew_prolongs_a_term", renew_prolongs_a_term, SUITE_ALL, false},
    {"renew_after_release_says_so", renew_after_release_says_so, SUITE_ALL, false},
    {"callbacks_hear_of_the_whole_cycle", callbacks_hear_of_the_whole_cycle, SUITE_ALL, false},
    {"a_removed_callback_is_silent", a_removed_callback_is_silent, SUITE_ALL, false},
    {"removing_an_unknown_callback_says_no", removing_an_unknown_callback_says_no, SUITE_BLOCKING,
     false},
    {"a_rival_cannot_acquire_and_sees_the_leader", a_rival_cannot_acquire_and_sees_the_leader,
     SUITE_ALL, true},
    {"a_rival_acquires_after_release", a_rival_acquires_after_release, SUITE_ALL, true},
    {"a_rivals_renewal_says_no", a_rivals_renewal_says_no, SUITE_ALL, true},
    {NULL, NULL, 0, false},
};
