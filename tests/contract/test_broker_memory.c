/* SPDX-License-Identifier: MIT
 * tests/contract/test_broker_memory.c - the contract of all buses over memory.
 */
#include "brokers/memory.h"
#include "tests/contract/broker_suite.h"

static const char *uri(void)
{
    return "memory:contract";
}

int main(void)
{
    const struct bus_store store = {.name = "memory", .ops = coord_memory_broker, .uri = uri};
    return bus_suite_run(&store);
}
