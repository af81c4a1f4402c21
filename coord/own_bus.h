/* SPDX-License-Identifier: MIT
 * coord/own_bus.h - a broker for a bus that the application has already: it takes out what is to
 * be published, and puts in what its bus brings.
 *
 * Only the topics matter: their names are strings, the messages are bytes, everybody who is
 * subscribed must get each message, the publisher included, and nobody an old one.
 *
 * Where a function does not say otherwise: Blocks: never. Allocates: never. Calls back: never.
 */
#ifndef COORD_OWN_BUS_H
#define COORD_OWN_BUS_H

#include "coord/broker.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The broker's table, for coord_broker_new() without a URI. It is up from the beginning; an
 * application that knows better says so with coord_broker_report_down() and _up(). What comes in
 * is put in with coord_broker_deliver().
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md#own, tests/unit/test_broker.c, examples/own_bus.c.
 */
COORD_API const struct coord_broker_ops *coord_own_bus(void);

/**
 * Take the oldest message that is to be published, after coord_broker_process().
 *
 * @param broker  of coord_own_bus().
 * @param out     written on success; borrowed until the next call of this, or the broker's end.
 * @return        false: there is none.
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md#own, tests/unit/test_broker.c.
 */
COORD_API bool coord_own_bus_next(struct coord_broker *broker, struct coord_broker_message *out);

/** Is there one to be taken? Thread: confined. */
COORD_API bool coord_own_bus_has_next(struct coord_broker *broker);

#ifdef __cplusplus
}
#endif
#endif /* COORD_OWN_BUS_H */
