/* SPDX-License-Identifier: MIT
 * tests/contract/suite_calls.c - asking, asking others, giving up in time; and what is refused.
 */
#include "tests/contract/suite.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- observing */

static void observe_tells_of_nobody(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_observation seen;
    memset(&seen, 0xff, sizeof seen);
    assert_int_equal(coord_election_observe(side->election, GUARD, &seen, NULL), COORD_OK);
    assert_false(seen.leading);
    assert_false(seen.taking_over);
    assert_string_equal(seen.identity, "");
    assert_int_equal(seen.fence, 0);
    assert_int_equal(suite_reason(side), COORD_REASON_NOT_STANDING);
}

static void observe_tells_the_leader_and_its_metadata(struct suite_world *world)
{
    static const unsigned char metadata[] = "10.0.0.7:8080 \0 {%}\xff\n'\"";
    struct coord_election_config config = suite_config(world);
    config.metadata = metadata;
    config.metadata_bytes = sizeof metadata;
    struct suite_side *side = suite_open_with(world, 0, &config);
    struct suite_side *other = suite_open(world, 1);
    struct coord_observation seen;
    suite_win(side);
    const struct coord_claim claim = coord_election_claim(side->election);
    assert_int_equal(coord_election_observe(other->election, GUARD, &seen, NULL), COORD_OK);
    assert_true(seen.leading);
    assert_false(seen.taking_over);
    assert_string_equal(seen.identity, side->identity);
    assert_int_equal(seen.fence, claim.fence);
    assert_true(seen.last_fence == 0 || seen.last_fence >= claim.fence);
    assert_int_equal(seen.metadata_bytes, sizeof metadata);
    assert_memory_equal(seen.metadata, metadata, sizeof metadata);
    if (seen.remaining != COORD_NEVER) {
        assert_in_range(seen.remaining, 1, world->store->ttl);
    }
    suite_give_up(side);
    assert_int_equal(coord_election_observe(other->election, GUARD, &seen, NULL), COORD_OK);
    assert_false(seen.leading);
    assert_string_equal(seen.identity, "");
}

static void the_longest_metadata_fits(struct suite_world *world)
{
    unsigned char metadata[COORD_METADATA_MAX];
    struct coord_election_config config = suite_config(world);
    for (size_t i = 0; i < sizeof metadata; i++) {
        metadata[i] = (unsigned char)(i * 7);
    }
    config.metadata = metadata;
    config.metadata_bytes = sizeof metadata;
    struct suite_side *side = suite_open_with(world, 0, &config);
    struct suite_side *other = suite_open(world, 1);
    struct coord_observation seen;
    suite_win(side);
    assert_int_equal(coord_election_observe(other->election, GUARD, &seen, NULL), COORD_OK);
    assert_int_equal(seen.metadata_bytes, sizeof metadata);
    assert_memory_equal(seen.metadata, metadata, sizeof metadata);
}

/* ---------------------------------------------------------------- names of any byte */

static void names_and_identities_are_any_bytes(struct suite_world *world)
{
    char name[COORD_NAME_MAX];
    char identity[COORD_NAME_MAX];
    struct coord_election_config config = suite_config(world);
    snprintf(name, sizeof name, "%s", world->name);
    for (size_t i = strlen(name); i < sizeof name; i++) {
        name[i] = (char)(i * 37);
    }
    for (size_t i = 0; i < sizeof identity; i++) {
        identity[i] = (char)(255 - i);
    }
    config.name = name;
    config.name_bytes = sizeof name;
    config.identity = identity;
    config.identity_bytes = sizeof identity;
    struct suite_side *side = suite_open_with(world, 0, &config);
    config.identity = NULL;
    config.identity_bytes = 0;
    struct suite_side *other = suite_open_with(world, 1, &config);
    struct coord_observation seen;
    suite_win(side);
    assert_int_equal(coord_election_observe(other->election, GUARD, &seen, NULL), COORD_OK);
    assert_true(seen.leading);
    assert_string_equal(seen.identity, coord_election_identity(side->election));
    config.name_bytes--; /* another name, which nobody leads */
    struct suite_side *third = suite_open_with(world, 2, &config);
    assert_int_equal(coord_election_observe(third->election, GUARD, &seen, NULL), COORD_OK);
    assert_false(seen.leading);
}

/* ---------------------------------------------------------------- in time */

static void wait_gives_up_in_time(struct suite_world *world)
{
    struct coord_election_config config = suite_config(world);
    config.ttl = 600000;
    struct suite_side *side = suite_open_with(world, 0, &config);
    struct suite_side *rival = suite_open_with(world, 1, &config);
    struct coord_error error = {.code = COORD_OK};
    struct coord_observation seen;
    suite_win(side);
    /* It connects first: what is measured below does not depend on how long that takes. */
    assert_int_equal(coord_election_observe(rival->election, GUARD, &seen, NULL), COORD_OK);
    const coord_ms before = coord_clock_now();
    assert_int_equal(coord_election_wait(rival->election, 200, &error), COORD_E_TIMEOUT);
    assert_true(coord_clock_now() - before >= 200);
    assert_non_null(strstr(error.text, side->identity));
    suite_give_up(side);
    suite_drive(world, 50);
    assert_false(suite_leads(rival)); /* it withdrew */
    assert_int_equal(suite_reason(rival), COORD_REASON_NOT_STANDING);
    assert_int_equal(coord_election_wait(rival->election, GUARD, NULL), COORD_OK);
}

static void a_paused_candidate_says_so_when_the_time_is_up(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_election_pause(side->election), COORD_OK);
    assert_int_equal(coord_election_try_acquire(side->election, 20, &error), COORD_E_TIMEOUT);
    assert_non_null(strstr(error.text, "paused"));
    assert_int_equal(coord_election_resume(side->election), COORD_OK);
    suite_win(side);
}

struct closer {
    struct suite_side *side;
    pthread_t thread;
};

static bool stands(void *ctx)
{
    return suite_reason(ctx) != COORD_REASON_NOT_STANDING;
}

static void *close_when_it_waits(void *ctx)
{
    struct suite_side *side = ctx;
    while (!stands(side)) {
        sched_yield();
    }
    coord_election_close(side->election);
    return NULL;
}

static void a_waiting_call_ends_when_its_election_is_closed(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_error error = {.code = COORD_OK};
    pthread_t thread;
    assert_int_equal(coord_election_pause(side->election), COORD_OK);
    assert_int_equal(pthread_create(&thread, NULL, close_when_it_waits, side), 0);
    assert_int_equal(coord_election_wait(side->election, GUARD, &error), COORD_E_CLOSED);
    assert_string_not_equal(error.text, "");
    pthread_join(thread, NULL);
}

/* ---------------------------------------------------------------- asking others */

static void another_can_be_asked_to_step_down(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct suite_side *other = suite_open(world, 1);
    struct suite_side *named = suite_open(world, 2);
    struct coord_error error = {.code = COORD_OK};
    suite_listen(side);
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, suite_leads, side);
    assert_int_equal(coord_election_stand(named->election), COORD_OK);
    const enum coord_err rc =
        coord_election_ask_step_down(other->election, named->identity, COORD_NEVER, &error);
    if (rc != COORD_OK) {
        fail_msg("ask_step_down: %s: %s", coord_err_name(rc), error.text);
    }
    suite_until(world, suite_leads, named);
    assert_false(suite_leads(side));
    assert_false(suite_leads(other));
}

static void asking_says_when_the_leader_needs_more_time(struct suite_world *world)
{
    struct coord_election_config config = suite_config(world);
    config.explicit_ack = true; /* its work goes on after it was told */
    config.ttl = 60000;
    struct suite_side *side = suite_open_with(world, 0, &config);
    struct suite_side *other = suite_open(world, 1);
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_election_stand(side->election), COORD_OK);
    suite_until(world, suite_leads, side);
    assert_int_equal(coord_election_ask_step_down(other->election, NULL, 300, &error),
                     COORD_E_TIMEOUT);
    assert_non_null(strstr(error.text, side->identity));
    assert_true(suite_leads(side));
}

static void asking_where_nobody_leads_says_so(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_election_ask_step_down(side->election, NULL, GUARD, &error),
                     COORD_E_NO_LEADER);
    assert_string_not_equal(error.text, "");
    assert_int_equal(coord_election_ask_step_down(side->election, "", GUARD, &error),
                     COORD_E_BAD_NAME);
}

static void one_that_leads_steps_down_when_it_asks(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    suite_listen(side);
    suite_win(side);
    assert_int_equal(coord_election_ask_step_down(side->election, NULL, GUARD, NULL), COORD_OK);
    assert_false(suite_leads(side));
}

static void a_record_is_not_cleared_under_a_leader(struct suite_world *world)
{
    struct suite_side *side = suite_open(world, 0);
    struct suite_side *other = suite_open(world, 1);
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_election_init_record(other->election, GUARD, NULL), COORD_OK);
    suite_win(side);
    assert_int_equal(coord_election_init_record(other->election, GUARD, &error), COORD_E_BUSY);
    assert_non_null(strstr(error.text, side->identity));
    assert_true(suite_leads(side));
}

/* ---------------------------------------------------------------- what is refused */

static void refused(struct suite_world *world, const char *uri,
                    const struct coord_election_config *config, enum coord_err wanted)
{
    struct coord_election *election = NULL;
    struct coord_error error = {.code = COORD_OK};
    const enum coord_err rc = coord_election_open(world->sides[0].runtime, world->store->schemes,
                                                  uri, config, &election, &error);
    if (rc != wanted) {
        fail_msg("open: %s instead of %s: %s", coord_err_name(rc), coord_err_name(wanted),
                 error.text);
    }
    assert_null(election);
    assert_int_equal(error.code, wanted);
    assert_string_not_equal(error.text, "");
}

static void wrong_configurations_are_refused_with_their_code(struct suite_world *world)
{
    char many[COORD_METADATA_MAX + 1] = "x";
    suite_open(world, 0); /* makes the runtime */
    const char *uri = world->store->uri();
    struct coord_election_config good = suite_config(world);
    good.name = world->name;
    good.name_bytes = strlen(world->name);

    struct coord_election_config config = good;
    config.name = NULL;
    refused(world, uri, &config, COORD_E_BAD_NAME);
    config = good;
    config.name_bytes = 0;
    refused(world, uri, &config, COORD_E_BAD_NAME);
    config = good;
    config.name = many;
    config.name_bytes = COORD_NAME_MAX + 1;
    refused(world, uri, &config, COORD_E_BAD_NAME);
    config = good;
    config.identity = many;
    config.identity_bytes = COORD_NAME_MAX + 1;
    refused(world, uri, &config, COORD_E_BAD_NAME);
    config = good;
    config.identity = many;
    config.identity_bytes = 0;
    refused(world, uri, &config, COORD_E_BAD_NAME);
    config = good;
    config.metadata = many;
    config.metadata_bytes = sizeof many;
    refused(world, uri, &config, COORD_E_BAD_METADATA);
    config = good;
    config.ttl = COORD_TTL_MIN - 1;
    refused(world, uri, &config, COORD_E_BAD_TTL);
    config.ttl = (coord_ms)COORD_TTL_MAX + 1;
    refused(world, uri, &config, COORD_E_BAD_TTL);
    config = good;
    config.grace = good.ttl;
    refused(world, uri, &config, COORD_E_BAD_TTL);
}

static void wrong_options_and_uris_are_refused_with_their_code(struct suite_world *world)
{
    suite_open(world, 0);
    const char *uri = world->store->uri();
    struct coord_election_config config = suite_config(world);
    const char *options[2] = {"no-such-option=1", NULL};
    config.name = world->name;
    config.name_bytes = strlen(world->name);
    config.options = options;
    refused(world, uri, &config, COORD_E_UNKNOWN_OPTION);
    config.ttl = 0;
    options[0] = "ttl=soon";
    refused(world, uri, &config, COORD_E_BAD_OPTION);
    options[0] = "ttl=1ms";
    refused(world, uri, &config, COORD_E_BAD_TTL);
    options[0] = "priority=first";
    refused(world, uri, &config, COORD_E_BAD_OPTION);
    options[0] = "no value";
    refused(world, uri, &config, COORD_E_BAD_OPTION);
    if (world->store->bad_option != NULL) {
        options[0] = world->store->bad_option;
        refused(world, uri, &config, COORD_E_BAD_OPTION);
    }
    config.options = NULL;
    refused(world, "nosuchscheme://somewhere", &config, COORD_E_UNKNOWN_SCHEME);
    refused(world, "not a uri", &config, COORD_E_BAD_URI);
}

const struct suite_case suite_calls[] = {
    {"observe_tells_of_nobody", observe_tells_of_nobody, SUITE_ALL, false},
    {"observe_tells_the_leader_and_its_metadata", observe_tells_the_leader_and_its_metadata,
     SUITE_ALL, true},
    {"the_longest_metadata_fits", the_longest_metadata_fits, SUITE_BLOCKING, true},
    {"names_and_identities_are_any_bytes", names_and_identities_are_any_bytes, SUITE_BLOCKING,
     true},
    {"wait_gives_up_in_time", wait_gives_up_in_time, SUITE_ALL, true},
    {"a_paused_candidate_says_so_when_the_time_is_up",
     a_paused_candidate_says_so_when_the_time_is_up, SUITE_ALL, false},
    {"a_waiting_call_ends_when_its_election_is_closed",
     a_waiting_call_ends_when_its_election_is_closed, SUITE_BLOCKING | SUITE_THREADS, false},
    {"another_can_be_asked_to_step_down", another_can_be_asked_to_step_down, SUITE_THREADS, true},
    {"asking_says_when_the_leader_needs_more_time", asking_says_when_the_leader_needs_more_time,
     SUITE_THREADS, true},
    {"asking_where_nobody_leads_says_so", asking_where_nobody_leads_says_so, SUITE_ALL, false},
    {"one_that_leads_steps_down_when_it_asks", one_that_leads_steps_down_when_it_asks, SUITE_ALL,
     false},
    {"a_record_is_not_cleared_under_a_leader", a_record_is_not_cleared_under_a_leader,
     SUITE_BLOCKING, true},
    {"wrong_configurations_are_refused_with_their_code",
     wrong_configurations_are_refused_with_their_code, SUITE_BLOCKING, false},
    {"wrong_options_and_uris_are_refused_with_their_code",
     wrong_options_and_uris_are_refused_with_their_code, SUITE_BLOCKING, false},
    {NULL, NULL, 0, false},
};
