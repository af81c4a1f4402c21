/* SPDX-License-Identifier: MIT
 * tests/unit/test_error.c - codes, their sentences, and the log hook that tells them.
 */
#include "coord/error.h"
#include "coord/log.h"

#include "tests/support/support.h"

static const enum coord_err all[] = {
#define X(symbol, value, class_, text) COORD_E_##symbol,
    COORD_ERRORS(X)
#undef X
};

enum {
    COUNT = sizeof all / sizeof all[0]
};

static void test_error__every_code_has_a_name_a_sentence_and_a_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        assert_string_not_equal(coord_err_name(all[i]), "UNKNOWN");
        assert_true(strlen(coord_err_text(all[i])) > 5);
        assert_int_equal(coord_err_class(all[i]) == COORD_CLASS_NONE, all[i] == COORD_OK);
    }
}

static void test_error__codes_and_names_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(all[i], all[k]);
            assert_string_not_equal(coord_err_name(all[i]), coord_err_name(all[k]));
        }
    }
}

static void test_error__codes_that_users_may_have_stored_keep_their_values(void **state)
{
    (void)state;
    assert_int_equal(COORD_OK, 0);
    assert_int_equal(COORD_E_BAD_URI, -2);
    assert_int_equal(COORD_E_NO_MEMORY, -20);
    assert_int_equal(COORD_E_UNREACHABLE, -40);
    assert_int_equal(COORD_E_WRONG_PASSWORD, -60);
    assert_int_equal(COORD_E_PROTOCOL, -75);
}

static void test_error__a_code_of_a_newer_version_is_survived(void **state)
{
    (void)state;
    const enum coord_err newer = (enum coord_err) - 9999;
    assert_string_equal(coord_err_name(newer), "UNKNOWN");
    assert_non_null(coord_err_text(newer));
    assert_int_equal(coord_err_class(newer), COORD_CLASS_SYSTEM);
}

static void test_error__set_returns_its_code_and_takes_no_error(void **state)
{
    (void)state;
    struct coord_error error;
    assert_int_equal(coord_error_set(&error, COORD_E_BAD_URI, "no '%s'", "//"), COORD_E_BAD_URI);
    assert_int_equal(error.code, COORD_E_BAD_URI);
    assert_string_equal(error.text, "no '//'");
    assert_int_equal(coord_error_set(NULL, COORD_E_CLOSED, "%d", 1), COORD_E_CLOSED);
}

static void test_error__a_long_sentence_is_cut(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct coord_error error;
    memset(&error, 0x55, sizeof error);
    COORD_IGNORE(coord_error_set(&error, COORD_E_SYSTEM, "%s", text), "the text matters here");
    assert_int_equal(strlen(error.text), COORD_ERROR_TEXT_MAX - 1);
}

static void test_error__no_control_character_reaches_a_terminal(void **state)
{
    (void)state;
    struct coord_error error;
    COORD_IGNORE(coord_error_set(&error, COORD_E_SYSTEM, "%s", "a\nb\x1b[2J\x7f"), "text matters");
    assert_string_equal(error.text, "a?b?[2J?");
}

struct seen {
    unsigned count;
    struct coord_log_record record;
    char text[600];
};

static void remember(void *ctx, const struct coord_log_record *record)
{
    struct seen *seen = ctx;
    seen->count++;
    seen->record = *record;
    (void)snprintf(seen->text, sizeof seen->text, "%s", record->text);
}

static void test_error__a_log_record_tells_when_what_and_of_whom(void **state)
{
    (void)state;
    struct seen seen = {0};
    const struct coord_log log = {.fn = remember, .ctx = &seen, .level = COORD_LOG_INFO};
    coord_log_write(&log, 42, COORD_LOG_WARN, COORD_E_NO_ANSWER, "billing", "after %d ms", 250);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.record.now, 42);
    assert_int_equal(seen.record.level, COORD_LOG_WARN);
    assert_int_equal(seen.record.code, COORD_E_NO_ANSWER);
    assert_string_equal(seen.record.subject, "billing");
    assert_string_equal(seen.text, "after 250 ms");
}

static void test_error__a_log_record_below_the_level_is_not_formed(void **state)
{
    (void)state;
    struct seen seen = {0};
    const struct coord_log log = {.fn = remember, .ctx = &seen, .level = COORD_LOG_WARN};
    coord_log_write(&log, 1, COORD_LOG_INFO, COORD_OK, "x", "y");
    assert_int_equal(seen.count, 0);
}

static void test_error__a_log_without_a_hook_is_silent(void **state)
{
    (void)state;
    const struct coord_log log = {0};
    coord_log_write(&log, 1, COORD_LOG_ERROR, COORD_OK, "x", "y");
    coord_log_write(NULL, 1, COORD_LOG_ERROR, COORD_OK, "x", "y");
}

static void test_error__a_long_log_line_is_cut(void **state)
{
    (void)state;
    struct seen seen = {0};
    const struct coord_log log = {.fn = remember, .ctx = &seen};
    coord_log_write(&log, 1, COORD_LOG_INFO, COORD_OK, "x", "%0800d", 7);
    assert_int_equal(strlen(seen.text), 511);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error__every_code_has_a_name_a_sentence_and_a_class),
        cmocka_unit_test(test_error__codes_and_names_are_unique),
        cmocka_unit_test(test_error__codes_that_users_may_have_stored_keep_their_values),
        cmocka_unit_test(test_error__a_code_of_a_newer_version_is_survived),
        cmocka_unit_test(test_error__set_returns_its_code_and_takes_no_error),
        cmocka_unit_test(test_error__a_long_sentence_is_cut),
        cmocka_unit_test(test_error__no_control_character_reaches_a_terminal),
        cmocka_unit_test(test_error__a_log_record_tells_when_what_and_of_whom),
        cmocka_unit_test(test_error__a_log_record_below_the_level_is_not_formed),
        cmocka_unit_test(test_error__a_log_without_a_hook_is_silent),
        cmocka_unit_test(test_error__a_long_log_line_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
