/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_doctor.c - what doctor finds of Redis servers that are set this way or
 * that, and that the fence of the page does what the page says.
 */
#include "electors/redis_doctor.h"

#include "runtime/clock.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

#include <poll.h>
#include <stdlib.h>

enum {
    LEASE = 1000,
    PATIENCE = 60000, /* until another server has noticed */
    PAGE = 64 * 1024
};

struct world {
    struct redis_server server;
    struct redis_server other; /* a replica or a Sentinel */
    struct coord_uri uri;
    struct coord_check list[COORD_CHECKS_MAX];
    size_t count;
};

static struct world world;
static const char *const tcp[] = {"--port", "auto", NULL};

static int set_up(void **state)
{
    redis_server_needed();
    memset(&world, 0, sizeof world);
    *state = &world;
    redis_server_start(&world.server, tcp);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (world.other.folder[0] != '\0') {
        redis_server_stop(&world.other);
    }
    redis_server_stop(&world.server);
    return 0;
}

static void look_for(struct world *w, const char *uri, coord_ms lease)
{
    assert_int_equal(coord_uri_parse(uri, &w->uri, NULL), COORD_OK);
    const struct coord_redis_doctor_config config = {.uri = &w->uri,
                                                     .lease = lease,
                                                     .attempt = PATIENCE,
                                                     .now = coord_clock_now,
                                                     .wall = coord_clock_wall_us};
    w->count = coord_redis_doctor(&config, w->list);
    assert_int_not_equal(w->count, 0);
}

static void look(struct world *w)
{
    look_for(w, w->server.uri, LEASE);
}

static const struct coord_check *find(const struct world *w, const char *name)
{
    const struct coord_check *found = NULL;
    for (size_t i = 0; i < w->count; i++) {
        if (strcmp(w->list[i].name, name) == 0) {
            assert_null(found); /* one line a check */
            found = &w->list[i];
        }
    }
    if (found == NULL) {
        fail_msg("no line \"%s\"", name);
    }
    return found;
}

/* A verdict, what was seen, and a cure where one is needed. */
static void expect(const struct world *w, const char *name, enum coord_verdict verdict,
                   const char *value, const char *cure)
{
    const struct coord_check *check = find(w, name);
    if (check->verdict != verdict || strstr(check->value, value) == NULL ||
        strstr(check->cure, cure) == NULL) {
        fail_msg("%s: verdict %d, value \"%s\", cure \"%s\"", name, (int)check->verdict,
                 check->value, check->cure);
    }
    assert_int_equal(check->cure[0] == '\0', verdict == COORD_VERDICT_OK);
    assert_true(check->why[0] != '\0');
}

static long long ask_number(const struct world *w, const char *command, size_t element)
{
    redisReply *reply = redis_server_command(&w->server, command);
    const redisReply *of = reply->type == REDIS_REPLY_ARRAY ? reply->element[element] : reply;
    const long long number = of->integer;
    freeReplyObject(reply);
    return number;
}

static void await_text(const struct world *w, const char *command, const char *text)
{
    for (int i = 0; i < PATIENCE / 20; i++) {
        redisReply *reply = redis_server_command(&w->server, command);
        const bool there = strstr(reply->str, text) != NULL;
        freeReplyObject(reply);
        if (there) {
            return;
        }
        poll(NULL, 0, 20);
    }
    fail_msg("%s never said %s", command, text);
}

static void join_replica(struct world *w)
{
    redis_server_start(&w->other, tcp);
    redis_server_do(&w->server, "CONFIG SET repl-diskless-sync-delay 0");
    redis_server_do(&w->server, "CONFIG SET min-replicas-max-lag 3600"); /* however slow it is */
    redis_server_do(&w->other, "REPLICAOF 127.0.0.1 %d", w->server.port);
    await_text(w, "INFO replication", "state=online");
}

/* ---------------------------------------------------------------- the server */

static void test_redis_doctor__knows_the_version_and_that_it_is_no_cluster(void **state)
{
    struct world *w = *state;
    look(w);
    expect(w, "version", COORD_VERDICT_OK, ".", "");
    expect(w, "primary", COORD_VERDICT_OK, "master", "");
    expect(w, "cluster", COORD_VERDICT_OK, "no", "");
    expect(w, "clients", COORD_VERDICT_OK, "in use", "");
    expect(w, "round trip", COORD_VERDICT_OK, "us at best", "");
    expect(w, "replicas", COORD_VERDICT_OK, "0", "");
    expect(w, "min-replicas", COORD_VERDICT_OK, "0 needed", "");
    expect(w, "sentinels", COORD_VERDICT_OK, "0 watch", "");
    expect(w, "tls", COORD_VERDICT_OK, "within this host", "");
    expect(w, "tcp-keepalive", COORD_VERDICT_OK, "300", "");
}

/* Its bus has a port of its own: by default it is 10000 above the other, which may be too high. */
static void test_redis_doctor__warns_of_a_node_of_a_cluster(void **state)
{
    static char bus[16];
    static const char *const options[] = {"--cluster-enabled", "yes", "--cluster-port", bus, NULL};
    struct world *w = *state;
    snprintf(bus, sizeof bus, "%d", w->server.port); /* was free, and is again */
    redis_server_stop(&w->server);
    memset(&w->server, 0, sizeof w->server);
    redis_server_start(&w->server, options);
    look(w);
    expect(w, "cluster", COORD_VERDICT_WARN, "yes", "node of the election's slot");
}

static void test_redis_doctor__fails_a_replica(void **state)
{
    struct world *w = *state;
    redis_server_do(&w->server, "REPLICAOF 127.0.0.1 1");
    look(w);
    expect(w, "connection", COORD_VERDICT_FAIL, "STANDBY", "primary");
    assert_int_equal(w->count, 1);
}

static void test_redis_doctor__warns_that_replication_is_asynchronous(void **state)
{
    struct world *w = *state;
    join_replica(w);
    look(w);
    expect(w, "replicas", COORD_VERDICT_WARN, "1, asynchronous", "fence");
    expect(w, "min-replicas", COORD_VERDICT_OK, "0 needed, 1 in time", "");
    redis_server_do(&w->server, "CONFIG SET min-replicas-to-write 1");
    await_text(w, "INFO replication", "min_slaves_good_slaves:1");
    look(w);
    expect(w, "min-replicas", COORD_VERDICT_WARN, "1 needed, 1 in time", "one replica more");
    expect(w, "writes", COORD_VERDICT_OK, "taken", "");
    redis_server_do(&w->server, "CONFIG SET min-replicas-to-write 2");
    look(w);
    expect(w, "min-replicas", COORD_VERDICT_WARN, "2 needed, 1 in time", "one replica more");
    expect(w, "writes", COORD_VERDICT_FAIL, "READ_ONLY", "");
}

static void test_redis_doctor__tells_that_a_sentinel_watches_a_server_named_directly(void **state)
{
    struct world *w = *state;
    char uri[128];
    redis_server_start_sentinel(&w->other, w->server.port, "main");
    for (int i = 0; ask_number(w, "PUBSUB NUMSUB __sentinel__:hello", 1) == 0; i++) {
        assert_true(i < PATIENCE / 20);
        poll(NULL, 0, 20);
    }
    look(w);
    expect(w, "sentinels", COORD_VERDICT_WARN, "1 watch", "redis+sentinel://");
    snprintf(uri, sizeof uri, "redis+sentinel://127.0.0.1:%d/main", w->other.port);
    look_for(w, uri, LEASE);
    expect(w, "sentinels", COORD_VERDICT_WARN, "1 watch", "three at least");
}

static void test_redis_doctor__warns_of_a_server_younger_than_the_lease(void **state)
{
    struct world *w = *state;
    look_for(w, w->server.uri, 60 * 60 * 1000);
    expect(w, "uptime", COORD_VERDICT_WARN, " s", "wait for a lease");
    look_for(w, w->server.uri, 1);
    while (find(w, "uptime")->verdict != COORD_VERDICT_OK) { /* after two seconds */
        poll(NULL, 0, 100);
        look_for(w, w->server.uri, 1);
    }
}

/* ---------------------------------------------------------------- its settings */

static void test_redis_doctor__judges_each_policy_of_eviction(void **state)
{
    struct world *w = *state;
    redis_server_do(&w->server, "CONFIG SET maxmemory-policy volatile-lru");
    look(w);
    expect(w, "eviction", COORD_VERDICT_WARN, "volatile-lru", "noeviction"); /* no limit yet */
    redis_server_do(&w->server, "CONFIG SET maxmemory 100mb");
    look(w);
    expect(w, "eviction", COORD_VERDICT_FAIL, "volatile-lru", "noeviction");
    redis_server_do(&w->server, "CONFIG SET maxmemory-policy noeviction");
    look(w);
    expect(w, "eviction", COORD_VERDICT_OK, "noeviction", "");
}

static void test_redis_doctor__warns_where_few_clients_are_let_in(void **state)
{
    struct world *w = *state;
    redis_server_do(&w->server, "CONFIG SET maxclients 8");
    look(w);
    expect(w, "clients", COORD_VERDICT_WARN, "of 8 in use", "maxclients");
}

static void test_redis_doctor__warns_of_connections_that_are_closed_or_never_are(void **state)
{
    struct world *w = *state;
    redis_server_do(&w->server, "CONFIG SET tcp-keepalive 0");
    redis_server_do(&w->server, "CONFIG SET timeout 1");
    look(w);
    expect(w, "tcp-keepalive", COORD_VERDICT_WARN, "0", "300");
    expect(w, "idle timeout", COORD_VERDICT_WARN, "1", "timeout");
}

static void test_redis_doctor__tells_how_the_server_keeps_what_it_has(void **state)
{
    struct world *w = *state;
    look(w);
    expect(w, "persistence", COORD_VERDICT_WARN, "none", "appendonly");
    redis_server_do(&w->server, "CONFIG SET save %s", "3600 1");
    look(w);
    expect(w, "persistence", COORD_VERDICT_WARN, "snapshots only", "appendonly");
    redis_server_do(&w->server, "CONFIG SET appendonly yes");
    look(w);
    expect(w, "persistence", COORD_VERDICT_OK, "append-only", "");
}

static void test_redis_doctor__warns_of_what_goes_over_a_network_in_the_clear(void **state)
{
    struct world *w = *state;
    char uri[64];
    snprintf(uri, sizeof uri, "redis://0.0.0.0:%d", w->server.port); /* this host, nonetheless */
    look_for(w, uri, LEASE);
    expect(w, "tls", COORD_VERDICT_WARN, "not encrypted", "rediss://");
    look_for(w, w->server.tcp_uri, LEASE);
    expect(w, "tls", COORD_VERDICT_OK, "within this host", "");
}

static uint64_t a_day_ahead(void)
{
    return coord_clock_wall_us() + 86400ULL * 1000 * 1000;
}

static uint64_t a_minute_behind(void)
{
    return coord_clock_wall_us() - 60ULL * 1000 * 1000;
}

static void test_redis_doctor__judges_how_far_the_clocks_are_apart(void **state)
{
    struct world *w = *state;
    look(w);
    expect(w, "clock", COORD_VERDICT_OK, "ms apart", "");
    struct coord_redis_doctor_config config = {.uri = &w->uri,
                                               .lease = LEASE,
                                               .attempt = PATIENCE,
                                               .now = coord_clock_now,
                                               .wall = a_minute_behind};
    w->count = coord_redis_doctor(&config, w->list);
    expect(w, "clock", COORD_VERDICT_WARN, "ms apart", "time server");
    config.wall = a_day_ahead;
    w->count = coord_redis_doctor(&config, w->list);
    expect(w, "clock", COORD_VERDICT_FAIL, "ms apart", "time server");
}

static void test_redis_doctor__says_which_right_a_check_would_need(void **state)
{
    struct world *w = *state;
    char uri[192];
    redis_server_do(&w->server, "ACL SETUSER few on >secret ~coord:* &coord:* +@all -config "
                                "-pubsub");
    snprintf(uri, sizeof uri, "redis+unix://few:secret@%s", w->server.socket);
    look_for(w, uri, LEASE);
    expect(w, "sentinels", COORD_VERDICT_SKIPPED, "not told", "+pubsub|numsub");
    expect(w, "min-replicas", COORD_VERDICT_SKIPPED, "to itself", "");
    expect(w, "tcp-keepalive", COORD_VERDICT_SKIPPED, "to itself", "");
    expect(w, "elector's rights", COORD_VERDICT_OK, "granted", "");
}

/* ---------------------------------------------------------------- the page's fence */

/* The first block of Lua on the page, as it stands there. */
static void read_script(char out[PAGE])
{
    static const char opening[] = "\n```lua\n";
    FILE *page = fopen("docs/guarantees.md", "r");
    if (page == NULL) {
        fail_msg("docs/guarantees.md is not there: tests start in the project's folder");
    }
    const size_t got = fread(out, 1, PAGE - 1, page);
    fclose(page);
    out[got] = '\0';
    char *from = strstr(out, opening);
    assert_non_null(from);
    from += strlen(opening);
    char *to = strstr(from, "```");
    assert_non_null(to);
    *to = '\0';
    memmove(out, from, (size_t)(to - from) + 1);
}

static redisReply *write_with(const struct world *w, const char *script, const char *fence,
                              const char *value)
{
    return redis_server_command(&w->server, "EVAL %s 2 data guard %s %s", script, fence, value);
}

static void expect_stored(const struct world *w, const char *value, const char *fence)
{
    redisReply *data = redis_server_command(&w->server, "GET data");
    redisReply *guard = redis_server_command(&w->server, "GET guard");
    assert_string_equal(data->str, value);
    assert_string_equal(guard->str, fence);
    freeReplyObject(data);
    freeReplyObject(guard);
}

static void test_fence__of_the_page_takes_newer_ones_and_refuses_older_ones(void **state)
{
    /* As large as fences are: one apart, they are the same in the %.14g of Lua. */
    static const char older[] = "7318349394477055";
    static const char newer[] = "7318349394477056";
    static char script[PAGE];
    struct world *w = *state;
    read_script(script);
    static const struct {
        const char *fence, *value;
        bool taken;
    } writes[] = {
        {older, "first", true}, {older, "again", true}, {newer, "newer", true},
        {older, "late", false}, {newer, "on", true},
    };
    const char *value = NULL;
    const char *fence = NULL;
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        redisReply *reply = write_with(w, script, writes[i].fence, writes[i].value);
        if (writes[i].taken) {
            assert_int_equal(reply->type, REDIS_REPLY_STATUS);
            assert_string_equal(reply->str, "OK");
            value = writes[i].value;
            fence = writes[i].fence;
        } else {
            assert_int_equal(reply->type, REDIS_REPLY_ERROR);
            assert_int_equal(strncmp(reply->str, "STALE ", 6), 0);
        }
        freeReplyObject(reply);
        expect_stored(w, value, fence);
    }
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(test_redis_doctor__knows_the_version_and_that_it_is_no_cluster),
        CASE(test_redis_doctor__warns_of_a_node_of_a_cluster),
        CASE(test_redis_doctor__fails_a_replica),
        CASE(test_redis_doctor__warns_that_replication_is_asynchronous),
        CASE(test_redis_doctor__tells_that_a_sentinel_watches_a_server_named_directly),
        CASE(test_redis_doctor__warns_of_a_server_younger_than_the_lease),
        CASE(test_redis_doctor__judges_each_policy_of_eviction),
        CASE(test_redis_doctor__warns_where_few_clients_are_let_in),
        CASE(test_redis_doctor__warns_of_connections_that_are_closed_or_never_are),
        CASE(test_redis_doctor__tells_how_the_server_keeps_what_it_has),
        CASE(test_redis_doctor__warns_of_what_goes_over_a_network_in_the_clear),
        CASE(test_redis_doctor__judges_how_far_the_clocks_are_apart),
        CASE(test_redis_doctor__says_which_right_a_check_would_need),
        CASE(test_fence__of_the_page_takes_newer_ones_and_refuses_older_ones),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_doctor", tests, NULL, NULL);
}
