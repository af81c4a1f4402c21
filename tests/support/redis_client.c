/* SPDX-License-Identifier: MIT
 * tests/support/redis_client.c - see redis_client.h.
 */
#include "tests/support/redis_client.h"

#include <hiredis/hiredis.h>

#include <poll.h>
#include <stdlib.h>

static void note(void *ctx, const struct coord_log_record *record)
{
    struct client_world *w = ctx;
    const size_t room = sizeof w->logged - w->logged_bytes;
    const int bytes = snprintf(w->logged + w->logged_bytes, room, "%s %s: %s\n",
                               coord_err_name(record->code), record->subject, record->text);
    w->logged_bytes += bytes > 0 && (size_t)bytes < room ? (size_t)bytes : 0;
}

static int set_up_with(void **state, const char *const *options)
{
    struct client_world *w = calloc(1, sizeof *w);
    *state = w;
    redis_server_start(&w->server, options);
    w->config.share = &w->share;
    w->config.seed = 7;
    w->log = (struct coord_log){.fn = note, .ctx = w, .level = COORD_LOG_DEBUG};
    return 0;
}

int client_set_up(void **state)
{
    static const char *const none[] = {NULL};
    return set_up_with(state, none);
}

int client_set_up_tcp(void **state)
{
    static const char *const tcp[] = {"--port", "auto", NULL};
    return set_up_with(state, tcp);
}

int client_set_up_proxy(void **state)
{
    client_set_up(state);
    struct client_world *w = *state;
    proxy_start(&w->proxy, w->server.socket);
    w->has_proxy = true;
    return 0;
}

int client_tear_down(void **state)
{
    struct client_world *w = *state;
    assert_null(w->share.first); /* whatever was opened was closed */
    if (w->has_proxy) {
        proxy_stop(&w->proxy);
    }
    redis_server_stop(&w->server);
    free(w);
    return 0;
}

/* ---------------------------------------------------------------- driving */

void client_open(struct client_world *w, struct client *c, const char *uri)
{
    memset(c, 0, sizeof *c);
    c->world = w;
    assert_int_equal(coord_uri_parse(uri, &w->uri, &w->error), COORD_OK);
    w->config.uri = &w->uri;
    c->user.log = &w->log;
    c->user.attempt = CLIENT_ATTEMPT;
    const enum coord_err rc = coord_redis_open(&w->config, &c->user, &c->redis, &w->error);
    if (rc != COORD_OK) {
        fail_msg("%s: %s", coord_err_name(rc), w->error.text);
    }
}

void client_close(struct client *c)
{
    for (int i = 0; i < CLIENT_CALLS; i++) {
        coord_redis_forget(c->redis, &c->calls[i]);
    }
    coord_redis_close(c->redis, &c->user, false);
}

void client_send(struct client *c, int call, const char *first, const char *second)
{
    const char *argv[] = {first, second};
    const size_t bytes[] = {strlen(first), second != NULL ? strlen(second) : 0};
    coord_redis_send(c->redis, call >= 0 ? &c->calls[call] : NULL, second != NULL ? 2 : 1, argv,
                     bytes, fleet_now());
}

void client_flush(struct client *c)
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

void client_until_over(struct client *c, int call)
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

void client_drive(struct client *c, coord_ms duration)
{
    const coord_ms end = fleet_now() + duration;
    while (fleet_now() < end) {
        coord_redis_process(c->redis, fleet_now());
        wait_for_something(c);
    }
}

/* Send one command and wait for its end. */
const struct coord_redis_call *client_ask(struct client *c, const char *first, const char *second)
{
    coord_redis_call_clear(&c->calls[0]);
    client_send(c, 0, first, second);
    client_flush(c);
    client_until_over(c, 0);
    return &c->calls[0];
}

void client_until_up(struct client *c)
{
    const coord_ms end = fleet_now() + FLEET_GUARD;
    while (client_ask(c, "PING", NULL)->state != COORD_REDIS_ANSWERED) {
        assert_true(fleet_now() < end);
        client_drive(c, 20);
    }
    coord_redis_call_clear(&c->calls[0]);
}

void client_assert_fails(struct client *c, enum coord_err code, const char *words)
{
    const struct coord_redis_call *call = client_ask(c, "PING", NULL);
    assert_int_equal(call->state, COORD_REDIS_FAILED);
    if (call->error.code != code || strstr(call->error.text, words) == NULL) {
        fail_msg("%s: %s", coord_err_name(call->error.code), call->error.text);
    }
}
