/* SPDX-License-Identifier: MIT
 * brokers/local_post.c - one datagram to every member, and patience with those that are busy.
 *
 * A member's socket takes ten datagrams or so. What it does not take waits here for a moment, in
 * order and within a limit; then it is lost for that member alone.
 */
#include "brokers/local_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RETRY_FIRST = 2, /* ms, doubled each time in vain */
    RETRY_CAP = 100, /* ms */
    PATIENCE = 2000, /* ms; a busy member has read by then, a stopped one has not */
    SHARE = 4        /* one member's part of all that may wait */
};

struct datagram {
    struct datagram *next;
    coord_ms until;
    size_t count;
    unsigned char bytes[];
};

struct coord__local_late {
    struct coord__local_late *next;
    char name[COORD__LOCAL_NAME];
    struct datagram *first;
    struct datagram **last;
    size_t bytes;
    coord_ms pause;
    coord_ms retry_at;
};

/* ---------------------------------------------------------------- what waits */

static struct coord__local_late *find(const struct coord__local_post *post, const char *name)
{
    struct coord__local_late *late = post->late;
    while (late != NULL && strcmp(late->name, name) != 0) {
        late = late->next;
    }
    return late;
}

static void drop_first(struct coord__local_post *post, struct coord__local_late *late)
{
    struct datagram *d = late->first;
    late->first = d->next;
    if (late->first == NULL) {
        late->last = &late->first;
    }
    late->bytes -= sizeof *d + d->count;
    post->bytes -= sizeof *d + d->count;
    free(d);
}

static struct coord__local_late *begin_late(struct coord__local_post *post, const char *name,
                                            coord_ms now)
{
    struct coord__local_late *late = calloc(1, sizeof *late);
    if (late != NULL) {
        memcpy(late->name, name, strlen(name) + 1);
        late->last = &late->first;
        late->pause = RETRY_FIRST;
        late->retry_at = coord_ms_add(now, RETRY_FIRST);
        late->next = post->late;
        post->late = late;
    }
    return late;
}

/* Behind what waits for it already; the oldest gives way. */
static void keep(struct coord__local_post *post, const char *name, const void *bytes, size_t count,
                 coord_ms now)
{
    struct coord__local_late *late = find(post, name);
    struct datagram *d = malloc(sizeof *d + count);
    if (late == NULL && d != NULL) {
        late = begin_late(post, name, now);
    }
    if (d == NULL || late == NULL) {
        free(d);
        post->lost++;
        return;
    }
    d->next = NULL;
    d->until = coord_ms_add(now, PATIENCE);
    d->count = count;
    memcpy(d->bytes, bytes, count);
    *late->last = d;
    late->last = &d->next;
    late->bytes += sizeof *d + count;
    post->bytes += sizeof *d + count;
    while (late->first != NULL &&
           (late->bytes > post->bytes_max / SHARE || post->bytes > post->bytes_max)) {
        drop_first(post, late);
        post->lost++;
    }
}

static void end_late(struct coord__local_post *post, struct coord__local_late *late)
{
    struct coord__local_late **at = &post->late;
    while (*at != late) {
        at = &(*at)->next;
    }
    *at = late->next;
    while (late->first != NULL) {
        drop_first(post, late);
    }
    free(late);
}

/* ---------------------------------------------------------------- sending */

/*
 * "Again" has two causes: the receiver's socket is full, or ours is, with what others have not
 * read. A fresh socket tells them apart, so that a stopped member never stops the rest.
 */
static int send_one(struct coord__local_post *post, const char *name, const void *bytes,
                    size_t count)
{
    for (int tries = 0;; tries++) {
        if (post->fd < 0) {
            post->fd = coord__local_sender();
        }
        if (post->fd < 0) {
            return EAGAIN; /* no descriptor just now */
        }
        const int why = coord__local_send(post->folder, post->fd, name, bytes, count);
        if ((why != EAGAIN && why != ENOBUFS) || tries == 1) {
            return why == ENOBUFS ? EAGAIN : why;
        }
        close(post->fd); /* what is under way in it arrives all the same */
        post->fd = -1;
    }
}

/* @return false: it does not take it now. */
static bool settle(struct coord__local_post *post, const char *name, int why)
{
    if (why == EAGAIN || why == EINTR || why == ENOMEM) {
        return false;
    }
    if (why == ECONNREFUSED) {
        coord__local_remove(post->folder, name); /* its process is gone */
    } else if (why != 0 && why != ENOENT) {
        post->lost++;
    }
    return true;
}

struct parcel {
    struct coord__local_post *post;
    const void *bytes;
    size_t count;
    coord_ms now;
};

static void post_one(void *ctx, const char *name)
{
    const struct parcel *p = ctx;
    if (find(p->post, name) != NULL ||
        !settle(p->post, name, send_one(p->post, name, p->bytes, p->count))) {
        keep(p->post, name, p->bytes, p->count, p->now);
    }
}

bool coord__local_post_all(struct coord__local_post *post, const void *bytes, size_t count,
                           coord_ms now)
{
    struct parcel parcel = {.post = post, .bytes = bytes, .count = count, .now = now};
    return coord__local_each(post->folder, post_one, &parcel);
}

/* @return false: nothing waits for it any more. */
static bool try_again(struct coord__local_post *post, struct coord__local_late *late, coord_ms now)
{
    while (late->first != NULL) {
        const struct datagram *d = late->first;
        const int why = send_one(post, late->name, d->bytes, d->count);
        if (why == ECONNREFUSED || why == ENOENT) {
            settle(post, late->name, why);
            return false;
        }
        const bool done = settle(post, late->name, why);
        if (!done && now < d->until) {
            late->pause = coord_ms_min(2 * late->pause, RETRY_CAP);
            late->retry_at = coord_ms_add(now, late->pause);
            return true;
        }
        post->lost += done ? 0 : 1;
        late->pause = done ? RETRY_FIRST : late->pause;
        drop_first(post, late);
    }
    return false;
}

void coord__local_post_process(struct coord__local_post *post, coord_ms now)
{
    struct coord__local_late *next;
    for (struct coord__local_late *late = post->late; late != NULL; late = next) {
        next = late->next;
        if (now >= late->retry_at && !try_again(post, late, now)) {
            end_late(post, late);
        }
    }
}

coord_ms coord__local_post_deadline(const struct coord__local_post *post)
{
    coord_ms at = COORD_NEVER;
    for (const struct coord__local_late *late = post->late; late != NULL; late = late->next) {
        at = coord_ms_min(at, late->retry_at);
    }
    return at;
}

void coord__local_post_close(struct coord__local_post *post)
{
    while (post->late != NULL) {
        end_late(post, post->late);
    }
    if (post->fd >= 0) {
        close(post->fd);
        post->fd = -1;
    }
}
