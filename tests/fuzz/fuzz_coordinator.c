/* SPDX-License-Identifier: MIT
 * tests/fuzz/fuzz_coordinator.c - a coordinator driven by bytes, and what always has to hold.
 */
#include "coord/coordinator.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    T = 1000,
    I = 200
};

#define WALL INT64_C(1772366400000000)

struct driver {
    struct coord_coordinator *c;
    const uint8_t *at;
    const uint8_t *end;
    coord_ms now;
    bool led;
};

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static uint8_t next(struct driver *d)
{
    return d->at < d->end ? *d->at++ : 0;
}

static unsigned char list_bytes[256];

/* Up to three of four names. */
static struct coord_value list(struct driver *d)
{
    static const char *const names[] = {"x", "y", "zz", "w"};
    const char *chosen[3];
    struct coord_value value = {.kind = COORD_KIND_ABSENT};
    uint8_t bits = next(d);
    size_t count = bits % 4;
    for (size_t i = 0; i < count; i++) {
        chosen[i] = names[(bits >> (2 + 2 * i)) % 4];
    }
    must(coord_texts(chosen, count, list_bytes, sizeof list_bytes, &value) == COORD_OK);
    return value;
}

/* One of four ids, one of them our own, and one of three incarnations, or none. */
static void from(struct driver *d, struct coord_message *message)
{
    static const char *const ids[] = {"me", "a", "b",
                                      "an id that is too long to lie in the record of a peer"};
    static const char *const incarnations[] = {"i", "11111111111111111111111111111111",
                                               "22222222222222222222222222222222"};
    uint8_t who = next(d);
    memset(message, 0, sizeof *message);
    message->instance_id = coord_text(ids[who % 4], strlen(ids[who % 4]));
    if (who / 4 % 4 < 3) {
        const char *text = incarnations[who / 4 % 4];
        message->incarnation = coord_text(text, strlen(text));
    }
    message->seq = who / 16 % 2 != 0 ? next(d) : 0;
    message->at_us = WALL + next(d) * INT64_C(100000);
}

static void deliver(struct driver *d, const struct coord_message *message)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    size_t count = 0;
    enum coord_form form = next(d) % 2 != 0 ? COORD_FORM_JSON : COORD_FORM_MSGPACK;
    if (coord_message_encode(message, form, bytes, sizeof bytes, &count) == COORD_OK) {
        enum coord_err err = coord_coordinator_handle(d->c, message->type, bytes, count, d->now);
        must(err == COORD_OK || err == COORD_E_BUSY || err == COORD_E_BAD_MESSAGE);
    }
}

static void heartbeat(struct driver *d)
{
    struct coord_message message;
    from(d, &message);
    message.type = COORD_MESSAGE_HEARTBEAT;
    message.subscriptions = list(d);
    message.leaving = next(d) % 4 == 0;
    message.remaining = next(d) * 20U;
    deliver(d, &message);
}

static void notice(struct driver *d)
{
    struct coord_message message;
    from(d, &message);
    message.type = COORD_MESSAGE_SHUTDOWN;
    message.subscriptions = list(d);
    message.completion_us = message.at_us + next(d) * INT64_C(20000);
    deliver(d, &message);
}

static void finished(struct driver *d)
{
    struct coord_message message;
    from(d, &message);
    message.type = COORD_MESSAGE_FINISHED;
    message.subscriptions = list(d);
    deliver(d, &message);
}

static void orphans(struct driver *d)
{
    static unsigned char buffer[4096];
    struct coord_message message;
    struct coord_report_wire wire = {.fence = next(d), .seq = next(d), .since_us = WALL};
    struct coord_writer writer;
    size_t used = 0;
    from(d, &message);
    message.type = COORD_MESSAGE_ORPHANS;
    message.kind = (enum coord_orphans_kind)(next(d) % 5);
    message.fence = wire.fence;
    message.sent_at_us = message.at_us;
    message.judging = next(d) % 2 != 0;
    message.heard = next(d) * 50U;
    memset(message.last, 0xff, sizeof message.last);
    wire.id[0] = next(d) % 4;
    wire.instance_id = coord_text("a", 1);
    wire.subscription = coord_text("x", 1);
    wire.since_us = message.at_us - next(d) * INT64_C(100000);
    coord_writer_begin(&writer, COORD_FORM_MSGPACK, buffer, sizeof buffer);
    coord_write_array(&writer, 1);
    coord_report_write(&writer, &wire);
    coord_write_end(&writer);
    must(coord_writer_finish(&writer, &used) == COORD_OK);
    buffer[used] = 0;
    /* The array alone is looked at through a map around it. */
    static unsigned char wrapped[4200];
    memcpy(wrapped, "\x81\xa1r", 3);
    memcpy(wrapped + 3, buffer, used);
    struct coord_value map;
    struct coord_walk walk;
    must(coord_view(wrapped, used + 3, &map) == COORD_FAULT_NONE);
    coord_walk_begin(&map, &walk);
    must(coord_walk_next(&walk, NULL, &message.reports));
    deliver(d, &message);
}

/* What it sends may come back. */
static void drain(struct driver *d, bool echo)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_event event;
    struct coord_outgoing out;
    for (unsigned i = 0; coord_coordinator_next_event(d->c, d->now, &event); i++) {
        must(i < 100000);
    }
    for (unsigned i = 0; coord_coordinator_next_message(d->c, d->now, WALL, &out); i++) {
        must(i < 100000);
        if (echo) {
            memcpy(bytes, out.bytes, out.count);
            must(coord_coordinator_handle(d->c, out.type, bytes, out.count, d->now) == COORD_OK);
            while (coord_coordinator_next_event(d->c, d->now, &event)) {
            }
        }
    }
}

static void check(struct driver *d)
{
    struct coord_coordinator_counts counts = coord_coordinator_counts(d->c);
    struct coord_peer peer;
    struct coord_orphan orphan;
    uint32_t at = 0;
    uint32_t peers = 0;
    uint32_t healthy = 0;
    uint32_t open = 0;
    while (coord_coordinator_next_peer(d->c, &at, &peer)) {
        peers++;
        healthy += peer.status == COORD_PEER_HEALTHY ? 1 : 0;
    }
    must(peers == counts.peers && healthy == counts.healthy);
    for (at = 0; coord_coordinator_next_orphan(d->c, &at, &orphan);) {
        must(orphan.open);
        open++;
    }
    must(open == counts.orphans);
}

static void act(struct driver *d)
{
    uint8_t op = next(d);
    switch (op % 12) {
    case 0:
    case 1:
    case 2:
        heartbeat(d);
        break;
    case 3:
        notice(d);
        break;
    case 4:
        finished(d);
        break;
    case 5:
        orphans(d);
        break;
    case 6:
        d->now += next(d) * 8U;
        break;
    case 7: {
        coord_ms at = coord_coordinator_deadline(d->c);
        d->now = at != COORD_NEVER && at > d->now ? at : d->now + 1;
        break;
    }
    case 8:
        d->led = !d->led;
        coord_coordinator_lead(d->c, d->led, next(d), d->now + next(d) * 100U, d->now);
        break;
    case 9: {
        struct coord_value names = list(d);
        must(coord_coordinator_serve(d->c, &names, 0, 0.0) == COORD_OK);
        if (op / 12 % 4 == 0) {
            coord_coordinator_leave(d->c, COORD_INTENT_GRACEFUL, d->now + next(d) * 20U, d->now);
        } else if (op / 12 % 4 == 1) {
            coord_coordinator_withdraw(d->c, d->now);
        } else if (op / 12 % 16 == 2) {
            coord_coordinator_finish(d->c, d->now);
        }
        break;
    }
    case 10:
        (void)coord_coordinator_remove_peer(d->c, next(d) % 2 != 0 ? "a" : "b", 1);
        break;
    default:
        drain(d, op / 12 % 4 != 0);
        /* Nothing is due that was not done. */
        drain(d, true);
        must(coord_coordinator_deadline(d->c) > d->now);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct coord_coordinator_config config = COORD_COORDINATOR_CONFIG_INIT;
    struct driver d = {NULL, data, data + size, 100000, false};
    uint8_t first = next(&d);
    config.instance_id = "me";
    memset(config.incarnation, 0x11, sizeof config.incarnation);
    config.timeout = T;
    config.interval = I;
    config.tick = 10;
    config.observer = first % 4 == 0;
    config.heartbeat_events = first / 4 % 2 != 0;
    config.peers_max = 6;
    config.incarnations_max = 3;
    config.subscriptions_max = 3;
    config.reports_max = 5;
    must(coord_coordinator_new(&config, d.now, &d.c, NULL) == COORD_OK);
    coord_coordinator_connected(d.c, true, d.now);
    while (d.at < d.end) {
        act(&d);
        check(&d);
    }
    drain(&d, true);
    check(&d);
    coord_coordinator_free(d.c);
    return 0;
}
