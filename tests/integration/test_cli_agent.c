/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_agent.c - what coordctl agent does with assignments, and what is left
 * of its command.
 */
#include "tests/support/fleet_calls.h"
#include "tests/support/guard.h"
#include "tests/support/support.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int set_up(void **state)
{
    static struct fleet_calls fleet;
    fleet_calls_open(&fleet);
    *state = &fleet;
    return 0;
}

static int tear_down(void **state)
{
    fleet_calls_close(*state);
    return 0;
}

/* ---------------------------------------------------------------- what a member does */

static void test_cli_agent__hands_assignments_to_a_command_one_by_one(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    char path[COORDCTL_PATH];
    char hook[COORDCTL_PATH + 96];
    char out[COORDCTL_TEXT];
    snprintf(hook, sizeof hook, "{ cat; echo \"$ASSIGNMENT_FENCE $ASSIGNMENT_PRIORITY\"; } >>'%s'",
             scene_path(&fleet->scene, "assigned", path));
    const char *const first[] = {"--elector", fleet->scene.uri,  "--name", "jobs",       "--to",
                                 "w-1",       "--subscriptions", "orders", "--priority", "-2",
                                 NULL};
    const char *const second[] = {"--elector", fleet->scene.uri,  "--name", "jobs", "--to",
                                  "w-1",       "--subscriptions", "ledger", NULL};
    fleet_start_agent(fleet, &agent, "w-1", WORDS("--on-assign", hook));
    wait_for_text(agent.err, "leading jobs, fence ");
    assert_int_equal(fleet_call(fleet, out, "assign", first), 0);
    assert_int_equal(fleet_call(fleet, out, "assign", second), 0);
    wait_for_text(path, " 0\n");
    coordctl_output(path, out);
    json_t *one = fleet_line_with(out, "\"orders\"");
    assert_string_equal(fleet_text_of(one, "target_instance_id"), "w-1");
    assert_int_equal(json_integer_value(json_object_get(one, "priority")), -2);
    assert_true(json_integer_value(json_object_get(one, "fence")) > 0);
    assert_true(strstr(out, "\"orders\"") < strstr(out, " -2\n"));
    assert_true(strstr(out, " -2\n") < strstr(out, "\"ledger\""));
    json_decref(one);
    kill(agent.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&agent), 0);
}

static void test_cli_agent__a_hook_that_fails_is_told(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    char out[COORDCTL_TEXT];
    const char *const given[] = {"--elector", fleet->scene.uri,  "--name", "jobs", "--to",
                                 "w-1",       "--subscriptions", "orders", NULL};
    fleet_start_agent(fleet, &agent, "w-1", WORDS("--on-assign", "exit 3"));
    wait_for_text(agent.err, "leading jobs, fence ");
    assert_int_equal(fleet_call(fleet, out, "assign", given), 0);
    wait_for_text(agent.err, "--on-assign ended with status 3");
}

/* It goes on without one; who looks at its log should know. */
static void test_cli_agent__tells_of_a_store_that_fails_and_comes_back(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    char store[COORDCTL_PATH];
    static const char *const none[] = {NULL};
    scene_path(&fleet->scene, "absent", store);
    snprintf(fleet->scene.uri, sizeof fleet->scene.uri, "file:%.200s/election?coord.ttl=1s", store);
    fleet_start_agent(fleet, &agent, "w-1", none);
    wait_for_text(agent.err, "standing for jobs: NOT_INITIALISED: ");
    assert_int_equal(mkdir(store, 0700), 0);
    wait_for_text(agent.err, "standing for jobs: the store answers again");
    kill(agent.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&agent), 0);
}

/* Also what it put into a session of its own. */
static void test_cli_agent__nothing_of_a_command_outlives_it(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    char out[COORDCTL_TEXT];
    static const char *const rest[] = {
        "--", "sh", "-c", "setsid sh -c 'echo $$; exec sleep 60' & echo $$; wait", NULL};
    fleet_start_agent(fleet, &agent, "w-1", rest);
    wait_for_text(agent.out, "\n");
    while (strchr(strchr(coordctl_output(agent.out, out), '\n') + 1, '\n') == NULL) {
        poll(NULL, 0, 10);
    }
    char *rest_of_it = NULL;
    const pid_t one = (pid_t)strtol(out, &rest_of_it, 10);
    const pid_t other = (pid_t)strtol(rest_of_it, NULL, 10);
    kill(agent.pid, SIGKILL);
    coordctl_wait(&agent);
    wait_for_end(one);
    wait_for_end(other);
}

/* A member that is stopped cannot end it in time; the guardian does. */
static void test_cli_agent__a_command_ends_in_time_though_it_is_stopped(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    char out[COORDCTL_TEXT];
    static const char *const ordered[] = {"--id",       "w-1", "--intent", "preemption",
                                          "--deadline", "3s",  NULL};
    static const char *const rest[] = {
        "--", "sh", "-c", "trap 'echo told' TERM; echo $$; while :; do sleep 0.05; done", NULL};
    fleet_start_agent(fleet, &agent, "w-1", rest);
    wait_for_text(agent.out, "\n");
    wait_for_text(agent.err, "leading jobs");
    const pid_t command = (pid_t)strtol(coordctl_output(agent.out, out), NULL, 10);
    assert_int_equal(fleet_call(fleet, out, "announce", ordered), 0);
    wait_for_text(agent.out, "told");
    kill(agent.pid, SIGSTOP);
    wait_for_end(command);
    kill(agent.pid, SIGCONT);
    assert_int_equal(coordctl_wait(&agent), 124);
}

/* ---------------------------------------------------------------- its end */

static void test_cli_agent__a_command_is_told_to_end_and_its_status_counts(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl watch;
    struct coordctl agent;
    fleet_start(fleet, &watch, "peers", WORDS("--watch"));
    fleet_start_agent(fleet, &agent, "w-1",
                      WORDS("--subscriptions", "orders", "--", "sh", "-c",
                            "trap 'exit 7' TERM; echo begun; while :; do sleep 0.05; done"));
    wait_for_text(agent.out, "begun");
    wait_for_text(watch.out, "w-1 PEER_APPEARED");
    kill(agent.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&agent), 7);
    wait_for_text(watch.out, "w-1 PEER_LEAVING");
    wait_for_text(watch.out, "w-1 PEER_FINISHED");
}

static void test_cli_agent__a_command_that_ends_takes_it_along(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    fleet_start_agent(fleet, &agent, "w-1", WORDS("--", "sh", "-c", "exit 9"));
    assert_int_equal(coordctl_wait(&agent), 9);
    wait_for_text(agent.err, "health_failure");
    fleet_start_agent(fleet, &agent, "w-1", WORDS("--", "/nowhere/at/all"));
    assert_int_equal(coordctl_wait(&agent), 127);
}

static void test_cli_agent__a_deaf_command_is_killed_before_the_deadline(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    char out[COORDCTL_TEXT];
    static const char *const order[] = {"--id",       "w-1", "--intent", "maintenance",
                                        "--deadline", "1s",  NULL};
    static const char *const rest[] = {"--", "sh", "-c",
                                       "trap '' TERM; echo $$; while :; do sleep 0.05; done", NULL};
    fleet_start_agent(fleet, &agent, "w-1", rest);
    wait_for_text(agent.out, "\n");
    wait_for_text(agent.err, "leading jobs");
    assert_int_equal(fleet_call(fleet, out, "announce", order), 0);
    assert_int_equal(coordctl_wait(&agent), 124);
    wait_for_end((pid_t)strtol(coordctl_output(agent.out, out), NULL, 10));
}

static void test_cli_agent__a_command_dies_with_it(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    char out[COORDCTL_TEXT];
    fleet_start_agent(fleet, &agent, "w-1", WORDS("--", "sh", "-c", "echo $$; exec sleep 60"));
    wait_for_text(agent.out, "\n");
    kill(agent.pid, SIGKILL);
    coordctl_wait(&agent);
    const pid_t command = (pid_t)strtol(coordctl_output(agent.out, out), NULL, 10);
    waitpid(command, NULL, 0); /* it came to us, the subreaper, or is gone already */
    wait_for_end(command);
}

/* What a bus needs to be reached stands in the environment of coordctl alone. */
static void test_cli_agent__a_command_does_not_get_the_secret(void **state)
{
    struct fleet_calls *fleet = *state;
    struct coordctl agent;
    char path[COORDCTL_PATH];
    char bus[COORDCTL_PATH + 32];
    char out[COORDCTL_TEXT];
    snprintf(bus, sizeof bus, "COORD_BUS=local:%s", scene_path(&fleet->scene, "hunter2@h", path));
    const char *const environment[] = {bus, NULL};
    const char *const call[] = {
        "agent", "--elector", fleet->scene.uri, "--name", "jobs", "--id", "w-1", "--", "env", NULL};
    coordctl_start_with(&fleet->scene, &agent, -1, environment, call);
    assert_int_equal(coordctl_wait(&agent), 0);
    assert_non_null(strstr(coordctl_output(agent.out, out), "PATH="));
    assert_null(strstr(out, "hunter2"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_cli_agent__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(hands_assignments_to_a_command_one_by_one),
        TEST(a_hook_that_fails_is_told),
        TEST(tells_of_a_store_that_fails_and_comes_back),
        TEST(nothing_of_a_command_outlives_it),
        TEST(a_command_ends_in_time_though_it_is_stopped),
        TEST(a_command_is_told_to_end_and_its_status_counts),
        TEST(a_command_that_ends_takes_it_along),
        TEST(a_deaf_command_is_killed_before_the_deadline),
        TEST(a_command_dies_with_it),
        TEST(a_command_does_not_get_the_secret),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
