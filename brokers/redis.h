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
#include "coord/check.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The broker's table. Its options, for TLS: coord.tls_ca, .tls_cert and .tls_key (files); for the
 * login at Sentinels: coord.sentinel_user and .sentinel_password_file.
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md#redis, tests/contract/test_broker_redis.c, tests/fault/test_broker_redis.c.
 */
COORD_API const struct coord_broker_ops *coord_redis_broker(void);

/** What the doctor is told about who asks. */
struct coord_redis_bus_doctor_config {
    const struct coord_uri *uri; /* borrowed; the options of TLS count */
    const char *prefix;          /* of the topics; it publishes to PREFIX.doctor */
    coord_ms (*now)(void);       /* ms of a clock that never goes back */
    uint64_t (*wall)(void);      /* us since 1970 by this host's clock */
};

/**
 * Look at a server as `coordctl doctor --bus` does; changes nothing. It blocks.
 *
 * @param config  borrowed for the call.
 * @param out     room for COORD_CHECKS_MAX; a server that cannot be asked is one FAIL, too.
 * @return        how many were written; 0: out of memory, or the URI cannot be read.
 * Thread: any.   Blocks: up to 10 s a question, and while names are resolved.
 * Allocates: hiredis's buffers.   Calls back: config->now, config->wall.
 * Source: docs/buses.md#doctor, tests/integration/test_cli_doctor_bus.c.
 */
COORD_API size_t coord_redis_bus_doctor(const struct coord_redis_bus_doctor_config *config,
                                        struct coord_check *out);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_REDIS_H */
