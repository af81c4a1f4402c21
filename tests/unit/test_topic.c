/* SPDX-License-Identifier: MIT
 * tests/unit/test_topic.c - the seed library's names, and those of a fleet that chooses its own.
 */
#include "coord/topic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_topic__names_are_those_of_the_seed_library(void **state)
{
    (void)state;
    static const char *const names[] = {
        "__eventsource_coordination.heartbeat", "__eventsource_coordination.shutdown",
        "__eventsource_coordination.work_assignment", "__eventsource_coordination.finished",
        "__eventsource_coordination.orphans"};
    for (int type = 0; type < COORD_MESSAGE_TYPES; type++) {
        char topic[COORD_TOPIC_MAX];
        enum coord_message_type back;
        assert_int_equal(coord_topic(NULL, (enum coord_message_type)type, topic), COORD_OK);
        assert_string_equal(topic, names[type]);
        assert_true(coord_topic_type("", topic, strlen(topic), &back));
        assert_int_equal(back, type);
    }
}

static void test_topic__a_prefix_keeps_fleets_apart(void **state)
{
    (void)state;
    char topic[COORD_TOPIC_MAX];
    enum coord_message_type type;
    assert_int_equal(coord_topic("billing", COORD_MESSAGE_SHUTDOWN, topic), COORD_OK);
    assert_string_equal(topic, "billing.shutdown");
    assert_false(coord_topic_type(NULL, topic, strlen(topic), &type));
    assert_false(coord_topic_type("billing", "billing.shutdownx", 17, &type));
    assert_false(coord_topic_type("billing", "billing", 7, &type));
}

static void test_topic__a_prefix_that_brokers_might_refuse_is_refused(void **state)
{
    (void)state;
    char topic[COORD_TOPIC_MAX];
    char longer[COORD_TOPIC_PREFIX_MAX + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(coord_topic("a b", COORD_MESSAGE_SHUTDOWN, topic), COORD_E_BAD_ARGUMENT);
    assert_int_equal(coord_topic(longer, COORD_MESSAGE_SHUTDOWN, topic), COORD_E_BAD_ARGUMENT);
    longer[COORD_TOPIC_PREFIX_MAX] = '\0';
    assert_int_equal(coord_topic(longer, COORD_MESSAGE_WORK_ASSIGNMENT, topic), COORD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topic__names_are_those_of_the_seed_library),
        cmocka_unit_test(test_topic__a_prefix_keeps_fleets_apart),
        cmocka_unit_test(test_topic__a_prefix_that_brokers_might_refuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
