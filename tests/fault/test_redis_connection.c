/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_connection.c - who gets which answer, and what is said when there is none.
 */
#include "tests/support/redis_client.h"

#include <hiredis/hiredis.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

/* ---------------------------------------------------------------- answers */

static void test_calls__are_answered_in_order_each_to_its_own(void **state)
{
    struct client_world *w = *state;
    struct client c;
    char text[CLIENT_CALLS][16];
    client_open(w, &c, w->server.uri);
    for (int i = 0; i < CLIENT_CALLS; i++) {
        snprintf(text[i], sizeof text[i], "number %d", i);
        client_send(&c, i, "ECHO", text[i]);
    }
    client_flush(&c);
    for (int i = 0; i < CLIENT_CALLS; i++) {
        client_until_over(&c, i);
        assert_int_equal(c.calls[i].state, COORD_REDIS_ANSWERED);
        assert_string_equal(c.calls[i].reply->str, text[i]);
    }
    client_close(&c);
}

static void test_calls__that_are_forgotten_leave_their_answers_to_nobody(void **state)
{
    struct client_world *w = *state;
    struct client a;
    struct client b;
    client_open(w, &a, w->server.uri);
    client_open(w, &b, w->server.uri);
    assert_ptr_equal(a.redis, b.redis);
    client_until_up(&a);
    client_send(&a, 0, "ECHO", "a");
    client_flush(&a);
    client_send(&b, 0, "ECHO", "b");
    client_send(&a, 1, "ECHO", "c");
    coord_redis_forget(a.redis, &a.calls[0]); /* on the wire */
    coord_redis_forget(b.redis, &b.calls[0]); /* not yet: it is cut out */
    assert_string_equal(client_ask(&b, "ECHO", "d")->reply->str, "d");
    assert_string_equal(a.calls[1].reply->str, "c");
    assert_int_equal(a.calls[0].state, COORD_REDIS_IDLE);
    client_close(&a);
    client_close(&b);
}

static void test_calls__that_nobody_waits_for_are_logged_when_refused(void **state)
{
    struct client_world *w = *state;
    struct client c;
    client_open(w, &c, w->server.uri);
    redis_server_do(&w->server, "ACL SETUSER default -pubsub");
    client_send(&c, -1, "PUBSUB", "CHANNELS");
    assert_int_equal(client_ask(&c, "PING", NULL)->state, COORD_REDIS_ANSWERED);
    client_send(&c, -1, "PUBSUB", "CHANNELS");
    assert_int_equal(client_ask(&c, "PING", NULL)->state, COORD_REDIS_ANSWERED);
    const char *first = strstr(w->logged, "NO_RIGHT");
    assert_non_null(first);
    assert_null(strstr(first + 1, "NO_RIGHT")); /* once */
    client_close(&c);
}

static void test_calls__on_a_broken_connection_are_unknown_or_failed_as_is_true(void **state)
{
    struct client_world *w = *state;
    struct client c;
    client_open(w, &c, w->proxy.uri);
    client_until_up(&c);
    proxy_hold(&w->proxy, true);
    client_send(&c, 1, "ECHO", "written");
    client_flush(&c);
    client_send(&c, 2, "ECHO", "not written"); /* nobody flushes it */
    proxy_cut(&w->proxy, true);
    client_until_over(&c, 1);
    assert_int_equal(c.calls[1].state, COORD_REDIS_UNKNOWN);
    assert_int_equal(c.calls[1].error.code, COORD_E_UNREACHABLE);
    assert_int_equal(c.calls[2].state, COORD_REDIS_FAILED);
    client_close(&c);
}

static void test_calls__that_take_too_long_end_the_connection_and_a_new_one_begins(void **state)
{
    struct client_world *w = *state;
    struct client a;
    struct client b;
    struct coord_descriptor before;
    struct coord_descriptor after;
    client_open(w, &a, w->proxy.uri);
    client_open(w, &b, w->proxy.uri);
    client_until_up(&a);
    assert_true(coord_redis_descriptor(a.redis, &before));
    proxy_hold(&w->proxy, true);
    client_send(&a, 1, "ECHO", "lost");
    client_send(&b, 1, "ECHO", "innocent");
    client_flush(&a);
    client_drive(&b, 20);
    coord_redis_stuck(a.redis, &a.calls[1], fleet_now());
    assert_int_equal(a.calls[1].state, COORD_REDIS_IDLE);
    assert_int_equal(b.calls[1].state, COORD_REDIS_UNKNOWN);
    assert_int_equal(b.calls[1].error.code, COORD_E_NO_ANSWER);
    proxy_hold(&w->proxy, false);
    client_until_up(&a);
    assert_true(coord_redis_descriptor(a.redis, &after));
    assert_true(after.generation != before.generation);
    client_close(&a);
    client_close(&b);
}

static void test_calls__of_many_bytes_go_out_as_the_socket_takes_them(void **state)
{
    struct client_world *w = *state;
    struct client c;
    static char text[3 * 1024 * 1024];
    memset(text, 'x', sizeof text - 1);
    client_open(w, &c, w->proxy.uri);
    client_until_up(&c);
    proxy_stall(&w->proxy, true);
    client_send(&c, 1, "SET", "k"); /* a wrong number of arguments, between two that are right */
    client_send(&c, 2, "ECHO", text);
    client_flush(&c);
    struct coord_descriptor wanted;
    assert_true(coord_redis_descriptor(c.redis, &wanted));
    assert_true(wanted.write);
    proxy_stall(&w->proxy, false);
    client_until_over(&c, 2);
    assert_int_equal(c.calls[1].reply->type, REDIS_REPLY_ERROR);
    assert_int_equal(c.calls[2].reply->len, sizeof text - 1);
    client_close(&c);
}

/* ---------------------------------------------------------------- no server */

static void test_connection__to_nobody_fails_at_once_and_says_it_once(void **state)
{
    struct client_world *w = *state;
    struct client c;
    redis_server_kill(&w->server);
    client_open(w, &c, w->server.uri);
    for (int i = 0; i < 5; i++) {
        client_assert_fails(&c, COORD_E_UNREACHABLE, "is the server running");
    }
    const char *first = strstr(w->logged, "UNREACHABLE");
    assert_non_null(first);
    assert_null(strstr(first + 1, "UNREACHABLE"));
    redis_server_again(&w->server);
    client_until_up(&c);
    assert_non_null(strstr(w->logged, "connected again"));
    client_close(&c);
}

static void test_connection__that_waits_keeps_a_request_until_the_server_is_there(void **state)
{
    struct client_world *w = *state;
    struct client c;
    client_open(w, &c, w->proxy.uri);
    proxy_stall(&w->proxy, true);
    client_send(&c, 0, "ECHO", "early");
    client_flush(&c);
    client_drive(&c, 50);
    assert_int_equal(c.calls[0].state, COORD_REDIS_WAITING);
    proxy_stall(&w->proxy, false);
    client_until_over(&c, 0);
    assert_string_equal(c.calls[0].reply->str, "early");
    client_close(&c);
}

static void test_connection__to_one_who_says_nothing_is_given_up(void **state)
{
    struct client_world *w = *state;
    struct client c;
    client_open(w, &c, w->proxy.uri);
    proxy_stall(&w->proxy, true);
    client_assert_fails(&c, COORD_E_NO_ANSWER, "is it stopped?");
    proxy_stall(&w->proxy, false);
    client_until_up(&c);
    client_close(&c);
}

/* A server of another kind: it says `words` to the first who comes. */
static void assert_is_no_redis(struct client_world *w, const char *words, const char *text)
{
    struct client c;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    char uri[64];
    assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", ntohs(address.sin_port));
    client_open(w, &c, uri);
    client_send(&c, 0, "PING", NULL);
    client_flush(&c);
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(send(fd, words, strlen(words), MSG_NOSIGNAL), strlen(words));
    client_until_over(&c, 0);
    assert_int_equal(c.calls[0].error.code, COORD_E_PROTOCOL);
    assert_non_null(strstr(c.calls[0].error.text, text));
    close(fd);
    close(listener);
    client_close(&c);
}

static void test_connection__to_something_else_says_so(void **state)
{
    assert_is_no_redis(*state, "220 mail.example\r\n", "is the port");
    assert_is_no_redis(*state, "+OK\r\n+OK\r\n+OK\r\n", "is it Redis");
}

static void test_connection__reserves_nothing_for_a_length_that_is_only_declared(void **state)
{
    assert_is_no_redis(*state, "*2000000000\r\n", "is the port");
}

static void test_connection__to_a_replica_is_refused_until_it_is_promoted(void **state)
{
    struct client_world *w = *state;
    struct client c;
    redis_server_do(&w->server, "REPLICAOF 127.0.0.1 1");
    client_open(w, &c, w->server.uri);
    client_assert_fails(&c, COORD_E_STANDBY, "replica of 127.0.0.1");
    redis_server_do(&w->server, "REPLICAOF NO ONE");
    client_until_up(&c);
    /* And while it is open: the first refusal closes it. */
    redis_server_do(&w->server, "REPLICAOF 127.0.0.1 1");
    coord_redis_call_clear(&c.calls[0]);
    const char *argv[] = {"SET", "k", "v"};
    const size_t bytes[] = {3, 1, 1};
    coord_redis_send(c.redis, &c.calls[1], 3, argv, bytes, fleet_now());
    client_flush(&c);
    client_until_over(&c, 1);
    assert_int_equal(c.calls[1].reply->type, REDIS_REPLY_ERROR);
    client_assert_fails(&c, COORD_E_STANDBY, "replica of 127.0.0.1");
    client_close(&c);
}

static void test_connection__beyond_the_limit_of_clients_says_so(void **state)
{
    struct client_world *w = *state;
    struct client c;
    redisContext *other = redis_server_connect(&w->server);
    freeReplyObject(redisCommand(other, "CONFIG SET maxclients 1"));
    client_open(w, &c, w->server.uri);
    client_assert_fails(&c, COORD_E_SERVER_FULL, "raise maxclients");
    freeReplyObject(redisCommand(other, "CONFIG SET maxclients 100"));
    client_until_up(&c);
    redisFree(other);
    client_close(&c);
}

/* ---------------------------------------------------------------- listening */

struct ear {
    struct coord_redis_events *events;
    struct coord_redis_user user;
    struct coord_redis_listener listener;
};

static void open_ear(struct client_world *w, struct ear *ear, const char *channel)
{
    memset(ear, 0, sizeof *ear);
    assert_int_equal(coord_uri_parse(w->server.uri, &w->uri, &w->error), COORD_OK);
    w->config.uri = &w->uri;
    ear->user.log = &w->log;
    ear->user.attempt = CLIENT_ATTEMPT;
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

static long long subscribers(struct client_world *w, const char *channel)
{
    redisReply *reply = redis_server_command(&w->server, "PUBSUB NUMSUB %s", channel);
    const long long count = reply->element[1]->integer;
    freeReplyObject(reply);
    return count;
}

static void test_events__are_heard_by_everybody_who_listens_to_the_channel(void **state)
{
    struct client_world *w = *state;
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
    struct client_world *w = *state;
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

#define CASE(test) cmocka_unit_test_setup_teardown(test, client_set_up, client_tear_down)
#define PROXY_CASE(test) \
    cmocka_unit_test_setup_teardown(test, client_set_up_proxy, client_tear_down)

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
        CASE(test_connection__reserves_nothing_for_a_length_that_is_only_declared),
        CASE(test_connection__to_a_replica_is_refused_until_it_is_promoted),
        CASE(test_connection__beyond_the_limit_of_clients_says_so),
        CASE(test_events__are_heard_by_everybody_who_listens_to_the_channel),
        CASE(test_events__begin_again_after_a_break_and_say_so),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_connection", tests, NULL, NULL);
}
