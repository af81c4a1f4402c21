/* SPDX-License-Identifier: MIT
 * cli/guard.c - coordctl's side of the guardian. See cli/guardian.h.
 */
#include "cli/guardian.h"

#include "runtime/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KILL_LEAD_MAX = 100,
    FAREWELL_MS = 200
};

coord_ms cli_guard_kill_lead(coord_ms grace)
{
    return coord_ms_min(KILL_LEAD_MAX, grace / 2);
}

bool cli_guard_start(struct cli_guard *out, const struct cli_guard_command *command)
{
    int ends[2];
    *out = (struct cli_guard){.fd = -1};
    struct cli_guard_page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        munmap(page, sizeof *page);
        return false;
    }
    atomic_init(&page->soft, COORD_NEVER);
    atomic_init(&page->hard, COORD_NEVER);
    /* The guardian must not see a signal before it blocks them all. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]); /* the other end closes when coordctl dies */
        cli_guardian_main(command, page, ends[1]);
    }
    const int why = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        munmap(page, sizeof *page);
        errno = why;
        return false;
    }
    out->page = page;
    out->fd = ends[0];
    out->pid = pid;
    return true;
}

/* Never waits: a guardian that was stopped does not read. */
static bool send_order(struct cli_guard *guard, const struct cli_guard_order *order, int fd)
{
    struct cli_guard_order copy = *order;
    struct iovec part = {.iov_base = &copy, .iov_len = sizeof copy};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    if (fd >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    return sendmsg(guard->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof copy;
}

bool cli_guard_begin(struct cli_guard *guard, const struct cli_guard_order *begin, int liveness,
                     coord_ms soft, coord_ms hard)
{
    atomic_store(&guard->page->hard, hard);
    atomic_store(&guard->page->soft, soft);
    return guard->fd >= 0 && send_order(guard, begin, liveness);
}

void cli_guard_prolong(struct cli_guard *guard, coord_ms soft, coord_ms hard)
{
    /* What has passed stays passed: the guardian may have acted on it. */
    if (atomic_load(&guard->page->soft) > coord_clock_now()) {
        atomic_store(&guard->page->soft, soft);
    }
    atomic_store(&guard->page->hard, hard);
}

/* Process 0 would be all of our own group. */
static void resume(const struct cli_guard *guard)
{
    if (guard->pid > 0) {
        kill(guard->pid, SIGCONT);
    }
}

void cli_guard_stop(struct cli_guard *guard, coord_ms now)
{
    if (guard->fd >= 0 && atomic_load(&guard->page->soft) > now) {
        const struct cli_guard_order look = {.kind = CLI_GUARD_LOOK};
        atomic_store(&guard->page->soft, now);
        send_order(guard, &look, -1);
        resume(guard); /* whoever stopped it: now it has something to do */
    }
}

void cli_guard_cut(struct cli_guard *guard)
{
    const struct cli_guard_order look = {.kind = CLI_GUARD_LOOK};
    atomic_store(&guard->page->hard, 0);
    atomic_store(&guard->page->soft, 0);
    if (guard->fd >= 0) {
        send_order(guard, &look, -1);
    }
}

void cli_guard_signal(struct cli_guard *guard, uint64_t term, int signal)
{
    const struct cli_guard_order order = {.kind = CLI_GUARD_SIGNAL, .term = term, .signal = signal};
    if (guard->fd >= 0) {
        send_order(guard, &order, -1);
    }
}

bool cli_guard_next(struct cli_guard *guard, struct cli_guard_report *out)
{
    return guard->fd >= 0 &&
           recv(guard->fd, out, sizeof *out, MSG_DONTWAIT) == (ssize_t)sizeof *out;
}

bool cli_guard_check(struct cli_guard *guard)
{
    if (guard->pid == 0) {
        return false;
    }
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)guard->pid, &info, WEXITED | WSTOPPED | WNOHANG) != 0) {
        return errno != ECHILD;
    }
    if (info.si_pid == 0) {
        return true;
    }
    if (info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED) {
        kill(guard->pid, SIGCONT);
        return true;
    }
    guard->pid = 0;
    return false;
}

void cli_guard_kill(struct cli_guard *guard)
{
    if (guard->pid > 0) {
        kill(guard->pid, SIGKILL);
    }
}

static void wait_for_exit(pid_t pid)
{
    struct pollfd wait = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (wait.fd >= 0) {
        poll(&wait, 1, FAREWELL_MS);
        close(wait.fd);
    }
}

void cli_guard_end(struct cli_guard *guard)
{
    if (guard->fd >= 0) {
        close(guard->fd);
        guard->fd = -1;
    }
    if (guard->pid > 0) {
        kill(guard->pid, SIGCONT); /* a stopped one does not see that the other end has closed */
        wait_for_exit(guard->pid);
        kill(guard->pid, SIGKILL); /* not reaped yet: the number is its own */
        waitpid(guard->pid, NULL, 0);
        guard->pid = 0;
    }
    if (guard->page != NULL) {
        munmap(guard->page, sizeof *guard->page);
        guard->page = NULL;
    }
}
