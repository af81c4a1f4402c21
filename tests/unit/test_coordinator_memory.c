/* SPDX-License-Identifier: MIT
 * tests/unit/test_coordinator_memory.c - a coordinator for which memory runs out: at each
 * allocation once, then at every third. It refuses, counts, and loses nothing that it had. And how
 * often it asks for memory where nothing is new: never.
 *
 * Under a sanitizer, which has an allocator of its own, the scenes are played without failures, and
 * nothing is counted.
 */
#include "tests/unit/fleet.h"

#include "coord/compatible.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_ALLOCATOR 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_ALLOCATOR 0
#endif
#endif
#ifndef OWN_ALLOCATOR
#define OWN_ALLOCATOR 1
#endif

static bool armed;      /* allocations are counted, and some fail */
static unsigned asked;  /* while it is */
static unsigned fails;  /* which of them; 0: none */
static unsigned beyond; /* ... and every so manieth behind it; 0: none */
static long living;     /* given and not given back */

#if OWN_ALLOCATOR
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t each);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *old);

static bool refuses(void)
{
    if (!armed) {
        return false;
    }
    asked++;
    return asked == fails || (beyond > 0 && asked > fails && asked % beyond == 0);
}

static void *given(void *memory)
{
    living += armed && memory != NULL ? 1 : 0;
    return memory;
}

void *malloc(size_t bytes)
{
    return refuses() ? NULL : given(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t each)
{
    return refuses() ? NULL : given(__libc_calloc(count, each));
}

void *realloc(void *old, size_t bytes)
{
    if (refuses()) {
        return NULL;
    }
    return old == NULL ? given(__libc_malloc(bytes)) : __libc_realloc(old, bytes);
}

void free(void *old)
{
    living -= armed && old != NULL ? 1 : 0;
    __libc_free(old);
}
#endif

/* ---- scenes ---- */

static void tend(struct coord_coordinator *c, coord_ms now)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_event event;
    struct coord_outgoing out;
    while (coord_coordinator_next_event(c, now, &event)) {
        assert_int_not_equal(event.kind, 0);
    }
    while (coord_coordinator_next_message(c, now, WALL, &out)) {
        const size_t count = out.count;
        memcpy(bytes, out.bytes, count);
        assert_int_equal(coord_coordinator_handle(c, out.type, bytes, count, now), COORD_OK);
        while (coord_coordinator_next_event(c, now, &event)) {
            assert_int_not_equal(event.kind, 0);
        }
    }
    assert_true(coord_coordinator_deadline(c) > now);
}

/* A message of a small fleet in which everything happens, and where some have no seq. */
static void hear_one(struct coord_coordinator *c, unsigned step, coord_ms now)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    static unsigned char list[256];
    const unsigned who = step * 7 % 11;
    char id[80];
    char work[32];
    char start[8];
    const char *names[] = {work, "common", work};
    size_t count = 0;
    snprintf(id, sizeof id,
             who % 4 == 0 ? "w%u" : "an-identity-that-does-not-fit-into-its-record-%u", who);
    snprintf(work, sizeof work, "job-%u-%u", who, step % 5);
    snprintf(start, sizeof start, "i%u", step % 3);
    struct coord_message m = beat(id, who % 5 != 0 ? start : NULL, who % 5 != 0 ? step + 1 : 0);
    m.at_us = WALL + step;
    m.leaving = step % 9 == 0;
    m.remaining = step * 13 % 500;
    if (step % 8 == 1) {
        m.type = COORD_MESSAGE_SHUTDOWN;
        m.completion_us = m.at_us + 300000;
    } else if (step % 8 == 2 && who % 5 != 0) {
        m.type = COORD_MESSAGE_FINISHED;
    }
    assert_int_equal(coord_texts(names, step % 6 > 0 ? 3 : 0, list, sizeof list, &m.subscriptions),
                     COORD_OK);
    assert_int_equal(coord_message_encode(&m, COORD_FORM_MSGPACK, bytes, sizeof bytes, &count),
                     COORD_OK);
    assert_int_equal(coord_coordinator_handle(c, m.type, bytes, count, now), COORD_OK);
}

static void play_strict(void)
{
    static unsigned char list[64];
    struct coord_coordinator_config config = config_of("me", 3);
    struct coord_coordinator *c = NULL;
    struct coord_value own;
    const char *names[] = {"mine"};
    coord_ms now = START;
    config.incarnations_max = 3;
    if (coord_coordinator_new(&config, now, &c, NULL) != COORD_OK) {
        return;
    }
    assert_int_equal(coord_texts(names, 1, list, sizeof list, &own), COORD_OK);
    COORD_IGNORE(coord_coordinator_serve(c, &own, 0, 0.0) != COORD_OK, "it goes on without");
    for (unsigned step = 0; step < 150; step++) {
        now += step % 60 == 59 ? 12 * T : 20;
        tend(c, now);
        hear_one(c, step, now);
        if (step % 40 == 0) {
            coord_coordinator_lead(c, step % 80 == 0, step + 1, COORD_NEVER, now);
        }
        tend(c, now);
    }
    coord_coordinator_free(c);
}

static void play_compatible(void)
{
    struct coord_compatible_config config = COORD_COMPATIBLE_CONFIG_INIT;
    struct coord_compatible *c = NULL;
    config.instance_id = "me";
    config.instance_id_bytes = 2;
    if (coord_compatible_new(&config, &c) != COORD_OK) {
        return;
    }
    for (unsigned i = 0; i < 40; i++) {
        char text[128];
        const int length = snprintf(text, sizeof text,
                                    "{\"instance_id\":\"w%u\",\"timestamp\":"
                                    "\"2026-03-01T12:00:00+00:00\"}",
                                    i % 25);
        const enum coord_err rc = coord_compatible_handle_heartbeat(c, text, (size_t)length, WALL);
        assert_true(rc == COORD_OK || rc == COORD_E_NO_MEMORY);
        const struct coord_value third = coord_text("w3", 2);
        COORD_IGNORE(i % 7 == 0 && coord_compatible_remove_peer(c, &third), "there or not");
    }
    coord_compatible_free(c);
}

/* @return how often it asked. */
static unsigned play(unsigned at, unsigned every, void (*scene)(void))
{
    asked = 0;
    living = 0;
    fails = at;
    beyond = every;
    armed = true;
    scene();
    armed = false;
    assert_int_equal(living, 0);
    return asked;
}

static void fail_everywhere(void (*scene)(void))
{
    const unsigned all = play(0, 0, scene);
    assert_true(all > 20 || OWN_ALLOCATOR == 0);
    for (unsigned at = 1; at <= all; at++) {
        (void)play(at, 0, scene);
    }
    for (unsigned at = 1; at <= all; at += 5) {
        (void)play(at, 3, scene);
    }
}

static void test_coordinator_memory__each_failure_is_survived_by_strict(void **state)
{
    (void)state;
    fail_everywhere(play_strict);
}

static void test_coordinator_memory__each_failure_is_survived_by_compatible(void **state)
{
    (void)state;
    fail_everywhere(play_compatible);
}

/* ---- and where nothing is new ---- */

enum {
    PEERS = 25,
    BEATS = 1000
};

/* A beat of one of the peers, whose list of work is the same each time. @return its bytes. */
static size_t write_beat(unsigned number, unsigned char *bytes)
{
    static unsigned char list[64];
    const unsigned who = number % PEERS;
    char id[80];
    char work[32];
    const char *names[] = {work, "common"};
    size_t count = 0;
    snprintf(id, sizeof id,
             who % 4 == 0 ? "w%u" : "an-identity-that-does-not-fit-into-its-record-%u", who);
    snprintf(work, sizeof work, "job-%u", who);
    /* Some are of the seed library, which has neither. */
    struct coord_message m = beat(id, who % 5 != 0 ? "i1" : NULL, who % 5 != 0 ? number + 1 : 0);
    m.at_us = WALL + number;
    assert_int_equal(coord_texts(names, 2, list, sizeof list, &m.subscriptions), COORD_OK);
    assert_int_equal(coord_message_encode(&m, COORD_FORM_MSGPACK, bytes, COORD_MESSAGE_MAX, &count),
                     COORD_OK);
    return count;
}

/* @return how often it asked for memory, once it knew them all. */
static unsigned hear_known_peers(bool leads)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_coordinator_config config = config_of("me", 3);
    struct coord_coordinator *c = NULL;
    struct coord_event event;
    coord_ms now = START;
    assert_int_equal(coord_coordinator_new(&config, now, &c, NULL), COORD_OK);
    coord_coordinator_lead(c, leads, 1, COORD_NEVER, now);
    asked = 0;
    fails = 0;
    beyond = 0;
    unsigned learning = 0;
    for (unsigned number = 0; number < 2 * PEERS + BEATS; number++) {
        const size_t count = write_beat(number, bytes);
        now += I / PEERS;
        learning = number == 2 * PEERS ? asked : learning;
        armed = true;
        const enum coord_err rc =
            coord_coordinator_handle(c, COORD_MESSAGE_HEARTBEAT, bytes, count, now);
        const bool news = coord_coordinator_next_event(c, now, &event);
        const coord_ms next = coord_coordinator_deadline(c);
        armed = false;
        assert_int_equal(rc, COORD_OK);
        assert_true(next > 0);
        assert_true(!news || number < 2 * PEERS);
        tend(c, now);
    }
    assert_true(learning > 10 || OWN_ALLOCATOR == 0);
    coord_coordinator_free(c);
    return asked - learning;
}

static void test_coordinator_memory__heartbeats_of_known_peers_ask_for_none(void **state)
{
    (void)state;
    assert_int_equal(hear_known_peers(false), 0);
    assert_int_equal(hear_known_peers(true), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coordinator_memory__each_failure_is_survived_by_strict),
        cmocka_unit_test(test_coordinator_memory__each_failure_is_survived_by_compatible),
        cmocka_unit_test(test_coordinator_memory__heartbeats_of_known_peers_ask_for_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
