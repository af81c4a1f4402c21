/* SPDX-License-Identifier: MIT
 * cli/work.c - the COMMAND of `coordctl agent`.
 */
#include "cli/work.h"

#include "cli/descendants.h"
#include "cli/exits.h"
#include "cli/say.h"
#include "runtime/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

/* There is one term, and only the member's leaving ends it. */
static const struct cli_guard_order begin = {
    .kind = CLI_GUARD_BEGIN, .term = 1, .grace = COORD_NEVER / 2};

int cli_work_open(char *const *argv, const sigset_t *mask, const struct sigaction *on_pipe,
                  struct cli_work *out)
{
    *out = (struct cli_work){.guard = {.fd = -1}, .command = {.argv = argv}};
    if (argv == NULL) {
        return 0;
    }
    out->command.mask = *mask;
    out->command.on_pipe = *on_pipe;
    if (!cli_descendants_known()) {
        cli_say("/proc does not tell the children of a process, and what COMMAND leaves behind "
                "could not be ended; mount /proc");
        return CLI_FAILED;
    }
    if (!cli_guard_start(&out->guard, &out->command)) {
        return cli_say_no_room("a guardian", errno);
    }
    return 0;
}

int cli_work_begin(struct cli_work *work)
{
    if (work->command.argv == NULL) {
        return 0;
    }
    if (!cli_guard_begin(&work->guard, &begin, -1, COORD_NEVER, COORD_NEVER)) {
        cli_say("the guardian does not answer: see whether something kills processes named "
                "coord-guardian");
        return CLI_FAILED;
    }
    work->running = true;
    return 0;
}

int cli_work_fd(const struct cli_work *work)
{
    return work->running ? work->guard.fd : -1;
}

void cli_work_stop(struct cli_work *work, coord_ms by)
{
    if (work->running) {
        cli_guard_prolong(&work->guard, COORD_NEVER,
                          coord_ms_add(by, cli_guard_kill_lead(begin.grace)));
        cli_guard_stop(&work->guard, coord_clock_now());
    }
}

void cli_work_kill(struct cli_work *work)
{
    if (work->running) {
        cli_guard_cut(&work->guard);
    }
}

static void exited(struct cli_work *work, const struct cli_guard_report *report)
{
    work->exited = true;
    work->status = WIFSIGNALED(report->status) ? CLI_BY_SIGNAL + WTERMSIG(report->status)
                                               : WEXITSTATUS(report->status);
    if (report->exec_error != 0) {
        work->status = cli_say_not_executed(work->command.argv[0], report->exec_error);
    }
    cli_guard_cut(&work->guard); /* what it left behind has no work of the fleet to do */
}

bool cli_work_has_ended(struct cli_work *work)
{
    struct cli_guard_report report;
    if (!work->running) {
        return false;
    }
    const bool alive =
        cli_guard_check(&work->guard); /* before the reports: it may say a last one */
    while (work->running && cli_guard_next(&work->guard, &report)) {
        if (report.kind == CLI_GUARD_EXITED) {
            exited(work, &report);
        } else {
            work->running = false;
        }
    }
    if (work->running && !alive) {
        cli_say("the guardian was killed, and the command with it");
        work->status = work->exited ? work->status : CLI_BY_SIGNAL + SIGKILL;
        work->running = false;
    }
    return !work->running;
}

void cli_work_close(struct cli_work *work)
{
    cli_work_kill(work);
    if (work->command.argv != NULL) {
        cli_guard_end(&work->guard);
    }
}
