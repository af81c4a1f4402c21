/* SPDX-License-Identifier: MIT
 * tests/support/scratch.h - folders that tests make, and that are gone when they have ended.
 */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stddef.h>

/**
 * Make the folder /tmp/coord-WHAT-??????. One that is left, as after a test that failed half-way,
 * is removed when the process that made it exits.
 */
void scratch_make(const char *what, char *out, size_t room);

/** Remove one with all that is in it, and make its text empty; empty already: nothing happens. */
void scratch_remove(char *folder);

/** Remove whatever lies there, and all that is in it. */
void remove_tree(const char *top);

#endif /* TEST_SCRATCH_H */
