/* SPDX-License-Identifier: MIT
 * tests/bench/bench_redis.c - the Redis elector against raw hiredis with the same scripts.
 *
 * Both over a unix socket to one server, in turns, with one who listens for resignations, as every
 * candidate does; it prints medians and their ratio. Best read with client and server on one
 * processor: taskset -c 0.
 */
#include "coord/elector.h"
#include "electors/redis.h"
#include "electors/redis_scripts.h"
#include "tests/bench/measure.h"
#include "tests/support/fleet.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

#include <poll.h>

enum {
    ROUNDS = 31,
    OPERATIONS = 500,
    TTL = 15000
};

#define OWNER "0123456789abcdef0123456789abcdef"

/* ---------------------------------------------------------------- raw hiredis */

struct raw {
    redisContext *context;
    redisContext *listener;
    unsigned attempt;
    long long fence;
};

static redisReply *evalsha(struct raw *raw, enum coord_verb verb, int argc, const char **arguments)
{
    static const char *const keys[] = {"coord:{raw}:lease", "coord:{raw}:fence", "coord:{raw}:ask"};
    const struct coord__redis_script *script = coord__redis_script(verb);
    const char *argv[16] = {"EVALSHA", script->sha1, script->keys == 2 ? "2" : "3"};
    size_t bytes[16];
    int count = 3;
    for (int i = 0; i < script->keys; i++) {
        argv[count++] = keys[i];
    }
    for (int i = 0; i < argc; i++) {
        argv[count++] = arguments[i];
    }
    for (int i = 0; i < count; i++) {
        bytes[i] = strlen(argv[i]);
    }
    redisReply *reply = redisCommandArgv(raw->context, count, argv, bytes);
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        fprintf(stderr, "raw: %s\n", reply != NULL ? reply->str : "broken");
        exit(1);
    }
    return reply;
}

static void raw_acquire(struct raw *raw)
{
    char attempt[16];
    snprintf(attempt, sizeof attempt, "%u", ++raw->attempt);
    const char *arguments[] = {OWNER, attempt, "15000", "0", "raw", "", "", "0"};
    redisReply *reply = evalsha(raw, COORD_VERB_ACQUIRE, 8, arguments);
    raw->fence = reply->element[2]->integer;
    freeReplyObject(reply);
}

static void raw_line(const struct raw *raw, char *line, char *fence)
{
    snprintf(line, 128, "coord1 %lld %u " OWNER " ", raw->fence, raw->attempt);
    snprintf(fence, 24, "%lld", raw->fence);
}

static void raw_renew(struct raw *raw)
{
    char line[128];
    char fence[24];
    raw_line(raw, line, fence);
    const char *arguments[] = {line, "15000", fence, "", ""};
    freeReplyObject(evalsha(raw, COORD_VERB_RENEW, 5, arguments));
}

/* With the word to those who wait, in one write, as the elector does it. */
static void raw_release(struct raw *raw)
{
    char line[128];
    char fence[24];
    void *reply = NULL;
    raw_line(raw, line, fence);
    const struct coord__redis_script *script = coord__redis_script(COORD_VERB_RELEASE);
    const char *release[] = {"EVALSHA",
                             script->sha1,
                             "3",
                             "coord:{raw}:lease",
                             "coord:{raw}:fence",
                             "coord:{raw}:ask",
                             line,
                             fence,
                             "",
                             "0"};
    const char *publish[] = {"PUBLISH", "coord:{raw}:events", "released 1795967166558649"};
    redisAppendCommandArgv(raw->context, 10, release, NULL);
    redisAppendCommandArgv(raw->context, 3, publish, NULL);
    for (int i = 0; i < 2; i++) {
        if (redisGetReply(raw->context, &reply) != REDIS_OK) {
            exit(1);
        }
        freeReplyObject(reply);
    }
    if (redisGetReply(raw->listener, &reply) != REDIS_OK) {
        exit(1);
    }
    freeReplyObject(reply);
}

/* ---------------------------------------------------------------- the elector */

static void turn(struct coord_elector *elector)
{
    struct coord_descriptor wanted[COORD_DESCRIPTORS_MAX];
    struct pollfd fds[COORD_DESCRIPTORS_MAX];
    const size_t count = coord_elector_descriptors(elector, wanted);
    for (size_t i = 0; i < count; i++) {
        fds[i] = (struct pollfd){
            .fd = wanted[i].fd,
            .events = (short)((wanted[i].read ? POLLIN : 0) | (wanted[i].write ? POLLOUT : 0))};
    }
    poll(fds, (nfds_t)count, 100);
    coord_elector_process(elector, fleet_now());
}

static void take_edges(struct coord_lease *lease)
{
    struct coord_edge edge;
    while (coord_lease_next_edge(lease, &edge)) {
        coord_lease_edge_done(lease, fleet_now());
    }
}

static void ours_acquire(struct coord_elector *elector)
{
    struct coord_lease *lease = coord_elector_lease(elector);
    coord_lease_stand(lease, fleet_now());
    coord_elector_process(elector, fleet_now());
    while (!coord_elector_leading_at(elector, fleet_now())) {
        turn(elector);
    }
    take_edges(lease);
}

static void ours_release(struct coord_elector *elector)
{
    struct coord_lease *lease = coord_elector_lease(elector);
    coord_lease_withdraw(lease, fleet_now());
    take_edges(lease);
    coord_elector_process(elector, fleet_now());
    take_edges(lease);
    while (!coord_lease_settled(lease)) {
        coord_elector_process(elector, fleet_now());
        take_edges(lease);
        if (!coord_lease_settled(lease)) {
            turn(elector);
            take_edges(lease);
        }
    }
}

static void ours_renew(struct coord_elector *elector)
{
    struct coord_lease *lease = coord_elector_lease(elector);
    coord_lease_renew(lease, fleet_now());
    coord_elector_process(elector, fleet_now());
    while (lease->request.verb != COORD_VERB_NONE) {
        turn(elector);
    }
}

/* ---------------------------------------------------------------- both */

static struct raw raw;

static void one(double *ours_pair, double *raw_pair, double *ours_renewal, double *raw_renewal,
                struct coord_elector *elector)
{
    double start = now_us();
    for (int i = 0; i < OPERATIONS; i++) {
        raw_acquire(&raw);
        raw_release(&raw);
    }
    *raw_pair = (now_us() - start) / OPERATIONS;
    start = now_us();
    for (int i = 0; i < OPERATIONS; i++) {
        ours_acquire(elector);
        ours_release(elector);
    }
    *ours_pair = (now_us() - start) / OPERATIONS;
    raw_acquire(&raw);
    start = now_us();
    for (int i = 0; i < OPERATIONS; i++) {
        raw_renew(&raw);
    }
    *raw_renewal = (now_us() - start) / OPERATIONS;
    raw_release(&raw);
    ours_acquire(elector);
    ours_renew(elector);
    start = now_us();
    for (int i = 0; i < OPERATIONS; i++) {
        ours_renew(elector);
    }
    *ours_renewal = (now_us() - start) / OPERATIONS;
    ours_release(elector);
}

static void run(void **state)
{
    static const char *const none[] = {NULL};
    static struct redis_server server;
    static struct fleet fleet;
    double values[4][ROUNDS];
    (void)state;
    redis_server_start(&server, none);
    fleet_init(&fleet, coord_redis_elector());
    const struct fleet_member_options options = {
        .name = "ours", .identity = "ours", .uri = server.uri, .ttl = TTL};
    struct fleet_member *member = fleet_add(&fleet, &options);
    const struct coord_request init = {.verb = COORD_VERB_INIT};
    assert_int_equal(fleet_query(&fleet, member, &init), COORD_DONE);
    raw.context = redis_server_connect(&server);
    raw.listener = redis_server_connect(&server);
    freeReplyObject(redisCommand(raw.listener, "SUBSCRIBE coord:{raw}:events"));
    for (int verb = COORD_VERB_ACQUIRE; verb <= COORD_VERB_INIT; verb++) {
        freeReplyObject(redisCommand(raw.context, "SCRIPT LOAD %s",
                                     coord__redis_script((enum coord_verb)verb)->body));
    }
    for (int i = 0; i < ROUNDS; i++) {
        one(&values[0][i], &values[1][i], &values[2][i], &values[3][i], member->elector);
    }
    const double pair = median(values[0], ROUNDS);
    const double raw_pair = median(values[1], ROUNDS);
    const double renewal = median(values[2], ROUNDS);
    const double raw_renewal = median(values[3], ROUNDS);
    printf("redis acquire+release  %6.1f us   raw %6.1f us   %.3fx\n", pair, raw_pair,
           pair / raw_pair);
    printf("redis renew            %6.1f us   raw %6.1f us   %.3fx\n", renewal, raw_renewal,
           renewal / raw_renewal);
    redisFree(raw.context);
    redisFree(raw.listener);
    fleet_fini(&fleet);
    redis_server_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(run)};
    return cmocka_run_group_tests_name("bench_redis", tests, NULL, NULL);
}
