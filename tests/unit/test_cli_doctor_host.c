/* SPDX-License-Identifier: MIT
 * tests/unit/test_cli_doctor_host.c - what coordctl doctor says of this host.
 */
#include "cli/doctor.h"
#include "tests/support/scratch.h"
#include "tests/support/support.h"

#include <sys/resource.h>
#include <sys/stat.h>

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    scratch_make("host", folder, sizeof folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(path_of(name), 0700), 0);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static bool throttled(uint64_t *periods, uint64_t *times)
{
    char groups[256];
    snprintf(groups, sizeof groups, "%s", path_of("groups"));
    return cli_doctor_throttled(groups, folder, periods, times);
}

/* ---------------------------------------------------------------- control groups */

static void test_doctor_host__finds_the_worst_of_a_group_and_those_above_it(void **state)
{
    uint64_t periods = 0;
    uint64_t times = 0;
    (void)state;
    make_folder("pod");
    make_folder("pod/app");
    write_file("groups", "0::/pod/app\n");
    write_file("cpu.stat", "usage_usec 7\n");
    write_file("pod/cpu.stat", "usage_usec 7\nnr_periods 500\nnr_throttled 40\n");
    write_file("pod/app/cpu.stat", "usage_usec 7\nnr_periods 600\nnr_throttled 3\n");
    assert_true(throttled(&periods, &times));
    assert_int_equal(periods, 500);
    assert_int_equal(times, 40);
}

static void test_doctor_host__reads_the_older_control_groups_too(void **state)
{
    uint64_t periods = 0;
    uint64_t times = 0;
    (void)state;
    make_folder("cpu");
    make_folder("cpu/all");
    make_folder("cpu/app");
    write_file("cpu/all/cpu.stat", "nr_periods 8\nnr_throttled 1\nthrottled_time 1\n");
    write_file("groups", "9:cpuset:/all\n4:cpuacct,cpu:/app\n1:name=systemd:/init\n");
    write_file("cpu/app/cpu.stat", "nr_periods 10\nnr_throttled 9\nthrottled_time 1\n");
    assert_true(throttled(&periods, &times));
    assert_int_equal(periods, 10);
    assert_int_equal(times, 9);
}

static void test_doctor_host__takes_a_host_without_control_groups(void **state)
{
    uint64_t periods = 1;
    uint64_t times = 1;
    (void)state;
    assert_false(throttled(&periods, &times));
    write_file("groups", "no group at all\n");
    assert_false(throttled(&periods, &times));
    write_file("groups", "0::/\n");
    assert_false(throttled(&periods, &times));
    assert_int_equal(periods, 0);
    assert_int_equal(times, 0);
}

/* ---------------------------------------------------------------- lines */

static const struct coord_check *find(const struct cli_findings *found, const char *name)
{
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(found->list[i].name, name) == 0) {
            return &found->list[i];
        }
    }
    fail_msg("no line \"%s\"", name);
    return NULL;
}

static void test_doctor_host__has_a_line_for_each_thing_that_a_host_does(void **state)
{
    static const char *const names[] = {"clock read", "suspend",    "time server",
                                        "cpu limit",  "open files", "processes"};
    static struct cli_findings found;
    (void)state;
    found.count = 0;
    cli_doctor_host(&found);
    assert_int_equal(found.count, sizeof names / sizeof *names);
    for (size_t i = 0; i < found.count; i++) {
        const struct coord_check *check = find(&found, names[i]);
        assert_true(check->value[0] != '\0' && check->why[0] != '\0');
        assert_int_equal(check->cure[0] == '\0', check->verdict == COORD_VERDICT_OK);
        assert_int_not_equal(check->verdict, COORD_VERDICT_FAIL);
    }
}

static void test_doctor_host__warns_of_few_descriptors(void **state)
{
    static struct cli_findings found;
    struct rlimit before;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    found.count = 0;
    cli_doctor_host(&found);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    const struct coord_check *check = find(&found, "open files");
    assert_int_equal(check->verdict, COORD_VERDICT_WARN);
    assert_string_equal(check->value, "64");
    assert_non_null(strstr(check->cure, "ulimit -n"));
}

static void look_up(struct cli_findings *found, const char *text)
{
    static const struct coord_timing timing = {.lease = 8 * 60000, .attempt = 60000};
    static struct coord_uri uri;
    *found = (struct cli_findings){.timing = &timing};
    assert_int_equal(coord_uri_parse(text, &uri, NULL), COORD_OK);
    cli_doctor_names(found, &uri);
}

static void test_doctor_host__resolves_names_and_only_names(void **state)
{
    static struct cli_findings found;
    (void)state;
    look_up(&found, "redis://localhost:6379");
    assert_int_equal(find(&found, "names")->verdict, COORD_VERDICT_OK);
    assert_non_null(strstr(find(&found, "names")->value, " ms"));
    look_up(&found, "redis+sentinel://127.0.0.1,no..name/main");
    assert_int_equal(find(&found, "names")->verdict, COORD_VERDICT_WARN);
    assert_non_null(strstr(find(&found, "names")->value, "no..name"));
    look_up(&found, "redis://[::1]:6379");
    assert_int_equal(found.count, 0);
    look_up(&found, "redis+unix:///run/redis.sock");
    assert_int_equal(found.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_doctor_host__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(finds_the_worst_of_a_group_and_those_above_it),
        TEST(reads_the_older_control_groups_too),
        TEST(takes_a_host_without_control_groups),
        TEST(has_a_line_for_each_thing_that_a_host_does),
        TEST(warns_of_few_descriptors),
        TEST(resolves_names_and_only_names),
    };
#undef TEST
    return cmocka_run_group_tests_name("cli_doctor_host", tests, NULL, NULL);
}
