/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_connection.c - one connection and its users: who gets which answer, and
 * what is said when there is none.
 */
#include "connections/redis.h"

#include "tests/support/fleet.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    ATTEMPT = 300,
    CALLS = 40
};

struct world {
    struct redis_server server;
    struct proxy proxy;
    bool has_proxy;
    struct coord_uri uri;
    struct coord_share share;
    struct coord_redis_config config;
    struct coord_log log;
    char logged[16 * 1024];
    size_t logged_bytes;
    struct coord_error error;
};

/* One user of a connection, with calls of its own. */
struct client {
    struct world *world;
    struct coord_redis *redis;
    struct coord_redis_user user;
    struct coord_redis_call calls[CALLS];
};

static void note(void *ctx, const struct coord_log_record *record)
{
    struct world *w = ctx;
    const size_t room = sizeof w->logged - w->logged_bytes;
    const int bytes = snprintf(w->logged + w->logged_bytes, room, "%s %s: %s\n",
                               coord_err_name(record->code), record->subject, record->text);
    w->logged_bytes += bytes > 0 && (size_t)bytes < room ? (size_t)bytes : 0;
}

static int set_up_with(void **state, const char *const *options)
{
    struct world *w = calloc(1, sizeof *w);
    *state = w;
    redis_server_start(&w->server, options);
    w->config.share = &w->share;
    w->config.seed = 7;
    w->log = (struct coord_log){.fn = note, .ctx = w, .level = COORD_LOG_DEBUG};
    return 0;
}

static int set_up(void **state)
{
    static const char *const none[] = {NULL};
    return set_up_with(state, none);
}

static int set_up_tcp(void **state)
{
    static const char *const tcp[] = {"--port", "auto", NULL};
    return set_up_with(state, tcp);
}

static int set_up_proxy(void **state)
{
    set_up(state);
    struct world *w = *state;
    proxy_start(&w->proxy, w->server.socket);
    w->has_proxy = true;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    assert_null(w->share.first); /* whatever was opened was closed */
    if (w->has_proxy) {
        proxy_stop(&w->proxy);
    }
    redis_server_stop(&w->server);
    free(w);
    return 0;
}

/* ---------------------------------------------------------------- driving */

static void open_client(struct world *w, struct client *c, const char *uri)
{
    memset(c, 0, sizeof *c);
    c->world = w;
    assert_int_equal(coord_uri_parse(uri, &w->uri, &w->error), COORD_OK);
    w->config.uri = &w->uri;
    c->user.log = &w->log;
    c->user.attempt = ATTEMPT;
    const enum coord_err rc = coord_redis_open(&w->config, &c->user, &c->redis, &w->error);
    if (rc != COORD_OK) {
        fail_msg("%s: %s", coord_err_name(rc), w->error.text);
    }
}

static void close_client(struct client *c)
{
    for (int i = 0; i < CALLS; i++) {
        coord_redis_forget(c->redis, &c->calls[i]);
    }
    coord_redis_close(c->redis, &c->user, false);
}

static void send_words(struct client *c, int call, const char *first, const char *second)
{
    const char *argv[] = {first, second};
    const size_t bytes[] = {strlen(first), second != NULL ? strlen(second) : 0};
    coord_redis_send(c->redis, call >= 0 ? &c->calls[call] : NULL, second != NULL ? 2 : 1, argv,
                     bytes, fleet_now());
}

static void flush(struct client *c)
{
    coord_redis_flush(c->redis, fleet_now());
}

static void wait_for_something(struct client *c)
{
    struct coord_descriptor wanted;
    struct pollfd fd = {.fd = -1};
    if (coord_redis_descriptor(c->redis, &wanted)) {
        fd.fd = wanted.fd;
        fd.events = (short)((wanted.read ? POLLIN : 0) | (wanted.write ? POLLOUT : 0));
    }
    const coord_ms wait = coord_ms_sub(coord_redis_deadline(c->redis), fleet_now());
    poll(&fd, 1, (int)coord_ms_min(wait, 20));
}

static bool is_over(const struct client *c, int call)
{
    return c->calls[call].state > COORD_REDIS_WAITING;
}

static void until_over(struct client *c, int call)
{
    const coord_ms end = fleet_now() + FLEET_GUARD;
    coord_redis_process(c->redis, fleet_now());
    while (!is_over(c, call)) {
        if (fleet_now() > end) {
            fail_msg("no end of it; the log says:\n%s", c->world->logged);
        }
        wait_for_something(c);
        coord_redis_process(c->redis, fleet_now());
    }
}

static void drive(struct client *c, coord_ms duration)
{
    const coord_ms end = fleet_now() + duration;
    while (fleet_now() < end) {
        coord_redis_process(c->redis, fleet_now());
        wait_for_something(c);
    }
}

/* Send one command and wait for its end. */
static const struct coord_redis_call *ask(struct client *c, const char *first, const char *second)
{
    coord_redis_call_clear(&c->calls[0]);
    send_words(c, 0, first, second);
    flush(c);
    until_over(c, 0);
    return &c->calls[0];
}

static void until_up(struct client *c)
{
    const coord_ms end = fleet_now() + FLEET_GUARD;
    while (ask(c, "PING", NULL)->state != COORD_REDIS_ANSWERED) {
        assert_true(fleet_now() < end);
        drive(c, 20);
    }
    coord_redis_call_clear(&c->calls[0]);
}

static void assert_fails(struct client *c, enum coord_err code, const char *words)
{
    const struct coord_redis_call *call = ask(c, "PING", NULL);
    assert_int_equal(call->state, COORD_REDIS_FAILED);
    if (call->error.code != code || strstr(call->error.text, words) == NULL) {
        fail_msg("%s: %s", coord_err_name(call->error.code), call->error.text);
    }
}

/* ---------------------------------------------------------------- answers */

static void test_calls__are_answered_in_order_each_to_its_own(void **state)
{
    struct world *w = *state;
    struct client c;
    char text[CALLS][16];
    open_client(w, &c, w->server.uri);
    for (int i = 0; i < CALLS; i++) {
        snprintf(text[i], sizeof text[i], "number %d", i);
        send_words(&c, i, "ECHO", text[i]);
    }
    flush(&c);
    for (int i = 0; i < CALLS; i++) {
        until_over(&c, i);
        assert_int_equal(c.calls[i].state, COORD_REDIS_ANSWERED);
        assert_string_equal(c.calls[i].reply->str, text[i]);
    }
    close_client(&c);
}

static void test_calls__that_are_forgotten_leave_their_answers_to_nobody(void **state)
{
    struct world *w = *state;
    struct client a;
    struct client b;
    open_client(w, &a, w->server.uri);
    open_client(w, &b, w->server.uri);
    assert_ptr_equal(a.redis, b.redis);
    until_up(&a);
    send_words(&a, 0, "ECHO", "a");
    flush(&a);
    send_words(&b, 0, "ECHO", "b");
    send_words(&a, 1, "ECHO", "c");
    coord_redis_forget(a.redis, &a.calls[0]); /* on the wire */
    coord_redis_forget(b.redis, &b.calls[0]); /* not yet: it is cut out */
    assert_string_equal(ask(&b, "ECHO", "d")->reply->str, "d");
    assert_string_equal(a.calls[1].reply->str, "c");
    assert_int_equal(a.calls[0].state, COORD_REDIS_IDLE);
    close_client(&a);
    close_client(&b);
}

static void test_calls__that_nobody_waits_for_are_logged_when_refused(void **state)
{
    struct world *w = *state;
    struct client c;
    open_client(w, &c, w->server.uri);
    redis_server_do(&w->server, "ACL SETUSER default -pubsub");
    send_words(&c, -1, "PUBSUB", "CHANNELS");
    assert_int_equal(ask(&c, "PING", NULL)->state, COORD_REDIS_ANSWERED);
    send_words(&c, -1, "PUBSUB", "CHANNELS");
    assert_int_equal(ask(&c, "PING", NULL)->state, COORD_REDIS_ANSWERED);
    const char *first = strstr(w->logged, "NO_RIGHT");
    assert_non_null(first);
    assert_null(strstr(first + 1, "NO_RIGHT")); /* once */
    close_client(&c);
}

static void test_calls__on_a_broken_connection_are_unknown_or_failed_as_is_true(void **state)
{
    struct world *w = *state;
    struct client c;
    open_client(w, &c, w->proxy.uri);
    until_up(&c);
    proxy_hold(&w->proxy, true);
    send_words(&c, 1, "ECHO", "written");
    flush(&c);
    send_words(&c, 2, "ECHO", "not written"); /* nobody flushes it */
    proxy_cut(&w->proxy, true);
    until_over(&c, 1);
    assert_int_equal(c.calls[1].state, COORD_REDIS_UNKNOWN);
    assert_int_equal(c.calls[1].error.code, COORD_E_UNREACHABLE);
    assert_int_equal(c.calls[2].state, COORD_REDIS_FAILED);
    close_client(&c);
}

static void test_calls__that_take_too_long_end_the_connection_and_a_new_one_begins(void **state)
{
    struct world *w = *state;
    struct client a;
    struct client b;
    struct coord_descriptor before;
    struct coord_descriptor after;
    open_client(w, &a, w->proxy.uri);
    open_client(w, &b, w->proxy.uri);
    until_up(&a);
    assert_true(coord_redis_descriptor(a.redis, &before));
    proxy_hold(&w->proxy, true);
    send_words(&a, 1, "ECHO", "lost");
    send_words(&b, 1, "ECHO", "innocent");
    flush(&a);
    drive(&b, 20);
    coord_redis_stuck(a.redis, &a.calls[1], fleet_now());
    assert_int_equal(a.calls[1].state, COORD_REDIS_IDLE);
    assert_int_equal(b.calls[1].state, COORD_REDIS_UNKNOWN);
    assert_int_equal(b.calls[1].error.code, COORD_E_NO_ANSWER);
    proxy_hold(&w->proxy, false);
    until_up(&a);
    assert_true(coord_redis_descriptor(a.redis, &after));
    assert_true(after.generation != before.generation);
    close_client(&a);
    close_client(&b);
}

static void test_calls__of_many_bytes_go_out_as_the_socket_takes_them(void **state)
{
    struct world *w = *state;
    struct client c;
    static char text[3 * 1024 * 1024];
    memset(text, 'x', sizeof text - 1);
    open_client(w, &c, w->proxy.uri);
    until_up(&c);
    proxy_stall(&w->proxy, true);
    send_words(&c, 1, "SET", "k"); /* a wrong number of arguments, between two that are right */
    send_words(&c, 2, "ECHO", text);
    flush(&c);
    struct coord_descriptor wanted;
    assert_true(coord_redis_descriptor(c.redis, &wanted));
    assert_true(wanted.write);
    proxy_stall(&w->proxy, false);
    until_over(&c, 2);
    assert_int_equal(c.calls[1].reply->type, REDIS_REPLY_ERROR);
    assert_int_equal(c.calls[2].reply->len, sizeof text - 1);
    close_client(&c);
}

/* ---------------------------------------------------------------- no server */

static void test_connection__to_nobody_fails_at_once_and_says_it_once(void **state)
{
    struct world *w = *state;
    struct client c;
    redis_server_kill(&w->server);
    open_client(w, &c, w->server.uri);
    for (int i = 0; i < 5; i++) {
        assert_fails(&c, COORD_E_UNREACHABLE, "is the server running");
    }
    const char *first = strstr(w->logged, "UNREACHABLE");
    assert_non_null(first);
    assert_null(strstr(first + 1, "UNREACHABLE"));
    redis_server_again(&w->server);
    until_up(&c);
    assert_non_null(strstr(w->logged, "connected again"));
    close_client(&c);
}

static void test_connection__that_waits_keeps_a_request_until_the_server_is_there(void **state)
{
    struct world *w = *state;
    struct client c;
    open_client(w, &c, w->proxy.uri);
    proxy_stall(&w->proxy, true);
    send_words(&c, 0, "ECHO", "early");
    flush(&c);
    drive(&c, 50);
    assert_int_equal(c.calls[0].state, COORD_REDIS_WAITING);
    proxy_stall(&w->proxy, false);
    until_over(&c, 0);
    assert_string_equal(c.calls[0].reply->str, "early");
    close_client(&c);
}

static void test_connection__to_one_who_says_nothing_is_given_up(void **state)
{
    struct world *w = *state;
    struct client c;
    open_client(w, &c, w->proxy.uri);
    proxy_stall(&w->proxy, true);
    assert_fails(&c, COORD_E_NO_ANSWER, "is it stopped?");
    proxy_stall(&w->proxy, false);
    until_up(&c);
    close_client(&c);
}

static void test_connection__to_something_else_says_so(void **state)
{
    struct world *w = *state;
    struct client c;
    struct proxy *p = &w->proxy;
    /* A server that greets like one of mail: here the other end of a pair of sockets. */
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    char uri[64];
    (void)p;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", ntohs(address.sin_port));
    open_client(w, &c, uri);
    send_words(&c, 0, "PING", NULL);
    flush(&c);
    const int fd = accept(listener, NULL, NULL);
    assert_int_equal(send(fd, "220 mail.example\r\n", 18, MSG_NOSIGNAL), 18);
    until_over(&c, 0);
    assert_int_equal(c.calls[0].error.code, COORD_E_PROTOCOL);
    assert_non_null(strstr(c.calls[0].error.text, "is the port"));
    close(fd);
    close(listener);
    close_client(&c);
}

static void test_connection__to_a_replica_is_refused_until_it_is_promoted(void **state)
{
    struct world *w = *state;
    struct client c;
    redis_server_do(&w->server, "REPLICAOF 127.0.0.1 1");
    open_client(w, &c, w->server.uri);
    assert_fails(&c, COORD_E_STANDBY, "replica of 127.0.0.1");
    redis_server_do(&w->server, "REPLICAOF NO ONE");
    until_up(&c);
    /* And while it is open: the first refusal closes it. */
    redis_server_do(&w->server, "REPLICAOF 127.0.0.1 1");
    coord_redis_call_clear(&c.calls[0]);
    const char *argv[] = {"SET", "k", "v"};
    const size_t bytes[] = {3, 1, 1};
    coord_redis_send(c.redis, &c.calls[1], 3, argv, bytes, fleet_now());
    flush(&c);
    until_over(&c, 1);
    assert_int_equal(c.calls[1].reply->type, REDIS_REPLY_ERROR);
    assert_fails(&c, COORD_E_STANDBY, "replica of 127.0.0.1");
    close_client(&c);
}

static void test_connection__beyond_the_limit_of_clients_says_so(void **state)
{
    struct world *w = *state;
    struct client c;
    redisContext *other = redis_server_connect(&w->server);
    freeReplyObject(redisCommand(other, "CONFIG SET maxclients 1"));
    open_client(w, &c, w->server.uri);
    assert_fails(&c, COORD_E_SERVER_FULL, "raise maxclients");
    freeReplyObject(redisCommand(other, "CONFIG SET maxclients 100"));
    until_up(&c);
    redisFree(other);
    close_client(&c);
}

/* ---------------------------------------------------------------- who and where */

static void test_login__by_user_and_password_and_to_a_database(void **state)
{
    struct world *w = *state;
    struct client c;
    char uri[192];
    redis_server_do(&w->server, "ACL SETUSER anna on >p%%40ss ~* &* +@all");
    snprintf(uri, sizeof uri, "redis+unix://anna:p%%2540ss@%s?db=3", w->server.socket);
    open_client(w, &c, uri);
    const struct coord_redis_call *call = ask(&c, "CLIENT", "INFO");
    assert_int_equal(call->state, COORD_REDIS_ANSWERED);
    assert_non_null(strstr(call->reply->str, "user=anna"));
    assert_non_null(strstr(call->reply->str, " db=3 "));
    close_client(&c);
    /* Another database is another connection, and an impossible one an error. */
    snprintf(uri, sizeof uri, "redis+unix://anna:p%%2540ss@%s?db=99", w->server.socket);
    open_client(w, &c, uri);
    assert_fails(&c, COORD_E_BAD_URI, "out of range");
    close_client(&c);
    assert_null(strstr(w->logged, "p%40ss"));
}

static void test_login__with_a_password_that_the_server_does_not_want(void **state)
{
    struct world *w = *state;
    struct client c;
    char uri[192];
    snprintf(uri, sizeof uri, "redis+unix://:secret@%s", w->server.socket);
    open_client(w, &c, uri);
    assert_fails(&c, COORD_E_WRONG_PASSWORD, "take the password out");
    assert_null(strstr(c.calls[0].error.text, "secret"));
    close_client(&c);
}

static void test_run__is_known_for_as_long_as_it_was_the_same(void **state)
{
    struct world *w = *state;
    struct client c;
    char first[COORD__REDIS_RUN_MAX];
    char second[COORD__REDIS_RUN_MAX];
    coord_ms age = 1;
    open_client(w, &c, w->server.uri);
    assert_int_equal(coord_redis_run(c.redis, fleet_now(), first, &age), 0);
    assert_int_equal(age, 0);
    until_up(&c);
    const coord_ms now = fleet_now();
    const uint64_t number = coord_redis_run(c.redis, now + 10000, first, &age);
    assert_int_equal(strlen(first), 81);
    assert_in_range(age, 9000, 10000); /* less one percent */
    redis_server_do(&w->server, "CLIENT KILL TYPE normal SKIPME yes");
    drive(&c, 50);
    until_up(&c);
    assert_int_equal(coord_redis_run(c.redis, now, second, &age), number);
    redis_server_kill(&w->server);
    redis_server_again(&w->server);
    drive(&c, 50);
    until_up(&c);
    assert_true(coord_redis_run(c.redis, fleet_now(), second, &age) != number);
    assert_string_not_equal(first, second);
    assert_true(age < 9000);
    close_client(&c);
}

static void test_descriptors__are_closed_on_exec_and_never_block(void **state)
{
    struct world *w = *state;
    struct client c;
    struct coord_descriptor d;
    open_client(w, &c, w->server.uri);
    until_up(&c);
    assert_true(coord_redis_descriptor(c.redis, &d));
    assert_true((fcntl(d.fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_true((fcntl(d.fd, F_GETFL) & O_NONBLOCK) != 0);
    close_client(&c);
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
    struct world *w = *state;
    struct client c;
    struct names names = {.addresses = {.count = 3, .text = {"127.0.0.2", "::1", "127.0.0.1"}}};
    const struct coord_resolver resolver = {&names, start_name, poll_name, drop_name};
    char uri[64];
    w->config.resolver = &resolver;
    snprintf(uri, sizeof uri, "redis://redis.example:%d", w->server.port);
    open_client(w, &c, uri);
    until_up(&c);
    assert_int_equal(names.asked, 1);
    assert_int_equal(names.dropped, 1);
    /* Asked again at each connect: a server may have moved. */
    redis_server_kill(&w->server);
    redis_server_again(&w->server);
    until_up(&c);
    assert_true(names.asked > 1);
    assert_int_equal(names.dropped, names.asked);
    close_client(&c);
}

static void test_addresses__that_are_not_found_are_an_error_that_names_the_host(void **state)
{
    struct world *w = *state;
    struct client c;
    struct names names = {.unknown = true};
    const struct coord_resolver resolver = {&names, start_name, poll_name, drop_name};
    w->config.resolver = &resolver;
    open_client(w, &c, "redis://redis.example");
    assert_fails(&c, COORD_E_NAME_UNRESOLVED, "no such name");
    names.unknown = false;
    names.never = true;
    assert_fails(&c, COORD_E_NAME_UNRESOLVED, "redis.example was not resolved in time");
    names.never = false;
    assert_fails(&c, COORD_E_NAME_UNRESOLVED, "redis.example has no address");
    close_client(&c);
    assert_int_equal(names.asked, names.dropped);
    w->config.resolver = NULL;
    open_client(w, &c, "redis://redis.example");
    assert_fails(&c, COORD_E_NAME_UNRESOLVED, "give an address");
    close_client(&c);
}

static void test_addresses__localhost_needs_no_resolver(void **state)
{
    struct world *w = *state;
    struct client c;
    char uri[64];
    snprintf(uri, sizeof uri, "redis://localhost:%d", w->server.port);
    open_client(w, &c, uri);
    until_up(&c);
    close_client(&c);
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
    struct world *w = *state;
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
    open_client(w, &c, uri);
    until_up(&c);
    assert_non_null(strstr(ask(&c, "CLIENT", "INFO")->reply->str, " db=2 "));
    const uint64_t number = coord_redis_run(c.redis, fleet_now(), run, &age);
    redis_server_kill(&w->server);
    drive(&c, 20);
    until_up(&c);
    assert_true(coord_redis_run(c.redis, fleet_now(), run, &age) != number);
    const struct coord_redis_call *call = ask(&c, "INFO", "replication");
    assert_non_null(strstr(call->reply->str, "role:master"));
    close_client(&c);
    snprintf(uri, sizeof uri, "redis+sentinel://127.0.0.1:%d/other", sentinel.port);
    open_client(w, &c, uri);
    assert_fails(&c, COORD_E_UNREACHABLE, "no primary named other");
    close_client(&c);
    redis_server_stop(&sentinel);
    redis_server_stop(&replica);
}

/* ---------------------------------------------------------------- listening */

struct ear {
    struct coord_redis_events *events;
    struct coord_redis_user user;
    struct coord_redis_listener listener;
};

static void open_ear(struct world *w, struct ear *ear, const char *channel)
{
    memset(ear, 0, sizeof *ear);
    assert_int_equal(coord_uri_parse(w->server.uri, &w->uri, &w->error), COORD_OK);
    w->config.uri = &w->uri;
    ear->user.log = &w->log;
    ear->user.attempt = ATTEMPT;
    assert_int_equal(coord_redis_events_open(&w->config, &ear->user, &ear->events, &w->error),
                     COORD_OK);
    snprintf(ear->listener.channel, sizeof ear->listener.channel, "%s", channel);
    coord_redis_events_listen(ear->events, &ear->listener, fleet_now());
}

static void close_ear(struct ear *ear)
{
    coord_redis_events_drop(ear->events, &ear->listener);
    coord_redis_events_close(ear->events, &ear->user, false);
}

static void until_heard(struct ear *ear)
{
    const coord_ms end = fleet_now() + FLEET_GUARD;
    while (!ear->listener.heard) {
        struct coord_descriptor wanted;
        struct pollfd fd = {.fd = -1};
        coord_redis_events_process(ear->events, fleet_now());
        if (coord_redis_events_descriptor(ear->events, &wanted)) {
            fd = (struct pollfd){.fd = wanted.fd, .events = POLLIN};
        }
        assert_true(fleet_now() < end);
        poll(&fd, 1, ear->listener.heard ? 0 : 10);
    }
    ear->listener.heard = false;
}

static long long subscribers(struct world *w, const char *channel)
{
    redisReply *reply = redis_server_command(&w->server, "PUBSUB NUMSUB %s", channel);
    const long long count = reply->element[1]->integer;
    freeReplyObject(reply);
    return count;
}

static void test_events__are_heard_by_everybody_who_listens_to_the_channel(void **state)
{
    struct world *w = *state;
    struct ear a;
    struct ear b;
    struct ear c;
    open_ear(w, &a, "x");
    open_ear(w, &b, "x");
    open_ear(w, &c, "y");
    assert_ptr_equal(a.events, c.events);
    until_heard(&a); /* the beginning of the subscription */
    until_heard(&b);
    until_heard(&c);
    redis_server_do(&w->server, "PUBLISH x hello");
    until_heard(&a);
    until_heard(&b);
    assert_false(c.listener.heard);
    close_ear(&a);
    redis_server_do(&w->server, "PUBLISH x hello");
    until_heard(&b);
    assert_int_equal(subscribers(w, "x"), 1);
    close_ear(&b);
    redis_server_do(&w->server, "PUBLISH y hello");
    until_heard(&c);
    while (subscribers(w, "x") != 0) {
        coord_redis_events_process(c.events, fleet_now());
    }
    close_ear(&c);
}

static void test_events__begin_again_after_a_break_and_say_so(void **state)
{
    struct world *w = *state;
    struct ear a;
    open_ear(w, &a, "x");
    until_heard(&a);
    redis_server_kill(&w->server);
    redis_server_again(&w->server);
    until_heard(&a);
    redis_server_do(&w->server, "PUBLISH x hello");
    until_heard(&a);
    close_ear(&a);
}

#define CASE(test)       cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define PROXY_CASE(test) cmocka_unit_test_setup_teardown(test, set_up_proxy, tear_down)
#define TCP_CASE(test)   cmocka_unit_test_setup_teardown(test, set_up_tcp, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(test_calls__are_answered_in_order_each_to_its_own),
        CASE(test_calls__that_are_forgotten_leave_their_answers_to_nobody),
        CASE(test_calls__that_nobody_waits_for_are_logged_when_refused),
        PROXY_CASE(test_calls__on_a_broken_connection_are_unknown_or_failed_as_is_true),
        PROXY_CASE(test_calls__that_take_too_long_end_the_connection_and_a_new_one_begins),
        PROXY_CASE(test_calls__of_many_bytes_go_out_as_the_socket_takes_them),
        CASE(test_connection__to_nobody_fails_at_once_and_says_it_once),
        PROXY_CASE(test_connection__that_waits_keeps_a_request_until_the_server_is_there),
        PROXY_CASE(test_connection__to_one_who_says_nothing_is_given_up),
        CASE(test_connection__to_something_else_says_so),
        CASE(test_connection__to_a_replica_is_refused_until_it_is_promoted),
        CASE(test_connection__beyond_the_limit_of_clients_says_so),
        CASE(test_login__by_user_and_password_and_to_a_database),
        CASE(test_login__with_a_password_that_the_server_does_not_want),
        CASE(test_run__is_known_for_as_long_as_it_was_the_same),
        CASE(test_descriptors__are_closed_on_exec_and_never_block),
        TCP_CASE(test_addresses__of_a_name_are_tried_in_turn),
        CASE(test_addresses__that_are_not_found_are_an_error_that_names_the_host),
        TCP_CASE(test_addresses__localhost_needs_no_resolver),
        TCP_CASE(test_sentinel__names_the_primary_before_and_after_a_failover),
        CASE(test_events__are_heard_by_everybody_who_listens_to_the_channel),
        CASE(test_events__begin_again_after_a_break_and_say_so),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_connection", tests, NULL, NULL);
}
