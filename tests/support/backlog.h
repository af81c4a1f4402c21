/* SPDX-License-Identifier: MIT
 * tests/support/backlog.h - a server so busy that it lets nobody in: on loopback a connect is over
 * at once, through a network it is not, and here it is not either.
 */
#ifndef TEST_BACKLOG_H
#define TEST_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>

enum {
    BACKLOG_MAX = 16
};

struct backlog {
    int waiting[BACKLOG_MAX];
    size_t count;
};

/** Fill the queue of a loopback port whose backlog is 0: the next one that connects has to wait. */
void backlog_fill(struct backlog *backlog, unsigned port);

/** Those that filled it go. */
void backlog_leave(struct backlog *backlog);

/**
 * Let one in, and read the first byte that it says.
 *
 * @param peer  -1 until there is one; those that filled the queue are let in, and go.
 * @return      false: it has said nothing yet.
 */
bool backlog_hears(int listener, int *peer, char *first);

#endif /* TEST_BACKLOG_H */
