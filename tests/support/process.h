/* SPDX-License-Identifier: MIT
 * tests/support/process.h - other processes, as /proc shows them.
 */
#ifndef TEST_PROCESS_H
#define TEST_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    char state;       /* its letter; 0: gone */
    uint64_t started; /* ticks since boot: tells it from a later one of the same number */
};

struct process process_look(pid_t pid);

/** Read a file, as much as there is room for. @return its bytes; the NUL behind them is ours. */
size_t read_whole(const char *path, char *out, size_t room);

/** The first child of a process; 0: it has none just now. */
pid_t first_child_of(pid_t pid);

/** Has it a child just now? */
bool has_child(pid_t pid);

/** The first child of a process, once it has one. */
pid_t wait_for_child(pid_t pid);

/** Wait until a process is gone: not even a zombie. */
void wait_for_end(pid_t pid);

/** The same for one that was seen before: a later one of its number is not waited for. */
void wait_for_end_of(pid_t pid, uint64_t started);

/** Wait until a process is stopped. */
void wait_for_stop(pid_t pid);

/** Wait until a process runs this program: a child was a copy of its parent before. */
void wait_for_program(pid_t pid, const char *program);

/** Fail if the text is in a file of the process under /proc, such as "cmdline" or "environ". */
void expect_unseen(pid_t pid, const char *file, const char *text);

#endif /* TEST_PROCESS_H */
