/* SPDX-License-Identifier: MIT
 * tests/support/process.c - see process.h.
 */
#include "tests/support/process.h"

#include "tests/support/guard.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>

enum {
    PROCESS_PATH = 64,
    PROCESS_TEXT = 8192
};

size_t read_whole(const char *path, char *out, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    size_t count = 0;
    while (fd >= 0 && count < room - 1 && (got = read(fd, out + count, room - 1 - count)) > 0) {
        count += (size_t)got;
    }
    if (fd >= 0) {
        close(fd);
    }
    out[count] = '\0';
    return count;
}

pid_t first_child_of(pid_t pid)
{
    char path[PROCESS_PATH];
    char text[PROCESS_TEXT];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    return read_whole(path, text, sizeof text) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

bool has_child(pid_t pid)
{
    return first_child_of(pid) != 0;
}

pid_t wait_for_child(pid_t pid)
{
    const struct guard guard = guard_for("a child");
    pid_t child = first_child_of(pid);
    while (child == 0) {
        wait_on(&guard);
        child = first_child_of(pid);
    }
    return child;
}

void wait_for_program(pid_t pid, const char *program)
{
    const struct guard guard = guard_for(program);
    char path[PROCESS_PATH];
    char name[32];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    do {
        wait_on(&guard);
        read_whole(path, name, sizeof name);
        name[strcspn(name, "\n")] = '\0';
    } while (strcmp(name, program) != 0);
}

void expect_unseen(pid_t pid, const char *file, const char *text)
{
    const struct guard guard = guard_for(file);
    char path[PROCESS_PATH];
    char seen[PROCESS_TEXT];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    while ((count = read_whole(path, seen, sizeof seen)) == 0) {
        wait_on(&guard); /* it is empty in the midst of an exec */
    }
    assert_null(memmem(seen, count, text, strlen(text)));
}

struct process process_look(pid_t pid)
{
    char path[PROCESS_PATH];
    char text[PROCESS_TEXT];
    struct process process = {.state = 0};
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (read_whole(path, text, sizeof text) == 0) {
        return process;
    }
    /* "PID (NAME) STATE ...": the state is field 3, the start field 22. */
    const char *at = strrchr(text, ')');
    assert_non_null(at);
    process.state = at[2];
    for (int field = 2; field < 22 && at != NULL; field++) {
        at = strchr(at + 1, ' ');
    }
    assert_non_null(at);
    process.started = strtoull(at + 1, NULL, 10);
    return process;
}

void wait_for_end_of(pid_t pid, uint64_t started)
{
    const struct guard guard = guard_for("a process to be gone");
    for (;;) {
        const struct process now = process_look(pid);
        if (now.state == 0 || now.started != started) {
            return;
        }
        waitpid(pid, NULL, WNOHANG); /* it may have come to us */
        if (now_ns() > guard.until) {
            print_error("still there: %d, state %c\n", (int)pid, now.state);
        }
        wait_on(&guard);
    }
}

void wait_for_end(pid_t pid)
{
    wait_for_end_of(pid, process_look(pid).started);
}

void wait_for_stop(pid_t pid)
{
    const struct guard guard = guard_for("a process to be stopped");
    while (process_look(pid).state != 'T') {
        wait_on(&guard);
    }
}
