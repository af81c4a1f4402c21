/* SPDX-License-Identifier: MIT
 * tests/unit/test_escape.c - names of any byte as text, and back.
 */
#include "coord/escape.h"

#include "tests/support/support.h"

static void test_escape__every_byte_survives_the_way_there_and_back(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        const unsigned char name[3] = {'a', (unsigned char)byte, 'z'};
        char text[COORD_ESCAPED_MAX];
        unsigned char back[COORD_NAME_MAX];
        size_t count = 0;
        assert_int_equal(coord_escape(name, sizeof name, text), COORD_OK);
        for (const char *c = text; *c != '\0'; c++) {
            assert_in_range((unsigned char)*c, 0x20, 0x7e);
        }
        assert_int_equal(coord_unescape(text, back, &count), COORD_OK);
        assert_int_equal(count, sizeof name);
        assert_memory_equal(back, name, sizeof name);
    }
}

static void test_escape__only_what_must_be_is_escaped(void **state)
{
    (void)state;
    char text[COORD_ESCAPED_MAX];
    assert_int_equal(coord_escape("billing/eu-1 ~!", 15, text), COORD_OK);
    assert_string_equal(text, "billing/eu-1 ~!");
    assert_int_equal(coord_escape("{a}%\n\xc3\xa9\x7f", 8, text), COORD_OK);
    assert_string_equal(text, "%7ba%7d%25%0a%c3%a9%7f");
}

static void test_escape__the_longest_name_of_the_worst_bytes_has_room(void **state)
{
    (void)state;
    unsigned char name[COORD_NAME_MAX];
    memset(name, 0xff, sizeof name);
    const char room[COORD_ESCAPED_MAX] = {0};
    struct guarded in = guarded_copy(name, sizeof name);
    struct guarded out = guarded_copy(room, sizeof room);
    assert_int_equal(coord_escape(in.at, sizeof name, out.at), COORD_OK);
    assert_int_equal(strlen(out.at), COORD_ESCAPED_MAX - 1);
    unsigned char back[COORD_NAME_MAX];
    size_t count = 0;
    assert_int_equal(coord_unescape(out.at, back, &count), COORD_OK);
    assert_int_equal(count, COORD_NAME_MAX);
    guarded_free(&in);
    guarded_free(&out);
}

static void test_escape__no_name_and_a_name_too_long_are_refused(void **state)
{
    (void)state;
    char text[COORD_ESCAPED_MAX] = "kept";
    const char name[COORD_NAME_MAX + 1] = {'x'};
    assert_int_equal(coord_escape("", 0, text), COORD_E_BAD_NAME);
    assert_int_equal(coord_escape(NULL, 0, text), COORD_E_BAD_NAME);
    assert_int_equal(coord_escape(name, sizeof name, text), COORD_E_BAD_NAME);
    assert_string_equal(text, "kept");
}

static void test_escape__text_that_no_name_gives_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",     "%",   "%4",  "%zz",  "a%",       "a%0", "%0A", "%FF", /* upper case */
        "%41",  "%20", "%7e",                                          /* needs no escape */
        "a\tb", "a{b", "a}b", "\x7f", "\xc3\xa9",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct guarded text = guarded_text(bad[i]);
        unsigned char out[COORD_NAME_MAX] = {7};
        size_t count = 99;
        assert_int_equal(coord_unescape(text.at, out, &count), COORD_E_BAD_NAME);
        assert_int_equal(count, 99);
        assert_int_equal(out[0], 7);
        guarded_free(&text);
    }
}

static void test_escape__text_of_more_than_255_bytes_is_refused(void **state)
{
    (void)state;
    char text[COORD_NAME_MAX + 2];
    memset(text, 'x', sizeof text);
    text[COORD_NAME_MAX + 1] = '\0';
    unsigned char out[COORD_NAME_MAX];
    size_t count = 0;
    assert_int_equal(coord_unescape(text, out, &count), COORD_E_BAD_NAME);
    text[COORD_NAME_MAX] = '\0';
    assert_int_equal(coord_unescape(text, out, &count), COORD_OK);
    assert_int_equal(count, COORD_NAME_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape__every_byte_survives_the_way_there_and_back),
        cmocka_unit_test(test_escape__only_what_must_be_is_escaped),
        cmocka_unit_test(test_escape__the_longest_name_of_the_worst_bytes_has_room),
        cmocka_unit_test(test_escape__no_name_and_a_name_too_long_are_refused),
        cmocka_unit_test(test_escape__text_that_no_name_gives_is_refused),
        cmocka_unit_test(test_escape__text_of_more_than_255_bytes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
