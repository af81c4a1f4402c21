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

/* ---- a bus that breaks between two looks ---- */

struct paper_bus {
    bool up;
    uint64_t ups;
    unsigned char bytes[COORD_MESSAGE_MAX];
    size_t count; /* 0: nothing waits */
};

static enum coord_err paper_publish(void *ctx, const char *topic, const void *bytes, size_t count,
                                    coord_ms now)
{
    (void)ctx;
    (void)topic;
    (void)bytes;
    (void)count;
    (void)now;
    return COORD_OK;
}

static bool paper_next(void *ctx, struct coord_broker_message *out)
{
    struct paper_bus *bus = ctx;
    *out = (struct coord_broker_message){
        .topic = COORD_TOPIC_PREFIX ".heartbeat", .bytes = bus->bytes, .count = bus->count};
    bus->count = 0;
    return out->count > 0;
}

static bool paper_connected(void *ctx)
{
    return ((struct paper_bus *)ctx)->up;
}

static uint64_t paper_ups(void *ctx)
{
    return ((struct paper_bus *)ctx)->ups;
}

static struct coord_agent *observe(struct paper_bus *bus, coord_ms now)
{
    struct coord_agent_config config = COORD_AGENT_CONFIG_INIT;
    struct coord_agent *agent = NULL;
    config.role = COORD_AGENT_OBSERVER;
    config.coordinator.instance_id = "o";
    config.coordinator.timeout = 15000;
    config.bus = (struct coord_agent_bus){.publish = paper_publish,
                                          .next = paper_next,
                                          .connected = paper_connected,
                                          .ups = paper_ups,
                                          .ctx = bus};
    assert_int_equal(coord_agent_new(&config, now, &agent, NULL), COORD_OK);
    return agent;
}

/* When was a peer told to be silent that was heard at 1000 and never again? 0: not until 60 s. */
static coord_ms silent_at(struct paper_bus *bus, coord_ms breaks_at)
{
    struct coord_message beat = {
        .type = COORD_MESSAGE_HEARTBEAT, .seq = 1, .at_us = INT64_C(1772366400000000)};
    beat.instance_id = coord_text("w", 1);
    beat.incarnation = coord_text("i", 1);
    assert_int_equal(
        coord_message_encode(&beat, COORD_FORM_MSGPACK, bus->bytes, sizeof bus->bytes, &bus->count),
        COORD_OK);
    struct coord_agent *agent = observe(bus, 1000);
    coord_ms silent = 0;
    for (coord_ms now = 1000; now < 60000 && silent == 0; now += 500) {
        struct coord_agent_event event;
        bus->ups += now == breaks_at ? 1 : 0;
        while (coord_agent_step(agent, now, (int64_t)now * 1000, &event)) {
            if (event.kind == COORD_AGENT_EVENT_FLEET &&
                event.fleet->kind == COORD_EVENT_PEER_SILENT) {
                silent = now;
            }
        }
    }
    coord_agent_free(agent);
    return silent;
}

static void test_agent_bus__an_observer_starts_anew_when_the_bus_came_up_again(void **state)
{
    struct paper_bus bus = {.up = true, .ups = 1};
    (void)state;
    assert_int_equal(silent_at(&bus, COORD_NEVER), 16000);
    assert_int_equal(silent_at(&bus, 9000), 24000); /* down, and up before it was looked at */
    bus.up = false;
    assert_int_equal(silent_at(&bus, COORD_NEVER), 0); /* nobody is judged meanwhile */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_bus__two_hear_each_other),
        cmocka_unit_test(test_agent_bus__an_observer_starts_anew_when_the_bus_came_up_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
