/* SPDX-License-Identifier: MIT
 * connections/redis_link.h - what the two kinds of connection share: reach a server, stay there.
 *
 * Between connections/redis*.c only. A link resolves, connects, asks a Sentinel, logs in, checks
 * that it met a primary, and then hands every reply to its owner. When it breaks it tells why,
 * waits, and begins again.
 */
#ifndef COORD_CONNECTION_REDIS_LINK_H
#define COORD_CONNECTION_REDIS_LINK_H

#include "connections/redis.h"

#include <hiredis/hiredis.h>

#ifdef __cplusplus
extern "C" {
#endif

struct coord__redis_tls;

enum {
    COORD__REDIS_HOST_MAX = 256,
    COORD__REDIS_PATH_MAX = 108, /* of a unix socket, as the system has it */
    COORD__REDIS_SECRET_MAX = 1024,
    COORD__REDIS_SHOWN_MAX = 256,
    COORD__REDIS_GREETINGS = 4
};

/* ---------------------------------------------------------------- where the server is */

struct coord__redis_host {
    char name[COORD__REDIS_HOST_MAX];
    uint16_t port;
};

struct coord__redis_login {
    char user[COORD__REDIS_HOST_MAX];
    char password[COORD__REDIS_SECRET_MAX];
    char file[COORD__REDIS_HOST_MAX]; /* that holds the password; read at each login. "": none */
    const char *named_by;             /* where its path stands */
};

/* What a URI says, copied. */
struct coord__redis_target {
    bool tls;
    char socket[COORD__REDIS_PATH_MAX]; /* "": not a unix socket */
    struct coord__redis_host hosts[COORD_URI_HOSTS_MAX];
    size_t host_count;
    char master[COORD__REDIS_HOST_MAX]; /* "": the hosts are servers, not Sentinels */
    struct coord__redis_login login;
    struct coord__redis_login sentinel; /* at the Sentinels */
    unsigned db;
    char ca[COORD__REDIS_HOST_MAX]; /* TLS: files; "": the system's */
    char cert[COORD__REDIS_HOST_MAX];
    char key[COORD__REDIS_HOST_MAX];
    char shown[COORD__REDIS_SHOWN_MAX]; /* for logs, without a secret */
};

COORD_MUST_CHECK enum coord_err coord__redis_target_read(const struct coord_uri *uri,
                                                         struct coord__redis_target *out,
                                                         struct coord_error *error);

/* The key under which connections to this server are shared; the caller wipes and frees it. */
char *coord__redis_share_key(const char *kind, const struct coord_uri *uri);
void coord__redis_share_key_free(char *key);

/* ---------------------------------------------------------------- bytes that wait */

struct coord__redis_buffer {
    char *bytes;
    size_t start; /* written already */
    size_t end;
    size_t room;
};

/* @return false: no memory, and nothing was added. */
COORD_MUST_CHECK bool coord__redis_buffer_add(struct coord__redis_buffer *buffer, const char *bytes,
                                              size_t count);
void coord__redis_buffer_clear(struct coord__redis_buffer *buffer);
void coord__redis_buffer_free(struct coord__redis_buffer *buffer);

/* ---------------------------------------------------------------- the link */

enum coord__redis_link_state {
    COORD__REDIS_LINK_IDLE = 0, /* nobody has needed it yet */
    COORD__REDIS_LINK_PAUSED,   /* after a failure */
    COORD__REDIS_LINK_NEXT,     /* about to begin with a host */
    COORD__REDIS_LINK_RESOLVING,
    COORD__REDIS_LINK_CONNECTING,
    COORD__REDIS_LINK_GREETING,
    COORD__REDIS_LINK_UP
};

enum coord__redis_greeting {
    COORD__REDIS_GREET_AUTH = 1,
    COORD__REDIS_GREET_SELECT,
    COORD__REDIS_GREET_SERVER,
    COORD__REDIS_GREET_REPLICATION,
    COORD__REDIS_GREET_SENTINEL
};

/* The owner's face. `owner` is what coord__redis_link_init() was given. */
struct coord__redis_link_ops {
    void (*up)(void *owner, coord_ms now);
    /* @param reply  given: the owner frees it. */
    void (*reply)(void *owner, struct redisReply *reply, coord_ms now);
    /* The connection is gone, or could not be made. Bytes in `out` are still there. */
    void (*down)(void *owner, const struct coord_error *error, coord_ms now);
};

struct coord__redis_link {
    const struct coord__redis_link_ops *ops;
    void *owner;
    struct coord__redis_target target;
    const struct coord_resolver *resolver;
    struct coord_resolution *resolution;
    struct coord_redis_user *users; /* the log is the first one's */
    coord_ms attempt;  /* the longest of its users': a step of connecting may take so long */
    coord_ms shortest; /* the shortest: a pause is no longer than half of it */

    enum coord__redis_link_state state;
    int fd; /* -1: none */
    uint64_t generation;
    struct coord__redis_tls *tls;
    struct redisReader *reader;
    size_t reader_max; /* bytes of one reply that is not complete yet; 0: no limit */
    redisReplyObjectFunctions functions; /* the reader's, with a limit */
    struct coord__redis_buffer greeting;
    struct coord__redis_buffer out; /* the owner's; goes out when the link is up */
    uint64_t written;               /* bytes of `out` that went out since it is up */
    bool starved;                   /* the socket takes no more just now */
    size_t awaited;                 /* replies, as the owner knows; 0: nothing need come */
    coord_ms quiet_at;              /* when a read found nothing more */
    bool spared;                    /* a read since, as nothing was awaited in that millisecond */

    size_t host;    /* among the target's */
    bool at_master; /* of a Sentinel: found it, and going there */
    struct coord__redis_host found;
    struct coord_addresses addresses;
    size_t address;
    struct coord_error failure; /* of the addresses tried so far */
    enum coord__redis_greeting greetings[COORD__REDIS_GREETINGS];
    size_t greeting_count;
    size_t greeting_at;

    coord_ms deadline; /* of the step that runs */
    coord_ms retry_at; /* PAUSED */
    coord_ms up_since;
    unsigned failures;
    uint64_t random;
    struct coord_error error; /* why it is not up; code COORD_OK: no reason yet */
    enum coord_err told;      /* what the log has heard */
    bool quiet;               /* failures are not worth a warning */

    char run_id[48];
    char run[COORD__REDIS_RUN_MAX]; /* the last one met */
    coord_ms run_met;               /* by a clock that was read before */
    coord_ms run_since;             /* by one that was read after; COORD_NEVER: not yet */
    uint64_t runs;
};

/* The target and the resolver are filled in before, the rest is zero. */
void coord__redis_link_init(struct coord__redis_link *link, const struct coord__redis_link_ops *ops,
                            void *owner, uint64_t seed);
void coord__redis_link_fini(struct coord__redis_link *link, bool forked);

/* A user comes, or goes; kept until then. */
void coord__redis_link_join(struct coord__redis_link *link, struct coord_redis_user *user);
void coord__redis_link_leave(struct coord__redis_link *link, struct coord_redis_user *user);

/* Be connected from now on. */
void coord__redis_link_want(struct coord__redis_link *link, coord_ms now);

/* Read, write, connect, let time pass. */
void coord__redis_link_process(struct coord__redis_link *link, coord_ms now);

/* Write what waits, when it is up. */
void coord__redis_link_write(struct coord__redis_link *link, coord_ms now);

/* It is dead, although the system does not say so. A new one is begun at once. */
void coord__redis_link_break(struct coord__redis_link *link, const struct coord_error *why,
                             coord_ms now);

coord_ms coord__redis_link_deadline(const struct coord__redis_link *link);
bool coord__redis_link_descriptor(const struct coord__redis_link *link,
                                  struct coord_descriptor *out);

/* To the log of the first user. */
void coord__redis_link_log(const struct coord__redis_link *link, coord_ms now,
                           enum coord_log_level level, enum coord_err code, const char *text);

/* ---- steps, between connections/redis_link*.c and redis_greet.c only ---- */
void coord__redis_link_fail(struct coord__redis_link *link, const struct coord_error *error,
                            coord_ms now);
void coord__redis_link_next_host(struct coord__redis_link *link, const struct coord_error *error,
                                 coord_ms now);
void coord__redis_link_go_to_master(struct coord__redis_link *link);
void coord__redis_link_is_up(struct coord__redis_link *link, coord_ms now);

void coord__redis_link_close(struct coord__redis_link *link);
void coord__redis_link_drop_resolution(struct coord__redis_link *link);

/* Begin anew, or with the present host. */
void coord__redis_connect(struct coord__redis_link *link, coord_ms now);
void coord__redis_connect_host(struct coord__redis_link *link, coord_ms now);
/* The steps that wait. @return true: go on; false: there is nothing to do yet. */
bool coord__redis_connect_resolved(struct coord__redis_link *link, coord_ms now);
bool coord__redis_connect_done(struct coord__redis_link *link, coord_ms now);

/* Say hello to whom we met. */
void coord__redis_greet(struct coord__redis_link *link, coord_ms now);
/* One of its answers; it is freed. */
void coord__redis_greeted(struct coord__redis_link *link, struct redisReply *reply, coord_ms now);

/* ---------------------------------------------------------------- the socket */

enum coord__redis_io {
    COORD__REDIS_IO_DONE = 1,
    COORD__REDIS_IO_LATER,
    COORD__REDIS_IO_BROKEN /* `error` says why */
};

/* A reader that believes in no reply of too many parts; NULL without memory. */
void coord__redis_reader_start(struct coord__redis_link *link);

/* @return the descriptor, or -1 with *error. *connected: no need to wait for it. */
int coord__redis_socket_unix(const char *path, bool *connected, struct coord_error *error);
int coord__redis_socket_tcp(const char *address, uint16_t port, coord_ms attempt, bool *connected,
                            struct coord_error *error);
enum coord__redis_io coord__redis_socket_connected(int fd, struct coord_error *error);
enum coord__redis_io coord__redis_socket_write(struct coord__redis_link *link,
                                               struct coord__redis_buffer *buffer, size_t *written,
                                               struct coord_error *error);
/* Some bytes into the reader. *full: there may be more. */
enum coord__redis_io coord__redis_socket_read(struct coord__redis_link *link, bool *full,
                                              struct coord_error *error);

/* ---------------------------------------------------------------- TLS */

/* NO_TLS in a build without it. */
COORD_MUST_CHECK enum coord_err coord__redis_tls_check(const struct coord__redis_target *target,
                                                       struct coord_error *error);
struct coord__redis_tls *coord__redis_tls_new(const struct coord__redis_target *target,
                                              const char *host, struct coord_error *error);
void coord__redis_tls_free(struct coord__redis_tls *tls);
enum coord__redis_io coord__redis_tls_handshake(struct coord__redis_tls *tls, int fd,
                                                struct coord_error *error);
/* As send() and recv(), over it: -1 with errno, EAGAIN among them; EPROTO: see explain(). */
long coord__redis_tls_send(struct coord__redis_tls *tls, int fd, const char *bytes, size_t count);
long coord__redis_tls_recv(struct coord__redis_tls *tls, int fd, char *bytes, size_t room);
void coord__redis_tls_explain(struct coord_error *error);
bool coord__redis_tls_wants_write(const struct coord__redis_tls *tls);

#ifdef __cplusplus
}
#endif
#endif /* COORD_CONNECTION_REDIS_LINK_H */
