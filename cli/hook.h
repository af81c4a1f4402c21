/* SPDX-License-Identifier: MIT
 * cli/hook.h - a command that sh runs for each assignment, which it reads as one line of JSON.
 *
 * One at a time, in the order in which they came, so that a later fence is never overtaken by an
 * earlier one. What waits is bounded.
 */
#ifndef CLI_HOOK_H
#define CLI_HOOK_H

#include "coord/message.h"

#include <sys/types.h>

enum {
    CLI_HOOK_WAITING = 64
};

/** What is given to one run: the line, in memory that is its stdin, and what else is told. */
struct cli_hook_post {
    int input;
    uint64_t fence;
    int64_t priority;
};

struct cli_hook {
    const char *command; /* NULL: none, and nothing is done */
    struct cli_hook_post waiting[CLI_HOOK_WAITING];
    unsigned first;
    unsigned count;
    pid_t child; /* 0: none runs */
    int child_fd;
    coord_ms kill_at;
};

/** @param command  for sh; kept; NULL: none. */
void cli_hook_open(const char *command, struct cli_hook *out);

/** Run it for this assignment, when those before it are done. No room: said on stderr. */
void cli_hook_put(struct cli_hook *hook, const struct coord_message *assignment);

/** Readable when the run has ended; -1: none runs. */
int cli_hook_fd(const struct cli_hook *hook);

/** Take the end of a run, begin the next one, kill one that takes too long. */
void cli_hook_process(struct cli_hook *hook, coord_ms now);

/** When cli_hook_process() is due in any case; COORD_NEVER. */
coord_ms cli_hook_deadline(const struct cli_hook *hook);

/** Kill what runs, and drop what waits. */
void cli_hook_close(struct cli_hook *hook);

#endif /* CLI_HOOK_H */
