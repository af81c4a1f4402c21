/* SPDX-License-Identifier: MIT
 * cli/guardian.h - the small process between coordctl and COMMAND, which ends COMMAND in time even
 * when coordctl is killed or stopped.
 *
 * `run` has one for each term; the one of `agent` has a single term, until the member leaves.
 *
 * It is a fork of coordctl with one thread, a session of its own, all signals blocked, and it is
 * the subreaper of all that COMMAND starts. Both sides are here: cli/guardian.c is the process,
 * cli/guard.c is what coordctl does with it.
 *
 * One term: begin; then either COMMAND ends (EXITED), or the soft deadline comes and COMMAND gets
 * SIGTERM and SIGCONT. Whatever is left is killed in time, and GONE tells that nothing is left.
 */
#ifndef CLI_GUARDIAN_H
#define CLI_GUARDIAN_H

#include "coord/base.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

/** Shared by both: the term's deadlines in ms of coord_clock_now(). */
struct cli_guard_page {
    _Atomic uint64_t soft; /* end the work; when it has passed it is not moved any more */
    _Atomic uint64_t hard; /* it has ended */
};

/** What is started in each term. Kept. */
struct cli_guard_command {
    char *const *argv;    /* NULL-terminated */
    const char *name;     /* COORD_LEADER_NAME; NULL: it is told nothing of a term, and has no
                             COORD_FD */
    const char *identity; /* COORD_LEADER_ID */
    bool keep_stdin;
    sigset_t mask;            /* its signal mask */
    struct sigaction on_pipe; /* its SIGPIPE */
};

enum cli_guard_report_kind {
    CLI_GUARD_EXITED = 1, /* COMMAND has ended; descendants may be left */
    CLI_GUARD_GONE = 2    /* nothing is left */
};

/** From the guardian. */
struct cli_guard_report {
    enum cli_guard_report_kind kind;
    uint64_t term;
    int status;     /* EXITED: as of waitpid() */
    int exec_error; /* EXITED: errno, when it could not be executed */
    bool told;      /* EXITED: SIGTERM for the end of the term was sent before */
};

enum cli_guard_order_kind {
    CLI_GUARD_BEGIN = 1,
    CLI_GUARD_SIGNAL = 2,
    CLI_GUARD_LOOK = 3 /* a deadline came nearer */
};

/** To the guardian; BEGIN may carry the liveness descriptor. */
struct cli_guard_order {
    enum cli_guard_order_kind kind;
    int signal;
    uint64_t term;
    uint64_t fence;
    coord_ms grace; /* G */
};

/** Coordctl's end. */
struct cli_guard {
    struct cli_guard_page *page;
    int fd;    /* readable: a report, or the guardian has died; -1: none */
    pid_t pid; /* 0: none */
};

/** How long before hard all is killed: min(100 ms, G / 2). */
coord_ms cli_guard_kill_lead(coord_ms grace);

/**
 * Fork the guardian. The process must have one thread, and SIGCHLD its default action.
 *
 * @param command  kept until cli_guard_end().
 * @return         false: errno says why.
 */
bool cli_guard_start(struct cli_guard *out, const struct cli_guard_command *command);

/**
 * Start COMMAND for a term.
 *
 * @param liveness  descriptor whose copy the guardian holds until nothing is left; -1: none.
 * @return          false: the guardian does not take orders.
 */
bool cli_guard_begin(struct cli_guard *guard, const struct cli_guard_order *begin, int liveness,
                     coord_ms soft, coord_ms hard);

/** The term was prolonged. */
void cli_guard_prolong(struct cli_guard *guard, coord_ms soft, coord_ms hard);

/** The term ends from now on. */
void cli_guard_stop(struct cli_guard *guard, coord_ms now);

/** The term has ended: nothing may be left this very moment. */
void cli_guard_cut(struct cli_guard *guard);

/** Pass a signal on to COMMAND's process group. */
void cli_guard_signal(struct cli_guard *guard, uint64_t term, int signal);

/** Take the next report. @return false: none. */
bool cli_guard_next(struct cli_guard *guard, struct cli_guard_report *out);

/** To be called after SIGCHLD: resume it when somebody stopped it. @return false: it has ended. */
bool cli_guard_check(struct cli_guard *guard);

/** Kill it; cli_guard_check() will tell when it has ended. */
void cli_guard_kill(struct cli_guard *guard);

/** Let it go and wait until it has ended: with nothing left to guard that is at once. */
void cli_guard_end(struct cli_guard *guard);

/** The process itself. Never returns. */
_Noreturn void cli_guardian_main(const struct cli_guard_command *command,
                                 struct cli_guard_page *page, int fd);

#endif /* CLI_GUARDIAN_H */
