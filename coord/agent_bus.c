/* SPDX-License-Identifier: MIT
 * coord/agent_bus.c - a broker as an agent's bus.
 */
#include "coord/agent.h"

static enum coord_err publish(void *ctx, const char *topic, const void *bytes, size_t count,
                              coord_ms now)
{
    return coord_broker_publish(ctx, topic, bytes, count, now, NULL);
}

static bool next(void *ctx, struct coord_broker_message *out)
{
    return coord_broker_next_message(ctx, out);
}

static bool connected(void *ctx)
{
    struct coord_broker_status status;
    coord_broker_get_status(ctx, &status);
    return status.up;
}

static uint64_t ups(void *ctx)
{
    struct coord_broker_status status;
    coord_broker_get_status(ctx, &status);
    return status.ups;
}

static void process(void *ctx, coord_ms now)
{
    coord_broker_process(ctx, now);
}

static coord_ms deadline(void *ctx)
{
    return coord_broker_deadline(ctx);
}

static size_t descriptors(void *ctx, struct coord_descriptor *out)
{
    return coord_broker_descriptors(ctx, out);
}

struct coord_agent_bus coord_agent_bus_of(struct coord_broker *broker, bool driven)
{
    struct coord_agent_bus bus = {
        .publish = publish, .next = next, .connected = connected, .ups = ups, .ctx = broker};
    if (!driven) {
        bus.process = process;
        bus.deadline = deadline;
        bus.descriptors = descriptors;
    }
    return bus;
}

enum coord_err coord_agent_subscribe(const struct coord_agent *agent, struct coord_broker *broker,
                                     coord_ms now, struct coord_error *error)
{
    for (unsigned type = 0; type < COORD_MESSAGE_TYPES; type++) {
        const char *topic = coord_agent_topic(agent, (enum coord_message_type)type);
        enum coord_err rc =
            topic == NULL ? COORD_OK : coord_broker_subscribe(broker, topic, now, error);
        if (rc != COORD_OK) {
            return rc;
        }
    }
    return COORD_OK;
}
