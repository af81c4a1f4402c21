/* SPDX-License-Identifier: MIT
 * electors/file_io.c - the operations of the protocol over a real file.
 *
 * Locks are open-file-description locks: they belong to the open file and die with its last
 * descriptor. The file is never renamed or replaced: that would change the inode under everybody.
 */
#include "electors/file_io.h"

#include "electors/file_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- are descriptors still ours? */

bool coord__file_fd_ours(const struct coord__file_fd *file)
{
    struct stat now;
    return file->fd >= 0 && fstat(file->fd, &now) == 0 && now.st_dev == file->device &&
           now.st_ino == file->inode;
}

bool coord__file_fd_note(struct coord__file_fd *file, int fd)
{
    struct stat now;
    if (fstat(fd, &now) != 0) {
        return false;
    }
    *file = (struct coord__file_fd){fd, now.st_dev, now.st_ino};
    return true;
}

void coord__file_fd_close(struct coord__file_fd *file)
{
    if (coord__file_fd_ours(file)) {
        close(file->fd);
    }
    file->fd = -1;
}

static enum coord_err not_ours(const struct coord__file_disk *disk, struct coord_error *error)
{
    return coord_error_set(error, COORD_E_FOREIGN_RECORD,
                           "the descriptor of %s was closed by this process itself, and its lock "
                           "with it: open electors after daemonising, and close only what you "
                           "opened",
                           disk->path);
}

/* ---------------------------------------------------------------- check */

static enum coord_err check(void *ctx, struct coord_error *error)
{
    const struct coord__file_disk *disk = ctx;
    struct stat now;
    if (!coord__file_fd_ours(&disk->file)) {
        return not_ours(disk, error);
    }
    if (stat(disk->path, &now) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) {
            return coord__file_errno(error, errno, "find", disk->path);
        }
        return coord_error_set(error, COORD_E_FOREIGN_RECORD,
                               "the election's file %s was removed while it was held: the term "
                               "ends, and the next one waits for a lease; keep cleaners away from "
                               "that folder",
                               disk->path);
    }
    if (now.st_dev != disk->file.device || now.st_ino != disk->file.inode) {
        return coord_error_set(error, COORD_E_FOREIGN_RECORD,
                               "the election's file %s was replaced by another one while it was "
                               "held: the term ends, and the next one waits for a lease; never "
                               "copy or restore over it",
                               disk->path);
    }
    return COORD_OK;
}

/* ---------------------------------------------------------------- locks */

static struct flock byte_range(short type, uint64_t first, uint64_t last)
{
    return (struct flock){.l_type = type,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)first,
                          .l_len = (off_t)(last - first + 1)};
}

static enum coord_err lock(void *ctx, uint64_t number, bool *taken, struct coord_error *error)
{
    const struct coord__file_disk *disk = ctx;
    struct flock range = byte_range(F_WRLCK, number, number);
    if (!coord__file_fd_ours(&disk->file)) {
        return not_ours(disk, error);
    }
    *taken = fcntl(disk->file.fd, F_OFD_SETLK, &range) == 0;
    if (!*taken && errno != EAGAIN && errno != EACCES) {
        return coord__file_errno(error, errno, "lock", disk->path);
    }
    return COORD_OK;
}

static enum coord_err locked(void *ctx, uint64_t first, uint64_t last, uint64_t *number,
                             struct coord_error *error)
{
    const struct coord__file_disk *disk = ctx;
    struct flock range = byte_range(F_WRLCK, first, last);
    if (fcntl(disk->file.fd, F_OFD_GETLK, &range) != 0) {
        return coord__file_errno(error, errno, "ask for the locks of", disk->path);
    }
    *number = 0;
    if (range.l_type != F_UNLCK) {
        const uint64_t start = range.l_start > 0 ? (uint64_t)range.l_start : 0;
        *number = start > first ? start : first;
    }
    return COORD_OK;
}

static void unlock(void *ctx, uint64_t number)
{
    const struct coord__file_disk *disk = ctx;
    struct flock range = byte_range(F_UNLCK, number, number);
    if (coord__file_fd_ours(&disk->file)) {
        COORD_IGNORE(fcntl(disk->file.fd, F_OFD_SETLK, &range) != 0, "there is no worse to fear");
    }
}

/* ---------------------------------------------------------------- bytes */

ssize_t coord__file_pread(int fd, void *bytes, size_t count, off_t at)
{
    ssize_t got;
    do {
        got = pread(fd, bytes, count, at);
    } while (got < 0 && errno == EINTR);
    if (got >= 0 && (size_t)got < count) {
        memset((char *)bytes + got, 0, count - (size_t)got);
    }
    return got;
}

static enum coord_err read_blocks(void *ctx, unsigned block, unsigned count, uint8_t *bytes,
                                  struct coord_error *error)
{
    const struct coord__file_disk *disk = ctx;
    const off_t at = (off_t)block * COORD__FILE_BLOCK;
    if (coord__file_pread(disk->file.fd, bytes, (size_t)count * COORD__FILE_BLOCK, at) < 0) {
        return coord__file_errno(error, errno, "read", disk->path);
    }
    return COORD_OK;
}

/* A write past the limit would raise SIGXFSZ, which kills a host that never asked for it. */
enum coord_err coord__file_limit(struct coord_error *error, const char *path)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= COORD__FILE_BYTES) {
        return COORD_OK;
    }
    return coord_error_set(error, COORD_E_NO_SPACE,
                           "the limit for files of this process (ulimit -f) is below the %d bytes "
                           "of %s: raise it",
                           (int)COORD__FILE_BYTES, path);
}

enum coord_err coord__file_disk_write(struct coord__file_disk *disk, unsigned block,
                                      const uint8_t *from, size_t bytes, struct coord_error *error)
{
    const off_t at = (off_t)block * COORD__FILE_BLOCK;
    if (!coord__file_fd_ours(&disk->file)) {
        return not_ours(disk, error);
    }
    if (coord__file_limit(error, disk->path) != COORD_OK) {
        return COORD_E_NO_SPACE;
    }
    ssize_t put;
    do {
        put = pwrite(disk->file.fd, from, bytes, at);
    } while (put < 0 && errno == EINTR);
    if (put < 0 || (size_t)put != bytes) {
        return coord__file_errno(error, put < 0 ? errno : ENOSPC, "write", disk->path);
    }
    return COORD_OK;
}

static enum coord_err write_block(void *ctx, unsigned block, const uint8_t *from, size_t bytes,
                                  struct coord_error *error)
{
    return coord__file_disk_write(ctx, block, from, bytes, error);
}

/* New times are an event for those who watch; a write is none, so renewals wake nobody. */
static void touch(void *ctx)
{
    const struct coord__file_disk *disk = ctx;
    if (coord__file_fd_ours(&disk->file)) {
        COORD_IGNORE(futimens(disk->file.fd, NULL) != 0, "their timers wake them as well");
    }
}

void coord__file_disk_flush(struct coord__file_disk *disk)
{
    if (coord__file_fd_ours(&disk->file)) {
        COORD_IGNORE(sync_file_range(disk->file.fd, 0, 0, SYNC_FILE_RANGE_WRITE) != 0,
                     "the kernel writes it by itself in time");
    }
}

struct coord__file_io coord__file_disk_io(struct coord__file_disk *disk)
{
    return (struct coord__file_io){.ctx = disk,
                                   .open = coord__file_disk_open,
                                   .check = check,
                                   .lock = lock,
                                   .locked = locked,
                                   .read = read_blocks,
                                   .write = write_block,
                                   .unlock = unlock,
                                   .touch = touch};
}

/* ---------------------------------------------------------------- the watch */

static bool watch_failed(struct coord__file_disk *disk, int why)
{
    disk->watch_errno = why;
    return false;
}

bool coord__file_disk_watch(struct coord__file_disk *disk)
{
    if (disk->file.fd < 0) {
        return disk->watched >= 0;
    }
    if (disk->watched >= 0 && disk->watched_inode == disk->file.inode) {
        return true;
    }
    if (disk->watch.fd < 0) {
        const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (fd < 0 || !coord__file_fd_note(&disk->watch, fd)) {
            return watch_failed(disk, errno);
        }
        disk->generation++;
    }
    if (!coord__file_fd_ours(&disk->watch)) {
        return watch_failed(disk, EBADF);
    }
    if (disk->watched >= 0) {
        /* The kernel may have dropped it already, with the file. */
        COORD_IGNORE(inotify_rm_watch(disk->watch.fd, disk->watched) != 0, "it is gone then");
    }
    disk->watched = inotify_add_watch(disk->watch.fd, disk->path,
                                      IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
    if (disk->watched < 0) {
        return watch_failed(disk, errno);
    }
    disk->watched_inode = disk->file.inode;
    disk->watch_errno = 0;
    return true;
}

bool coord__file_disk_drain(struct coord__file_disk *disk)
{
    _Alignas(struct inotify_event) char events[1024];
    bool any = false;
    if (!coord__file_fd_ours(&disk->watch)) {
        return false;
    }
    for (;;) {
        const ssize_t got = read(disk->watch.fd, events, sizeof events);
        if (got <= 0) {
            return any;
        }
        any = true;
    }
}

void coord__file_disk_fini(struct coord__file_disk *disk)
{
    coord__file_fd_close(&disk->watch);
    coord__file_fd_close(&disk->file);
    disk->watched = -1;
}
