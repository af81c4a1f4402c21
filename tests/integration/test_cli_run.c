/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_run.c - `coordctl run` as its users see it: exit statuses, signals,
 * environment, waiting and handing over.
 */
#include "tests/support/coordctl.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

/* `coordctl run OPTIONS -- sh -c SCRIPT`. */
static void start_script(const struct scene *scene, struct coordctl *out, const char *option,
                         const char *script)
{
    const char *arguments[12] = {"run", "--elector", scene->uri, "--name", "jobs"};
    size_t count = 5;
    if (option != NULL) {
        arguments[count++] = option;
    }
    arguments[count++] = "--";
    arguments[count++] = "sh";
    arguments[count++] = "-c";
    arguments[count++] = script;
    coordctl_start(scene, out, arguments);
}

static int run_script(const struct scene *scene, const char *script)
{
    struct coordctl run;
    start_script(scene, &run, NULL, script);
    return coordctl_wait(&run);
}

static int step_down(const struct scene *scene, const char *to)
{
    char out[COORDCTL_TEXT];
    return coordctl_ask(scene, out, "step-down", to != NULL ? "--to" : NULL, to);
}

/* ---------------------------------------------------------------- exit statuses */

static void test_cli_run__status_of_the_command_is_passed_on(void **state)
{
    assert_int_equal(run_script(*state, "exit 0"), 0);
    assert_int_equal(run_script(*state, "exit 7"), 7);
    assert_int_equal(run_script(*state, "kill -KILL $$"), 128 + SIGKILL);
    assert_int_equal(run_script(*state, "kill -TERM $$"), 128 + SIGTERM);
}

static void test_cli_run__what_cannot_be_executed_says_so(void **state)
{
    const struct scene *scene = *state;
    char out[COORDCTL_TEXT];
    const char *const missing[] = {"run",  "--elector", scene->uri,         "--name",
                                   "jobs", "--",        "/no/such/program", NULL};
    const char *const folder[] = {"run",  "--elector", scene->uri,    "--name",
                                  "jobs", "--",        scene->folder, NULL};
    assert_int_equal(coordctl_call(scene, out, missing), 127);
    assert_int_equal(coordctl_call(scene, out, folder), 126);
}

static void test_cli_run__not_the_leader_in_time_is_124(void **state)
{
    const struct scene *scene = *state;
    struct coordctl leader;
    struct coordctl rival;
    coordctl_run(scene, &leader, "first", "beat", NULL);
    work_wait(scene, 0, 1);
    coordctl_run(scene, &rival, "second", "beat", WORDS("--wait", "0"));
    assert_int_equal(coordctl_wait(&rival), 124);
    coordctl_run(scene, &rival, "second", "beat", WORDS("--wait=300ms"));
    assert_int_equal(coordctl_wait(&rival), 124);
    wait_for_text(rival.err, "first leads");
    assert_int_equal(atomic_load(&scene->work->count), 1);
}

static void test_cli_run__one_attempt_leads_when_nobody_does(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    coordctl_run(scene, &run, "first", "exit", WORDS("--wait", "0"));
    assert_int_equal(coordctl_wait(&run), 7);
}

static void test_cli_run__a_refusal_at_the_start_is_125_at_once(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    /* procfs is no file system on which an election may lie. */
    coordctl_start(scene, &run,
                   WORDS("run", "--elector", "file:/proc", "--name", "jobs", "--", "true"));
    assert_int_equal(coordctl_wait(&run), 125);
}

static void test_cli_run__lost_leadership_is_121(void **state)
{
    const struct scene *scene = *state;
    struct coordctl leader;
    coordctl_run(scene, &leader, "first", "polite", NULL);
    const uint64_t fence = work_wait(scene, 0, 1);
    assert_int_equal(step_down(scene, NULL), 0);
    assert_int_equal(coordctl_wait(&leader), 121);
    assert_true(work_got(scene, fence, SIGTERM));
    wait_for_text(leader.err, "STEPPED_DOWN");
}

/* ---------------------------------------------------------------- signals */

static void end_waiting_with(const struct scene *scene, int signal)
{
    struct coordctl rival;
    coordctl_run(scene, &rival, "second", "beat", NULL);
    wait_for_text(rival.err, "waiting for jobs");
    kill(rival.pid, signal);
    assert_int_equal(coordctl_wait(&rival), 128 + signal);
}

static void test_cli_run__a_signal_ends_the_waiting(void **state)
{
    const struct scene *scene = *state;
    struct coordctl leader;
    coordctl_run(scene, &leader, "first", "beat", NULL);
    work_wait(scene, 0, 1);
    end_waiting_with(scene, SIGTERM);
    end_waiting_with(scene, SIGINT);
    end_waiting_with(scene, SIGHUP);
    assert_int_equal(atomic_load(&scene->work->count), 1);
}

static void test_cli_run__sigterm_is_passed_on_and_the_status_kept(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    coordctl_run(scene, &run, "first", "polite", NULL);
    const uint64_t fence = work_wait(scene, 0, 1);
    kill(run.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&run), 0);
    assert_true(work_got(scene, fence, SIGTERM));
    coordctl_run(scene, &run, "first", "beat", NULL);
    work_wait(scene, fence, 1);
    kill(run.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&run), 128 + SIGTERM);
}

static void test_cli_run__other_signals_reach_the_command(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    start_script(scene, &run, NULL,
                 "trap 'echo usr1' USR1; trap 'echo usr2' USR2; trap 'echo hup' HUP;"
                 "trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done");
    wait_for_text(run.out, "ready");
    kill(run.pid, SIGUSR1);
    wait_for_text(run.out, "usr1");
    kill(run.pid, SIGUSR2);
    wait_for_text(run.out, "usr2");
    kill(run.pid, SIGHUP);
    wait_for_text(run.out, "hup");
    kill(run.pid, SIGINT);
    assert_int_equal(coordctl_wait(&run), 9);
}

static void test_cli_run__the_terminal_stop_stops_the_command_alone(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    coordctl_run(scene, &run, "first", "beat", NULL);
    work_wait(scene, 0, 1);
    const pid_t command = wait_for_child(guardian_of(&run));
    kill(run.pid, SIGTSTP);
    wait_for_stop(command);
    char out[COORDCTL_TEXT];
    assert_int_equal(coordctl_ask(scene, out, "status", NULL, NULL), 0); /* it still renews */
    kill(run.pid, SIGTERM); /* pending for a stopped process */
    kill(run.pid, SIGCONT);
    assert_int_equal(coordctl_wait(&run), 128 + SIGTERM);
}

/* ---------------------------------------------------------------- what the command gets */

static void test_cli_run__environment_names_the_term_and_hides_the_store(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char elector[COORDCTL_PATH + 32];
    char out[COORDCTL_TEXT];
    snprintf(elector, sizeof elector, "COORD_ELECTOR=%s", scene->uri);
    const char *const environment[] = {elector, "COORD_BUS=redis://:secret@h", "COORD_NAME=jobs",
                                       "COORD_ID=me and you", NULL};
    coordctl_start_with(
        scene, &run, -1, environment,
        WORDS("run", "--", "sh", "-c",
              "echo \"$COORD_LEADER_NAME|$COORD_LEADER_ID|$COORD_ELECTOR|$COORD_BUS|\"; "
              "[ \"$COORD_FENCE\" -gt 0 ] && [ -p /dev/fd/$COORD_FD ] && echo fine; env"));
    assert_int_equal(coordctl_wait(&run), 0);
    coordctl_output(run.out, out);
    assert_non_null(strstr(out, "jobs|me and you|||"));
    assert_non_null(strstr(out, "fine"));
    assert_null(strstr(out, "secret"));
}

static void test_cli_run__a_flag_wins_over_the_environment(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    const char *const environment[] = {"COORD_NAME=other", "COORD_ID=other", NULL};
    coordctl_start_with(scene, &run, -1, environment,
                        WORDS("run", "--elector", scene->uri, "--name=jobs", "--id", "me", "--",
                              "sh", "-c", "echo $COORD_LEADER_NAME $COORD_LEADER_ID"));
    assert_int_equal(coordctl_wait(&run), 0);
    wait_for_text(run.out, "jobs me");
}

static void test_cli_run__standard_input_is_given_only_when_asked(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char path[COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    int fd = open(scene_path(scene, "input", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "said\n", 5), 5);
    const char *const with[] = {"run",     "--elector", scene->uri, "--name", "jobs",
                                "--stdin", "--",        "cat",      NULL};
    lseek(fd, 0, SEEK_SET);
    coordctl_start_with(scene, &run, fd, NULL,
                        WORDS("run", "--elector", scene->uri, "--name", "jobs", "--", "cat"));
    assert_int_equal(coordctl_wait(&run), 0);
    assert_string_equal(coordctl_output(run.out, out), "");
    lseek(fd, 0, SEEK_SET);
    coordctl_start_with(scene, &run, fd, NULL, with);
    assert_int_equal(coordctl_wait(&run), 0);
    assert_string_equal(coordctl_output(run.out, out), "said\n");
    close(fd);
}

static void test_cli_run__the_pipe_closes_when_the_work_has_to_end(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    start_script(scene, &run, NULL,
                 "trap '' TERM; echo ready; read x <&$COORD_FD; echo closed; exit 0");
    wait_for_text(run.out, "ready");
    assert_int_equal(step_down(scene, NULL), 0);
    assert_int_equal(coordctl_wait(&run), 121);
    wait_for_text(run.out, "closed");
}

static void test_cli_run__what_the_command_leaves_behind_is_ended(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    coordctl_run(scene, &run, "first", "leave", NULL);
    assert_int_equal(coordctl_wait(&run), 7);
    const unsigned count = atomic_load(&scene->work->count);
    assert_int_equal(count, 2);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(kill(atomic_load(&scene->work->beats[i].pid), 0), -1);
    }
}

/* ---------------------------------------------------------------- one after the other */

static void test_cli_run__a_resigned_term_is_taken_over_at_once(void **state)
{
    const struct scene *scene = *state;
    struct coordctl leader;
    struct coordctl rival;
    static const char *const long_lease[] = {"--ttl", "1h", NULL};
    coordctl_run(scene, &leader, "first", "beat", long_lease);
    const uint64_t fence = work_wait(scene, 0, 1);
    coordctl_run(scene, &rival, "second", "exit", long_lease);
    wait_for_text(rival.err, "first leads");
    kill(leader.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&leader), 128 + SIGTERM);
    assert_int_equal(coordctl_wait(&rival), 7); /* or the guard of an hour's lease fails it */
    assert_true(work_wait(scene, fence, 1) > fence);
    work_check(scene);
}

static void test_cli_run__a_step_down_goes_to_who_is_named(void **state)
{
    const struct scene *scene = *state;
    struct coordctl leader;
    struct coordctl others[2];
    static const char *const stay[] = {"--restart", NULL};
    coordctl_run(scene, &leader, "first", "beat", stay);
    uint64_t fence = work_wait(scene, 0, 1);
    coordctl_run(scene, &others[0], "second", "beat", stay);
    coordctl_run(scene, &others[1], "third", "beat", stay);
    wait_for_text(others[0].err, "waiting for jobs");
    wait_for_text(others[1].err, "waiting for jobs");
    assert_int_equal(step_down(scene, "third"), 0);
    wait_for_text(others[1].err, "leading jobs");
    fence = work_wait(scene, fence, 1);
    assert_int_equal(step_down(scene, "first"), 0);
    work_wait(scene, fence, 1);
    work_check(scene);
}

static void test_cli_run__restart_runs_the_command_anew(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    coordctl_run(scene, &run, "first", "polite", WORDS("--restart"));
    uint64_t fence = work_wait(scene, 0, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(step_down(scene, NULL), 0);
        fence = work_wait(scene, fence, 1);
    }
    work_check(scene);
    kill(run.pid, SIGTERM); /* its command ends with 0, and so does it */
    assert_int_equal(coordctl_wait(&run), 0);
}

static void test_cli_run__restart_ends_with_a_command_that_ends_by_itself(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    coordctl_run(scene, &run, "first", "exit", WORDS("--restart"));
    assert_int_equal(coordctl_wait(&run), 7);
    assert_int_equal(atomic_load(&scene->work->count), 1);
}

static void test_cli_run__two_of_one_identity_do_not_lead_together(void **state)
{
    const struct scene *scene = *state;
    struct coordctl one;
    struct coordctl two;
    coordctl_run(scene, &one, "twin", "beat", NULL);
    const uint64_t fence = work_wait(scene, 0, 1);
    coordctl_run(scene, &two, "twin", "beat", NULL);
    wait_for_text(two.err, "twin leads");
    kill(one.pid, SIGKILL);
    coordctl_wait(&one);
    work_wait(scene, fence, 1);
    work_check(scene);
}

static void test_cli_run__a_new_folder_is_waited_out_and_says_so(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char uri[COORDCTL_PATH];
    char path[COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    snprintf(uri, sizeof uri, "file:%s?coord.ttl=500ms", scene_path(scene, "new", path));
    coordctl_start(scene, &run, WORDS("run", "--elector", uri, "--name", "jobs", "--", "true"));
    assert_int_equal(coordctl_wait(&run), 0);
    coordctl_output(run.err, out);
    assert_non_null(strstr(out, "taking over jobs"));
    assert_non_null(strstr(out, "init"));
    snprintf(uri, sizeof uri, "file:%s?coord.ttl=1h", scene_path(scene, "newer", path));
    coordctl_start(scene, &run,
                   WORDS("run", "--elector", uri, "--name", "jobs", "--wait", "0", "--", "true"));
    assert_int_equal(coordctl_wait(&run), 124);
    assert_non_null(strstr(coordctl_output(run.err, out), "coordctl init --name jobs"));
}

/* A pipe that is full and that nobody reads, in the place where the next coordctl's talk goes. */
static int full_pipe(const struct scene *scene)
{
    struct coordctl last;
    char path[COORDCTL_PATH];
    char name[32];
    char page[4096] = {0};
    coordctl_start(scene, &last, WORDS("--version"));
    assert_int_equal(coordctl_wait(&last), 0);
    snprintf(name, sizeof name, "err.%lu", strtoul(strrchr(last.err, '.') + 1, NULL, 10) + 1);
    assert_int_equal(mkfifo(scene_path(scene, name, path), 0600), 0);
    const int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    while (write(fd, page, sizeof page) > 0) {
    }
    return fd;
}

static void test_cli_run__talk_that_nobody_reads_stops_nothing(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    const int pipe_end = full_pipe(scene);
    coordctl_run(scene, &run, "mute", "beat", NULL);
    work_wait(scene, 0, 1);
    kill(run.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&run), 128 + SIGTERM);
    work_check(scene);
    close(pipe_end);
}

int main(int argc, char **argv)
{
    work_if_asked(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_cli_run__status_of_the_command_is_passed_on),
        TEST(test_cli_run__what_cannot_be_executed_says_so),
        TEST(test_cli_run__not_the_leader_in_time_is_124),
        TEST(test_cli_run__one_attempt_leads_when_nobody_does),
        TEST(test_cli_run__a_refusal_at_the_start_is_125_at_once),
        TEST(test_cli_run__lost_leadership_is_121),
        TEST(test_cli_run__a_signal_ends_the_waiting),
        TEST(test_cli_run__sigterm_is_passed_on_and_the_status_kept),
        TEST(test_cli_run__other_signals_reach_the_command),
        TEST(test_cli_run__the_terminal_stop_stops_the_command_alone),
        TEST(test_cli_run__environment_names_the_term_and_hides_the_store),
        TEST(test_cli_run__a_flag_wins_over_the_environment),
        TEST(test_cli_run__standard_input_is_given_only_when_asked),
        TEST(test_cli_run__the_pipe_closes_when_the_work_has_to_end),
        TEST(test_cli_run__what_the_command_leaves_behind_is_ended),
        TEST(test_cli_run__a_resigned_term_is_taken_over_at_once),
        TEST(test_cli_run__a_step_down_goes_to_who_is_named),
        TEST(test_cli_run__restart_runs_the_command_anew),
        TEST(test_cli_run__restart_ends_with_a_command_that_ends_by_itself),
        TEST(test_cli_run__two_of_one_identity_do_not_lead_together),
        TEST(test_cli_run__talk_that_nobody_reads_stops_nothing),
        TEST(test_cli_run__a_new_folder_is_waited_out_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
