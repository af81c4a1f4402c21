/* SPDX-License-Identifier: MIT
 * brokers/local_parts.h - the folder, the socket in it, and what waits for slow members.
 *
 * Between brokers/local*.c only.
 */
#ifndef COORD_BROKER_LOCAL_PARTS_H
#define COORD_BROKER_LOCAL_PARTS_H

#include "coord/broker.h"

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD__LOCAL_NAME = 24,    /* of a socket: "m." and 16 hex, and the NUL */
    COORD__LOCAL_FOLDER = 1024 /* a folder's path and the NUL */
};

/* ---------------------------------------------------------------- datagrams: local_frame.c */

enum {
    COORD__LOCAL_HEAD = 6, /* "cob1" and the topic's length */
    COORD__LOCAL_FRAME_MAX = COORD__LOCAL_HEAD + COORD_BROKER_TOPIC_MAX + COORD_BROKER_MESSAGE_MAX
};

/* What a datagram says; it lies in it. */
struct coord__local_frame {
    const char *topic; /* not NUL-terminated */
    size_t topic_bytes;
    const unsigned char *bytes;
    size_t count;
};

/* @param out room for COORD__LOCAL_FRAME_MAX. @return how many bytes it has. */
size_t coord__local_frame_write(const struct coord_broker_message *what, unsigned char *out);
/* @return false: it is not of our form, and out is left alone. */
bool coord__local_frame_read(const unsigned char *frame, size_t count,
                             struct coord__local_frame *out);

/* ---------------------------------------------------------------- the folder: local_folder.c */

struct coord__local_folder {
    char path[COORD__LOCAL_FOLDER];
    int fd; /* -1: not open */
};

/* Which one it is: from now on, wherever the process may go. */
enum coord_err coord__local_folder_name(struct coord__local_folder *folder, const char *path,
                                        struct coord_error *error);
/* Make it where it is missing, and look whether it is ours alone. */
COORD_MUST_CHECK enum coord_err coord__local_folder_open(struct coord__local_folder *folder,
                                                         struct coord_error *error);
void coord__local_folder_close(struct coord__local_folder *folder);
/* Is it still what its path leads to? */
bool coord__local_folder_stays(const struct coord__local_folder *folder);

/* A socket of our own in it, under a new name, ready before others can see it. @return -1. */
int coord__local_bind(const struct coord__local_folder *folder, char *out_name,
                      struct coord_error *error);
/* Is the name still there? */
bool coord__local_is_there(const struct coord__local_folder *folder, const char *name);
void coord__local_remove(const struct coord__local_folder *folder, const char *name);

/* A socket to send with; -1: no descriptor. */
int coord__local_sender(void);
/* One datagram. @return 0, or errno. */
int coord__local_send(const struct coord__local_folder *folder, int fd, const char *name,
                      const void *bytes, size_t count);

typedef void (*coord__local_name_fn)(void *ctx, const char *name);
/* Every member's socket. @return false: the folder cannot be read. */
bool coord__local_each(const struct coord__local_folder *folder, coord__local_name_fn fn,
                       void *ctx);

/* ---------------------------------------------------------------- sending: local_post.c */

struct coord__local_late; /* what waits for one member */

struct coord__local_post {
    const struct coord__local_folder *folder;
    int fd; /* -1: none */
    struct coord__local_late *late;
    size_t bytes; /* of all that waits */
    size_t bytes_max;
    uint64_t lost; /* by members that do not read; the owner takes it back */
};

/* To all members, those that are late behind what waits for them. @return false: no folder. */
bool coord__local_post_all(struct coord__local_post *post, const void *bytes, size_t count,
                           coord_ms now);
/* Try again what waits. */
void coord__local_post_process(struct coord__local_post *post, coord_ms now);
coord_ms coord__local_post_deadline(const struct coord__local_post *post);
void coord__local_post_close(struct coord__local_post *post);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_LOCAL_PARTS_H */
