/* SPDX-License-Identifier: MIT
 * tests/unit/test_cli_say.c - what coordctl says of a COMMAND that was not executed.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_say__a_command_is_not_blamed_for_a_full_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
