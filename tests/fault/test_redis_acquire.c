/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_acquire.c - what the acquiring script grants, and what a grant is worth.
 */
#include "tests/support/redis_script.h"

#include "coord/fence.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- the texts themselves */

static void test_scripts__carry_the_digest_that_the_server_computes(void **state)
{
    struct script_world *f = *state;
    bool same = true;
    for (int verb = COORD_VERB_ACQUIRE; verb <= COORD_VERB_INIT; verb++) {
        const struct coord__redis_script *script = coord__redis_script((enum coord_verb)verb);
        redisReply *reply = redisCommand(f->context, "SCRIPT LOAD %s", script->body);
        assert_non_null(reply);
        if (reply->type != REDIS_REPLY_STRING || strcmp(reply->str, script->sha1) != 0) {
            print_message("verb %d should say \"%s\"\n", verb, reply->str);
            same = false;
        }
        freeReplyObject(reply);
    }
    assert_true(same);
}

/* ---------------------------------------------------------------- acquire */

static void test_acquire__of_a_new_name_on_a_young_server_owes_one_lease(void **state)
{
    struct script_world *f = *state;
    const struct script_answer got = script_acquire(f, ANNA, 1);
    assert_int_equal(got.status, COORD_GRANTED);
    assert_int_equal(got.number[1], SCRIPT_TTL);
    script_assert_field(f, "debt", "15000");
    script_assert_field(f, "lease", "15000");
    script_assert_field(f, "state", "granted");
    assert_int_equal(got.number[0], (long long)coord_fence_next(0, 0, (uint64_t)got.at_us, true));
    assert_in_range(script_integer(f, "PTTL", 0), SCRIPT_TTL - 2000, SCRIPT_TTL);
    assert_in_range(script_integer(f, "PTTL", 1), 2591990000, 2592000000);
}

static void test_acquire__of_a_new_name_is_clear_on_a_server_older_than_the_lease(void **state)
{
    struct script_world *f = *state;
    script_wait_for_uptime(f, 2);
    const struct script_answer got =
        script_acquire_as(f, &(struct script_candidate){.owner = ANNA, .attempt = 1, .ttl = 900});
    assert_int_equal(got.status, COORD_GRANTED);
    assert_int_equal(got.number[1], 0);
    /* The whole second that the server rounds away does not count. */
    script_command(f, "DEL %s %s", f->key[0], f->key[1]);
    script_wait_for_uptime(f, 2);
    const struct script_answer rounded = script_acquire_as(
        f, &(struct script_candidate){.owner = ANNA, .attempt = 1, .ttl = 86400000});
    assert_int_equal(rounded.number[1], 86400000);
}

static void test_acquire__with_no_record_owes_a_lease_to_who_has_seen_the_name(void **state)
{
    struct script_world *f = *state;
    script_wait_for_uptime(f, 2);
    const struct script_answer got = script_acquire_as(
        f, &(struct script_candidate){.owner = ANNA, .attempt = 1, .ttl = 900, .seen = 7});
    assert_int_equal(got.number[1], 900);
}

static void test_acquire__again_by_the_same_attempt_keeps_the_fence_and_the_debt(void **state)
{
    struct script_world *f = *state;
    const struct script_answer first = script_acquire(f, ANNA, 1);
    script_command(f, "PEXPIRE %s %s", f->key[0], "1000");
    const struct script_answer second = script_acquire(f, ANNA, 1);
    assert_int_equal(second.status, COORD_GRANTED);
    assert_int_equal(second.number[0], first.number[0]);
    assert_int_equal(second.number[1], SCRIPT_TTL);
    assert_true(script_integer(f, "PTTL", 0) > 2000); /* a new expiry as well */
}

/* A replica that lagged and whose clock was behind: a lease lives again that had lapsed. */
static void test_acquire__again_is_a_new_term_where_an_older_state_came_back(void **state)
{
    struct script_world *f = *state;
    const struct script_answer first = script_acquire(f, ANNA, 1);
    const unsigned long long later = (unsigned long long)first.number[0] + 1;
    const struct script_answer behind = script_acquire_as(
        f, &(struct script_candidate){.owner = ANNA, .attempt = 1, .seen = later});
    assert_int_equal(behind.status, COORD_GRANTED);
    assert_true(behind.number[0] > (long long)later);
    script_renew(f, ANNA, 1, behind.number[0], "led");
    script_of_another_run(f);
    const struct script_answer other = script_acquire(f, ANNA, 1);
    assert_int_equal(other.status, COORD_GRANTED);
    assert_true(other.number[0] > behind.number[0]);
    assert_int_equal(other.number[1], SCRIPT_TTL); /* the first of them owed nothing */
}

static void test_acquire__by_a_later_attempt_of_the_owner_gets_a_new_fence_and_the_debt(
    void **state)
{
    struct script_world *f = *state;
    const struct script_answer first = script_acquire(f, ANNA, 1);
    const struct script_answer second =
        script_acquire_as(f, &(struct script_candidate){.owner = ANNA, .attempt = 2, .ttl = 9000});
    assert_int_equal(second.status, COORD_GRANTED);
    assert_true(second.number[0] > first.number[0]);
    assert_int_equal(second.number[1], SCRIPT_TTL); /* what the first one owed */
    assert_int_equal(script_renew(f, ANNA, 1, first.number[0], "").status, COORD_LOST);
    assert_int_equal(script_renew(f, ANNA, 2, second.number[0], "").status, COORD_RENEWED);
}

static void test_acquire__over_an_own_lease_without_its_record_owes_again(void **state)
{
    struct script_world *f = *state;
    script_wait_for_uptime(f, 2);
    script_acquire_as(f, &(struct script_candidate){.owner = ANNA, .attempt = 1, .ttl = 900});
    script_command(f, "DEL %s %s", f->key[1], "");
    const struct script_answer again =
        script_acquire_as(f, &(struct script_candidate){.owner = ANNA, .attempt = 1, .ttl = 900});
    assert_int_equal(again.status, COORD_GRANTED);
    assert_int_equal(again.number[1], 900);
}

static void test_acquire__by_an_earlier_attempt_than_the_lease_holds_is_dead(void **state)
{
    struct script_world *f = *state;
    script_acquire(f, ANNA, 2);
    assert_int_equal(script_acquire(f, ANNA, 1).status, COORD_DEAD_ATTEMPT);
    assert_int_equal(script_observe(f).status, COORD_HELD);
}

static void test_acquire__that_comes_after_its_own_end_makes_no_ghost_lease(void **state)
{
    struct script_world *f = *state;
    const struct script_answer led = script_acquire(f, ANNA, 1);
    script_release(f, ANNA, 1, led.number[0]);
    assert_int_equal(script_acquire(f, ANNA, 1).status, COORD_DEAD_ATTEMPT); /* released */
    script_acquire(f, ANNA, 2);
    script_undo(f, ANNA, 2);
    assert_int_equal(script_acquire(f, ANNA, 2).status, COORD_DEAD_ATTEMPT); /* undone */
    script_acquire(f, ANNA, 3);
    script_command(f, "DEL %s %s", f->key[0], "");
    assert_int_equal(script_acquire(f, ANNA, 3).status, COORD_DEAD_ATTEMPT); /* lapsed */
    script_undo(f, ANNA, 4);
    assert_int_equal(script_acquire(f, ANNA, 4).status,
                     COORD_DEAD_ATTEMPT); /* overtaken by its undo */
    assert_int_equal(script_integer(f, "EXISTS", 0), 0);
    assert_int_equal(script_acquire(f, ANNA, 5).status, COORD_GRANTED);
}

static void test_acquire__of_a_held_name_says_who_holds_it_and_for_how_long(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    const struct script_answer bert = script_acquire(f, BERT, 1);
    assert_int_equal(bert.status, COORD_HELD);
    assert_in_range(bert.number[0], SCRIPT_TTL - 2000, SCRIPT_TTL);
    assert_int_equal(bert.number[2], SCRIPT_TTL); /* still owed: it takes over */
    assert_int_equal(bert.number[3], anna.number[0]);
    char expected[256];
    script_write_line(expected, ANNA, 1, anna.number[0]);
    assert_memory_equal(bert.text, expected, strlen(expected));
    assert_non_null(strstr(bert.text, " 4 annahost:80"));
}

static void test_acquire__cuts_a_lease_that_would_outlive_what_its_holder_asked_for(void **state)
{
    struct script_world *f = *state;
    script_acquire(f, ANNA, 1);
    script_command(f, "PEXPIRE %s %s", f->key[0],
                   "3600000"); /* the clock stepped back by an hour */
    assert_int_equal(script_acquire(f, BERT, 1).number[0], SCRIPT_TTL);
    assert_in_range(script_integer(f, "PTTL", 0), SCRIPT_TTL - 2000, SCRIPT_TTL);
}

static void test_acquire__is_clear_after_a_term_of_this_run_ended_or_lapsed(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_renew(f, ANNA, 1, anna.number[0], "led");
    script_release(f, ANNA, 1, anna.number[0]);
    const struct script_answer bert = script_acquire(f, BERT, 1);
    assert_int_equal(bert.number[1], 0);
    assert_int_equal(bert.number[0], (long long)coord_fence_next((uint64_t)anna.number[0], 0,
                                                                 (uint64_t)bert.at_us, false));
    script_command(f, "DEL %s %s", f->key[0], ""); /* as if it ran out */
    assert_int_equal(script_acquire(f, ANNA, 2).number[1], 0);
}

static void test_acquire__after_one_that_never_led_owes_what_that_one_owed(void **state)
{
    struct script_world *f = *state;
    script_acquire(f, ANNA, 1);
    script_undo(f, ANNA, 1);
    const struct script_answer bert =
        script_acquire_as(f, &(struct script_candidate){.owner = BERT, .attempt = 1, .ttl = 1000});
    assert_int_equal(bert.number[1], SCRIPT_TTL);
    script_command(f, "DEL %s %s", f->key[0], "");
    assert_int_equal(script_acquire(f, ANNA, 2).number[1],
                     SCRIPT_TTL); /* it did not shrink to bert's second */
}

static void test_acquire__with_a_record_of_another_run_owes_the_longest_of_all(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_renew(f, ANNA, 1, anna.number[0], "led");
    script_release(f, ANNA, 1, anna.number[0]);
    script_of_another_run(f);
    const struct script_answer own =
        script_acquire_as(f, &(struct script_candidate){.owner = BERT, .attempt = 1, .ttl = 60000});
    assert_int_equal(own.number[1], 60000);
    assert_int_equal(own.number[0], (long long)coord_fence_next((uint64_t)anna.number[0], 0,
                                                                (uint64_t)own.at_us, true));
    script_command(f, "DEL %s %s", f->key[0], "");
    script_of_another_run(f);
    assert_int_equal(script_acquire(f, ANNA, 2).number[1],
                     60000); /* bert's lease and bert's debt */
}

static void test_acquire__with_a_record_of_another_run_is_clear_when_this_run_is_older(void **state)
{
    struct script_world *f = *state;
    script_wait_for_uptime(f, 3);
    const struct script_candidate anna = {.owner = ANNA, .attempt = 1, .ttl = 1500};
    assert_int_equal(script_acquire_as(f, &anna).number[1], 0);
    script_command(f, "DEL %s %s", f->key[0], "");
    script_of_another_run(f);
    const struct script_candidate bert = {.owner = BERT, .attempt = 1, .ttl = 500};
    const struct script_answer got = script_acquire_as(f, &bert);
    assert_int_equal(got.number[1], 0);
    /* It leaps all the same: what was lost may have been granted just before. */
    assert_int_equal(got.number[0] - got.at_us, (long long)COORD_FENCE_LEAP);
}

static void test_acquire__believes_a_caller_that_has_known_the_run_for_long_enough(void **state)
{
    struct script_world *f = *state;
    char run[96];
    script_run_now(f, run, sizeof run);
    struct script_candidate anna = {.owner = ANNA, .attempt = 1, .run = run, .age = SCRIPT_TTL};
    assert_int_equal(script_acquire_as(f, &anna).number[1], SCRIPT_TTL); /* must be longer */
    script_command(f, "DEL %s %s", f->key[0], f->key[1]);
    script_command(f, "DEL %s %s", f->key[1], "");
    anna.age = SCRIPT_TTL + 1;
    assert_int_equal(script_acquire_as(f, &anna).number[1], 0);
    script_command(f, "DEL %s %s", f->key[0], "");
    script_command(f, "DEL %s %s", f->key[1], "");
    anna.run = "0123:4567"; /* of another run it says nothing */
    assert_int_equal(script_acquire_as(f, &anna).number[1], SCRIPT_TTL);
}

static void test_acquire__with_a_record_behind_what_it_has_seen_is_never_clear(void **state)
{
    struct script_world *f = *state;
    script_wait_for_uptime(f, 3);
    struct script_candidate anna = {.owner = ANNA, .attempt = 1, .ttl = 500};
    const struct script_answer first = script_acquire_as(f, &anna);
    assert_int_equal(first.number[1], 0);
    script_command(f, "DEL %s %s", f->key[0], "");
    struct script_candidate bert = {
        .owner = BERT, .attempt = 1, .ttl = 500, .seen = (unsigned long long)first.number[0]};
    assert_int_equal(script_acquire_as(f, &bert).number[1], 0); /* seen is what stands there */
    script_command(f, "DEL %s %s", f->key[0], "");
    anna.attempt = 2;
    anna.seen = (unsigned long long)first.number[0] + 5000000000000ull;
    const struct script_answer behind = script_acquire_as(f, &anna);
    assert_int_equal(behind.number[1], 500);
    assert_int_equal(behind.number[0], (long long)anna.seen + 1);
}

static void test_acquire__with_an_unreadable_record_owes_and_still_rises(void **state)
{
    struct script_world *f = *state;
    static const char *const bad[] = {"nan", "0x10", "1e30", "-5", "", "99999999999999999999"};
    script_wait_for_uptime(f, 3);
    unsigned attempt = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        script_command(f, "DEL %s %s", f->key[0], "");
        script_command(f, "HSET %s fence %s", f->key[1], bad[i]);
        const struct script_answer got = script_acquire_as(
            f,
            &(struct script_candidate){.owner = ANNA, .attempt = ++attempt, .ttl = 500, .seen = 9});
        assert_int_equal(got.status, COORD_GRANTED);
        assert_int_equal(got.number[1], 500);
        assert_int_equal(got.number[0],
                         (long long)coord_fence_next(0, 9, (uint64_t)got.at_us, true));
    }
}

static void test_acquire__refuses_a_fence_that_53_bits_cannot_hold(void **state)
{
    struct script_world *f = *state;
    const struct script_answer got = script_acquire_as(
        f, &(struct script_candidate){.owner = ANNA, .attempt = 1, .seen = 9007199254740991ull});
    assert_int_equal(got.status, COORD__REDIS_RANGE);
    assert_int_equal(script_integer(f, "EXISTS", 0) + script_integer(f, "EXISTS", 1), 0);
}

static void test_acquire__refuses_what_is_not_coords_and_changes_nothing(void **state)
{
    struct script_world *f = *state;
    script_command(f, "SET %s %s", f->key[0], "somebody's");
    assert_int_equal(script_acquire(f, ANNA, 1).status, COORD__REDIS_FOREIGN);
    script_command(f, "SET %s %s", f->key[0], "coord1 not a line");
    assert_int_equal(script_acquire(f, ANNA, 1).status, COORD__REDIS_FOREIGN);
    script_command(f, "SET %s %s", f->key[0], "coord2 something later");
    assert_int_equal(script_acquire(f, ANNA, 1).status, COORD__REDIS_NEWER);
    assert_int_equal(script_observe(f).status, COORD__REDIS_NEWER);
    assert_int_equal(script_ask(f, 1, "").status, COORD__REDIS_NEWER);
    assert_int_equal(script_init(f).status, COORD__REDIS_NEWER);
    script_command(f, "DEL %s %s", f->key[0], "");
    script_command(f, "HSET %s v %s", f->key[1], "2");
    assert_int_equal(script_acquire(f, ANNA, 1).status, COORD__REDIS_NEWER);
    assert_int_equal(script_undo(f, ANNA, 1).status, COORD__REDIS_NEWER);
    assert_int_equal(script_observe(f).status, COORD__REDIS_NEWER);
    assert_int_equal(script_init(f).status, COORD__REDIS_NEWER);
    assert_int_equal(script_integer(f, "HLEN", 1), 1);
    assert_int_equal(script_integer(f, "EXISTS", 0), 0);
}

static void test_acquire__refuses_a_lease_that_somebody_made_permanent(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_command(f, "PERSIST %s%s", f->key[0], "");
    assert_int_equal(script_acquire(f, BERT, 1).status, COORD__REDIS_PERMANENT);
    assert_int_equal(script_acquire(f, ANNA, 1).status, COORD__REDIS_PERMANENT);
    assert_int_equal(script_integer(f, "PTTL", 0), -1);
    /* Its holder repairs it, by renewing. */
    assert_int_equal(script_renew(f, ANNA, 1, anna.number[0], "").status, COORD_RENEWED);
    assert_in_range(script_integer(f, "PTTL", 0), SCRIPT_TTL - 2000, SCRIPT_TTL);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, script_set_up, script_tear_down)
#define PRIVATE_CASE(test) \
    cmocka_unit_test_setup_teardown(test, script_set_up_private, script_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(test_scripts__carry_the_digest_that_the_server_computes),
        PRIVATE_CASE(test_acquire__of_a_new_name_on_a_young_server_owes_one_lease),
        CASE(test_acquire__of_a_new_name_is_clear_on_a_server_older_than_the_lease),
        CASE(test_acquire__with_no_record_owes_a_lease_to_who_has_seen_the_name),
        PRIVATE_CASE(test_acquire__again_by_the_same_attempt_keeps_the_fence_and_the_debt),
        PRIVATE_CASE(test_acquire__again_is_a_new_term_where_an_older_state_came_back),
        PRIVATE_CASE(test_acquire__by_a_later_attempt_of_the_owner_gets_a_new_fence_and_the_debt),
        CASE(test_acquire__over_an_own_lease_without_its_record_owes_again),
        CASE(test_acquire__by_an_earlier_attempt_than_the_lease_holds_is_dead),
        CASE(test_acquire__that_comes_after_its_own_end_makes_no_ghost_lease),
        PRIVATE_CASE(test_acquire__of_a_held_name_says_who_holds_it_and_for_how_long),
        CASE(test_acquire__cuts_a_lease_that_would_outlive_what_its_holder_asked_for),
        CASE(test_acquire__is_clear_after_a_term_of_this_run_ended_or_lapsed),
        PRIVATE_CASE(test_acquire__after_one_that_never_led_owes_what_that_one_owed),
        PRIVATE_CASE(test_acquire__with_a_record_of_another_run_owes_the_longest_of_all),
        CASE(test_acquire__with_a_record_of_another_run_is_clear_when_this_run_is_older),
        PRIVATE_CASE(test_acquire__believes_a_caller_that_has_known_the_run_for_long_enough),
        CASE(test_acquire__with_a_record_behind_what_it_has_seen_is_never_clear),
        CASE(test_acquire__with_an_unreadable_record_owes_and_still_rises),
        CASE(test_acquire__refuses_a_fence_that_53_bits_cannot_hold),
        CASE(test_acquire__refuses_what_is_not_coords_and_changes_nothing),
        CASE(test_acquire__refuses_a_lease_that_somebody_made_permanent),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_acquire", tests, script_start_common,
                                       script_stop_common);
}
