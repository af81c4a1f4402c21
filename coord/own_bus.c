/* SPDX-License-Identifier: MIT
 * coord/own_bus.c - a broker whose other side is the application.
 */
#include "coord/own_bus.h"

#include "coord/broker_inside.h"

#include <stdlib.h>
#include <string.h>

enum {
    READY = 64 /* messages that the application may take; the rest waits, and not for ever */
};

struct own_bus {
    struct coord__queue ready;
    struct coord__waiting *taken;
    bool full; /* some were left in the outbox */
};

static const struct coord_broker_ops ops;

static struct own_bus *of(struct coord_broker *broker)
{
    COORD_ASSERT(broker->ops == &ops);
    return coord_broker_state(broker);
}

static enum coord_err init(struct coord_broker *broker, const struct coord_broker_config *config,
                           coord_ms now, struct coord_error *error)
{
    struct own_bus *own = coord_broker_state(broker);
    if (config->uri != NULL) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "an application's own bus has no URI: open it without");
    }
    coord__queue_init(&own->ready);
    coord_broker_report_up(broker, now);
    return COORD_OK;
}

static void fini(struct coord_broker *broker, bool forked)
{
    struct own_bus *own = of(broker);
    (void)forked;
    coord__queue_empty(&own->ready);
    free(own->taken);
}

static enum coord_err publish(struct coord_broker *broker, const struct coord_broker_message *what,
                              coord_ms now, struct coord_error *error)
{
    struct own_bus *own = of(broker);
    own->full = own->ready.messages >= READY;
    if (own->full || !broker->status.up) {
        return COORD_E_BUSY;
    }
    struct coord__waiting *w =
        coord__queue_copy(what->topic, strlen(what->topic), what->bytes, what->count, now);
    if (w == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    coord__queue_put(&own->ready, w);
    return COORD_OK;
}

static void resubscribe(struct coord_broker *broker, coord_ms now)
{
    (void)broker;
    (void)now;
}

static void process(struct coord_broker *broker, coord_ms now)
{
    (void)broker;
    (void)now;
}

static size_t descriptors(struct coord_broker *broker, struct coord_descriptor *out)
{
    (void)broker;
    (void)out;
    return 0;
}

static coord_ms deadline(struct coord_broker *broker)
{
    const struct own_bus *own = of(broker);
    return own->full && own->ready.messages < READY ? 0 : COORD_NEVER;
}

static bool unwritten(struct coord_broker *broker)
{
    return of(broker)->ready.messages > 0;
}

static const struct coord_broker_ops ops = {.size = sizeof ops,
                                            .abi = COORD_BROKER_ABI,
                                            .name = "own",
                                            .state_bytes = sizeof(struct own_bus),
                                            .flags = COORD_BROKER_BASIC_PUBSUB,
                                            .init = init,
                                            .fini = fini,
                                            .publish = publish,
                                            .resubscribe = resubscribe,
                                            .process = process,
                                            .descriptors = descriptors,
                                            .deadline = deadline,
                                            .unwritten = unwritten};

const struct coord_broker_ops *coord_own_bus(void)
{
    return &ops;
}

bool coord_own_bus_has_next(struct coord_broker *broker)
{
    return of(broker)->ready.messages > 0;
}

bool coord_own_bus_next(struct coord_broker *broker, struct coord_broker_message *out)
{
    struct own_bus *own = of(broker);
    free(own->taken);
    own->taken = coord__queue_take(&own->ready);
    if (own->taken == NULL) {
        return false;
    }
    *out = coord__queue_message(own->taken);
    return true;
}
