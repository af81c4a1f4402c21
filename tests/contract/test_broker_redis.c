/* SPDX-License-Identifier: MIT
 * tests/contract/test_broker_redis.c - the contract of all buses over a redis-server that the test
 * starts.
 */
#include "brokers/redis.h"
#include "tests/contract/broker_suite.h"
#include "tests/support/redis_server.h"

static struct redis_server server;

static void start(void)
{
    redis_server_start(&server, NULL);
}

static void stop(void)
{
    redis_server_stop(&server);
}

static const char *uri(void)
{
    return server.uri;
}

int main(void)
{
    const struct bus_store store = {
        .name = "redis", .ops = coord_redis_broker, .start = start, .stop = stop, .uri = uri};
    return bus_suite_run(&store);
}
