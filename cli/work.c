/* SPDX-License-Identifier: MIT
 * cli/work.c - the COMMAND of `coordctl agent`.
 */
#include "cli/work.h"

#include "cli/exits.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child; with one thread in the parent it may do anything. */
_Noreturn static void become(char *const *argv, const sigset_t *mask, pid_t parent, int tell)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigaction(SIGPIPE, &plain, NULL);
    unsetenv("COORD_ELECTOR"); /* both may hold a password */
    unsetenv("COORD_BUS");
    if (setpgid(0, 0) == 0 && nothing >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO &&
        prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
        sigprocmask(SIG_SETMASK, mask, NULL) == 0) {
        execvp(argv[0], argv);
    }
    const int why = errno;
    COORD_IGNORE(write(tell, &why, sizeof why) < 0, "nobody is left to be told");
    _exit(CLI_FAILED);
}

static int say_why(const char *name, int why)
{
    cli_say("%s cannot be executed: %s", name, strerror(why));
    return why == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
}

int cli_work_start(char *const *argv, const sigset_t *mask, struct cli_work *out)
{
    int ends[2];
    int why = 0;
    const pid_t parent = getpid();
    *out = (struct cli_work){.fd = -1};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        cli_say("the system refuses: %s", strerror(errno));
        return CLI_FAILED;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        become(argv, mask, parent, ends[1]);
    }
    why = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        cli_say("no process for the command: %s", strerror(why));
        return CLI_FAILED;
    }
    const bool failed = read(ends[0], &why, sizeof why) == (ssize_t)sizeof why;
    close(ends[0]);
    if (failed) {
        waitpid(pid, NULL, 0);
        return say_why(argv[0], why);
    }
    out->pid = pid;
    out->fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (out->fd < 0) {
        cli_say("the system refuses: %s", strerror(errno));
        kill(-pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return CLI_FAILED;
    }
    fcntl(out->fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

void cli_work_signal(const struct cli_work *work, int signal)
{
    if (work->pid > 0) {
        kill(-work->pid, signal);
        kill(-work->pid, SIGCONT); /* a stopped one would not hear it */
    }
}

bool cli_work_has_ended(struct cli_work *work)
{
    siginfo_t info = {.si_pid = 0};
    int status = 0;
    if (work->pid == 0 || waitid(P_PID, (id_t)work->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return false;
    }
    kill(-work->pid, SIGKILL); /* not reaped yet: the group's number is its own */
    waitpid(work->pid, &status, 0);
    work->status = WIFSIGNALED(status) ? CLI_BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
    work->pid = 0;
    close(work->fd);
    work->fd = -1;
    return true;
}
