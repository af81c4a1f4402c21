/* SPDX-License-Identifier: MIT
 * tests/support/postgres_server.h - a private PostgreSQL for one test, on a unix socket and, where
 * it is asked for, a loopback port.
 *
 * It lives in a temporary folder, runs as an ordinary user when the tests run as root, dies with
 * the test process, and is ended by its pid. PG_BINDIR names its programs; else pg_config does, or
 * the newest under /usr/lib/postgresql. Where there is none the tests skip, which fails where
 * CI=true.
 */
#ifndef TEST_POSTGRES_SERVER_H
#define TEST_POSTGRES_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <libpq-fe.h>

enum {
    POSTGRES_SERVER_OPTIONS = 24,
    POSTGRES_URI = 256
};

struct postgres_server {
    pid_t pid; /* 0: not running, or not ours */
    char folder[64];
    int port; /* also in the socket's name; 0: none was opened */
    char uri[POSTGRES_URI];
    char tcp_uri[POSTGRES_URI];
    const char *options[POSTGRES_SERVER_OPTIONS + 1];
};

/** Skip the test with a reason when no server can be started; in CI that is a failure. */
void postgres_server_needed(void);

/** The folder of initdb, postgres and pg_basebackup; NULL: none. */
const char *postgres_server_programs(void);

/**
 * Make a database cluster, start it and wait until it answers. With NULL options the server that
 * COORD_TEST_POSTGRES names (a URI) is used instead, if set.
 *
 * @param options  settings such as "log_lock_waits=on", NULL; static; may be NULL.
 *                 "port=auto" opens a free loopback port as well.
 */
void postgres_server_start(struct postgres_server *server, const char *const *options);

/** Make a standby of another server that runs, and start it. */
void postgres_server_follow(struct postgres_server *server, const struct postgres_server *primary);

/** SIGINT (fast) or SIGQUIT (immediate) to the server, and wait until it is gone. */
void postgres_server_end(struct postgres_server *server, int signal_number);

/** Start it again in its folder, on its socket and port. */
void postgres_server_again(struct postgres_server *server);

/** The same without waiting, for those who go on meanwhile. */
void postgres_server_begin(struct postgres_server *server);

/** Does it answer? Fails the test where it ended instead. */
bool postgres_server_answers(struct postgres_server *server);

/** Has it ended since it was sent a signal? */
bool postgres_server_ended(struct postgres_server *server);

/** End it, if it runs, and remove its folder. */
void postgres_server_stop(struct postgres_server *server);

/** A blocking connection as the superuser; the caller gives it to PQfinish(). */
PGconn *postgres_server_connect(const struct postgres_server *server);

/** Run one statement over a connection of its own; fails the test where it fails. */
void postgres_server_do(const struct postgres_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The same for its first value, as a number; -1: no row, or null. */
int64_t postgres_server_ask(const struct postgres_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The same on a connection of the caller's. @return the SQLSTATE, "" where it worked. */
const char *postgres_server_try(PGconn *conn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Wait until a question (its first value) is answered with true. */
void postgres_server_until(const struct postgres_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Put a line before all others of pg_hba.conf, and wait until the server has read it. */
void postgres_server_put_in_hba(const struct postgres_server *server, const char *line);

/** How long the server's log is, to look later at what was added. */
size_t postgres_server_log_size(const struct postgres_server *server);

/** Does the log hold this text after `from`? */
bool postgres_server_logged(const struct postgres_server *server, size_t from, const char *text);

/** How often the log holds this text after `from`. */
unsigned postgres_server_counted(const struct postgres_server *server, size_t from,
                                 const char *text);

/** A name that no other test uses. */
void postgres_server_name(char *out, size_t bytes, const char *what);

/** In a forked child, as root: become the user that runs the servers. */
void postgres_server_become_ordinary(void);

/** The folder and all in it belongs to that user from now on. */
void postgres_server_give_away(const char *folder);

/** A loopback port that was free a moment ago. */
int postgres_server_free_port(void);

#endif /* TEST_POSTGRES_SERVER_H */
