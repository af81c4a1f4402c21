/* SPDX-License-Identifier: MIT
 * tests/fault/test_run.c - `coordctl run` while its parts are killed and stopped: no work of two
 * terms overlaps, whatever the work does to survive.
 */
#include "tests/support/coordctl.h"
#include "tests/support/support.h"

#include <signal.h>

static const char *const plenty[] = {"--ttl", "2s", NULL};

struct pair {
    struct coordctl leader;
    struct coordctl rival;
    uint64_t fence; /* the leader's */
};

/* `processes`: how many of the leader's work tell the time. */
static void start_pair(const struct scene *scene, struct pair *pair, const char *work,
                       unsigned processes)
{
    coordctl_run(scene, &pair->leader, "first", work, NULL);
    pair->fence = work_wait(scene, 0, processes);
    coordctl_run(scene, &pair->rival, "second", work, NULL);
    wait_for_text(pair->rival.err, "waiting for jobs");
}

/* The rival's work runs, and the former leader's has ended before. */
static void expect_takeover(const struct scene *scene, const struct pair *pair)
{
    work_wait(scene, pair->fence, 1);
    work_check(scene);
    work_wait_gone(scene, pair->fence);
    work_check(scene);
}

static void end_rival(const struct scene *scene, struct pair *pair)
{
    kill(pair->rival.pid, SIGKILL);
    coordctl_wait(&pair->rival);
    work_wait_gone(scene, UINT64_MAX);
}

/* ---------------------------------------------------------------- coordctl is killed */

static void kill_leader(struct scene *scene, const char *work, unsigned processes)
{
    struct pair pair;
    start_pair(scene, &pair, work, processes);
    const pid_t guardian = guardian_of(&pair.leader);
    kill(pair.leader.pid, SIGKILL);
    assert_int_equal(coordctl_wait(&pair.leader), 128 + SIGKILL);
    expect_takeover(scene, &pair);
    wait_for_end(guardian);
    end_rival(scene, &pair);
}

static void test_run__killed_leader_takes_its_command_along(void **state)
{
    kill_leader(*state, "beat", 1);
}

static void test_run__killed_leader_takes_a_deaf_command_along(void **state)
{
    kill_leader(*state, "deaf", 1);
}

static void test_run__killed_leader_takes_a_daemon_along(void **state)
{
    kill_leader(*state, "daemon", 2);
}

/* ---------------------------------------------------------------- coordctl is stopped */

static void stop_leader(struct scene *scene, const char *work, unsigned processes)
{
    struct pair pair;
    start_pair(scene, &pair, work, processes);
    kill(pair.leader.pid, SIGSTOP);
    wait_for_stop(pair.leader.pid);
    expect_takeover(scene, &pair);
    kill(pair.leader.pid, SIGCONT);
    assert_int_equal(coordctl_wait(&pair.leader), 121);
    work_check(scene);
    end_rival(scene, &pair);
}

static void test_run__stopped_leader_loses_its_command_in_time(void **state)
{
    stop_leader(*state, "beat", 1);
}

static void test_run__stopped_leader_loses_a_deaf_command_in_time(void **state)
{
    stop_leader(*state, "deaf", 1);
}

static void test_run__stopped_leader_loses_a_daemon_in_time(void **state)
{
    stop_leader(*state, "daemon", 2);
}

/* ---------------------------------------------------------------- the guardian is killed */

static void kill_guardian(struct scene *scene, const char *work, unsigned processes)
{
    struct pair pair;
    start_pair(scene, &pair, work, processes);
    kill(guardian_of(&pair.leader), SIGKILL);
    assert_int_equal(coordctl_wait(&pair.leader), 125);
    wait_for_text(pair.leader.err, "the guardian of jobs was killed");
    expect_takeover(scene, &pair);
    end_rival(scene, &pair);
}

static void test_run__killed_guardian_ends_the_command_and_the_term(void **state)
{
    kill_guardian(*state, "beat", 1);
}

static void test_run__killed_guardian_ends_a_deaf_command(void **state)
{
    kill_guardian(*state, "deaf", 1);
}

static void test_run__killed_guardian_ends_a_daemon(void **state)
{
    kill_guardian(*state, "daemon", 2);
}

static void test_run__killed_guardian_is_replaced_with_restart(void **state)
{
    struct scene *scene = *state;
    struct coordctl leader;
    coordctl_run(scene, &leader, "first", "daemon", WORDS("--restart", "--ttl", "2s"));
    const uint64_t fence = work_wait(scene, 0, 2);
    const pid_t guardian = guardian_of(&leader);
    kill(guardian, SIGKILL);
    wait_for_end(guardian);
    work_wait(scene, fence, 2);
    work_wait_gone(scene, fence);
    work_check(scene);
    kill(leader.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&leader), 128 + SIGTERM);
    work_wait_gone(scene, UINT64_MAX);
}

static void test_run__killed_guardian_is_replaced_while_waiting(void **state)
{
    struct scene *scene = *state;
    struct pair pair;
    start_pair(scene, &pair, "beat", 1);
    const pid_t guardian = guardian_of(&pair.rival);
    kill(guardian, SIGKILL);
    wait_for_end(guardian);
    kill(pair.leader.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&pair.leader), 128 + SIGTERM);
    expect_takeover(scene, &pair);
    end_rival(scene, &pair);
}

/* ---------------------------------------------------------------- the guardian is stopped */

static void stop_guardian(struct scene *scene, const char *work, unsigned processes)
{
    struct pair pair;
    char out[COORDCTL_TEXT];
    start_pair(scene, &pair, work, processes);
    kill(guardian_of(&pair.leader), SIGSTOP);
    assert_int_equal(coordctl_ask(scene, out, "step-down", NULL, NULL), 0);
    assert_int_equal(coordctl_wait(&pair.leader), 121);
    expect_takeover(scene, &pair);
    end_rival(scene, &pair);
}

static void test_run__stopped_guardian_is_resumed_for_a_step_down(void **state)
{
    stop_guardian(*state, "beat", 1);
}

static void test_run__stopped_guardian_is_resumed_for_a_deaf_command(void **state)
{
    stop_guardian(*state, "deaf", 1);
}

static void test_run__stopped_guardian_is_resumed_for_a_daemon(void **state)
{
    stop_guardian(*state, "daemon", 2);
}

/* ---------------------------------------------------------------- more than one thing */

/* The guardian's copy of the lock: nobody leads before it has killed what coordctl left. */
static void test_run__term_is_held_until_the_work_of_a_killed_leader_is_gone(void **state)
{
    struct scene *scene = *state;
    struct pair pair;
    struct coordctl third;
    static const char *const long_lease[] = {"--ttl", "1h", NULL};
    coordctl_run(scene, &pair.leader, "first", "daemon", long_lease);
    pair.fence = work_wait(scene, 0, 2);
    const pid_t guardian = guardian_of(&pair.leader);
    const pid_t command = wait_for_child(guardian);
    kill(pair.leader.pid, SIGSTOP); /* it would resume the guardian */
    wait_for_stop(pair.leader.pid);
    kill(guardian, SIGSTOP);
    wait_for_stop(guardian);
    kill(pair.leader.pid, SIGKILL);
    assert_int_equal(coordctl_wait(&pair.leader), 128 + SIGKILL);
    coordctl_run(scene, &third, "third", "beat", WORDS("--ttl", "1h", "--wait", "0"));
    assert_int_equal(coordctl_wait(&third), 124);
    assert_int_equal(kill(command, 0), 0);
    coordctl_run(scene, &pair.rival, "second", "beat", long_lease);
    wait_for_text(pair.rival.err, "first leads");
    kill(guardian, SIGCONT);
    expect_takeover(scene, &pair);
    end_rival(scene, &pair);
}

static void test_run__command_dies_with_both(void **state)
{
    struct scene *scene = *state;
    struct pair pair;
    start_pair(scene, &pair, "deaf", 1);
    const pid_t guardian = guardian_of(&pair.leader);
    kill(guardian, SIGSTOP);
    kill(pair.leader.pid, SIGKILL);
    kill(guardian, SIGKILL);
    assert_int_equal(coordctl_wait(&pair.leader), 128 + SIGKILL);
    work_wait(scene, pair.fence, 1);
    work_wait_gone(scene, pair.fence);
    end_rival(scene, &pair);
}

static void test_run__stopped_command_still_ends(void **state)
{
    struct scene *scene = *state;
    struct pair pair;
    char out[COORDCTL_TEXT];
    start_pair(scene, &pair, "polite", 1);
    const pid_t command = wait_for_child(guardian_of(&pair.leader));
    kill(command, SIGSTOP);
    wait_for_stop(command);
    assert_int_equal(coordctl_ask(scene, out, "step-down", NULL, NULL), 0);
    assert_int_equal(coordctl_wait(&pair.leader), 121);
    expect_takeover(scene, &pair);
    assert_true(work_got(scene, pair.fence, SIGTERM));
    end_rival(scene, &pair);
}

static void test_run__a_row_of_kills_never_overlaps(void **state)
{
    struct scene *scene = *state;
    struct coordctl workers[3];
    uint64_t fence = 0;
    for (int i = 0; i < 3; i++) {
        coordctl_run(scene, &workers[i], i == 0 ? "a" : i == 1 ? "b" : "c", "daemon", plenty);
    }
    for (int round = 0; round < 8; round++) {
        fence = work_wait(scene, fence, 2);
        /* Whoever runs the work with this fence: its coordctl is the one that led last. */
        char text[COORDCTL_TEXT];
        char line[64];
        snprintf(line, sizeof line, "leading jobs, fence %llu", (unsigned long long)fence);
        int leader = -1;
        for (int i = 0; i < 3; i++) {
            if (strstr(coordctl_output(workers[i].err, text), line) != NULL) {
                leader = i;
            }
        }
        assert_in_range(leader, 0, 2);
        kill(workers[leader].pid, SIGKILL);
        coordctl_wait(&workers[leader]);
        coordctl_run(scene, &workers[leader], "again", "daemon", plenty);
    }
    work_wait(scene, fence, 2);
    work_wait_gone(scene, fence);
    work_check(scene);
}

int main(int argc, char **argv)
{
    work_if_asked(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_run__killed_leader_takes_its_command_along),
        TEST(test_run__killed_leader_takes_a_deaf_command_along),
        TEST(test_run__killed_leader_takes_a_daemon_along),
        TEST(test_run__stopped_leader_loses_its_command_in_time),
        TEST(test_run__stopped_leader_loses_a_deaf_command_in_time),
        TEST(test_run__stopped_leader_loses_a_daemon_in_time),
        TEST(test_run__killed_guardian_ends_the_command_and_the_term),
        TEST(test_run__killed_guardian_ends_a_deaf_command),
        TEST(test_run__killed_guardian_ends_a_daemon),
        TEST(test_run__killed_guardian_is_replaced_with_restart),
        TEST(test_run__killed_guardian_is_replaced_while_waiting),
        TEST(test_run__stopped_guardian_is_resumed_for_a_step_down),
        TEST(test_run__stopped_guardian_is_resumed_for_a_deaf_command),
        TEST(test_run__stopped_guardian_is_resumed_for_a_daemon),
        TEST(test_run__term_is_held_until_the_work_of_a_killed_leader_is_gone),
        TEST(test_run__command_dies_with_both),
        TEST(test_run__stopped_command_still_ends),
        TEST(test_run__a_row_of_kills_never_overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
