/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_connect.c - logins, runs, names and their addresses, Sentinel.
 */
#include "tests/support/redis_client.h"

#include <hiredis/hiredis.h>

#include <fcntl.h>
#include <poll.h>

/* ---------------------------------------------------------------- who and where */

static void test_login__by_user_and_password_and_to_a_database(void **state)
{
    struct client_world *w = *state;
    struct client c;
    char uri[192];
    redis_server_do(&w->server, "ACL SETUSER anna on >p%%40ss ~* &* +@all");
    snprintf(uri, sizeof uri, "redis+unix://anna:p%%2540ss@%s?db=3", w->server.socket);
    client_open(w, &c, uri);
    const struct coord_redis_call *call = client_ask(&c, "CLIENT", "INFO");
    assert_int_equal(call->state, COORD_REDIS_ANSWERED);
    assert_non_null(strstr(call->reply->str, "user=anna"));
    assert_non_null(strstr(call->reply->str, " db=3 "));
    client_close(&c);
    /* Another database is another connection, and an impossible one an error. */
    snprintf(uri, sizeof uri, "redis+unix://anna:p%%2540ss@%s?db=99", w->server.socket);
    client_open(w, &c, uri);
    client_assert_fails(&c, COORD_E_BAD_URI, "out of range");
    client_close(&c);
    redis_server_do(&w->server, "ACL SETUSER anna -select");
    snprintf(uri, sizeof uri, "redis+unix://anna:p%%2540ss@%s?db=4", w->server.socket);
    client_open(w, &c, uri);
    client_assert_fails(&c, COORD_E_NO_RIGHT, "+select");
    client_close(&c);
    assert_null(strstr(w->logged, "p%40ss"));
}

static void test_login__with_a_password_that_the_server_does_not_want(void **state)
{
    struct client_world *w = *state;
    struct client c;
    char uri[192];
    snprintf(uri, sizeof uri, "redis+unix://:secret@%s", w->server.socket);
    client_open(w, &c, uri);
    client_assert_fails(&c, COORD_E_WRONG_PASSWORD, "take the password out");
    assert_null(strstr(c.calls[0].error.text, "secret"));
    client_close(&c);
}

static void test_run__is_known_for_as_long_as_it_was_the_same(void **state)
{
    struct client_world *w = *state;
    struct client c;
    char first[COORD__REDIS_RUN_MAX];
    char second[COORD__REDIS_RUN_MAX];
    coord_ms age = 1;
    client_open(w, &c, w->server.uri);
    assert_int_equal(coord_redis_run(c.redis, fleet_now(), first, &age), 0);
    assert_int_equal(age, 0);
    client_until_up(&c);
    const coord_ms now = fleet_now();
    uint64_t number = 0;
    while (age == 0) {
        client_drive(&c, 20);
        number = coord_redis_run(c.redis, now + 10000, first, &age);
    }
    assert_int_equal(strlen(first), 81);
    assert_in_range(age, 9000, 10100); /* less one percent */
    redis_server_do(&w->server, "CLIENT KILL TYPE normal SKIPME yes");
    client_drive(&c, 50);
    client_until_up(&c);
    assert_int_equal(coord_redis_run(c.redis, now, second, &age), number);
    redis_server_kill(&w->server);
    redis_server_again(&w->server);
    client_drive(&c, 50);
    client_until_up(&c);
    assert_true(coord_redis_run(c.redis, fleet_now(), second, &age) != number);
    assert_string_not_equal(first, second);
    assert_true(age < 9000);
    client_close(&c);
}

/* Who is stopped between reading the clock and meeting the server has not known it since then. */
static void test_run__is_known_from_the_first_time_that_was_read_after_it_was_met(void **state)
{
    struct client_world *w = *state;
    struct client c;
    char run[COORD__REDIS_RUN_MAX];
    coord_ms age = 1;
    client_open(w, &c, w->server.uri);
    const coord_ms before = fleet_now();
    client_send(&c, 0, "PING", NULL);
    coord_redis_flush(c.redis, before);
    while (c.calls[0].state != COORD_REDIS_ANSWERED) {
        coord_redis_process(c.redis, before);
    }
    coord_redis_call_clear(&c.calls[0]);
    coord_redis_run(c.redis, before + 5000, run, &age);
    assert_int_equal(age, 0);
    coord_redis_process(c.redis, before + 4000);
    coord_redis_run(c.redis, before + 5000, run, &age);
    assert_in_range(age, 900, 1000);
    client_close(&c);
}

static void test_descriptors__are_closed_on_exec_and_never_block(void **state)
{
    struct client_world *w = *state;
    struct client c;
    struct coord_descriptor d;
    client_open(w, &c, w->server.uri);
    client_until_up(&c);
    assert_true(coord_redis_descriptor(c.redis, &d));
    assert_true((fcntl(d.fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_true((fcntl(d.fd, F_GETFL) & O_NONBLOCK) != 0);
    client_close(&c);
}

/* ---------------------------------------------------------------- addresses */

/* Answers at the second look, with what the test put here. */
struct names {
    struct coord_addresses addresses;
    unsigned asked;
    unsigned looks;
    unsigned dropped;
    bool never;
    bool unknown;
};

static struct coord_resolution *start_name(void *ctx, const char *host)
{
    struct names *names = ctx;
    assert_string_equal(host, "redis.example");
    names->asked++;
    names->looks = 0;
    return (struct coord_resolution *)names;
}

static enum coord_err poll_name(void *ctx, struct coord_resolution *resolution,
                                struct coord_addresses *out, struct coord_error *error)
{
    struct names *names = ctx;
    assert_ptr_equal(resolution, names);
    if (names->never || names->looks++ == 0) {
        return COORD_E_BUSY;
    }
    if (names->unknown) {
        return coord_error_set(error, COORD_E_NAME_UNRESOLVED, "no such name");
    }
    *out = names->addresses;
    return COORD_OK;
}

static void drop_name(void *ctx, struct coord_resolution *resolution)
{
    struct names *names = ctx;
    assert_ptr_equal(resolution, names);
    names->dropped++;
}

static void test_addresses__of_a_name_are_tried_in_turn(void **state)
{
    struct client_world *w = *state;
    struct client c;
    struct names names = {.addresses = {.count = 3, .text = {"127.0.0.2", "::1", "127.0.0.1"}}};
    const struct coord_resolver resolver = {&names, start_name, poll_name, drop_name};
    char uri[64];
    w->config.resolver = &resolver;
    snprintf(uri, sizeof uri, "redis://redis.example:%d", w->server.port);
    client_open(w, &c, uri);
    client_until_up(&c);
    assert_int_equal(names.asked, 1);
    assert_int_equal(names.dropped, 1);
    /* Asked again at each connect: a server may have moved. */
    redis_server_kill(&w->server);
    redis_server_again(&w->server);
    client_until_up(&c);
    assert_true(names.asked > 1);
    assert_int_equal(names.dropped, names.asked);
    client_close(&c);
}

static void test_addresses__that_are_not_found_are_an_error_that_names_the_host(void **state)
{
    struct client_world *w = *state;
    struct client c;
    struct names names = {.unknown = true};
    const struct coord_resolver resolver = {&names, start_name, poll_name, drop_name};
    w->config.resolver = &resolver;
    client_open(w, &c, "redis://redis.example");
    client_assert_fails(&c, COORD_E_NAME_UNRESOLVED, "no such name");
    names.unknown = false;
    names.never = true;
    client_assert_fails(&c, COORD_E_NAME_UNRESOLVED, "redis.example was not resolved in time");
    names.never = false;
    client_assert_fails(&c, COORD_E_NAME_UNRESOLVED, "redis.example has no address");
    client_close(&c);
    assert_int_equal(names.asked, names.dropped);
    w->config.resolver = NULL;
    client_open(w, &c, "redis://redis.example");
    client_assert_fails(&c, COORD_E_NAME_UNRESOLVED, "give an address");
    client_close(&c);
}

static void test_addresses__localhost_needs_no_resolver(void **state)
{
    struct client_world *w = *state;
    struct client c;
    char uri[64];
    snprintf(uri, sizeof uri, "redis://localhost:%d", w->server.port);
    client_open(w, &c, uri);
    client_until_up(&c);
    client_close(&c);
}

/* ---------------------------------------------------------------- Sentinel */

static void await_link(struct redis_server *replica)
{
    for (;;) {
        redisReply *reply = redis_server_command(replica, "INFO replication");
        const bool up = strstr(reply->str, "master_link_status:up") != NULL;
        freeReplyObject(reply);
        if (up) {
            return;
        }
        poll(NULL, 0, 20);
    }
}

/* Until the Sentinel has met the replica, there is nothing to fail over to. */
static void await_replica(struct redis_server *sentinel)
{
    for (;;) {
        redisReply *reply = redis_server_command(sentinel, "SENTINEL replicas main");
        const size_t count = reply->elements;
        freeReplyObject(reply);
        if (count > 0) {
            return;
        }
        poll(NULL, 0, 20);
    }
}

static void test_sentinel__names_the_primary_before_and_after_a_failover(void **state)
{
    static const char *const tcp[] = {"--port", "auto", NULL};
    static struct redis_server replica;
    static struct redis_server sentinel;
    struct client_world *w = *state;
    struct client c;
    char uri[128];
    char run[COORD__REDIS_RUN_MAX];
    coord_ms age = 0;
    redis_server_start(&replica, tcp);
    redis_server_do(&replica, "REPLICAOF 127.0.0.1 %d", w->server.port);
    await_link(&replica);
    redis_server_start_sentinel(&sentinel, w->server.port, "main");
    await_replica(&sentinel);
    /* The first of them is not there. */
    snprintf(uri, sizeof uri, "redis+sentinel://127.0.0.1:1,127.0.0.1:%d/main/2", sentinel.port);
    client_open(w, &c, uri);
    client_until_up(&c);
    assert_non_null(strstr(client_ask(&c, "CLIENT", "INFO")->reply->str, " db=2 "));
    const uint64_t number = coord_redis_run(c.redis, fleet_now(), run, &age);
    redis_server_kill(&w->server);
    client_drive(&c, 20);
    client_until_up(&c);
    assert_true(coord_redis_run(c.redis, fleet_now(), run, &age) != number);
    const struct coord_redis_call *call = client_ask(&c, "INFO", "replication");
    assert_non_null(strstr(call->reply->str, "role:master"));
    client_close(&c);
    snprintf(uri, sizeof uri, "redis+sentinel://127.0.0.1:%d/other", sentinel.port);
    client_open(w, &c, uri);
    client_assert_fails(&c, COORD_E_UNREACHABLE, "no primary named other");
    client_close(&c);
    redis_server_stop(&sentinel);
    redis_server_stop(&replica);
}

static void test_sentinel__is_told_from_what_is_none(void **state)
{
    struct client_world *w = *state;
    struct client c;
    char uri[128];
    snprintf(uri, sizeof uri, "redis+sentinel://127.0.0.1:%d/main", w->server.port);
    client_open(w, &c, uri);
    client_assert_fails(&c, COORD_E_BAD_URI, "no Sentinel");
    client_close(&c);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_sentinel(struct client_world *w, const char *uri, enum coord_err code,
                            const char *cure)
{
    struct client c;
    client_open(w, &c, uri);
    if (code == COORD_OK) {
        client_until_up(&c);
    } else {
        client_assert_fails(&c, code, cure);
    }
    client_close(&c);
}

static void test_sentinel__has_a_login_of_its_own(void **state)
{
    static struct redis_server sentinel;
    struct client_world *w = *state;
    char plain[256];
    char with_file[512];
    char with_user[600];
    char file[128];
    redis_server_do(&w->server, "CONFIG SET requirepass ours");
    redis_server_start_sentinel(&sentinel, w->server.port, "main");
    redis_server_do(&sentinel, "ACL SETUSER asks on >more +sentinel|get-master-addr-by-name");
    redis_server_do(&sentinel, "ACL SETUSER mute on >more");
    redis_server_do(&sentinel, "ACL SETUSER default resetpass >theirs");
    snprintf(file, sizeof file, "%s/password", sentinel.folder);
    snprintf(plain, sizeof plain, "redis+sentinel://:ours@127.0.0.1:%d/main", sentinel.port);
    snprintf(with_file, sizeof with_file, "%s?coord.sentinel_password_file=%s", plain, file);
    assert_sentinel(w, plain, COORD_E_WRONG_PASSWORD, "coord.sentinel_password_file");
    assert_sentinel(w, with_file, COORD_E_WRONG_PASSWORD, "in coord.sentinel_password_file");
    write_file(file, "wrong\n");
    assert_sentinel(w, with_file, COORD_E_WRONG_PASSWORD, "coord.sentinel_user");
    write_file(file, "theirs\n");
    assert_sentinel(w, with_file, COORD_OK, NULL);
    write_file(file, "more\n");
    snprintf(with_user, sizeof with_user, "%s&coord.sentinel_user=asks", with_file);
    assert_sentinel(w, with_user, COORD_OK, NULL);
    snprintf(with_user, sizeof with_user, "%s&coord.sentinel_user=mute", with_file);
    assert_sentinel(w, with_user, COORD_E_NO_RIGHT, "+sentinel|get-master-addr-by-name");
    redis_server_stop(&sentinel);
}

#define CASE(test)     cmocka_unit_test_setup_teardown(test, client_set_up, client_tear_down)
#define TCP_CASE(test) cmocka_unit_test_setup_teardown(test, client_set_up_tcp, client_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(test_login__by_user_and_password_and_to_a_database),
        CASE(test_login__with_a_password_that_the_server_does_not_want),
        CASE(test_run__is_known_for_as_long_as_it_was_the_same),
        CASE(test_run__is_known_from_the_first_time_that_was_read_after_it_was_met),
        CASE(test_descriptors__are_closed_on_exec_and_never_block),
        TCP_CASE(test_addresses__of_a_name_are_tried_in_turn),
        CASE(test_addresses__that_are_not_found_are_an_error_that_names_the_host),
        TCP_CASE(test_addresses__localhost_needs_no_resolver),
        TCP_CASE(test_sentinel__names_the_primary_before_and_after_a_failover),
        TCP_CASE(test_sentinel__is_told_from_what_is_none),
        TCP_CASE(test_sentinel__has_a_login_of_its_own),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_connect", tests, NULL, NULL);
}
