/* SPDX-License-Identifier: MIT
 * brokers/postgres.h - a bus over LISTEN and NOTIFY of a PostgreSQL server.
 *
 *   postgresql://, postgres://   as libpq has it
 *
 * A topic is a channel, coord_bus_ and 32 hex of its SHA-256; a message is one transaction of
 * notifications of at most 8,000 bytes, in base64. Nothing has to be created in the database. All
 * brokers of one loop share one session.
 */
#ifndef COORD_BROKER_POSTGRES_H
#define COORD_BROKER_POSTGRES_H

#include "coord/broker.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The broker's table. Its option: coord.pooler=session, as for elections.
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md#postgresql, tests/contract/test_broker_postgres.c,
 *         tests/fault/test_broker_postgres.c.
 */
COORD_API const struct coord_broker_ops *coord_postgres_broker(void);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_POSTGRES_H */
