/* SPDX-License-Identifier: MIT
 * tests/bench/bench_coordinator.c - a heartbeat with decoding, a check with nothing due, the memory
 * of a peer; each against msgpack-c's unpacking into a zone that is used again.
 */
#include "coord/coordinator.h"

#include <malloc.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 15,
    MANY = 50000
};

struct messages {
    unsigned char *bytes;
    uint32_t *start;
    size_t count;
};

static double clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now); /* others may be at work here */
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static size_t write_beat(unsigned char *out, uint64_t peer, uint64_t seq,
                         const struct coord_value *names)
{
    char id[64];
    size_t count = 0;
    uint64_t mixed = peer * UINT64_C(0x9e3779b97f4a7c15);
    snprintf(id, sizeof id, "%08llx-%04llx-4000-8000-%012llx", (unsigned long long)(mixed >> 32),
             (unsigned long long)(mixed & 0xffff), (unsigned long long)peer);
    struct coord_message message = {.type = COORD_MESSAGE_HEARTBEAT,
                                    .at_us = INT64_C(1772366400000001),
                                    .seq = seq,
                                    .in_flight_count = 3,
                                    .load_factor = 0.5,
                                    .subscriptions = *names};
    message.instance_id = coord_text(id, 36);
    message.incarnation = coord_text("0123456789abcdef0123456789abcdef", 32);
    if (coord_message_encode(&message, COORD_FORM_MSGPACK, out, 1024, &count) != COORD_OK) {
        exit(1);
    }
    return count;
}

/* One message of each peer, in the order in which they come: peer 0, `step`, two steps ... */
static struct messages make(size_t peers, size_t step, uint64_t seq)
{
    static unsigned char list[256];
    const char *names[] = {"orders-1", "payments-2", "audit-3", "mail-outbox-4"};
    struct coord_value value;
    struct messages m = {malloc(peers * 300), malloc((peers + 1) * sizeof(uint32_t)), peers};
    if (m.bytes == NULL || m.start == NULL ||
        coord_texts(names, 4, list, sizeof list, &value) != COORD_OK) {
        exit(1);
    }
    uint32_t at = 0;
    for (size_t i = 0; i < peers; i++) {
        m.start[i] = at;
        at += (uint32_t)write_beat(m.bytes + at, i * step % peers, seq, &value);
    }
    m.start[peers] = at;
    return m;
}

static void release(struct messages *m)
{
    free(m->bytes);
    free(m->start);
}

static void feed(struct coord_coordinator *c, const struct messages *m, coord_ms now)
{
    struct coord_event event;
    for (size_t at = 0; at < m->count; at++) {
        if (coord_coordinator_handle(c, COORD_MESSAGE_HEARTBEAT, m->bytes + m->start[at],
                                     m->start[at + 1] - m->start[at], now) != COORD_OK) {
            exit(1);
        }
        if (now == 1) {
            while (coord_coordinator_next_event(c, now, &event)) {
            }
        }
    }
}

static struct coord_coordinator *fresh(void)
{
    struct coord_coordinator_config config = COORD_COORDINATOR_CONFIG_INIT;
    struct coord_coordinator *c = NULL;
    config.instance_id = "bench";
    config.observer = true;
    config.peers_max = 2000000;
    if (coord_coordinator_new(&config, 1, &c, NULL) != COORD_OK) {
        exit(1);
    }
    coord_coordinator_connected(c, true, 1);
    return c;
}

/* Nanoseconds of one call, of many. */
static double unpack_round(const unsigned char *bytes, size_t count)
{
    msgpack_zone zone;
    msgpack_zone_init(&zone, 8192);
    double begin = clock_ns();
    for (int i = 0; i < MANY; i++) {
        msgpack_object object;
        size_t used = 0;
        msgpack_unpack((const char *)bytes, count, &used, &zone, &object);
        msgpack_zone_clear(&zone);
    }
    double took = (clock_ns() - begin) / MANY;
    msgpack_zone_destroy(&zone);
    return took;
}

/* `low` are the last four bytes of the seq, which rises. */
static double handle_round(struct coord_coordinator *c, unsigned char *bytes, size_t count,
                           unsigned char *low, uint64_t *seq)
{
    double begin = clock_ns();
    for (int i = 0; i < MANY; i++) {
        uint64_t number = ++*seq;
        for (unsigned at = 0; at < 4; at++) {
            low[at] = (unsigned char)(number >> (24 - at * 8));
        }
        if (coord_coordinator_handle(c, COORD_MESSAGE_HEARTBEAT, bytes, count, 2) != COORD_OK) {
            exit(1);
        }
    }
    return (clock_ns() - begin) / MANY;
}

/* One message over and over, but for its seq, and msgpack-c with the same bytes: in turns, as what
 * else the machine does is then the same for both. */
static double handle_hot(struct coord_coordinator *c, double *floor)
{
    static uint64_t seq = UINT64_C(1) << 40;
    static unsigned char list[256];
    static unsigned char bytes[1024];
    const char *names[] = {"orders-1", "payments-2", "audit-3", "mail-outbox-4"};
    struct coord_value value;
    double best = 1e18;
    if (coord_texts(names, 4, list, sizeof list, &value) != COORD_OK) {
        exit(1);
    }
    size_t count = write_beat(bytes, 7, seq, &value);
    unsigned char *low = memmem(bytes, count, "\xa3seq\xcf", 5);
    low += 5 + 4;
    *floor = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double unpacked = unpack_round(bytes, count);
        double handled = handle_round(c, bytes, count, low, &seq);
        *floor = unpacked < *floor ? unpacked : *floor;
        best = handled < best ? handled : best;
    }
    return best;
}

/* ---- writing ---- */

struct fixed {
    char bytes[1024];
    size_t used;
};

static int put(void *ctx, const char *bytes, size_t count)
{
    struct fixed *out = ctx;
    if (count > sizeof out->bytes - out->used) {
        return -1;
    }
    memcpy(out->bytes + out->used, bytes, count);
    out->used += count;
    return 0;
}

static void pack_text(msgpack_packer *pack, const char *text)
{
    msgpack_pack_str_with_body(pack, text, strlen(text));
}

/* The same heartbeat by msgpack-c alone, its time written before. */
static void pack_by_hand(struct fixed *out, const char *id, const char *time, uint64_t seq)
{
    static const char *const names[] = {"orders-1", "payments-2", "audit-3", "mail-outbox-4"};
    msgpack_packer pack;
    out->used = 0;
    msgpack_packer_init(&pack, out, put);
    msgpack_pack_map(&pack, 8);
    pack_text(&pack, "instance_id");
    pack_text(&pack, id);
    pack_text(&pack, "timestamp");
    pack_text(&pack, time);
    pack_text(&pack, "subscriptions");
    msgpack_pack_array(&pack, 4);
    for (unsigned i = 0; i < 4; i++) {
        pack_text(&pack, names[i]);
    }
    pack_text(&pack, "in_flight_count");
    msgpack_pack_int64(&pack, 3);
    pack_text(&pack, "is_leader");
    msgpack_pack_false(&pack);
    pack_text(&pack, "load_factor");
    msgpack_pack_double(&pack, 0.5);
    pack_text(&pack, "incarnation");
    pack_text(&pack, "0123456789abcdef0123456789abcdef");
    pack_text(&pack, "seq");
    msgpack_pack_uint64(&pack, seq);
}

/* Writing one, with its time, against msgpack-c without that; in turns. */
static void measure_writing(void)
{
    static struct fixed fixed;
    static unsigned char list[256];
    static unsigned char bytes[1024];
    const char *names[] = {"orders-1", "payments-2", "audit-3", "mail-outbox-4"};
    const char *id = "01234567-89ab-4000-8000-0123456789ab";
    struct coord_value value;
    double best[2] = {1e18, 1e18};
    if (coord_texts(names, 4, list, sizeof list, &value) != COORD_OK) {
        exit(1);
    }
    struct coord_message message = {.type = COORD_MESSAGE_HEARTBEAT,
                                    .in_flight_count = 3,
                                    .load_factor = 0.5,
                                    .subscriptions = value};
    message.instance_id = coord_text(id, 36);
    message.incarnation = coord_text("0123456789abcdef0123456789abcdef", 32);
    const size_t before = mallinfo2().uordblks;
    for (int round = 0; round < ROUNDS; round++) {
        size_t count = 0;
        double begin = clock_ns();
        for (uint64_t i = 0; i < MANY; i++) {
            pack_by_hand(&fixed, id, "2026-03-01T12:00:00.000001+00:00", i + 1);
        }
        const double packed = (clock_ns() - begin) / MANY;
        begin = clock_ns();
        for (uint64_t i = 0; i < MANY; i++) {
            message.seq = i + 1;
            message.at_us = INT64_C(1772366400000000) + (int64_t)i * 3750000;
            if (coord_message_encode(&message, COORD_FORM_MSGPACK, bytes, sizeof bytes, &count) !=
                COORD_OK) {
                exit(1);
            }
        }
        const double encoded = (clock_ns() - begin) / MANY;
        best[0] = packed < best[0] ? packed : best[0];
        best[1] = encoded < best[1] ? encoded : best[1];
    }
    printf("writing a heartbeat: msgpack-c into a buffer %.0f ns, with its time and its check %.0f "
           "ns (%.2fx), %zd B allocated\n",
           best[0], best[1], best[1] / best[0], (ssize_t)(mallinfo2().uordblks - before));
}

/* ---- time ---- */

static double check_idle(struct coord_coordinator *c)
{
    struct coord_event event;
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = clock_ns();
        for (int i = 0; i < 100000; i++) {
            if (coord_coordinator_next_event(c, 2, &event)) {
                exit(1);
            }
            (void)coord_coordinator_deadline(c);
        }
        double took = (clock_ns() - begin) / 100000;
        best = took < best ? took : best;
    }
    return best;
}

static void measure(size_t peers)
{
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    struct coord_coordinator *empty = fresh();
    size_t base = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    coord_coordinator_free(empty);
    struct messages first = make(peers, 1, 1);
    before = mallinfo2().uordblks + mallinfo2().hblkhd;
    struct coord_coordinator *c = fresh();
    feed(c, &first, 1);
    double each =
        (double)(mallinfo2().uordblks + mallinfo2().hblkhd - before - base) / (double)peers;
    release(&first);
    double cold = 1e18;
    for (uint64_t round = 0; round < 3; round++) {
        struct messages next = make(peers, 7919, 2 + round);
        double begin = clock_ns();
        feed(c, &next, 2);
        double took = (clock_ns() - begin) / (double)peers;
        cold = took < cold ? took : cold;
        release(&next);
    }
    size_t allocated = mallinfo2().uordblks;
    double floor = 0;
    double hot = handle_hot(c, &floor);
    printf("heartbeat %zu peers: unpack %.0f ns, hot %.0f ns (%.2fx), cold %.0f ns (%.2fx), idle "
           "check %.0f ns, %.1f B a peer, %zd B allocated by known peers\n",
           peers, floor, hot, hot / floor, cold, cold / floor, check_idle(c), each,
           (ssize_t)(mallinfo2().uordblks - allocated));
    coord_coordinator_free(c);
}

/* So many fall silent at once, of so many. @return ns for all of them. */
static double silence_round(size_t peers, size_t due)
{
    struct messages first = make(peers, 1, 1);
    struct coord_coordinator *c = fresh();
    struct coord_event event;
    feed(c, &first, 1);
    release(&first);
    struct messages again = make(peers - due, 1, 2);
    for (coord_ms now = 2; now < 15000; now += 3750) {
        coord_coordinator_connected(c, true, now); /* no gap in our own time */
        while (coord_coordinator_next_event(c, now, &event)) {
        }
        (void)coord_coordinator_deadline(c);
    }
    feed(c, &again, 15000);
    release(&again);
    const double begin = clock_ns();
    size_t count = 0;
    while (coord_coordinator_next_event(c, 15001, &event)) {
        count += event.kind == COORD_EVENT_PEER_SILENT ? 1 : 0;
    }
    const double took = clock_ns() - begin;
    if (count != due) {
        exit(1);
    }
    coord_coordinator_free(c);
    return took;
}

static void measure_silence(size_t peers, size_t due)
{
    double best = 1e18;
    for (int round = 0; round < 5; round++) {
        const double took = silence_round(peers, due);
        best = took < best ? took : best;
    }
    printf("silence: %zu of %zu due: %.1f us, %.0f ns each\n", due, peers, best / 1000,
           best / (double)due);
}

int main(void)
{
    measure_writing();
    measure_silence(100000, 100);
    measure(10000);
    measure(100000);
    measure(1000000);
    return 0;
}
