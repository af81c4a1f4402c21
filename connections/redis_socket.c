/* SPDX-License-Identifier: MIT
 * connections/redis_socket.c - sockets that never block, never raise SIGPIPE, and close on exec.
 */
#include "connections/redis_link.h"

#include <hiredis/hiredis.h>

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    READ_BYTES = 16 * 1024,
    READER_MAX = 4 * 1024 * 1024, /* of a reply that is not complete; ours are a few hundred */
    REPLY_PARTS = 1024,
    FIRST_ROOM = 1024,
    MIN_SILENCE = 1000 /* ms: what TCP may wait for an acknowledgement at least */
};

/* ---------------------------------------------------------------- bytes that wait */

bool coord__redis_buffer_add(struct coord__redis_buffer *buffer, const char *bytes, size_t count)
{
    if (buffer->end + count > buffer->room && buffer->start > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, buffer->end - buffer->start);
        buffer->end -= buffer->start;
        buffer->start = 0;
    }
    if (buffer->end + count > buffer->room) {
        size_t room = buffer->room > 0 ? buffer->room : FIRST_ROOM;
        while (room < buffer->end + count) {
            room *= 2;
        }
        char *more = realloc(buffer->bytes, room);
        if (more == NULL) {
            return false;
        }
        buffer->bytes = more;
        buffer->room = room;
    }
    memcpy(buffer->bytes + buffer->end, bytes, count);
    buffer->end += count;
    return true;
}

void coord__redis_buffer_clear(struct coord__redis_buffer *buffer)
{
    if (buffer->bytes != NULL) {
        explicit_bzero(buffer->bytes, buffer->room); /* a password may have passed */
    }
    buffer->start = 0;
    buffer->end = 0;
}

void coord__redis_buffer_free(struct coord__redis_buffer *buffer)
{
    coord__redis_buffer_clear(buffer);
    free(buffer->bytes);
    *buffer = (struct coord__redis_buffer){.bytes = NULL};
}

/* ---------------------------------------------------------------- connecting */

static enum coord__redis_io refused(int number, struct coord_error *error)
{
    char why[128];
    /* The GNU one: it returns the text. */
    const char *text = strerror_r(number, why, sizeof why);
    coord_error_set(error, COORD_E_UNREACHABLE, "cannot connect (%s): is the server running there?",
                    text);
    return COORD__REDIS_IO_BROKEN;
}

static int begin(int family, const struct sockaddr *address, socklen_t bytes, bool *connected,
                 struct coord_error *error)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        coord_error_set(error, COORD_E_SYSTEM,
                        "no socket can be made: raise the limit of open files");
        return -1;
    }
    if (fd < 0) {
        refused(errno, error); /* such as an address of a family that this host does not have */
        return -1;
    }
    int rc = connect(fd, address, bytes);
    while (rc != 0 && errno == EINTR) {
        rc = connect(fd, address, bytes);
    }
    *connected = rc == 0;
    if (rc != 0 && errno != EINPROGRESS) {
        refused(errno, error);
        close(fd);
        return -1;
    }
    return fd;
}

int coord__redis_socket_unix(const char *path, bool *connected, struct coord_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    COORD_ASSERT(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    /* EAGAIN: its backlog is full; there is no waiting for that, so it is tried again. */
    return begin(AF_UNIX, (const struct sockaddr *)&address, sizeof address, connected, error);
}

/* A cut line must not hold a connection for the hours that TCP would. */
static void set_options(int fd, coord_ms attempt)
{
    const int yes = 1;
    const unsigned silence = (unsigned)coord_ms_max(MIN_SILENCE, 2 * attempt);
    const int seconds = (int)(silence / 1000 > 0 ? silence / 1000 : 1);
    const int probes = 3;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof silence);
}

int coord__redis_socket_tcp(const char *address, uint16_t port, coord_ms attempt, bool *connected,
                            struct coord_error *error)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    /* Only numbers are asked for: this never waits. */
    if (getaddrinfo(address, service, &hints, &found) != 0) {
        coord_error_set(error, COORD_E_NAME_UNRESOLVED, "%.64s is no address", address);
        return -1;
    }
    const int fd = begin(found->ai_family, found->ai_addr, found->ai_addrlen, connected, error);
    freeaddrinfo(found);
    if (fd >= 0) {
        set_options(fd, attempt);
    }
    return fd;
}

enum coord__redis_io coord__redis_socket_connected(int fd, struct coord_error *error)
{
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    int number = 0;
    socklen_t size = sizeof number;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &size) != 0) {
        number = errno;
    }
    if (number != 0) {
        return refused(number, error);
    }
    if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0) {
        return COORD__REDIS_IO_DONE;
    }
    return errno == ENOTCONN ? COORD__REDIS_IO_LATER : refused(errno, error);
}

/* ---------------------------------------------------------------- reading and writing */

/*
 * A length that the server declares is reserved before its parts are there: of ours none has more
 * than a few. hiredis limits it from 1.0 on; before, by the function that makes an array.
 */
#if defined(HIREDIS_MAJOR) && HIREDIS_MAJOR >= 1

void coord__redis_reader_start(struct coord__redis_link *link)
{
    link->reader = redisReaderCreate();
    if (link->reader != NULL) {
        link->reader->maxelements = REPLY_PARTS;
    }
}

#else

/* Too many parts are no memory, to the reader. */
static void *make_array(const redisReadTask *task, int parts)
{
    const redisReplyObjectFunctions *its_own = task->privdata;
    return parts <= REPLY_PARTS ? its_own->createArray(task, parts) : NULL;
}

void coord__redis_reader_start(struct coord__redis_link *link)
{
    link->reader = redisReaderCreate();
    if (link->reader != NULL) {
        link->reader->privdata = link->reader->fn;
        link->functions = *link->reader->fn;
        link->functions.createArray = make_array;
        link->reader->fn = &link->functions;
    }
}

#endif

static enum coord__redis_io broken(const struct coord__redis_link *link, const char *what,
                                   int number, struct coord_error *error)
{
    char why[128];
    if (link->tls != NULL && number == EPROTO) {
        coord__redis_tls_explain(error);
        return COORD__REDIS_IO_BROKEN;
    }
    const char *text = number == 0 ? "the server closed it" : strerror_r(number, why, sizeof why);
    coord_error_set(error, COORD_E_UNREACHABLE,
                    "the connection broke while %s (%s): it is made again", what, text);
    return COORD__REDIS_IO_BROKEN;
}

static bool is_later(int number)
{
    return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

enum coord__redis_io coord__redis_socket_write(struct coord__redis_link *link,
                                               struct coord__redis_buffer *buffer, size_t *written,
                                               struct coord_error *error)
{
    *written = 0;
    while (buffer->start < buffer->end) {
        const char *bytes = buffer->bytes + buffer->start;
        const size_t count = buffer->end - buffer->start;
        const ssize_t sent = link->tls != NULL
                                 ? coord__redis_tls_send(link->tls, link->fd, bytes, count)
                                 : send(link->fd, bytes, count, MSG_NOSIGNAL);
        if (sent < 0) {
            return is_later(errno) ? COORD__REDIS_IO_LATER : broken(link, "writing", errno, error);
        }
        buffer->start += (size_t)sent;
        *written += (size_t)sent;
    }
    buffer->start = 0;
    buffer->end = 0;
    return COORD__REDIS_IO_DONE;
}

enum coord__redis_io coord__redis_socket_read(struct coord__redis_link *link, bool *full,
                                              struct coord_error *error)
{
    char bytes[READ_BYTES];
    const ssize_t count = link->tls != NULL
                              ? coord__redis_tls_recv(link->tls, link->fd, bytes, sizeof bytes)
                              : recv(link->fd, bytes, sizeof bytes, 0);
    *full = count == (ssize_t)sizeof bytes || (count > 0 && link->tls != NULL);
    if (count < 0 && is_later(errno)) {
        return COORD__REDIS_IO_LATER;
    }
    if (count <= 0) {
        return broken(link, "reading", count == 0 ? 0 : errno, error);
    }
    if (redisReaderFeed(link->reader, bytes, (size_t)count) != REDIS_OK ||
        link->reader->len - link->reader->pos > READER_MAX) {
        coord_error_set(error, COORD_E_PROTOCOL,
                        "the server sends no end of a reply: is it Redis, without a proxy?");
        return COORD__REDIS_IO_BROKEN;
    }
    return COORD__REDIS_IO_DONE;
}
