/* SPDX-License-Identifier: MIT
 * tests/bench/bench_redis.c - an election on Redis beside raw hiredis that runs the same scripts.
 *
 * Both take two round trips for an acquire and a release (with the word to the waiters behind it),
 * and one for a renewal, on one server in one run, in turns. The target is 1.10 of the raw client.
 */
#include "electors/redis.h"
#include "electors/redis_scripts.h"
#include "runtime/clock.h"
#include "tests/support/redis_server.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAIRS = 2000,
    RENEWALS = 4000,
    ROUNDS = 9,
    TEXT = 96
};

#define OWNER "00112233445566778899aabbccddeeff"

static double us_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_redis: %s\n", what);
    exit(1);
}

/* ---------------------------------------------------------------- the raw client */

struct raw {
    redisContext *redis;
    unsigned long attempt;
    long long fence;
    char attempt_text[TEXT];
    char fence_text[TEXT];
    char line[3 * TEXT]; /* what the lease's value begins with */
};

static redisReply *answer(struct raw *raw)
{
    void *reply = NULL;
    if (redisGetReply(raw->redis, &reply) != REDIS_OK) {
        fail(raw->redis->errstr);
    }
    if (((redisReply *)reply)->type == REDIS_REPLY_ERROR) {
        fail(((redisReply *)reply)->str);
    }
    return reply;
}

static void raw_acquire(struct raw *raw)
{
    snprintf(raw->attempt_text, TEXT, "%lu", ++raw->attempt);
    snprintf(raw->fence_text, TEXT, "%lld", raw->fence);
    const char *argv[] = {"EVALSHA",
                          coord__redis_script(COORD_VERB_ACQUIRE)->sha1,
                          "2",
                          "coord:{raw}:lease",
                          "coord:{raw}:fence",
                          OWNER,
                          raw->attempt_text,
                          "15000",
                          raw->fence_text,
                          "raw",
                          "",
                          "",
                          "0"};
    redisAppendCommandArgv(raw->redis, sizeof argv / sizeof argv[0], argv, NULL);
    redisReply *reply = answer(raw);
    if (reply->elements < 3 || reply->element[0]->integer != COORD_GRANTED) {
        fail("the raw client was not granted");
    }
    raw->fence = reply->element[2]->integer;
    freeReplyObject(reply);
    snprintf(raw->fence_text, TEXT, "%lld", raw->fence);
    snprintf(raw->line, sizeof raw->line, "coord1 %s %s " OWNER " ", raw->fence_text,
             raw->attempt_text);
}

static void raw_release(struct raw *raw)
{
    const char *argv[] = {"EVALSHA",
                          coord__redis_script(COORD_VERB_RELEASE)->sha1,
                          "3",
                          "coord:{raw}:lease",
                          "coord:{raw}:fence",
                          "coord:{raw}:ask",
                          raw->line,
                          raw->fence_text,
                          "",
                          "0"};
    char word[2 * TEXT];
    snprintf(word, sizeof word, "released %s", raw->fence_text);
    const char *publish[] = {"PUBLISH", "coord:{raw}:events", word};
    redisAppendCommandArgv(raw->redis, sizeof argv / sizeof argv[0], argv, NULL);
    redisAppendCommandArgv(raw->redis, 3, publish, NULL);
    freeReplyObject(answer(raw));
    freeReplyObject(answer(raw));
}

static void raw_renew(struct raw *raw)
{
    const char *argv[] = {"EVALSHA",
                          coord__redis_script(COORD_VERB_RENEW)->sha1,
                          "3",
                          "coord:{raw}:lease",
                          "coord:{raw}:fence",
                          "coord:{raw}:ask",
                          raw->line,
                          "15000",
                          raw->fence_text,
                          "",
                          ""};
    redisAppendCommandArgv(raw->redis, sizeof argv / sizeof argv[0], argv, NULL);
    freeReplyObject(answer(raw));
}

static void raw_begin(struct raw *raw, const struct redis_server *server)
{
    static const enum coord_verb verbs[] = {COORD_VERB_ACQUIRE, COORD_VERB_RELEASE,
                                            COORD_VERB_RENEW};
    raw->redis = redis_server_connect(server);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        const char *argv[] = {"SCRIPT", "LOAD", coord__redis_script(verbs[i])->body};
        redisAppendCommandArgv(raw->redis, 3, argv, NULL);
        freeReplyObject(answer(raw));
    }
}

/* ---------------------------------------------------------------- ours */

static void turn(struct coord_elector *elector)
{
    struct coord_descriptor wanted[COORD_DESCRIPTORS_MAX];
    struct pollfd polled[COORD_DESCRIPTORS_MAX];
    const size_t count = coord_elector_descriptors(elector, wanted);
    for (size_t i = 0; i < count; i++) {
        const int events = (wanted[i].read ? POLLIN : 0) | (wanted[i].write ? POLLOUT : 0);
        polled[i] = (struct pollfd){.fd = wanted[i].fd, .events = (short)events};
    }
    const coord_ms now = coord_clock_now();
    const coord_ms wait = coord_ms_min(coord_ms_sub(coord_elector_deadline(elector), now), 1000);
    poll(polled, count, (int)wait);
    coord_elector_process(elector, coord_clock_now());
}

static void our_acquire(struct coord_elector *elector)
{
    coord_lease_stand(coord_elector_lease(elector), coord_clock_now());
    coord_elector_process(elector, coord_clock_now());
    while (!coord_elector_leading_at(elector, coord_clock_now())) {
        turn(elector);
    }
}

static void our_release(struct coord_elector *elector)
{
    struct coord_lease *lease = coord_elector_lease(elector);
    const coord_ms now = coord_clock_now();
    struct coord_edge edge;
    coord_lease_withdraw(lease, now);
    coord_lease_acknowledge(lease, coord_lease_claim(lease, now).term, now);
    while (coord_lease_next_edge(lease, &edge)) {
        coord_lease_edge_done(lease, now);
    }
    coord_elector_process(elector, now);
    while (!coord_lease_settled(lease)) {
        turn(elector);
    }
}

static void our_renew(struct coord_elector *elector)
{
    struct coord_lease *lease = coord_elector_lease(elector);
    coord_lease_renew(lease, coord_clock_now());
    coord_elector_process(elector, coord_clock_now());
    while (lease->request.verb != COORD_VERB_NONE) {
        turn(elector);
    }
}

static struct coord_elector *our_begin(const struct redis_server *server)
{
    static struct coord_uri uri;
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    struct coord_elector *elector = NULL;
    struct coord_error error;
    config.name = "ours";
    config.name_bytes = 4;
    config.identity = "ours";
    config.identity_bytes = 4;
    config.uri = &uri;
    if (coord_uri_parse(server->uri, &uri, &error) != COORD_OK ||
        coord_elector_new(coord_redis_elector(), &config, coord_clock_now(), &elector, &error) !=
            COORD_OK) {
        fail(error.text);
    }
    return elector;
}

/* ---------------------------------------------------------------- side by side */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *what, double *ours, double *raw)
{
    qsort(ours, ROUNDS, sizeof ours[0], by_size);
    qsort(raw, ROUNDS, sizeof raw[0], by_size);
    printf("%-21s %8.1f us   %5.2fx of raw hiredis %.1f us   (target 1.10x)\n", what,
           ours[ROUNDS / 2], ours[ROUNDS / 2] / raw[ROUNDS / 2], raw[ROUNDS / 2]);
}

static void compare_pairs(struct coord_elector *elector, struct raw *raw)
{
    double ours[ROUNDS], theirs[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double from = us_now();
        for (int i = 0; i < PAIRS; i++) {
            our_acquire(elector);
            our_release(elector);
        }
        ours[round] = (us_now() - from) / PAIRS;
        from = us_now();
        for (int i = 0; i < PAIRS; i++) {
            raw_acquire(raw);
            raw_release(raw);
        }
        theirs[round] = (us_now() - from) / PAIRS;
    }
    report("redis acquire+release", ours, theirs);
}

static void compare_renewals(struct coord_elector *elector, struct raw *raw)
{
    double ours[ROUNDS], theirs[ROUNDS];
    our_acquire(elector);
    raw_acquire(raw);
    for (int round = 0; round < ROUNDS; round++) {
        double from = us_now();
        for (int i = 0; i < RENEWALS; i++) {
            our_renew(elector);
        }
        ours[round] = (us_now() - from) / RENEWALS;
        from = us_now();
        for (int i = 0; i < RENEWALS; i++) {
            raw_renew(raw);
        }
        theirs[round] = (us_now() - from) / RENEWALS;
    }
    report("redis renew", ours, theirs);
    our_release(elector);
    raw_release(raw);
}

int main(void)
{
    struct redis_server server = {.pid = 0};
    struct raw raw = {.attempt = 0};
    redis_server_needed();
    redis_server_start(&server, NULL);
    raw_begin(&raw, &server);
    struct coord_elector *elector = our_begin(&server);
    our_acquire(elector); /* connects, and waits out the lease that a young server owes */
    our_release(elector);
    compare_pairs(elector, &raw);
    compare_renewals(elector, &raw);
    coord_elector_free(elector, false);
    redisFree(raw.redis);
    redis_server_stop(&server);
    return 0;
}
