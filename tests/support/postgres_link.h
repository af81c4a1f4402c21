/* SPDX-License-Identifier: MIT
 * tests/support/postgres_link.h - a way to the group's PostgreSQL that can be spoiled.
 */
#ifndef TEST_POSTGRES_LINK_H
#define TEST_POSTGRES_LINK_H

#include "tests/support/postgres_server.h"
#include "tests/support/proxy.h"

struct link {
    struct proxy proxy;
    char folder[64];
    char uri[POSTGRES_URI];
};

/** Stand before the server's socket. */
void link_open(struct link *link, const struct postgres_server *server);
void link_close(struct link *link);

#endif /* TEST_POSTGRES_LINK_H */
