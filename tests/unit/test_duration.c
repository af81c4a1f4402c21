/* SPDX-License-Identifier: MIT
 * tests/unit/test_duration.c - durations as people write them.
 */
#include "coord/duration.h"

#include "tests/support/support.h"

static void test_duration__every_unit_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        coord_ms ms;
    } good[] = {
        {"0", 0},          {"0ms", 0},
        {"1ms", 1},        {"250ms", 250},
        {"15s", 15000},    {"2m", 120000},
        {"1h", 3600000},   {"007s", 7000},
        {"24h", 86400000}, {"18446744073709551614ms", COORD_NEVER - 1},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct guarded text = guarded_text(good[i].text);
        coord_ms out = 99;
        assert_int_equal(coord_duration_parse(text.at, &out, NULL), COORD_OK);
        assert_true(out == good[i].ms);
        guarded_free(&text);
    }
}

static void test_duration__what_is_not_a_duration_is_refused_with_the_cure(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "s",
        "ms",
        "15",
        "1",
        "-1s",
        "+1s",
        " 1s",
        "1s ",
        "1 s",
        "1.5s",
        "1S",
        "1sec",
        "1d",
        "1m30s",
        "0x1s",
        "99999999999999999999s",
        "18446744073709551615ms",
        "18446744073709551616ms",
        "5124095576030432h",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct guarded text = guarded_text(bad[i]);
        struct coord_error error = {0};
        coord_ms out = 99;
        assert_int_equal(coord_duration_parse(text.at, &out, &error), COORD_E_BAD_OPTION);
        assert_int_equal(error.code, COORD_E_BAD_OPTION);
        assert_non_null(strstr(error.text, "such as 15s"));
        assert_int_equal(out, 99);
        guarded_free(&text);
    }
}

static void test_duration__is_written_with_the_largest_unit_that_loses_nothing(void **state)
{
    (void)state;
    static const struct {
        coord_ms ms;
        const char *text;
    } good[] = {
        {0, "0s"},
        {1, "1ms"},
        {1500, "1500ms"},
        {15000, "15s"},
        {90000, "90s"},
        {120000, "2m"},
        {3600000, "1h"},
        {86400000, "24h"},
        {COORD_NEVER - 1, "18446744073709551614ms"},
        {COORD_NEVER, "never"},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char room[COORD_DURATION_TEXT_MAX];
        memset(room, 'x', sizeof room);
        struct guarded out = guarded_copy(room, sizeof room);
        assert_ptr_equal(coord_duration_format(good[i].ms, out.at), out.at);
        assert_string_equal(out.at, good[i].text);
        guarded_free(&out);
    }
}

static void test_duration__what_is_written_is_read_back(void **state)
{
    (void)state;
    for (coord_ms ms = 0; ms < COORD_NEVER / 4; ms += 1 + ms / 3) {
        char text[COORD_DURATION_TEXT_MAX];
        coord_ms back = 0;
        assert_int_equal(coord_duration_parse(coord_duration_format(ms, text), &back, NULL),
                         COORD_OK);
        assert_true(back == ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duration__every_unit_is_read),
        cmocka_unit_test(test_duration__what_is_not_a_duration_is_refused_with_the_cure),
        cmocka_unit_test(test_duration__is_written_with_the_largest_unit_that_loses_nothing),
        cmocka_unit_test(test_duration__what_is_written_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
