/* SPDX-License-Identifier: MIT
 * electors/file_disk.c - where the election's file is, whether it may be used, how it is made.
 */
#include "electors/file_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    FOLDER_MODE = 0700,
    FILE_MODE = 0600,
    NAME_SHOWN = 64, /* bytes of the election's name in the file's */
    TRIES = 4        /* of open and create, while others remove and create */
};

/* ---------------------------------------------------------------- what the kernel refuses */

enum coord_err coord__file_errno(struct coord_error *error, int why, const char *do_what,
                                 const char *path)
{
    switch (why) {
    case EACCES:
    case EPERM:
        return coord_error_set(
            error, COORD_E_NO_RIGHT,
            "this user may not %s %s: run as the one who owns it, give this one the right to read "
            "and write there, or name another folder",
            do_what, path);
    case EROFS:
        return coord_error_set(error, COORD_E_READ_ONLY,
                               "cannot %s %s: its file system is mounted read-only; use a folder "
                               "that can be written, such as one under /run or /var/lib",
                               do_what, path);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return coord_error_set(error, COORD_E_NO_SPACE,
                               "the disk is too full to %s %s: free some space, it needs %d bytes",
                               do_what, path, (int)COORD__FILE_BYTES);
    case EMFILE:
    case ENFILE:
        return coord_error_set(error, COORD_E_SYSTEM,
                               "no descriptor is left to %s %s: raise the limit of open files",
                               do_what, path);
    case ELOOP:
        return coord_error_set(error, COORD_E_FOREIGN_RECORD,
                               "%s is a symbolic link, which is not followed: remove it", path);
    case ENOENT:
    case ENOTDIR:
        return coord_error_set(error, COORD_E_NOT_INITIALISED,
                               "cannot %s %s: the folder that its folder lies in is missing: make "
                               "it, or correct the path",
                               do_what, path);
    default:
        return coord_error_set(error, COORD_E_SYSTEM,
                               "cannot %s %s (error %d): see the kernel's log", do_what, path, why);
    }
}

/* ---------------------------------------------------------------- where it is */

/* FNV-1a: names that look alike once they are cut and cleaned get files of their own. */
static uint64_t hash(const uint8_t *bytes, size_t count)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return sum;
}

static void show_name(const struct coord__file_disk *disk, char out[NAME_SHOWN + 1])
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    size_t count = disk->name_bytes < NAME_SHOWN ? disk->name_bytes : NAME_SHOWN;
    for (size_t i = 0; i < count; i++) {
        const char c = (char)disk->name[i];
        const bool hidden = i == 0 && c == '.';
        out[i] = c;
        if (c == '\0' || hidden || strchr(plain, c) == NULL) {
            out[i] = '_';
        }
    }
    out[count] = '\0';
}

enum coord_err coord__file_disk_init(struct coord__file_disk *disk, const char *folder,
                                     const void *name, size_t name_bytes, bool trust,
                                     struct coord_error *error)
{
    char here[PATH_MAX] = "";
    char shown[NAME_SHOWN + 1];
    COORD_ASSERT(name_bytes <= COORD_NAME_MAX);
    *disk = (struct coord__file_disk){
        .trust = trust, .name_bytes = name_bytes, .file.fd = -1, .watch.fd = -1, .watched = -1};
    disk->generation = (uint64_t)(uintptr_t)disk << 16; /* none that another disk counts from */
    memcpy(disk->name, name, name_bytes);
    if (folder[0] != '/' && getcwd(here, sizeof here) == NULL) {
        return coord_error_set(error, COORD_E_SYSTEM,
                               "the working directory of file:%.160s cannot be told (error %d): "
                               "write a path that begins with /",
                               folder, errno);
    }
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') {
        length--;
    }
    const int put = snprintf(disk->folder, sizeof disk->folder, "%s%s%.*s", here,
                             here[0] != '\0' ? "/" : "", (int)length, folder);
    show_name(disk, shown);
    const int whole = snprintf(disk->path, sizeof disk->path, "%s/%s-%016" PRIx64 ".coord",
                               disk->folder, shown, hash(disk->name, name_bytes));
    if (put < 0 || (size_t)put >= sizeof disk->folder || whole < 0 ||
        (size_t)whole >= sizeof disk->path) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "the folder of file: is longer than %d bytes: use a shorter one",
                               PATH_MAX);
    }
    return COORD_OK;
}

/* ---------------------------------------------------------------- may it be used? */

/* Those of one kernel, whose locks and inodes are what they say. Numbers as in linux/magic.h. */
static bool known_local(uint64_t type)
{
    static const uint32_t types[] = {0xef53 /* ext2, ext3, ext4 */,
                                     0x58465342 /* xfs */,
                                     0x9123683e /* btrfs */,
                                     0x01021994 /* tmpfs */,
                                     0x858458f6 /* ramfs */,
                                     0x794c7630 /* overlayfs */,
                                     0x2fc12fc1 /* zfs */,
                                     0xf2f52010 /* f2fs */,
                                     0xca451a4e /* bcachefs */,
                                     0x3153464a /* jfs */,
                                     0x3434 /* nilfs2 */,
                                     0x52654973 /* reiserfs */,
                                     0x24051905 /* ubifs */};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i] == type) {
            return true;
        }
    }
    return false;
}

static enum coord_err check_file_system(const struct coord__file_disk *disk, int fd,
                                        struct coord_error *error)
{
    struct statfs fs;
    if (disk->trust) {
        return COORD_OK;
    }
    if (fstatfs(fd, &fs) != 0) {
        return coord__file_errno(error, errno, "ask for the file system of", disk->path);
    }
    const uint32_t type = (uint32_t)fs.f_type;
    if (!known_local(type)) {
        return coord_error_set(error, COORD_E_NOT_LOCAL,
                               "%s lies on a file system (type 0x%" PRIx32 ") that is not known "
                               "to be local: locks may not exclude there; use another folder, or "
                               "coord.fs=trust if only this machine mounts it",
                               disk->folder, type);
    }
    return COORD_OK;
}

static enum coord_err check_header(struct coord__file_disk *disk, bool writable,
                                   struct coord_error *error)
{
    uint8_t block[COORD__FILE_HEADER_BYTES];
    struct coord__file_text name = {NULL, 0};
    enum coord__file_kind kind = COORD__FILE_TORN;
    for (int i = 0; i < COORD__FILE_REREADS && kind == COORD__FILE_TORN; i++) {
        if (coord__file_pread(disk->file.fd, block, sizeof block, 0) < 0) {
            return coord__file_errno(error, errno, "read", disk->path);
        }
        kind = coord__file_header_read(block, &name);
    }
    switch (kind) {
    case COORD__FILE_EMPTY:
        break;
    case COORD__FILE_SOUND:
        if (name.count == disk->name_bytes && memcmp(name.bytes, disk->name, name.count) == 0) {
            return COORD_OK;
        }
        return coord_error_set(error, COORD_E_KEY_COLLISION,
                               "%s belongs to an election of another name: rename one of the two, "
                               "or use another folder",
                               disk->path);
    case COORD__FILE_NEWER:
        return coord_error_set(error, COORD_E_NEWER_FORMAT,
                               "%s was written by a newer version of coord: update this member",
                               disk->path);
    case COORD__FILE_TORN:
        return coord_error_set(error, COORD_E_FOREIGN_RECORD,
                               "%s is not an election's file, or is damaged: stop all members, "
                               "then remove it",
                               disk->path);
    }
    if (!writable) {
        return COORD_OK;
    }
    /* Whoever makes it at the same time writes the same bytes. */
    const struct coord__file_text ours = {disk->name, disk->name_bytes};
    const size_t used = coord__file_header_write(&ours, block);
    return coord__file_disk_write(disk, COORD__FILE_HEADER_AT, block, used, error);
}

/* Blocks are reserved, so that a disk that fills up later stops no renewal. */
static enum coord_err reserve(const struct coord__file_disk *disk, struct coord_error *error)
{
    struct stat now;
    if (fstat(disk->file.fd, &now) == 0 && now.st_size >= COORD__FILE_BYTES) {
        return COORD_OK;
    }
    /* Not posix_fallocate(): where the file system cannot reserve, it writes, and what it
     * writes may be older than what another process has just put there. */
    int rc;
    do {
        rc = fallocate(disk->file.fd, 0, 0, COORD__FILE_BYTES);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
        return coord__file_errno(error, errno, "reserve blocks for", disk->path);
    }
    return COORD_OK;
}

static enum coord_err prepare(struct coord__file_disk *disk, bool writable,
                              struct coord_error *error)
{
    struct stat now;
    if (fstat(disk->file.fd, &now) != 0 || !S_ISREG(now.st_mode)) {
        return coord_error_set(error, COORD_E_FOREIGN_RECORD, "%s is no regular file: remove it",
                               disk->path);
    }
    enum coord_err rc = check_file_system(disk, disk->file.fd, error);
    if (rc == COORD_OK) {
        rc = check_header(disk, false, error); /* before anything is done to what is not ours */
    }
    if (rc == COORD_OK && writable) {
        rc = coord__file_limit(error, disk->path);
    }
    if (rc == COORD_OK && writable) {
        rc = reserve(disk, error);
    }
    return rc == COORD_OK && writable ? check_header(disk, true, error) : rc;
}

/* ---------------------------------------------------------------- open */

/* What was not there before. */
struct made {
    bool folder;
    bool file;
};

/* @return the descriptor, or -1 with errno. */
static int open_or_create(struct coord__file_disk *disk, enum coord__file_mode mode,
                          struct made *made)
{
    const int flags = (mode == COORD__FILE_READ ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW |
                      O_NONBLOCK | O_NOCTTY;
    for (int i = 0; i < TRIES; i++) {
        int fd = open(disk->path, flags);
        if (fd >= 0 || errno != ENOENT || mode != COORD__FILE_CREATE) {
            return fd;
        }
        if (mkdir(disk->folder, FOLDER_MODE) == 0) {
            made->folder = true;
        } else if (errno != EEXIST) {
            return -1;
        }
        fd = open(disk->path, flags | O_CREAT | O_EXCL, FILE_MODE);
        if (fd >= 0) {
            made->file = true;
            return fd;
        }
        if (errno != EEXIST && errno != ENOENT) {
            return -1;
        }
    }
    return -1;
}

static bool good_as_it_is(const struct coord__file_disk *disk, enum coord__file_mode mode)
{
    struct stat open_one;
    struct stat there;
    return coord__file_fd_ours(&disk->file) && (mode == COORD__FILE_READ || disk->writable) &&
           fstat(disk->file.fd, &open_one) == 0 && stat(disk->path, &there) == 0 &&
           there.st_dev == open_one.st_dev && there.st_ino == open_one.st_ino &&
           (!disk->writable || there.st_size >= COORD__FILE_BYTES);
}

/* Nothing half-made is left behind. */
static void put_away(struct coord__file_disk *disk, const struct made *made)
{
    if (made->file) {
        COORD_IGNORE(unlink(disk->path) != 0, "somebody else has removed it");
    }
    if (made->folder) {
        COORD_IGNORE(rmdir(disk->folder) != 0, "somebody else uses it");
    }
    coord__file_fd_close(&disk->file);
}

enum coord_err coord__file_disk_open(void *ctx, enum coord__file_mode mode, uint64_t *inode,
                                     struct coord_error *error)
{
    struct coord__file_disk *disk = ctx;
    if (good_as_it_is(disk, mode)) {
        *inode = disk->file.inode;
        return COORD_OK;
    }
    coord__file_fd_close(&disk->file);
    struct made made = {.folder = false};
    const int fd = open_or_create(disk, mode, &made);
    if (fd < 0) {
        const int why = errno;
        put_away(disk, &made);
        return coord__file_errno(error, why, "open", disk->path);
    }
    if (!coord__file_fd_note(&disk->file, fd)) {
        close(fd);
        put_away(disk, &made);
        return coord__file_errno(error, EBADF, "open", disk->path);
    }
    disk->writable = mode != COORD__FILE_READ;
    disk->watched_inode = 0; /* a number may come again once its file is gone */
    const enum coord_err rc = prepare(disk, disk->writable, error);
    if (rc != COORD_OK) {
        put_away(disk, &made);
        return rc;
    }
    *inode = disk->file.inode;
    return COORD_OK;
}

/* ---------------------------------------------------------------- this boot, this clock */

static bool read_text(const char *path, char *out, size_t bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const ssize_t got = coord__file_pread(fd, out, bytes - 1, 0);
    close(fd);
    if (got <= 0) {
        return false;
    }
    out[got] = '\0';
    return true;
}

static bool parse_boot(const char *text, uint8_t out[COORD__BOOT_BYTES])
{
    size_t digits = 0;
    memset(out, 0, COORD__BOOT_BYTES);
    for (; *text != '\0' && *text != '\n'; text++) {
        static const char hex[] = "0123456789abcdef";
        const char *digit = *text == '-' ? NULL : strchr(hex, *text);
        if (*text == '-') {
            continue;
        }
        if (digit == NULL || digits == 2 * (size_t)COORD__BOOT_BYTES) {
            return false;
        }
        out[digits / 2] = (uint8_t)(out[digits / 2] << 4 | (digit - hex));
        digits++;
    }
    return digits == 2 * (size_t)COORD__BOOT_BYTES;
}

enum coord_err coord__file_place_find(struct coord__file_place *place, struct coord_error *error)
{
    static const char boot_id[] = "/proc/sys/kernel/random/boot_id";
    char text[64];
    *place = (struct coord__file_place){.time_namespace = 0};
    errno = 0;
    if (!read_text(boot_id, text, sizeof text) || !parse_boot(text, place->boot)) {
        if (errno == EMFILE || errno == ENFILE) {
            return coord__file_errno(error, errno, "read", boot_id);
        }
        return coord_error_set(error, COORD_E_SYSTEM,
                               "cannot read %s, which tells one boot from another: mount /proc",
                               boot_id);
    }
    const ssize_t got = readlink("/proc/self/ns/time", text, sizeof text - 1);
    if (got > 0) { /* "time:[4026531834]"; kernels before 5.6 have one clock only */
        text[got] = '\0';
        const char *digits = strchr(text, '[');
        place->time_namespace = digits != NULL ? strtoull(digits + 1, NULL, 10) : 0;
    }
    return COORD_OK;
}
