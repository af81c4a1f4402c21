/* SPDX-License-Identifier: MIT
 * tests/unit/test_broker.c - the base of every broker, with time that the test makes.
 */
#include "coord/own_bus.h"
#include "tests/support/support.h"

struct scene {
    struct coord_broker *broker;
    int lines; /* of the log */
    enum coord_err last;
};

static void hear_log(void *ctx, const struct coord_log_record *record)
{
    struct scene *scene = ctx;
    scene->lines++;
    scene->last = record->code;
}

static void open_with(struct coord_broker_config config, struct scene *scene)
{
    struct coord_error error = {.code = COORD_OK};
    *scene = (struct scene){.broker = NULL};
    config.log = (struct coord_log){.fn = hear_log, .ctx = scene};
    if (coord_broker_new(coord_own_bus(), &config, 1000, &scene->broker, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
}

static void say(struct scene *scene, const char *text, coord_ms now)
{
    assert_int_equal(coord_broker_publish(scene->broker, "t", text, strlen(text), now, NULL),
                     COORD_OK);
}

static struct coord_broker_status status_of(const struct scene *scene)
{
    struct coord_broker_status status;
    coord_broker_get_status(scene->broker, &status);
    return status;
}

static void test_broker__publishes_in_order_with_the_next_process(void **state)
{
    struct scene scene;
    struct coord_broker_message message;
    (void)state;
    open_with((struct coord_broker_config)COORD_BROKER_CONFIG_INIT, &scene);
    coord_broker_process(scene.broker, 1000);
    assert_int_equal(coord_broker_deadline(scene.broker), COORD_NEVER);
    say(&scene, "a", 1000);
    say(&scene, "b", 1001);
    assert_false(coord_own_bus_has_next(scene.broker));
    assert_int_equal(coord_broker_deadline(scene.broker), 0);
    coord_broker_process(scene.broker, 1001);
    assert_true(coord_own_bus_next(scene.broker, &message));
    assert_string_equal(message.topic, "t");
    assert_memory_equal(message.bytes, "a", 1);
    assert_false(coord_broker_is_idle(scene.broker));
    assert_true(coord_own_bus_next(scene.broker, &message));
    assert_memory_equal(message.bytes, "b", 1);
    assert_false(coord_own_bus_next(scene.broker, &message));
    assert_true(coord_broker_is_idle(scene.broker));
    assert_int_equal(status_of(&scene).published, 2);
    coord_broker_free(scene.broker, false);
}

static void test_broker__drops_what_waited_too_long_and_counts_it(void **state)
{
    struct coord_broker_config config = COORD_BROKER_CONFIG_INIT;
    const struct coord_error why = {.code = COORD_E_UNREACHABLE, .text = "gone"};
    struct scene scene;
    struct coord_broker_message message;
    (void)state;
    config.outbox_wait = 500;
    open_with(config, &scene);
    coord_broker_report_down(scene.broker, &why, 2000);
    say(&scene, "old", 2000);
    coord_broker_process(scene.broker, 2000);
    assert_int_equal(coord_broker_deadline(scene.broker), 2500);
    say(&scene, "new", 2400);
    coord_broker_process(scene.broker, 2500);
    assert_int_equal(status_of(&scene).dropped[COORD_BROKER_DROP_WAITED], 1);
    coord_broker_report_up(scene.broker, 2600);
    coord_broker_process(scene.broker, 2600);
    assert_true(coord_own_bus_next(scene.broker, &message));
    assert_int_equal(message.count, 3);
    assert_memory_equal(message.bytes, "new", 3);
    assert_false(coord_own_bus_next(scene.broker, &message));
    coord_broker_free(scene.broker, false);
}

static void test_broker__keeps_what_the_application_does_not_take(void **state)
{
    enum {
        SAID = 200
    };
    struct scene scene;
    struct coord_broker_message message;
    int taken = 0;
    (void)state;
    open_with((struct coord_broker_config)COORD_BROKER_CONFIG_INIT, &scene);
    for (int i = 0; i < SAID; i++) {
        say(&scene, "x", 1000);
    }
    coord_broker_process(scene.broker, 1000);
    while (coord_own_bus_next(scene.broker, &message)) {
        taken++;
        if (!coord_own_bus_has_next(scene.broker)) {
            assert_int_equal(coord_broker_deadline(scene.broker), taken < SAID ? 0 : COORD_NEVER);
            coord_broker_process(scene.broker, 1000);
        }
    }
    assert_int_equal(taken, SAID);
    coord_broker_free(scene.broker, false);
}

static void test_broker__tells_a_trouble_once_and_its_end(void **state)
{
    const struct coord_error gone = {.code = COORD_E_UNREACHABLE, .text = "gone"};
    const struct coord_error full = {.code = COORD_E_SERVER_FULL, .text = "full"};
    struct scene scene;
    (void)state;
    open_with((struct coord_broker_config)COORD_BROKER_CONFIG_INIT, &scene);
    assert_int_equal(scene.lines, 0);
    coord_broker_report_down(scene.broker, &gone, 2000);
    coord_broker_report_down(scene.broker, &gone, 3000);
    assert_int_equal(scene.lines, 1);
    assert_int_equal(status_of(&scene).since, 2000);
    assert_false(status_of(&scene).up);
    coord_broker_report_down(scene.broker, &full, 4000);
    assert_int_equal(scene.lines, 2);
    assert_int_equal(scene.last, COORD_E_SERVER_FULL);
    assert_int_equal(status_of(&scene).error.code, COORD_E_SERVER_FULL);
    coord_broker_report_up(scene.broker, 5000);
    coord_broker_report_up(scene.broker, 6000);
    assert_int_equal(scene.lines, 3);
    assert_int_equal(scene.last, COORD_OK);
    assert_int_equal(status_of(&scene).since, 5000);
    assert_int_equal(status_of(&scene).ups, 2);
    assert_int_equal(coord_broker_deadline(scene.broker), 0); /* the host has something to see */
    coord_broker_free(scene.broker, false);
}

static void test_broker__says_nothing_of_a_subscription_on_its_way(void **state)
{
    struct scene scene;
    (void)state;
    open_with((struct coord_broker_config)COORD_BROKER_CONFIG_INIT, &scene);
    coord_broker_report_down(scene.broker, NULL, 2000);
    assert_false(status_of(&scene).up);
    assert_int_equal(scene.lines, 0);
    coord_broker_report_up(scene.broker, 2001);
    assert_int_equal(scene.lines, 0);
    coord_broker_free(scene.broker, false);
}

static void test_broker__delivers_only_what_is_heard(void **state)
{
    static unsigned char large[COORD_BROKER_MESSAGE_MAX + 1];
    struct scene scene;
    struct coord_broker_message message;
    (void)state;
    open_with((struct coord_broker_config)COORD_BROKER_CONFIG_INIT, &scene);
    assert_int_equal(coord_broker_subscribe(scene.broker, "topic", 1000, NULL), COORD_OK);
    coord_broker_deliver(scene.broker, "topi", 4, "1", 1);
    coord_broker_deliver(scene.broker, "topic.", 6, "2", 1);
    coord_broker_deliver(scene.broker, "", 0, "3", 1);
    coord_broker_deliver(scene.broker, "topic-and-more", 5, "4", 1); /* its first 5 bytes */
    coord_broker_deliver(scene.broker, "topic", 5, large, sizeof large);
    assert_int_equal(coord_broker_waiting(scene.broker), 1);
    assert_true(coord_broker_next_message(scene.broker, &message));
    assert_string_equal(message.topic, "topic");
    assert_memory_equal(message.bytes, "4", 1);
    assert_int_equal(status_of(&scene).dropped[COORD_BROKER_DROP_DAMAGED], 1);
    assert_int_equal(status_of(&scene).received, 1);
    coord_broker_free(scene.broker, false); /* with the one that is borrowed */
}

static void test_broker__takes_one_message_that_is_larger_than_its_limits(void **state)
{
    static unsigned char large[5000];
    struct coord_broker_config config = COORD_BROKER_CONFIG_INIT;
    struct scene scene;
    (void)state;
    config.inbox_bytes = 100;
    config.outbox_bytes = 100;
    open_with(config, &scene);
    assert_int_equal(coord_broker_subscribe(scene.broker, "t", 1000, NULL), COORD_OK);
    assert_int_equal(coord_broker_publish(scene.broker, "t", large, sizeof large, 1000, NULL),
                     COORD_OK);
    assert_int_equal(coord_broker_publish(scene.broker, "t", large, 1, 1000, NULL), COORD_E_LIMIT);
    coord_broker_deliver(scene.broker, "t", 1, large, sizeof large);
    coord_broker_deliver(scene.broker, "t", 1, large, sizeof large);
    assert_int_equal(coord_broker_waiting(scene.broker), 1);
    assert_int_equal(status_of(&scene).dropped[COORD_BROKER_DROP_INBOX_FULL], 1);
    coord_broker_free(scene.broker, false);
}

static void test_broker__names_are_stable(void **state)
{
    (void)state;
    assert_string_equal(coord_broker_verb_name(COORD_BROKER_DO_DLQ_REPLAY_ALL), "dlq_replay_all");
    assert_string_equal(coord_broker_verb_name(COORD_BROKER_DO_NOTHING), "unknown");
    assert_string_equal(coord_broker_drop_name(COORD_BROKER_DROP_SLOW_MEMBER), "SLOW_MEMBER");
    assert_string_equal(coord_broker_drop_name((enum coord_broker_drop)99), "UNKNOWN");
    for (int i = 0; i < COORD_BROKER_DROPS; i++) {
        assert_non_null(coord_broker_drop_name((enum coord_broker_drop)i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broker__publishes_in_order_with_the_next_process),
        cmocka_unit_test(test_broker__drops_what_waited_too_long_and_counts_it),
        cmocka_unit_test(test_broker__keeps_what_the_application_does_not_take),
        cmocka_unit_test(test_broker__tells_a_trouble_once_and_its_end),
        cmocka_unit_test(test_broker__says_nothing_of_a_subscription_on_its_way),
        cmocka_unit_test(test_broker__delivers_only_what_is_heard),
        cmocka_unit_test(test_broker__takes_one_message_that_is_larger_than_its_limits),
        cmocka_unit_test(test_broker__names_are_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
