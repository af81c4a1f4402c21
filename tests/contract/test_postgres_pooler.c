/* SPDX-License-Identifier: MIT
 * tests/contract/test_postgres_pooler.c - the one contract of all electors, through pgbouncer in
 * session mode.
 */
#include "tests/contract/postgres.h"
#include "tests/support/pgbouncer.h"

static struct pgbouncer pooler;
static char pooler_uri[POSTGRES_URI + 32];

static void start(void)
{
    start_with(NULL);
    pgbouncer_start(&pooler, &server, "session", 60, "");
    snprintf(pooler_uri, sizeof pooler_uri, "%s&coord.pooler=session", pooler.uri);
}

static void stop(void)
{
    pgbouncer_stop(&pooler);
    stop_server();
}

static const char *uri(void)
{
    return pooler_uri;
}

int main(void)
{
    return keep_contract(start, stop, uri);
}
