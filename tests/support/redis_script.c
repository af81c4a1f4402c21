/* SPDX-License-Identifier: MIT
 * tests/support/redis_script.c - see redis_script.h.
 */
#include "tests/support/redis_script.h"

#include <stdlib.h>
#include <time.h>

enum {
    ARGUMENTS = 16
};

static const char *const parts[] = {"lease", "fence", "ask"};

static struct redis_server common;

int script_start_common(void **state)
{
    (void)state;
    redis_server_start(&common, NULL);
    return 0;
}

int script_stop_common(void **state)
{
    (void)state;
    redis_server_stop(&common);
    return 0;
}

static int set_up_either(void **state, bool private)
{
    static const char *const none[] = {NULL};
    struct script_world *f = calloc(1, sizeof *f);
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

int script_set_up(void **state)
{
    return set_up_either(state, false);
}

int script_set_up_private(void **state)
{
    return set_up_either(state, true);
}

int script_tear_down(void **state)
{
    struct script_world *f = *state;
    if (f->context != NULL) {
        redisFree(f->context);
    }
    if (f->private) {
        redis_server_stop(&f->server);
    }
    free(f);
    return 0;
}

void script_reconnect(struct script_world *f)
{
    redisFree(f->context);
    f->context = redis_server_connect(&f->server);
}

/* ---------------------------------------------------------------- calling them */

redisReply *script_call_with(struct script_world *f, redisContext *context, enum coord_verb verb,
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

static struct script_answer take_apart(redisReply *reply)
{
    struct script_answer answer = {.status = -1};
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

struct script_answer script_call(struct script_world *f, enum coord_verb verb,
                                 const char *const *arguments)
{
    return take_apart(script_call_with(f, f->context, verb, arguments));
}

const char *script_digits(char *out, unsigned long long number)
{
    snprintf(out, 24, "%llu", number);
    return out;
}

struct script_answer script_acquire_as(struct script_world *f, const struct script_candidate *who)
{
    char attempt[24];
    char ttl[24];
    char seen[24];
    char age[24];
    const char *arguments[] = {who->owner,
                               script_digits(attempt, who->attempt),
                               script_digits(ttl, who->ttl > 0 ? who->ttl : SCRIPT_TTL),
                               script_digits(seen, who->seen),
                               who->owner[0] == 'a' ? "anna" : "bert b",
                               "host:80",
                               who->run != NULL ? who->run : "",
                               script_digits(age, who->age),
                               NULL};
    return script_call(f, COORD_VERB_ACQUIRE, arguments);
}

struct script_answer script_acquire(struct script_world *f, const char *owner, unsigned attempt)
{
    return script_acquire_as(f, &(struct script_candidate){.owner = owner, .attempt = attempt});
}

void script_write_line(char *out, const char *owner, unsigned attempt, long long fence)
{
    snprintf(out, 128, "coord1 %lld %u %s ", fence, attempt, owner);
}

struct script_answer script_renew(struct script_world *f, const char *owner, unsigned attempt,
                                  long long fence, const char *mode)
{
    char line[128];
    char number[24];
    script_write_line(line, owner, attempt, fence);
    const char *arguments[] = {line, "15000", script_digits(number, (unsigned long long)fence),
                               mode, "",      NULL};
    return script_call(f, COORD_VERB_RENEW, arguments);
}

struct script_answer script_release_to(struct script_world *f, const char *owner, unsigned attempt,
                                       long long fence, const char *to, const char *reserve)
{
    char line[128];
    char number[24];
    script_write_line(line, owner, attempt, fence);
    const char *arguments[] = {line, script_digits(number, (unsigned long long)fence), to, reserve,
                               NULL};
    return script_call(f, COORD_VERB_RELEASE, arguments);
}

struct script_answer script_release(struct script_world *f, const char *owner, unsigned attempt,
                                    long long fence)
{
    return script_release_to(f, owner, attempt, fence, "", "0");
}

struct script_answer script_undo(struct script_world *f, const char *owner, unsigned attempt)
{
    char number[24];
    const char *arguments[] = {owner, script_digits(number, attempt), NULL};
    return script_call(f, COORD_VERB_UNDO, arguments);
}

struct script_answer script_observe(struct script_world *f)
{
    const char *arguments[] = {NULL};
    return script_call(f, COORD_VERB_OBSERVE, arguments);
}

struct script_answer script_ask(struct script_world *f, long long fence, const char *to)
{
    char number[24];
    const char *arguments[] = {script_digits(number, (unsigned long long)fence), to, "5000", NULL};
    return script_call(f, COORD_VERB_ASK, arguments);
}

struct script_answer script_init(struct script_world *f)
{
    const char *arguments[] = {"0", NULL};
    return script_call(f, COORD_VERB_INIT, arguments);
}

/* ---------------------------------------------------------------- what stands in the server */

void script_field(struct script_world *f, const char *name, char *out, size_t bytes)
{
    redisReply *reply = redisCommand(f->context, "HGET %s %s", f->key[1], name);
    assert_non_null(reply);
    snprintf(out, bytes, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "(none)");
    freeReplyObject(reply);
}

void script_assert_field(struct script_world *f, const char *name, const char *expected)
{
    char value[128];
    script_field(f, name, value, sizeof value);
    assert_string_equal(value, expected);
}

long long script_integer(struct script_world *f, const char *command, int key)
{
    redisReply *reply = redisCommand(f->context, "%s %s", command, f->key[key]);
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    const long long value = reply->integer;
    freeReplyObject(reply);
    return value;
}

void script_command(struct script_world *f, const char *format, const char *key, const char *value)
{
    redisReply *reply = redisCommand(f->context, format, key, value);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s: %s", format, reply->str);
    }
    freeReplyObject(reply);
}

/* The record as it would look had another run of the server written it. */
void script_of_another_run(struct script_world *f)
{
    script_command(f, "HSET %s run %s", f->key[1], "0123:4567");
}

/* The server has run for longer than `ttl` counts as: uptime is in whole seconds, less one. */
void script_wait_for_uptime(struct script_world *f, unsigned seconds)
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

void script_run_now(struct script_world *f, char *out, size_t bytes)
{
    redisReply *server = redisCommand(f->context, "INFO server");
    redisReply *replication = redisCommand(f->context, "INFO replication");
    const char *id = strstr(server->str, "run_id:") + 7;
    const char *history = strstr(replication->str, "master_replid:") + 14;
    snprintf(out, bytes, "%.40s:%.40s", id, history);
    freeReplyObject(server);
    freeReplyObject(replication);
}
