/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_redis.c - coordctl over a server: the library that it loads, the
 * lease that protects the next leader, and a password that nobody sees.
 */
#include "tests/support/coordctl.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <signal.h>

struct fleet {
    struct redis_server server;
    struct scene scene;
};

static int set_up(void **state)
{
    static struct fleet fleet;
    char out[COORDCTL_TEXT];
    redis_server_needed();
    scene_open(&fleet.scene, "");
    redis_server_start(&fleet.server, WORDS("--requirepass", "hunter2"));
    snprintf(fleet.scene.uri, sizeof fleet.scene.uri, "redis+unix://:hunter2@%s?coord.ttl=1s",
             fleet.server.socket);
    assert_int_equal(coordctl_ask(&fleet.scene, out, "init", NULL, NULL), 0);
    *state = &fleet;
    return 0;
}

static int tear_down(void **state)
{
    struct fleet *fleet = *state;
    redis_server_stop(&fleet->server);
    scene_close(&fleet->scene);
    return 0;
}

static void test_cli_redis__every_verb_works(void **state)
{
    const struct scene *scene = &((struct fleet *)*state)->scene;
    struct coordctl run;
    char out[COORDCTL_TEXT];
    coordctl_run(scene, &run, "first", "polite", NULL);
    const uint64_t fence = work_wait(scene, 0, 1);
    assert_int_equal(coordctl_ask(scene, out, "status", "--json", NULL), 0);
    assert_non_null(strstr(out, "\"leader\":\"first\""));
    assert_non_null(strstr(out, "\"backend\":\"redis\""));
    assert_int_equal(coordctl_ask(scene, out, "step-down", NULL, NULL), 0);
    assert_int_equal(coordctl_wait(&run), 121);
    assert_true(work_got(scene, fence, SIGTERM));
    assert_int_equal(coordctl_ask(scene, out, "status", "--json", NULL), 1);
}

static void test_cli_redis__a_socket_has_three_schemes(void **state)
{
    const struct fleet *fleet = *state;
    static const char *const schemes[] = {"redis+unix", "redis+socket", "unix"};
    char uri[COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        snprintf(uri, sizeof uri, "%s://:hunter2@%s", schemes[i], fleet->server.socket);
        const char *const status[] = {"status", "--elector", uri, "--name", "jobs", NULL};
        assert_int_equal(coordctl_call(&fleet->scene, out, status), 1); /* nobody leads */
    }
}

/* The kernel tells nobody here: the lease runs out, and the work is gone long before. */
static void test_cli_redis__work_of_a_lost_leader_is_gone_before_the_next(void **state)
{
    const struct scene *scene = &((struct fleet *)*state)->scene;
    static const int ends[] = {SIGKILL, SIGSTOP};
    uint64_t last = 0; /* fence */
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct coordctl leader;
        struct coordctl rival;
        coordctl_run(scene, &leader, "first", "daemon", NULL);
        const uint64_t fence = work_wait(scene, last, 2);
        coordctl_run(scene, &rival, "second", "daemon", NULL);
        wait_for_text(rival.err, "waiting for jobs");
        kill(leader.pid, ends[i]);
        last = work_wait(scene, fence, 1);
        work_wait_gone(scene, fence);
        work_check(scene);
        kill(rival.pid, SIGTERM);
        assert_int_equal(coordctl_wait(&rival), 128 + SIGTERM);
        kill(leader.pid, SIGCONT);
        assert_int_equal(coordctl_wait(&leader), ends[i] == SIGKILL ? 128 + SIGKILL : 121);
    }
}

static void test_cli_redis__a_server_that_stops_ends_the_term_in_time(void **state)
{
    struct fleet *fleet = *state;
    struct coordctl run;
    coordctl_run(&fleet->scene, &run, "first", "deaf", NULL);
    const uint64_t fence = work_wait(&fleet->scene, 0, 1);
    redis_server_kill(&fleet->server);
    assert_int_equal(coordctl_wait(&run), 121);
    work_wait_gone(&fleet->scene, fence);
    wait_for_text(run.err, "UNRENEWED");
}

/* The server keeps them apart by what each process made up for itself, not by their names. */
static void test_cli_redis__two_of_one_identity_do_not_lead_together(void **state)
{
    const struct scene *scene = &((struct fleet *)*state)->scene;
    struct coordctl one;
    struct coordctl two;
    coordctl_run(scene, &one, "twin", "beat", NULL);
    const uint64_t fence = work_wait(scene, 0, 1);
    coordctl_run(scene, &two, "twin", "beat", NULL);
    wait_for_text(two.err, "twin leads");
    kill(one.pid, SIGKILL);
    assert_int_equal(coordctl_wait(&one), 128 + SIGKILL);
    work_wait(scene, fence, 1);
    work_check(scene);
    kill(two.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&two), 128 + SIGTERM);
}

static unsigned times_in(const char *text, const char *what)
{
    unsigned count = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        count++;
    }
    return count;
}

static void test_cli_redis__an_unreachable_server_is_waited_for_and_said_once(void **state)
{
    struct fleet *fleet = *state;
    struct coordctl run;
    char out[COORDCTL_TEXT];
    redis_server_end(&fleet->server);
    coordctl_run(&fleet->scene, &run, "first", "exit", WORDS("--wait", "700ms"));
    assert_int_equal(coordctl_wait(&run), 125);
    assert_int_equal(times_in(coordctl_output(run.err, out), "waiting for jobs"), 1);
    coordctl_run(&fleet->scene, &run, "first", "exit", NULL);
    wait_for_text(run.err, "waiting for jobs");
    redis_server_again(&fleet->server);
    assert_int_equal(coordctl_wait(&run), 7); /* it came, and the work was done */
    coordctl_output(run.err, out);
    assert_null(strstr(out, "hunter2"));
}

static void test_cli_redis__an_unreachable_server_is_named(void **state)
{
    static const char *const uris[] = {"redis://127.0.0.1:1", "redis+unix:///nonexistent/socket",
                                       "redis+sentinel://127.0.0.1:1/main"};
    static const char *const names[] = {"UNREACHABLE: 127.0.0.1:1: cannot connect",
                                        "UNREACHABLE: /nonexistent/socket: cannot connect",
                                        "UNREACHABLE: 127.0.0.1:1: cannot connect"};
    const struct fleet *fleet = *state;
    char out[COORDCTL_TEXT];
    for (size_t i = 0; i < sizeof uris / sizeof *uris; i++) {
        struct coordctl status;
        coordctl_start(&fleet->scene, &status,
                       WORDS("status", "--elector", uris[i], "--name", "jobs"));
        assert_int_equal(coordctl_wait(&status), 125);
        assert_non_null(strstr(coordctl_output(status.err, out), names[i]));
    }
}

static void test_cli_redis__a_wrong_password_is_refused_at_once(void **state)
{
    struct fleet *fleet = *state;
    struct coordctl run;
    char out[COORDCTL_TEXT];
    char uri[COORDCTL_PATH];
    snprintf(uri, sizeof uri, "redis+unix://:wrong%%20one@%s", fleet->server.socket);
    const char *const arguments[] = {"run", "--elector", uri, "--name", "jobs", "--", "true", NULL};
    coordctl_start(&fleet->scene, &run, arguments);
    assert_int_equal(coordctl_wait(&run), 125);
    coordctl_output(run.err, out);
    assert_non_null(strstr(out, "WRONG_PASSWORD"));
    assert_null(strstr(out, "wrong%20one"));
    assert_null(strstr(out, "wrong one"));
}

static void test_cli_redis__the_password_is_seen_nowhere(void **state)
{
    const struct scene *scene = &((struct fleet *)*state)->scene;
    struct coordctl run;
    coordctl_run(scene, &run, "first", "beat", NULL);
    work_wait(scene, 0, 1);
    const pid_t guardian = guardian_of(&run);
    expect_unseen(run.pid, "cmdline", "hunter2");
    expect_unseen(guardian, "cmdline", "hunter2");
    expect_unseen(wait_for_child(guardian), "cmdline", "hunter2");
    expect_unseen(wait_for_child(guardian), "environ", "hunter2");
}

int main(int argc, char **argv)
{
    work_if_asked(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_cli_redis__every_verb_works),
        TEST(test_cli_redis__a_socket_has_three_schemes),
        TEST(test_cli_redis__work_of_a_lost_leader_is_gone_before_the_next),
        TEST(test_cli_redis__two_of_one_identity_do_not_lead_together),
        TEST(test_cli_redis__a_server_that_stops_ends_the_term_in_time),
        TEST(test_cli_redis__an_unreachable_server_is_waited_for_and_said_once),
        TEST(test_cli_redis__an_unreachable_server_is_named),
        TEST(test_cli_redis__a_wrong_password_is_refused_at_once),
        TEST(test_cli_redis__the_password_is_seen_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
