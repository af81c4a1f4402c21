/* SPDX-License-Identifier: MIT
 * runtime/sink_file.c - lines at the end of a file that others may move away.
 */
#include "runtime/sink_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

int coord__sink_open(struct coord_sink *sink)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const int fd = open(sink->path, flags, 0640); /* a pipe that nobody reads is refused */
    if (fd < 0) {
        return errno;
    }
    if (sink->fd >= 0) {
        close(sink->fd);
    }
    sink->fd = fd;
    sink->torn = false;
    return 0;
}

/* Does its path still lead to the file that is open? */
static bool stays(const struct coord_sink *sink)
{
    struct stat named;
    struct stat open_one;
    return sink->fd >= 0 && stat(sink->path, &named) == 0 && fstat(sink->fd, &open_one) == 0 &&
           named.st_ino == open_one.st_ino && named.st_dev == open_one.st_dev;
}

bool coord__sink_append(struct coord_sink *sink, const char *text, size_t bytes)
{
    static const char end[] = "\n";
    const int why = stays(sink) ? 0 : coord__sink_open(sink);
    if (why != 0) {
        return coord__sink_give_up(sink, "the file cannot be opened", why);
    }
    union { /* writev() does not change what it writes */
        const char *from;
        char *to;
    } line = {.from = text}, torn = {.from = end};
    /* A full disk may have taken a part: what it took stays a line of its own. */
    struct iovec part[] = {{.iov_base = torn.to, .iov_len = sink->torn ? 1 : 0},
                           {.iov_base = line.to, .iov_len = bytes}};
    const ssize_t wanted = (ssize_t)(part[0].iov_len + bytes);
    const ssize_t n = writev(sink->fd, part, 2);
    if (n == wanted) {
        sink->torn = false;
        return true;
    }
    const int code = n < 0 ? errno : ENOSPC;
    sink->torn = n > 0 ? n != (ssize_t)part[0].iov_len : sink->torn;
    return coord__sink_give_up(sink, "the file cannot be written to", code);
}
