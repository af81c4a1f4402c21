/* SPDX-License-Identifier: MIT
 * tests/support/redis_client.h - a connection without an elector: its commands and their ends.
 */
#ifndef TEST_REDIS_CLIENT_H
#define TEST_REDIS_CLIENT_H

#include "connections/redis.h"
#include "tests/support/fleet.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

enum {
    CLIENT_ATTEMPT = 300,
    CLIENT_CALLS = 40
};

struct client_world {
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

/** One user of a connection, with calls of its own. */
struct client {
    struct client_world *world;
    struct coord_redis *redis;
    struct coord_redis_user user;
    struct coord_redis_call calls[CLIENT_CALLS];
};

/** Fixtures: a server; one with a loopback port as well; one with a proxy before it. */
int client_set_up(void **state);
int client_set_up_tcp(void **state);
int client_set_up_proxy(void **state);
int client_tear_down(void **state);

/** Use the server of a URI; fails the test when it is refused. */
void client_open(struct client_world *w, struct client *c, const char *uri);
void client_close(struct client *c);
/** Queue one command of one or two words; call -1: nobody waits for its answer. */
void client_send(struct client *c, int call, const char *first, const char *second);
void client_flush(struct client *c);
void client_until_over(struct client *c, int call);
/** Let it work for so many ms. */
void client_drive(struct client *c, coord_ms duration);
/** Send one command and wait for its end. */
const struct coord_redis_call *client_ask(struct client *c, const char *first, const char *second);
/** Until the server answers. */
void client_until_up(struct client *c);
/** A PING is not executed, for this reason. */
void client_assert_fails(struct client *c, enum coord_err code, const char *words);

#endif /* TEST_REDIS_CLIENT_H */
