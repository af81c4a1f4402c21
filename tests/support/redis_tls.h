/* SPDX-License-Identifier: MIT
 * tests/support/redis_tls.h - a private redis-server with a TLS port, and its certificate.
 */
#ifndef TEST_REDIS_TLS_H
#define TEST_REDIS_TLS_H

#include "tests/support/redis_server.h"

struct redis_tls {
    struct redis_server server;
    char folder[64];
    char cert[96]; /* for 127.0.0.1; it is its own authority */
    char key[96];
    char uri[256]; /* rediss://... */
};

/** Start one; a certificate of the client's is taken, and not asked for. */
void redis_tls_start(struct redis_tls *tls);
void redis_tls_stop(struct redis_tls *tls);

/** Make a certificate for 127.0.0.1, and its key. */
void redis_tls_certify(const char *cert, const char *key);

/** Run the program openssl; fails the test where it fails. */
void redis_tls_openssl(const char *const *argv);

#endif /* TEST_REDIS_TLS_H */
