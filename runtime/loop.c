/* SPDX-License-Identifier: MIT
 * runtime/loop.c - the nested epoll descriptors of a runtime.
 */
#include "runtime/loop.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static void close_one(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

static bool add(int epoll, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

enum coord_err coord__loop_init(struct coord__loop *loop, struct coord_error *error)
{
    memset(loop, 0, sizeof *loop);
    loop->armed = COORD_NEVER;
    loop->outer = epoll_create1(EPOLL_CLOEXEC);
    loop->inner = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    loop->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->outer < 0 || loop->inner < 0 || loop->wake < 0 || loop->timer < 0 ||
        !add(loop->outer, loop->inner, EPOLLIN, (uint64_t)loop->inner) ||
        !add(loop->outer, loop->wake, EPOLLIN, (uint64_t)loop->wake) ||
        !add(loop->outer, loop->timer, EPOLLIN, (uint64_t)loop->timer)) {
        const int why = errno;
        coord__loop_fini(loop);
        return coord_error_set(error, COORD_E_SYSTEM,
                               "cannot make the four descriptors of a runtime (%s): raise the "
                               "limit of open files",
                               strerrorname_np(why));
    }
    return COORD_OK;
}

void coord__loop_fini(struct coord__loop *loop)
{
    close_one(&loop->timer);
    close_one(&loop->wake);
    close_one(&loop->inner);
    close_one(&loop->outer);
    free(loop->slots);
    loop->slots = NULL;
    loop->slot_count = 0;
}

void coord__loop_wake(struct coord__loop *loop)
{
    if (!atomic_exchange(&loop->woken, true)) {
        const uint64_t one = 1;
        const ssize_t written = write(loop->wake, &one, sizeof one);
        COORD_ASSERT(written == (ssize_t)sizeof one);
    }
}

/* Read what made a counter descriptor readable; an empty one says EAGAIN, which is as good. */
static void drain(int fd)
{
    uint64_t count = 0;
    const ssize_t n = read(fd, &count, sizeof count);
    COORD_ASSERT(n == (ssize_t)sizeof count || (n < 0 && (errno == EAGAIN || errno == EINTR)));
}

void coord__loop_wait(struct coord__loop *loop, coord_ms timeout)
{
    struct epoll_event events[4];
    const int limit = timeout == COORD_NEVER ? -1 : timeout > INT_MAX ? INT_MAX : (int)timeout;
    const int count = epoll_wait(loop->outer, events, 4, limit);
    for (int i = 0; i < count; i++) {
        const uint64_t fd = events[i].data.u64;
        if (fd == (uint64_t)loop->wake) {
            /* Drained before the flag falls: a wake in between is seen by who drives now. */
            drain(loop->wake);
            atomic_store(&loop->woken, false);
        } else if (fd == (uint64_t)loop->timer) {
            drain(loop->timer);
            loop->armed = COORD_NEVER;
        } else {
            loop->inner_ready = true;
        }
    }
}

/* ---------------------------------------------------------------- the backends' descriptors */

static uint32_t events_of(const struct coord_descriptor *what)
{
    return (what->read ? (uint32_t)EPOLLIN : 0) | (what->write ? (uint32_t)EPOLLOUT : 0);
}

static uint64_t tag(int fd, uint64_t generation)
{
    return generation << 32 | (uint32_t)fd;
}

/* Events of an open file that we do not know: it is closed here and lives on in a child. */
static void rebuild(struct coord__loop *loop)
{
    const int fresh = epoll_create1(EPOLL_CLOEXEC);
    if (fresh < 0 || !add(loop->outer, fresh, EPOLLIN, (uint64_t)fresh)) {
        if (fresh >= 0) {
            close(fresh);
        }
        return; /* out of descriptors: the ghost stays until there is one */
    }
    epoll_ctl(loop->outer, EPOLL_CTL_DEL, loop->inner, NULL);
    close(loop->inner);
    loop->inner = fresh;
    for (size_t fd = 0; fd < loop->slot_count; fd++) {
        struct coord__slot *slot = &loop->slots[fd];
        if (slot->registered != 0 &&
            !add(fresh, (int)fd, slot->registered, tag((int)fd, slot->registered_generation))) {
            slot->registered = 0; /* tried again by the next round */
        }
    }
}

void coord__loop_collect(struct coord__loop *loop)
{
    struct epoll_event events[COORD__LOOP_BATCH];
    if (!loop->inner_ready) {
        return;
    }
    loop->inner_ready = false;
    bool ghost = false;
    const int count = epoll_wait(loop->inner, events, COORD__LOOP_BATCH, 0);
    for (int i = 0; i < count; i++) {
        const size_t fd = events[i].data.u64 & UINT32_MAX;
        struct coord__slot *slot = fd < loop->slot_count ? &loop->slots[fd] : NULL;
        if (slot != NULL && slot->registered != 0 &&
            tag((int)fd, slot->registered_generation) == events[i].data.u64) {
            slot->ready = true;
        } else {
            ghost = true;
        }
    }
    if (ghost) {
        rebuild(loop);
    }
}

bool coord__loop_ready(const struct coord__loop *loop, int fd)
{
    return fd >= 0 && (size_t)fd < loop->slot_count && loop->slots[fd].ready;
}

void coord__loop_forget(struct coord__loop *loop, int fd)
{
    if (fd >= 0 && (size_t)fd < loop->slot_count && loop->slots[fd].registered != 0) {
        epoll_ctl(loop->inner, EPOLL_CTL_DEL, fd, NULL);
        loop->slots[fd].registered = 0;
    }
}

void coord__loop_begin(struct coord__loop *loop)
{
    for (size_t fd = 0; fd < loop->slot_count; fd++) {
        loop->slots[fd].wanted = 0;
        loop->slots[fd].ready = false;
    }
}

static bool make_room(struct coord__loop *loop, size_t fd)
{
    if (fd < loop->slot_count) {
        return true;
    }
    const size_t count = (fd + 1 + 15) / 16 * 16;
    struct coord__slot *slots = realloc(loop->slots, count * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    memset(slots + loop->slot_count, 0, (count - loop->slot_count) * sizeof *slots);
    loop->slots = slots;
    loop->slot_count = count;
    return true;
}

enum coord_err coord__loop_want(struct coord__loop *loop, const struct coord_descriptor *what)
{
    COORD_ASSERT(what->fd >= 0);
    if (!make_room(loop, (size_t)what->fd)) {
        return COORD_E_NO_MEMORY;
    }
    struct coord__slot *slot = &loop->slots[what->fd];
    slot->wanted |= events_of(what);
    slot->generation = what->generation;
    return COORD_OK;
}

static void sync_slot(struct coord__loop *loop, int fd, struct coord__slot *slot)
{
    const bool other_file = slot->generation != slot->registered_generation;
    if (slot->registered == slot->wanted && (slot->wanted == 0 || !other_file)) {
        return;
    }
    if (slot->registered != 0 && (slot->wanted == 0 || other_file)) {
        /* Fails where the file was closed, and so left the set by itself. */
        epoll_ctl(loop->inner, EPOLL_CTL_DEL, fd, NULL);
        slot->registered = 0;
    }
    if (slot->wanted == 0) {
        return;
    }
    struct epoll_event event = {.events = slot->wanted, .data.u64 = tag(fd, slot->generation)};
    const int op = slot->registered != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(loop->inner, op, fd, &event) == 0) {
        slot->registered = slot->wanted;
        slot->registered_generation = slot->generation;
    } else {
        slot->registered = 0; /* tried again with the next round; deadlines hold meanwhile */
    }
}

void coord__loop_end(struct coord__loop *loop)
{
    for (size_t fd = 0; fd < loop->slot_count; fd++) {
        sync_slot(loop, (int)fd, &loop->slots[fd]);
    }
}

void coord__loop_arm(struct coord__loop *loop, coord_ms deadline)
{
    if (deadline == loop->armed) {
        return;
    }
    struct itimerspec when = {.it_value = {.tv_sec = 0, .tv_nsec = 0}}; /* disarmed */
    if (deadline != COORD_NEVER) {
        when.it_value.tv_sec = (time_t)(deadline / 1000);
        when.it_value.tv_nsec = (long)(deadline % 1000) * 1000000;
        if (deadline == 0) {
            when.it_value.tv_nsec = 1; /* long past, and not "disarmed" */
        }
    }
    COORD_ASSERT(timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &when, NULL) == 0);
    loop->armed = deadline;
}
