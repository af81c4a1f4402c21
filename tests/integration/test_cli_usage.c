/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_usage.c - the command line of coordctl: help, mistakes and their
 * cures, and secrets that are not seen.
 */
#include "coord/base.h"
#include "tests/support/coordctl.h"
#include "tests/support/support.h"

#include <signal.h>
#include <sys/resource.h>

static void check_help(const struct scene *scene, const char *const *arguments, const char *text)
{
    struct coordctl coordctl;
    char out[COORDCTL_TEXT];
    coordctl_start(scene, &coordctl, arguments);
    assert_int_equal(coordctl_wait(&coordctl), 0);
    assert_non_null(strstr(coordctl_output(coordctl.out, out), text));
    assert_string_equal(coordctl_output(coordctl.err, out), "");
}

static void test_cli__help_and_version_go_to_standard_output(void **state)
{
    static const char *const help[] = {"--help", NULL};
    static const char *const version[] = {"--version", NULL};
    static const char *const verbs[] = {"run", "status", "step-down", "init", "demo"};
    check_help(*state, help, "usage: coordctl VERB");
    check_help(*state, version, "coordctl ");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        const char *const of_verb[] = {verbs[i], "--help", NULL};
        check_help(*state, of_verb, verbs[i]);
        check_help(*state, help, verbs[i]);
    }
}

/* One line on standard error that names the cure, nothing on standard output, exit 2. */
static void check_mistake(const struct scene *scene, const char *cure, const char *const *arguments)
{
    struct coordctl coordctl;
    char out[COORDCTL_TEXT];
    coordctl_start(scene, &coordctl, arguments);
    assert_int_equal(coordctl_wait(&coordctl), 2);
    assert_string_equal(coordctl_output(coordctl.out, out), "");
    coordctl_output(coordctl.err, out);
    if (strstr(out, cure) == NULL) {
        fail_msg("no \"%s\" in: %s", cure, out);
    }
    assert_string_equal(strchr(out, '\n'), "\n");
}

#define MISTAKE(cure, ...) check_mistake(scene, cure, WORDS(__VA_ARGS__))

static void test_cli__a_mistake_is_told_with_its_cure(void **state)
{
    const struct scene *scene = *state;
    const char *uri = scene->uri;
    char longer[COORD_NAME_MAX + 2];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    MISTAKE("1 to 255", "status", "--elector", uri, "--name", longer);
    MISTAKE("1 to 255", "step-down", "--elector", uri, "--name", "jobs", "--to", longer);
    MISTAKE("coordctl --help", "nonsense");
    MISTAKE("coordctl run --help", "run", "--bogus", "--", "true");
    MISTAKE("--elector URI", "run", "--name", "jobs", "--", "true");
    MISTAKE("COORD_NAME", "run", "--elector", uri, "--", "true");
    MISTAKE("after --", "run", "--elector", uri, "--name", "jobs");
    MISTAKE("after --", "run", "--elector", uri, "--name", "jobs", "--");
    MISTAKE("--", "run", "--elector", uri, "--name", "jobs", "true");
    MISTAKE("--ttl DUR", "run", "--elector", uri, "--name", "jobs", "--ttl", "--", "true");
    MISTAKE("15s", "run", "--elector", uri, "--name", "jobs", "--ttl=5x", "--", "true");
    MISTAKE("--ttl cannot be 0", "run", "--elector", uri, "--name", "jobs", "--ttl=0", "--",
            "true");
    MISTAKE("--kill-after cannot be 0", "run", "--elector", uri, "--name", "jobs", "--kill-after",
            "0", "--", "true");
    MISTAKE("coord.grace=0", "status", "--elector", uri, "--name", "jobs", "--option", "grace=0s");
    MISTAKE("give it once", "run", "--elector", uri, "--name", "a", "--name", "b", "--", "true");
    MISTAKE("takes no value", "run", "--elector", uri, "--name", "a", "--restart=1", "--", "true");
    MISTAKE("NAME", "status", "--elector", uri, "--name", "");
    MISTAKE("leave out --", "status", "--elector", uri, "--name", "jobs", "--", "true");
    MISTAKE("coord.bogus", "status", "--elector", uri, "--name", "jobs", "--option", "bogus=1");
    MISTAKE("file:", "status", "--elector", "nothing://h", "--name", "jobs");
    MISTAKE("BAD_URI", "status", "--elector", "nothing", "--name", "jobs");
}

static void test_cli__what_cannot_be_printed_is_told(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char command[2 * COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    snprintf(command, sizeof command,
             "exec " COORD_BUILD "/coordctl status --elector '%s' --name jobs >/dev/full",
             scene->uri);
    const char *const arguments[] = {"run", "--elector", scene->uri, "--name", "jobs",
                                     "--",  "sh",        "-c",       command,  NULL};
    coordctl_start(scene, &run, arguments);
    assert_int_equal(coordctl_wait(&run), 125);
    assert_non_null(strstr(coordctl_output(run.err, out), "standard output cannot be written"));
}

static void test_cli__option_says_what_the_uri_says(void **state)
{
    const struct scene *scene = *state;
    char out[COORDCTL_TEXT];
    const char *const fine[] = {
        "status", "--elector", scene->uri,          "--name", "jobs", "--option",
        "ttl=2s", "--option",  "coord.grace=100ms", NULL};
    assert_int_equal(coordctl_call(scene, out, fine), 1); /* nobody leads */
}

/* ---------------------------------------------------------------- secrets */

/* The query of the URI stands for a password: both are hidden alike, and this needs no server. */
static void test_cli__a_secret_is_seen_nowhere(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char uri[COORDCTL_PATH];
    char path[COORDCTL_PATH];
    char elector[2 * COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    snprintf(uri, sizeof uri, "file:%s?coord.ttl=1h", scene_path(scene, "hunter2@h", path));
    snprintf(elector, sizeof elector, "--elector=%s", uri);
    const char *const init[] = {"init", "--elector", uri, "--name", "jobs", NULL};
    assert_int_equal(coordctl_call(scene, out, init), 0);
    coordctl_start(scene, &run, WORDS("run", elector, "--name", "jobs", "--", "sleep", "60"));
    wait_for_text(run.err, "leading jobs");
    expect_unseen(run.pid, "cmdline", "hunter2");
    expect_unseen(guardian_of(&run), "cmdline", "hunter2");
    const pid_t child = wait_for_child(guardian_of(&run));
    wait_for_program(child, "sleep");
    expect_unseen(child, "environ", "hunter2");
    kill(run.pid, SIGTERM);
    coordctl_wait(&run);
}

static void test_cli__a_secret_in_the_environment_is_seen_nowhere(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char path[COORDCTL_PATH];
    char elector[2 * COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    snprintf(elector, sizeof elector, "COORD_ELECTOR=file:%s?coord.ttl=1h",
             scene_path(scene, "hunter2@h", path));
    const char *const init[] = {"init",   "--elector", elector + strlen("COORD_ELECTOR="),
                                "--name", "jobs",      NULL};
    const char *const environment[] = {elector, NULL};
    const char *const arguments[] = {"run", "--name", "jobs", "--", "sleep", "60", NULL};
    assert_int_equal(coordctl_call(scene, out, init), 0);
    coordctl_start_with(scene, &run, -1, environment, arguments);
    wait_for_text(run.err, "leading jobs");
    expect_unseen(run.pid, "environ", "hunter2");
    expect_unseen(guardian_of(&run), "environ", "hunter2");
    const pid_t child = wait_for_child(guardian_of(&run));
    wait_for_program(child, "sleep");
    expect_unseen(child, "environ", "hunter2");
}

static void expect_no_secret_said(const struct scene *scene, const char *const *arguments)
{
    struct coordctl coordctl;
    char out[COORDCTL_TEXT];
    coordctl_start(scene, &coordctl, arguments);
    assert_int_not_equal(coordctl_wait(&coordctl), 0);
    assert_null(strstr(coordctl_output(coordctl.err, out), "hunter2"));
    assert_null(strstr(coordctl_output(coordctl.out, out), "hunter2"));
}

static void test_cli__a_secret_is_not_said_in_errors(void **state)
{
    expect_no_secret_said(*state, WORDS("run", "redis://u:hunter2@h/0", "--", "true"));
    expect_no_secret_said(*state, WORDS("redis://u:hunter2@h/0"));
    expect_no_secret_said(*state,
                          WORDS("status", "--elector", "what://u:hunter2@h/0", "--name", "jobs"));
    expect_no_secret_said(
        *state, WORDS("status", "--elector", "redis://u:hunter2@h:port:/%zz", "--name", "jobs"));
    expect_no_secret_said(*state,
                          WORDS("status", "--elector",
                                "redis://u:hunter2@127.0.0.1:1/0?coord.ttl=x", "--name", "jobs"));
}

/* @return the exit status; `said` is its standard error. */
static int with_descriptors(const struct scene *scene, int count, char said[COORDCTL_TEXT],
                            const char *const *arguments)
{
    struct coordctl coordctl;
    struct rlimit before;
    struct rlimit few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)count, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    coordctl_start(scene, &coordctl, arguments);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    const int status = coordctl_wait(&coordctl);
    coordctl_output(coordctl.err, said);
    return status;
}

/* With each number of descriptors it does what it does with many, or says that they are too few. */
static void check_descriptors(const struct scene *scene, const char *const *arguments)
{
    enum {
        FEWEST = 6, /* coordctl is started with them */
        MANY = 64
    };
    char plain[COORDCTL_TEXT];
    char said[COORDCTL_TEXT];
    const int status = with_descriptors(scene, MANY, plain, arguments);
    bool told = true;
    for (int count = FEWEST; count < MANY && told; count++) {
        const int is = with_descriptors(scene, count, said, arguments);
        told = strstr(said, "open files") != NULL;
        if (!told && (is != status || strcmp(said, plain) != 0)) {
            fail_msg("%s with %d descriptors: %s", arguments[2], count, said);
        }
        assert_true(told || count > FEWEST);
    }
}

static void test_cli__too_few_descriptors_are_told_as_that(void **state)
{
    const struct scene *scene = *state;
    char bus[COORDCTL_PATH + 8];
    char path[COORDCTL_PATH];
    snprintf(bus, sizeof bus, "local:%s", scene_path(scene, "bus", path));
    const char *const file[] = {"status", "--elector", scene->uri, "--name", "jobs", NULL};
    const char *const local[] = {"announce", "--bus",    bus,        "--id",
                                 "w1",       "--intent", "graceful", NULL};
    const char *const redis[] = {"status", "--elector", "redis://127.0.0.1:1/",
                                 "--name", "jobs",      NULL};
    const char *const postgres[] = {"status", "--elector", "postgresql://127.0.0.1:1/",
                                    "--name", "jobs",      NULL};
    check_descriptors(scene, file);
    check_descriptors(scene, local);
    check_descriptors(scene, redis);
    check_descriptors(scene, postgres);
}

int main(int argc, char **argv)
{
    work_if_asked(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_cli__help_and_version_go_to_standard_output),
        TEST(test_cli__a_mistake_is_told_with_its_cure),
        TEST(test_cli__what_cannot_be_printed_is_told),
        TEST(test_cli__option_says_what_the_uri_says),
        TEST(test_cli__a_secret_is_seen_nowhere),
        TEST(test_cli__a_secret_in_the_environment_is_seen_nowhere),
        TEST(test_cli__a_secret_is_not_said_in_errors),
        TEST(test_cli__too_few_descriptors_are_told_as_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
