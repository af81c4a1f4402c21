/* SPDX-License-Identifier: MIT
 * tests/unit/test_message.c - messages both ways, and everything that is refused, by its reason.
 */
#include "coord/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define TIME "\"2026-03-01T12:00:00+00:00\""
#define BEAT "{\"instance_id\":\"w\",\"timestamp\":" TIME

static enum coord_message_fault fault_of(enum coord_message_type type, const char *json)
{
    struct coord_message message;
    return coord_message_decode(type, json, strlen(json), &message);
}

static void expect_fault(enum coord_message_fault fault, const char *json)
{
    enum coord_message_fault found = fault_of(COORD_MESSAGE_HEARTBEAT, json);
    if (found != fault) {
        print_message("%s\n", json);
    }
    assert_string_equal(coord_fault_name(found), coord_fault_name(fault));
}

/* Bytes that end where the next page cannot be touched: one byte too far ends the test. */
struct guarded {
    unsigned char *pages;
    size_t page;
};

static struct guarded guard(void)
{
    struct guarded g = {NULL, (size_t)sysconf(_SC_PAGESIZE)};
    void *pages =
        mmap(NULL, 2 * g.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    g.pages = pages;
    assert_int_equal(mprotect(g.pages + g.page, g.page, PROT_NONE), 0);
    return g;
}

static void test_message__a_heartbeat_comes_back_as_it_was(void **state)
{
    (void)state;
    static unsigned char bytes[COORD_MESSAGE_MAX];
    static unsigned char list[256];
    const char *names[] = {"orders", "\xc3\xa9\xf0\x9f\x98\x80\"\\\n"};
    struct coord_message out = {.type = COORD_MESSAGE_HEARTBEAT,
                                .at_us = INT64_C(1772366400000001),
                                .seq = 9,
                                .fence = UINT64_MAX,
                                .in_flight_count = -3,
                                .load_factor = 0.1,
                                .is_leader = true,
                                .leaving = true,
                                .intent = COORD_INTENT_PREEMPTION,
                                .remaining = 120000};
    out.instance_id = coord_text("w-1", 3);
    out.incarnation = coord_text("i", 1);
    assert_int_equal(coord_texts(names, 2, list, sizeof list, &out.subscriptions), COORD_OK);
    for (int form = 0; form <= 1; form++) {
        struct coord_message in;
        size_t count = 0;
        assert_int_equal(
            coord_message_encode(&out, (enum coord_form)form, bytes, sizeof bytes, &count),
            COORD_OK);
        assert_int_equal(coord_message_decode(COORD_MESSAGE_HEARTBEAT, bytes, count, &in),
                         COORD_FAULT_NONE);
        assert_true(coord_view_is(&in.instance_id, "w-1", 3));
        assert_true(coord_view_is(&in.incarnation, "i", 1));
        assert_int_equal(in.at_us, out.at_us);
        assert_int_equal(in.seq, 9);
        assert_true(in.fence == UINT64_MAX);
        assert_int_equal(in.in_flight_count, -3);
        assert_true(in.load_factor > 0.0999 && in.load_factor < 0.1001);
        assert_true(in.is_leader && in.leaving);
        assert_int_equal(in.intent, COORD_INTENT_PREEMPTION);
        assert_int_equal(in.remaining, 120000);
        struct coord_walk walk;
        struct coord_value name;
        coord_walk_begin(&in.subscriptions, &walk);
        for (int i = 0; i < 2; i++) {
            assert_true(coord_walk_next(&walk, NULL, &name));
            assert_true(coord_view_is(&name, names[i], strlen(names[i])));
        }
        assert_false(coord_walk_next(&walk, NULL, &name));
    }
}

static void test_message__our_own_always_has_six_digits_and_the_seeds_keys_first(void **state)
{
    (void)state;
    unsigned char bytes[512];
    size_t count = 0;
    struct coord_message out = {.type = COORD_MESSAGE_SHUTDOWN,
                                .at_us = INT64_C(1772366400000000),
                                .completion_us = INT64_C(1772366430000000)};
    out.instance_id = coord_text("w", 1);
    assert_int_equal(coord_message_encode(&out, COORD_FORM_JSON, bytes, sizeof bytes - 1, &count),
                     COORD_OK);
    bytes[count] = '\0';
    assert_string_equal((const char *)bytes,
                        "{\"instance_id\":\"w\",\"intent\":\"graceful\","
                        "\"initiated_at\":\"2026-03-01T12:00:00.000000+00:00\","
                        "\"expected_completion_at\":\"2026-03-01T12:00:30.000000+00:00\","
                        "\"subscriptions\":[],\"in_flight_count\":0,\"metadata\":{}}");
    assert_int_equal(coord_message_encode(&out, COORD_FORM_JSON, bytes, 40, &count), COORD_E_LIMIT);
}

static void test_message__faults_are_told_apart(void **state)
{
    (void)state;
    expect_fault(COORD_FAULT_NONE, BEAT "}");
    expect_fault(COORD_FAULT_TRUNCATED, "");
    expect_fault(COORD_FAULT_TRUNCATED, BEAT);
    expect_fault(COORD_FAULT_TRAILING, BEAT "} x");
    expect_fault(COORD_FAULT_SYNTAX, "{\"a\" 1}");
    expect_fault(COORD_FAULT_NOT_A_MAP, "[1]");
    expect_fault(COORD_FAULT_NOT_A_MAP, "\x01");
    expect_fault(COORD_FAULT_MISSING_KEY, "{}");
    expect_fault(COORD_FAULT_WRONG_TYPE, BEAT ",\"subscriptions\":\"abc\"}");
    expect_fault(COORD_FAULT_WRONG_TYPE, BEAT ",\"in_flight_count\":\"3\"}");
    expect_fault(COORD_FAULT_WRONG_TYPE, BEAT ",\"is_leader\":1}");
    expect_fault(COORD_FAULT_BAD_ID, "{\"instance_id\":\"\",\"timestamp\":" TIME "}");
    expect_fault(COORD_FAULT_BAD_ID, BEAT ",\"subscriptions\":[\"\"]}");
    expect_fault(COORD_FAULT_BAD_TIME, "{\"instance_id\":\"w\",\"timestamp\":\"nope\"}");
    expect_fault(COORD_FAULT_NAIVE_TIME,
                 "{\"instance_id\":\"w\",\"timestamp\":\"2026-03-01T12:00:00\"}");
    expect_fault(COORD_FAULT_BAD_INTENT,
                 BEAT ",\"leaving\":{\"intent\":\"tired\",\"remaining_ms\":1}}");
    expect_fault(COORD_FAULT_OUT_OF_RANGE, BEAT ",\"seq\":-1}");
    expect_fault(COORD_FAULT_OUT_OF_RANGE, BEAT ",\"in_flight_count\":99999999999999999999999}");
    expect_fault(COORD_FAULT_BAD_NUMBER, BEAT ",\"load_factor\":NaN}");
    expect_fault(COORD_FAULT_BAD_NUMBER, BEAT ",\"load_factor\":1e999}");
    expect_fault(COORD_FAULT_BAD_TEXT, BEAT ",\"x\":\"\\ud800\"}");
    expect_fault(COORD_FAULT_BAD_TEXT, BEAT ",\"x\":\"\xff\"}");
    assert_int_equal(fault_of(COORD_MESSAGE_ORPHANS,
                              "{\"kind\":\"eaten\",\"instance_id\":\"w\",\"fence\":1,"
                              "\"sent_at\":" TIME ",\"reports\":[]}"),
                     COORD_FAULT_BAD_WORD);
}

static void test_message__unknown_keys_are_skipped_and_the_last_of_two_counts(void **state)
{
    (void)state;
    struct coord_message message;
    static const char json[] = "{\"x\":[[1,{\"y\":null}]],\"instance_id\":\"a\",\"timestamp\":" TIME
                               ",\"instance\\u005fid\":\"b\",\"in_flight_count\":null}";
    assert_int_equal(coord_message_decode(COORD_MESSAGE_HEARTBEAT, json, strlen(json), &message),
                     COORD_FAULT_NONE);
    assert_true(coord_view_is(&message.instance_id, "b", 1));
}

static void test_message__depth_count_and_length_are_bounded(void **state)
{
    (void)state;
    char deep[64];
    memset(deep, 0x91, sizeof deep);
    deep[0] = (char)0x81;
    deep[1] = (char)0xa1;
    deep[2] = 'x';
    struct coord_message message;
    assert_int_equal(coord_message_decode(COORD_MESSAGE_HEARTBEAT, deep, sizeof deep, &message),
                     COORD_FAULT_DEPTH);
    char *wide = malloc(COORD_MESSAGE_MAX + 1);
    assert_non_null(wide);
    memset(wide, 1, COORD_MESSAGE_MAX + 1);
    memcpy(wide, "\x81\xa1x\xdc\x80\x00", 6);
    assert_int_equal(coord_message_decode(COORD_MESSAGE_HEARTBEAT, wide, 6 + 0x8000, &message),
                     COORD_FAULT_COUNT);
    assert_int_equal(
        coord_message_decode(COORD_MESSAGE_HEARTBEAT, wide, COORD_MESSAGE_MAX + 1, &message),
        COORD_FAULT_TOO_LONG);
    free(wide);
}

static void test_message__a_declared_length_is_not_trusted(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t count;
    } inputs[] = {{"\xdd\x01\x00\x00\x00", 5},          {"\xdf\x10\x00\x00\x00", 5},
                  {"\x81\xa1x\xdb\xff\xff\xff\xff", 8}, {"\x81\xa1x\xc6\xff\xff\xff\xff", 8},
                  {"\x81\xdb\xff\xff\xff\xff", 6},      {"\x8f", 1}};
    struct coord_message message;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        enum coord_message_fault fault = coord_message_decode(
            COORD_MESSAGE_HEARTBEAT, inputs[i].bytes, inputs[i].count, &message);
        assert_true(fault == COORD_FAULT_TRUNCATED || fault == COORD_FAULT_NOT_A_MAP);
    }
}

/* Each prefix of a good message is refused, and nothing behind it is looked at. */
static void test_message__no_byte_behind_the_end_is_read(void **state)
{
    (void)state;
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct guarded g = guard();
    struct coord_message out = {.type = COORD_MESSAGE_HEARTBEAT, .seq = 1, .load_factor = 0.5};
    out.instance_id = coord_text("w-\xc3\xa9", 4);
    for (int form = 0; form <= 1; form++) {
        size_t count = 0;
        assert_int_equal(
            coord_message_encode(&out, (enum coord_form)form, bytes, sizeof bytes, &count),
            COORD_OK);
        for (size_t length = 1; length <= count; length++) {
            unsigned char *at = g.pages + g.page - length;
            struct coord_message in;
            memcpy(at, bytes, length);
            enum coord_message_fault fault =
                coord_message_decode(COORD_MESSAGE_HEARTBEAT, at, length, &in);
            if (length == count) {
                assert_int_equal(fault, COORD_FAULT_NONE);
            } else { /* a character may be cut as well */
                assert_true(fault == COORD_FAULT_TRUNCATED || fault == COORD_FAULT_BAD_TEXT);
            }
        }
    }
    munmap(g.pages, 2 * g.page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message__a_heartbeat_comes_back_as_it_was),
        cmocka_unit_test(test_message__our_own_always_has_six_digits_and_the_seeds_keys_first),
        cmocka_unit_test(test_message__faults_are_told_apart),
        cmocka_unit_test(test_message__unknown_keys_are_skipped_and_the_last_of_two_counts),
        cmocka_unit_test(test_message__depth_count_and_length_are_bounded),
        cmocka_unit_test(test_message__a_declared_length_is_not_trusted),
        cmocka_unit_test(test_message__no_byte_behind_the_end_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
