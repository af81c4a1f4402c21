/* SPDX-License-Identifier: MIT
 * runtime/sink_deliver.c - a line to a descriptor, a command with a line on its stdin.
 *
 * All signals are blocked on the sink's thread: a reader that went away gives EPIPE and no more.
 */
#include "runtime/clock.h"
#include "runtime/sink_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

bool coord__sink_give_up(struct coord_sink *sink, const char *what, int code)
{
    char text[128] = "";
    coord_log_write(&sink->config.log, coord_clock_now(), COORD_LOG_WARN, COORD_E_SYSTEM, "sink",
                    "a report was not delivered: %s: %s", what,
                    strerror_r(code, text, sizeof text));
    return false;
}

/* @return false: it is to end, or the time is up. */
static bool wait_for(struct coord_sink *sink, int fd, short events, int timeout)
{
    struct pollfd what[2] = {{.fd = fd, .events = events}, {.fd = sink->wake, .events = POLLIN}};
    int n = poll(what, 2, timeout);
    return n > 0 && what[1].revents == 0;
}

/* A pipe that is writable takes PIPE_BUF bytes without blocking, and keeps them whole. */
static ssize_t put(int fd, const char *text, size_t bytes)
{
    const size_t part = bytes < PIPE_BUF ? bytes : PIPE_BUF;
    ssize_t n = send(fd, text, part, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 && errno == ENOTSOCK ? write(fd, text, part) : n;
}

bool coord__sink_write(struct coord_sink *sink, int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        if (!wait_for(sink, fd, POLLOUT, -1)) {
            return false;
        }
        const ssize_t n = put(fd, text, bytes);
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return coord__sink_give_up(sink, "the reader cannot be written to", errno);
        }
        text += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* ---------------------------------------------------------------- commands */

static char *variable(const char *name, const char *value, size_t bytes)
{
    const size_t room = strlen(name) + bytes + 2;
    char *text = malloc(room);
    if (text != NULL) {
        (void)snprintf(text, room, "%s=%.*s", name, (int)bytes, value);
    }
    return text;
}

/* The sink's environment and what is told of the orphan; NULL: no memory. */
static char **environment_of(const struct coord_sink *sink, const struct coord_report *report)
{
    static const char *const none[] = {NULL};
    const struct coord_orphan *o = report->orphan;
    char id[COORD_REPORT_EVENT_ID_MAX];
    char report_id[COORD_REPORT_ID_TEXT];
    char fence[24];
    coord_report_event_id(o, id);
    coord_report_id_text(o->report_id, report_id);
    (void)snprintf(fence, sizeof fence, "%" PRIu64, o->fence);
    const struct {
        const char *name;
        const char *value;
        size_t bytes;
    } tell[] = {
        {"ORPHAN_KIND", coord_report_kind_name(report->kind),
         strlen(coord_report_kind_name(report->kind))},
        {"ORPHAN_ID", id, strlen(id)},
        {"ORPHAN_REPORT_ID", report_id, strlen(report_id)},
        {"ORPHAN_FENCE", fence, strlen(fence)},
        {"ORPHAN_INSTANCE_ID", o->instance_id, strnlen(o->instance_id, o->instance_id_bytes)},
        {"ORPHAN_SUBSCRIPTION", o->subscription, strnlen(o->subscription, o->subscription_bytes)},
        {"ORPHAN_CAUSE", coord_cause_name(o->cause), strlen(coord_cause_name(o->cause))},
    };
    const size_t count = sizeof tell / sizeof tell[0];
    char **all = coord__texts_copy(sink->environment, none, count);
    size_t used = 0;
    while (all != NULL && all[used] != NULL) {
        used++;
    }
    for (size_t i = 0; all != NULL && i < count; i++) {
        all[used] = variable(tell[i].name, tell[i].value, tell[i].bytes);
        if (all[used++] == NULL) {
            coord__texts_free(all);
            return NULL;
        }
    }
    return all;
}

/* In a group of its own, to be killed as one; with the signals as a program expects them. */
static int spawn(const struct coord_sink *sink, char *const *environment, int input, pid_t *out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigset_t pipe;
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &pipe);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETPGROUP);
    int code = posix_spawnp(out, sink->argv[0], &files, &how, sink->argv, environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return code;
}

/* What it does not read is not needed: who ends without reading has not failed. */
static void feed(struct coord_sink *sink, int fd, const char *text, size_t bytes, coord_ms until)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (bytes > 0) {
        const coord_ms rest = coord_ms_min(coord_ms_sub(until, coord_clock_now()), 1000000);
        if (!wait_for(sink, fd, POLLOUT, (int)rest)) {
            return;
        }
        const ssize_t n = write(fd, text, bytes);
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return;
        }
        text += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
}

static bool reap(struct coord_sink *sink, pid_t child, coord_ms until)
{
    int status = 0;
    const int fd = (int)syscall(SYS_pidfd_open, child, 0); /* close-on-exec by itself */
    const coord_ms rest = coord_ms_min(coord_ms_sub(until, coord_clock_now()), 1000000);
    /* An older kernel cannot tell: then the command is waited for as long as it takes. */
    const bool late = fd >= 0 && !wait_for(sink, fd, POLLIN, (int)rest);
    if (late) {
        kill(-child, SIGKILL);
    }
    if (fd >= 0) {
        close(fd);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (late) {
        return coord__sink_give_up(sink, "the command took too long and was killed", ETIMEDOUT);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        coord_log_write(&sink->config.log, coord_clock_now(), COORD_LOG_WARN, COORD_OK, "sink",
                        "the command %s ended with %s %d", sink->argv[0],
                        WIFEXITED(status) ? "code" : "signal",
                        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        return false;
    }
    return true;
}

bool coord__sink_run(struct coord_sink *sink, const struct coord_report *report, const char *text,
                     size_t bytes)
{
    const coord_ms until = coord_ms_add(coord_clock_now(), sink->config.command_max);
    int ends[2];
    pid_t child = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return coord__sink_give_up(sink, "no pipe to the command", errno);
    }
    char **environment = environment_of(sink, report);
    const int code = environment == NULL ? ENOMEM : spawn(sink, environment, ends[0], &child);
    close(ends[0]);
    if (code == 0) {
        feed(sink, ends[1], text, bytes, until);
    }
    close(ends[1]);
    coord__texts_free(environment);
    return code != 0 ? coord__sink_give_up(sink, "the command cannot be run", code)
                     : reap(sink, child, until);
}
