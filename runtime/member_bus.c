/* SPDX-License-Identifier: MIT
 * runtime/member_bus.c - an application's own bus: what comes and goes waits here, so that its
 * functions are called without a lock.
 */
#include "runtime/member_inside.h"

#include <stdlib.h>
#include <string.h>

static bool push(struct coord__parcels *list, const char *topic, const void *bytes, size_t count)
{
    struct coord__parcel *parcel = malloc(sizeof *parcel + count);
    if (parcel == NULL) {
        return false;
    }
    parcel->next = NULL;
    parcel->topic = topic;
    parcel->count = count;
    if (count > 0) {
        memcpy(parcel->bytes, bytes, count);
    }
    if (list->last != NULL) {
        list->last->next = parcel;
    } else {
        list->first = parcel;
    }
    list->last = parcel;
    list->count++;
    return true;
}

static struct coord__parcel *pop(struct coord__parcels *list)
{
    struct coord__parcel *parcel = list->first;
    if (parcel != NULL) {
        list->first = parcel->next;
        list->last = list->first == NULL ? NULL : list->last;
        list->count--;
    }
    return parcel;
}

/* ---------------------------------------------------------------- the agent's side */

/* The topic is the agent's own text, which lives as long as it. */
static enum coord_err publish(void *ctx, const char *topic, const void *bytes, size_t count,
                              coord_ms now)
{
    struct coord_member *m = ctx;
    (void)now;
    if (m->outbox.count >= COORD__MEMBER_PARCELS) {
        return COORD_E_LIMIT;
    }
    return push(&m->outbox, topic, bytes, count) ? COORD_OK : COORD_E_NO_MEMORY;
}

static bool next(void *ctx, struct coord_broker_message *out)
{
    struct coord_member *m = ctx;
    free(m->read);
    m->read = pop(&m->inbox);
    if (m->read == NULL) {
        return false;
    }
    *out = (struct coord_broker_message){
        .topic = m->read->topic, .bytes = m->read->bytes, .count = m->read->count};
    return true;
}

struct coord_agent_bus coord__member_own_bus(struct coord_member *member)
{
    return (struct coord_agent_bus){.publish = publish, .next = next, .ctx = member};
}

/* ---------------------------------------------------------------- the application's side */

bool coord__member_flushes(const struct coord__rider *rider)
{
    const struct coord_member *m = (const struct coord_member *)(const void *)rider;
    return m->outbox.first != NULL;
}

void coord__member_flush(struct coord__rider *rider)
{
    struct coord_member *m = coord__member_of(rider);
    struct coord_runtime *runtime = rider->runtime;
    struct coord__parcel *parcel;
    while (!m->rider.closed && (parcel = pop(&m->outbox)) != NULL) {
        char topic[COORD_TOPIC_MAX];
        memcpy(topic, parcel->topic, strlen(parcel->topic) + 1); /* it may be closed meanwhile */
        coord__leave(runtime);
        const enum coord_err rc = m->publish(m->publish_ctx, topic, parcel->bytes, parcel->count);
        free(parcel);
        coord__enter_again(runtime);
        if (coord__forked(runtime)) {
            return;
        }
        if (rc != COORD_OK) {
            coord_log_write(&m->log, coord_clock_now(), COORD_LOG_DEBUG, rc, m->id,
                            "the application's bus did not take a message");
        }
    }
}

enum coord_err coord_member_take(struct coord_member *member, const char *topic, const void *bytes,
                                 size_t count)
{
    enum coord_err rc = COORD_OK;
    if (!coord__member_enter(member)) {
        return COORD_E_FORKED;
    }
    unsigned type = 0;
    while (type < COORD_MESSAGE_TYPES &&
           (member->topic[type] == NULL || strcmp(member->topic[type], topic) != 0)) {
        type++;
    }
    if (type == COORD_MESSAGE_TYPES || count > COORD_MESSAGE_MAX) {
        rc = COORD_OK; /* nothing of ours, or nothing that anybody could read */
    } else if (member->inbox.count >= COORD__MEMBER_PARCELS) {
        rc = COORD_E_LIMIT;
    } else if (!push(&member->inbox, member->topic[type], bytes, count)) {
        rc = COORD_E_NO_MEMORY;
    } else {
        coord__rider_touch(&member->rider);
    }
    coord__leave(member->rider.runtime);
    return rc;
}

const char *coord_member_topic(const struct coord_member *member, enum coord_message_type type)
{
    return member->topic[type];
}

void coord__member_forget_parcels(struct coord_member *member)
{
    struct coord__parcel *parcel;
    while ((parcel = pop(&member->inbox)) != NULL || (parcel = pop(&member->outbox)) != NULL) {
        free(parcel);
    }
    free(member->read);
    member->read = NULL;
}
