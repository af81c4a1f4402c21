/* SPDX-License-Identifier: MIT
 * tests/contract/test_postgres_tcp.c - the one contract of all electors, over PostgreSQL on a
 * loopback port.
 */
#include "tests/contract/postgres.h"

static void start(void)
{
    static const char *const options[] = {"port=auto", NULL};
    start_with(options);
}

static const char *uri(void)
{
    return server.tcp_uri;
}

int main(void)
{
    return keep_contract(start, stop_server, uri);
}
