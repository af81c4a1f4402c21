/* SPDX-License-Identifier: MIT
 * tests/unit/test_sink.c - reports to a function, a pipe and a command, and what goes wrong there.
 */
#include "runtime/sink.h"

#include "tests/support/support.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    LONG = 20000 /* ms; a guard, never reached */
};

struct sample {
    struct coord_orphan orphan;
    struct coord_report report;
};

static struct sample sample_of(unsigned char id, enum coord_orphans_kind kind)
{
    struct sample s = {.orphan = {.fence = 3,
                                  .seq = id,
                                  .instance_id = "w-1",
                                  .instance_id_bytes = 3,
                                  .subscription = "orders",
                                  .subscription_bytes = 6,
                                  .cause = COORD_CAUSE_SILENT,
                                  .deadline = COORD_NEVER,
                                  .since = 1,
                                  .safe_after = 2},
                       .report = {.kind = kind, .fleet = "jobs", .reporter = "w-9", .now = 5}};
    memset(s.orphan.report_id, id, sizeof s.orphan.report_id);
    return s;
}

static void put(struct coord_sink *sink, unsigned char id, enum coord_orphans_kind kind, bool led)
{
    struct sample s = sample_of(id, kind);
    s.report.orphan = &s.orphan;
    coord_sink_put(sink, &s.report, led);
}

/* ---- functions ---- */

struct heard {
    atomic_uint count;
    atomic_bool hold; /* do not return */
    atomic_uint kinds;
};

static void hear(void *ctx, const struct coord_report *report)
{
    struct heard *heard = ctx;
    assert_string_equal(report->orphan->subscription, "orders");
    assert_string_equal(report->fleet, "jobs");
    atomic_fetch_or(&heard->kinds, 1u << (unsigned)report->kind);
    atomic_fetch_add(&heard->count, 1);
    while (atomic_load(&heard->hold)) {
    }
}

static void test_sink__a_function_hears_every_report_in_order(void **state)
{
    struct heard heard = {0};
    struct coord_sink *sink = NULL;
    (void)state;
    assert_int_equal(coord_sink_function(hear, &heard, NULL, &sink, NULL), COORD_OK);
    for (unsigned char i = 0; i < 100; i++) {
        put(sink, i, COORD_ORPHANS_OPENED, false);
    }
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(heard.count, 100);
    assert_int_equal(coord_sink_counts(sink).delivered, 100);
    coord_sink_free(sink);
}

static void test_sink__a_full_queue_keeps_the_latest_of_each(void **state)
{
    struct heard heard = {.hold = true};
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    struct coord_sink *sink = NULL;
    (void)state;
    config.queue_max = 2;
    assert_int_equal(coord_sink_function(hear, &heard, &config, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED, false);
    while (heard.count == 0) {
    }
    put(sink, 2, COORD_ORPHANS_OPENED, false);
    put(sink, 3, COORD_ORPHANS_UPDATED, false);
    put(sink, 4, COORD_ORPHANS_OPENED, false);   /* no room */
    put(sink, 3, COORD_ORPHANS_RESOLVED, false); /* takes the place of the former */
    put(sink, 2, COORD_ORPHANS_RESOLVED, false); /* nobody heard that it was opened */
    struct coord_sink_counts counts = coord_sink_counts(sink);
    assert_int_equal(counts.dropped, 1);
    assert_int_equal(counts.merged, 3);
    assert_int_equal(counts.waiting, 1);
    assert_false(coord_sink_flush(sink, 10));
    heard.hold = false;
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(heard.count, 2);
    assert_int_equal(heard.kinds, 1u << COORD_ORPHANS_OPENED | 1u << COORD_ORPHANS_RESOLVED);
    coord_sink_free(sink);
}

static void test_sink__one_may_hear_the_leader_alone(void **state)
{
    struct heard heard = {0};
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    struct coord_sink *sink = NULL;
    (void)state;
    config.leader_only = true;
    assert_int_equal(coord_sink_function(hear, &heard, &config, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED, false);
    put(sink, 2, COORD_ORPHANS_OPENED, true);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(heard.count, 1);
    coord_sink_free(sink);
}

/* ---- lines ---- */

static void test_sink__lines_are_whole(void **state)
{
    int ends[2];
    char text[COORD_REPORT_TEXT_MAX] = "";
    struct coord_sink *sink = NULL;
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(coord_sink_lines(ends[1], NULL, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED, false);
    assert_true(coord_sink_flush(sink, LONG));
    ssize_t n = read(ends[0], text, sizeof text - 1);
    assert_true(n > 100);
    assert_int_equal(text[n - 1], '\n');
    assert_non_null(strstr(text, "\"reporter\""));
    coord_sink_free(sink);
    close(ends[0]);
    close(ends[1]);
}

static void test_sink__a_reader_that_went_away_is_counted(void **state)
{
    int ends[2];
    struct coord_sink *sink = NULL;
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    assert_int_equal(coord_sink_lines(ends[1], NULL, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED, false);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(coord_sink_counts(sink).failed, 1);
    coord_sink_free(sink);
    close(ends[1]);
}

static void test_sink__a_reader_that_stands_still_holds_nobody(void **state)
{
    int ends[2];
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    struct coord_sink *sink = NULL;
    (void)state;
    static const char much[65536];
    config.queue_max = 10;
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(ends[1], much, sizeof much) > 0) {
    }
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    assert_int_equal(coord_sink_lines(ends[1], &config, &sink, NULL), COORD_OK);
    for (unsigned i = 0; i < 1000; i++) {
        put(sink, (unsigned char)i, COORD_ORPHANS_OPENED, false);
    }
    assert_false(coord_sink_flush(sink, 10));
    assert_true(coord_sink_counts(sink).waiting <= 10);
    coord_sink_free(sink); /* and returns */
    close(ends[0]);
    close(ends[1]);
}

/* ---- commands ---- */

static char *read_all(const char *path)
{
    static char text[4 * COORD_REPORT_TEXT_MAX];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    return text;
}

static void test_sink__a_command_gets_the_line_and_the_names(void **state)
{
    char path[] = "/tmp/coord-sink-XXXXXX";
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    struct coord_sink *sink = NULL;
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    setenv("COORD_BUS", "redis://:secret@h", 1);
    setenv("SINK_OUT", path, 1);
    const char *argv[] = {
        "sh", "-c",
        "{ cat; echo \"$ORPHAN_KIND $ORPHAN_SUBSCRIPTION of $ORPHAN_INSTANCE_ID "
        "under $ORPHAN_FENCE, $ORPHAN_CAUSE, bus=$COORD_BUS.\"; } >>\"$SINK_OUT\"",
        NULL};
    config.form = COORD_REPORT_CLOUDEVENTS;
    assert_int_equal(coord_sink_command(argv, &config, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED, false);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(coord_sink_counts(sink).delivered, 1);
    const char *text = read_all(path);
    assert_non_null(strstr(text, "\"specversion\""));
    assert_non_null(strstr(text, "opened orders of w-1 under 3, silent, bus=."));
    coord_sink_free(sink);
    unsetenv("COORD_BUS");
    unlink(path);
}

static void test_sink__a_command_that_fails_or_is_missing_is_counted(void **state)
{
    const char *fails[] = {"sh", "-c", "exit 3", NULL};
    const char *missing[] = {"/nonexistent/command", NULL};
    struct coord_sink *sink = NULL;
    (void)state;
    assert_int_equal(coord_sink_command(fails, NULL, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED, false);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(coord_sink_counts(sink).failed, 1);
    coord_sink_free(sink);
    assert_int_equal(coord_sink_command(missing, NULL, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED, false);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(coord_sink_counts(sink).failed, 1);
    coord_sink_free(sink);
}

static void test_sink__a_command_that_hangs_is_killed(void **state)
{
    const char *hangs[] = {"sh", "-c", "sleep 1000", NULL};
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    struct coord_sink *sink = NULL;
    (void)state;
    config.command_max = 50;
    assert_int_equal(coord_sink_command(hangs, &config, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED, false);
    assert_true(coord_sink_flush(sink, LONG));
    assert_int_equal(coord_sink_counts(sink).failed, 1);
    config.command_max = LONG;
    coord_sink_free(sink);
    assert_int_equal(coord_sink_command(hangs, &config, &sink, NULL), COORD_OK);
    put(sink, 1, COORD_ORPHANS_OPENED, false);
    assert_false(coord_sink_flush(sink, 50));
    coord_sink_free(sink); /* one that runs is killed */
}

static void test_sink__what_makes_no_sense_is_refused(void **state)
{
    const char *none[] = {NULL};
    struct coord_sink_config config = COORD_SINK_CONFIG_INIT;
    struct coord_sink *sink = NULL;
    (void)state;
    assert_int_equal(coord_sink_function(NULL, NULL, NULL, &sink, NULL), COORD_E_BAD_ARGUMENT);
    assert_int_equal(coord_sink_lines(-1, NULL, &sink, NULL), COORD_E_BAD_ARGUMENT);
    assert_int_equal(coord_sink_command(none, NULL, &sink, NULL), COORD_E_BAD_ARGUMENT);
    config.queue_max = 0;
    assert_int_equal(coord_sink_lines(1, &config, &sink, NULL), COORD_E_BAD_ARGUMENT);
    config.size = 1;
    assert_int_equal(coord_sink_lines(1, &config, &sink, NULL), COORD_E_VERSION_MISMATCH);
    assert_null(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sink__a_function_hears_every_report_in_order),
        cmocka_unit_test(test_sink__a_full_queue_keeps_the_latest_of_each),
        cmocka_unit_test(test_sink__one_may_hear_the_leader_alone),
        cmocka_unit_test(test_sink__lines_are_whole),
        cmocka_unit_test(test_sink__a_reader_that_went_away_is_counted),
        cmocka_unit_test(test_sink__a_reader_that_stands_still_holds_nobody),
        cmocka_unit_test(test_sink__a_command_gets_the_line_and_the_names),
        cmocka_unit_test(test_sink__a_command_that_fails_or_is_missing_is_counted),
        cmocka_unit_test(test_sink__a_command_that_hangs_is_killed),
        cmocka_unit_test(test_sink__what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
