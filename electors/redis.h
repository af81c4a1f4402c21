/* SPDX-License-Identifier: MIT
 * electors/redis.h - election through a Redis or Valkey server: a lease that runs out there.
 *
 *   redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]     also rediss://, over TLS
 *   redis+unix:///PATH[?db=N]
 *   redis+sentinel://HOST[:PORT],HOST/MASTER[/DB]  the primary that Sentinel names
 *
 * All elections of one loop share one connection to a server, and one that hears of resignations.
 * docs/redis.md has the keys, the rights and what is promised when a server loses data.
 */
#ifndef COORD_ELECTOR_REDIS_H
#define COORD_ELECTOR_REDIS_H

#include "coord/elector.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The backend's table. Its options besides coord.ttl, .grace and .priority: coord.prefix (of its
 * keys; `coord`); for TLS coord.tls_ca, .tls_cert and .tls_key (files); and for the login at
 * Sentinels coord.sentinel_user and .sentinel_password_file.
 *
 * @return  static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/redis.md, tests/contract/test_redis.c, tests/fault/test_redis.c.
 */
COORD_API const struct coord_backend_ops *coord_redis_elector(void);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTOR_REDIS_H */
