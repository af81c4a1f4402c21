/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_scripts.c - the other scripts, and all of them on a server that breaks.
 */
#include "tests/support/redis_script.h"

#include "coord/fence.h"

#include <stdlib.h>
#include <time.h>

/* ---------------------------------------------------------------- renew */

static void test_renew__that_is_plain_touches_the_lease_alone(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_command(f, "PEXPIRE %s %s", f->key[0], "1000");
    script_command(f, "PEXPIRE %s %s", f->key[1], "60000");
    assert_int_equal(script_renew(f, ANNA, 1, anna.number[0], "").status, COORD_RENEWED);
    assert_in_range(script_integer(f, "PTTL", 0), SCRIPT_TTL - 2000, SCRIPT_TTL);
    assert_true(script_integer(f, "PTTL", 1) <= 60000);
    script_assert_field(f, "debt", "15000");
}

static void test_renew__that_says_led_strikes_the_debt_and_keeps_the_record_alive(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_command(f, "PEXPIRE %s %s", f->key[1], "60000");
    assert_int_equal(script_renew(f, ANNA, 1, anna.number[0], "led").status, COORD_RENEWED);
    script_assert_field(f, "debt", "0");
    script_assert_field(f, "state", "led");
    assert_true(script_integer(f, "PTTL", 1) > 60000);
}

static void test_renew__while_waiting_raises_the_debt_and_never_lowers_it(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_renew(f, ANNA, 1, anna.number[0], "9000");
    script_assert_field(f, "debt", "15000");
    script_renew(f, ANNA, 1, anna.number[0], "20000");
    script_assert_field(f, "debt", "20000");
}

static void test_renew__does_not_touch_the_record_of_another_term(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_command(f, "HSET %s fence %s", f->key[1], "12");
    script_renew(f, ANNA, 1, anna.number[0], "led");
    script_assert_field(f, "debt", "15000");
    script_command(f, "DEL %s%s", f->key[1], "");
    assert_int_equal(script_renew(f, ANNA, 1, anna.number[0], "led").status, COORD_RENEWED);
    assert_int_equal(script_integer(f, "EXISTS", 1), 0);
}

static void test_renew__adopts_the_run_that_its_holder_has_outlived(void **state)
{
    struct script_world *f = *state;
    char run[96];
    char line[128];
    char number[24];
    script_run_now(f, run, sizeof run);
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_write_line(line, ANNA, 1, anna.number[0]);
    script_of_another_run(f);
    const char *stale[] = {
        line,  "15000",     script_digits(number, (unsigned long long)anna.number[0]),
        "led", "89ab:cdef", NULL};
    script_call(f, COORD_VERB_RENEW, stale);
    script_assert_field(f, "run", "0123:4567"); /* it was not this server that was known */
    stale[4] = run;
    script_call(f, COORD_VERB_RENEW, stale);
    script_assert_field(f, "run", run);
}

static void test_renew__of_a_lease_that_is_gone_is_lost_and_makes_nothing(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_command(f, "DEL %s%s", f->key[0], "");
    assert_int_equal(script_renew(f, ANNA, 1, anna.number[0], "").status, COORD_LOST);
    assert_int_equal(script_integer(f, "EXISTS", 0), 0);
}

static void test_renew__compares_owner_attempt_and_fence(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 11);
    assert_int_equal(script_renew(f, BERT, 11, anna.number[0], "").status, COORD_LOST);
    assert_int_equal(script_renew(f, ANNA, 1, anna.number[0], "").status, COORD_LOST);
    assert_int_equal(script_renew(f, ANNA, 11, anna.number[0] - 1, "").status, COORD_LOST);
    const struct script_answer lost = script_renew(f, BERT, 1, anna.number[0], "");
    assert_in_range(lost.number[0], SCRIPT_TTL - 2000, SCRIPT_TTL);
    assert_non_null(strstr(lost.text, "anna"));
    assert_int_equal(script_renew(f, ANNA, 11, anna.number[0], "").status, COORD_RENEWED);
}

/* ---------------------------------------------------------------- release and undo */

static void test_release__compares_owner_attempt_and_fence(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 11);
    assert_int_equal(script_release(f, BERT, 11, anna.number[0]).number[0], 0);
    assert_int_equal(script_release(f, ANNA, 1, anna.number[0]).number[0], 0);
    assert_int_equal(script_release(f, ANNA, 11, anna.number[0] + 1).number[0], 0);
    assert_int_equal(script_integer(f, "EXISTS", 0), 1);
    script_assert_field(f, "state", "granted");
    script_ask(f, anna.number[0], "bert b");
    assert_int_equal(script_release(f, ANNA, 11, anna.number[0]).number[0], 1);
    assert_int_equal(script_integer(f, "EXISTS", 0) + script_integer(f, "EXISTS", 2), 0);
    script_assert_field(f, "state", "resigned");
    script_assert_field(f, "debt", "0");
    /* Twice does no harm. */
    assert_int_equal(script_release(f, ANNA, 11, anna.number[0]).status, COORD_DONE);
}

static void test_release__for_a_successor_keeps_the_name_for_it_and_for_no_longer(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_release_to(f, ANNA, 1, anna.number[0], "bert b", "60000");
    const struct script_answer other = script_acquire(f, ANNA, 2);
    assert_int_equal(other.status, COORD_RESERVED);
    assert_in_range(other.number[0], 58000, 60000);
    assert_string_equal(other.text, "bert b");
    const struct script_answer seen = script_observe(f);
    assert_int_equal(seen.status, COORD_FREE);
    assert_in_range(seen.number[0], 58000, 60000);
    assert_string_equal(seen.text, "bert b");
    assert_int_equal(script_acquire(f, BERT, 1).status, COORD_GRANTED);
    script_command(f, "DEL %s%s", f->key[0], "");
    assert_int_equal(script_acquire(f, ANNA, 2).status, COORD_GRANTED); /* the grant used it up */
}

static void test_release__keeps_a_name_no_longer_when_its_time_has_passed(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_release_to(f, ANNA, 1, anna.number[0], "bert b", "60000");
    script_command(f, "HSET %s until %s", f->key[1], "1");
    assert_int_equal(script_acquire(f, ANNA, 2).status, COORD_GRANTED);
}

static void test_release__keeps_a_name_no_longer_than_asked_when_the_clock_steps_back(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_release_to(f, ANNA, 1, anna.number[0], "bert b", "60000");
    script_command(f, "HSET %s until %s", f->key[1], "4000000000000000");
    assert_int_equal(script_observe(f).number[0], 60000);
    assert_int_equal(script_acquire(f, ANNA, 2).number[0], 60000);
    char until[32];
    script_field(f, "until", until, sizeof until);
    assert_true(strtoll(until, NULL, 10) < 4000000000000000); /* and so it ends */
}

static void test_undo__deletes_what_that_attempt_took_and_resigns_nothing(void **state)
{
    struct script_world *f = *state;
    script_acquire(f, ANNA, 1);
    assert_int_equal(script_undo(f, ANNA, 1).number[0], 1);
    assert_int_equal(script_integer(f, "EXISTS", 0), 0);
    script_assert_field(f, "debt", "15000");
    script_assert_field(f, "state", "granted");
}

static void test_undo__leaves_a_later_attempt_and_others_alone(void **state)
{
    struct script_world *f = *state;
    script_acquire(f, ANNA, 2);
    assert_int_equal(script_undo(f, ANNA, 1).number[0], 0);
    assert_int_equal(script_undo(f, BERT, 9).number[0], 0);
    assert_int_equal(script_integer(f, "EXISTS", 0), 1);
}

static void test_undo__alone_makes_no_record_that_could_count_as_clear(void **state)
{
    struct script_world *f = *state;
    assert_int_equal(script_undo(f, ANNA, 1).status, COORD_DONE);
    script_assert_field(f, "fence", "(none)");
    const struct script_answer bert = script_acquire(f, BERT, 1);
    assert_int_equal(bert.number[1], SCRIPT_TTL);
    assert_true(script_integer(f, "PTTL", 1) > 0);
}

/* ---------------------------------------------------------------- observe, ask, init */

static void test_observe__tells_the_holder_and_writes_nothing(void **state)
{
    struct script_world *f = *state;
    struct script_answer seen = script_observe(f);
    assert_int_equal(seen.status, COORD_FREE);
    assert_int_equal(seen.number[2], 0);
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    seen = script_observe(f);
    assert_int_equal(seen.status, COORD_HELD);
    assert_int_equal(seen.number[2], SCRIPT_TTL);
    script_renew(f, ANNA, 1, anna.number[0], "led");
    seen = script_observe(f);
    assert_int_equal(seen.number[2], 0);
    assert_int_equal(seen.number[3], anna.number[0]);
    script_release(f, ANNA, 1, anna.number[0]);
    seen = script_observe(f);
    assert_int_equal(seen.status, COORD_FREE);
    assert_int_equal(seen.number[2], anna.number[0]);
}

static void test_ask__is_seen_by_the_term_that_it_names_and_void_for_any_other(void **state)
{
    struct script_world *f = *state;
    assert_int_equal(script_ask(f, 7, "bert b").status, COORD_NOBODY);
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    const struct script_answer other = script_ask(f, anna.number[0] + 1, "bert b");
    assert_int_equal(other.status, COORD_NOBODY);
    assert_non_null(strstr(other.text, "anna")); /* who does lead */
    assert_int_equal(script_integer(f, "EXISTS", 2), 0);
    assert_int_equal(script_ask(f, anna.number[0], "bert b").status, COORD_DONE);
    assert_in_range(script_integer(f, "PTTL", 2), 1, 5000);
    const struct script_answer asked = script_renew(f, ANNA, 1, anna.number[0], "");
    assert_int_equal(asked.status, COORD_RENEWED);
    assert_string_equal(asked.text, "bert b");
    const struct script_answer later = script_acquire(f, ANNA, 2);
    assert_string_equal(script_renew(f, ANNA, 2, later.number[0], "").text, "");
}

static void test_ask__without_a_successor_is_heard_as_well(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_ask(f, anna.number[0], "");
    redisReply *reply = redisCommand(f->context, "GET %s", f->key[2]);
    char expected[32];
    snprintf(expected, sizeof expected, "%lld ", anna.number[0]);
    assert_string_equal(reply->str, expected);
    freeReplyObject(reply);
    char line[128];
    char number[24];
    script_write_line(line, ANNA, 1, anna.number[0]);
    const char *arguments[] = {
        line, "15000", script_digits(number, (unsigned long long)anna.number[0]), "", "", NULL};
    reply = script_call_with(f, f->context, COORD_VERB_RENEW, arguments);
    assert_int_equal(reply->elements, 3); /* asked, for nobody in particular */
    freeReplyObject(reply);
}

static void test_init__writes_a_clear_record_and_is_refused_while_somebody_holds_it(void **state)
{
    struct script_world *f = *state;
    assert_int_equal(script_init(f).status, COORD_DONE);
    char fence[32];
    script_field(f, "fence", fence, sizeof fence);
    script_assert_field(f, "state", "clear");
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    assert_int_equal(anna.number[1], 0);
    assert_true(anna.number[0] > strtoll(fence, NULL, 10));
    assert_int_equal(script_init(f).status, COORD_HELD);
    script_assert_field(f, "state", "granted");
}

/* ---------------------------------------------------------------- the server breaks */

static void test_server__that_loses_everything_moves_the_fence_forward(void **state)
{
    struct script_world *f = *state;
    long long fence = 0;
    for (unsigned i = 1; i <= 3; i++) {
        const struct script_answer got = script_acquire(f, ANNA, i);
        assert_int_equal(got.status, COORD_GRANTED);
        assert_int_equal(got.number[1], SCRIPT_TTL);
        assert_true(got.number[0] > fence);
        fence = got.number[0];
        redis_server_kill(&f->server);
        redis_server_again(&f->server);
        script_reconnect(f);
    }
    /* One who saw the last one is above it, and so is a fresh one after two more losses. */
    const struct script_answer seen = script_acquire_as(
        f,
        &(struct script_candidate){.owner = BERT, .attempt = 1, .seen = (unsigned long long)fence});
    assert_true(seen.number[0] > fence);
    script_command(f, "FLUSHALL%s%s", "", "");
    assert_true(script_acquire(f, ANNA, 9).number[0] > seen.number[0]);
}

static void test_server__that_forgets_in_the_same_run_makes_those_who_knew_wait(void **state)
{
    struct script_world *f = *state;
    script_wait_for_uptime(f, 2);
    struct script_candidate bert = {.owner = BERT, .attempt = 1, .ttl = 900};
    const struct script_answer first = script_acquire_as(f, &bert);
    assert_int_equal(first.number[1], 0);
    script_command(f, "FLUSHALL%s%s", "", "");
    struct script_candidate anna = {
        .owner = ANNA, .attempt = 1, .ttl = 900, .seen = (unsigned long long)first.number[0]};
    assert_int_equal(script_acquire_as(f, &anna).number[1], 900);
}

static void test_server__that_kept_its_data_over_a_restart_is_another_run(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_renew(f, ANNA, 1, anna.number[0], "led");
    script_release(f, ANNA, 1, anna.number[0]);
    script_command(f, "SAVE%s%s", "", "");
    redis_server_kill(&f->server);
    redis_server_again(&f->server);
    script_reconnect(f);
    const struct script_answer bert = script_acquire(f, BERT, 1);
    assert_int_equal(bert.status, COORD_GRANTED);
    assert_int_equal(bert.number[1], SCRIPT_TTL);
    assert_true(bert.number[0] > anna.number[0]);
}

static void test_server__that_was_promoted_without_a_restart_is_another_run(void **state)
{
    struct script_world *f = *state;
    static const char *const options[] = {"--port", "auto", NULL};
    static struct redis_server former;
    redis_server_start(&former, options);
    char port[8];
    snprintf(port, sizeof port, "%d", former.port);
    script_wait_for_uptime(f, 3);
    struct script_candidate anna = {.owner = ANNA, .attempt = 1, .ttl = 900};
    const struct script_answer before = script_acquire_as(f, &anna);
    assert_int_equal(before.number[1], 0);
    script_release(f, ANNA, 1, before.number[0]);
    char run[96];
    script_run_now(f, run, sizeof run);
    script_command(f, "REPLICAOF %s %s", "127.0.0.1", port);
    for (;;) {
        redisReply *reply = redisCommand(f->context, "INFO replication");
        const bool up = strstr(reply->str, "master_link_status:up") != NULL;
        freeReplyObject(reply);
        if (up) {
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    }
    script_command(f, "REPLICAOF %s %s", "NO", "ONE");
    char promoted[96];
    script_run_now(f, promoted, sizeof promoted);
    assert_memory_equal(run, promoted, 40); /* the same process ... */
    assert_string_not_equal(run, promoted); /* ... with another past */
    anna.attempt = 2;
    assert_int_equal(script_acquire_as(f, &anna).number[1], 900); /* its uptime proves nothing */
    redis_server_stop(&former);
}

static redisReply *try_to_acquire(struct script_world *f, redisContext *context)
{
    const char *arguments[] = {ANNA, "1", "15000", "0", "anna", "", "", "0", NULL};
    return script_call_with(f, context, COORD_VERB_ACQUIRE, arguments);
}

static void assert_refused(struct script_world *f, const char *word)
{
    redisReply *reply = try_to_acquire(f, f->context);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_non_null(strstr(reply->str, word));
    freeReplyObject(reply);
    assert_int_equal(script_integer(f, "EXISTS", 0), 0);
    assert_int_equal(script_integer(f, "EXISTS", 1), 0);
}

static void test_server__that_refuses_leaves_nothing_behind(void **state)
{
    struct script_world *f = *state;
    script_command(f, "CONFIG SET %s %s", "maxmemory", "1");
    assert_refused(f, "OOM");
    script_command(f, "CONFIG SET %s %s", "maxmemory", "0");
    script_command(f, "CONFIG SET %s %s", "min-replicas-to-write", "1");
    assert_refused(f, "NOREPLICAS");
    script_command(f, "CONFIG SET %s %s", "min-replicas-to-write", "0");
    script_command(f, "REPLICAOF %s %s", "127.0.0.1", "1");
    script_command(f, "CONFIG SET %s %s", "replica-serve-stale-data", "yes");
    assert_refused(f, "READONLY");
    script_command(f, "REPLICAOF %s %s", "NO", "ONE");
    script_command(f, "LPUSH %s %s", f->key[1], "x");
    redisReply *reply = try_to_acquire(f, f->context);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_non_null(strstr(reply->str, "WRONGTYPE"));
    freeReplyObject(reply);
    assert_int_equal(script_integer(f, "EXISTS", 0), 0);
}

static void test_server__that_is_full_still_takes_renewals_and_resignations(void **state)
{
    struct script_world *f = *state;
    const struct script_answer anna = script_acquire(f, ANNA, 1);
    script_command(f, "CONFIG SET %s %s", "maxmemory", "1");
    assert_int_equal(script_renew(f, ANNA, 1, anna.number[0], "led").status, COORD_RENEWED);
    script_assert_field(f, "debt", "0");
    assert_int_equal(script_release(f, ANNA, 1, anna.number[0]).number[0], 1);
    script_assert_field(f, "state", "resigned");
    script_command(f, "CONFIG SET %s %s", "maxmemory", "0");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, script_set_up, script_tear_down)
#define PRIVATE_CASE(test) \
    cmocka_unit_test_setup_teardown(test, script_set_up_private, script_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PRIVATE_CASE(test_renew__that_is_plain_touches_the_lease_alone),
        CASE(test_renew__that_says_led_strikes_the_debt_and_keeps_the_record_alive),
        PRIVATE_CASE(test_renew__while_waiting_raises_the_debt_and_never_lowers_it),
        PRIVATE_CASE(test_renew__does_not_touch_the_record_of_another_term),
        CASE(test_renew__adopts_the_run_that_its_holder_has_outlived),
        CASE(test_renew__of_a_lease_that_is_gone_is_lost_and_makes_nothing),
        CASE(test_renew__compares_owner_attempt_and_fence),
        CASE(test_release__compares_owner_attempt_and_fence),
        CASE(test_release__for_a_successor_keeps_the_name_for_it_and_for_no_longer),
        CASE(test_release__keeps_a_name_no_longer_when_its_time_has_passed),
        CASE(test_release__keeps_a_name_no_longer_than_asked_when_the_clock_steps_back),
        PRIVATE_CASE(test_undo__deletes_what_that_attempt_took_and_resigns_nothing),
        CASE(test_undo__leaves_a_later_attempt_and_others_alone),
        PRIVATE_CASE(test_undo__alone_makes_no_record_that_could_count_as_clear),
        PRIVATE_CASE(test_observe__tells_the_holder_and_writes_nothing),
        CASE(test_ask__is_seen_by_the_term_that_it_names_and_void_for_any_other),
        CASE(test_ask__without_a_successor_is_heard_as_well),
        CASE(test_init__writes_a_clear_record_and_is_refused_while_somebody_holds_it),
        PRIVATE_CASE(test_server__that_loses_everything_moves_the_fence_forward),
        PRIVATE_CASE(test_server__that_forgets_in_the_same_run_makes_those_who_knew_wait),
        PRIVATE_CASE(test_server__that_kept_its_data_over_a_restart_is_another_run),
        PRIVATE_CASE(test_server__that_was_promoted_without_a_restart_is_another_run),
        PRIVATE_CASE(test_server__that_refuses_leaves_nothing_behind),
        PRIVATE_CASE(test_server__that_is_full_still_takes_renewals_and_resignations),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_scripts", tests, script_start_common,
                                       script_stop_common);
}
