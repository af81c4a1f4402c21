/* SPDX-License-Identifier: MIT
 * tests/unit/test_cli_say.c - what coordctl says of a COMMAND that was not executed, and names in
 * the commands that it advises.
 */
#include "cli/exits.h"
#include "cli/say.h"
#include "tests/support/support.h"

#include <errno.h>

static void test_cli_say__a_command_is_not_blamed_for_a_full_machine(void **state)
{
    static const int full[] = {EAGAIN, ENOMEM, EMFILE, ENFILE};
    (void)state;
    for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
        assert_int_equal(cli_say_not_executed("work", full[i]), CLI_FAILED);
    }
    assert_int_equal(cli_say_not_executed("work", ENOENT), CLI_NOT_FOUND);
    assert_int_equal(cli_say_not_executed("work", EACCES), CLI_CANNOT_EXECUTE);
    assert_int_equal(cli_say_not_executed("work", ENOEXEC), CLI_CANNOT_EXECUTE);
}

/* What a shell makes of it. */
static void test_cli_say__a_name_in_a_command_can_be_pasted(void **state)
{
    static const char *const names[] = {
        "jobs", "a b", "it's", "''",  "$(x) `y` \"z\" \\", "50%", "\xc3\xa4\xc3\xb6",
        "~",    "*",   ";",    "a{b}"};
    char word[CLI_WORD_MAX];
    char line[CLI_WORD_MAX + 32];
    char out[64];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(line, sizeof line, "printf %%s -%s", cli_say_word(names[i], word));
        FILE *shell = popen(line, "re");
        assert_non_null(shell);
        const size_t count = fread(out, 1, sizeof out - 1, shell);
        out[count] = '\0';
        assert_int_equal(pclose(shell), 0);
        assert_string_equal(out + 1, names[i]);
    }
    assert_string_equal(cli_say_word("plain-1", word), "plain-1");
}

static void test_cli_say__the_longest_name_has_room(void **state)
{
    char name[COORD_NAME_MAX + 1];
    char word[CLI_WORD_MAX];
    (void)state;
    memset(name, '\'', COORD_NAME_MAX);
    name[COORD_NAME_MAX] = '\0';
    assert_int_equal(strlen(cli_say_word(name, word)), 4 * COORD_NAME_MAX + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_say__a_command_is_not_blamed_for_a_full_machine),
        cmocka_unit_test(test_cli_say__a_name_in_a_command_can_be_pasted),
        cmocka_unit_test(test_cli_say__the_longest_name_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
