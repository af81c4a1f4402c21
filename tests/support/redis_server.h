/* SPDX-License-Identifier: MIT
 * tests/support/redis_server.h - a private redis-server for one test, on a unix socket.
 *
 * It lives in a temporary folder, dies with the test process, and is ended by its pid. Where
 * redis-server is not installed the tests skip, which fails where CI=true.
 */
#ifndef TEST_REDIS_SERVER_H
#define TEST_REDIS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct redisContext;
struct redisReply;

enum {
    REDIS_SERVER_OPTIONS = 24
};

struct redis_server {
    pid_t pid; /* 0: not running, or not ours */
    char folder[64];
    char socket[96];
    int port;      /* 0: no port */
    int tls_port;  /* 0: no TLS */
    char uri[128]; /* redis+unix://... */
    char tcp_uri[64];
    const char *options[REDIS_SERVER_OPTIONS + 1];
    char sentinel[96]; /* its file, when it is a Sentinel */
};

/** Skip the test with a reason when no server can be started; in CI that is a failure. */
void redis_server_needed(void);

/**
 * Start one and wait until it answers. With NULL options the server that COORD_TEST_REDIS names
 * (redis+unix://PATH or a path) is used instead, if set: such a test uses names of its own only.
 *
 * @param options  pairs of literals such as "--appendonly", "yes", NULL; may be NULL. "--port",
 *                 "auto" opens a free loopback port as well, and "--tls-port", "auto" one for TLS.
 */
void redis_server_start(struct redis_server *server, const char *const *options);

/** Start a Sentinel, alone, that watches the primary on a loopback port under the name `master`. */
void redis_server_start_sentinel(struct redis_server *server, int port, const char *master);

/** kill -9, and wait until it is gone. */
void redis_server_kill(struct redis_server *server);

/** SIGTERM, and wait until it is gone; the folder stays. */
void redis_server_end(struct redis_server *server);

/** Start it again in its folder, on its socket and port. */
void redis_server_again(struct redis_server *server);

/** The same without waiting for an answer. */
void redis_server_launch(struct redis_server *server);

/** End it, if it runs, and remove its folder. */
void redis_server_stop(struct redis_server *server);

/** A blocking connection; the caller frees it with redisFree(). */
struct redisContext *redis_server_connect(const struct redis_server *server);

/** Send one command over a connection of its own; the caller frees the reply. */
struct redisReply *redis_server_command(const struct redis_server *server, const char *format, ...);

/** The same when only its success is of interest. */
void redis_server_do(const struct redis_server *server, const char *format, ...);

/** A name that no other test uses. */
void redis_server_name(char *out, size_t bytes, const char *what);

#endif /* TEST_REDIS_SERVER_H */
