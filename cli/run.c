/* SPDX-License-Identifier: MIT
 * cli/run.c - `coordctl run`: COMMAND runs only while this process leads.
 */
#include "cli/run.h"

#include "cli/exits.h"
#include "cli/say.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    HOST_BYTES = 200, /* leaves room for the numbers */
    SHORT_LIFE_MS = 1000,
    SHORT_LIVES_MAX = 3 /* guardians in a row that lived no longer: the next one will not either */
};

/* Passed on to COMMAND; SIGCHLD tells of the guardian. */
static const int taken[] = {SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1,
                            SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGCHLD};

static void set_up_signals(struct cli_run *run)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        sigaddset(&set, taken[i]);
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &ignore, &run->command.on_pipe);
    sigaction(SIGCHLD, &plain, NULL); /* ignored by whoever started us, children would vanish */
    sigprocmask(SIG_BLOCK, &set, &run->command.mask);
    run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Unique also where host names and process numbers repeat, as in containers. */
static const char *make_identity(char *out, size_t room)
{
    char host[HOST_BYTES + 1] = "host";
    unsigned random = 0;
    COORD_IGNORE(gethostname(host, HOST_BYTES) != 0, "the number tells them apart");
    COORD_IGNORE(getrandom(&random, sizeof random, GRND_NONBLOCK) < 0, "so does the process id");
    snprintf(out, room, "%s-%d-%08x", host, (int)getpid(), random);
    return out;
}

static int start_session(struct cli_run *run)
{
    /* First of all, while there is one thread and no descriptor that it should not have. */
    if (!cli_guard_start(&run->guard, &run->command)) {
        return cli_say_no_room("a guardian", errno);
    }
    run->guard_since = coord_clock_now();
    run->guard_died = false;
    run->led = false;
    int status = cli_election_open(run->args, run->identity, true, &run->opened);
    if (status != 0) {
        return status;
    }
    if (coord_election_on_edge(run->opened.election, cli_run_edge, run) != COORD_OK ||
        coord_election_stand(run->opened.election) != COORD_OK) {
        cli_election_close(&run->opened);
        cli_say("out of memory");
        return CLI_FAILED;
    }
    return 0;
}

static void end_session(struct cli_run *run)
{
    /* Where nothing was held there is little to wait for. */
    const coord_ms attempt = coord_election_timing(run->opened.election)->attempt;
    const coord_ms patience = run->led ? cli_election_patience(&run->opened) : attempt;
    enum coord_stop how = COORD_STOP_RELEASED;
    COORD_IGNORE(coord_election_stop(run->opened.election, patience, &how) != COORD_OK,
                 "never forked");
    if (run->led && how != COORD_STOP_RELEASED) {
        cli_say("%s is not surely resigned; at the latest it lapses with its lease",
                coord_election_name(run->opened.election));
    }
    cli_election_close(&run->opened);
}

static int run_sessions(struct cli_run *run)
{
    unsigned short_lives = 0;
    while (!run->finished) {
        const int status = start_session(run);
        if (status != 0) {
            cli_guard_end(&run->guard);
            return status;
        }
        cli_run_loop(run);
        end_session(run);
        short_lives = coord_clock_now() - run->guard_since < SHORT_LIFE_MS ? short_lives + 1 : 0;
        cli_guard_end(&run->guard);
        if (!run->finished && short_lives == SHORT_LIVES_MAX) {
            cli_say("the guardian ends right after its start; see whether something kills "
                    "processes named coord-guardian");
            return CLI_FAILED;
        }
    }
    return run->status;
}

static int run_command(const struct cli_args *args)
{
    char identity[COORD_NAME_MAX + 1];
    struct cli_run run = {.args = args, .restart = args->value[CLI_RESTART] != NULL};
    run.identity = args->value[CLI_ID] != NULL ? args->value[CLI_ID]
                                               : make_identity(identity, sizeof identity);
    run.command.argv = args->command;
    run.command.name = args->value[CLI_NAME];
    run.command.identity = run.identity;
    run.command.keep_stdin = args->value[CLI_STDIN] != NULL;
    const int status = cli_args_duration(args, CLI_WAIT, COORD_NEVER, &run.wait);
    if (status != 0) {
        return status;
    }
    if (!cli_descendants_known()) {
        cli_say("/proc does not tell the children of a process, and what COMMAND leaves behind "
                "could not be ended; mount /proc");
        return CLI_FAILED;
    }
    set_up_signals(&run);
    if (run.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return cli_say_no_room("a descriptor of signals", errno);
    }
    cli_descendants_spare(&run.spared);
    run.give_up_at = run.wait == 0 ? COORD_NEVER : coord_ms_add(coord_clock_now(), run.wait);
    return run_sessions(&run);
}

const struct cli_verb cli_verb_run = {
    .name = "run",
    .synopsis = "--elector URI --name NAME [OPTION...] -- COMMAND [ARG...]",
    .summary = "run COMMAND only while leading",
    .details =
        "COMMAND gets COORD_FENCE, COORD_LEADER_NAME, COORD_LEADER_ID and COORD_FD, a pipe that\n"
        "closes when its work has to end. It gets SIGTERM then, and SIGKILL in time for the next\n"
        "leader, with all that it started. Signals are passed on to it. By default coordctl waits\n"
        "for ever to lead, and exits when leadership is lost: a service wants --restart.\n\n"
        "exit: the status of COMMAND, or 128 and its signal; 121 leadership lost, COMMAND ended;\n"
        "124 not the leader within --wait; 125 the store or the system refuses; 126, 127 COMMAND\n"
        "cannot be executed; 2 usage\n",
    .takes = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME) | CLI_TAKES(CLI_ID) | CLI_TAKES(CLI_TTL) |
             CLI_TAKES(CLI_WAIT) | CLI_TAKES(CLI_KILL_AFTER) | CLI_TAKES(CLI_RESTART) |
             CLI_TAKES(CLI_STDIN) | CLI_TAKES(CLI_SET),
    .needs = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME),
    .command = true,
    .run = run_command,
};
