/* SPDX-License-Identifier: MIT
 * tests/support/scratch.c - see scratch.h.
 */
#include "tests/support/scratch.h"

#include "tests/support/support.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    FOLDERS = 64,
    FOLDER_TEXT = 64
};

static char made[FOLDERS][FOLDER_TEXT]; /* empty: a free place */
static pid_t maker;                     /* a child that exits removes nothing */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    remove(path);
    return 0; /* what another removed meanwhile is no reason to leave the rest */
}

void remove_tree(const char *top)
{
    nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void remove_what_is_left(void)
{
    for (size_t i = 0; i < FOLDERS && getpid() == maker; i++) {
        scratch_remove(made[i]);
    }
}

void scratch_make(const char *what, char *out, size_t room)
{
    size_t place = 0;
    if (maker != getpid()) {
        maker = getpid();
        memset(made, 0, sizeof made);
        assert_int_equal(atexit(remove_what_is_left), 0);
    }
    while (made[place][0] != '\0') {
        place++;
        assert_true(place < FOLDERS);
    }
    const int length = snprintf(made[place], FOLDER_TEXT, "/tmp/coord-%s-XXXXXX", what);
    assert_in_range(length, 1, (room < FOLDER_TEXT ? room : FOLDER_TEXT) - 1);
    if (mkdtemp(made[place]) == NULL) {
        made[place][0] = '\0';
        fail_msg("no folder can be made in /tmp for %s", what);
    }
    memcpy(out, made[place], (size_t)length + 1);
}

void scratch_remove(char *folder)
{
    if (folder[0] == '\0') {
        return;
    }
    remove_tree(folder);
    for (size_t i = 0; i < FOLDERS; i++) {
        if (made[i] != folder && strcmp(made[i], folder) == 0) {
            made[i][0] = '\0';
        }
    }
    folder[0] = '\0';
}
