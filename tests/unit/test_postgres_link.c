/* SPDX-License-Identifier: MIT
 * tests/unit/test_postgres_link.c - the connection to PostgreSQL, against a server that misbehaves:
 * a socket of this page, which says just what the test has it say.
 */
#include "connections/postgres.h"
#include "tests/support/backlog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ROUNDS = 4000, /* of 5 ms: a guard, not an expectation */
    PATIENCE = 60000
};

static const struct coord__postgres_statement question = {0, NULL, "select 1", 1, true};

struct scene {
    int listener;
    int peer; /* the server's side; -1: none */
    struct coord__postgres_target *target;
    struct coord__postgres *pg;
    bool asks; /* as soon as it is open */
    bool busy; /* the server lets nobody in */
    struct backlog backlog;
    bool opened;
    struct coord_error closed;
};

static void on_opened(void *ctx, coord_ms now)
{
    struct scene *s = ctx;
    (void)now;
    s->opened = true;
    if (s->asks) {
        assert_true(coord__postgres_send(s->pg, &question, 0, NULL));
    }
}

static void on_replied(void *ctx, const struct coord__postgres_reply *reply, coord_ms now)
{
    (void)ctx;
    (void)reply;
    (void)now;
}

static void on_closed(void *ctx, const struct coord_error *why, coord_ms now)
{
    struct scene *s = ctx;
    (void)now;
    s->closed = *why;
}

static void begin(struct scene *s, const char *parameters)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    char uri[512];
    const struct coord__postgres_events events = {
        .ctx = s, .opened = on_opened, .replied = on_replied, .closed = on_closed};
    s->peer = -1;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(s->listener, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->listener, s->busy ? 0 : 4), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &bytes), 0);
    snprintf(uri, sizeof uri, "postgresql://u@127.0.0.1:%u/d?gssencmode=disable&%s",
             (unsigned)ntohs(at.sin_port), parameters);
    assert_int_equal(coord__postgres_target_new(uri, &s->target, NULL), COORD_OK);
    s->pg = coord__postgres_new(s->target, NULL, &events);
    assert_non_null(s->pg);
    if (s->busy) {
        backlog_fill(&s->backlog, ntohs(at.sin_port));
    }
    coord__postgres_open(s->pg, PATIENCE, 1);
}

static void end(struct scene *s)
{
    coord__postgres_free(s->pg, false);
    coord__postgres_target_free(s->target);
    close(s->listener);
    if (s->peer >= 0) {
        close(s->peer);
    }
}

/* Both sides get a moment. */
static void turn(struct scene *s, int fd, unsigned round)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (round == ROUNDS) {
        fail_msg("it never happens: %s", s->closed.text);
    }
    coord__postgres_process(s->pg, 1);
    (void)poll(&wait, 1, 5);
}

static void await_connection(struct scene *s)
{
    for (unsigned round = 0; s->peer < 0; round++) {
        turn(s, s->listener, round);
        s->peer = accept(s->listener, NULL, NULL);
    }
}

static void await_bytes(struct scene *s, size_t least)
{
    char bytes[4096];
    ssize_t count = 0;
    for (unsigned round = 0; count < (ssize_t)least; round++) {
        turn(s, s->peer, round);
        const ssize_t n = recv(s->peer, bytes, sizeof bytes, MSG_DONTWAIT);
        count += n > 0 ? n : 0;
    }
}

static void answer(struct scene *s, const char *bytes, size_t count)
{
    assert_int_equal(send(s->peer, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
}

/* A client speaks first: it has to see by itself that it is connected. */
static void test_postgres_link__sees_that_it_is_connected(void **state)
{
    struct scene s = {.peer = -1, .busy = true};
    struct coord_descriptor wanted;
    char first = '\0';
    (void)state;
    begin(&s, "sslmode=require");
    backlog_leave(&s.backlog);
    for (unsigned round = 0; !backlog_hears(s.listener, &s.peer, &first); round++) {
        assert_true(round < ROUNDS);
        assert_int_equal(coord__postgres_descriptor(s.pg, &wanted), 1);
        struct pollfd wait = {.fd = wanted.fd};
        wait.events = (short)((wanted.read ? POLLIN : 0) | (wanted.write ? POLLOUT : 0));
        if (poll(&wait, 1, 5) > 0) {
            coord__postgres_process(s.pg, 1);
        }
    }
    end(&s);
}

static void test_postgres_link__a_socket_that_libpq_replaced_is_another_open_file(void **state)
{
    struct scene s = {.peer = -1};
    struct coord_descriptor before;
    struct coord_descriptor after;
    (void)state;
    begin(&s, "sslmode=prefer");
    await_connection(&s);
    await_bytes(&s, 8); /* it asks for TLS */
    assert_int_equal(coord__postgres_descriptor(s.pg, &before), 1);
    answer(&s, "S", 1);
    close(s.peer); /* and the handshake fails: it tries again without, over a new socket */
    s.peer = -1;
    await_connection(&s);
    assert_int_equal(coord__postgres_descriptor(s.pg, &after), 1);
    assert_true(before.fd != after.fd || before.generation != after.generation);
    end(&s);
}

static void test_postgres_link__an_answer_that_begins_a_copy_ends_the_session(void **state)
{
    static const char welcome[] = "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    static const char copy[] = "1\0\0\0\x04"
                               "2\0\0\0\x04"
                               "H\0\0\0\x07\0\0\0";
    struct scene s = {.peer = -1, .asks = true};
    (void)state;
    begin(&s, "sslmode=disable");
    await_connection(&s);
    await_bytes(&s, 8);
    answer(&s, welcome, sizeof welcome - 1);
    for (unsigned round = 0; !s.opened; round++) {
        turn(&s, s.peer, round);
    }
    await_bytes(&s, 8);
    answer(&s, copy, sizeof copy - 1);
    alarm(60); /* libpq has the same result for ever */
    for (unsigned round = 0; s.closed.code == COORD_OK; round++) {
        turn(&s, s.peer, round);
    }
    alarm(0);
    assert_int_equal(s.closed.code, COORD_E_PROTOCOL);
    assert_true(coord__postgres_is_closed(s.pg));
    end(&s);
}

/* libpq's sentence has a path of any length in it. */
static void test_postgres_link__a_long_cause_leaves_room_for_the_cure(void **state)
{
    struct scene s = {.peer = -1};
    char parameters[240] = "sslmode=verify-full&sslrootcert=/";
    (void)state;
    memset(parameters + strlen(parameters), 'a', 200);
    begin(&s, parameters);
    await_connection(&s);
    await_bytes(&s, 8);
    answer(&s, "S", 1);
    for (unsigned round = 0; s.closed.code == COORD_OK; round++) {
        turn(&s, s.peer, round);
    }
    assert_int_equal(s.closed.code, COORD_E_UNREACHABLE);
    assert_non_null(strstr(s.closed.text, "check host, port and server"));
    end(&s);
}

static int option_of(const struct scene *s, int option)
{
    struct coord_descriptor at;
    int value = -1;
    socklen_t bytes = sizeof value;
    assert_int_equal(coord__postgres_descriptor(s->pg, &at), 1);
    assert_int_equal(getsockopt(at.fd, IPPROTO_TCP, option, &value, &bytes), 0);
    return value;
}

/* Else a session that only listens takes a line for alive that a firewall has long forgotten. */
static void test_postgres_link__a_line_that_is_cut_is_noticed_while_nothing_is_said(void **state)
{
    struct scene s = {.peer = -1};
    (void)state;
    begin(&s, "sslmode=disable");
    await_connection(&s);
    assert_in_range(option_of(&s, TCP_KEEPIDLE), 1, 60);
    assert_in_range(option_of(&s, TCP_KEEPINTVL) * option_of(&s, TCP_KEEPCNT), 1, 60);
    end(&s);
    begin(&s, "sslmode=disable&keepalives_idle=1234");
    await_connection(&s);
    assert_int_equal(option_of(&s, TCP_KEEPIDLE), 1234);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_link__sees_that_it_is_connected),
        cmocka_unit_test(test_postgres_link__a_socket_that_libpq_replaced_is_another_open_file),
        cmocka_unit_test(test_postgres_link__an_answer_that_begins_a_copy_ends_the_session),
        cmocka_unit_test(test_postgres_link__a_long_cause_leaves_room_for_the_cure),
        cmocka_unit_test(test_postgres_link__a_line_that_is_cut_is_noticed_while_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
