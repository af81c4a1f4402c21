/* SPDX-License-Identifier: MIT
 * runtime/member_bus.c - the bus that a member talks over: driven beside it, and perhaps gone
 * before it.
 */
#include "runtime/member_inside.h"

/* A bus rides as well: that is its first member. */
static struct coord__rider *rider_of(const struct coord_member *m)
{
    return (struct coord__rider *)(void *)m->bus;
}

static struct coord_broker *broker_of(const struct coord_member *m)
{
    return m->bus == NULL || rider_of(m)->closed ? NULL : coord_bus_broker(m->bus);
}

static enum coord_err publish(void *ctx, const char *topic, const void *bytes, size_t count,
                              coord_ms now)
{
    const struct coord_member *m = ctx;
    struct coord_broker *broker = broker_of(m);
    if (broker == NULL) {
        return COORD_E_CLOSED;
    }
    coord__rider_touch(rider_of(m));
    return coord_broker_publish(broker, topic, bytes, count, now, NULL);
}

static bool next(void *ctx, struct coord_broker_message *out)
{
    struct coord_broker *broker = broker_of(ctx);
    return broker != NULL && coord_broker_next_message(broker, out);
}

static bool connected(void *ctx)
{
    return coord__member_bus_up(ctx);
}

bool coord__member_bus_up(const struct coord_member *member)
{
    struct coord_broker_status status = {.up = false};
    struct coord_broker *broker = broker_of(member);
    if (broker != NULL) {
        coord_broker_get_status(broker, &status);
    }
    return status.up;
}

static uint64_t ups(void *ctx)
{
    struct coord_broker_status status = {.ups = 0};
    struct coord_broker *broker = broker_of(ctx);
    if (broker != NULL) {
        coord_broker_get_status(broker, &status);
    }
    return status.ups;
}

struct coord_agent_bus coord__member_bus(struct coord_member *member)
{
    return (struct coord_agent_bus){
        .publish = publish, .next = next, .connected = connected, .ups = ups, .ctx = member};
}

enum coord_err coord__member_join_bus(struct coord_member *member, coord_ms now,
                                      struct coord_error *error)
{
    coord__rider_pin(rider_of(member));
    coord__rider_touch(rider_of(member));
    return coord_agent_subscribe(member->agent, broker_of(member), now, error);
}

void coord__member_leave_bus(struct coord_member *member, bool forked)
{
    struct coord__rider *rider = rider_of(member);
    if (member->bus == NULL) {
        return;
    }
    struct coord_broker *broker = forked ? NULL : broker_of(member);
    for (unsigned type = 0; broker != NULL && type < COORD_MESSAGE_TYPES; type++) {
        const char *topic = coord_agent_topic(member->agent, (enum coord_message_type)type);
        if (topic != NULL) {
            coord_broker_unsubscribe(broker, topic, coord_clock_now());
        }
    }
    member->bus = NULL;
    if (!rider->closed) {
        coord__rider_touch(rider);
    }
    coord__rider_unpin(rider);
}
