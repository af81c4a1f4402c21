/* SPDX-License-Identifier: MIT
 * tests/contract/broker_weather.c - see broker_weather.h.
 */
#include "tests/contract/broker_weather.h"

#include <dirent.h>

enum {
    SIDES = 2,
    WHILE = 2000 /* ms: many tries of a connection */
};

struct said {
    unsigned warnings;
    unsigned good_news;
    enum coord_err last;
    char text[512];
};

static void hear(void *ctx, const struct coord_log_record *record)
{
    struct said *said = ctx;
    if (record->level >= COORD_LOG_WARN) {
        said->warnings++;
        said->last = record->code;
        snprintf(said->text, sizeof said->text, "%s", record->text);
    } else if (record->level == COORD_LOG_INFO) {
        said->good_news++;
    }
}

static void listen_to(struct bus_world *world, struct said *said)
{
    world->config.log = (struct coord_log){.fn = hear, .ctx = said, .level = COORD_LOG_INFO};
}

static size_t descriptors(void)
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

void bus_weather_restarts(struct bus_world *world, void (*down)(void), void (*again)(void))
{
    struct bus_side *a = bus_join(world, 0);
    struct bus_side *b = bus_join(world, 1);
    for (size_t round = 1; round <= 3; round++) {
        bus_say(world, 0, "hello");
        bus_until_got(world, a, round);
        bus_until_got(world, b, round);
        down();
        bus_until_down(world, a);
        bus_until_down(world, b);
        assert_int_not_equal(bus_status(a).error.code, COORD_OK);
        again();
        bus_until_up(world, a);
        bus_until_up(world, b);
        assert_true(bus_status(b).ups > round);
    }
}

void bus_weather_shared(struct bus_world *world, void (*down)(void), void (*again)(void))
{
    world->shared = true;
    for (int i = 0; i < BUS_SIDES; i++) {
        bus_subscribe(bus_open(world, i), world->topic);
    }
    for (int i = 0; i < BUS_SIDES; i++) {
        bus_until_up(world, &world->sides[i]);
    }
    down();
    bus_until_down(world, &world->sides[0]);
    again();
    for (int i = 0; i < BUS_SIDES; i++) {
        bus_until_up(world, &world->sides[i]);
    }
    for (int i = 0; i < BUS_SIDES; i++) {
        bus_say(world, i, "alive");
    }
    for (int i = 0; i < BUS_SIDES; i++) {
        bus_until_got(world, &world->sides[i], BUS_SIDES);
    }
}

void bus_weather_down_at_start(struct bus_world *world, void (*again)(void))
{
    static struct said said[SIDES];
    memset(said, 0, sizeof said);
    world->config.outbox_wait = BUS_GUARD;
    for (int i = 0; i < SIDES; i++) {
        listen_to(world, &said[i]);
        bus_subscribe(bus_open(world, i), world->topic);
    }
    bus_say(world, 0, "early");
    bus_drive(world, WHILE);
    for (int i = 0; i < SIDES; i++) {
        const struct coord_broker_status status = bus_status(&world->sides[i]);
        assert_false(status.up);
        assert_int_equal(status.ups, 0);
        assert_int_equal(status.error.code, COORD_E_UNREACHABLE);
        assert_int_equal(said[i].warnings, 1);
        assert_int_equal(said[i].last, COORD_E_UNREACHABLE);
    }
    again();
    for (int i = 0; i < SIDES; i++) {
        bus_until_up(world, &world->sides[i]);
    }
    bus_say(world, 0, "hello");
    for (int i = 0; i < SIDES; i++) {
        while (bus_has(&world->sides[i], "hello") == 0) {
            bus_until_got(world, &world->sides[i], world->sides[i].got + 1);
        }
        assert_true(said[i].good_news >= 1);
        assert_int_equal(bus_status(&world->sides[i]).error.code, COORD_OK);
    }
}

struct expected {
    struct bus_side *side;
    enum coord_err code;
};

static bool has_failed(void *ctx)
{
    const struct expected *expected = ctx;
    return bus_status(expected->side).error.code == expected->code;
}

void bus_weather_refused(struct bus_world *world, enum coord_err code, const char *cure,
                         const char *secret)
{
    static struct said said;
    const size_t before = descriptors();
    memset(&said, 0, sizeof said);
    listen_to(world, &said);
    struct expected expected = {.side = bus_open(world, 0), .code = code};
    bus_subscribe(expected.side, world->topic);
    bus_say(world, 0, "refused");
    bus_until(world, has_failed, &expected);
    bus_drive(world, WHILE);
    const struct coord_broker_status status = bus_status(expected.side);
    assert_false(status.up);
    assert_int_equal(status.error.code, code);
    if (strstr(status.error.text, cure) == NULL ||
        (secret != NULL && strstr(status.error.text, secret) != NULL)) {
        fail_msg("%s", status.error.text);
    }
    assert_in_range(said.warnings, 1, 2); /* by the bus, and by a connection of its own */
    assert_int_equal(said.last, code);
    assert_true(secret == NULL || strstr(said.text, secret) == NULL);
    bus_close(expected.side);
    assert_int_equal(descriptors(), before);
}
