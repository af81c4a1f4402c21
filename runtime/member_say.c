/* SPDX-License-Identifier: MIT
 * runtime/member_say.c - what a host says to its member, and how it leaves.
 */
#include "runtime/member_inside.h"

#include <errno.h>
#include <unistd.h>

enum coord_err coord_member_serve(struct coord_member *member, const char *const *names,
                                  size_t count, int64_t in_flight_count, double load_factor)
{
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    const enum coord_err rc =
        coord_agent_serve(member->agent, names, count, in_flight_count, load_factor);
    coord__leave(member->rider.runtime);
    return rc;
}

enum coord_err coord_member_assign(struct coord_member *member, const char *target,
                                   const char *const *names, size_t count, int64_t priority)
{
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    const struct coord_agent_work work = {
        .target = target, .names = names, .count = count, .priority = priority};
    const enum coord_err rc =
        coord_agent_assign(member->agent, &work, coord_clock_now(), (int64_t)coord_clock_wall_us());
    coord__rider_touch(&member->rider);
    coord__leave(member->rider.runtime);
    return rc;
}

/* ---------------------------------------------------------------- leaving */

enum coord_err coord_member_leave(struct coord_member *member, enum coord_intent intent,
                                  coord_ms within)
{
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    const coord_ms now = coord_clock_now();
    coord_agent_leave(member->agent, intent, coord_ms_add(now, within), now);
    coord__member_touch(member);
    coord__leave(member->rider.runtime);
    return COORD_OK;
}

enum coord_err coord_member_stay(struct coord_member *member)
{
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    const enum coord_err rc = coord_agent_stay(member->agent, coord_clock_now());
    coord__member_touch(member);
    coord__leave(member->rider.runtime);
    return rc;
}

enum coord_err coord_member_drained(struct coord_member *member)
{
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    coord_agent_drained(member->agent, coord_clock_now());
    coord__member_touch(member);
    coord__leave(member->rider.runtime);
    return COORD_OK;
}

int coord_member_signal_fd(const struct coord_member *member)
{
    return member->signal;
}

void coord_member_leave_signal(int fd)
{
    const int kept = errno;
    const uint64_t one = 1;
    COORD_IGNORE(write(fd, &one, sizeof one) < 0, "full: it has been said often enough");
    errno = kept;
}

/* It has left, and its host was told so, unless that is whom we keep waiting. */
static bool has_left(struct coord__rider *rider, void *ctx)
{
    const struct coord_member *m = coord__member_of(rider);
    (void)ctx;
    return m->left && (m->first == NULL || coord__in_a_callback(rider->runtime));
}

enum coord_err coord_member_wait(struct coord_member *member, coord_ms timeout,
                                 struct coord_agent_event *out)
{
    const coord_ms until = coord_ms_add(coord_clock_now(), timeout);
    struct coord_runtime *runtime = member->rider.runtime;
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    coord__rider_pin(&member->rider);
    const bool left = coord__rider_await(&member->rider, until, has_left, NULL);
    enum coord_err rc = COORD_OK;
    if (!left) {
        rc = coord__forked(runtime) ? COORD_E_FORKED
             : member->rider.closed ? COORD_E_CLOSED
                                    : COORD_E_TIMEOUT;
    } else if (out != NULL) {
        *out = member->left_event;
    }
    coord__rider_unpin(&member->rider);
    coord__leave(runtime);
    return rc;
}

/* ---------------------------------------------------------------- sinks */

enum coord_err coord_member_add_sink(struct coord_member *member, struct coord_sink *sink)
{
    enum coord_err rc = COORD_E_LIMIT;
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    if (member->sink_count < COORD__MEMBER_SINKS) {
        member->sinks[member->sink_count++] = sink;
        rc = COORD_OK;
    }
    coord__leave(member->rider.runtime);
    return rc;
}

bool coord_member_remove_sink(struct coord_member *member, struct coord_sink *sink)
{
    size_t at = 0;
    if (!coord__member_enter(member)) {
        return false;
    }
    while (at < member->sink_count && member->sinks[at] != sink) {
        at++;
    }
    const bool found = at < member->sink_count;
    if (found) {
        member->sinks[at] = member->sinks[--member->sink_count];
    }
    coord__leave(member->rider.runtime);
    return found;
}

const char *coord_member_id(const struct coord_member *member)
{
    return member->id;
}
