/* SPDX-License-Identifier: MIT
 * tests/support/proxy.h - stands between a client and a server on a unix socket, and spoils things.
 *
 * What one read gives is one message: clients here write a request, servers a reply, in one go.
 */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    PROXY_PAIRS = 32,
    PROXY_HELD = 16 * 1024
};

/* One client and its way to the server. */
struct proxy_pair {
    int client; /* -1: it has gone */
    int server; /* -1: free place */
    bool drop_reply;
    bool keep_reply;
    bool double_reply;
    size_t kept_bytes;
    char kept[PROXY_HELD / 4];
    size_t held_bytes;
    char held[PROXY_HELD];
};

struct proxy {
    char folder[64];
    char socket[96];
    char uri[128]; /* redis+unix://... */
    char upstream[108];
    pthread_t thread;
    pthread_mutex_t lock;
    int listener;
    int wake[2];
    bool ending;
    bool stalled;
    bool holding;
    bool refusing;
    const char *drop_request; /* containing this text: the next one is thrown away */
    const char *drop_reply;   /* to a request containing this text */
    const char *double_reply; /* the same, twice */
    const char *keep_reply;   /* the same, but it comes later */
    const char *end_behind;   /* a reply containing this text: the connection ends */
    unsigned clients;
    unsigned requests;
    unsigned kept;
    unsigned dropped;
    struct proxy_pair pairs[PROXY_PAIRS];
};

/** Stand before the server that listens on the unix socket `upstream`. */
void proxy_start(struct proxy *proxy, const char *upstream);
void proxy_stop(struct proxy *proxy);

/** Throw away the next request, or the next reply to a request, that contains `text` (static). */
void proxy_drop_request(struct proxy *proxy, const char *text);
void proxy_drop_reply(struct proxy *proxy, const char *text);

/** Deliver the next reply to a request that contains `text` (static) twice. */
void proxy_double_reply(struct proxy *proxy, const char *text);

/** Keep the next reply to a request that contains `text` (static), until it is let go. */
void proxy_keep_reply(struct proxy *proxy, const char *text);
void proxy_let_go(struct proxy *proxy);
unsigned proxy_kept(struct proxy *proxy);

/** How many were thrown away so far. */
unsigned proxy_dropped(struct proxy *proxy);

/** Nothing moves, in any direction, while it is stalled. Connections stay. */
void proxy_stall(struct proxy *proxy, bool stalled);

/** Keep requests back, and deliver them when it ends, even if their client has gone by then. */
void proxy_hold(struct proxy *proxy, bool holding);

/** Close what is open. With `refuse`, and what comes later at once. */
void proxy_cut(struct proxy *proxy, bool refuse);

/** End each connection right behind a reply that contains `text` (static); NULL: no more. */
void proxy_end_behind(struct proxy *proxy, const char *text);

/** Connections of clients so far. */
unsigned proxy_clients(struct proxy *proxy);

/** Messages of clients so far. */
unsigned proxy_requests(struct proxy *proxy);

#endif /* TEST_PROXY_H */
