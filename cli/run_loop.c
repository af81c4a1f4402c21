/* SPDX-License-Identifier: MIT
 * cli/run_loop.c - `coordctl run` waits: for signals, for the guardian, for the election.
 */
#include "cli/run.h"

#include "cli/exits.h"
#include "cli/say.h"
#include "coord/duration.h"

#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    POLL_MAX_MS = 60 * 1000
};

/* ---------------------------------------------------------------- signals */

static bool ends_waiting(int signal)
{
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

static void take_signal(struct cli_run *run, int signal)
{
    if (run->term.number != 0) {
        run->asked_to_end = ends_waiting(signal) ? signal : run->asked_to_end;
        cli_guard_signal(&run->guard, run->term.number, signal);
        return;
    }
    if (ends_waiting(signal) && !run->finished) {
        cli_run_finish(run, CLI_BY_SIGNAL + signal);
    }
}

/* As subreaper, and as first process of a container, we get children that are not ours. */
static void reap_others(const struct cli_run *run)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
            info.si_pid == run->guard.pid) {
            return;
        }
        waitpid(info.si_pid, NULL, WNOHANG);
    }
}

static void take_signals(struct cli_run *run)
{
    struct signalfd_siginfo info;
    bool children = false;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            children = true;
        } else {
            take_signal(run, (int)info.ssi_signo);
        }
    }
    if (children || run->term.sweeping) {
        if (!run->guard_died && !cli_guard_check(&run->guard)) {
            cli_run_take_reports(run); /* what it said last */
            cli_run_guard_died(run);
        }
        reap_others(run);
    }
}

/* ---------------------------------------------------------------- while it waits to lead */

static bool is_worth_a_retry(enum coord_err code)
{
    const enum coord_error_class class = coord_err_class(code);
    return class != COORD_CLASS_USAGE && class != COORD_CLASS_REFUSED;
}

static void say_unproved(const struct cli_run *run, const char *before, const char *after,
                         coord_ms time)
{
    char text[COORD_DURATION_TEXT_MAX];
    char word[CLI_WORD_MAX];
    cli_say("%s %s%s in %s: nothing proves that an earlier leader has ended; where nobody leads, "
            "this before the start spares the wait: coordctl init --name %s",
            before, coord_election_name(run->opened.election), after,
            coord_duration_format(time, text), cli_say_word(run->command.name, word));
}

/* Once for each state, and for each leader. */
static void say_why(struct cli_run *run, const struct coord_explanation *why)
{
    struct coord_observation leader = {.fence = 0};
    const char *name = coord_election_name(run->opened.election);
    const bool blocked = why->code == COORD_E_BLOCKED_BY_FENCED_WORK;
    if (why->reason == COORD_REASON_HELD) {
        COORD_IGNORE(coord_election_leader(run->opened.election, &leader), "told without it");
    }
    if (why->reason == run->said_reason && blocked == run->said_blocked &&
        leader.fence == run->said_fence) {
        return;
    }
    run->said_reason = why->reason;
    run->said_blocked = blocked;
    run->said_fence = leader.fence;
    if (cli_election_is_failing(why->reason)) {
        cli_say("waiting for %s: %s: %s", name, coord_err_name(why->code), why->text);
    } else if (why->reason == COORD_REASON_TAKING_OVER && !blocked) {
        say_unproved(run, "taking over", "", why->for_ms);
    } else {
        cli_say("waiting for %s: %s", name, why->text);
    }
}

static bool worth_saying(enum coord_reason reason)
{
    return reason != COORD_REASON_ASKING && reason != COORD_REASON_LEADING &&
           reason != COORD_REASON_STOPPING && reason != COORD_REASON_RESIGNING &&
           reason != COORD_REASON_WAITING_FOR_HOST && reason != COORD_REASON_NOT_STANDING;
}

/* Who gives up does not ask again. */
static void say_error(const struct coord_explanation *why)
{
    cli_say("%s: %s", coord_err_name(why->code), why->error);
}

static void give_up(struct cli_run *run, const struct coord_explanation *why)
{
    if (cli_election_is_failing(why->reason)) {
        say_error(why);
        cli_run_finish(run, CLI_FAILED);
        return;
    }
    if (why->reason == COORD_REASON_TAKING_OVER && why->code != COORD_E_BLOCKED_BY_FENCED_WORK) {
        say_unproved(run, "not the leader of", " in time: taking over", why->for_ms);
    } else {
        cli_say("not the leader of %s in time: %s", coord_election_name(run->opened.election),
                why->text);
    }
    cli_run_finish(run, CLI_NOT_IN_TIME);
}

static void consider(struct cli_run *run)
{
    struct coord_explanation why;
    if (run->finished || run->term.number != 0 ||
        coord_election_explain(run->opened.election, &why) != COORD_OK) {
        return;
    }
    run->answered = run->answered || cli_election_has_answered(why.reason);
    if (cli_election_is_failing(why.reason) && !run->answered && !is_worth_a_retry(why.code)) {
        say_error(&why);
        cli_run_finish(run,
                       coord_err_class(why.code) == COORD_CLASS_USAGE ? CLI_USAGE : CLI_FAILED);
        return;
    }
    const bool decided = worth_saying(why.reason);
    const bool too_late = coord_clock_now() >= run->give_up_at;
    if (too_late || (run->wait == 0 && decided)) {
        give_up(run, &why);
    } else if (decided) {
        say_why(run, &why);
    }
}

/* ---------------------------------------------------------------- the loop */

static void wait_for_something(const struct cli_run *run)
{
    struct pollfd wait[] = {
        {.fd = coord_runtime_fd(run->opened.runtime), .events = POLLIN},
        {.fd = run->signals, .events = POLLIN},
        {.fd = run->guard_died ? -1 : run->guard.fd, .events = POLLIN},
    };
    const coord_ms now = coord_clock_now();
    coord_ms at = coord_ms_min(cli_run_deadline(run), now + POLL_MAX_MS);
    if (run->term.number == 0) {
        at = coord_ms_min(at, run->give_up_at);
    }
    at = coord_ms_min(at, coord_runtime_deadline(run->opened.runtime));
    poll(wait, sizeof wait / sizeof *wait, (int)coord_ms_sub(at, now));
}

void cli_run_loop(struct cli_run *run)
{
    while (run->term.number != 0 || (!run->finished && !run->guard_died)) {
        wait_for_something(run);
        take_signals(run);
        cli_run_take_reports(run);
        COORD_IGNORE(coord_runtime_process(run->opened.runtime) != COORD_OK, "never forked");
        cli_run_keep_time(run);
        consider(run);
    }
}
