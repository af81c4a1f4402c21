/* SPDX-License-Identifier: MIT
 * tests/fault/test_postgres_example.c - the example as it is: a leader that was stopped between its
 * look and its write comes back, and its write is refused.
 */
#include "tests/support/postgres_world.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static pid_t example(const char *name, const char *how)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(COORD_BUILD "/examples/postgres_fenced_writes", "postgres_fenced_writes",
              world_server.uri, name, "1s", how, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void test_postgres_example__a_paused_leaders_write_is_refused(void **state)
{
    (void)state;
    struct world w;
    int status = 0;
    world_open(&w, "example");
    if (access(COORD_BUILD "/examples/postgres_fenced_writes", X_OK) != 0) {
        const char *ci = getenv("CI");
        assert_false(ci != NULL && strcmp(ci, "true") == 0);
        skip_because("the examples are not built: make examples");
    }
    postgres_server_do(&world_server, "create table job_log (name text, fence bigint)");
    const pid_t paused = example(w.name, "stop");
    assert_int_equal(waitpid(paused, &status, WUNTRACED), paused);
    assert_true(WIFSTOPPED(status));
    const pid_t successor = example(w.name, NULL);
    assert_int_equal(waitpid(successor, &status, 0), successor);
    assert_int_equal(WEXITSTATUS(status), 0);
    kill(paused, SIGCONT);
    assert_int_equal(waitpid(paused, &status, 0), paused);
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_int_equal(postgres_server_ask(&world_server, "select count(*) from job_log"), 1);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgres_example__a_paused_leaders_write_is_refused),
    };
    return cmocka_run_group_tests(tests, world_start, world_stop);
}
