/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_status.c - `coordctl status`, `step-down` and `init`: what they print,
 * and how they exit.
 */
#include "tests/support/coordctl.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <signal.h>

/* The members stand in the promised order, and nothing else does. */
static json_t *parse_line(const char *line, const char *const *members)
{
    json_error_t error;
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) {
        fail_msg("not JSON: %s: %s", error.text, line);
    }
    size_t count = 0;
    const char *at = line;
    for (; members[count] != NULL; count++) {
        char key[64];
        snprintf(key, sizeof key, "\"%s\":", members[count]);
        at = strstr(at, key);
        assert_non_null(at);
        assert_non_null(json_object_get(object, members[count]));
    }
    assert_int_equal(json_object_size(object), count);
    assert_string_equal(strchr(line, '\n'), "\n");
    return object;
}

static json_t *parse_status(const char *line)
{
    static const char *const members[] = {
        "name",        "leader",   "fence",   "since", "lease_remaining_ms",
        "taking_over", "metadata", "backend", NULL};
    return parse_line(line, members);
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool is_null(const json_t *object, const char *key)
{
    return json_is_null(json_object_get(object, key));
}

/* ---------------------------------------------------------------- status */

static void test_cli_status__nobody_leads(void **state)
{
    const struct scene *scene = *state;
    char out[COORDCTL_TEXT];
    assert_int_equal(coordctl_ask(scene, out, "status", NULL, NULL), 1);
    assert_string_equal(out, "jobs: nobody leads\n");
    assert_int_equal(coordctl_ask(scene, out, "status", "--json", NULL), 1);
    json_t *status = parse_status(out);
    assert_string_equal(text_of(status, "name"), "jobs");
    assert_string_equal(text_of(status, "backend"), "file");
    assert_true(is_null(status, "leader"));
    assert_true(is_null(status, "fence"));
    assert_true(is_null(status, "since"));
    assert_true(is_null(status, "lease_remaining_ms"));
    assert_true(is_null(status, "taking_over"));
    assert_true(json_is_object(json_object_get(status, "metadata")));
    json_decref(status);
}

static void test_cli_status__a_leader_with_fence_and_times(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char out[COORDCTL_TEXT];
    coordctl_run(scene, &run, "first", "beat", NULL);
    const uint64_t fence = work_wait(scene, 0, 1);
    assert_int_equal(coordctl_ask(scene, out, "status", NULL, NULL), 0);
    assert_non_null(strstr(out, "jobs: first leads, fence "));
    assert_int_equal(coordctl_ask(scene, out, "status", "--json", NULL), 0);
    json_t *status = parse_status(out);
    assert_string_equal(text_of(status, "leader"), "first");
    assert_true((uint64_t)json_integer_value(json_object_get(status, "fence")) == fence);
    assert_in_range(json_integer_value(json_object_get(status, "lease_remaining_ms")), 0, 1000);
    /* 2026-11-29T19:02:16.123Z */
    const char *since = text_of(status, "since");
    assert_non_null(since);
    assert_int_equal(strlen(since), 24);
    assert_int_equal(since[10], 'T');
    assert_int_equal(since[23], 'Z');
    json_decref(status);
}

static void test_cli_status__who_takes_over_does_not_lead(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    struct coordctl next;
    char uri[COORDCTL_PATH];
    char path[COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    snprintf(uri, sizeof uri, "file:%s?coord.ttl=20s", scene_path(scene, "new", path));
    coordctl_start(scene, &run,
                   WORDS("run", "--elector", uri, "--name", "jobs", "--id", "heir", "--", "true"));
    wait_for_text(run.err, "taking over jobs");
    const char *const status[] = {"status", "--elector", uri, "--name", "jobs", "--json", NULL};
    assert_int_equal(coordctl_call(scene, out, status), 1);
    json_t *object = parse_status(out);
    assert_true(is_null(object, "leader"));
    assert_string_equal(text_of(object, "taking_over"), "heir");
    json_decref(object);
    coordctl_start(scene, &next,
                   WORDS("run", "--elector", uri, "--name", "jobs", "--wait", "0", "--", "true"));
    assert_int_equal(coordctl_wait(&next), 124);
    assert_non_null(strstr(coordctl_output(next.err, out), "heir takes over; its lease"));
    kill(run.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&run), 128 + SIGTERM);
}

static void test_cli_status__names_of_any_byte_stay_printable(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char out[COORDCTL_TEXT];
    const char *const init[] = {"init", "--elector", scene->uri, "--name", "n\xff\"{", NULL};
    const char *const status[] = {"status",   "--elector", scene->uri, "--name",
                                  "n\xff\"{", "--json",    NULL};
    assert_int_equal(coordctl_call(scene, out, init), 0);
    coordctl_start(scene, &run,
                   WORDS("run", "--elector", scene->uri, "--name", "n\xff\"{", "--id", "a\x01/",
                         "--", "sleep", "60"));
    wait_for_text(run.err, "leading n%ff\"%7b");
    assert_int_equal(coordctl_call(scene, out, status), 0);
    json_t *object = parse_status(out);
    assert_string_equal(text_of(object, "name"), "n%ff\"%7b");
    assert_string_equal(text_of(object, "leader"), "a%01/");
    json_decref(object);
}

static void test_cli_status__watch_prints_each_change(void **state)
{
    const struct scene *scene = *state;
    struct coordctl watch;
    struct coordctl run;
    char out[COORDCTL_TEXT];
    coordctl_start(scene, &watch,
                   WORDS("status", "--elector", scene->uri, "--name", "jobs", "--watch"));
    wait_for_text(watch.out, "nobody leads");
    coordctl_run(scene, &run, "first", "beat", NULL);
    wait_for_text(watch.out, "first leads");
    kill(run.pid, SIGTERM);
    coordctl_wait(&run);
    coordctl_run(scene, &run, "second", "beat", NULL);
    wait_for_text(watch.out, "second leads");
    kill(watch.pid, SIGTERM);
    coordctl_wait(&watch);
    coordctl_output(watch.out, out);
    assert_ptr_equal(strstr(strstr(out, "first leads") + 1, "first leads"), NULL);
}

/* ---------------------------------------------------------------- step-down */

static json_t *parse_step_down(const char *line)
{
    static const char *const members[] = {"name", "leader", "fence", "to", "stepped_down", NULL};
    return parse_line(line, members);
}

static void test_cli_step_down__nobody_to_ask(void **state)
{
    char out[COORDCTL_TEXT];
    assert_int_equal(coordctl_ask(*state, out, "step-down", "--json", NULL), 1);
    json_t *object = parse_step_down(out);
    assert_true(is_null(object, "leader"));
    assert_true(json_is_false(json_object_get(object, "stepped_down")));
    json_decref(object);
}

static void test_cli_step_down__names_who_stepped_down(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char out[COORDCTL_TEXT];
    coordctl_run(scene, &run, "first", "beat", NULL);
    const uint64_t fence = work_wait(scene, 0, 1);
    assert_int_equal(coordctl_ask(scene, out, "step-down", "--json", NULL), 0);
    json_t *object = parse_step_down(out);
    assert_string_equal(text_of(object, "leader"), "first");
    assert_true((uint64_t)json_integer_value(json_object_get(object, "fence")) == fence);
    assert_true(is_null(object, "to"));
    assert_true(json_is_true(json_object_get(object, "stepped_down")));
    json_decref(object);
    assert_int_equal(coordctl_wait(&run), 121);
}

static void test_cli_step_down__who_does_not_listen_is_124(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char out[COORDCTL_TEXT];
    coordctl_run(scene, &run, "first", "beat", WORDS("--ttl", "1h"));
    work_wait(scene, 0, 1);
    kill(run.pid, SIGSTOP);
    wait_for_stop(run.pid);
    assert_int_equal(coordctl_ask(scene, out, "step-down", "--wait", "100ms"), 124);
}

/* ---------------------------------------------------------------- init */

static void test_cli_init__is_refused_while_somebody_leads(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char out[COORDCTL_TEXT];
    coordctl_run(scene, &run, "first", "beat", NULL);
    work_wait(scene, 0, 1);
    assert_int_equal(coordctl_ask(scene, out, "init", NULL, NULL), 125);
    assert_int_equal(coordctl_ask(scene, out, "status", NULL, NULL), 0);
}

/* To have it step down would be refused as well: nobody leads. */
static void test_cli_init__is_refused_while_somebody_takes_over(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    struct coordctl init;
    char uri[COORDCTL_PATH];
    char path[COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    snprintf(uri, sizeof uri, "file:%s?coord.ttl=1h", scene_path(scene, "new", path));
    const char *const words[] = {"init", "--elector", uri, "--name", "jobs", NULL};
    coordctl_start(scene, &run,
                   WORDS("run", "--elector", uri, "--name", "jobs", "--id", "heir", "--", "true"));
    wait_for_text(run.err, "spares the wait: coordctl init --name jobs");
    coordctl_start(scene, &init, words);
    assert_int_equal(coordctl_wait(&init), 125);
    coordctl_output(init.err, out);
    assert_non_null(strstr(out, "heir takes over jobs"));
    assert_non_null(strstr(out, "end it first"));
    kill(run.pid, SIGTERM);
    assert_int_equal(coordctl_wait(&run), 128 + SIGTERM);
    assert_int_equal(coordctl_call(scene, out, words), 0); /* as it was told */
}

static void test_cli_init__spares_the_wait(void **state)
{
    const struct scene *scene = *state;
    struct coordctl run;
    char uri[COORDCTL_PATH];
    char path[COORDCTL_PATH];
    char out[COORDCTL_TEXT];
    static const char *const members[] = {"name", "initialised", "backend", NULL};
    snprintf(uri, sizeof uri, "file:%s?coord.ttl=1h", scene_path(scene, "new", path));
    const char *const init[] = {"init", "--elector", uri, "--name", "jobs", "--json", NULL};
    assert_int_equal(coordctl_call(scene, out, init), 0);
    json_t *object = parse_line(out, members);
    assert_true(json_is_true(json_object_get(object, "initialised")));
    json_decref(object);
    coordctl_start(scene, &run, WORDS("run", "--elector", uri, "--name", "jobs", "--", "true"));
    assert_int_equal(coordctl_wait(&run), 0); /* or the guard of an hour's lease fails it */
}

int main(int argc, char **argv)
{
    work_if_asked(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_cli_status__nobody_leads),
        TEST(test_cli_status__a_leader_with_fence_and_times),
        TEST(test_cli_status__who_takes_over_does_not_lead),
        TEST(test_cli_status__names_of_any_byte_stay_printable),
        TEST(test_cli_status__watch_prints_each_change),
        TEST(test_cli_step_down__nobody_to_ask),
        TEST(test_cli_step_down__names_who_stepped_down),
        TEST(test_cli_step_down__who_does_not_listen_is_124),
        TEST(test_cli_init__is_refused_while_somebody_leads),
        TEST(test_cli_init__is_refused_while_somebody_takes_over),
        TEST(test_cli_init__spares_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
