/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_demo.c - `coordctl demo`: it judges itself, and leaves nothing behind.
 */
#include "tests/support/coordctl.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

static void start_demo(const struct scene *scene, struct coordctl *demo, char *folder)
{
    char variable[COORDCTL_PATH + 16];
    scene_path(scene, "temporary", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(variable, sizeof variable, "TMPDIR=%s", folder);
    const char *const environment[] = {variable, NULL};
    coordctl_start_with(scene, demo, -1, environment, WORDS("demo"));
}

static void expect_empty(const char *path)
{
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        assert_int_equal(entry->d_name[0], '.');
    }
    closedir(folder);
}

/* "anna leads, fence 7, after 12.3 ms": the next one. @return where it ends. */
static const char *next_takeover(const char *text, uint64_t *fence)
{
    static const char words[] = " leads, fence ";
    char *end = NULL;
    const char *at = strstr(text, words);
    assert_non_null(at);
    *fence = strtoull(at + sizeof words - 1, &end, 10);
    assert_int_equal(strncmp(end, ", after ", 8), 0);
    strtod(end + 8, &end);
    assert_int_equal(strncmp(end, " ms\n", 4), 0);
    return end;
}

/* What is done to the leader, and then one line of its successor. */
static void expect_takeovers(const char *out)
{
    static const char *const events[] = {" stand for one election", "kill -9 ", "SIGSTOP ",
                                         " steps down, and names "};
    const char *at = out;
    uint64_t last = 0;
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        const char *event = strstr(at, events[i]);
        uint64_t fence = 0;
        assert_non_null(event);
        assert_true(event < strstr(at, " leads, fence ")); /* no line between two events */
        at = next_takeover(event, &fence);
        assert_true(fence > last);
        last = fence;
    }
    assert_null(strstr(at, " leads, fence "));
}

static void test_cli_demo__all_promises_hold(void **state)
{
    struct coordctl demo;
    char folder[COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    start_demo(*state, &demo, folder);
    assert_int_equal(coordctl_wait(&demo), 0);
    coordctl_output(demo.out, out);
    expect_takeovers(out);
    assert_non_null(strstr(out, "hears no"));
    assert_non_null(strstr(out, "E1 one leader: held"));
    assert_non_null(strstr(out, "E2 fences rise: held"));
    assert_non_null(strstr(out, "a heartbeat of dan"));
    assert_non_null(strstr(out, "a preemption notice"));
    assert_non_null(strstr(out, "its owner is draining"));
    assert_non_null(strstr(out, "its owner is silent"));
    assert_non_null(strstr(out, "and resolved: held"));
    assert_null(strchr(out, '\033')); /* no colours in a file */
    expect_empty(folder);
}

static void interrupt_at(const struct scene *scene, const char *text)
{
    struct coordctl demo;
    char folder[COORDCTL_PATH];
    start_demo(scene, &demo, folder);
    wait_for_text(demo.out, text);
    kill(demo.pid, SIGINT);
    assert_int_equal(coordctl_wait(&demo), 128 + SIGINT);
    expect_empty(folder);
}

static void test_cli_demo__an_interrupt_leaves_nothing_behind(void **state)
{
    interrupt_at(*state, "leads, fence");
}

static void test_cli_demo__an_interrupt_of_the_fleet_leaves_nothing_behind(void **state)
{
    interrupt_at(*state, "a heartbeat of anna");
}

static void test_cli_demo__a_reader_that_goes_leaves_nothing_behind(void **state)
{
    char line[2 * COORDCTL_PATH];
    char folder[COORDCTL_PATH];
    scene_path(*state, "temporary", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(line, sizeof line, "TMPDIR='%s' " COORD_BUILD "/coordctl demo | read -r first",
             folder);
    assert_int_equal(system(line), 0);
    expect_empty(folder);
}

int main(int argc, char **argv)
{
    work_if_asked(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_cli_demo__all_promises_hold),
        TEST(test_cli_demo__an_interrupt_leaves_nothing_behind),
        TEST(test_cli_demo__an_interrupt_of_the_fleet_leaves_nothing_behind),
        TEST(test_cli_demo__a_reader_that_goes_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
