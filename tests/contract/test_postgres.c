/* SPDX-License-Identifier: MIT
 * tests/contract/test_postgres.c - the one contract of all electors, over a PostgreSQL on a socket.
 */
#include "tests/contract/postgres.h"

static void start(void)
{
    start_with(NULL);
}

static const char *uri(void)
{
    return server.uri;
}

int main(void)
{
    return keep_contract(start, stop_server, uri);
}
