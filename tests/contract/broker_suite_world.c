/* SPDX-License-Identifier: MIT
 * tests/contract/broker_suite_world.c - the members of a case, and the loop that drives them.
 */
#include "runtime/clock.h"
#include "tests/contract/broker_suite.h"

#include <poll.h>
#include <stdlib.h>

static void take_messages(struct bus_side *side)
{
    struct coord_broker_message message;
    while (!side->deaf && coord_broker_next_message(side->broker, &message)) {
        struct bus_got *got = malloc(sizeof *got + message.count);
        assert_non_null(got);
        got->next = NULL;
        got->count = message.count;
        snprintf(got->topic, sizeof got->topic, "%s", message.topic);
        memcpy(got->bytes, message.bytes, message.count);
        *side->last = got;
        side->last = &got->next;
        side->got++;
    }
}

static void process_all(struct bus_world *world)
{
    for (int i = 0; i < BUS_SIDES; i++) {
        struct bus_side *side = &world->sides[i];
        if (side->broker != NULL && !side->absent) {
            coord_broker_process(side->broker, coord_clock_now());
            side->calls++;
            take_messages(side);
        }
    }
}

/* Sleep until something happens, as a host does. */
static void sleep_until_due(struct bus_world *world, coord_ms until)
{
    struct pollfd wait[BUS_SIDES * COORD_DESCRIPTORS_MAX];
    nfds_t count = 0;
    coord_ms at = until;
    for (int i = 0; i < BUS_SIDES; i++) {
        struct bus_side *side = &world->sides[i];
        struct coord_descriptor found[COORD_DESCRIPTORS_MAX];
        if (side->broker == NULL || side->absent) {
            continue;
        }
        at = coord_ms_min(at, coord_broker_deadline(side->broker));
        const size_t n = coord_broker_descriptors(side->broker, found);
        for (size_t d = 0; d < n; d++) {
            wait[count].fd = found[d].fd;
            wait[count].events =
                (short)((found[d].read ? POLLIN : 0) | (found[d].write ? POLLOUT : 0));
            wait[count++].revents = 0;
        }
    }
    const coord_ms rest = coord_ms_sub(at, coord_clock_now());
    assert_true(poll(wait, count, rest > 1000 ? 1000 : (int)rest) >= 0);
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static bool drive(struct bus_world *world, coord_ms until, bus_condition condition, void *ctx)
{
    for (;;) {
        process_all(world);
        if (condition(ctx)) {
            return true;
        }
        if (coord_clock_now() >= until) {
            return false;
        }
        sleep_until_due(world, until);
    }
}

void bus_until(struct bus_world *world, bus_condition condition, void *ctx)
{
    if (!drive(world, coord_clock_now() + BUS_GUARD, condition, ctx)) {
        fail_msg("it did not happen within %d ms", BUS_GUARD);
    }
}

void bus_drive(struct bus_world *world, coord_ms duration)
{
    drive(world, coord_clock_now() + duration, never, NULL);
}

/* ---------------------------------------------------------------- sides */

void bus_open_world(struct bus_world *world, const struct bus_store *store, const char *what)
{
    static unsigned cases;
    memset(world, 0, sizeof *world);
    world->store = store;
    world->config = (struct coord_broker_config)COORD_BROKER_CONFIG_INIT;
    snprintf(world->topic, sizeof world->topic, "%.30s-%ld-%u", what, (long)getpid(), ++cases);
    for (int i = 0; i < BUS_SIDES; i++) {
        world->sides[i].last = &world->sides[i].first;
    }
}

void bus_close(struct bus_side *side)
{
    coord_broker_free(side->broker, false);
    side->broker = NULL;
    bus_forget(side);
    side->calls = 0;
    side->absent = false;
    side->deaf = false;
}

void bus_close_world(struct bus_world *world)
{
    for (int i = 0; i < BUS_SIDES; i++) {
        bus_close(&world->sides[i]);
    }
    if (world->share.first != NULL) {
        fail_msg("something shared is left behind");
    }
}

struct bus_side *bus_open(struct bus_world *world, int i)
{
    static struct coord_uri uri; /* large */
    struct bus_side *side = &world->sides[i];
    struct coord_broker_config config = world->config;
    struct coord_error error = {.code = COORD_OK};
    assert_null(side->broker);
    assert_int_equal(coord_uri_parse(world->store->uri(), &uri, &error), COORD_OK);
    config.uri = &uri;
    config.seed = (uint64_t)getpid() << 8 | (uint64_t)i;
    config.share = world->shared ? &world->share : NULL;
    if (coord_broker_new(world->store->ops(), &config, coord_clock_now(), &side->broker, &error) !=
        COORD_OK) {
        fail_msg("%s", error.text);
    }
    return side;
}

struct bus_side *bus_join(struct bus_world *world, int i)
{
    struct bus_side *side = bus_open(world, i);
    bus_subscribe(side, world->topic);
    bus_until_up(world, side);
    return side;
}

void bus_subscribe(struct bus_side *side, const char *topic)
{
    struct coord_error error = {.code = COORD_OK};
    if (coord_broker_subscribe(side->broker, topic, coord_clock_now(), &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
}

void bus_publish(struct bus_side *side, const char *topic, const void *bytes, size_t count)
{
    struct coord_error error = {.code = COORD_OK};
    if (coord_broker_publish(side->broker, topic, bytes, count, coord_clock_now(), &error) !=
        COORD_OK) {
        fail_msg("%s", error.text);
    }
}

void bus_say(struct bus_world *world, int i, const char *text)
{
    bus_publish(&world->sides[i], world->topic, text, strlen(text));
}

struct coord_broker_status bus_status(const struct bus_side *side)
{
    struct coord_broker_status status;
    coord_broker_get_status(side->broker, &status);
    return status;
}

/* ---------------------------------------------------------------- conditions */

struct wanted {
    const struct bus_side *side;
    uint64_t count;
    enum coord_broker_drop reason;
};

static bool has_got(void *ctx)
{
    const struct wanted *wanted = ctx;
    return wanted->side->got >= wanted->count;
}

static bool has_dropped(void *ctx)
{
    const struct wanted *wanted = ctx;
    return bus_status(wanted->side).dropped[wanted->reason] >= wanted->count;
}

static bool is_up(void *ctx)
{
    return bus_status(ctx).up;
}

static bool is_down(void *ctx)
{
    return !bus_status(ctx).up;
}

static bool is_idle(void *ctx)
{
    const struct bus_side *side = ctx;
    return coord_broker_is_idle(side->broker);
}

void bus_until_got(struct bus_world *world, struct bus_side *side, size_t count)
{
    struct wanted wanted = {.side = side, .count = count};
    bus_until(world, has_got, &wanted);
}

void bus_until_dropped(struct bus_world *world, struct bus_side *side,
                       enum coord_broker_drop reason, uint64_t count)
{
    struct wanted wanted = {.side = side, .count = count, .reason = reason};
    bus_until(world, has_dropped, &wanted);
}

void bus_until_up(struct bus_world *world, struct bus_side *side)
{
    bus_until(world, is_up, side);
}

void bus_until_down(struct bus_world *world, struct bus_side *side)
{
    bus_until(world, is_down, side);
}

void bus_until_idle(struct bus_world *world, struct bus_side *side)
{
    bus_until(world, is_idle, side);
}

/* ---------------------------------------------------------------- what they have got */

const struct bus_got *bus_message(const struct bus_side *side, size_t i)
{
    const struct bus_got *got = side->first;
    while (got != NULL && i-- > 0) {
        got = got->next;
    }
    return got;
}

size_t bus_has(const struct bus_side *side, const char *text)
{
    size_t times = 0;
    for (const struct bus_got *got = side->first; got != NULL; got = got->next) {
        times += got->count == strlen(text) && memcmp(got->bytes, text, got->count) == 0 ? 1 : 0;
    }
    return times;
}

void bus_forget(struct bus_side *side)
{
    while (side->first != NULL) {
        struct bus_got *got = side->first;
        side->first = got->next;
        free(got);
    }
    side->last = &side->first;
    side->got = 0;
}
