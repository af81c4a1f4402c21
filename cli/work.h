/* SPDX-License-Identifier: MIT
 * cli/work.h - the COMMAND of `coordctl agent`: it runs under a guardian (cli/guardian.h), which
 * ends it and all that it started when coordctl is killed.
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "cli/guardian.h"

struct cli_work {
    struct cli_guard guard;
    struct cli_guard_command command;
    bool running; /* it, or something that it left behind */
    bool exited;
    int status; /* of coordctl, when it has ended: its own, or 128 and its signal, or 126, 127 */
};

/**
 * Start the guardian. To be called before any thread is made, and before what it should not hold
 * copies of is opened.
 *
 * @param argv     NULL: there is no COMMAND, and nothing is done here or later.
 * @param mask     its signal mask.
 * @param on_pipe  its SIGPIPE.
 * @param out      written; end it with cli_work_close().
 * @return         0, or the exit status, said on stderr.
 */
int cli_work_open(char *const *argv, const sigset_t *mask, const struct sigaction *on_pipe,
                  struct cli_work *out);

/** Start COMMAND. @return 0, or the exit status, said on stderr. */
int cli_work_begin(struct cli_work *work);

/** Readable when something may have ended; -1: nothing is waited for. */
int cli_work_fd(const struct cli_work *work);

/** It is to end: SIGTERM, and the end of all of it at `by`. May be called again. */
void cli_work_stop(struct cli_work *work, coord_ms by);

/** Kill all of it. */
void cli_work_kill(struct cli_work *work);

/** Look whether all of it has ended; what COMMAND left behind is killed. @return true: just now. */
bool cli_work_has_ended(struct cli_work *work);

/** Kill what is left, and let the guardian go. */
void cli_work_close(struct cli_work *work);

#endif /* CLI_WORK_H */
