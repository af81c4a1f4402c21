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
#include "coord/check.h"

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

/**
 * Look at a server as `coordctl doctor --bus` does; changes nothing. It blocks.
 *
 * @param uri     of PostgreSQL; without `coord.` options.
 * @param pooler  coord.pooler=session was asked for.
 * @param wall    gives us since 1970 by this host's clock, to compare the server's with.
 * @param out     room for COORD_CHECKS_MAX.
 * @return        how many were written; 0: it cannot be asked, or there is no memory.
 * Thread: any.   Blocks: up to 10 s to connect and 10 s a question.
 * Allocates: libpq's buffers.   Calls back: wall.
 * Source: docs/buses.md#doctor, tests/integration/test_cli_doctor_bus.c.
 */
COORD_API size_t coord_postgres_bus_doctor(const char *uri, bool pooler, uint64_t (*wall)(void),
                                           struct coord_check *out);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_POSTGRES_H */
