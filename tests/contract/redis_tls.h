/* SPDX-License-Identifier: MIT
 * tests/contract/redis_tls.h - a redis-server that is reached over TLS, for the contracts.
 */
#ifndef COORD_TESTS_CONTRACT_REDIS_TLS_H
#define COORD_TESTS_CONTRACT_REDIS_TLS_H

#include "tests/support/redis_tls.h"
#include "tests/support/support.h"

static struct redis_tls tls;

static inline void start(void)
{
#ifndef COORD_HAVE_OPENSSL
    skip_because("this build has no TLS");
#endif
    redis_tls_start(&tls);
}

static inline void stop(void)
{
    redis_tls_stop(&tls);
}

static inline const char *uri(void)
{
    return tls.uri;
}

#endif /* COORD_TESTS_CONTRACT_REDIS_TLS_H */
