/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_scripts.c - the scripts of the Redis elector, rule by rule, on a server.
 */
#include "electors/redis_scripts.h"

#include "coord/fence.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum {
    TTL = 15000,
    ARGUMENTS = 16
};

#define ANNA "a0000000000000000000000000000001"
#define BERT "b0000000000000000000000000000002"

/* A name of its own for each test, and a server of its own for those that need a young or a
 * broken one. */
struct fixture {
    struct redis_server server;
    bool private;
    redisContext *context;
    char name[64];
    char key[3][96]; /* lease, fence, ask */
};

/* A script's answer, taken apart. */
struct answer {
    long long status;
    long long at_us;
    long long number[4]; /* what follows, where it is a number */
    char text[512];      /* the first text that follows */
};

static const char *const parts[] = {"lease", "fence", "ask"};

static struct redis_server common;

static int start_common(void **state)
{
    (void)state;
    redis_server_start(&common, NULL);
    return 0;
}

static int stop_common(void **state)
{
    (void)state;
    redis_server_stop(&common);
    return 0;
}

static int set_up_either(void **state, bool private)
{
    static const char *const none[] = {NULL};
    struct fixture *f = calloc(1, sizeof *f);
    *state = f;
    f->private = private;
    f->server = common;
    if (private) {
        redis_server_start(&f->server, none);
    }
    f->context = redis_server_connect(&f->server);
    redis_server_name(f->name, sizeof f->name, "scripts");
    for (int i = 0; i < 3; i++) {
        snprintf(f->key[i], sizeof f->key[i], "coord:{%s}:%s", f->name, parts[i]);
    }
    return 0;
}

static int set_up(void **state)
{
    return set_up_either(state, false);
}

static int set_up_private(void **state)
{
    return set_up_either(state, true);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->context != NULL) {
        redisFree(f->context);
    }
    if (f->private) {
        redis_server_stop(&f->server);
    }
    free(f);
    return 0;
}

static void reconnect(struct fixture *f)
{
    redisFree(f->context);
    f->context = redis_server_connect(&f->server);
}

/* ---------------------------------------------------------------- calling them */

static redisReply *call_with(struct fixture *f, redisContext *context, enum coord_verb verb,
                             const char *const *arguments)
{
    const struct coord__redis_script *script = coord__redis_script(verb);
    const char *argv[ARGUMENTS] = {"EVAL", script->body};
    size_t bytes[ARGUMENTS];
    char keys[4];
    int argc = 3;
    snprintf(keys, sizeof keys, "%d", script->keys);
    argv[2] = keys;
    for (int i = 0; i < script->keys; i++) {
        for (int part = 0; part < 3; part++) {
            if (strcmp(script->key[i], parts[part]) == 0) {
                argv[argc++] = f->key[part];
            }
        }
    }
    for (size_t i = 0; arguments[i] != NULL; i++) {
        argv[argc++] = arguments[i];
    }
    for (int i = 0; i < argc; i++) {
        bytes[i] = strlen(argv[i]);
    }
    redisReply *reply = redisCommandArgv(context, argc, argv, bytes);
    assert_non_null(reply);
    return reply;
}

static struct answer take_apart(redisReply *reply)
{
    struct answer answer = {.status = -1};
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("the script says: %s", reply->str);
    }
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_true(reply->elements >= 2);
    answer.status = reply->element[0]->integer;
    answer.at_us = reply->element[1]->integer;
    for (size_t i = 2; i < reply->elements; i++) {
        const redisReply *part = reply->element[i];
        if (part->type == REDIS_REPLY_INTEGER && i < 6) {
            answer.number[i - 2] = part->integer;
        } else if (part->type == REDIS_REPLY_STRING && answer.text[0] == '\0') {
            snprintf(answer.text, sizeof answer.text, "%s", part->str);
        }
    }
    freeReplyObject(reply);
    return answer;
}

static struct answer call(struct fixture *f, enum coord_verb verb, const char *const *arguments)
{
    return take_apart(call_with(f, f->context, verb, arguments));
}

static const char *digits(char *out, unsigned long long number)
{
    snprintf(out, 24, "%llu", number);
    return out;
}

struct candidate {
    const char *owner;
    unsigned attempt;
    unsigned ttl;
    unsigned long long seen;
    const char *run; /* known by the caller ... */
    unsigned age;    /* ... for so long */
};

static struct answer acquire_as(struct fixture *f, const struct candidate *who)
{
    char attempt[24];
    char ttl[24];
    char seen[24];
    char age[24];
    const char *arguments[] = {who->owner,
                               digits(attempt, who->attempt),
                               digits(ttl, who->ttl > 0 ? who->ttl : TTL),
                               digits(seen, who->seen),
                               who->owner[0] == 'a' ? "anna" : "bert b",
                               "host:80",
                               who->run != NULL ? who->run : "",
                               digits(age, who->age),
                               NULL};
    return call(f, COORD_VERB_ACQUIRE, arguments);
}

static struct answer acquire(struct fixture *f, const char *owner, unsigned attempt)
{
    return acquire_as(f, &(struct candidate){.owner = owner, .attempt = attempt});
}

static void write_line(char *out, const char *owner, unsigned attempt, long long fence)
{
    snprintf(out, 128, "coord1 %lld %u %s ", fence, attempt, owner);
}

static struct answer renew(struct fixture *f, const char *owner, unsigned attempt, long long fence,
                           const char *mode)
{
    char line[128];
    char number[24];
    write_line(line, owner, attempt, fence);
    const char *arguments[] = {line, "15000", digits(number, (unsigned long long)fence),
                               mode, "",      NULL};
    return call(f, COORD_VERB_RENEW, arguments);
}

static struct answer release_to(struct fixture *f, const char *owner, unsigned attempt,
                                long long fence, const char *to, const char *reserve)
{
    char line[128];
    char number[24];
    write_line(line, owner, attempt, fence);
    const char *arguments[] = {line, digits(number, (unsigned long long)fence), to, reserve, NULL};
    return call(f, COORD_VERB_RELEASE, arguments);
}

static struct answer release(struct fixture *f, const char *owner, unsigned attempt,
                             long long fence)
{
    return release_to(f, owner, attempt, fence, "", "0");
}

static struct answer undo(struct fixture *f, const char *owner, unsigned attempt)
{
    char number[24];
    const char *arguments[] = {owner, digits(number, attempt), NULL};
    return call(f, COORD_VERB_UNDO, arguments);
}

static struct answer observe(struct fixture *f)
{
    const char *arguments[] = {NULL};
    return call(f, COORD_VERB_OBSERVE, arguments);
}

static struct answer ask(struct fixture *f, long long fence, const char *to)
{
    char number[24];
    const char *arguments[] = {digits(number, (unsigned long long)fence), to, "5000", NULL};
    return call(f, COORD_VERB_ASK, arguments);
}

static struct answer init(struct fixture *f)
{
    const char *arguments[] = {"0", NULL};
    return call(f, COORD_VERB_INIT, arguments);
}

/* ---------------------------------------------------------------- what stands in the server */

static void field(struct fixture *f, const char *name, char *out, size_t bytes)
{
    redisReply *reply = redisCommand(f->context, "HGET %s %s", f->key[1], name);
    assert_non_null(reply);
    snprintf(out, bytes, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "(none)");
    freeReplyObject(reply);
}

static void assert_field(struct fixture *f, const char *name, const char *expected)
{
    char value[128];
    field(f, name, value, sizeof value);
    assert_string_equal(value, expected);
}

static long long integer(struct fixture *f, const char *command, int key)
{
    redisReply *reply = redisCommand(f->context, "%s %s", command, f->key[key]);
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    const long long value = reply->integer;
    freeReplyObject(reply);
    return value;
}

static void command(struct fixture *f, const char *format, const char *key, const char *value)
{
    redisReply *reply = redisCommand(f->context, format, key, value);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s: %s", format, reply->str);
    }
    freeReplyObject(reply);
}

/* The record as it would look had another run of the server written it. */
static void of_another_run(struct fixture *f)
{
    command(f, "HSET %s run %s", f->key[1], "0123:4567");
}

/* The server has run for longer than `ttl` counts as: uptime is in whole seconds, less one. */
static void wait_for_uptime(struct fixture *f, unsigned seconds)
{
    for (;;) {
        redisReply *reply = redisCommand(f->context, "INFO server");
        assert_non_null(reply);
        const char *at = strstr(reply->str, "uptime_in_seconds:");
        assert_non_null(at);
        const unsigned long up = strtoul(at + strlen("uptime_in_seconds:"), NULL, 10);
        freeReplyObject(reply);
        if (up >= seconds) {
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    }
}

static void run_now(struct fixture *f, char *out, size_t bytes)
{
    redisReply *server = redisCommand(f->context, "INFO server");
    redisReply *replication = redisCommand(f->context, "INFO replication");
    const char *id = strstr(server->str, "run_id:") + 7;
    const char *history = strstr(replication->str, "master_replid:") + 14;
    snprintf(out, bytes, "%.40s:%.40s", id, history);
    freeReplyObject(server);
    freeReplyObject(replication);
}

/* ---------------------------------------------------------------- the texts themselves */

static void test_scripts__carry_the_digest_that_the_server_computes(void **state)
{
    struct fixture *f = *state;
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
    struct fixture *f = *state;
    const struct answer got = acquire(f, ANNA, 1);
    assert_int_equal(got.status, COORD_GRANTED);
    assert_int_equal(got.number[1], TTL);
    assert_field(f, "debt", "15000");
    assert_field(f, "lease", "15000");
    assert_field(f, "state", "granted");
    assert_int_equal(got.number[0], (long long)coord_fence_next(0, 0, (uint64_t)got.at_us, true));
    assert_in_range(integer(f, "PTTL", 0), TTL - 2000, TTL);
    assert_in_range(integer(f, "PTTL", 1), 2591990000, 2592000000);
}

static void test_acquire__of_a_new_name_is_clear_on_a_server_older_than_the_lease(void **state)
{
    struct fixture *f = *state;
    wait_for_uptime(f, 2);
    const struct answer got =
        acquire_as(f, &(struct candidate){.owner = ANNA, .attempt = 1, .ttl = 900});
    assert_int_equal(got.status, COORD_GRANTED);
    assert_int_equal(got.number[1], 0);
    /* The whole second that the server rounds away does not count. */
    command(f, "DEL %s %s", f->key[0], f->key[1]);
    wait_for_uptime(f, 2);
    const struct answer rounded =
        acquire_as(f, &(struct candidate){.owner = ANNA, .attempt = 1, .ttl = 86400000});
    assert_int_equal(rounded.number[1], 86400000);
}

static void test_acquire__with_no_record_owes_a_lease_to_who_has_seen_the_name(void **state)
{
    struct fixture *f = *state;
    wait_for_uptime(f, 2);
    const struct answer got =
        acquire_as(f, &(struct candidate){.owner = ANNA, .attempt = 1, .ttl = 900, .seen = 7});
    assert_int_equal(got.number[1], 900);
}

static void test_acquire__again_by_the_same_attempt_keeps_the_fence_and_the_debt(void **state)
{
    struct fixture *f = *state;
    const struct answer first = acquire(f, ANNA, 1);
    command(f, "PEXPIRE %s %s", f->key[0], "1000");
    const struct answer second = acquire(f, ANNA, 1);
    assert_int_equal(second.status, COORD_GRANTED);
    assert_int_equal(second.number[0], first.number[0]);
    assert_int_equal(second.number[1], TTL);
    assert_true(integer(f, "PTTL", 0) > 2000); /* a new expiry as well */
}

static void test_acquire__by_a_later_attempt_of_the_owner_gets_a_new_fence_and_the_debt(
    void **state)
{
    struct fixture *f = *state;
    const struct answer first = acquire(f, ANNA, 1);
    const struct answer second =
        acquire_as(f, &(struct candidate){.owner = ANNA, .attempt = 2, .ttl = 9000});
    assert_int_equal(second.status, COORD_GRANTED);
    assert_true(second.number[0] > first.number[0]);
    assert_int_equal(second.number[1], TTL); /* what the first one owed */
    assert_int_equal(renew(f, ANNA, 1, first.number[0], "").status, COORD_LOST);
    assert_int_equal(renew(f, ANNA, 2, second.number[0], "").status, COORD_RENEWED);
}

static void test_acquire__over_an_own_lease_without_its_record_owes_again(void **state)
{
    struct fixture *f = *state;
    wait_for_uptime(f, 2);
    acquire_as(f, &(struct candidate){.owner = ANNA, .attempt = 1, .ttl = 900});
    command(f, "DEL %s %s", f->key[1], "");
    const struct answer again =
        acquire_as(f, &(struct candidate){.owner = ANNA, .attempt = 1, .ttl = 900});
    assert_int_equal(again.status, COORD_GRANTED);
    assert_int_equal(again.number[1], 900);
}

static void test_acquire__by_an_earlier_attempt_than_the_lease_holds_is_dead(void **state)
{
    struct fixture *f = *state;
    acquire(f, ANNA, 2);
    assert_int_equal(acquire(f, ANNA, 1).status, COORD_DEAD_ATTEMPT);
    assert_int_equal(observe(f).status, COORD_HELD);
}

static void test_acquire__that_comes_after_its_own_end_makes_no_ghost_lease(void **state)
{
    struct fixture *f = *state;
    const struct answer led = acquire(f, ANNA, 1);
    release(f, ANNA, 1, led.number[0]);
    assert_int_equal(acquire(f, ANNA, 1).status, COORD_DEAD_ATTEMPT); /* released */
    acquire(f, ANNA, 2);
    undo(f, ANNA, 2);
    assert_int_equal(acquire(f, ANNA, 2).status, COORD_DEAD_ATTEMPT); /* undone */
    acquire(f, ANNA, 3);
    command(f, "DEL %s %s", f->key[0], "");
    assert_int_equal(acquire(f, ANNA, 3).status, COORD_DEAD_ATTEMPT); /* lapsed */
    undo(f, ANNA, 4);
    assert_int_equal(acquire(f, ANNA, 4).status, COORD_DEAD_ATTEMPT); /* overtaken by its undo */
    assert_int_equal(integer(f, "EXISTS", 0), 0);
    assert_int_equal(acquire(f, ANNA, 5).status, COORD_GRANTED);
}

static void test_acquire__of_a_held_name_says_who_holds_it_and_for_how_long(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    const struct answer bert = acquire(f, BERT, 1);
    assert_int_equal(bert.status, COORD_HELD);
    assert_in_range(bert.number[0], TTL - 2000, TTL);
    assert_int_equal(bert.number[2], TTL); /* still owed: it takes over */
    assert_int_equal(bert.number[3], anna.number[0]);
    char expected[256];
    write_line(expected, ANNA, 1, anna.number[0]);
    assert_memory_equal(bert.text, expected, strlen(expected));
    assert_non_null(strstr(bert.text, " 4 annahost:80"));
}

static void test_acquire__cuts_a_lease_that_would_outlive_what_its_holder_asked_for(void **state)
{
    struct fixture *f = *state;
    acquire(f, ANNA, 1);
    command(f, "PEXPIRE %s %s", f->key[0], "3600000"); /* the clock stepped back by an hour */
    assert_int_equal(acquire(f, BERT, 1).number[0], TTL);
    assert_in_range(integer(f, "PTTL", 0), TTL - 2000, TTL);
}

static void test_acquire__is_clear_after_a_term_of_this_run_ended_or_lapsed(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    renew(f, ANNA, 1, anna.number[0], "led");
    release(f, ANNA, 1, anna.number[0]);
    const struct answer bert = acquire(f, BERT, 1);
    assert_int_equal(bert.number[1], 0);
    assert_int_equal(bert.number[0], (long long)coord_fence_next((uint64_t)anna.number[0], 0,
                                                                 (uint64_t)bert.at_us, false));
    command(f, "DEL %s %s", f->key[0], ""); /* as if it ran out */
    assert_int_equal(acquire(f, ANNA, 2).number[1], 0);
}

static void test_acquire__after_one_that_never_led_owes_what_that_one_owed(void **state)
{
    struct fixture *f = *state;
    acquire(f, ANNA, 1);
    undo(f, ANNA, 1);
    const struct answer bert =
        acquire_as(f, &(struct candidate){.owner = BERT, .attempt = 1, .ttl = 1000});
    assert_int_equal(bert.number[1], TTL);
    command(f, "DEL %s %s", f->key[0], "");
    assert_int_equal(acquire(f, ANNA, 2).number[1], TTL); /* it did not shrink to bert's second */
}

static void test_acquire__with_a_record_of_another_run_owes_the_longest_of_all(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    renew(f, ANNA, 1, anna.number[0], "led");
    release(f, ANNA, 1, anna.number[0]);
    of_another_run(f);
    const struct answer own =
        acquire_as(f, &(struct candidate){.owner = BERT, .attempt = 1, .ttl = 60000});
    assert_int_equal(own.number[1], 60000);
    assert_int_equal(own.number[0], (long long)coord_fence_next((uint64_t)anna.number[0], 0,
                                                                (uint64_t)own.at_us, true));
    command(f, "DEL %s %s", f->key[0], "");
    of_another_run(f);
    assert_int_equal(acquire(f, ANNA, 2).number[1], 60000); /* bert's lease and bert's debt */
}

static void test_acquire__with_a_record_of_another_run_is_clear_when_this_run_is_older(void **state)
{
    struct fixture *f = *state;
    wait_for_uptime(f, 3);
    const struct candidate anna = {.owner = ANNA, .attempt = 1, .ttl = 1500};
    assert_int_equal(acquire_as(f, &anna).number[1], 0);
    command(f, "DEL %s %s", f->key[0], "");
    of_another_run(f);
    const struct candidate bert = {.owner = BERT, .attempt = 1, .ttl = 500};
    const struct answer got = acquire_as(f, &bert);
    assert_int_equal(got.number[1], 0);
    /* It leaps all the same: what was lost may have been granted just before. */
    assert_int_equal(got.number[0] - got.at_us, (long long)COORD_FENCE_LEAP);
}

static void test_acquire__believes_a_caller_that_has_known_the_run_for_long_enough(void **state)
{
    struct fixture *f = *state;
    char run[96];
    run_now(f, run, sizeof run);
    struct candidate anna = {.owner = ANNA, .attempt = 1, .run = run, .age = TTL};
    assert_int_equal(acquire_as(f, &anna).number[1], TTL); /* must be longer */
    command(f, "DEL %s %s", f->key[0], f->key[1]);
    command(f, "DEL %s %s", f->key[1], "");
    anna.age = TTL + 1;
    assert_int_equal(acquire_as(f, &anna).number[1], 0);
    command(f, "DEL %s %s", f->key[0], "");
    command(f, "DEL %s %s", f->key[1], "");
    anna.run = "0123:4567"; /* of another run it says nothing */
    assert_int_equal(acquire_as(f, &anna).number[1], TTL);
}

static void test_acquire__with_a_record_behind_what_it_has_seen_is_never_clear(void **state)
{
    struct fixture *f = *state;
    wait_for_uptime(f, 3);
    struct candidate anna = {.owner = ANNA, .attempt = 1, .ttl = 500};
    const struct answer first = acquire_as(f, &anna);
    assert_int_equal(first.number[1], 0);
    command(f, "DEL %s %s", f->key[0], "");
    struct candidate bert = {
        .owner = BERT, .attempt = 1, .ttl = 500, .seen = (unsigned long long)first.number[0]};
    assert_int_equal(acquire_as(f, &bert).number[1], 0); /* seen is what stands there */
    command(f, "DEL %s %s", f->key[0], "");
    anna.attempt = 2;
    anna.seen = (unsigned long long)first.number[0] + 5000000000000ull;
    const struct answer behind = acquire_as(f, &anna);
    assert_int_equal(behind.number[1], 500);
    assert_int_equal(behind.number[0], (long long)anna.seen + 1);
}

static void test_acquire__with_an_unreadable_record_owes_and_still_rises(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"nan", "0x10", "1e30", "-5", "", "99999999999999999999"};
    wait_for_uptime(f, 3);
    unsigned attempt = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        command(f, "DEL %s %s", f->key[0], "");
        command(f, "HSET %s fence %s", f->key[1], bad[i]);
        const struct answer got = acquire_as(
            f, &(struct candidate){.owner = ANNA, .attempt = ++attempt, .ttl = 500, .seen = 9});
        assert_int_equal(got.status, COORD_GRANTED);
        assert_int_equal(got.number[1], 500);
        assert_int_equal(got.number[0],
                         (long long)coord_fence_next(0, 9, (uint64_t)got.at_us, true));
    }
}

static void test_acquire__refuses_a_fence_that_53_bits_cannot_hold(void **state)
{
    struct fixture *f = *state;
    const struct answer got = acquire_as(
        f, &(struct candidate){.owner = ANNA, .attempt = 1, .seen = 9007199254740991ull});
    assert_int_equal(got.status, COORD__REDIS_RANGE);
    assert_int_equal(integer(f, "EXISTS", 0) + integer(f, "EXISTS", 1), 0);
}

static void test_acquire__refuses_what_is_not_coords_and_changes_nothing(void **state)
{
    struct fixture *f = *state;
    command(f, "SET %s %s", f->key[0], "somebody's");
    assert_int_equal(acquire(f, ANNA, 1).status, COORD__REDIS_FOREIGN);
    command(f, "SET %s %s", f->key[0], "coord1 not a line");
    assert_int_equal(acquire(f, ANNA, 1).status, COORD__REDIS_FOREIGN);
    command(f, "SET %s %s", f->key[0], "coord2 something later");
    assert_int_equal(acquire(f, ANNA, 1).status, COORD__REDIS_NEWER);
    assert_int_equal(observe(f).status, COORD__REDIS_NEWER);
    assert_int_equal(ask(f, 1, "").status, COORD__REDIS_NEWER);
    assert_int_equal(init(f).status, COORD__REDIS_NEWER);
    command(f, "DEL %s %s", f->key[0], "");
    command(f, "HSET %s v %s", f->key[1], "2");
    assert_int_equal(acquire(f, ANNA, 1).status, COORD__REDIS_NEWER);
    assert_int_equal(undo(f, ANNA, 1).status, COORD__REDIS_NEWER);
    assert_int_equal(observe(f).status, COORD__REDIS_NEWER);
    assert_int_equal(init(f).status, COORD__REDIS_NEWER);
    assert_int_equal(integer(f, "HLEN", 1), 1);
    assert_int_equal(integer(f, "EXISTS", 0), 0);
}

static void test_acquire__refuses_a_lease_that_somebody_made_permanent(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    command(f, "PERSIST %s%s", f->key[0], "");
    assert_int_equal(acquire(f, BERT, 1).status, COORD__REDIS_PERMANENT);
    assert_int_equal(acquire(f, ANNA, 1).status, COORD__REDIS_PERMANENT);
    assert_int_equal(integer(f, "PTTL", 0), -1);
    /* Its holder repairs it, by renewing. */
    assert_int_equal(renew(f, ANNA, 1, anna.number[0], "").status, COORD_RENEWED);
    assert_in_range(integer(f, "PTTL", 0), TTL - 2000, TTL);
}

/* ---------------------------------------------------------------- renew */

static void test_renew__that_is_plain_touches_the_lease_alone(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    command(f, "PEXPIRE %s %s", f->key[0], "1000");
    command(f, "PEXPIRE %s %s", f->key[1], "60000");
    assert_int_equal(renew(f, ANNA, 1, anna.number[0], "").status, COORD_RENEWED);
    assert_in_range(integer(f, "PTTL", 0), TTL - 2000, TTL);
    assert_true(integer(f, "PTTL", 1) <= 60000);
    assert_field(f, "debt", "15000");
}

static void test_renew__that_says_led_strikes_the_debt_and_keeps_the_record_alive(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    command(f, "PEXPIRE %s %s", f->key[1], "60000");
    assert_int_equal(renew(f, ANNA, 1, anna.number[0], "led").status, COORD_RENEWED);
    assert_field(f, "debt", "0");
    assert_field(f, "state", "led");
    assert_true(integer(f, "PTTL", 1) > 60000);
}

static void test_renew__while_waiting_raises_the_debt_and_never_lowers_it(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    renew(f, ANNA, 1, anna.number[0], "9000");
    assert_field(f, "debt", "15000");
    renew(f, ANNA, 1, anna.number[0], "20000");
    assert_field(f, "debt", "20000");
}

static void test_renew__does_not_touch_the_record_of_another_term(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    command(f, "HSET %s fence %s", f->key[1], "12");
    renew(f, ANNA, 1, anna.number[0], "led");
    assert_field(f, "debt", "15000");
    command(f, "DEL %s%s", f->key[1], "");
    assert_int_equal(renew(f, ANNA, 1, anna.number[0], "led").status, COORD_RENEWED);
    assert_int_equal(integer(f, "EXISTS", 1), 0);
}

static void test_renew__adopts_the_run_that_its_holder_has_outlived(void **state)
{
    struct fixture *f = *state;
    char run[96];
    char line[128];
    char number[24];
    run_now(f, run, sizeof run);
    const struct answer anna = acquire(f, ANNA, 1);
    write_line(line, ANNA, 1, anna.number[0]);
    of_another_run(f);
    const char *stale[] = {line,  "15000",     digits(number, (unsigned long long)anna.number[0]),
                           "led", "89ab:cdef", NULL};
    call(f, COORD_VERB_RENEW, stale);
    assert_field(f, "run", "0123:4567"); /* it was not this server that was known */
    stale[4] = run;
    call(f, COORD_VERB_RENEW, stale);
    assert_field(f, "run", run);
}

static void test_renew__of_a_lease_that_is_gone_is_lost_and_makes_nothing(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    command(f, "DEL %s%s", f->key[0], "");
    assert_int_equal(renew(f, ANNA, 1, anna.number[0], "").status, COORD_LOST);
    assert_int_equal(integer(f, "EXISTS", 0), 0);
}

static void test_renew__compares_owner_attempt_and_fence(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 11);
    assert_int_equal(renew(f, BERT, 11, anna.number[0], "").status, COORD_LOST);
    assert_int_equal(renew(f, ANNA, 1, anna.number[0], "").status, COORD_LOST);
    assert_int_equal(renew(f, ANNA, 11, anna.number[0] - 1, "").status, COORD_LOST);
    const struct answer lost = renew(f, BERT, 1, anna.number[0], "");
    assert_in_range(lost.number[0], TTL - 2000, TTL);
    assert_non_null(strstr(lost.text, "anna"));
    assert_int_equal(renew(f, ANNA, 11, anna.number[0], "").status, COORD_RENEWED);
}

/* ---------------------------------------------------------------- release and undo */

static void test_release__compares_owner_attempt_and_fence(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 11);
    assert_int_equal(release(f, BERT, 11, anna.number[0]).number[0], 0);
    assert_int_equal(release(f, ANNA, 1, anna.number[0]).number[0], 0);
    assert_int_equal(release(f, ANNA, 11, anna.number[0] + 1).number[0], 0);
    assert_int_equal(integer(f, "EXISTS", 0), 1);
    assert_field(f, "state", "granted");
    ask(f, anna.number[0], "bert b");
    assert_int_equal(release(f, ANNA, 11, anna.number[0]).number[0], 1);
    assert_int_equal(integer(f, "EXISTS", 0) + integer(f, "EXISTS", 2), 0);
    assert_field(f, "state", "resigned");
    assert_field(f, "debt", "0");
    /* Twice does no harm. */
    assert_int_equal(release(f, ANNA, 11, anna.number[0]).status, COORD_DONE);
}

static void test_release__for_a_successor_keeps_the_name_for_it_and_for_no_longer(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    release_to(f, ANNA, 1, anna.number[0], "bert b", "60000");
    const struct answer other = acquire(f, ANNA, 2);
    assert_int_equal(other.status, COORD_RESERVED);
    assert_in_range(other.number[0], 58000, 60000);
    assert_string_equal(other.text, "bert b");
    const struct answer seen = observe(f);
    assert_int_equal(seen.status, COORD_FREE);
    assert_in_range(seen.number[0], 58000, 60000);
    assert_string_equal(seen.text, "bert b");
    assert_int_equal(acquire(f, BERT, 1).status, COORD_GRANTED);
    command(f, "DEL %s%s", f->key[0], "");
    assert_int_equal(acquire(f, ANNA, 2).status, COORD_GRANTED); /* the grant used it up */
}

static void test_release__keeps_a_name_no_longer_when_its_time_has_passed(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    release_to(f, ANNA, 1, anna.number[0], "bert b", "60000");
    command(f, "HSET %s until %s", f->key[1], "1");
    assert_int_equal(acquire(f, ANNA, 2).status, COORD_GRANTED);
}

static void test_release__keeps_a_name_no_longer_than_asked_when_the_clock_steps_back(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    release_to(f, ANNA, 1, anna.number[0], "bert b", "60000");
    command(f, "HSET %s until %s", f->key[1], "4000000000000000");
    assert_int_equal(observe(f).number[0], 60000);
    assert_int_equal(acquire(f, ANNA, 2).number[0], 60000);
    char until[32];
    field(f, "until", until, sizeof until);
    assert_true(strtoll(until, NULL, 10) < 4000000000000000); /* and so it ends */
}

static void test_undo__deletes_what_that_attempt_took_and_resigns_nothing(void **state)
{
    struct fixture *f = *state;
    acquire(f, ANNA, 1);
    assert_int_equal(undo(f, ANNA, 1).number[0], 1);
    assert_int_equal(integer(f, "EXISTS", 0), 0);
    assert_field(f, "debt", "15000");
    assert_field(f, "state", "granted");
}

static void test_undo__leaves_a_later_attempt_and_others_alone(void **state)
{
    struct fixture *f = *state;
    acquire(f, ANNA, 2);
    assert_int_equal(undo(f, ANNA, 1).number[0], 0);
    assert_int_equal(undo(f, BERT, 9).number[0], 0);
    assert_int_equal(integer(f, "EXISTS", 0), 1);
}

static void test_undo__alone_makes_no_record_that_could_count_as_clear(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(undo(f, ANNA, 1).status, COORD_DONE);
    assert_field(f, "fence", "(none)");
    const struct answer bert = acquire(f, BERT, 1);
    assert_int_equal(bert.number[1], TTL);
    assert_true(integer(f, "PTTL", 1) > 0);
}

/* ---------------------------------------------------------------- observe, ask, init */

static void test_observe__tells_the_holder_and_writes_nothing(void **state)
{
    struct fixture *f = *state;
    struct answer seen = observe(f);
    assert_int_equal(seen.status, COORD_FREE);
    assert_int_equal(seen.number[2], 0);
    const struct answer anna = acquire(f, ANNA, 1);
    seen = observe(f);
    assert_int_equal(seen.status, COORD_HELD);
    assert_int_equal(seen.number[2], TTL);
    renew(f, ANNA, 1, anna.number[0], "led");
    seen = observe(f);
    assert_int_equal(seen.number[2], 0);
    assert_int_equal(seen.number[3], anna.number[0]);
    release(f, ANNA, 1, anna.number[0]);
    seen = observe(f);
    assert_int_equal(seen.status, COORD_FREE);
    assert_int_equal(seen.number[2], anna.number[0]);
}

static void test_ask__is_seen_by_the_term_that_it_names_and_void_for_any_other(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(ask(f, 7, "bert b").status, COORD_NOBODY);
    const struct answer anna = acquire(f, ANNA, 1);
    const struct answer other = ask(f, anna.number[0] + 1, "bert b");
    assert_int_equal(other.status, COORD_NOBODY);
    assert_non_null(strstr(other.text, "anna")); /* who does lead */
    assert_int_equal(integer(f, "EXISTS", 2), 0);
    assert_int_equal(ask(f, anna.number[0], "bert b").status, COORD_DONE);
    assert_in_range(integer(f, "PTTL", 2), 1, 5000);
    const struct answer asked = renew(f, ANNA, 1, anna.number[0], "");
    assert_int_equal(asked.status, COORD_RENEWED);
    assert_string_equal(asked.text, "bert b");
    const struct answer later = acquire(f, ANNA, 2);
    assert_string_equal(renew(f, ANNA, 2, later.number[0], "").text, "");
}

static void test_ask__without_a_successor_is_heard_as_well(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    ask(f, anna.number[0], "");
    redisReply *reply = redisCommand(f->context, "GET %s", f->key[2]);
    char expected[32];
    snprintf(expected, sizeof expected, "%lld ", anna.number[0]);
    assert_string_equal(reply->str, expected);
    freeReplyObject(reply);
    char line[128];
    char number[24];
    write_line(line, ANNA, 1, anna.number[0]);
    const char *arguments[] = {line, "15000", digits(number, (unsigned long long)anna.number[0]),
                               "",   "",      NULL};
    reply = call_with(f, f->context, COORD_VERB_RENEW, arguments);
    assert_int_equal(reply->elements, 3); /* asked, for nobody in particular */
    freeReplyObject(reply);
}

static void test_init__writes_a_clear_record_and_is_refused_while_somebody_holds_it(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(init(f).status, COORD_DONE);
    char fence[32];
    field(f, "fence", fence, sizeof fence);
    assert_field(f, "state", "clear");
    const struct answer anna = acquire(f, ANNA, 1);
    assert_int_equal(anna.number[1], 0);
    assert_true(anna.number[0] > strtoll(fence, NULL, 10));
    assert_int_equal(init(f).status, COORD_HELD);
    assert_field(f, "state", "granted");
}

/* ---------------------------------------------------------------- the server breaks */

static void test_server__that_loses_everything_moves_the_fence_forward(void **state)
{
    struct fixture *f = *state;
    long long fence = 0;
    for (unsigned i = 1; i <= 3; i++) {
        const struct answer got = acquire(f, ANNA, i);
        assert_int_equal(got.status, COORD_GRANTED);
        assert_int_equal(got.number[1], TTL);
        assert_true(got.number[0] > fence);
        fence = got.number[0];
        redis_server_kill(&f->server);
        redis_server_again(&f->server);
        reconnect(f);
    }
    /* One who saw the last one is above it, and so is a fresh one after two more losses. */
    const struct answer seen = acquire_as(
        f, &(struct candidate){.owner = BERT, .attempt = 1, .seen = (unsigned long long)fence});
    assert_true(seen.number[0] > fence);
    command(f, "FLUSHALL%s%s", "", "");
    assert_true(acquire(f, ANNA, 9).number[0] > seen.number[0]);
}

static void test_server__that_forgets_in_the_same_run_makes_those_who_knew_wait(void **state)
{
    struct fixture *f = *state;
    wait_for_uptime(f, 2);
    struct candidate bert = {.owner = BERT, .attempt = 1, .ttl = 900};
    const struct answer first = acquire_as(f, &bert);
    assert_int_equal(first.number[1], 0);
    command(f, "FLUSHALL%s%s", "", "");
    struct candidate anna = {
        .owner = ANNA, .attempt = 1, .ttl = 900, .seen = (unsigned long long)first.number[0]};
    assert_int_equal(acquire_as(f, &anna).number[1], 900);
}

static void test_server__that_kept_its_data_over_a_restart_is_another_run(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    renew(f, ANNA, 1, anna.number[0], "led");
    release(f, ANNA, 1, anna.number[0]);
    command(f, "SAVE%s%s", "", "");
    redis_server_kill(&f->server);
    redis_server_again(&f->server);
    reconnect(f);
    const struct answer bert = acquire(f, BERT, 1);
    assert_int_equal(bert.status, COORD_GRANTED);
    assert_int_equal(bert.number[1], TTL);
    assert_true(bert.number[0] > anna.number[0]);
}

static void test_server__that_was_promoted_without_a_restart_is_another_run(void **state)
{
    struct fixture *f = *state;
    static const char *const options[] = {"--port", "auto", NULL};
    static struct redis_server former;
    redis_server_start(&former, options);
    char port[8];
    snprintf(port, sizeof port, "%d", former.port);
    wait_for_uptime(f, 3);
    struct candidate anna = {.owner = ANNA, .attempt = 1, .ttl = 900};
    const struct answer before = acquire_as(f, &anna);
    assert_int_equal(before.number[1], 0);
    release(f, ANNA, 1, before.number[0]);
    char run[96];
    run_now(f, run, sizeof run);
    command(f, "REPLICAOF %s %s", "127.0.0.1", port);
    for (;;) {
        redisReply *reply = redisCommand(f->context, "INFO replication");
        const bool up = strstr(reply->str, "master_link_status:up") != NULL;
        freeReplyObject(reply);
        if (up) {
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
    }
    command(f, "REPLICAOF %s %s", "NO", "ONE");
    char promoted[96];
    run_now(f, promoted, sizeof promoted);
    assert_memory_equal(run, promoted, 40); /* the same process ... */
    assert_string_not_equal(run, promoted); /* ... with another past */
    anna.attempt = 2;
    assert_int_equal(acquire_as(f, &anna).number[1], 900); /* its uptime proves nothing */
    redis_server_stop(&former);
}

static redisReply *try_to_acquire(struct fixture *f, redisContext *context)
{
    const char *arguments[] = {ANNA, "1", "15000", "0", "anna", "", "", "0", NULL};
    return call_with(f, context, COORD_VERB_ACQUIRE, arguments);
}

static void assert_refused(struct fixture *f, const char *word)
{
    redisReply *reply = try_to_acquire(f, f->context);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_non_null(strstr(reply->str, word));
    freeReplyObject(reply);
    assert_int_equal(integer(f, "EXISTS", 0), 0);
    assert_int_equal(integer(f, "EXISTS", 1), 0);
}

static void test_server__that_refuses_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    command(f, "CONFIG SET %s %s", "maxmemory", "1");
    assert_refused(f, "OOM");
    command(f, "CONFIG SET %s %s", "maxmemory", "0");
    command(f, "CONFIG SET %s %s", "min-replicas-to-write", "1");
    assert_refused(f, "NOREPLICAS");
    command(f, "CONFIG SET %s %s", "min-replicas-to-write", "0");
    command(f, "REPLICAOF %s %s", "127.0.0.1", "1");
    command(f, "CONFIG SET %s %s", "replica-serve-stale-data", "yes");
    assert_refused(f, "READONLY");
    command(f, "REPLICAOF %s %s", "NO", "ONE");
    command(f, "LPUSH %s %s", f->key[1], "x");
    redisReply *reply = try_to_acquire(f, f->context);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_non_null(strstr(reply->str, "WRONGTYPE"));
    freeReplyObject(reply);
    assert_int_equal(integer(f, "EXISTS", 0), 0);
}

static void test_server__that_is_full_still_takes_renewals_and_resignations(void **state)
{
    struct fixture *f = *state;
    const struct answer anna = acquire(f, ANNA, 1);
    command(f, "CONFIG SET %s %s", "maxmemory", "1");
    assert_int_equal(renew(f, ANNA, 1, anna.number[0], "led").status, COORD_RENEWED);
    assert_field(f, "debt", "0");
    assert_int_equal(release(f, ANNA, 1, anna.number[0]).number[0], 1);
    assert_field(f, "state", "resigned");
    command(f, "CONFIG SET %s %s", "maxmemory", "0");
}

#define CASE(test)         cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define PRIVATE_CASE(test) cmocka_unit_test_setup_teardown(test, set_up_private, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(test_scripts__carry_the_digest_that_the_server_computes),
        PRIVATE_CASE(test_acquire__of_a_new_name_on_a_young_server_owes_one_lease),
        CASE(test_acquire__of_a_new_name_is_clear_on_a_server_older_than_the_lease),
        CASE(test_acquire__with_no_record_owes_a_lease_to_who_has_seen_the_name),
        PRIVATE_CASE(test_acquire__again_by_the_same_attempt_keeps_the_fence_and_the_debt),
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
    return cmocka_run_group_tests_name("redis_scripts", tests, start_common, stop_common);
}
