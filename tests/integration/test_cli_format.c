/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_format.c - the form of the messages that coordctl sends.
 */
#include "brokers/local.h"
#include "coord/message.h"
#include "runtime/bus.h"
#include "tests/support/coordctl.h"
#include "tests/support/guard.h"
#include "tests/support/support.h"

#include <signal.h>

struct listener {
    struct scene scene;
    char uri[COORDCTL_PATH];
    struct coord_runtime *runtime;
    struct coord_bus *bus;
};

static int set_up(void **state)
{
    static const struct coord_bus_scheme schemes[] = {{"local", coord_local_broker, NULL},
                                                      {NULL, NULL, NULL}};
    static struct listener listener;
    char path[COORDCTL_PATH];
    scene_open(&listener.scene, "coord.ttl=1s");
    snprintf(listener.uri, sizeof listener.uri, "local:%s",
             scene_path(&listener.scene, "bus", path));
    assert_int_equal(coord_runtime_new(NULL, &listener.runtime, NULL), COORD_OK);
    assert_int_equal(
        coord_bus_open(listener.runtime, schemes, listener.uri, NULL, &listener.bus, NULL),
        COORD_OK);
    *state = &listener;
    return 0;
}

static int tear_down(void **state)
{
    struct listener *listener = *state;
    coord_runtime_free(listener->runtime);
    scene_close(&listener->scene);
    return 0;
}

static void hear(struct listener *listener, enum coord_message_type type)
{
    char topic[COORD_TOPIC_MAX];
    assert_int_equal(coord_topic(NULL, type, topic), COORD_OK);
    assert_int_equal(coord_bus_subscribe(listener->bus, topic, NULL), COORD_OK);
    assert_int_equal(coord_bus_await_up(listener->bus, GUARD_MS, NULL), COORD_OK);
}

static unsigned char first_byte(struct listener *listener)
{
    struct coord_broker_message message;
    assert_int_equal(coord_bus_next(listener->bus, GUARD_MS, &message), COORD_OK);
    assert_true(message.count > 0);
    return *(const unsigned char *)message.bytes;
}

static void test_cli_format__a_notice_is_json_where_that_is_asked_for(void **state)
{
    struct listener *listener = *state;
    char out[COORDCTL_TEXT];
    const char *const as_json[] = {"announce", "--bus",    listener->uri, "--id", "w-1",
                                   "--intent", "graceful", "--format",    "json", NULL};
    const char *const as_it_is[] = {"announce", "--bus",    listener->uri, "--id",
                                    "w-1",      "--intent", "graceful",    NULL};
    hear(listener, COORD_MESSAGE_SHUTDOWN);
    assert_int_equal(coordctl_call(&listener->scene, out, as_json), 0);
    assert_int_equal(first_byte(listener), '{');
    assert_int_equal(coordctl_call(&listener->scene, out, as_it_is), 0);
    assert_int_equal(first_byte(listener) & 0xf0, 0x80); /* a map of msgpack */
}

static void test_cli_format__an_agent_speaks_json_where_that_is_asked_for(void **state)
{
    struct listener *listener = *state;
    struct coordctl agent;
    hear(listener, COORD_MESSAGE_HEARTBEAT);
    coordctl_start(&listener->scene, &agent,
                   WORDS("agent", "--elector", listener->scene.uri, "--name", "jobs", "--bus",
                         listener->uri, "--id", "w-1", "--format", "json"));
    assert_int_equal(first_byte(listener), '{');
    kill(agent.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&agent), 0);
}

static void test_cli_format__another_one_is_a_mistake(void **state)
{
    struct listener *listener = *state;
    static const char *const calls[][10] = {
        {"message", "encode", "--type=shutdown", "--format=xml"},
        {"announce", "--bus=local:/nowhere", "--id=w", "--intent=graceful", "--format=xml"},
        {"assign", "--bus=local:/nowhere", "--elector=file:/nowhere", "--name=n", "--to=w",
         "--subscriptions=a", "--format=xml"},
        {"agent", "--bus=local:/nowhere", "--elector=file:/nowhere", "--name=n", "--id=w",
         "--format=xml"},
    };
    char out[COORDCTL_TEXT];
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct coordctl run;
        coordctl_start(&listener->scene, &run, calls[i]);
        assert_int_equal(coordctl_wait(&run), 2);
        assert_non_null(strstr(coordctl_output(run.err, out), "msgpack or json"));
    }
}

/* docs/decisions/0023: a bus carries bytes, whatever they say. */
static void test_cli_format__it_is_no_option_of_the_bus(void **state)
{
    struct listener *listener = *state;
    struct coordctl run;
    char uri[COORDCTL_PATH + 32];
    char out[COORDCTL_TEXT];
    snprintf(uri, sizeof uri, "%s?coord.format=json", listener->uri);
    coordctl_start(&listener->scene, &run,
                   WORDS("announce", "--bus", uri, "--id", "w-1", "--intent", "graceful"));
    assert_int_equal(coordctl_wait(&run), 2);
    assert_non_null(strstr(coordctl_output(run.err, out), "no option coord.format: remove it"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_cli_format__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_notice_is_json_where_that_is_asked_for),
        TEST(an_agent_speaks_json_where_that_is_asked_for),
        TEST(another_one_is_a_mistake),
        TEST(it_is_no_option_of_the_bus),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
