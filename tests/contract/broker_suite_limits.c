/* SPDX-License-Identifier: MIT
 * tests/contract/broker_suite_limits.c - what is bounded, refused, shared and left behind.
 */
#include "runtime/clock.h"
#include "tests/contract/broker_suite.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>

/* ---------------------------------------------------------------- limits */

static void a_slow_reader_loses_the_oldest_and_counts_them(struct bus_world *world)
{
    enum {
        SAID = 300,
        KEPT = 20
    };
    char text[32];
    struct bus_side *a = bus_join(world, 0);
    world->config.inbox_messages = KEPT;
    struct bus_side *b = bus_join(world, 1);
    b->deaf = true;
    for (int n = 0; n < SAID; n++) {
        snprintf(text, sizeof text, "%04d", n);
        bus_say(world, 0, text);
    }
    bus_until_got(world, a, SAID);
    bus_until_dropped(world, b, COORD_BROKER_DROP_INBOX_FULL, SAID - KEPT);
    assert_true(bus_status(b).inbox_messages <= KEPT);
    b->deaf = false;
    bus_until_got(world, b, KEPT);
    snprintf(text, sizeof text, "%04d", SAID - 1);
    assert_int_equal(bus_has(b, text), 1);
    assert_int_equal(bus_has(b, "0000"), 0);
    assert_true(bus_status(b).dropped[COORD_BROKER_DROP_INBOX_FULL] >= SAID - KEPT);
}

static void an_inbox_is_bounded_in_bytes(struct bus_world *world)
{
    enum {
        SAID = 40,
        SIZE = 20000
    };
    static unsigned char bytes[SIZE];
    struct bus_side *a = bus_join(world, 0);
    world->config.inbox_bytes = 100000;
    struct bus_side *b = bus_join(world, 1);
    b->deaf = true;
    for (int n = 0; n < SAID; n++) {
        bus_publish(a, world->topic, bytes, sizeof bytes);
        bus_until_got(world, a, (size_t)n + 1);
    }
    bus_until_dropped(world, b, COORD_BROKER_DROP_INBOX_FULL, 1);
    const struct coord_broker_status status = bus_status(b);
    assert_true(status.inbox_bytes <= 100000);
    assert_true(status.inbox_messages >= 1);
}

static void what_waits_to_go_out_is_bounded(struct bus_world *world)
{
    world->config.outbox_messages = 3;
    struct bus_side *a = bus_join(world, 0);
    struct coord_error error = {.code = COORD_OK};
    for (int i = 0; i < 3; i++) {
        bus_say(world, 0, "x");
    }
    assert_int_equal(
        coord_broker_publish(a->broker, world->topic, "y", 1, coord_clock_now(), &error),
        COORD_E_LIMIT);
    assert_int_equal(bus_status(a).dropped[COORD_BROKER_DROP_OUTBOX_FULL], 1);
    bus_until_got(world, a, 3);
    bus_say(world, 0, "z");
    bus_until_got(world, a, 4);
    assert_int_equal(bus_has(a, "y"), 0);
}

/* ---------------------------------------------------------------- driving */

static void it_sleeps_while_nothing_happens(struct bus_world *world)
{
    struct bus_side *a = bus_join(world, 0);
    bus_drive(world, 20);
    const size_t calls = a->calls;
    bus_drive(world, 500);
    assert_true(a->calls - calls < 20);
    bus_say(world, 0, "x");
    bus_until_got(world, a, 1);
}

static void many_share_what_can_be_shared(struct bus_world *world)
{
    enum {
        MEMBERS = BUS_SIDES
    };
    world->shared = true;
    for (int i = 0; i < MEMBERS; i++) {
        bus_open(world, i);
        bus_subscribe(&world->sides[i], world->topic);
    }
    for (int i = 0; i < MEMBERS; i++) {
        bus_until_up(world, &world->sides[i]);
    }
    bus_say(world, 7, "hello");
    bus_say(world, MEMBERS - 1, "there");
    for (int i = 0; i < MEMBERS; i++) {
        bus_until_got(world, &world->sides[i], 2);
    }
    for (int i = 0; i < MEMBERS - 1; i++) { /* the last one still works */
        bus_close(&world->sides[i]);
    }
    bus_say(world, MEMBERS - 1, "again");
    bus_until_got(world, &world->sides[MEMBERS - 1], 3);
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    DIR *list = opendir("/proc/self/fd");
    assert_non_null(list);
    while (readdir(list) != NULL) {
        count++;
    }
    closedir(list);
    return count;
}

static void nothing_is_left_behind(struct bus_world *world)
{
    const size_t before = open_descriptors();
    for (int i = 0; i < 10; i++) {
        struct bus_side *a = bus_open(world, 0);
        if (i % 2 == 0) {
            bus_subscribe(a, world->topic);
            bus_until_up(world, a);
        }
        bus_say(world, 0, "x");
        if (i % 3 == 0) {
            bus_until_idle(world, a);
        }
        bus_close(a);
    }
    assert_int_equal(open_descriptors(), before);
}

static void a_forked_child_leaves_the_parents_bus_alone(struct bus_world *world)
{
    struct bus_side *a = bus_join(world, 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        coord_broker_free(a->broker, true);
        _exit(0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bus_say(world, 0, "hello");
    bus_until_got(world, a, 1);
    bus_drive(world, 50);
    assert_int_equal(bus_status(a).ups, 1);
}

static void it_says_since_when_it_is_up(struct bus_world *world)
{
    const coord_ms before = coord_clock_now();
    struct bus_side *a = bus_join(world, 0);
    const struct coord_broker_status status = bus_status(a);
    assert_true(status.up);
    assert_true(status.ups >= 1);
    assert_true(status.since >= before);
    assert_true(status.since <= coord_clock_now());
    assert_int_equal(status.error.code, COORD_OK);
}

/* ---------------------------------------------------------------- what it cannot do */

static void what_it_lacks_is_refused_by_name(struct bus_world *world)
{
    static const enum coord_broker_verb verbs[] = {
#define X(symbol, value, flags, name) COORD_BROKER_DO_##symbol,
        COORD_BROKER_VERBS(X)
#undef X
    };
    struct bus_side *a = bus_open(world, 0);
    const struct coord_bytes stream = {.at = "s", .count = 1};
    struct coord_broker_reply reply;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        const struct coord_broker_request request = {
            .verb = verbs[i], .streams = &stream, .stream_count = 1, .count = 1};
        struct coord_error error = {.code = COORD_OK};
        uint64_t id = 77;
        assert_int_equal(coord_broker_ask(a->broker, &request, coord_clock_now(), &id, &error),
                         COORD_E_NOT_SUPPORTED);
        assert_non_null(strstr(error.text, world->store->name));
        assert_non_null(strstr(error.text, coord_broker_verb_name(verbs[i])));
        assert_int_equal(id, 77);
    }
    const struct coord_broker_request odd = {.verb = (enum coord_broker_verb)999};
    assert_int_equal(coord_broker_ask(a->broker, &odd, coord_clock_now(), NULL, NULL),
                     COORD_E_BAD_ARGUMENT);
    assert_false(coord_broker_next_reply(a->broker, &reply));
}

static void it_says_what_it_can(struct bus_world *world)
{
    struct bus_side *a = bus_open(world, 0);
    const struct coord_broker *b = a->broker;
    assert_string_equal(coord_broker_name(b), world->store->name);
    assert_int_equal(coord_broker_flags(b), COORD_BROKER_BASIC_PUBSUB);
    assert_true(coord_broker_has(b, COORD_BROKER_PUBLISH));
    assert_false(coord_broker_has(b, COORD_BROKER_ACK_NACK));
    assert_true(coord_broker_has_all(b, COORD_BROKER_BASIC_PUBSUB));
    assert_false(coord_broker_has_all(b, COORD_BROKER_SIMPLE_QUEUING));
    assert_true(coord_broker_has_all(b, 0));
    assert_true(coord_broker_has_any(b, COORD_BROKER_ENTERPRISE_STREAMING));
    assert_false(coord_broker_has_any(b, COORD_BROKER_STREAM_PARTITIONING));
    assert_false(coord_broker_has_any(b, 0));
}

static void unknown_options_are_refused(struct bus_world *world)
{
    static struct coord_uri uri;
    struct coord_broker *broker = NULL;
    struct coord_broker_config config = COORD_BROKER_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_uri_parse(world->store->uri(), &uri, NULL), COORD_OK);
    assert_int_equal(coord_uri_add_option(&uri, "nosuch=1", NULL), COORD_OK);
    config.uri = &uri;
    assert_int_equal(coord_broker_new(world->store->ops(), &config, 0, &broker, &error),
                     COORD_E_UNKNOWN_OPTION);
    assert_non_null(strstr(error.text, "nosuch"));
    assert_null(broker);
    config.size--;
    assert_int_equal(coord_broker_new(world->store->ops(), &config, 0, &broker, &error),
                     COORD_E_VERSION_MISMATCH);
}

const struct bus_case bus_limits[] = {
    {"a_slow_reader_loses_the_oldest_and_counts_them",
     a_slow_reader_loses_the_oldest_and_counts_them},
    {"an_inbox_is_bounded_in_bytes", an_inbox_is_bounded_in_bytes},
    {"what_waits_to_go_out_is_bounded", what_waits_to_go_out_is_bounded},
    {"it_sleeps_while_nothing_happens", it_sleeps_while_nothing_happens},
    {"many_share_what_can_be_shared", many_share_what_can_be_shared},
    {"nothing_is_left_behind", nothing_is_left_behind},
    {"a_forked_child_leaves_the_parents_bus_alone", a_forked_child_leaves_the_parents_bus_alone},
    {"it_says_since_when_it_is_up", it_says_since_when_it_is_up},
    {"what_it_lacks_is_refused_by_name", what_it_lacks_is_refused_by_name},
    {"it_says_what_it_can", it_says_what_it_can},
    {"unknown_options_are_refused", unknown_options_are_refused},
    {NULL, NULL},
};
