/* SPDX-License-Identifier: MIT
 * electors/postgres_key.c - the advisory lock that belongs to a name.
 */
#include "electors/postgres.h"

#include <openssl/evp.h>

uint64_t coord_postgres_key(const void *name, size_t bytes)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    /* It fails only where libcrypto has no SHA-256, and then no TLS either. */
    const int ok = EVP_Digest(name, bytes, digest, &length, EVP_sha256(), NULL);
    COORD_ASSERT(ok == 1);
    COORD_ASSERT(length >= 8);
    uint64_t key = 0;
    for (unsigned i = 0; i < 8; i++) {
        key = key << 8 | digest[i];
    }
    return key & INT64_MAX;
}
