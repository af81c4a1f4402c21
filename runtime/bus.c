/* SPDX-License-Identifier: MIT
 * runtime/bus.c - a broker that rides on a runtime.
 */
#include "runtime/bus.h"

#include "coord/own_bus.h"
#include "runtime/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

enum {
    BUS_MAGIC = 0x62757331
};

/* A message outside of the lock: the broker's own lives only until its next call. */
struct letter {
    struct coord_broker_message message;
    char data[];
};

struct coord_bus {
    struct coord__rider rider; /* first */
    uint32_t magic;
    struct coord_broker *broker; /* NULL: closed */
    const char *name;
    coord_bus_message_fn on_message;
    void *ctx;
    coord_bus_publish_fn publish; /* NULL: not the application's own */
    void *publish_ctx;
    struct letter *pulled;
};

static struct coord_bus *of(struct coord__rider *rider)
{
    return (struct coord_bus *)rider;
}

static const struct coord_bus *of_const(const struct coord__rider *rider)
{
    return (const struct coord_bus *)rider;
}

static struct letter *copy(const struct coord_broker_message *message)
{
    const size_t topic = strlen(message->topic) + 1;
    struct letter *letter = malloc(sizeof *letter + topic + message->count);
    if (letter != NULL) {
        memcpy(letter->data, message->topic, topic);
        if (message->count > 0) {
            memcpy(letter->data + topic, message->bytes, message->count);
        }
        letter->message = (struct coord_broker_message){
            .topic = letter->data, .bytes = letter->data + topic, .count = message->count};
    }
    return letter;
}

/* The oldest one; NULL: none, or no memory for it. */
static struct letter *take(struct coord_bus *bus)
{
    struct coord_broker_message message;
    if (!coord_broker_next_message(bus->broker, &message)) {
        return NULL;
    }
    struct letter *letter = copy(&message);
    if (letter == NULL) {
        coord_broker_count_drop(bus->broker, COORD_BROKER_DROP_NO_MEMORY, 1);
    }
    return letter;
}

/* ---------------------------------------------------------------- what the runtime calls */

static void process(struct coord__rider *rider, coord_ms now)
{
    coord_broker_process(of(rider)->broker, now);
}

static coord_ms deadline(struct coord__rider *rider)
{
    return coord_broker_deadline(of(rider)->broker);
}

static size_t descriptors(struct coord__rider *rider, struct coord_descriptor *out)
{
    return coord_broker_descriptors(of(rider)->broker, out);
}

static bool tells(const struct coord__rider *rider)
{
    const struct coord_bus *bus = of_const(rider);
    return bus->on_message != NULL && bus->broker != NULL && coord_broker_waiting(bus->broker) > 0;
}

static void tell(struct coord__rider *rider)
{
    struct coord_bus *bus = of(rider);
    struct coord_runtime *runtime = rider->runtime;
    struct letter *letter = take(bus);
    if (letter != NULL) {
        coord__leave(runtime);
        bus->on_message(bus->ctx, bus, &letter->message);
        coord__enter_again(runtime);
        free(letter);
    }
}

static bool flushes(const struct coord__rider *rider)
{
    const struct coord_bus *bus = of_const(rider);
    return bus->publish != NULL && bus->broker != NULL && coord_own_bus_has_next(bus->broker);
}

static void flush(struct coord__rider *rider)
{
    struct coord_bus *bus = of(rider);
    struct coord_runtime *runtime = rider->runtime;
    struct coord_broker_message message;
    if (!coord_own_bus_next(bus->broker, &message)) {
        return;
    }
    struct letter *letter = copy(&message);
    bool done = false;
    if (letter != NULL) {
        coord__leave(runtime);
        done = bus->publish(bus->publish_ctx, &letter->message);
        coord__enter_again(runtime);
        free(letter);
    }
    if (!rider->closed && !coord__forked(runtime)) {
        coord_broker_count_drop(bus->broker, COORD_BROKER_DROP_REFUSED, done ? 0 : 1);
        rider->deadline = deadline(rider); /* more may go out now */
    }
}

static void shut(struct coord__rider *rider, bool forked)
{
    struct coord_bus *bus = of(rider);
    coord__rider_leave(rider, forked);
    coord_broker_free(bus->broker, forked);
    bus->broker = NULL;
}

static void destroy(struct coord__rider *rider)
{
    struct coord_bus *bus = of(rider);
    free(bus->pulled);
    bus->magic = 0;
    free(bus);
}

static const struct coord__rider_ops rider_ops = {.process = process,
                                                  .deadline = deadline,
                                                  .descriptors = descriptors,
                                                  .tells = tells,
                                                  .tell = tell,
                                                  .flushes = flushes,
                                                  .flush = flush,
                                                  .close = shut,
                                                  .free = destroy};

/* ---------------------------------------------------------------- opening */

static enum coord_err check_config(const struct coord_bus_config *config, struct coord_error *error)
{
    if (config != NULL && config->size != sizeof *config) {
        return coord_error_set(error, COORD_E_VERSION_MISMATCH,
                               "the program was compiled for another version of libcoord than %s: "
                               "compile it again",
                               coord_version());
    }
    return COORD_OK;
}

static void fill_in(const struct coord_runtime *runtime, const struct coord_bus_config *config,
                    struct coord_broker_config *out)
{
    uuid_t random;
    uuid_generate(random);
    memcpy(&out->seed, random, sizeof out->seed);
    out->log = runtime->log;
    if (config != NULL) {
        out->inbox_messages = config->inbox_messages;
        out->inbox_bytes = config->inbox_bytes;
        out->outbox_messages = config->outbox_messages;
        out->outbox_bytes = config->outbox_bytes;
        out->outbox_wait = config->outbox_wait;
        out->log = config->log.fn != NULL ? config->log : runtime->log;
    }
}

/* The broker is made under the lock: it may join a connection that is in use. */
static enum coord_err open_broker(struct coord_runtime *runtime, const struct coord_broker_ops *ops,
                                  const struct coord_uri *uri,
                                  const struct coord_bus_config *config, struct coord_bus *bus,
                                  struct coord_error *error)
{
    struct coord_broker_config broker = COORD_BROKER_CONFIG_INIT;
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    fill_in(runtime, config, &broker);
    broker.uri = uri;
    broker.share = &runtime->share;
    broker.resolver = &runtime->resolver;
    const enum coord_err rc =
        coord_broker_new(ops, &broker, coord_clock_now(), &bus->broker, error);
    if (rc == COORD_OK) {
        bus->magic = BUS_MAGIC;
        bus->name = coord_broker_name(bus->broker);
        coord__rider_join(&bus->rider, runtime, &rider_ops);
    }
    coord__leave(runtime);
    return rc;
}

static enum coord_err open_bus(struct coord_runtime *runtime, const struct coord_broker_ops *ops,
                               const struct coord_uri *uri, const struct coord_bus_config *config,
                               coord_bus_publish_fn publish, void *ctx, struct coord_bus **out,
                               struct coord_error *error)
{
    struct coord_bus *bus = calloc(1, sizeof *bus);
    if (bus == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    bus->on_message = config != NULL ? config->on_message : NULL;
    bus->ctx = config != NULL ? config->ctx : NULL;
    bus->publish = publish;
    bus->publish_ctx = ctx;
    const enum coord_err rc = open_broker(runtime, ops, uri, config, bus, error);
    if (rc != COORD_OK) {
        free(bus);
        return rc;
    }
    *out = bus;
    return COORD_OK;
}

enum coord_err coord_bus_open(struct coord_runtime *runtime, const struct coord_bus_scheme *table,
                              const char *uri, const struct coord_bus_config *config,
                              struct coord_bus **out, struct coord_error *error)
{
    COORD_ASSERT(uri != NULL);
    COORD_ASSERT(out != NULL);
    enum coord_err rc = check_config(config, error);
    if (rc != COORD_OK) {
        return rc;
    }
    struct coord_uri *parsed = NULL;
    const struct coord_broker_ops *ops = NULL;
    rc = coord__uri_new(uri, config != NULL ? config->options : NULL, &parsed, error);
    if (rc == COORD_OK) {
        rc = coord_bus_scheme_find(table, parsed->scheme, &ops, error);
    }
    if (rc == COORD_OK) {
        rc = open_bus(runtime, ops, parsed, config, NULL, NULL, out, error);
    }
    coord__uri_free(parsed);
    return rc;
}

enum coord_err coord_bus_open_own(struct coord_runtime *runtime, coord_bus_publish_fn publish,
                                  void *ctx, const struct coord_bus_config *config,
                                  struct coord_bus **out, struct coord_error *error)
{
    COORD_ASSERT(publish != NULL);
    COORD_ASSERT(out != NULL);
    const enum coord_err rc = check_config(config, error);
    if (rc != COORD_OK) {
        return rc;
    }
    if (config != NULL && config->options != NULL && config->options[0] != NULL) {
        return coord_error_set(error, COORD_E_UNKNOWN_OPTION,
                               "options are for buses that are opened by URI: leave them out");
    }
    return open_bus(runtime, coord_own_bus(), NULL, config, publish, ctx, out, error);
}

void coord_bus_close(struct coord_bus *bus)
{
    if (bus == NULL) {
        return;
    }
    COORD_ASSERT(bus->magic == BUS_MAGIC);
    struct coord_runtime *runtime = bus->rider.runtime;
    const bool forked = !coord__enter(runtime);
    coord__rider_pin(&bus->rider);
    shut(&bus->rider, forked);
    coord__rider_unpin(&bus->rider);
    if (!forked) {
        coord__leave(runtime);
    }
}

/* ---------------------------------------------------------------- messages */

enum coord_err coord_bus_deliver(struct coord_bus *bus, const char *topic, const void *bytes,
                                 size_t count)
{
    COORD_ASSERT(topic != NULL);
    if (bus->publish == NULL) {
        return COORD_E_NOT_SUPPORTED;
    }
    if (!coord__enter(bus->rider.runtime)) {
        return COORD_E_FORKED;
    }
    coord_broker_deliver(bus->broker, topic, strlen(topic), bytes, count);
    coord__rider_touch(&bus->rider);
    coord__leave(bus->rider.runtime);
    return COORD_OK;
}

enum coord_err coord_bus_report(struct coord_bus *bus, bool up)
{
    struct coord_error why;
    if (bus->publish == NULL) {
        return COORD_E_NOT_SUPPORTED;
    }
    if (!coord__enter(bus->rider.runtime)) {
        return COORD_E_FORKED;
    }
    if (up) {
        coord_broker_report_up(bus->broker, coord_clock_now());
    } else {
        coord_error_set(&why, COORD_E_UNREACHABLE, "the application says that its bus is down");
        coord_broker_report_down(bus->broker, &why, coord_clock_now());
    }
    coord__rider_touch(&bus->rider);
    coord__leave(bus->rider.runtime);
    return COORD_OK;
}

enum coord_err coord_bus_publish(struct coord_bus *bus, const char *topic, const void *bytes,
                                 size_t count, struct coord_error *error)
{
    if (!coord__enter(bus->rider.runtime)) {
        return coord__say_forked(error);
    }
    const enum coord_err rc =
        coord_broker_publish(bus->broker, topic, bytes, count, coord_clock_now(), error);
    coord__rider_touch(&bus->rider);
    coord__leave(bus->rider.runtime);
    return rc;
}

enum coord_err coord_bus_subscribe(struct coord_bus *bus, const char *topic,
                                   struct coord_error *error)
{
    if (!coord__enter(bus->rider.runtime)) {
        return coord__say_forked(error);
    }
    const enum coord_err rc = coord_broker_subscribe(bus->broker, topic, coord_clock_now(), error);
    coord__rider_touch(&bus->rider);
    coord__leave(bus->rider.runtime);
    return rc;
}

void coord_bus_unsubscribe(struct coord_bus *bus, const char *topic)
{
    if (coord__enter(bus->rider.runtime)) {
        coord_broker_unsubscribe(bus->broker, topic, coord_clock_now());
        coord__rider_touch(&bus->rider);
        coord__leave(bus->rider.runtime);
    }
}

enum coord_err coord_bus_get_status(struct coord_bus *bus, struct coord_broker_status *out)
{
    if (!coord__enter(bus->rider.runtime)) {
        return COORD_E_FORKED;
    }
    coord_broker_get_status(bus->broker, out);
    coord__leave(bus->rider.runtime);
    return COORD_OK;
}

const char *coord_bus_name(const struct coord_bus *bus)
{
    return bus->name;
}

struct coord_broker *coord_bus_broker(struct coord_bus *bus)
{
    return bus->broker;
}

/* ---------------------------------------------------------------- waiting */

static bool has_message(struct coord__rider *rider, void *ctx)
{
    (void)ctx;
    return coord_broker_waiting(of(rider)->broker) > 0;
}

static bool is_up(struct coord__rider *rider, void *ctx)
{
    (void)ctx;
    struct coord_broker_status status;
    coord_broker_get_status(of(rider)->broker, &status);
    return status.up;
}

static bool is_idle(struct coord__rider *rider, void *ctx)
{
    (void)ctx;
    return coord_broker_is_idle(of(rider)->broker);
}

/* The lock is held, and let go while it waits. The bus is pinned by the caller. */
static enum coord_err await(struct coord_bus *bus, coord_ms bound,
                            bool (*ready)(struct coord__rider *rider, void *ctx),
                            struct coord_error *error)
{
    const coord_ms until = coord_ms_add(coord_clock_now(), bound);
    const bool done = coord__rider_await(&bus->rider, until, ready, NULL);
    if (coord__forked(bus->rider.runtime)) {
        return coord__say_forked(error);
    }
    if (bus->rider.closed) {
        return coord_error_set(error, COORD_E_CLOSED,
                               "the bus was closed while it was waited for: open it again");
    }
    if (done) {
        return COORD_OK;
    }
    struct coord_broker_status status;
    coord_broker_get_status(bus->broker, &status);
    return coord_error_set(error, COORD_E_TIMEOUT, "the %s bus is not ready in time: %s", bus->name,
                           status.error.code != COORD_OK ? status.error.text : "wait longer");
}

static enum coord_err wait_for(struct coord_bus *bus, coord_ms bound,
                               bool (*ready)(struct coord__rider *rider, void *ctx),
                               struct coord_error *error)
{
    struct coord_runtime *runtime = bus->rider.runtime;
    if (!coord__enter(runtime)) {
        return coord__say_forked(error);
    }
    coord__rider_pin(&bus->rider);
    const enum coord_err rc = await(bus, bound, ready, error);
    coord__rider_unpin(&bus->rider);
    coord__leave(runtime);
    return rc;
}

enum coord_err coord_bus_await_up(struct coord_bus *bus, coord_ms bound, struct coord_error *error)
{
    return wait_for(bus, bound, is_up, error);
}

enum coord_err coord_bus_drain(struct coord_bus *bus, coord_ms bound, struct coord_error *error)
{
    return wait_for(bus, bound, is_idle, error);
}

enum coord_err coord_bus_next(struct coord_bus *bus, coord_ms wait,
                              struct coord_broker_message *out)
{
    struct coord_runtime *runtime = bus->rider.runtime;
    if (bus->on_message != NULL) {
        return COORD_E_BAD_ARGUMENT;
    }
    if (!coord__enter(runtime)) {
        return COORD_E_FORKED;
    }
    coord__rider_pin(&bus->rider);
    enum coord_err rc = await(bus, wait, has_message, NULL);
    if (rc == COORD_OK) {
        free(bus->pulled);
        bus->pulled = take(bus);
        rc = bus->pulled != NULL ? COORD_OK : COORD_E_NO_MEMORY;
    }
    if (rc == COORD_OK) {
        *out = bus->pulled->message;
    }
    coord__rider_unpin(&bus->rider);
    coord__leave(runtime);
    return rc;
}
