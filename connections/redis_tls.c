/* SPDX-License-Identifier: MIT
 * connections/redis_tls.c - TLS over a socket of ours, or the word that this build has none.
 */
#include "connections/redis_link.h"

#include <errno.h>

enum coord_err coord__redis_tls_check(const struct coord__redis_target *target,
                                      struct coord_error *error)
{
    (void)target;
    return coord_error_set(error, COORD_E_NO_TLS,
                           "this build has no TLS, which rediss:// needs: build it with OpenSSL, "
                           "or go through stunnel and redis+unix://");
}

struct coord__redis_tls *coord__redis_tls_new(const struct coord__redis_target *target,
                                              const char *host, struct coord_error *error)
{
    (void)host;
    COORD_IGNORE(coord__redis_tls_check(target, error), "it fails by design");
    return NULL;
}

void coord__redis_tls_free(struct coord__redis_tls *tls)
{
    (void)tls;
}

enum coord__redis_io coord__redis_tls_handshake(struct coord__redis_tls *tls, int fd,
                                                struct coord_error *error)
{
    (void)tls;
    (void)fd;
    (void)error;
    return COORD__REDIS_IO_BROKEN;
}

long coord__redis_tls_send(struct coord__redis_tls *tls, int fd, const char *bytes, size_t count)
{
    (void)tls;
    (void)fd;
    (void)bytes;
    (void)count;
    errno = EPROTO;
    return -1;
}

long coord__redis_tls_recv(struct coord__redis_tls *tls, int fd, char *bytes, size_t room)
{
    (void)tls;
    (void)fd;
    (void)bytes;
    (void)room;
    errno = EPROTO;
    return -1;
}

bool coord__redis_tls_wants_write(const struct coord__redis_tls *tls)
{
    (void)tls;
    return false;
}
