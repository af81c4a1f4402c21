/* SPDX-License-Identifier: MIT
 * tests/unit/test_redis_reply.c - what scripts answer, and what no script would.
 */
#include "electors/redis_reply.h"

#include "electors/redis_scripts.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

#define OWNER "0123456789abcdef0123456789abcdef"

static struct coord_observation leader;
static struct coord_reply reply;

/* Read `wire`, as it came from the server, as the answer to a verb. */
static void answer(enum coord_verb verb, const char *wire)
{
    const struct coord_request request = {
        .verb = verb, .fence = 9, .lease = 15000, .led = verb == COORD_VERB_RENEW};
    const struct coord__redis_question question = {.request = &request,
                                                   .identity = "anna",
                                                   .metadata = "a:1",
                                                   .metadata_bytes = 3,
                                                   .lease_key = "coord:{n}:lease",
                                                   .record_key = "coord:{n}:fence"};
    static redisReply *last;
    redisReader *reader = redisReaderCreate();
    void *parsed = NULL;
    if (last != NULL) {
        freeReplyObject(last);
        last = NULL;
    }
    assert_int_equal(redisReaderFeed(reader, wire, strlen(wire)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &parsed), REDIS_OK);
    assert_non_null(parsed);
    redisReaderFree(reader);
    last = parsed; /* texts of the reply lie in it */
    coord__redis_read(&question, last, &reply, &leader);
}

static int set_up(void **state)
{
    (void)state;
    memset(&leader, 0, sizeof leader);
    return 0;
}

#define HELD_LINE "coord1 7 1 " OWNER " 15000 1700000000000000 4 bert10.0.0.1:80"

static void test_line__is_taken_apart_whole_or_not_at_all(void **state)
{
    (void)state;
    struct guarded line = guarded_copy(HELD_LINE, strlen(HELD_LINE));
    assert_true(coord__redis_read_line(line.at, strlen(HELD_LINE), &leader));
    assert_true(leader.fence == 7);
    assert_true(leader.since_us == 1700000000000000u);
    assert_string_equal(leader.identity, "bert");
    assert_int_equal(leader.metadata_bytes, 11);
    assert_memory_equal(leader.metadata, "10.0.0.1:80", 11);
    guarded_free(&line);
    for (size_t bytes = 0; bytes < strlen(HELD_LINE) - strlen("10.0.0.1:80"); bytes++) {
        struct guarded part = guarded_copy(HELD_LINE, bytes);
        assert_false(coord__redis_read_line(part.at, bytes, &leader));
        guarded_free(&part);
    }
}

static void test_line__of_somebody_else_is_not_ours(void **state)
{
    static const char *const bad[] = {
        "coord2 7 1 x 1 1 4 bert",
        "coord1 x 1 x 1 1 4 bert",
        "coord1 7 1 x 1 1 0 bert",
        "coord1 7 1 x 1 1 5 bert",
        "coord1 7 1 x 1 1 99999999999999999999 bert",
        "coord1 7 1 x 1 1 -1 bert",
        "coord1  7 1 x 1 1 4 bert",
        "coord1 7 1 x 1 1 4",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(coord__redis_read_line(bad[i], strlen(bad[i]), &leader));
    }
    assert_false(coord__redis_read_line("coord1 7 1 x 1 1 4 be\0t", 23, &leader));
    char long_one[COORD_METADATA_MAX + 64];
    const int start = snprintf(long_one, sizeof long_one, "coord1 7 1 x 1 1 4 bert");
    memset(long_one + start, 'm', sizeof long_one - (size_t)start);
    assert_true(coord__redis_read_line(long_one, (size_t)start + COORD_METADATA_MAX, &leader));
    assert_false(coord__redis_read_line(long_one, (size_t)start + COORD_METADATA_MAX + 1, &leader));
}

static void test_grant__says_fence_and_debt_and_who_we_are(void **state)
{
    (void)state;
    answer(COORD_VERB_ACQUIRE, "*4\r\n:1\r\n:1700000000000001\r\n:1700000000000002\r\n:0\r\n");
    assert_int_equal(reply.outcome, COORD_GRANTED);
    assert_true(reply.fence == 1700000000000002u);
    assert_int_equal(reply.owed, 0);
    assert_true(reply.server_us == 1700000000000001u);
    assert_ptr_equal(reply.leader, &leader);
    assert_true(leader.leading);
    assert_string_equal(leader.identity, "anna");
    assert_int_equal(leader.metadata_bytes, 3);
    answer(COORD_VERB_ACQUIRE, "*4\r\n:1\r\n:5\r\n:9\r\n:15000\r\n");
    assert_int_equal(reply.owed, 15000);
    assert_true(leader.taking_over);
    assert_false(leader.leading);
}

static void test_held__says_by_whom_and_until_when(void **state)
{
    (void)state;
    answer(COORD_VERB_ACQUIRE, "*6\r\n:2\r\n:5\r\n:900\r\n$84\r\n" HELD_LINE "\r\n:0\r\n:7\r\n");
    assert_int_equal(reply.outcome, COORD_HELD);
    assert_int_equal(reply.retry_in, 901);
    assert_int_equal(leader.remaining, 900);
    assert_true(leader.leading);
    assert_string_equal(leader.identity, "bert");
    answer(COORD_VERB_OBSERVE, "*6\r\n:2\r\n:5\r\n:-1\r\n$84\r\n" HELD_LINE "\r\n:400\r\n:9\r\n");
    assert_true(leader.remaining == COORD_NEVER);
    assert_true(reply.retry_in == COORD_NEVER);
    assert_true(leader.taking_over);
    assert_true(leader.last_fence == 9);
}

static void test_free__is_for_us_for_another_or_for_anyone(void **state)
{
    (void)state;
    answer(COORD_VERB_OBSERVE, "*5\r\n:3\r\n:5\r\n:0\r\n$0\r\n\r\n:8\r\n");
    assert_int_equal(reply.outcome, COORD_FREE);
    assert_false(reply.for_us);
    assert_true(leader.last_fence == 8);
    answer(COORD_VERB_OBSERVE, "*5\r\n:3\r\n:5\r\n:70\r\n$4\r\nanna\r\n:8\r\n");
    assert_int_equal(reply.outcome, COORD_FREE);
    assert_true(reply.for_us);
    answer(COORD_VERB_OBSERVE, "*5\r\n:3\r\n:5\r\n:70\r\n$4\r\nbert\r\n:8\r\n");
    assert_int_equal(reply.outcome, COORD_RESERVED);
    assert_int_equal(reply.retry_in, 71);
    assert_string_equal(leader.identity, "bert");
    answer(COORD_VERB_OBSERVE, "*5\r\n:3\r\n:5\r\n:0\r\n$4\r\nbert\r\n:8\r\n"); /* it has passed */
    assert_int_equal(reply.outcome, COORD_FREE);
}

static void test_renewal__tells_of_a_request_to_step_down(void **state)
{
    (void)state;
    leader = (struct coord_observation){.fence = 9, .taking_over = true};
    answer(COORD_VERB_RENEW, "*2\r\n:6\r\n:5\r\n");
    assert_int_equal(reply.outcome, COORD_RENEWED);
    assert_true(reply.owed == COORD_NEVER);
    assert_false(reply.asked);
    assert_true(leader.leading); /* it said "led" */
    answer(COORD_VERB_RENEW, "*3\r\n:6\r\n:5\r\n$0\r\n\r\n");
    assert_true(reply.asked);
    assert_null(reply.asked_for);
    answer(COORD_VERB_RENEW, "*3\r\n:6\r\n:5\r\n$4\r\nbert\r\n");
    assert_string_equal(reply.asked_for, "bert");
}

static void test_loss__says_who_has_it_or_that_it_is_gone(void **state)
{
    (void)state;
    answer(COORD_VERB_RENEW, "*4\r\n:7\r\n:5\r\n:-2\r\n$0\r\n\r\n");
    assert_int_equal(reply.outcome, COORD_LOST);
    assert_int_equal(reply.error.code, COORD_E_NOT_LEADER);
    assert_non_null(strstr(reply.error.text, "gone"));
    assert_null(reply.leader);
    answer(COORD_VERB_RENEW, "*4\r\n:7\r\n:5\r\n:80\r\n$84\r\n" HELD_LINE "\r\n");
    assert_int_equal(reply.outcome, COORD_LOST);
    assert_non_null(strstr(reply.error.text, "bert"));
}

static void test_refusals__name_the_key_and_the_cure(void **state)
{
    (void)state;
    answer(COORD_VERB_ACQUIRE, "*3\r\n:20\r\n:5\r\n:1\r\n");
    assert_int_equal(reply.outcome, COORD_FAILED);
    assert_int_equal(reply.error.code, COORD_E_FOREIGN_RECORD);
    assert_non_null(strstr(reply.error.text, "coord:{n}:lease"));
    answer(COORD_VERB_ACQUIRE, "*3\r\n:21\r\n:5\r\n:2\r\n");
    assert_int_equal(reply.error.code, COORD_E_NEWER_FORMAT);
    assert_non_null(strstr(reply.error.text, "coord:{n}:fence"));
    answer(COORD_VERB_ACQUIRE, "*2\r\n:22\r\n:5\r\n");
    assert_int_equal(reply.error.code, COORD_E_FOREIGN_RECORD);
    assert_non_null(strstr(reply.error.text, "expiry"));
    answer(COORD_VERB_ACQUIRE, "*2\r\n:23\r\n:5\r\n");
    assert_int_equal(reply.error.code, COORD_E_FOREIGN_RECORD);
    answer(COORD_VERB_INIT, "*2\r\n:24\r\n:5\r\n");
    assert_int_equal(reply.error.code, COORD_E_NO_RIGHT);
    assert_non_null(strstr(reply.error.text, "+info"));
    answer(COORD_VERB_INIT, "-READONLY You can't\r\n");
    assert_int_equal(reply.outcome, COORD_FAILED);
    assert_int_equal(reply.error.code, COORD_E_STANDBY);
}

/* Perhaps executed: only the server's word can be doubted, not what it may have done. */
static void test_nonsense__is_unknown_and_never_an_outcome(void **state)
{
    static const char *const wires[] = {
        "+OK\r\n",
        "$-1\r\n",
        ":1\r\n",
        "*0\r\n",
        "*1\r\n:1\r\n",
        "*2\r\n$1\r\n1\r\n:5\r\n",
        "*2\r\n:0\r\n:5\r\n",
        "*2\r\n:-7\r\n:5\r\n",
        "*2\r\n:6\r\n:5\r\n",                              /* RENEWED, to an ACQUIRE */
        "*2\r\n:10\r\n:5\r\n",                             /* FAILED is ours to say */
        "*2\r\n:25\r\n:5\r\n",                             /* no refusal that we know */
        "*6\r\n:2\r\n:5\r\n:9\r\n$1\r\nx\r\n:0\r\n:7\r\n", /* HELD, by no line */
        "*2\r\n:2\r\n:5\r\n",
        "*2\r\n:1\r\n:5\r\n", /* GRANTED, under no fence */
        "*3\r\n:1\r\n:5\r\n:7\r\n",
        "*4\r\n:1\r\n:5\r\n:7\r\n:-1\r\n",
        "*2\r\n:9223372036854775807\r\n:5\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wires / sizeof wires[0]; i++) {
        answer(COORD_VERB_ACQUIRE, wires[i]);
        assert_int_equal(reply.outcome, COORD_UNKNOWN);
        assert_int_equal(reply.error.code, COORD_E_PROTOCOL);
    }
}

#define CASE(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_line__is_taken_apart_whole_or_not_at_all),
        CASE(test_line__of_somebody_else_is_not_ours),
        CASE(test_grant__says_fence_and_debt_and_who_we_are),
        CASE(test_held__says_by_whom_and_until_when),
        CASE(test_free__is_for_us_for_another_or_for_anyone),
        CASE(test_renewal__tells_of_a_request_to_step_down),
        CASE(test_loss__says_who_has_it_or_that_it_is_gone),
        CASE(test_refusals__name_the_key_and_the_cure),
        CASE(test_nonsense__is_unknown_and_never_an_outcome),
    };
    return cmocka_run_group_tests_name("redis_reply", tests, NULL, NULL);
}
