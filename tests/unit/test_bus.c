/* SPDX-License-Identifier: MIT
 * tests/unit/test_bus.c - buses of programs: from many threads, by callback or pulled.
 */
#include "runtime/bus.h"

#include "brokers/memory.h"
#include "tests/support/support.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum {
    GUARD = 30000 /* ms; no measure of anything */
};

static const struct coord_bus_scheme schemes[] = {{"memory", coord_memory_broker, NULL},
                                                  {NULL, NULL, NULL}};

static struct coord_runtime *new_runtime(bool threads)
{
    struct coord_runtime *runtime = NULL;
    assert_int_equal(coord_runtime_new(NULL, &runtime, NULL), COORD_OK);
    if (threads) {
        assert_int_equal(coord_runtime_start(runtime, NULL), COORD_OK);
    }
    return runtime;
}

static struct coord_bus *open_bus(struct coord_runtime *runtime, const char *uri,
                                  const struct coord_bus_config *config)
{
    struct coord_bus *bus = NULL;
    struct coord_error error = {.code = COORD_OK};
    if (coord_bus_open(runtime, schemes, uri, config, &bus, &error) != COORD_OK ||
        coord_bus_subscribe(bus, "t", &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
    return bus;
}

static void publish(struct coord_bus *bus, const char *text)
{
    assert_int_equal(coord_bus_publish(bus, "t", text, strlen(text), NULL), COORD_OK);
}

static void expect(struct coord_bus *bus, const char *text)
{
    struct coord_broker_message message;
    assert_int_equal(coord_bus_next(bus, GUARD, &message), COORD_OK);
    assert_string_equal(message.topic, "t");
    assert_int_equal(message.count, strlen(text));
    assert_memory_equal(message.bytes, text, message.count);
}

static void test_bus__is_pulled_with_and_without_threads(void **state)
{
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        struct coord_runtime *runtime = new_runtime(threads == 1);
        struct coord_bus *a = open_bus(runtime, "memory:pulled", NULL);
        struct coord_bus *b = open_bus(runtime, "memory:pulled", NULL);
        struct coord_broker_message message;
        assert_int_equal(coord_bus_await_up(a, GUARD, NULL), COORD_OK);
        assert_string_equal(coord_bus_name(a), "memory");
        publish(a, "one");
        publish(b, "two");
        expect(a, "one");
        expect(a, "two");
        expect(b, "one");
        expect(b, "two");
        assert_int_equal(coord_bus_drain(a, GUARD, NULL), COORD_OK);
        assert_int_equal(coord_bus_next(a, 20, &message), COORD_E_TIMEOUT);
        coord_bus_unsubscribe(b, "t");
        publish(a, "three");
        expect(a, "three");
        assert_int_equal(coord_bus_next(b, 20, &message), COORD_E_TIMEOUT);
        coord_bus_close(a);
        coord_runtime_free(runtime); /* with b still open */
    }
}

struct heard {
    atomic_int count;
    atomic_bool close;
};

static void on_message(void *ctx, struct coord_bus *bus, const struct coord_broker_message *message)
{
    struct heard *heard = ctx;
    if (memcmp(message->bytes, "again", message->count) == 0) {
        publish(bus, "echo");
    }
    if (atomic_load(&heard->close)) {
        coord_bus_close(bus);
    }
    atomic_fetch_add(&heard->count, 1);
}

static void await_count(const struct heard *heard, int count)
{
    const coord_ms until = coord_clock_now() + GUARD;
    while (atomic_load(&heard->count) < count) {
        assert_true(coord_clock_now() < until);
        poll(NULL, 0, 1);
    }
}

static void test_bus__calls_back_and_may_be_used_from_there(void **state)
{
    struct heard heard = {0};
    struct coord_bus_config config = COORD_BUS_CONFIG_INIT;
    struct coord_broker_message message;
    (void)state;
    config.on_message = on_message;
    config.ctx = &heard;
    struct coord_runtime *runtime = new_runtime(true);
    struct coord_bus *bus = open_bus(runtime, "memory:", &config);
    publish(bus, "again");
    await_count(&heard, 2); /* and its echo */
    assert_int_equal(coord_bus_next(bus, 0, &message), COORD_E_BAD_ARGUMENT);
    atomic_store(&heard.close, true);
    publish(bus, "last");
    await_count(&heard, 3); /* closed inside */
    coord_runtime_free(runtime);
}

static void test_bus__is_driven_by_a_foreign_loop(void **state)
{
    struct heard heard = {0};
    struct coord_bus_config config = COORD_BUS_CONFIG_INIT;
    const coord_ms until = coord_clock_now() + GUARD;
    (void)state;
    config.on_message = on_message;
    config.ctx = &heard;
    struct coord_runtime *runtime = new_runtime(false);
    struct coord_bus *a = open_bus(runtime, "memory:loop", &config);
    struct coord_bus *b = open_bus(runtime, "memory:loop", &config);
    for (int i = 0; i < 100; i++) {
        publish(i % 2 == 0 ? a : b, "x");
    }
    while (atomic_load(&heard.count) < 200) {
        struct pollfd wait = {.fd = coord_runtime_fd(runtime), .events = POLLIN};
        assert_true(coord_clock_now() < until);
        assert_true(poll(&wait, 1, 1000) >= 0);
        assert_int_equal(coord_runtime_process(runtime), COORD_OK);
    }
    coord_runtime_free(runtime);
}

enum {
    WRITERS = 4,
    EACH = 500
};

static void *write_many(void *ctx)
{
    for (int i = 0; i < EACH; i++) {
        while (coord_bus_publish(ctx, "t", "x", 1, NULL) == COORD_E_LIMIT) {
            poll(NULL, 0, 1);
        }
    }
    return NULL;
}

static void test_bus__takes_messages_of_many_threads(void **state)
{
    pthread_t writers[WRITERS];
    (void)state;
    struct coord_runtime *runtime = new_runtime(true);
    struct coord_bus *bus = open_bus(runtime, "memory:", NULL);
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&writers[i], NULL, write_many, bus), 0);
    }
    for (int i = 0; i < WRITERS * EACH; i++) {
        expect(bus, "x");
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(writers[i], NULL);
    }
    coord_runtime_free(runtime);
}

/* An application's bus that hands back at once what it is given. */
static bool hand_back(void *ctx, const struct coord_broker_message *message)
{
    struct coord_bus *const *bus = ctx;
    return message->count != 4 &&
           coord_bus_deliver(*bus, message->topic, message->bytes, message->count) == COORD_OK;
}

static void test_bus__plugs_in_an_applications_own(void **state)
{
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        struct coord_bus *bus = NULL;
        struct coord_broker_status status;
        struct coord_runtime *runtime = new_runtime(threads == 1);
        assert_int_equal(coord_bus_open_own(runtime, hand_back, &bus, NULL, &bus, NULL), COORD_OK);
        assert_int_equal(coord_bus_subscribe(bus, "t", NULL), COORD_OK);
        publish(bus, "hello");
        expect(bus, "hello");
        publish(bus, "four"); /* it fails */
        for (int i = 0; i < 200; i++) {
            publish(bus, "many!");
        }
        for (int i = 0; i < 200; i++) {
            expect(bus, "many!");
        }
        assert_int_equal(coord_bus_get_status(bus, &status), COORD_OK);
        assert_int_equal(status.dropped[COORD_BROKER_DROP_REFUSED], 1);
        assert_int_equal(coord_bus_report(bus, false), COORD_OK);
        assert_int_equal(coord_bus_await_up(bus, 10, NULL), COORD_E_TIMEOUT);
        publish(bus, "later");
        assert_int_equal(coord_bus_report(bus, true), COORD_OK);
        expect(bus, "later");
        coord_runtime_free(runtime);
    }
}

static void test_bus__refuses_by_name(void **state)
{
    struct coord_error error;
    struct coord_bus *bus = NULL;
    const char *const options[] = {"nosuch=1", NULL};
    struct coord_bus_config config = COORD_BUS_CONFIG_INIT;
    (void)state;
    struct coord_runtime *runtime = new_runtime(false);
    assert_int_equal(coord_bus_open(runtime, schemes, "nats://x", NULL, &bus, &error),
                     COORD_E_UNKNOWN_SCHEME);
    assert_non_null(strstr(error.text, "memory:"));
    assert_int_equal(coord_bus_open(runtime, schemes, "", NULL, &bus, &error), COORD_E_BAD_URI);
    config.options = options;
    assert_int_equal(coord_bus_open(runtime, schemes, "memory:", &config, &bus, &error),
                     COORD_E_UNKNOWN_OPTION);
    assert_int_equal(coord_bus_open_own(runtime, hand_back, NULL, &config, &bus, &error),
                     COORD_E_UNKNOWN_OPTION);
    config.size = 1;
    assert_int_equal(coord_bus_open(runtime, schemes, "memory:", &config, &bus, &error),
                     COORD_E_VERSION_MISMATCH);
    assert_null(bus);
    bus = open_bus(runtime, "memory:", NULL);
    assert_int_equal(coord_bus_publish(bus, "a b", "x", 1, &error), COORD_E_BAD_TOPIC);
    assert_int_equal(coord_bus_deliver(bus, "t", "x", 1), COORD_E_NOT_SUPPORTED);
    coord_runtime_free(runtime);
}

static void test_bus__belongs_to_the_parent_after_a_fork(void **state)
{
    int status = 1;
    (void)state;
    struct coord_runtime *runtime = new_runtime(true);
    struct coord_bus *bus = open_bus(runtime, "memory:forked", NULL);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        struct coord_broker_message message;
        const bool good = coord_bus_publish(bus, "t", "x", 1, NULL) == COORD_E_FORKED &&
                          coord_bus_next(bus, 100, &message) == COORD_E_FORKED;
        coord_bus_close(bus);
        coord_runtime_free(runtime);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    publish(bus, "still");
    expect(bus, "still");
    coord_runtime_free(runtime);
}

static void fork_and_close(void *ctx, struct coord_bus *bus,
                           const struct coord_broker_message *message)
{
    pid_t *child = ctx;
    (void)message;
    *child = fork();
    if (*child == 0) {
        coord_bus_close(bus);
    }
}

static void test_bus__a_child_may_close_it_inside_the_callback_that_forked_it(void **state)
{
    (void)state;
    pid_t child = -1;
    int status = 1;
    struct coord_bus_config config = COORD_BUS_CONFIG_INIT;
    struct coord_runtime *runtime = new_runtime(false);
    config.on_message = fork_and_close;
    config.ctx = &child;
    struct coord_bus *bus = open_bus(runtime, "memory:", &config);
    fflush(NULL);
    publish(bus, "one");
    const coord_ms guard = coord_clock_now() + GUARD;
    while (child == -1) {
        struct pollfd wait = {.fd = coord_runtime_fd(runtime), .events = POLLIN};
        assert_true(coord_clock_now() < guard);
        poll(&wait, 1, 10);
        const enum coord_err rc = coord_runtime_process(runtime);
        if (child == 0) {
            coord_runtime_free(runtime);
            _exit(rc == COORD_E_FORKED ? 0 : 1);
        }
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    coord_runtime_free(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bus__is_pulled_with_and_without_threads),
        cmocka_unit_test(test_bus__calls_back_and_may_be_used_from_there),
        cmocka_unit_test(test_bus__is_driven_by_a_foreign_loop),
        cmocka_unit_test(test_bus__takes_messages_of_many_threads),
        cmocka_unit_test(test_bus__plugs_in_an_applications_own),
        cmocka_unit_test(test_bus__refuses_by_name),
        cmocka_unit_test(test_bus__belongs_to_the_parent_after_a_fork),
        cmocka_unit_test(test_bus__a_child_may_close_it_inside_the_callback_that_forked_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
