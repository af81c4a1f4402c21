/* SPDX-License-Identifier: MIT
 * brokers/memory.h - a bus within one process: for programs that run alone, and for tests.
 *
 *   memory:       alone: hears itself and nobody else
 *   memory:NAME   reaches every other broker of this process that says the same NAME
 *
 * Brokers on different threads may share a name. What one publishes is in the others' inboxes at
 * once, within their limits: nobody waits for anybody.
 */
#ifndef COORD_BROKER_MEMORY_H
#define COORD_BROKER_MEMORY_H

#include "coord/broker.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The broker's table. It has no options.
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md, tests/contract/test_broker_memory.c.
 */
COORD_API const struct coord_broker_ops *coord_memory_broker(void);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_MEMORY_H */
