/* SPDX-License-Identifier: MIT
 * tests/unit/test_redis_link.c - the connection to Redis, against servers that misbehave: sockets
 * of this page, which say just what the test has them say.
 */
#include "connections/redis.h"
#include "connections/redis_ask.h"

#include "coord/uri.h"
#include "tests/support/backlog.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ROUNDS = 4000, /* of 5 ms: a guard, not an expectation */
    PATIENCE = 60000
};

struct scene {
    struct coord_uri uri;
    struct coord_redis_user user;
    struct coord_redis *redis;
    struct coord_redis_call call;
};

static int missing_family; /* as on a host without IPv6 */

/* In place of the C library's. */
int socket(int family, int type, int protocol)
{
    if (family == missing_family) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return (int)syscall(SYS_socket, family, type, protocol);
}

/* A port that is ours, and where nobody listens. */
static int bind_at(unsigned *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static int listen_at(int backlog, unsigned *port)
{
    const int fd = bind_at(port);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

static void open_scene(struct scene *s, const char *uri)
{
    static const char *argv[] = {"PING"};
    static const size_t bytes[] = {4};
    struct coord_error error;
    assert_int_equal(coord_uri_parse(uri, &s->uri, &error), COORD_OK);
    const struct coord_redis_config config = {.uri = &s->uri};
    s->user = (struct coord_redis_user){.attempt = PATIENCE};
    s->call = (struct coord_redis_call){.state = COORD_REDIS_IDLE};
    const enum coord_err rc = coord_redis_open(&config, &s->user, &s->redis, &error);
    if (rc == COORD_E_NO_TLS) {
        skip_because("this build has no TLS");
    }
    assert_int_equal(rc, COORD_OK);
    coord_redis_send(s->redis, &s->call, 1, argv, bytes, 1);
    coord_redis_flush(s->redis, 1);
    coord_redis_process(s->redis, 1);
}

static void close_scene(struct scene *s)
{
    coord_redis_forget(s->redis, &s->call);
    coord_redis_close(s->redis, &s->user, false);
}

/* Wait for what the connection asks for, and for nothing else; then let it work. */
static void turn(struct scene *s, unsigned round)
{
    struct coord_descriptor wanted;
    if (round == ROUNDS) {
        fail_msg("it never happens: %s", coord_redis_trouble(s->redis)->text);
    }
    const bool open = coord_redis_descriptor(s->redis, &wanted);
    struct pollfd wait = {.fd = open ? wanted.fd : -1};
    wait.events = (short)((wanted.read ? POLLIN : 0) | (wanted.write ? POLLOUT : 0));
    if (poll(&wait, 1, 5) > 0 || coord_redis_deadline(s->redis) <= 1) {
        coord_redis_process(s->redis, 1);
    }
}

static ssize_t hear(struct scene *s, int peer, char *out, size_t room)
{
    ssize_t count = -1;
    for (unsigned round = 0; count <= 0; round++) {
        turn(s, round);
        count = recv(peer, out, room, MSG_DONTWAIT);
    }
    return count;
}

static int meet(struct scene *s, int listener)
{
    int peer = -1;
    for (unsigned round = 0; peer < 0; round++) {
        turn(s, round);
        peer = accept(listener, NULL, NULL);
    }
    return peer;
}

/* ---------------------------------------------------------------- a server that stops reading */

static void greet(struct scene *s, int peer)
{
    static const char answers[] = "$21\r\nrun_id:0123456789abcd\r\n$11\r\nrole:master\r\n+PONG\r\n";
    char heard[256];
    assert_true(hear(s, peer, heard, sizeof heard) > 0);
    assert_true(send(peer, answers, sizeof answers - 1, MSG_NOSIGNAL) > 0);
    for (unsigned round = 0; s->call.state == COORD_REDIS_WAITING; round++) {
        turn(s, round);
    }
    assert_int_equal(s->call.state, COORD_REDIS_ANSWERED);
}

static int listen_on_unix(char *folder, char *uri, size_t room)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    assert_non_null(mkdtemp(folder));
    snprintf(at.sun_path, sizeof at.sun_path, "%s/redis", folder);
    snprintf(uri, room, "redis+unix://%s", at.sun_path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

/* Else its descriptor would be ready at once, for ever. */
static void test_redis_link__asks_for_no_room_once_nothing_waits_for_it(void **state)
{
    static struct scene s;
    static char large[4096];
    static struct coord_redis_call calls[1024];
    char folder[] = "/tmp/coord-link-XXXXXX";
    char uri[96];
    struct coord_descriptor wanted = {.write = false};
    const char *argv[] = {"PING", large};
    const size_t bytes[] = {4, sizeof large};
    size_t count = 0;
    (void)state;
    const int listener = listen_on_unix(folder, uri, sizeof uri);
    open_scene(&s, uri);
    const int peer = meet(&s, listener);
    greet(&s, peer);
    while (!wanted.write) {
        assert_true(count < sizeof calls / sizeof calls[0]);
        coord_redis_send(s.redis, &calls[count++], 2, argv, bytes, 1);
        coord_redis_flush(s.redis, 1);
        assert_true(coord_redis_descriptor(s.redis, &wanted));
    }
    coord_redis_forget(s.redis, &calls[count - 1]); /* of which not a byte has left */
    coord_redis_process(s.redis, 1);
    assert_true(coord_redis_descriptor(s.redis, &wanted));
    assert_false(wanted.write);
    while (count > 0) {
        coord_redis_forget(s.redis, &calls[--count]);
    }
    close_scene(&s);
    close(peer);
    close(listener);
    assert_int_equal(unlink(uri + strlen("redis+unix://")), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* ---------------------------------------------------------------- a connect that takes a while */

/* A client speaks first: it has to see by itself that it is connected. */
static void connect_late(const char *scheme, char expected)
{
    static struct scene s;
    struct backlog backlog;
    char uri[64];
    unsigned port = 0;
    char first = '\0';
    int peer = -1;
    const int listener = listen_at(0, &port);
    backlog_fill(&backlog, port);
    snprintf(uri, sizeof uri, "%s://127.0.0.1:%u", scheme, port);
    open_scene(&s, uri);
    backlog_leave(&backlog);
    for (unsigned round = 0; !backlog_hears(listener, &peer, &first); round++) {
        turn(&s, round);
    }
    assert_int_equal(first, expected);
    close_scene(&s);
    close(peer);
    close(listener);
}

static void test_redis_link__sees_that_it_is_connected(void **state)
{
    (void)state;
    connect_late("redis", '*');
}

static void test_redis_link__over_tls_sees_that_it_is_connected(void **state)
{
    (void)state;
    connect_late("rediss", 0x16); /* the type of a handshake's record */
}

/* ---------------------------------------------------------------- addresses */

static void test_redis_link__of_a_host_without_ipv6_says_why_the_other_address_fails(void **state)
{
    static struct scene s;
    char uri[64];
    unsigned port = 0;
    (void)state;
    const int bound = bind_at(&port);
    missing_family = AF_INET6;
    snprintf(uri, sizeof uri, "redis://localhost:%u", port);
    open_scene(&s, uri);
    for (unsigned round = 0; s.call.state == COORD_REDIS_WAITING; round++) {
        turn(&s, round);
    }
    missing_family = 0;
    assert_int_equal(s.call.error.code, COORD_E_UNREACHABLE);
    assert_non_null(strstr(s.call.error.text, "Connection refused"));
    close_scene(&s);
    close(bound);
}

/* ---------------------------------------------------------------- Sentinel */

static void test_redis_link__asks_the_next_sentinel_when_one_talks_nonsense(void **state)
{
    static struct scene s;
    static const char nonsense[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    char uri[96];
    char heard[256] = "";
    unsigned port[2] = {0, 0};
    (void)state;
    const int web = listen_at(4, &port[0]);
    const int sentinel = listen_at(4, &port[1]);
    snprintf(uri, sizeof uri, "redis+sentinel://127.0.0.1:%u,127.0.0.1:%u/main", port[0], port[1]);
    open_scene(&s, uri);
    const int first = meet(&s, web);
    assert_true(send(first, nonsense, sizeof nonsense - 1, MSG_NOSIGNAL) > 0);
    const int second = meet(&s, sentinel);
    assert_true(hear(&s, second, heard, sizeof heard - 1) > 0);
    assert_non_null(strstr(heard, "get-master-addr-by-name"));
    close_scene(&s);
    close(first);
    close(second);
    close(web);
    close(sentinel);
}

/* One that is behind sends us to a server that is none of ours. */
static void test_redis_link__asks_the_next_sentinel_when_a_server_refuses(void **state)
{
    static struct scene s;
    char uri[96];
    char heard[256] = "";
    char answer[96];
    unsigned port[3] = {0, 0, 0};
    (void)state;
    const int behind = listen_at(4, &port[0]);
    const int sentinel = listen_at(4, &port[1]);
    const int server = listen_at(4, &port[2]);
    snprintf(uri, sizeof uri, "redis+sentinel://127.0.0.1:%u,127.0.0.1:%u/main", port[0], port[1]);
    snprintf(answer, sizeof answer, "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n%05u\r\n", port[2]);
    open_scene(&s, uri);
    const int first = meet(&s, behind);
    assert_true(hear(&s, first, heard, sizeof heard) > 0);
    assert_true(send(first, answer, strlen(answer), MSG_NOSIGNAL) > 0);
    const int stranger = meet(&s, server);
    assert_true(hear(&s, stranger, heard, sizeof heard) > 0);
    assert_true(send(stranger, "-NOAUTH Authentication required.\r\n", 34, MSG_NOSIGNAL) > 0);
    const int second = meet(&s, sentinel);
    close_scene(&s);
    close(first);
    close(stranger);
    close(second);
    close(behind);
    close(sentinel);
    close(server);
}

/* ---------------------------------------------------------------- what doctor asks */

static void test_redis_ask__takes_a_clock_from_nothing_else(void **state)
{
    static const char *const answers[] = {
        "*2\r\n:1700000000\r\n:5\r\n",
        "*2\r\n$-1\r\n$-1\r\n",
        "*2\r\n$19\r\n9223372036854775807\r\n$1\r\n0\r\n",
        "*2\r\n$20\r\n-9223372036854775808\r\n$1\r\n0\r\n",
        "*2\r\n$1\r\n1\r\n$19\r\n9223372036854775807\r\n",
        "+OK\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        redisReader *reader = redisReaderCreate();
        void *reply = NULL;
        assert_int_equal(redisReaderFeed(reader, answers[i], strlen(answers[i])), REDIS_OK);
        assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
        assert_int_equal(coord_redis_clock_of(reply), 0);
        freeReplyObject(reply);
        redisReaderFree(reader);
    }
    assert_int_equal(coord_redis_clock_of(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redis_link__asks_for_no_room_once_nothing_waits_for_it),
        cmocka_unit_test(test_redis_link__sees_that_it_is_connected),
        cmocka_unit_test(test_redis_link__over_tls_sees_that_it_is_connected),
        cmocka_unit_test(test_redis_link__of_a_host_without_ipv6_says_why_the_other_address_fails),
        cmocka_unit_test(test_redis_link__asks_the_next_sentinel_when_one_talks_nonsense),
        cmocka_unit_test(test_redis_link__asks_the_next_sentinel_when_a_server_refuses),
        cmocka_unit_test(test_redis_ask__takes_a_clock_from_nothing_else),
    };
    return cmocka_run_group_tests_name("redis_link", tests, NULL, NULL);
}
