/* SPDX-License-Identifier: MIT
 * tests/unit/test_cli_guard.c - coordctl's side of the guardian, when there is none any more.
 */
#include "cli/guardian.h"
#include "tests/support/support.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* In a group of its own, with one that is stopped in it. @return what is wrong; 0: nothing. */
static int stop_without_a_guardian(void)
{
    struct cli_guard_page page;
    struct cli_guard guard = {.page = &page, .fd = -1, .pid = 0};
    int ends[2];
    int status = 0;
    if (setpgid(0, 0) != 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return 1;
    }
    const pid_t stopped = fork();
    if (stopped == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    if (waitpid(stopped, &status, WUNTRACED) != stopped || !WIFSTOPPED(status)) {
        return 2;
    }
    guard.fd = ends[0]; /* it is closed with the session only */
    atomic_init(&page.soft, COORD_NEVER);
    atomic_init(&page.hard, COORD_NEVER);
    cli_guard_stop(&guard, 1);
    const bool resumed = waitpid(stopped, &status, WCONTINUED | WNOHANG) != 0;
    kill(stopped, SIGKILL);
    waitpid(stopped, &status, 0);
    return resumed ? 3 : atomic_load(&page.soft) == 1 ? 0 : 4;
}

static void test_guard__that_has_died_is_not_signalled(void **state)
{
    (void)state;
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        _exit(stop_without_a_guardian());
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guard__that_has_died_is_not_signalled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
