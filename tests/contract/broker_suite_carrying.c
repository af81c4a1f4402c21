/* SPDX-License-Identifier: MIT
 * tests/contract/broker_suite_carrying.c - what is published arrives, and nothing else does.
 */
#include "runtime/clock.h"
#include "tests/contract/broker_suite.h"

/* ---------------------------------------------------------------- carrying */

static void own_messages_come_back(struct bus_world *world)
{
    struct bus_side *a = bus_join(world, 0);
    bus_say(world, 0, "hello");
    bus_until_got(world, a, 1);
    assert_string_equal(bus_message(a, 0)->topic, world->topic);
    assert_int_equal(bus_has(a, "hello"), 1);
    assert_int_equal(bus_status(a).published, 1);
    assert_int_equal(bus_status(a).received, 1);
}

static void everybody_hears_everybody_once_and_in_order(struct bus_world *world)
{
    enum {
        EACH = 50,
        MEMBERS = 3
    };
    char text[32];
    for (int i = 0; i < MEMBERS; i++) {
        bus_join(world, i);
    }
    for (int n = 0; n < EACH; n++) {
        for (int i = 0; i < MEMBERS; i++) {
            snprintf(text, sizeof text, "%d:%04d", i, n);
            bus_say(world, i, text);
        }
    }
    for (int i = 0; i < MEMBERS; i++) {
        int next[MEMBERS] = {0};
        bus_until_got(world, &world->sides[i], EACH * MEMBERS);
        for (const struct bus_got *got = world->sides[i].first; got != NULL; got = got->next) {
            int from = got->bytes[0] - '0';
            assert_in_range(from, 0, MEMBERS - 1);
            snprintf(text, sizeof text, "%d:%04d", from, next[from]++);
            assert_int_equal(got->count, strlen(text));
            assert_memory_equal(got->bytes, text, got->count);
        }
    }
    bus_drive(world, 50);
    assert_int_equal(world->sides[0].got, EACH * MEMBERS);
}

static void any_bytes_of_any_size_arrive_whole(struct bus_world *world)
{
    static unsigned char bytes[COORD_BROKER_MESSAGE_MAX + 1];
    static const size_t sizes[] = {0,
                                   1,
                                   2,
                                   3,
                                   255,
                                   256,
                                   4000,
                                   5999,
                                   6000,
                                   7999,
                                   8000,
                                   8001,
                                   20000,
                                   COORD_BROKER_MESSAGE_MAX - 1,
                                   COORD_BROKER_MESSAGE_MAX};
    struct bus_side *a = bus_join(world, 0);
    struct coord_error error = {.code = COORD_OK};
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bus_publish(a, world->topic, bytes, sizes[i]);
        bus_until_got(world, a, i + 1);
        assert_int_equal(bus_message(a, i)->count, sizes[i]);
        assert_memory_equal(bus_message(a, i)->bytes, bytes, sizes[i]);
    }
    assert_int_equal(coord_broker_publish(a->broker, world->topic, bytes, sizeof bytes,
                                          coord_clock_now(), &error),
                     COORD_E_TOO_LARGE);
    assert_non_null(strstr(error.text, "65537"));
}

static void large_messages_of_many_do_not_mix(struct bus_world *world)
{
    enum {
        SIZE = 30000,
        MEMBERS = 3,
        EACH = 4
    };
    static unsigned char bytes[SIZE];
    world->config.outbox_bytes = 4 << 20;
    for (int i = 0; i < MEMBERS; i++) {
        bus_join(world, i);
    }
    for (int n = 0; n < EACH; n++) {
        for (int i = 0; i < MEMBERS; i++) {
            memset(bytes, 'a' + i * EACH + n, sizeof bytes);
            bus_publish(&world->sides[i], world->topic, bytes, sizeof bytes);
        }
    }
    for (int i = 0; i < MEMBERS; i++) {
        bus_until_got(world, &world->sides[i], EACH * MEMBERS);
        for (const struct bus_got *got = world->sides[i].first; got != NULL; got = got->next) {
            assert_int_equal(got->count, SIZE);
            memset(bytes, got->bytes[0], sizeof bytes);
            assert_memory_equal(got->bytes, bytes, SIZE);
        }
    }
}

static void only_what_is_subscribed_to_is_heard(struct bus_world *world)
{
    char other[80];
    char longer[80];
    snprintf(other, sizeof other, "other/%s", world->topic);
    snprintf(longer, sizeof longer, "%s.more", world->topic);
    struct bus_side *a = bus_join(world, 0);
    struct bus_side *b = bus_open(world, 1);
    bus_subscribe(b, other);
    bus_until_up(world, b);
    bus_publish(a, other, "x", 1);
    bus_publish(a, longer, "y", 1);
    bus_publish(b, world->topic, "z", 1);
    bus_until_got(world, a, 1);
    bus_until_got(world, b, 1);
    bus_drive(world, 50);
    assert_int_equal(a->got, 1);
    assert_int_equal(bus_has(a, "z"), 1);
    assert_int_equal(b->got, 1);
    assert_int_equal(bus_has(b, "x"), 1);
}

static void unsubscribing_ends_it_and_subscribing_begins_again(struct bus_world *world)
{
    struct bus_side *a = bus_join(world, 0);
    struct bus_side *b = bus_join(world, 1);
    bus_subscribe(a, world->topic); /* again: nothing changes */
    bus_say(world, 1, "one");
    bus_until_got(world, a, 1);
    coord_broker_unsubscribe(a->broker, world->topic, coord_clock_now());
    coord_broker_unsubscribe(a->broker, "never-heard-of", coord_clock_now());
    bus_until_up(world, a);
    bus_say(world, 1, "two");
    bus_until_got(world, b, 2);
    bus_drive(world, 50);
    bus_subscribe(a, world->topic);
    bus_until_up(world, a);
    bus_say(world, 1, "three");
    bus_until_got(world, a, 2);
    assert_int_equal(bus_has(a, "one"), 1);
    assert_int_equal(bus_has(a, "two"), 0);
    assert_int_equal(bus_has(a, "three"), 1);
}

static void who_only_publishes_needs_no_subscription(struct bus_world *world)
{
    struct bus_side *a = bus_open(world, 0);
    struct bus_side *b = bus_join(world, 1);
    bus_say(world, 0, "hello"); /* before it is up: it waits */
    bus_until_got(world, b, 1);
    bus_until_idle(world, a);
    bus_until_up(world, a);
    assert_int_equal(a->got, 0);
}

/* ---------------------------------------------------------------- topics */

static void bad_topics_are_refused(struct bus_world *world)
{
    char text[300];
    struct bus_side *a = bus_open(world, 0);
    struct coord_error error;
    memset(text, 'x', sizeof text);
    text[COORD_BROKER_TOPIC_MAX] = '\0';
    const char *const bad[] = {NULL, "", " ", "a b", "a\n", "a\tb", "\x7f", "caf\xc3\xa9", text};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error.code = COORD_OK;
        assert_int_equal(coord_broker_publish(a->broker, bad[i], "x", 1, coord_clock_now(), &error),
                         COORD_E_BAD_TOPIC);
        assert_int_equal(error.code, COORD_E_BAD_TOPIC);
        assert_int_equal(coord_broker_subscribe(a->broker, bad[i], coord_clock_now(), NULL),
                         COORD_E_BAD_TOPIC);
        coord_broker_unsubscribe(a->broker, bad[i], coord_clock_now());
    }
    assert_int_equal(bus_status(a).outbox_messages, 0);
}

static void any_good_topic_works(struct bus_world *world)
{
    char longest[COORD_BROKER_TOPIC_MAX];
    char near[COORD_BROKER_TOPIC_MAX];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memcpy(longest, world->topic, strlen(world->topic));
    memcpy(near, longest, sizeof near);
    near[sizeof near - 2] = 'y';
    const char *const good[] = {"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "__eventsource.heartbeat",
                                "*", "../../x", longest};
    struct bus_side *a = bus_open(world, 0);
    const size_t count = sizeof good / sizeof good[0];
    for (size_t i = 0; i < count; i++) {
        bus_subscribe(a, good[i]);
    }
    bus_until_up(world, a);
    bus_publish(a, near, "near", 4);
    for (size_t i = 0; i < count; i++) {
        bus_publish(a, good[i], good[i], strlen(good[i]));
    }
    bus_until_got(world, a, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(bus_message(a, i)->topic, good[i]);
    }
    assert_int_equal(bus_has(a, "near"), 0);
}

static void topics_of_one_broker_are_limited(struct bus_world *world)
{
    char topic[96];
    struct bus_side *a = bus_open(world, 0);
    for (int i = 0; i < COORD_BROKER_TOPICS_MAX; i++) {
        snprintf(topic, sizeof topic, "%s-%d", world->topic, i);
        bus_subscribe(a, topic);
    }
    assert_int_equal(coord_broker_subscribe(a->broker, world->topic, coord_clock_now(), NULL),
                     COORD_E_LIMIT);
    bus_until_up(world, a);
    bus_publish(a, topic, "x", 1);
    bus_until_got(world, a, 1);
}

const struct bus_case bus_carrying[] = {
    {"own_messages_come_back", own_messages_come_back},
    {"everybody_hears_everybody_once_and_in_order", everybody_hears_everybody_once_and_in_order},
    {"any_bytes_of_any_size_arrive_whole", any_bytes_of_any_size_arrive_whole},
    {"large_messages_of_many_do_not_mix", large_messages_of_many_do_not_mix},
    {"only_what_is_subscribed_to_is_heard", only_what_is_subscribed_to_is_heard},
    {"unsubscribing_ends_it_and_subscribing_begins_again",
     unsubscribing_ends_it_and_subscribing_begins_again},
    {"who_only_publishes_needs_no_subscription", who_only_publishes_needs_no_subscription},
    {"bad_topics_are_refused", bad_topics_are_refused},
    {"any_good_topic_works", any_good_topic_works},
    {"topics_of_one_broker_are_limited", topics_of_one_broker_are_limited},
    {NULL, NULL},
};
