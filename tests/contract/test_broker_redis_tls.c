/* SPDX-License-Identifier: MIT
 * tests/contract/test_broker_redis_tls.c - the contract of all buses over a redis-server that is
 * reached over TLS.
 */
#include "brokers/redis.h"
#include "tests/contract/broker_suite.h"
#include "tests/contract/redis_tls.h"

int main(void)
{
    const struct bus_store store = {
        .name = "redis", .ops = coord_redis_broker, .start = start, .stop = stop, .uri = uri};
    return bus_suite_run(&store);
}
