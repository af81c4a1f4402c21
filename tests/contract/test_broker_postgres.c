/* SPDX-License-Identifier: MIT
 * tests/contract/test_broker_postgres.c - the contract of all buses over a PostgreSQL that the test
 * starts.
 */
#include "brokers/postgres.h"
#include "tests/contract/broker_suite.h"
#include "tests/support/postgres_server.h"

static struct postgres_server server;

static void start(void)
{
    postgres_server_start(&server, NULL);
}

static void stop(void)
{
    postgres_server_stop(&server);
}

static const char *uri(void)
{
    return server.uri;
}

int main(void)
{
    const struct bus_store store = {
        .name = "postgres", .ops = coord_postgres_broker, .start = start, .stop = stop, .uri = uri};
    return bus_suite_run(&store);
}
