/* SPDX-License-Identifier: MIT
 * cli/work.h - the COMMAND of `coordctl agent`: a process group that is started and ended.
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "coord/base.h"

#include <signal.h>
#include <sys/types.h>

struct cli_work {
    pid_t pid;  /* 0: none, or it has ended */
    int fd;     /* readable: it has ended; -1: none */
    int status; /* of coordctl, when it has ended: its own, or 128 and its signal */
};

/**
 * Start COMMAND, in a process group of its own; it is killed when we die. To be called before any
 * thread is made.
 *
 * @param mask  its signal mask.
 * @param out   written on success.
 * @return      0, or the exit status, said on stderr.
 */
int cli_work_start(char *const *argv, const sigset_t *mask, struct cli_work *out);

/** Send a signal to all of it. */
void cli_work_signal(const struct cli_work *work, int signal);

/** Look whether it has ended; what it left in its group is killed then. @return true: just now. */
bool cli_work_has_ended(struct cli_work *work);

#endif /* CLI_WORK_H */
