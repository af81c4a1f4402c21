/* SPDX-License-Identifier: MIT
 * runtime/member_tell.c - events wait here, copied, until the host is told of them; sinks hear of
 * reports at once.
 */
#include "runtime/member_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- sinks */

static void feed_sinks(struct coord_member *m, const struct coord_event *event, coord_ms now)
{
    struct coord_report report = {
        .fleet = m->fleet, .reporter = m->id, .now = now, .wall = (int64_t)coord_clock_wall_us()};
    if (m->sink_count == 0 || !coord_report_of(event, &report)) {
        return;
    }
    struct coord_claim claim = {.leading = false};
    if (m->election != NULL) {
        claim = coord_lease_claim(m->election->lease, now);
    }
    for (size_t i = 0; i < m->sink_count; i++) {
        coord_sink_put(m->sinks[i], &report, claim.leading && claim.fence == event->orphan.fence);
    }
}

/* ---------------------------------------------------------------- the queue */

static const char *keep(unsigned char **at, const char *text, size_t bytes)
{
    unsigned char *kept = *at;
    if (text == NULL) {
        return NULL;
    }
    memcpy(kept, text, bytes);
    kept[bytes] = '\0';
    *at += bytes + 1;
    return (const char *)kept;
}

static void append(struct coord_member *m, struct coord__notice *n)
{
    n->next = NULL;
    if (m->last != NULL) {
        m->last->next = n;
    } else {
        m->first = n;
    }
    m->last = n;
    m->notices++;
    m->notice_bytes += n->size;
}

static struct coord__notice *note_fleet(struct coord_member *m, const struct coord_event *event)
{
    size_t bytes = 0;
    if (event->message != NULL && coord_message_encode(event->message, COORD_FORM_MSGPACK, m->work,
                                                       sizeof m->work, &bytes) != COORD_OK) {
        bytes = 0;
    }
    const size_t size = sizeof(struct coord__notice) + bytes + event->peer.id_bytes +
                        event->orphan.instance_id_bytes + event->orphan.subscription_bytes + 3;
    struct coord__notice *n =
        m->notice_bytes + size <= COORD__MEMBER_EVENT_BYTES ? malloc(size) : NULL;
    if (n == NULL) {
        return NULL;
    }
    n->size = size;
    n->fleet = *event;
    n->fleet.message = NULL;
    if (bytes > 0) {
        memcpy(n->bytes, m->work, bytes);
        if (coord_message_decode(event->message->type, n->bytes, bytes, &n->message) ==
            COORD_FAULT_NONE) {
            n->fleet.message = &n->message;
        }
    }
    unsigned char *at = n->bytes + bytes;
    n->fleet.peer.id = keep(&at, event->peer.id, event->peer.id_bytes);
    n->fleet.orphan.instance_id =
        keep(&at, event->orphan.instance_id, event->orphan.instance_id_bytes);
    n->fleet.orphan.subscription =
        keep(&at, event->orphan.subscription, event->orphan.subscription_bytes);
    append(m, n);
    return n;
}

static struct coord__notice *take(struct coord_member *m)
{
    struct coord__notice *n = m->first;
    m->first = n->next;
    m->last = m->first == NULL ? NULL : m->last;
    m->notices--;
    m->notice_bytes -= n->size;
    return n;
}

/* Of leaving nothing is lost. Where the host was not told of a notice yet, the newer one counts. */
static struct coord__notice *note_leaving(struct coord_member *m, enum coord_agent_event_kind kind)
{
    if (kind == COORD_AGENT_EVENT_LEAVING && m->last != NULL && m->last->event.kind == kind) {
        return m->last;
    }
    struct coord__notice *n = calloc(1, sizeof *n);
    if (n != NULL) {
        n->size = sizeof *n;
        append(m, n);
    }
    return n;
}

void coord__member_note(struct coord_member *member, const struct coord_agent_event *event,
                        coord_ms now)
{
    struct coord_member *m = member;
    const bool fleet = event->kind == COORD_AGENT_EVENT_FLEET;
    if (event->kind == COORD_AGENT_EVENT_LEFT) {
        m->left = true;
        m->left_event = *event;
    } else if (event->kind == COORD_AGENT_EVENT_STAYING) {
        m->left = false;
    } else if (event->kind == COORD_AGENT_EVENT_DRAIN && m->fn == NULL && !m->explicit_drain) {
        coord_agent_drained(m->agent, now); /* nobody who would have to end anything */
        coord__member_touch(m);
    }
    if (fleet) {
        feed_sinks(m, event->fleet, now);
    }
    if (m->fn == NULL) {
        return;
    }
    struct coord__notice *n = NULL;
    if (!fleet) {
        n = note_leaving(m, event->kind);
    } else if (m->notices < COORD__MEMBER_EVENTS) {
        n = note_fleet(m, event->fleet);
    }
    if (n == NULL) {
        m->lost_events++;
        return;
    }
    n->event = *event;
    n->event.fleet = fleet ? &n->fleet : NULL;
}

void coord__member_forget_notices(struct coord_member *member)
{
    while (member->first != NULL) {
        free(take(member));
    }
}

/* ---------------------------------------------------------------- telling */

bool coord__member_tells(const struct coord__rider *rider)
{
    const struct coord_member *m = (const struct coord_member *)(const void *)rider;
    return m->first != NULL;
}

/* The return from DRAIN says that all work has ended, unless a call is to say it. */
static void after_telling(struct coord_member *m, const struct coord_agent_event *event)
{
    if (event->kind == COORD_AGENT_EVENT_DRAIN && !m->explicit_drain &&
        coord_agent_phase(m->agent) == COORD_AGENT_DRAINING) {
        coord_agent_drained(m->agent, coord_clock_now());
        coord__member_touch(m);
    }
}

void coord__member_tell(struct coord__rider *rider)
{
    struct coord_member *m = coord__member_of(rider);
    struct coord_runtime *runtime = rider->runtime;
    struct coord__notice *n = take(m);
    coord__leave(runtime);
    m->fn(m->ctx, m, &n->event);
    coord__enter_again(runtime);
    if (!coord__forked(runtime) && !m->rider.closed) {
        after_telling(m, &n->event);
    }
    free(n);
}
