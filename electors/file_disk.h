/* SPDX-License-Identifier: MIT
 * electors/file_disk.h - what electors/file_io.c and electors/file_disk.c share.
 */
#ifndef COORD_ELECTORS_FILE_DISK_H
#define COORD_ELECTORS_FILE_DISK_H

#include "electors/file_io.h"

/** The `open` of struct coord__file_io; in electors/file_disk.c. */
enum coord_err coord__file_disk_open(void *ctx, enum coord__file_mode mode, uint64_t *inode,
                                     struct coord_error *error);

/** Say that the kernel refused to `do_what` with `path`, and what helps. @return the code. */
enum coord_err coord__file_errno(struct coord_error *error, int why, const char *do_what,
                                 const char *path);

/* In electors/file_io.c. */
bool coord__file_fd_ours(const struct coord__file_fd *file);
bool coord__file_fd_note(struct coord__file_fd *file, int fd);
void coord__file_fd_close(struct coord__file_fd *file);

/** May this process write files of that size? @return COORD_OK, or NO_SPACE. */
enum coord_err coord__file_limit(struct coord_error *error, const char *path);

/** pread() without EINTR; what lies past the end is zero. @return as pread(). */
ssize_t coord__file_pread(int fd, void *bytes, size_t count, off_t at);

enum coord_err coord__file_disk_write(struct coord__file_disk *disk, unsigned block,
                                      const uint8_t *from, size_t bytes, struct coord_error *error);

#endif /* COORD_ELECTORS_FILE_DISK_H */
