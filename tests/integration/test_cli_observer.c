/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_observer.c - coordctl agent --role observer: it hears the fleet, and
 * the fleet does not hear it.
 */
#include "brokers/local.h"
#include "coord/message.h"
#include "runtime/bus.h"
#include "tests/support/fleet_calls.h"
#include "tests/support/guard.h"
#include "tests/support/support.h"

#include <signal.h>

/* A fleet, and an ear on its bus. */
struct observed {
    struct fleet_calls fleet;
    struct coord_runtime *runtime;
    struct coord_bus *bus;
    unsigned of_members;   /* messages so far */
    unsigned of_observers; /* ... whose sender is one of them */
};

static int set_up(void **state)
{
    static const struct coord_bus_scheme schemes[] = {{"local", coord_local_broker, NULL},
                                                      {NULL, NULL, NULL}};
    /* Not the reports: it reminds a leader of one that its table does not have. */
    static const enum coord_message_type heard[] = {COORD_MESSAGE_HEARTBEAT, COORD_MESSAGE_SHUTDOWN,
                                                    COORD_MESSAGE_FINISHED,
                                                    COORD_MESSAGE_WORK_ASSIGNMENT};
    static struct observed observed;
    char topic[COORD_TOPIC_MAX];
    observed = (struct observed){.of_members = 0};
    fleet_calls_open(&observed.fleet);
    assert_int_equal(coord_runtime_new(NULL, &observed.runtime, NULL), COORD_OK);
    assert_int_equal(
        coord_bus_open(observed.runtime, schemes, observed.fleet.bus, NULL, &observed.bus, NULL),
        COORD_OK);
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) {
        assert_int_equal(coord_topic(NULL, heard[i], topic), COORD_OK);
        assert_int_equal(coord_bus_subscribe(observed.bus, topic, NULL), COORD_OK);
    }
    assert_int_equal(coord_bus_await_up(observed.bus, GUARD_MS, NULL), COORD_OK);
    *state = &observed;
    return 0;
}

static int tear_down(void **state)
{
    struct observed *observed = *state;
    coord_runtime_free(observed->runtime);
    fleet_calls_close(&observed->fleet);
    return 0;
}

/* Take one message of the bus. @return false: none came in time. */
static bool listen_once(struct observed *observed, coord_ms within)
{
    struct coord_broker_message message;
    struct coord_message read;
    enum coord_message_type type = COORD_MESSAGE_HEARTBEAT;
    if (coord_bus_next(observed->bus, within, &message) != COORD_OK) {
        return false;
    }
    assert_true(coord_topic_type(NULL, message.topic, strlen(message.topic), &type));
    assert_int_equal(coord_message_decode(type, message.bytes, message.count, &read),
                     COORD_FAULT_NONE);
    if (coord_view_is(&read.instance_id, "o-1", 3)) {
        observed->of_observers++;
    } else {
        observed->of_members++;
    }
    return true;
}

static void test_cli_observer__hears_the_fleet_and_is_not_heard(void **state)
{
    struct observed *observed = *state;
    struct fleet_calls *fleet = &observed->fleet;
    struct coordctl leader;
    struct coordctl worker;
    struct coordctl observer;
    char path[COORDCTL_PATH];
    char hook[COORDCTL_PATH + 32];
    char out[COORDCTL_TEXT];
    snprintf(hook, sizeof hook, "cat >>'%s'", scene_path(&fleet->scene, "reports", path));
    static const char *const none[] = {NULL};
    fleet_start_agent(fleet, &leader, "w-0", none);
    wait_for_text(leader.err, "leading jobs, fence ");
    fleet_start_agent(fleet, &observer, "o-1", WORDS("--role", "observer", "--on-orphan", hook));
    fleet_start_agent(fleet, &worker, "w-1", WORDS("--subscriptions", "orders"));
    wait_for_text(observer.err, "w-1");
    kill(worker.pid, SIGKILL);
    coordctl_wait(&worker);
    wait_for_text(path, "\"orders\""); /* of its owner's silence, by the leader's word */
    kill(observer.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&observer), 0);
    assert_null(strstr(coordctl_output(observer.err, out), "leading jobs"));
    /* What it said came before what the leader says as it leaves. */
    kill(leader.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&leader), 0);
    while (listen_once(observed, 200)) {
    }
    assert_true(observed->of_members > 0);
    assert_int_equal(observed->of_observers, 0);
}

static void test_cli_observer__work_is_refused(void **state)
{
    struct observed *observed = *state;
    static const char *const calls[][5] = {
        {"--role", "observer", "--subscriptions", "orders", NULL},
        {"--role", "observer", "--on-assign", "cat", NULL},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct coordctl run;
        char said[COORDCTL_TEXT];
        fleet_start_agent(&observed->fleet, &run, "o-1", calls[i]);
        assert_int_equal(coordctl_wait(&run), 2);
        assert_non_null(strstr(coordctl_output(run.err, said), "an observer does no work"));
    }
    assert_false(listen_once(observed, 0));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_cli_observer__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(hears_the_fleet_and_is_not_heard),
        TEST(work_is_refused),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
