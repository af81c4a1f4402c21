/* SPDX-License-Identifier: MIT
 * cli/hook.c - `coordctl agent --on-assign`.
 */
#include "cli/hook.h"

#include "cli/say.h"
#include "runtime/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RUN_MAX = 30000, /* ms of one run, as of a sink's */
    OURS = 2,        /* variables */
    VARIABLE = 48
};

void cli_hook_open(const char *command, struct cli_hook *out)
{
    *out = (struct cli_hook){.command = command, .child_fd = -1, .kill_at = COORD_NEVER};
}

/* ---------------------------------------------------------------- what it reads */

/* The line as a file in memory: a pipe would have to be fed. @return -1: errno says why. */
static int write_line(const char *line, size_t bytes)
{
    const int fd = memfd_create("assignment", MFD_CLOEXEC);
    if (fd >= 0 && (write(fd, line, bytes) != (ssize_t)bytes || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

void cli_hook_put(struct cli_hook *hook, const struct coord_message *assignment)
{
    static unsigned char line[2 * COORD_MESSAGE_MAX];
    size_t bytes = 0;
    if (hook->command == NULL) {
        return;
    }
    if (hook->count == CLI_HOOK_WAITING) {
        cli_say("an assignment is not given to --on-assign: %d of them wait for its end",
                (int)CLI_HOOK_WAITING);
        return;
    }
    if (coord_message_encode(assignment, COORD_FORM_JSON, line, sizeof line - 1, &bytes) !=
        COORD_OK) {
        cli_say("an assignment is too long for --on-assign");
        return;
    }
    line[bytes++] = '\n';
    const int input = write_line((const char *)line, bytes);
    if (input < 0) {
        cli_say("no room for what --on-assign is to read: %s", strerror(errno));
        return;
    }
    hook->waiting[(hook->first + hook->count++) % CLI_HOOK_WAITING] =
        (struct cli_hook_post){input, assignment->fence, assignment->priority};
}

/* ---------------------------------------------------------------- running */

static bool is_hidden(const char *variable)
{
    return strncmp(variable, "COORD_ELECTOR=", 14) == 0 ||
           strncmp(variable, "COORD_BUS=", 10) == 0 || strncmp(variable, "ASSIGNMENT_", 11) == 0;
}

/* The environment without what may hold a password, and with `own`. @return NULL: no memory. */
static char **environment_with(char own[OURS][VARIABLE])
{
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **all = calloc(count + OURS + 1, sizeof *all);
    size_t used = 0;
    for (size_t i = 0; all != NULL && i < count; i++) {
        if (!is_hidden(environ[i])) {
            all[used++] = environ[i];
        }
    }
    for (size_t i = 0; all != NULL && i < OURS; i++) {
        all[used++] = own[i];
    }
    return all;
}

/* In a group of its own, with the signals as a program expects them. @return 0, or errno. */
static int spawn(struct cli_hook *hook, const struct cli_hook_post *post, char *const *environment)
{
    char shell[] = "sh";
    char flag[] = "-c";
    char *const argv[] = {shell, flag, strdup(hook->command), NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigset_t pipe;
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, post->input, STDIN_FILENO);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &pipe);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETPGROUP);
    const int code = argv[2] == NULL
                         ? ENOMEM
                         : posix_spawn(&hook->child, "/bin/sh", &files, &how, argv, environment);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    free(argv[2]);
    return code;
}

static void begin(struct cli_hook *hook, const struct cli_hook_post *post, coord_ms now)
{
    char own[OURS][VARIABLE];
    snprintf(own[0], VARIABLE, "ASSIGNMENT_FENCE=%" PRIu64, post->fence);
    snprintf(own[1], VARIABLE, "ASSIGNMENT_PRIORITY=%" PRId64, post->priority);
    char **environment = environment_with(own);
    const int code = environment == NULL ? ENOMEM : spawn(hook, post, environment);
    free(environment);
    if (code != 0) {
        hook->child = 0;
        cli_say("--on-assign cannot be run: %s", strerror(code));
        return;
    }
    /* Close-on-exec by itself. */
    hook->child_fd = (int)syscall(SYS_pidfd_open, hook->child, 0);
    hook->kill_at = coord_ms_add(now, RUN_MAX);
}

static void take_end(struct cli_hook *hook)
{
    int status = 0;
    if (waitpid(hook->child, &status, WNOHANG) == 0) {
        return;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        cli_say("--on-assign ended with %s %d", WIFEXITED(status) ? "status" : "signal",
                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
    if (hook->child_fd >= 0) {
        close(hook->child_fd);
    }
    hook->child = 0;
    hook->child_fd = -1;
    hook->kill_at = COORD_NEVER;
}

int cli_hook_fd(const struct cli_hook *hook)
{
    return hook->child_fd;
}

void cli_hook_process(struct cli_hook *hook, coord_ms now)
{
    if (hook->child > 0 && now >= hook->kill_at) {
        cli_say("--on-assign took too long, and is killed");
        kill(-hook->child, SIGKILL);
        hook->kill_at = COORD_NEVER;
    }
    if (hook->child > 0) {
        take_end(hook);
    }
    while (hook->child == 0 && hook->count > 0) {
        const struct cli_hook_post post = hook->waiting[hook->first];
        hook->first = (hook->first + 1) % CLI_HOOK_WAITING;
        hook->count--;
        begin(hook, &post, now);
        close(post.input);
    }
}

coord_ms cli_hook_deadline(const struct cli_hook *hook)
{
    return hook->child > 0 ? hook->kill_at : COORD_NEVER;
}

void cli_hook_close(struct cli_hook *hook)
{
    while (hook->count > 0) {
        close(hook->waiting[hook->first].input);
        hook->first = (hook->first + 1) % CLI_HOOK_WAITING;
        hook->count--;
    }
    if (hook->child > 0) {
        kill(-hook->child, SIGKILL);
        waitpid(hook->child, NULL, 0);
        hook->child = 0;
    }
    if (hook->child_fd >= 0) {
        close(hook->child_fd);
        hook->child_fd = -1;
    }
}
