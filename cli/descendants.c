/* SPDX-License-Identifier: MIT
 * cli/descendants.c - all that this process and its children have started, found and signalled.
 */
#include "cli/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FOUND_MAX = 2048,
    PATH_BYTES = 320,
    READ_BYTES = 4096
};

struct found {
    pid_t pid;
    pid_t parent;
};

struct walk {
    struct found found[FOUND_MAX]; /* what does not fit is found by the next pass */
    size_t count;
};

static void add(struct walk *walk, pid_t pid, pid_t parent)
{
    if (walk->count < FOUND_MAX) {
        walk->found[walk->count++] = (struct found){.pid = pid, .parent = parent};
    }
}

/* The numbers in a `children` file may be cut by the end of a read. */
static void read_children(struct walk *walk, const char *path, pid_t parent)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    char text[READ_BYTES];
    pid_t number = 0;
    for (;;) {
        const ssize_t got = read(fd, text, sizeof text);
        if (got <= 0) {
            break;
        }
        for (ssize_t i = 0; i < got; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                number = number * 10 + (text[i] - '0');
            } else if (number > 0) {
                add(walk, number, parent);
                number = 0;
            }
        }
    }
    if (number > 0) {
        add(walk, number, parent);
    }
    close(fd);
}

/* Each thread of a process has children of its own. */
static void find_children(struct walk *walk, pid_t parent)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    DIR *tasks = opendir(path);
    if (tasks == NULL) {
        return;
    }
    for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        if (task->d_name[0] != '.') {
            snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)parent, task->d_name);
            read_children(walk, path, parent);
        }
    }
    closedir(tasks);
}

static bool is_spared(const struct cli_spared *spared, pid_t pid)
{
    for (size_t i = 0; spared != NULL && i < spared->count; i++) {
        if (spared->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

static pid_t parent_of(pid_t pid)
{
    char path[PATH_BYTES];
    char text[READ_BYTES];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    const ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) {
        return -1;
    }
    text[got] = '\0';
    const char *after = strrchr(text, ')'); /* the command's name may hold anything */
    if (after == NULL || strlen(after) < 5) {
        return -1;
    }
    return (pid_t)strtol(after + 4, NULL, 10); /* ") S 123" */
}

/* A grandchild may end and be reaped at any time: the descriptor pins it while its parent is
 * compared, so that the signal cannot reach a stranger. */
static void signal_pinned(const struct found *found, int signal)
{
    const int fd = (int)syscall(SYS_pidfd_open, found->pid, 0);
    if (fd < 0) {
        return; /* gone; or an old kernel: it is reached once its parent is dead */
    }
    if (parent_of(found->pid) == found->parent) {
        syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
    }
    close(fd);
}

bool cli_descendants_known(void)
{
    char path[PATH_BYTES];
    const int pid = (int)getpid();
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    return access(path, R_OK) == 0;
}

void cli_descendants_spare(struct cli_spared *spared)
{
    struct walk walk = {.count = 0};
    find_children(&walk, getpid());
    spared->count = 0;
    for (size_t i = 0; i < walk.count && i < CLI_SPARED_MAX; i++) {
        spared->pids[spared->count++] = walk.found[i].pid;
    }
}

size_t cli_descendants_signal(int signal, const struct cli_spared *spared, pid_t except)
{
    struct walk walk;
    walk.count = 0;
    const pid_t self = getpid();
    size_t count = 0;
    find_children(&walk, self);
    for (size_t i = 0; i < walk.count; i++) {
        const struct found *found = &walk.found[i];
        if (found->parent == self && is_spared(spared, found->pid)) {
            continue;
        }
        count++;
        find_children(&walk, found->pid);
        if (except != 0 && getpgid(found->pid) == except) {
            continue;
        }
        if (found->parent == self) {
            kill(found->pid, signal);
        } else {
            signal_pinned(found, signal);
        }
    }
    return count;
}
