/* SPDX-License-Identifier: MIT
 * cli/guardian.c - the process that COMMAND runs under. See cli/guardian.h.
 */
#include "cli/guardian.h"

#include "cli/descendants.h"
#include "cli/exits.h"
#include "runtime/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PASS_MS = 1, /* between two passes of killing */
    PATIENCE_MS = 60000,
    NUMBER_TEXT = 24
};

struct guardian {
    const struct cli_guard_command *command;
    struct cli_guard_page *page;
    int orders;
    int signals; /* signalfd of SIGCHLD */
    pid_t self;
    bool alone; /* coordctl has died */

    bool guarding; /* a term began, and something may be left of it */
    uint64_t term;
    coord_ms grace;
    pid_t child;  /* COMMAND, not reaped; 0: none */
    int lead;     /* write end of COORD_FD */
    int failure;  /* read end: errno of a failed exec */
    int liveness; /* the elector's */
    bool told;    /* SIGTERM for the end of the term was sent */
    bool asked;   /* SIGTERM was passed on for somebody else */
    bool exited;
    bool killing;
    coord_ms stop_at; /* told or exited: since when */
};

static void close_one(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* ---------------------------------------------------------------- COMMAND */

static void set_number(const char *name, uint64_t value)
{
    char text[NUMBER_TEXT];
    snprintf(text, sizeof text, "%" PRIu64, value);
    setenv(name, text, 1);
}

/* The lowest number that is free without what is ours: a shell like dash takes one digit only. */
static int pass_lead(const struct guardian *guardian, int lead)
{
    close(guardian->orders);
    close(guardian->signals);
    if (guardian->liveness >= 0) {
        close(guardian->liveness);
    }
    return fcntl(lead, F_DUPFD, STDERR_FILENO + 1);
}

/* Of the term, where there is one. */
static bool tell_of_term(const struct guardian *guardian, const struct cli_guard_order *begin,
                         int lead)
{
    const struct cli_guard_command *command = guardian->command;
    const int passed = pass_lead(guardian, lead);
    if (passed < 0) {
        return false;
    }
    set_number("COORD_FENCE", begin->fence);
    set_number("COORD_FD", (uint64_t)passed);
    setenv("COORD_LEADER_NAME", command->name, 1);
    setenv("COORD_LEADER_ID", command->identity, 1);
    return true;
}

/* In the child. Whatever fails here is told as a failed exec. */
static bool prepare(const struct guardian *guardian, const struct cli_guard_order *begin, int lead)
{
    const struct cli_guard_command *command = guardian->command;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != guardian->self) {
        return false;
    }
    setpgid(0, 0);
    if (command->name != NULL && !tell_of_term(guardian, begin, lead)) {
        return false;
    }
    if (!command->keep_stdin) {
        const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0) {
            return false;
        }
    }
    unsetenv("COORD_ELECTOR");
    unsetenv("COORD_BUS");
    sigaction(SIGPIPE, &command->on_pipe, NULL);
    return sigprocmask(SIG_SETMASK, &command->mask, NULL) == 0;
}

_Noreturn static void become(const struct guardian *guardian, const struct cli_guard_order *begin,
                             int lead, int failure)
{
    if (prepare(guardian, begin, lead)) {
        /* Whoever was stopped on the way here does not begin in another's term. */
        if (coord_clock_now() >= atomic_load(&guardian->page->soft)) {
            _exit(CLI_FAILED);
        }
        execvp(guardian->command->argv[0], guardian->command->argv);
    }
    const int why = errno;
    COORD_IGNORE(write(failure, &why, sizeof why) < 0, "the exit status tells it as well");
    _exit(why == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE);
}

/* Never waits for the exec: that could hang on a file system while the term ends. */
static void start_command(struct guardian *guardian, const struct cli_guard_order *begin)
{
    int lead[2] = {-1, -1};
    int failure[2] = {-1, -1};
    if (pipe2(lead, O_CLOEXEC) == 0 && pipe2(failure, O_CLOEXEC | O_NONBLOCK) == 0) {
        const pid_t child = fork();
        if (child == 0) {
            become(guardian, begin, lead[0], failure[1]);
        }
        if (child > 0) {
            setpgid(child, child); /* both do: a signal may come before the child runs */
            guardian->child = child;
        }
    }
    close_one(&lead[0]);
    close_one(&failure[1]);
    guardian->lead = lead[1];
    guardian->failure = failure[0];
}

static void report(const struct guardian *guardian, struct cli_guard_report *report)
{
    report->term = guardian->term;
    COORD_IGNORE(send(guardian->orders, report, sizeof *report, MSG_NOSIGNAL | MSG_DONTWAIT) < 0,
                 "coordctl has died, which the next read tells, or kills by itself");
}

static void begin_term(struct guardian *guardian, const struct cli_guard_order *begin, int liveness)
{
    guardian->guarding = true;
    guardian->term = begin->term;
    guardian->grace = begin->grace;
    guardian->child = 0;
    guardian->liveness = liveness;
    guardian->told = false;
    guardian->asked = false;
    guardian->exited = false;
    guardian->killing = false;
    if (coord_clock_now() >= atomic_load(&guardian->page->soft)) {
        guardian->told = true; /* too late: nothing is started, so nothing is left */
        guardian->stop_at = coord_clock_now();
        return;
    }
    start_command(guardian, begin);
    if (guardian->child == 0) {
        struct cli_guard_report failed = {
            .kind = CLI_GUARD_EXITED, .status = CLI_FAILED << 8, .exec_error = errno};
        guardian->exited = true;
        guardian->stop_at = coord_clock_now();
        report(guardian, &failed);
    }
}

static void signal_command(struct guardian *guardian, int signal)
{
    /* Not reaped, so neither number can belong to anybody else. */
    if (guardian->child > 0 && kill(-guardian->child, signal) != 0) {
        kill(guardian->child, signal);
    }
}

/* ---------------------------------------------------------------- orders */

static int passed_descriptor(struct msghdr *message)
{
    int fd = -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
         part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
            part->cmsg_len == CMSG_LEN(sizeof fd)) {
            memcpy(&fd, CMSG_DATA(part), sizeof fd);
        }
    }
    return fd;
}

static void obey(struct guardian *guardian, const struct cli_guard_order *order, int fd)
{
    if (order->kind == CLI_GUARD_BEGIN && !guardian->guarding) {
        begin_term(guardian, order, fd);
        return;
    }
    close_one(&fd);
    if (order->kind == CLI_GUARD_SIGNAL && order->term == guardian->term) {
        guardian->asked = guardian->asked || order->signal == SIGTERM;
        signal_command(guardian, order->signal);
    }
}

static void take_orders(struct guardian *guardian)
{
    for (;;) {
        struct cli_guard_order order;
        union {
            struct cmsghdr header;
            char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec part = {.iov_base = &order, .iov_len = sizeof order};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        const ssize_t got = recvmsg(guardian->orders, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            return;
        }
        if (got != (ssize_t)sizeof order) {
            guardian->alone = true;
            return;
        }
        obey(guardian, &order, passed_descriptor(&message));
    }
}

/* ---------------------------------------------------------------- the end of a term */

static void tell(struct guardian *guardian, coord_ms since)
{
    guardian->told = true;
    guardian->stop_at = since;
    close_one(&guardian->lead);
    signal_command(guardian, SIGTERM);
    signal_command(guardian, SIGCONT); /* a stopped one does not see the SIGTERM */
}

static void command_ended(struct guardian *guardian, int status)
{
    struct cli_guard_report ended = {
        .kind = CLI_GUARD_EXITED, .status = status, .told = guardian->told};
    int why = 0;
    if (read(guardian->failure, &why, sizeof why) == (ssize_t)sizeof why) {
        ended.exec_error = why;
    }
    report(guardian, &ended);
    const pid_t group = guardian->child;
    guardian->child = 0;
    guardian->exited = true;
    close_one(&guardian->lead);
    if (!guardian->told) {
        guardian->stop_at = coord_clock_now();
    }
    /* Those of the group have had their SIGTERM with it, if there was one. */
    cli_descendants_signal(SIGTERM, NULL, guardian->told || guardian->asked ? group : 0);
}

/* @return whether anything is left. As subreaper this process is the parent of whatever is. */
static bool reap(struct guardian *guardian)
{
    for (;;) {
        int status = 0;
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0) {
            return true;
        }
        if (pid < 0) {
            return errno != ECHILD;
        }
        if (pid == guardian->child) {
            command_ended(guardian, status);
        }
    }
}

static coord_ms kill_time(const struct guardian *guardian)
{
    const coord_ms lead = cli_guard_kill_lead(guardian->grace);
    const coord_ms at = coord_ms_sub(atomic_load(&guardian->page->hard), lead);
    if (!guardian->told && !guardian->exited) {
        return at;
    }
    return coord_ms_min(at, coord_ms_add(guardian->stop_at, guardian->grace - lead));
}

static void end_term(struct guardian *guardian)
{
    struct cli_guard_report gone = {.kind = CLI_GUARD_GONE, .told = guardian->told};
    guardian->guarding = false;
    close_one(&guardian->lead);
    close_one(&guardian->failure);
    close_one(&guardian->liveness); /* the elector's own end unlocks, or keeps, what it held */
    report(guardian, &gone);
}

static void keep_time(struct guardian *guardian)
{
    const coord_ms now = coord_clock_now();
    const coord_ms soft = atomic_load(&guardian->page->soft);
    if (!guardian->told && !guardian->exited && now >= soft) {
        tell(guardian, soft);
    }
    if (guardian->alone || now >= kill_time(guardian)) {
        guardian->killing = true;
    }
    if (guardian->killing) {
        signal_command(guardian, SIGKILL); /* the whole group in one step of the kernel's */
        cli_descendants_signal(SIGKILL, NULL, 0);
    }
    if (!reap(guardian)) {
        end_term(guardian);
    }
}

/* ---------------------------------------------------------------- the loop */

static int patience(const struct guardian *guardian)
{
    if (!guardian->guarding) {
        return -1;
    }
    if (guardian->killing) {
        return PASS_MS;
    }
    coord_ms at = kill_time(guardian);
    if (!guardian->told && !guardian->exited) {
        at = coord_ms_min(at, atomic_load(&guardian->page->soft));
    }
    return (int)coord_ms_min(coord_ms_sub(at, coord_clock_now()), PATIENCE_MS);
}

static void wait_for_something(struct guardian *guardian)
{
    struct pollfd wait[] = {{.fd = guardian->signals, .events = POLLIN},
                            {.fd = guardian->alone ? -1 : guardian->orders, .events = POLLIN}};
    poll(wait, 2, patience(guardian));
    struct signalfd_siginfo drained[8];
    while (read(guardian->signals, drained, sizeof drained) > 0) {
    }
}

void cli_guardian_main(const struct cli_guard_command *command, struct cli_guard_page *page, int fd)
{
    struct guardian guardian = {.command = command,
                                .page = page,
                                .orders = fd,
                                .self = getpid(),
                                .lead = -1,
                                .failure = -1,
                                .liveness = -1};
    sigset_t all;
    sigset_t child;
    sigfillset(&all);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    setsid();
    prctl(PR_SET_NAME, "coord-guardian");
    guardian.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (sigprocmask(SIG_SETMASK, &all, NULL) != 0 || guardian.signals < 0 ||
        prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        _exit(CLI_FAILED); /* coordctl sees it end, and says so */
    }
    for (;;) {
        wait_for_something(&guardian);
        take_orders(&guardian);
        if (guardian.guarding) {
            keep_time(&guardian);
        }
        if (guardian.alone && !guardian.guarding) {
            _exit(CLI_DONE);
        }
    }
}
