/* SPDX-License-Identifier: MIT
 * brokers/local.c - the broker's table: a socket that hears, and a look now and then whether it is
 * still there.
 */
#include "brokers/local.h"

#include "brokers/local_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READS = 1024, /* in one go: others of the loop want their turn */
    CHECK = 2000, /* ms between two looks at one's own socket */
    RETRY = 500   /* ms, while there is no folder */
};

struct local {
    struct coord__local_folder folder;
    struct coord__local_post post;
    int fd; /* hears; -1: nothing is heard */
    uint64_t generation;
    char name[COORD__LOCAL_NAME];
    bool hears; /* something is subscribed to */
    bool more;  /* was left unread */
    coord_ms check_at;
    unsigned char *frame; /* of COORD__LOCAL_FRAME_MAX and one */
};

/* ---------------------------------------------------------------- being there */

static void leave(struct local *l, bool forked)
{
    if (l->fd >= 0) {
        if (!forked) {
            coord__local_remove(&l->folder, l->name);
        }
        close(l->fd);
        l->fd = -1;
    }
    coord__local_folder_close(&l->folder);
}

/* Be where others send to; what is there already stays. */
static enum coord_err arrive(struct local *l, struct coord_error *error)
{
    if (l->folder.fd < 0) {
        const enum coord_err rc = coord__local_folder_open(&l->folder, error);
        if (rc != COORD_OK) {
            return rc;
        }
    }
    if (l->hears && l->fd < 0) {
        l->fd = coord__local_bind(&l->folder, l->name, error);
        if (l->fd < 0) {
            coord__local_folder_close(&l->folder);
            return error->code;
        }
        l->generation++;
    }
    return COORD_OK;
}

static void stay(struct coord_broker *broker, coord_ms now)
{
    struct local *l = coord_broker_state(broker);
    struct coord_error error = {.code = COORD_OK};
    if (l->folder.fd >= 0 && now >= l->check_at &&
        (!coord__local_folder_stays(&l->folder) ||
         (l->fd >= 0 && !coord__local_is_there(&l->folder, l->name)))) {
        coord_error_set(&error, COORD_E_UNREACHABLE,
                        "somebody removed our socket from %.200s: a new one is made",
                        l->folder.path);
        coord_broker_report_down(broker, &error, now);
        leave(l, false);
    }
    if (now < l->check_at) {
        return;
    }
    if (arrive(l, &error) == COORD_OK) {
        l->check_at = coord_ms_add(now, CHECK);
        coord_broker_report_up(broker, now);
    } else {
        l->check_at = coord_ms_add(now, RETRY);
        coord_broker_report_down(broker, &error, now);
    }
}

/* ---------------------------------------------------------------- begin and end */

static enum coord_err begin(struct coord_broker *broker, const struct coord_broker_config *config,
                            coord_ms now, struct coord_error *error)
{
    struct local *l = coord_broker_state(broker);
    const char *path = config->uri != NULL ? config->uri->path : NULL;
    enum coord_err rc = coord__local_folder_name(&l->folder, path != NULL ? path : "", error);
    if (rc != COORD_OK) {
        return rc;
    }
    l->folder.fd = -1;
    l->fd = -1;
    l->post.fd = -1;
    l->post.folder = &l->folder;
    l->post.bytes_max = config->outbox_bytes;
    l->generation = (uint64_t)(uintptr_t)l << 16;
    l->check_at = now; /* the first process() says that it is up */
    l->frame = malloc(COORD__LOCAL_FRAME_MAX + 1);
    if (l->frame == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    rc = arrive(l, error);
    if (rc != COORD_OK) {
        free(l->frame);
    }
    return rc;
}

static void end(struct coord_broker *broker, bool forked)
{
    struct local *l = coord_broker_state(broker);
    leave(l, forked);
    coord__local_post_close(&l->post);
    free(l->frame);
}

/* ---------------------------------------------------------------- messages */

static enum coord_err publish(struct coord_broker *broker, const struct coord_broker_message *what,
                              coord_ms now, struct coord_error *error)
{
    struct local *l = coord_broker_state(broker);
    if (l->folder.fd < 0) {
        return COORD_E_BUSY;
    }
    const size_t count = coord__local_frame_write(what, l->frame);
    if (!coord__local_post_all(&l->post, l->frame, count, now)) {
        return coord_error_set(error, COORD_E_SYSTEM,
                               "the folder %.200s cannot be read (%s): raise the limit of open "
                               "files, or make it readable",
                               l->folder.path, strerror(errno));
    }
    coord_broker_count_drop(broker, COORD_BROKER_DROP_SLOW_MEMBER, l->post.lost);
    l->post.lost = 0;
    return COORD_OK;
}

static void resubscribe(struct coord_broker *broker, coord_ms now)
{
    struct local *l = coord_broker_state(broker);
    l->hears = coord_broker_topic(broker, 0) != NULL;
    if (l->hears && l->fd < 0) {
        coord_broker_report_down(broker, NULL, now);
        l->check_at = now;
    }
}

static void take_in(struct coord_broker *broker, const unsigned char *frame, size_t count)
{
    struct coord__local_frame read;
    if (!coord__local_frame_read(frame, count, &read)) {
        coord_broker_count_drop(broker, COORD_BROKER_DROP_DAMAGED, 1);
        return;
    }
    coord_broker_deliver(broker, read.topic, read.topic_bytes, read.bytes, read.count);
}

static void read_all(struct coord_broker *broker)
{
    struct local *l = coord_broker_state(broker);
    l->more = false;
    for (int i = 0; l->fd >= 0; i++) {
        if (i == READS) {
            l->more = true;
            return;
        }
        /* One byte more than the largest: so a longer one is seen to be cut. */
        const ssize_t n =
            recv(l->fd, l->frame, COORD__LOCAL_FRAME_MAX + 1, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0) {
            return;
        }
        if (n > COORD__LOCAL_FRAME_MAX) {
            coord_broker_count_drop(broker, COORD_BROKER_DROP_DAMAGED, 1);
        } else {
            take_in(broker, l->frame, (size_t)n);
        }
    }
}

static void process(struct coord_broker *broker, coord_ms now)
{
    struct local *l = coord_broker_state(broker);
    stay(broker, now);
    read_all(broker);
    coord__local_post_process(&l->post, now);
    coord_broker_count_drop(broker, COORD_BROKER_DROP_SLOW_MEMBER, l->post.lost);
    l->post.lost = 0;
}

static size_t descriptors(struct coord_broker *broker, struct coord_descriptor *out)
{
    const struct local *l = coord_broker_state(broker);
    if (l->fd < 0) {
        return 0;
    }
    out[0] = (struct coord_descriptor){.fd = l->fd, .read = true, .generation = l->generation};
    return 1;
}

static coord_ms deadline(struct coord_broker *broker)
{
    const struct local *l = coord_broker_state(broker);
    return l->more ? 0 : coord_ms_min(l->check_at, coord__local_post_deadline(&l->post));
}

static bool unwritten(struct coord_broker *broker)
{
    const struct local *l = coord_broker_state(broker);
    return l->post.late != NULL;
}

static const struct coord_broker_ops ops = {.size = sizeof ops,
                                            .abi = COORD_BROKER_ABI,
                                            .name = "local",
                                            .state_bytes = sizeof(struct local),
                                            .flags = COORD_BROKER_BASIC_PUBSUB,
                                            .init = begin,
                                            .fini = end,
                                            .publish = publish,
                                            .resubscribe = resubscribe,
                                            .process = process,
                                            .descriptors = descriptors,
                                            .deadline = deadline,
                                            .unwritten = unwritten};

const struct coord_broker_ops *coord_local_broker(void)
{
    return &ops;
}
