/* SPDX-License-Identifier: MIT
 * tests/unit/test_time_text.c - times in every form that is read, and in the two that are written.
 */
#include "coord/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Written again, as the seed library writes; NULL: refused. */
static void expect(const char *text, const char *written)
{
    struct coord_time time;
    char out[COORD_TIME_TEXT_MAX] = "";
    bool taken = coord_time_text_parse(text, strlen(text), &time);
    if (written == NULL) {
        assert_false(taken);
        return;
    }
    assert_true(taken);
    assert_int_equal(coord_time_text_write(&time, out), strlen(written));
    assert_string_equal(out, written);
}

static void test_time_text__all_forms_of_an_instant_are_read(void **state)
{
    (void)state;
    static const char noon[] = "2026-03-01T12:00:00+00:00";
    expect("2026-03-01T12:00:00+00:00", noon);
    expect("2026-03-01T12:00:00Z", noon);
    expect("2026-03-01T12:00:00-00:00", noon);
    expect("2026-03-01T12:00:00+0000", noon);
    expect("2026-03-01T12:00:00+00", noon);
    expect("2026-03-01 12:00:00+00:00", noon);
    expect("2026-03-01x12:00:00+00:00", noon);
    expect("2026-03-01T12:00:00.+00:00", noon);
    expect("2026-03-01T12:00+00:00", noon);
    expect("2026-03-01T12+00:00", noon);
    expect("20260301T120000Z", noon);
    expect("2026-W09-7T12:00Z", noon);
    expect("2026W097T12Z", noon);
    expect("2026-03-01\xc3\xa9"
           "12:00:00Z",
           noon);
}

static void test_time_text__offsets_are_kept(void **state)
{
    (void)state;
    expect("2026-03-01T17:30:00+05:30", "2026-03-01T17:30:00+05:30");
    expect("2026-03-01T12:00:00-23:59:59.5", "2026-03-01T12:00:00-23:59:59.500000");
    expect("2026-03-01T12:00:00+24:00", NULL);
    struct coord_time time;
    assert_true(coord_time_text_parse("2026-03-01T17:30:00+05:30", 25, &time));
    assert_int_equal(coord_time_epoch(&time), INT64_C(1772366400000000));
}

static void test_time_text__fractions_are_cut_and_padded(void **state)
{
    (void)state;
    expect("2026-03-01T12:00:00.5Z", "2026-03-01T12:00:00.500000+00:00");
    expect("2026-03-01T12:00:00,25Z", "2026-03-01T12:00:00.250000+00:00");
    expect("2026-03-01T12:00:00.123456999Z", "2026-03-01T12:00:00.123456+00:00");
}

static void test_time_text__a_time_without_offset_is_naive(void **state)
{
    (void)state;
    expect("2026-03-01T12:00:00", "2026-03-01T12:00:00");
    expect("2026-W09-7", "2026-03-01T00:00:00");
    expect("2026-03-01", "2026-03-01T00:00:00");
    struct coord_time time;
    assert_true(coord_time_text_parse("2026-03-01", 10, &time));
    assert_true(time.naive);
}

static void test_time_text__what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "nope",
                                      "2026-03-01T24:00:00Z",
                                      "2026-03-01T23:59:60Z",
                                      "2026-02-29T00:00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      " 2026-03-01T12:00:00Z",
                                      "2026-03-01T12:00:00Z ",
                                      "2026-03-01T12:00:00z",
                                      "2026-060",
                                      "1772366400",
                                      "2026-03-01T",
                                      "2025-W53-1",
                                      "0000-01-01",
                                      "2026-03-01T12:00:00+",
                                      "2026-03-01T12:6"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect(bad[i], NULL);
    }
}

static void test_time_text__the_ends_of_the_calendar(void **state)
{
    (void)state;
    expect("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00");
    expect("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999+00:00");
    expect("2024-02-29T00:00:00Z", "2024-02-29T00:00:00+00:00");
    expect("1900-02-29T00:00:00Z", NULL);
    expect("2000-02-29T00:00:00Z", "2000-02-29T00:00:00+00:00");
}

static void test_time_text__a_stamp_always_has_six_digits(void **state)
{
    (void)state;
    char out[COORD_TIME_TEXT_MAX];
    assert_int_equal(coord_time_text_stamp(INT64_C(1772366400000000), out), 32);
    assert_string_equal(out, "2026-03-01T12:00:00.000000+00:00");
    (void)coord_time_text_stamp(INT64_MAX, out);
    assert_string_equal(out, "9999-12-31T23:59:59.999999+00:00");
    (void)coord_time_text_stamp(INT64_MIN, out);
    assert_string_equal(out, "0001-01-01T00:00:00.000000+00:00");
}

/* Every day of four hundred years comes back as it was written. */
static void test_time_text__days_come_back(void **state)
{
    (void)state;
    for (int64_t day = -150000; day < 150000; day++) {
        struct coord_time time;
        char out[COORD_TIME_TEXT_MAX];
        int64_t us = day * INT64_C(86400000000) + 1;
        size_t bytes = coord_time_text_stamp(us, out);
        assert_true(coord_time_text_parse(out, bytes, &time));
        assert_int_equal(coord_time_epoch(&time), us);
    }
}

/* The form of our own stamps is read by words. With seconds in the offset it is read as any other
 * form is; whatever byte stands in whatever place, both say the same. */
static void test_time_text__a_stamp_is_read_as_any_other_form(void **state)
{
    (void)state;
    static const char stamps[][33] = {"2026-03-01T12:34:56.789012+00:00",
                                      "1999-12-31T23:59:59.999999+00:00"};
    for (unsigned i = 0; i < sizeof stamps / sizeof stamps[0]; i++) {
        for (unsigned at = 0; at < 26; at++) {
            for (unsigned byte = 1; byte < 0x80; byte++) {
                char text[64];
                struct coord_time fast = {0, 0, false};
                struct coord_time slow = {0, 0, false};
                memcpy(text, stamps[i], sizeof stamps[i]);
                text[at] = (char)byte;
                bool taken = coord_time_text_parse(text, 32, &fast);
                memcpy(text + 32, ":00", 4);
                assert_int_equal(coord_time_text_parse(text, 35, &slow), taken);
                assert_int_equal(fast.face_us, slow.face_us);
                assert_int_equal(fast.naive, slow.naive);
            }
        }
    }
}

static void test_time_text__the_instant_of_a_clock_is_within_the_calendar(void **state)
{
    (void)state;
    assert_int_equal(coord_time_at(5000, 7, 9), 7000);
    assert_int_equal(coord_time_at(5000, 9, 7), 3000);
    assert_int_equal(coord_time_at(-5000, 7, 7), -5000);
    assert_int_equal(coord_time_at(0, 0, COORD_NEVER), COORD_TIME_MAX_US);
    assert_int_equal(coord_time_at(INT64_MAX, 0, COORD_NEVER), COORD_TIME_MAX_US);
    assert_int_equal(coord_time_at(INT64_MIN, COORD_NEVER, 0), COORD_TIME_MIN_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_text__the_instant_of_a_clock_is_within_the_calendar),
        cmocka_unit_test(test_time_text__all_forms_of_an_instant_are_read),
        cmocka_unit_test(test_time_text__offsets_are_kept),
        cmocka_unit_test(test_time_text__fractions_are_cut_and_padded),
        cmocka_unit_test(test_time_text__a_time_without_offset_is_naive),
        cmocka_unit_test(test_time_text__what_is_no_time_is_refused),
        cmocka_unit_test(test_time_text__the_ends_of_the_calendar),
        cmocka_unit_test(test_time_text__a_stamp_always_has_six_digits),
        cmocka_unit_test(test_time_text__days_come_back),
        cmocka_unit_test(test_time_text__a_stamp_is_read_as_any_other_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
