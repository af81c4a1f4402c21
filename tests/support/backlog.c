/* SPDX-License-Identifier: MIT
 * tests/support/backlog.c - see backlog.h.
 */
#include "tests/support/backlog.h"

#include "tests/support/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

void backlog_fill(struct backlog *backlog, unsigned port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in peer;
    socklen_t bytes = sizeof peer;
    int last;
    backlog->count = 0;
    do {
        assert_true(backlog->count < BACKLOG_MAX);
        last = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        backlog->waiting[backlog->count++] = last;
        assert_true(connect(last, (struct sockaddr *)&at, sizeof at) == 0 || errno == EINPROGRESS);
    } while (getpeername(last, (struct sockaddr *)&peer, &bytes) == 0);
}

void backlog_leave(struct backlog *backlog)
{
    while (backlog->count > 0) {
        close(backlog->waiting[--backlog->count]);
    }
}

bool backlog_hears(int listener, int *peer, char *first)
{
    *peer = *peer < 0 ? accept(listener, NULL, NULL) : *peer;
    const ssize_t count = *peer < 0 ? -1 : recv(*peer, first, 1, MSG_DONTWAIT);
    if (count == 0) {
        close(*peer);
        *peer = -1;
    }
    return count == 1;
}
