/* SPDX-License-Identifier: MIT
 * tests/support/proxy.c - see proxy.h. One thread; whatever it does stands under one lock.
 */
#include "tests/support/proxy.h"

#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void send_all(int fd, const char *bytes, size_t count)
{
    while (fd >= 0 && count > 0) {
        const ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0) {
            return; /* it has gone */
        }
        bytes += sent;
        count -= (size_t)sent;
    }
}

static void close_client(struct proxy_pair *pair)
{
    if (pair->client >= 0) {
        shutdown(pair->client, SHUT_RDWR); /* at once, although another thread polls it */
        close(pair->client);
        pair->client = -1;
    }
}

static void close_pair(struct proxy_pair *pair)
{
    close_client(pair);
    if (pair->server >= 0) {
        close(pair->server);
        pair->server = -1;
    }
    pair->held_bytes = 0;
    pair->drop_reply = false;
    pair->keep_reply = false;
    pair->double_reply = false;
    pair->kept_bytes = 0;
}

static void accept_client(struct proxy *proxy)
{
    const int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0) {
        return;
    }
    proxy->clients++;
    const int server = proxy->refusing ? -1 : connect_to(proxy->upstream);
    for (size_t i = 0; server >= 0 && i < PROXY_PAIRS; i++) {
        struct proxy_pair *pair = &proxy->pairs[i];
        if (pair->server < 0) {
            pair->client = client;
            pair->server = server;
            return;
        }
    }
    close(client);
    if (server >= 0) {
        close(server);
    }
}

static bool holds(const char *message, size_t bytes, const char *text)
{
    return text != NULL && memmem(message, bytes, text, strlen(text)) != NULL;
}

/* What there is no room for ends the connection: an assertion may not fail on this thread. */
static void keep(struct proxy_pair *pair, char *room, size_t room_bytes, size_t *used,
                 const char *message, size_t bytes)
{
    if (*used + bytes > room_bytes) {
        close_pair(pair);
        return;
    }
    memcpy(room + *used, message, bytes);
    *used += bytes;
}

static void from_client(struct proxy *proxy, struct proxy_pair *pair)
{
    char message[PROXY_HELD]; /* of this thread: a test may have several proxies */
    const ssize_t count = recv(pair->client, message, sizeof message, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) {
        return;
    }
    if (count <= 0) {
        /* What was held back is on its way already: it arrives all the same. */
        if (pair->held_bytes > 0) {
            close_client(pair);
        } else {
            close_pair(pair);
        }
        return;
    }
    proxy->requests++;
    const size_t bytes = (size_t)count;
    if (holds(message, bytes, proxy->drop_request)) {
        proxy->drop_request = NULL;
        proxy->dropped++;
        return;
    }
    if (holds(message, bytes, proxy->drop_reply)) {
        proxy->drop_reply = NULL;
        pair->drop_reply = true;
    }
    if (holds(message, bytes, proxy->double_reply)) {
        proxy->double_reply = NULL;
        pair->double_reply = true;
    }
    if (holds(message, bytes, proxy->keep_reply)) {
        proxy->keep_reply = NULL;
        pair->keep_reply = true;
    }
    if (proxy->holding) {
        keep(pair, pair->held, sizeof pair->held, &pair->held_bytes, message, bytes);
        return;
    }
    send_all(pair->server, message, bytes);
}

static void from_server(struct proxy *proxy, struct proxy_pair *pair)
{
    char message[PROXY_HELD]; /* of this thread: a test may have several proxies */
    const ssize_t count = recv(pair->server, message, sizeof message, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) {
        return;
    }
    if (count <= 0) {
        close_pair(pair);
        return;
    }
    if (pair->drop_reply) {
        pair->drop_reply = false;
        proxy->dropped++;
        return;
    }
    if (pair->keep_reply) {
        keep(pair, pair->kept, sizeof pair->kept, &pair->kept_bytes, message, (size_t)count);
        proxy->kept++;
        return;
    }
    send_all(pair->client, message, (size_t)count);
    if (pair->double_reply) {
        pair->double_reply = false;
        send_all(pair->client, message, (size_t)count);
    }
    if (holds(message, (size_t)count, proxy->end_behind)) {
        close_pair(pair);
    }
}

static void *run(void *ctx)
{
    struct proxy *proxy = ctx;
    for (;;) {
        struct pollfd fds[2 + 2 * PROXY_PAIRS];
        struct proxy_pair *pairs[2 + 2 * PROXY_PAIRS] = {NULL};
        nfds_t count = 2;
        pthread_mutex_lock(&proxy->lock);
        fds[0] = (struct pollfd){.fd = proxy->wake[0], .events = POLLIN};
        fds[1] = (struct pollfd){.fd = proxy->stalled ? -1 : proxy->listener, .events = POLLIN};
        for (size_t i = 0; i < PROXY_PAIRS && !proxy->stalled; i++) {
            struct proxy_pair *pair = &proxy->pairs[i];
            if (pair->server >= 0) {
                pairs[count] = pair;
                fds[count++] = (struct pollfd){.fd = pair->client, .events = POLLIN};
                pairs[count] = pair;
                fds[count++] = (struct pollfd){.fd = pair->server, .events = POLLIN};
            }
        }
        const bool ending = proxy->ending;
        pthread_mutex_unlock(&proxy->lock);
        if (ending) {
            return NULL;
        }
        poll(fds, count, -1);
        pthread_mutex_lock(&proxy->lock);
        if (fds[0].revents != 0) {
            char byte[16];
            (void)!read(proxy->wake[0], byte, sizeof byte);
        } else if (fds[1].revents != 0) {
            accept_client(proxy);
        } else {
            for (nfds_t i = 2; i < count; i++) {
                if (fds[i].revents != 0 && i % 2 == 0 && pairs[i]->client == fds[i].fd) {
                    from_client(proxy, pairs[i]);
                } else if (fds[i].revents != 0 && pairs[i]->server == fds[i].fd) {
                    from_server(proxy, pairs[i]);
                }
            }
        }
        pthread_mutex_unlock(&proxy->lock);
    }
}

static void wake(struct proxy *proxy)
{
    (void)!write(proxy->wake[1], "", 1);
}

void proxy_start(struct proxy *proxy, const char *upstream)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memset(proxy, 0, sizeof *proxy);
    snprintf(proxy->upstream, sizeof proxy->upstream, "%s", upstream);
    scratch_make("proxy", proxy->folder, sizeof proxy->folder);
    snprintf(proxy->socket, sizeof proxy->socket, "%s/s", proxy->folder);
    snprintf(proxy->uri, sizeof proxy->uri, "redis+unix://%s", proxy->socket);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", proxy->socket);
    for (size_t i = 0; i < PROXY_PAIRS; i++) {
        proxy->pairs[i].client = -1;
        proxy->pairs[i].server = -1;
    }
    pthread_mutex_init(&proxy->lock, NULL);
    assert_int_equal(pipe2(proxy->wake, O_CLOEXEC), 0);
    proxy->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(proxy->listener >= 0);
    assert_int_equal(bind(proxy->listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(proxy->listener, 64), 0);
    assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
}

void proxy_stop(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->ending = true;
    pthread_mutex_unlock(&proxy->lock);
    wake(proxy);
    pthread_join(proxy->thread, NULL);
    for (size_t i = 0; i < PROXY_PAIRS; i++) {
        close_pair(&proxy->pairs[i]);
    }
    close(proxy->listener);
    close(proxy->wake[0]);
    close(proxy->wake[1]);
    scratch_remove(proxy->folder);
    pthread_mutex_destroy(&proxy->lock);
}

void proxy_drop_request(struct proxy *proxy, const char *text)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->drop_request = text;
    pthread_mutex_unlock(&proxy->lock);
}

void proxy_drop_reply(struct proxy *proxy, const char *text)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->drop_reply = text;
    pthread_mutex_unlock(&proxy->lock);
}

void proxy_double_reply(struct proxy *proxy, const char *text)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->double_reply = text;
    pthread_mutex_unlock(&proxy->lock);
}

void proxy_keep_reply(struct proxy *proxy, const char *text)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->keep_reply = text;
    pthread_mutex_unlock(&proxy->lock);
}

void proxy_let_go(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    for (size_t i = 0; i < PROXY_PAIRS; i++) {
        struct proxy_pair *pair = &proxy->pairs[i];
        send_all(pair->client, pair->kept, pair->kept_bytes);
        pair->kept_bytes = 0;
        pair->keep_reply = false;
    }
    pthread_mutex_unlock(&proxy->lock);
}

unsigned proxy_kept(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    const unsigned kept = proxy->kept;
    pthread_mutex_unlock(&proxy->lock);
    return kept;
}

unsigned proxy_dropped(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    const unsigned dropped = proxy->dropped;
    pthread_mutex_unlock(&proxy->lock);
    return dropped;
}

void proxy_stall(struct proxy *proxy, bool stalled)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->stalled = stalled;
    pthread_mutex_unlock(&proxy->lock);
    wake(proxy);
}

void proxy_hold(struct proxy *proxy, bool holding)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->holding = holding;
    for (size_t i = 0; i < PROXY_PAIRS && !holding; i++) {
        struct proxy_pair *pair = &proxy->pairs[i];
        if (pair->held_bytes > 0) {
            send_all(pair->server, pair->held, pair->held_bytes);
            pair->held_bytes = 0;
        }
    }
    pthread_mutex_unlock(&proxy->lock);
    wake(proxy);
}

void proxy_cut(struct proxy *proxy, bool refuse)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->refusing = refuse;
    for (size_t i = 0; i < PROXY_PAIRS; i++) {
        close_pair(&proxy->pairs[i]);
    }
    pthread_mutex_unlock(&proxy->lock);
    wake(proxy);
}

void proxy_end_behind(struct proxy *proxy, const char *text)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->end_behind = text;
    pthread_mutex_unlock(&proxy->lock);
}

unsigned proxy_clients(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    const unsigned clients = proxy->clients;
    pthread_mutex_unlock(&proxy->lock);
    return clients;
}

unsigned proxy_requests(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    const unsigned requests = proxy->requests;
    pthread_mutex_unlock(&proxy->lock);
    return requests;
}
