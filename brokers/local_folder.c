/* SPDX-License-Identifier: MIT
 * brokers/local_folder.c - a folder of sockets, one for each member that listens.
 */
#include "brokers/local_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    SEND_BUFFER = 256 * 1024 /* room for one message of the largest size, and some */
};

/* ---------------------------------------------------------------- open */

/* What helps against an errno; where nothing special does, `otherwise`. */
static const char *cure(int why, const char *otherwise)
{
    return why == EMFILE || why == ENFILE ? "raise the limit of open files" : otherwise;
}

static enum coord_err look(const struct coord__local_folder *folder, int fd,
                           struct coord_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return coord_error_set(error, COORD_E_SYSTEM, "the folder %.200s cannot be looked at (%s)",
                               folder->path, strerror(errno));
    }
    if (st.st_uid != geteuid()) {
        return coord_error_set(error, COORD_E_NO_RIGHT,
                               "the folder %.200s belongs to user %ld: all members of a local: bus "
                               "run as one user, give each user a folder",
                               folder->path, (long)st.st_uid);
    }
    if ((st.st_mode & 077) != 0) {
        return coord_error_set(error, COORD_E_NO_RIGHT,
                               "the folder %.200s is open to other users: chmod 700 it, or name a "
                               "folder that coord may make",
                               folder->path);
    }
    return COORD_OK;
}

enum coord_err coord__local_folder_name(struct coord__local_folder *folder, const char *path,
                                        struct coord_error *error)
{
    char here[COORD__LOCAL_FOLDER] = "";
    if (path[0] != '/' && getcwd(here, sizeof here) == NULL) {
        return coord_error_set(error, COORD_E_SYSTEM,
                               "the working directory of local:%.160s cannot be told (%s): write a "
                               "path that begins with /",
                               path, strerror(errno));
    }
    const int length = snprintf(folder->path, sizeof folder->path, "%s%s%s", here,
                                here[0] != '\0' ? "/" : "", path);
    if (path[0] == '\0' || length < 0 || (size_t)length >= sizeof folder->path) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "a local: bus needs a folder of at most %d bytes: give local:DIR",
                               COORD__LOCAL_FOLDER - 1);
    }
    return COORD_OK;
}

enum coord_err coord__local_folder_open(struct coord__local_folder *folder,
                                        struct coord_error *error)
{
    COORD_ASSERT(folder->fd < 0);
    if (mkdir(folder->path, 0700) != 0 && errno != EEXIST) {
        return coord_error_set(error, errno == EACCES ? COORD_E_NO_RIGHT : COORD_E_SYSTEM,
                               "the folder %.200s cannot be made (%s): make it, or name another",
                               folder->path, strerror(errno));
    }
    const int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return coord_error_set(error, errno == EACCES ? COORD_E_NO_RIGHT : COORD_E_SYSTEM,
                               "the folder %.160s cannot be opened (%s): %s", folder->path,
                               strerror(errno), cure(errno, "name another"));
    }
    const enum coord_err rc = look(folder, fd, error);
    if (rc != COORD_OK) {
        close(fd);
        return rc;
    }
    folder->fd = fd;
    return COORD_OK;
}

void coord__local_folder_close(struct coord__local_folder *folder)
{
    if (folder->fd >= 0) {
        close(folder->fd);
        folder->fd = -1;
    }
}

bool coord__local_folder_stays(const struct coord__local_folder *folder)
{
    struct stat named;
    struct stat open_one;
    return folder->fd >= 0 && stat(folder->path, &named) == 0 &&
           fstat(folder->fd, &open_one) == 0 && named.st_ino == open_one.st_ino &&
           named.st_dev == open_one.st_dev;
}

/* ---------------------------------------------------------------- names */

/* A path that is too long for a socket's address is reached through the open folder. */
static socklen_t address(const struct coord__local_folder *folder, const char *name,
                         struct sockaddr_un *out)
{
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    int n = snprintf(out->sun_path, sizeof out->sun_path, "%s/%s", folder->path, name);
    if (n < 0 || (size_t)n >= sizeof out->sun_path) {
        n = snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s", folder->fd, name);
    }
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n + 1);
}

bool coord__local_is_there(const struct coord__local_folder *folder, const char *name)
{
    struct stat st;
    return folder->fd >= 0 && fstatat(folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void coord__local_remove(const struct coord__local_folder *folder, const char *name)
{
    if (folder->fd >= 0) {
        COORD_IGNORE(unlinkat(folder->fd, name, 0) != 0, "another was faster");
    }
}

bool coord__local_each(const struct coord__local_folder *folder, coord__local_name_fn fn, void *ctx)
{
    const int fd =
        folder->fd >= 0 ? openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (list == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    const struct dirent *entry;
    while ((entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, "m.", 2) == 0 && strlen(entry->d_name) < COORD__LOCAL_NAME) {
            fn(ctx, entry->d_name);
        }
    }
    closedir(list);
    return true;
}

/* ---------------------------------------------------------------- sockets */

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/*
 * A socket that is seen before it is ready is refused, and so taken for a dead member's. It gets
 * its name when it can be sent to.
 */
int coord__local_bind(const struct coord__local_folder *folder, char *out_name,
                      struct coord_error *error)
{
    struct sockaddr_un at;
    char hidden[COORD__LOCAL_NAME];
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) {
        random = (uint64_t)(uintptr_t)folder ^ (uint64_t)getpid() << 32;
    }
    snprintf(hidden, sizeof hidden, "n.%016" PRIx64, random);
    snprintf(out_name, COORD__LOCAL_NAME, "m.%016" PRIx64, random);
    const int fd = new_socket();
    const socklen_t bytes = address(folder, hidden, &at);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, bytes) == 0) {
        if (renameat(folder->fd, hidden, folder->fd, out_name) == 0) {
            return fd;
        }
        coord__local_remove(folder, hidden);
    }
    const int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    coord_error_set(error, why == ENOSPC || why == EDQUOT ? COORD_E_NO_SPACE : COORD_E_SYSTEM,
                    "no socket can be made in the folder %.160s (%s): %s", folder->path,
                    strerror(why), cure(why, "is there room, and may sockets be made there?"));
    return -1;
}

int coord__local_sender(void)
{
    const int fd = new_socket();
    const int bytes = SEND_BUFFER;
    if (fd >= 0) {
        COORD_IGNORE(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) != 0,
                     "the default has room for one message as well");
    }
    return fd;
}

int coord__local_send(const struct coord__local_folder *folder, int fd, const char *name,
                      const void *bytes, size_t count)
{
    struct sockaddr_un at;
    const socklen_t size = address(folder, name, &at);
    const ssize_t n =
        sendto(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&at, size);
    return n >= 0 ? 0 : errno;
}
