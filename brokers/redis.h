/* SPDX-License-Identifier: MIT
 * brokers/redis.h - a bus over the channels of a Redis or Valkey server.
 *
 *   redis://, rediss://, redis+unix:///PATH, redis+sentinel://   as for elections
 *
 * A topic is the channel of that name, a message the bytes that were published: whoever else speaks
 * Redis takes part. All brokers and electors of one loop share two connections to a server: one
 * publishes, one listens.
 */
#ifndef COORD_BROKER_REDIS_H
#define COORD_BROKER_REDIS_H

#include "coord/broker.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The broker's table. Its options, for TLS: coord.tls_ca, .tls_cert and .tls_key (files).
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md#redis, tests/contract/test_broker_redis.c, tests/fault/test_broker_redis.c.
 */
COORD_API const struct coord_broker_ops *coord_redis_broker(void);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_REDIS_H */
