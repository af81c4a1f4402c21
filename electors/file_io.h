/* SPDX-License-Identifier: MIT
 * electors/file_io.h - the real file under the file elector's protocol: opened, locked, watched.
 */
#ifndef COORD_ELECTORS_FILE_IO_H
#define COORD_ELECTORS_FILE_IO_H

#include "electors/file_terms.h"

#include <limits.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A descriptor that knows what it stands for: a host may close it and open something else. */
struct coord__file_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

struct coord__file_disk {
    char folder[PATH_MAX];
    char path[PATH_MAX];
    uint8_t name[COORD_NAME_MAX]; /* raw, for the header */
    size_t name_bytes;
    bool trust; /* any file system is taken for a local one */

    struct coord__file_fd file;
    bool writable;

    struct coord__file_fd watch; /* inotify */
    int watched;                 /* its watch, -1: none */
    ino_t watched_inode;
    int watch_errno; /* why there is none; 0: there is one, or none was tried */
    uint64_t generation;
};

/**
 * Find out where the file is. Nothing is opened yet.
 *
 * @param folder  of the URI; a relative one is taken from the present working directory, for good.
 * @param trust   coord.fs=trust.
 * @return        COORD_OK; BAD_URI; SYSTEM.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#uris, tests/fault/test_file.c.
 */
COORD_MUST_CHECK enum coord_err coord__file_disk_init(struct coord__file_disk *disk,
                                                      const char *folder, const void *name,
                                                      size_t name_bytes, bool trust,
                                                      struct coord_error *error);

/** Close what is open. Nothing is unlocked: a copy of the descriptor goes on holding its locks. */
void coord__file_disk_fini(struct coord__file_disk *disk);

/** The operations of the protocol over this file. */
struct coord__file_io coord__file_disk_io(struct coord__file_disk *disk);

/** This boot and this time namespace. @return COORD_OK, or SYSTEM: /proc cannot be read. */
COORD_MUST_CHECK enum coord_err coord__file_place_find(struct coord__file_place *place,
                                                       struct coord_error *error);

/**
 * Watch the file that is open, if it is not watched yet. Without a watch only timers wake.
 *
 * @return  false: there is none; disk->watch_errno tells why.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 */
bool coord__file_disk_watch(struct coord__file_disk *disk);

/** Take what the watch has to say. @return true: something happened to the file. */
bool coord__file_disk_drain(struct coord__file_disk *disk);

/** Let the kernel begin to write the file to its disk. It does not wait for that. */
void coord__file_disk_flush(struct coord__file_disk *disk);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTORS_FILE_IO_H */
