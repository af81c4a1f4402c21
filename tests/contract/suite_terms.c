/* SPDX-License-Identifier: MIT
 * tests/contract/suite_terms.c - terms one after another: takeover, handing over, standing aside.
 */
#include "tests/contract/suite.h"

#include <stdlib.h>

enum {
    /* A third of it, after which any candidate looks by itself, is longer than a case may take:
     * who leads earlier was told. */
    LONG_TTL = 600000,
    MANY = 40
};

static struct suite_side *open_long(struct suite_world *world, int i)
{
    struct coord_election_config config = suite_config(world);
    config.ttl = LONG_TTL;
    return suite_open_with(world, i, &config);
}

static void fences_rise_over_terms(struct suite_world *world)
{
    struct suite_side *sides[2] = {suite_open(world, 0), suite_open(world, 1)};
    uint64_t last = 0;
    for (uint64_t i = 0; i < 20; i++) {
        struct suite_side *side = sides[i % 2];
        suite_win(side);
        const struct coord_claim claim = coord_election_claim(side->election);
        assert_true(claim.fence > last);
        assert_true(claim.fence < (UINT64_C(1) << 53));
        assert_int_equal(claim.term, i / 2 + 1);
        last = claim.fence;
        suite_give_up(side);
    }
}

static void a_candidate_takes_over_at_once_after_release(struct suite_world *world)
{
    struct suite_side *side = open_long(world, 0);
    struct suite_side *rival = open_long(world, 1);
    suite_win(side);
    assert_int_equal(coord_election_stand(rival->election), COORD_OK);
    suite_drive(world, 50);
    assert_false(suite_leads(rival));
    suite_give_up(side);
    suite_until(world, suite_leads, rival);
    assert_false(suite_leads(side));
}

static void a_candidate_takes_over_from_one_that_vanished(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct suite_side *rival = suite_open(world, 1);
    suite_win(side);
    const uint64_t fence = coord_election_claim(side->election).fence;
    assert_int_equal(coord_election_stand(rival->election), COORD_OK);
    coord_runtime_free(side->runtime); /* without a word */
    side->runtime = NULL;
    suite_until(world, suite_leads, rival);
    assert_true(coord_election_claim(rival->election).fence > fence);
}

static void a_term_that_nobody_renews_ends(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    suite_win(side);
    const struct coord_claim claim = coord_election_claim(side->election);
    const coord_ms hard = coord_clock_now() + claim.remaining;
    while (coord_clock_now() <= hard) { /* nobody drives it */
    }
    assert_false(coord_election_is_leader(side->election));
    assert_false(coord_election_claim(side->election).leading);
    suite_win(side);
    assert_int_equal(coord_election_claim(side->election).term, claim.term + 1);
    assert_true(coord_election_claim(side->election).fence > claim.fence);
}

static bool is_aside(void *ctx)
{
    return suite_reason(ctx) == COORD_REASON_STANDING_ASIDE;
}

static void who_steps_down_stands_aside_and_then_leads_again(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    assert_int_equal(coord_election_step_down(side->election, NULL), COORD_E_NOT_LEADER);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, suite_leads, side);
    const uint64_t fence = coord_election_claim(side->election).fence;
    assert_int_equal(coord_election_step_down(side->election, NULL), COORD_OK);
    suite_until(world, is_aside, side);
    assert_false(suite_leads(side));
    suite_until(world, suite_leads, side);
    assert_true(coord_election_claim(side->election).fence > fence);
    assert_int_equal(coord_election_claim(side->election).term, 2);
}

static void step_down_hands_over_to_the_named_one(struct suite_world *world)
{
    struct suite_side *side = open_long(world, 0);
    struct suite_side *other = open_long(world, 1);
    struct suite_side *named = open_long(world, 2);
    suite_listen(side);
    suite_listen(other);
    suite_win(side);
    assert_int_equal(coord_election_stand(other->election), COORD_OK);
    assert_int_equal(coord_election_stand(named->election), COORD_OK);
    suite_drive(world, 50);
    assert_int_equal(coord_election_step_down(side->election, ""), COORD_E_BAD_NAME);
    assert_int_equal(coord_election_step_down(side->election, named->identity), COORD_OK);
    suite_until(world, suite_leads, named);
    assert_false(suite_leads(side));
    assert_false(suite_leads(other));
    assert_int_equal(suite_count(other), 0);
}

static bool is_paused(void *ctx)
{
    return suite_reason(ctx) == COORD_REASON_PAUSED;
}

static void pause_keeps_a_term_and_begins_none(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    assert_int_equal(coord_election_pause(side->election), COORD_OK);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, is_paused, side);
    suite_drive(world, 50);
    assert_false(suite_leads(side));
    assert_int_equal(coord_election_resume(side->election), COORD_OK);
    suite_until(world, suite_leads, side);
    assert_int_equal(coord_election_pause(side->election), COORD_OK);
    suite_drive(world, 2 * world->store->ttl); /* it is renewed all the same */
    assert_true(suite_leads(side));
    assert_int_equal(coord_election_claim(side->election).term, 1);
    assert_int_equal(coord_election_step_down(side->election, NULL), COORD_OK);
    suite_until(world, is_paused, side);
}

static bool is_sick(void *ctx)
{
    return suite_reason(ctx) == COORD_REASON_SICK;
}

static void a_sick_leader_steps_down_until_it_is_well(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, suite_leads, side);
    assert_int_equal(coord_election_report_health(side->election, false), COORD_OK);
    suite_until(world, is_sick, side);
    assert_false(suite_leads(side));
    assert_int_equal(coord_election_report_health(side->election, true), COORD_OK);
    suite_until(world, suite_leads, side);
    assert_int_equal(coord_election_claim(side->election).term, 2);
}

static bool is_delayed(void *ctx)
{
    return suite_reason(ctx) == COORD_REASON_CLAIM_DELAY;
}

static void one_of_worse_rank_leaves_others_their_time(struct suite_world *world)
{
    struct coord_election_config config = suite_config(world);
    config.rank = 2;
    struct suite_side *side = suite_open_with(world, 0, &config);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, is_delayed, side);
    assert_false(suite_leads(side));
    suite_until(world, suite_leads, side);
}

static void one_of_better_rank_is_first(struct suite_world *world)
{
    struct coord_election_config config = suite_config(world);
    config.rank = 3;
    struct suite_side *side = suite_open(world, 0);
    struct suite_side *worse = suite_open_with(world, 1, &config);
    struct suite_side *better = suite_open(world, 2);
    suite_win(side);
    assert_int_equal(coord_election_stand(worse->election), COORD_OK);
    suite_drive(world, 30);
    assert_int_equal(coord_election_stand(better->election), COORD_OK);
    suite_drive(world, 30);
    suite_give_up(side);
    suite_until(world, suite_leads, better);
    assert_false(suite_leads(worse));
}

static bool has_led_twice(void *ctx)
{
    return coord_election_claim(((struct suite_side *)ctx)->election).term >= 2;
}

static void a_term_that_the_store_lost_ends_and_another_follows(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    if (world->store->lose == NULL) {
        skip_because("nothing takes a lease away from this store");
    }
    suite_listen(side);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, suite_leads, side);
    const struct coord_claim claim = coord_election_claim(side->election);
    world->store->lose(world->name);
    suite_until(world, has_led_twice, side);
    assert_true(coord_election_claim(side->election).fence > claim.fence);
}

/* ---------------------------------------------------------------- many names, one runtime */

static bool all_lead(void *ctx)
{
    struct coord_election **elections = ctx;
    for (int i = 0; i < MANY; i++) {
        if (!coord_election_is_leader(elections[i])) {
            return false;
        }
    }
    return true;
}

static void many_elections_share_one_runtime(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_election *elections[MANY];
    struct coord_election_config config = suite_config(world);
    config.identity = side->identity;
    config.identity_bytes = strlen(side->identity);
    for (int i = 0; i < MANY; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s/%d", world->name, i);
        config.name = name;
        config.name_bytes = strlen(name);
        assert_int_equal(coord_election_open(side->runtime, world->store->schemes,
                                             world->store->uri(), &config, &elections[i], NULL),
                         COORD_OK);
        assert_int_equal(coord_election_stand(elections[i]), COORD_OK);
    }
    suite_until(world, all_lead, elections);
    suite_drive(world, 2 * world->store->ttl);
    suite_until(world, all_lead, elections);
    for (int i = 0; i < MANY; i++) {
        enum coord_stop how = COORD_STOP_BUSY;
        assert_int_equal(coord_election_claim(elections[i]).term, 1);
        assert_int_equal(coord_election_stop(elections[i], GUARD, &how), COORD_OK);
        assert_int_equal(how, COORD_STOP_RELEASED);
        coord_election_close(elections[i]);
    }
}

static void two_candidates_of_one_runtime_contend(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_election *other = NULL;
    struct coord_election_config config = suite_config(world);
    config.name = world->name;
    config.name_bytes = strlen(world->name);
    const enum coord_err rc = coord_election_open(side->runtime, world->store->schemes,
                                                  world->store->uri(), &config, &other, NULL);
    if (rc == COORD_E_DUPLICATE_ELECTION) {
        return; /* this store tells its holders apart by connection, and says so */
    }
    assert_int_equal(rc, COORD_OK);
    assert_string_not_equal(coord_election_identity(other), side->identity);
    suite_win(side);
    assert_int_equal(coord_election_try_acquire(other, GUARD, NULL), COORD_E_NOT_LEADER);
    suite_give_up(side);
    assert_int_equal(coord_election_try_acquire(other, GUARD, NULL), COORD_OK);
    assert_int_equal(coord_election_try_acquire(side->election, GUARD, NULL), COORD_E_NOT_LEADER);
    coord_election_close(other);
}

const struct suite_case suite_terms[] = {
    {"fences_rise_over_terms", fences_rise_over_terms, SUITE_ALL, true},
    {"a_candidate_takes_over_at_once_after_release", a_candidate_takes_over_at_once_after_release,
     SUITE_ALL, true},
    {"a_candidate_takes_over_from_one_that_vanished", a_candidate_takes_over_from_one_that_vanished,
     SUITE_ALL, true},
    {"a_term_that_nobody_renews_ends", a_term_that_nobody_renews_ends, SUITE_BLOCKING, false},
    {"who_steps_down_stands_aside_and_then_leads_again",
     who_steps_down_stands_aside_and_then_leads_again, SUITE_THREADS | SUITE_LOOP, false},
    {"step_down_hands_over_to_the_named_one", step_down_hands_over_to_the_named_one,
     SUITE_THREADS | SUITE_LOOP, true},
    {"pause_keeps_a_term_and_begins_none", pause_keeps_a_term_and_begins_none,
     SUITE_THREADS | SUITE_LOOP, false},
    {"a_sick_leader_steps_down_until_it_is_well", a_sick_leader_steps_down_until_it_is_well,
     SUITE_THREADS | SUITE_LOOP, false},
    {"one_of_worse_rank_leaves_others_their_time", one_of_worse_rank_leaves_others_their_time,
     SUITE_THREADS | SUITE_LOOP, false},
    {"one_of_better_rank_is_first", one_of_better_rank_is_first, SUITE_THREADS | SUITE_LOOP, true},
    {"a_term_that_the_store_lost_ends_and_another_follows",
     a_term_that_the_store_lost_ends_and_another_follows, SUITE_THREADS | SUITE_LOOP, false},
    {"many_elections_share_one_runtime", many_elections_share_one_runtime,
     SUITE_THREADS | SUITE_LOOP, false},
    {"two_candidates_of_one_runtime_contend", two_candidates_of_one_runtime_contend,
     SUITE_BLOCKING | SUITE_THREADS, true},
    {NULL, NULL, 0, false},
};
