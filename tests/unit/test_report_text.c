/* SPDX-License-Identifier: MIT
 * tests/unit/test_report_text.c - lines that other programs read; jansson reads them here.
 */
#include "coord/report_text.h"

#include "tests/support/support.h"

#include <jansson.h>
#include <stdlib.h>

#define WALL INT64_C(1772366400123456) /* 2026-03-01T12:00:00.123Z */

static struct coord_orphan orphan_of(const char *id, const char *subscription)
{
    struct coord_orphan orphan = {.fence = 42,
                                  .seq = 7,
                                  .instance_id = id,
                                  .instance_id_bytes = strlen(id),
                                  .has_incarnation = true,
                                  .subscription = subscription,
                                  .subscription_bytes = strlen(subscription),
                                  .cause = COORD_CAUSE_SILENT,
                                  .certainty = COORD_SUSPECTED,
                                  .since = 100000,
                                  .deadline = COORD_NEVER,
                                  .safe_after = 130000,
                                  .open = true};
    memset(orphan.report_id, 0xab, sizeof orphan.report_id);
    memset(orphan.incarnation, 0x0c, sizeof orphan.incarnation);
    return orphan;
}

static json_t *read_line(const struct coord_report *report, enum coord_report_form form)
{
    static char line[COORD_REPORT_TEXT_MAX];
    size_t bytes = 0;
    assert_int_equal(coord_report_text(report, form, line, &bytes), COORD_OK);
    assert_int_equal(bytes, strlen(line));
    assert_ptr_equal(strchr(line, '\n'), line + bytes - 1); /* one line, and its end */
    json_t *object = json_loads(line, 0, NULL);
    assert_non_null(object);
    return object;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void test_report_text__has_all_that_a_consumer_needs(void **state)
{
    struct coord_orphan orphan = orphan_of("w-11", "orders");
    const struct coord_report report = {.kind = COORD_ORPHANS_OPENED,
                                        .orphan = &orphan,
                                        .fleet = "billing",
                                        .reporter = "w-07",
                                        .now = 116000,
                                        .wall = WALL};
    (void)state;
    json_t *o = read_line(&report, COORD_REPORT_JSON);
    assert_string_equal(text_of(o, "kind"), "opened");
    assert_string_equal(text_of(o, "id"), "abababababababababababababababab.42.7");
    assert_string_equal(text_of(o, "report_id"), "abababababababababababababababab");
    assert_int_equal(json_integer_value(json_object_get(o, "fence")), 42);
    assert_int_equal(json_integer_value(json_object_get(o, "seq")), 7);
    assert_string_equal(text_of(o, "fleet"), "billing");
    assert_string_equal(text_of(o, "reporter"), "w-07");
    const json_t *peer = json_object_get(o, "peer");
    assert_string_equal(text_of(peer, "instance_id"), "w-11");
    assert_string_equal(text_of(peer, "incarnation"), "0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c");
    assert_string_equal(text_of(o, "subscription"), "orders");
    assert_string_equal(text_of(o, "cause"), "silent");
    assert_string_equal(text_of(o, "certainty"), "suspected");
    assert_string_equal(text_of(o, "severity"), "ERROR");
    assert_string_equal(text_of(o, "since"), "2026-03-01T11:59:44.123Z");
    assert_true(json_is_null(json_object_get(o, "deadline")));
    assert_string_equal(text_of(o, "safe_after"), "2026-03-01T12:00:14.123Z");
    assert_int_equal(json_integer_value(json_object_get(o, "safe_in_ms")), 14000);
    assert_int_equal(json_integer_value(json_object_get(o, "age_ms")), 16000);
    assert_string_equal(text_of(o, "reported_at"), "2026-03-01T12:00:00.123Z");
    assert_int_equal(json_object_size(o), 18);
    json_decref(o);
}

static void test_report_text__a_cloud_event_carries_it(void **state)
{
    struct coord_orphan orphan = orphan_of("w-11", "orders");
    struct coord_report report = {.kind = COORD_ORPHANS_RESOLVED,
                                  .orphan = &orphan,
                                  .fleet = "billing/eu \xc3\xa9",
                                  .reporter = "w-07",
                                  .now = 116000,
                                  .wall = WALL};
    (void)state;
    json_t *o = read_line(&report, COORD_REPORT_CLOUDEVENTS);
    assert_string_equal(text_of(o, "specversion"), "1.0");
    assert_string_equal(text_of(o, "id"), "abababababababababababababababab.42.7");
    assert_string_equal(text_of(o, "source"), "/coord/billing%2Feu%20%C3%A9");
    assert_string_equal(text_of(o, "type"), "coord.orphan.resolved.v1");
    assert_string_equal(text_of(o, "subject"), "w-11");
    assert_string_equal(text_of(o, "time"), "2026-03-01T12:00:00.123Z");
    assert_string_equal(text_of(o, "datacontenttype"), "application/json");
    assert_string_equal(text_of(o, "fence"), "00000000000000000042");
    assert_string_equal(text_of(o, "sequence"), "00000000000000000007");
    assert_string_equal(text_of(o, "severitytext"), "INFO");
    assert_string_equal(text_of(json_object_get(o, "data"), "kind"), "resolved");
    const char *key;
    json_t *value;
    json_object_foreach(o, key, value)
    {
        /* What CloudEvents allows as a name. */
        assert_int_equal(strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789"), strlen(key));
        assert_true(strlen(key) <= 20);
    }
    json_decref(o);
    report.type_prefix = "org.example";
    o = read_line(&report, COORD_REPORT_CLOUDEVENTS);
    assert_string_equal(text_of(o, "type"), "org.example.orphan.resolved.v1");
    json_decref(o);
}

/* Two who hear one event write one id and one source, so that consumers drop the second. */
static void test_report_text__the_id_is_the_same_for_everybody(void **state)
{
    struct coord_orphan here = orphan_of("w-11", "orders");
    struct coord_orphan there = here;
    struct coord_report a = {.orphan = &here, .fleet = "f", .reporter = "a", .wall = WALL};
    struct coord_report b = {.orphan = &there, .fleet = "f", .reporter = "b", .wall = WALL + 9};
    (void)state;
    there.since = 5;
    json_t *first = read_line(&a, COORD_REPORT_CLOUDEVENTS);
    json_t *second = read_line(&b, COORD_REPORT_CLOUDEVENTS);
    assert_string_equal(text_of(first, "id"), text_of(second, "id"));
    assert_string_equal(text_of(first, "source"), text_of(second, "source"));
    json_decref(first);
    json_decref(second);
}

static void test_report_text__hostile_names_stay_text(void **state)
{
    struct coord_orphan orphan = orphan_of("w\"\\\n\x01", "\xf0\x9f\x90\x99\t</script>");
    struct coord_report report = {
        .kind = COORD_ORPHANS_UPDATED, .orphan = &orphan, .now = 1, .wall = WALL};
    (void)state;
    orphan.has_incarnation = false;
    json_t *o = read_line(&report, COORD_REPORT_JSON);
    assert_string_equal(text_of(json_object_get(o, "peer"), "instance_id"), "w\"\\\n\x01");
    assert_true(json_is_null(json_object_get(json_object_get(o, "peer"), "incarnation")));
    assert_string_equal(text_of(o, "subscription"), "\xf0\x9f\x90\x99\t</script>");
    assert_true(json_is_null(json_object_get(o, "reporter")));
    assert_int_equal(json_integer_value(json_object_get(o, "age_ms")), 0);
    json_decref(o);
}

static void test_report_text__the_longest_names_fit(void **state)
{
    char name[COORD_NAME_MAX + 1];
    (void)state;
    memset(name, '\x01', sizeof name); /* six characters each */
    name[COORD_NAME_MAX] = '\0';
    struct coord_orphan orphan = orphan_of(name, name);
    struct coord_report report = {
        .orphan = &orphan, .fleet = name, .reporter = name, .wall = INT64_MAX};
    orphan.fence = orphan.seq = (UINT64_C(1) << 53) - 1;
    orphan.deadline = orphan.safe_after = COORD_NEVER;
    json_decref(read_line(&report, COORD_REPORT_CLOUDEVENTS));
    report.wall = INT64_MIN;
    json_decref(read_line(&report, COORD_REPORT_CLOUDEVENTS));
}

static void test_report_text__only_reports_are_reports(void **state)
{
    struct coord_event event = {.kind = COORD_EVENT_PEER_SILENT};
    struct coord_report report = {.kind = COORD_ORPHANS_OPENED};
    (void)state;
    assert_false(coord_report_of(&event, &report));
    event.kind = COORD_EVENT_ORPHAN_UPDATED;
    assert_true(coord_report_of(&event, &report));
    assert_int_equal(report.kind, COORD_ORPHANS_UPDATED);
    assert_ptr_equal(report.orphan, &event.orphan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_text__has_all_that_a_consumer_needs),
        cmocka_unit_test(test_report_text__a_cloud_event_carries_it),
        cmocka_unit_test(test_report_text__the_id_is_the_same_for_everybody),
        cmocka_unit_test(test_report_text__hostile_names_stay_text),
        cmocka_unit_test(test_report_text__the_longest_names_fit),
        cmocka_unit_test(test_report_text__only_reports_are_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
