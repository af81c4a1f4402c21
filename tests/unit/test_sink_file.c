/* SPDX-License-Identifier: MIT
 * tests/unit/test_sink_file.c - reports to a file that is moved away, and deliveries that fail and
 * are tried again.
 */
#include "runtime/sink_inside.h"

#include "tests/support/support.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LONG = 60000, /* ms; a guard, never reached */
    PATH = 128
};

struct place {
    char folder[PATH];
    char file[PATH + 16];
    char moved[PATH + 16];
};

static int set_up(void **state)
{
    static struct place place;
    snprintf(place.folder, sizeof place.folder, "/tmp/coord-sink-XXXXXX");
    assert_non_null(mkdtemp(place.folder));
    snprintf(place.file, sizeof place.file, "%s/reports", place.folder);
    snprintf(place.moved, sizeof place.moved, "%s/reports.1", place.folder);
    *state = &place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    unlink(place->file);
    unlink(place->moved);
    return rmdir(place->folder);
}

static void put(struct coord_sink *sink, unsigned char id, enum coord_orphans_kind kind)
{
    struct coord_orphan orphan = {.fence = 3,
                                  .seq = id,
                                  .instance_id = "w-1",
                                  .instance_id_bytes = 3,
                                  .subscription = "orders",
                                  .subscription_bytes = 6,
                                  .cause = COORD_CAUSE_SILENT,
                                  .deadline = COORD_NEVER};
    const struct coord_report report = {
        .kind = kind, .fleet = "jobs", .reporter = "w-9", .now = 5, .orphan = &orphan};
    memset(orphan.report_id, id, sizeof orphan.report_id);
    coord_sink_put(sink, &report, false);
}

/* How many lines it has; each is whole. */
static unsigned lines_of(const char *path)
{
    char line[4096];
    unsigned count = 0;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        assert_int_equal(line[0], '{');
        assert_non_null(strstr(line, "}\n"));
        count++;
    }
    fclose(file);
    return count;
}

static void test_sink_file__lines_go_on_in_a_new_file_after_rotation(void **state)
{
    struct place *place = *state;
    struct coord_sink *sink = NULL;
    struct stat st;
    assert_int_equal(coord_sink_file(place->file, NULL, &sink, NULL), COORD_OK);
    assert_int_equal(stat(place->file, &st), 0);
    assert_int_equal(st.st_mode & 07, 0);
    put(sink, 1, COORD_ORPHANS_OPENED);
    put(sink, 2, COORD_ORPHANS_OPENED);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(rename(place->file, place->moved), 0);
    put(sink, 3, COORD_ORPHANS_OPENED);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(lines_of(place->moved), 2);
    assert_int_equal(lines_of(place->file), 1);
    assert_int_equal(unlink(place->file), 0);
    put(sink, 4, COORD_ORPHANS_OPENED);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(lines_of(place->file), 1);
    assert_int_equal(coord_sink_counts(sink).delivered, 4);
    coord_sink_free(sink);
    /* What is there stays. */
    assert_int_equal(coord_sink_file(place->file, NULL, &sink, NULL), COORD_OK);
    put(sink, 5, COORD_ORPHANS_OPENED);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(lines_of(place->file), 2);
    coord_sink_free(sink);
}

static void test_sink_file__one_that_cannot_be_opened_is_refused_with_the_cure(void **state)
{
    struct coord_sink *sink = NULL;
    struct coord_error error;
    (void)state;
    assert_int_equal(coord_sink_file("", NULL, &sink, &error), COORD_E_BAD_ARGUMENT);
    assert_int_equal(coord_sink_file("/nowhere/at/all", NULL, &sink, &error), COORD_E_SYSTEM);
    assert_non_null(strstr(error.text, "/nowhere/at/all"));
}

static void test_sink_file__a_full_disk_is_tried_again_and_then_counted(void **state)
{
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    struct coord_sink *sink = NULL;
    (void)state;
    config.retry_for = 300;
    assert_int_equal(coord_sink_file("/dev/full", &config, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(coord_sink_counts(sink).failed, 1);
    assert_int_equal(coord_sink_counts(sink).delivered, 0);
    coord_sink_free(sink);
}

static struct coord_sink *command(const char *text)
{
    const char *const argv[] = {"/bin/sh", "-c", text, NULL};
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    struct coord_sink *sink = NULL;
    config.retry_for = LONG;
    assert_int_equal(coord_sink_command(argv, &config, &sink, NULL), COORD_OK);
    return sink;
}

static void wait_for_a_retry(struct coord_sink *sink)
{
    while (coord_sink_counts(sink).retried == 0) {
        poll(NULL, 0, 10);
    }
}

static void test_sink_file__a_command_that_fails_is_run_again_until_it_works(void **state)
{
    struct place *place = *state;
    char text[2 * PATH];
    snprintf(text, sizeof text, "test -e '%s'", place->file);
    struct coord_sink *sink = command(text);
    put(sink, 1, COORD_ORPHANS_OPENED);
    wait_for_a_retry(sink);
    FILE *file = fopen(place->file, "we");
    assert_non_null(file);
    fclose(file);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(coord_sink_counts(sink).delivered, 1);
    assert_int_equal(coord_sink_counts(sink).failed, 0);
    coord_sink_free(sink);
}

static void test_sink_file__what_is_overtaken_is_not_tried_any_more(void **state)
{
    (void)state;
    struct coord_sink *sink = command("test \"$ORPHAN_KIND\" = resolved");
    put(sink, 1, COORD_ORPHANS_UPDATED);
    wait_for_a_retry(sink);
    put(sink, 1, COORD_ORPHANS_RESOLVED);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(coord_sink_counts(sink).delivered, 1);
    assert_int_equal(coord_sink_counts(sink).merged, 1);
    assert_int_equal(coord_sink_counts(sink).failed, 0);
    coord_sink_free(sink);
}

static void test_sink_file__one_that_fails_keeps_no_other_waiting(void **state)
{
    (void)state;
    struct coord_sink *sink = command("case $ORPHAN_REPORT_ID in 01*) exit 1 ;; esac");
    put(sink, 1, COORD_ORPHANS_OPENED);
    wait_for_a_retry(sink);
    put(sink, 2, COORD_ORPHANS_OPENED);
    while (coord_sink_counts(sink).delivered == 0) {
        poll(NULL, 0, 10);
    }
    assert_int_equal(coord_sink_counts(sink).failed, 0); /* it is tried still */
    coord_sink_free(sink);
}

static void test_sink_file__an_opening_that_failed_is_told_with_what_comes_next(void **state)
{
    struct place *place = *state;
    char text[4 * PATH];
    char kind[16] = "";
    snprintf(text, sizeof text, "test -e '%s' && printf %%s \"$ORPHAN_KIND\" >'%s'", place->file,
             place->moved);
    struct coord_sink *sink = command(text);
    put(sink, 1, COORD_ORPHANS_OPENED);
    wait_for_a_retry(sink);
    put(sink, 1, COORD_ORPHANS_UPDATED);
    while (coord_sink_counts(sink).merged == 0) { /* the run that goes on has to fail first */
        poll(NULL, 0, 10);
    }
    FILE *file = fopen(place->file, "we");
    assert_non_null(file);
    fclose(file);
    assert_true(coord_sink_flush(sink, LONG));
    coord_sink_free(sink);
    file = fopen(place->moved, "re");
    assert_non_null(file);
    assert_non_null(fgets(kind, sizeof kind, file));
    fclose(file);
    assert_string_equal(kind, "opened");
}

/* However long it would still be tried. */
static void test_sink_file__the_end_does_not_wait_for_a_retry(void **state)
{
    (void)state;
    struct coord_sink *sink = command("exit 1");
    put(sink, 1, COORD_ORPHANS_OPENED);
    wait_for_a_retry(sink);
    coord_sink_free(sink);
}

/* A pipe that nobody reads would have held up whoever opens it for ever. */
static void test_sink_file__a_pipe_without_a_reader_is_refused_at_once(void **state)
{
    struct place *place = *state;
    struct coord_sink *sink = NULL;
    struct coord_error error = {.code = COORD_OK};
    assert_int_equal(mkfifo(place->file, 0600), 0);
    alarm(LONG / 1000);
    assert_int_equal(coord_sink_file(place->file, NULL, &sink, &error), COORD_E_SYSTEM);
    alarm(0);
    assert_non_null(strstr(error.text, "name another"));
}

/* Its thread, and perhaps its lock, are the parent's. */
static void test_sink_file__a_forked_child_does_not_wait_for_it(void **state)
{
    struct place *place = *state;
    struct coord_sink *sink = NULL;
    int status = -1;
    assert_int_equal(coord_sink_file(place->file, NULL, &sink, NULL), COORD_OK);
    pthread_mutex_lock(&sink->lock);
    const pid_t child = fork();
    if (child == 0) {
        alarm(LONG / 1000);
        const bool flushed = coord_sink_flush(sink, COORD_NEVER);
        _exit(flushed || coord_sink_counts(sink).waiting > 0 ? 1 : 0);
    }
    pthread_mutex_unlock(&sink->lock);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    coord_sink_free(sink);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_sink_file__##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(lines_go_on_in_a_new_file_after_rotation),
        TEST(one_that_cannot_be_opened_is_refused_with_the_cure),
        TEST(a_full_disk_is_tried_again_and_then_counted),
        TEST(a_command_that_fails_is_run_again_until_it_works),
        TEST(what_is_overtaken_is_not_tried_any_more),
        TEST(one_that_fails_keeps_no_other_waiting),
        TEST(an_opening_that_failed_is_told_with_what_comes_next),
        TEST(the_end_does_not_wait_for_a_retry),
        TEST(a_pipe_without_a_reader_is_refused_at_once),
        TEST(a_forked_child_does_not_wait_for_it),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
