/* SPDX-License-Identifier: MIT
 * cli/descendants.h - all that this process and its children have started, found and signalled.
 */
#ifndef CLI_DESCENDANTS_H
#define CLI_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    CLI_SPARED_MAX = 64
};

/** Children that were there before COMMAND, such as those of a shell that exec'ed coordctl. */
struct cli_spared {
    pid_t pids[CLI_SPARED_MAX];
    size_t count;
};

/** Can this system tell a process's children at all? It needs /proc and CONFIG_PROC_CHILDREN. */
bool cli_descendants_known(void);

/** Remember the children of this process as they are now. */
void cli_descendants_spare(struct cli_spared *spared);

/**
 * Send a signal to every descendant: one pass. A process that is killed leaves its children to the
 * nearest subreaper, so passes are repeated until none is found. Nobody is signalled by a number
 * that may have passed to another process: children are ours to reap, which the caller must not do
 * meanwhile, and the others are held by a descriptor.
 *
 * @param spared  with all that they started, not signalled; NULL: none.
 * @param except  a process group that is not signalled; 0: none.
 * @return        how many were found, zombies included.
 */
size_t cli_descendants_signal(int signal, const struct cli_spared *spared, pid_t except);

#endif /* CLI_DESCENDANTS_H */
