/* SPDX-License-Identifier: MIT
 * electors/file_doctor.c - what a folder is like, judged for elections.
 */
#include "coord/check.h"
#include "electors/file.h"
#include "electors/file_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* A random name is no election's: its file is made as any is, and removed again. */
static enum coord_err try_folder(const struct coord_uri *uri, struct coord_error *error)
{
    struct coord__file_disk disk;
    char name[32];
    uint64_t number = 0;
    uint64_t inode = 0;
    const char *fs = coord_uri_option(uri, "fs");
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number) {
        return coord_error_set(error, COORD_E_SYSTEM,
                               "the kernel has no random bytes yet: try again");
    }
    snprintf(name, sizeof name, "doctor-%016" PRIx64, number);
    enum coord_err rc = coord__file_disk_init(&disk, uri->path, name, strlen(name),
                                              fs != NULL && strcmp(fs, "trust") == 0, error);
    if (rc != COORD_OK) {
        return rc;
    }
    const bool there = access(disk.folder, F_OK) == 0;
    rc = coord__file_disk_open(&disk, COORD__FILE_CREATE, &inode, error);
    if (rc == COORD_OK) {
        COORD_IGNORE(unlink(disk.path) != 0, "somebody else has removed it");
        COORD_IGNORE(!there && rmdir(disk.folder) != 0, "somebody else uses it");
    }
    coord__file_disk_fini(&disk);
    return rc;
}

size_t coord_file_doctor(const struct coord_uri *uri, struct coord_check *out)
{
    struct coord_checks checks = {.list = out};
    struct coord_error error = {.code = COORD_OK};
    const bool good = try_folder(uri, &error) == COORD_OK;
    coord_check_add(&checks, "folder", good ? COORD_VERDICT_OK : COORD_VERDICT_FAIL,
                    good ? "takes an election's file" : coord_err_name(error.code),
                    "all members of an election lock one file in it", error.text);
    return checks.count;
}
