/* SPDX-License-Identifier: MIT
 * tests/unit/test_agent_bus.c - agents that drive brokers of their own.
 */
#include "brokers/memory.h"
#include "coord/agent.h"
#include "tests/support/support.h"

struct pair {
    struct coord_broker *broker;
    struct coord_agent *agent;
    bool knows; /* the other */
};

static void open_pair(struct pair *p, const char *id, coord_ms now)
{
    static struct coord_uri uri;
    struct coord_broker_config broker = COORD_BROKER_CONFIG_INIT;
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    assert_int_equal(coord_uri_parse("memory:agents", &uri, NULL), COORD_OK);
    broker.uri = &uri;
    assert_int_equal(coord_broker_new(coord_memory_broker(), &broker, now, &p->broker, NULL),
                     COORD_OK);
    config.coordinator.instance_id = id;
    config.coordinator.incarnation[0] = (unsigned char)id[0];
    config.bus = coord_agent_bus_of(p->broker, false);
    assert_int_equal(coord_agent_new(&config, now, &p->agent, NULL), COORD_OK);
    assert_int_equal(coord_agent_subscribe(p->agent, p->broker, now, NULL), COORD_OK);
    p->knows = false;
}

static void step(struct pair *p, coord_ms now)
{
    struct coord_agent_event event;
    while (coord_agent_step(p->agent, now, (int64_t)now * 1000, &event)) {
        p->knows = p->knows || (event.kind == COORD_AGENT_EVENT_FLEET &&
                                event.fleet->kind == COORD_EVENT_PEER_APPEARED);
    }
}

static void test_agent_bus__two_hear_each_other(void **state)
{
    struct pair a;
    struct pair b;
    struct coord_descriptor descriptors[2 * COORD_DESCRIPTORS_MAX];
    coord_ms now = 1000;
    (void)state;
    open_pair(&a, "a", now);
    open_pair(&b, "b", now);
    for (unsigned i = 0; i < 100 && !(a.knows && b.knows); i++) {
        step(&a, now);
        step(&b, now);
        now += 100;
        assert_true(coord_agent_deadline(a.agent) != COORD_NEVER);
    }
    assert_true(a.knows);
    assert_true(b.knows);
    assert_true(coord_agent_descriptors(a.agent, descriptors) <= COORD_DESCRIPTORS_MAX);
    coord_agent_free(a.agent);
    coord_agent_free(b.agent);
    coord_broker_free(a.broker, false);
    coord_broker_free(b.broker, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_bus__two_hear_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
