/* SPDX-License-Identifier: MIT
 * tests/contract/broker_suite.c - the cases.
 */
#include "tests/contract/broker_suite.h"

#include "runtime/clock.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>

static const struct bus_store *store;
static struct bus_world world;

/* ---------------------------------------------------------------- carrying */

static void own_messages_come_back(void)
{
    struct bus_side *a = bus_join(&world, 0);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
    assert_string_equal(bus_message(a, 0)->topic, world.topic);
    assert_int_equal(bus_has(a, "hello"), 1);
    assert_int_equal(bus_status(a).published, 1);
    assert_int_equal(bus_status(a).received, 1);
}

static void everybody_hears_everybody_once_and_in_order(void)
{
    enum {
        EACH = 50,
        MEMBERS = 3
    };
    char text[32];
    for (int i = 0; i < MEMBERS; i++) {
        bus_join(&world, i);
    }
    for (int n = 0; n < EACH; n++) {
        for (int i = 0; i < MEMBERS; i++) {
            snprintf(text, sizeof text, "%d:%04d", i, n);
            bus_say(&world, i, text);
        }
    }
    for (int i = 0; i < MEMBERS; i++) {
        int next[MEMBERS] = {0};
        bus_until_got(&world, &world.sides[i], EACH * MEMBERS);
        for (const struct bus_got *got = world.sides[i].first; got != NULL; got = got->next) {
            int from = got->bytes[0] - '0';
            assert_in_range(from, 0, MEMBERS - 1);
            snprintf(text, sizeof text, "%d:%04d", from, next[from]++);
            assert_int_equal(got->count, strlen(text));
            assert_memory_equal(got->bytes, text, got->count);
        }
    }
    bus_drive(&world, 50);
    assert_int_equal(world.sides[0].got, EACH * MEMBERS);
}

static void any_bytes_of_any_size_arrive_whole(void)
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
    struct bus_side *a = bus_join(&world, 0);
    struct coord_error error = {.code = COORD_OK};
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bus_publish(a, world.topic, bytes, sizes[i]);
        bus_until_got(&world, a, i + 1);
        assert_int_equal(bus_message(a, i)->count, sizes[i]);
        assert_memory_equal(bus_message(a, i)->bytes, bytes, sizes[i]);
    }
    assert_int_equal(coord_broker_publish(a->broker, world.topic, bytes, sizeof bytes,
                                          coord_clock_now(), &error),
                     COORD_E_TOO_LARGE);
    assert_non_null(strstr(error.text, "65537"));
}

static void large_messages_of_many_do_not_mix(void)
{
    enum {
        SIZE = 30000,
        MEMBERS = 3,
        EACH = 4
    };
    static unsigned char bytes[SIZE];
    world.config.outbox_bytes = 4 << 20;
    for (int i = 0; i < MEMBERS; i++) {
        bus_join(&world, i);
    }
    for (int n = 0; n < EACH; n++) {
        for (int i = 0; i < MEMBERS; i++) {
            memset(bytes, 'a' + i * EACH + n, sizeof bytes);
            bus_publish(&world.sides[i], world.topic, bytes, sizeof bytes);
        }
    }
    for (int i = 0; i < MEMBERS; i++) {
        bus_until_got(&world, &world.sides[i], EACH * MEMBERS);
        for (const struct bus_got *got = world.sides[i].first; got != NULL; got = got->next) {
            assert_int_equal(got->count, SIZE);
            memset(bytes, got->bytes[0], sizeof bytes);
            assert_memory_equal(got->bytes, bytes, SIZE);
        }
    }
}

static void only_what_is_subscribed_to_is_heard(void)
{
    char other[80];
    char longer[80];
    snprintf(other, sizeof other, "other/%s", world.topic);
    snprintf(longer, sizeof longer, "%s.more", world.topic);
    struct bus_side *a = bus_join(&world, 0);
    struct bus_side *b = bus_open(&world, 1);
    bus_subscribe(b, other);
    bus_until_up(&world, b);
    bus_publish(a, other, "x", 1);
    bus_publish(a, longer, "y", 1);
    bus_publish(b, world.topic, "z", 1);
    bus_until_got(&world, a, 1);
    bus_until_got(&world, b, 1);
    bus_drive(&world, 50);
    assert_int_equal(a->got, 1);
    assert_int_equal(bus_has(a, "z"), 1);
    assert_int_equal(b->got, 1);
    assert_int_equal(bus_has(b, "x"), 1);
}

static void unsubscribing_ends_it_and_subscribing_begins_again(void)
{
    struct bus_side *a = bus_join(&world, 0);
    struct bus_side *b = bus_join(&world, 1);
    bus_subscribe(a, world.topic); /* again: nothing changes */
    bus_say(&world, 1, "one");
    bus_until_got(&world, a, 1);
    coord_broker_unsubscribe(a->broker, world.topic, coord_clock_now());
    coord_broker_unsubscribe(a->broker, "never-heard-of", coord_clock_now());
    bus_until_up(&world, a);
    bus_say(&world, 1, "two");
    bus_until_got(&world, b, 2);
    bus_drive(&world, 50);
    bus_subscribe(a, world.topic);
    bus_until_up(&world, a);
    bus_say(&world, 1, "three");
    bus_until_got(&world, a, 2);
    assert_int_equal(bus_has(a, "one"), 1);
    assert_int_equal(bus_has(a, "two"), 0);
    assert_int_equal(bus_has(a, "three"), 1);
}

static void who_only_publishes_needs_no_subscription(void)
{
    struct bus_side *a = bus_open(&world, 0);
    struct bus_side *b = bus_join(&world, 1);
    bus_say(&world, 0, "hello"); /* before it is up: it waits */
    bus_until_got(&world, b, 1);
    bus_until_idle(&world, a);
    bus_until_up(&world, a);
    assert_int_equal(a->got, 0);
}

/* ---------------------------------------------------------------- topics */

static void bad_topics_are_refused(void)
{
    char text[300];
    struct bus_side *a = bus_open(&world, 0);
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

static void any_good_topic_works(void)
{
    char longest[COORD_BROKER_TOPIC_MAX];
    char near[COORD_BROKER_TOPIC_MAX];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memcpy(longest, world.topic, strlen(world.topic));
    memcpy(near, longest, sizeof near);
    near[sizeof near - 2] = 'y';
    const char *const good[] = {"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "__eventsource.heartbeat",
                                "*", "../../x", longest};
    struct bus_side *a = bus_open(&world, 0);
    const size_t count = sizeof good / sizeof good[0];
    for (size_t i = 0; i < count; i++) {
        bus_subscribe(a, good[i]);
    }
    bus_until_up(&world, a);
    bus_publish(a, near, "near", 4);
    for (size_t i = 0; i < count; i++) {
        bus_publish(a, good[i], good[i], strlen(good[i]));
    }
    bus_until_got(&world, a, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(bus_message(a, i)->topic, good[i]);
    }
    assert_int_equal(bus_has(a, "near"), 0);
}

static void topics_of_one_broker_are_limited(void)
{
    char topic[96];
    struct bus_side *a = bus_open(&world, 0);
    for (int i = 0; i < COORD_BROKER_TOPICS_MAX; i++) {
        snprintf(topic, sizeof topic, "%s-%d", world.topic, i);
        bus_subscribe(a, topic);
    }
    assert_int_equal(coord_broker_subscribe(a->broker, world.topic, coord_clock_now(), NULL),
                     COORD_E_LIMIT);
    bus_until_up(&world, a);
    bus_publish(a, topic, "x", 1);
    bus_until_got(&world, a, 1);
}

/* ---------------------------------------------------------------- limits */

static void a_slow_reader_loses_the_oldest_and_counts_them(void)
{
    enum {
        SAID = 300,
        KEPT = 20
    };
    char text[32];
    struct bus_side *a = bus_join(&world, 0);
    world.config.inbox_messages = KEPT;
    struct bus_side *b = bus_join(&world, 1);
    b->deaf = true;
    for (int n = 0; n < SAID; n++) {
        snprintf(text, sizeof text, "%04d", n);
        bus_say(&world, 0, text);
    }
    bus_until_got(&world, a, SAID);
    bus_drive(&world, 100);
    const struct coord_broker_status status = bus_status(b);
    assert_true(status.inbox_messages <= KEPT);
    assert_int_equal(status.received + status.dropped[COORD_BROKER_DROP_INBOX_FULL] >= SAID, 1);
    b->deaf = false;
    bus_until_got(&world, b, KEPT);
    snprintf(text, sizeof text, "%04d", SAID - 1);
    assert_int_equal(bus_has(b, text), 1);
    assert_int_equal(bus_has(b, "0000"), 0);
    assert_true(bus_status(b).dropped[COORD_BROKER_DROP_INBOX_FULL] >= SAID - KEPT);
}

static void an_inbox_is_bounded_in_bytes(void)
{
    enum {
        SAID = 40,
        SIZE = 20000
    };
    static unsigned char bytes[SIZE];
    struct bus_side *a = bus_join(&world, 0);
    world.config.inbox_bytes = 100000;
    struct bus_side *b = bus_join(&world, 1);
    b->deaf = true;
    for (int n = 0; n < SAID; n++) {
        bus_publish(a, world.topic, bytes, sizeof bytes);
        bus_until_got(&world, a, (size_t)n + 1);
    }
    bus_drive(&world, 50);
    const struct coord_broker_status status = bus_status(b);
    assert_true(status.inbox_bytes <= 100000);
    assert_true(status.inbox_messages >= 1);
    assert_true(status.dropped[COORD_BROKER_DROP_INBOX_FULL] > 0);
}

static void what_waits_to_go_out_is_bounded(void)
{
    world.config.outbox_messages = 3;
    struct bus_side *a = bus_join(&world, 0);
    struct coord_error error = {.code = COORD_OK};
    for (int i = 0; i < 3; i++) {
        bus_say(&world, 0, "x");
    }
    assert_int_equal(
        coord_broker_publish(a->broker, world.topic, "y", 1, coord_clock_now(), &error),
        COORD_E_LIMIT);
    assert_int_equal(bus_status(a).dropped[COORD_BROKER_DROP_OUTBOX_FULL], 1);
    bus_until_got(&world, a, 3);
    bus_say(&world, 0, "z");
    bus_until_got(&world, a, 4);
    assert_int_equal(bus_has(a, "y"), 0);
}

/* ---------------------------------------------------------------- driving */

static void it_sleeps_while_nothing_happens(void)
{
    struct bus_side *a = bus_join(&world, 0);
    bus_drive(&world, 20);
    const size_t calls = a->calls;
    bus_drive(&world, 500);
    assert_true(a->calls - calls < 20);
    bus_say(&world, 0, "x");
    bus_until_got(&world, a, 1);
}

static void many_share_what_can_be_shared(void)
{
    enum {
        MEMBERS = BUS_SIDES
    };
    world.shared = true;
    for (int i = 0; i < MEMBERS; i++) {
        bus_open(&world, i);
        bus_subscribe(&world.sides[i], world.topic);
    }
    for (int i = 0; i < MEMBERS; i++) {
        bus_until_up(&world, &world.sides[i]);
    }
    bus_say(&world, 7, "hello");
    bus_say(&world, MEMBERS - 1, "there");
    for (int i = 0; i < MEMBERS; i++) {
        bus_until_got(&world, &world.sides[i], 2);
    }
    for (int i = 0; i < MEMBERS - 1; i++) { /* the last one still works */
        bus_close(&world.sides[i]);
    }
    bus_say(&world, MEMBERS - 1, "again");
    bus_until_got(&world, &world.sides[MEMBERS - 1], 3);
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

static void nothing_is_left_behind(void)
{
    const size_t before = open_descriptors();
    for (int i = 0; i < 10; i++) {
        struct bus_side *a = bus_open(&world, 0);
        if (i % 2 == 0) {
            bus_subscribe(a, world.topic);
            bus_until_up(&world, a);
        }
        bus_say(&world, 0, "x");
        if (i % 3 == 0) {
            bus_until_idle(&world, a);
        }
        bus_close(a);
    }
    assert_int_equal(open_descriptors(), before);
}

static void a_forked_child_leaves_the_parents_bus_alone(void)
{
    struct bus_side *a = bus_join(&world, 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        coord_broker_free(a->broker, true);
        _exit(0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bus_say(&world, 0, "hello");
    bus_until_got(&world, a, 1);
    bus_drive(&world, 50);
    assert_int_equal(bus_status(a).ups, 1);
}

static void it_says_since_when_it_is_up(void)
{
    const coord_ms before = coord_clock_now();
    struct bus_side *a = bus_join(&world, 0);
    const struct coord_broker_status status = bus_status(a);
    assert_true(status.up);
    assert_true(status.ups >= 1);
    assert_true(status.since >= before);
    assert_true(status.since <= coord_clock_now());
    assert_int_equal(status.error.code, COORD_OK);
}

/* ---------------------------------------------------------------- what it cannot do */

static void what_it_lacks_is_refused_by_name(void)
{
    static const enum coord_broker_verb verbs[] = {
#define X(symbol, value, flags, name) COORD_BROKER_DO_##symbol,
        COORD_BROKER_VERBS(X)
#undef X
    };
    struct bus_side *a = bus_open(&world, 0);
    const struct coord_bytes stream = {.at = "s", .count = 1};
    struct coord_broker_reply reply;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        const struct coord_broker_request request = {
            .verb = verbs[i], .streams = &stream, .stream_count = 1, .count = 1};
        struct coord_error error = {.code = COORD_OK};
        uint64_t id = 77;
        assert_int_equal(coord_broker_ask(a->broker, &request, coord_clock_now(), &id, &error),
                         COORD_E_NOT_SUPPORTED);
        assert_non_null(strstr(error.text, store->name));
        assert_non_null(strstr(error.text, coord_broker_verb_name(verbs[i])));
        assert_int_equal(id, 77);
    }
    const struct coord_broker_request odd = {.verb = (enum coord_broker_verb)999};
    assert_int_equal(coord_broker_ask(a->broker, &odd, coord_clock_now(), NULL, NULL),
                     COORD_E_BAD_ARGUMENT);
    assert_false(coord_broker_next_reply(a->broker, &reply));
}

static void it_says_what_it_can(void)
{
    struct bus_side *a = bus_open(&world, 0);
    const struct coord_broker *b = a->broker;
    assert_string_equal(coord_broker_name(b), store->name);
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

static void unknown_options_are_refused(void)
{
    static struct coord_uri uri;
    struct coord_broker *broker = NULL;
    struct coord_broker_config config = COORD_BROKER_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(coord_uri_parse(store->uri(), &uri, NULL), COORD_OK);
    assert_int_equal(coord_uri_add_option(&uri, "nosuch=1", NULL), COORD_OK);
    config.uri = &uri;
    assert_int_equal(coord_broker_new(store->ops(), &config, 0, &broker, &error),
                     COORD_E_UNKNOWN_OPTION);
    assert_non_null(strstr(error.text, "nosuch"));
    assert_null(broker);
    config.size--;
    assert_int_equal(coord_broker_new(store->ops(), &config, 0, &broker, &error),
                     COORD_E_VERSION_MISMATCH);
}

/* ---------------------------------------------------------------- running */

#define CASES(X)                                          \
    X(own_messages_come_back)                             \
    X(everybody_hears_everybody_once_and_in_order)        \
    X(any_bytes_of_any_size_arrive_whole)                 \
    X(large_messages_of_many_do_not_mix)                  \
    X(only_what_is_subscribed_to_is_heard)                \
    X(unsubscribing_ends_it_and_subscribing_begins_again) \
    X(who_only_publishes_needs_no_subscription)           \
    X(bad_topics_are_refused)                             \
    X(any_good_topic_works)                               \
    X(topics_of_one_broker_are_limited)                   \
    X(a_slow_reader_loses_the_oldest_and_counts_them)     \
    X(an_inbox_is_bounded_in_bytes)                       \
    X(what_waits_to_go_out_is_bounded)                    \
    X(it_sleeps_while_nothing_happens)                    \
    X(many_share_what_can_be_shared)                      \
    X(nothing_is_left_behind)                             \
    X(a_forked_child_leaves_the_parents_bus_alone)        \
    X(it_says_since_when_it_is_up)                        \
    X(what_it_lacks_is_refused_by_name)                   \
    X(it_says_what_it_can)                                \
    X(unknown_options_are_refused)

struct bus_case {
    const char *name;
    void (*run)(void);
};

static void run_case(void **state)
{
    static bool started;
    const struct bus_case *line = *state;
    if (!started && store->start != NULL) {
        store->start(); /* inside a case, as it may skip: then each one does */
        started = true;
    }
    bus_open_world(&world, store, line->name);
    line->run();
}

static int tear_down(void **state)
{
    (void)state;
    bus_close_world(&world); /* with whatever a failed case left open */
    return 0;
}

int bus_suite_run(const struct bus_store *what)
{
    static struct bus_case lines[] = {
#define X(name) {#name, name},
        CASES(X)
#undef X
    };
    enum {
        COUNT = sizeof lines / sizeof lines[0]
    };
    static char names[COUNT][128];
    struct CMUnitTest tests[COUNT];
    const char *only = getenv("COORD_TEST_ONLY"); /* a part of a case's name */
    size_t count = 0;
    store = what;
    for (size_t i = 0; i < COUNT; i++) {
        if (only != NULL && strstr(lines[i].name, only) == NULL) {
            continue;
        }
        snprintf(names[count], sizeof names[count], "test_broker_%s__%s", what->name,
                 lines[i].name);
        tests[count] = (struct CMUnitTest){.name = names[count],
                                           .test_func = run_case,
                                           .teardown_func = tear_down,
                                           .initial_state = &lines[i]};
        count++;
    }
    const int failed = _cmocka_run_group_tests(what->name, tests, count, NULL, NULL);
    if (what->stop != NULL) {
        what->stop();
    }
    return failed;
}
