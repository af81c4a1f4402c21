/* SPDX-License-Identifier: MIT
 * tests/unit/test_compatible.c - what the vectors of the seed library do not show: leadership,
 * callbacks that change the list they are called from, and limits.
 */
#include "coord/compatible.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WALL INT64_C(1772366400000000)

struct stub {
    bool leading;
    enum coord_err renewal;
    enum coord_err release;
    int releases;
};

static bool is_leader(void *ctx, uint64_t *fence)
{
    *fence = 5;
    return ((struct stub *)ctx)->leading;
}

static enum coord_err renew(void *ctx)
{
    return ((struct stub *)ctx)->renewal;
}

static enum coord_err release(void *ctx)
{
    struct stub *stub = ctx;
    stub->releases++;
    stub->leading = stub->release != COORD_OK && stub->leading;
    return stub->release;
}

static struct coord_compatible *make(const struct coord_leadership *leadership)
{
    struct coord_compatible_config config = COORD_COMPATIBLE_CONFIG_INIT;
    struct coord_compatible *c = NULL;
    config.instance_id = "me";
    config.instance_id_bytes = 2;
    config.leadership = leadership;
    config.peers_max = 2;
    config.bytes_max = 1024;
    assert_int_equal(coord_compatible_new(&config, &c), COORD_OK);
    return c;
}

static enum coord_err beat(struct coord_compatible *c, const char *id)
{
    char json[512];
    int bytes =
        snprintf(json, sizeof json,
                 "{\"instance_id\":\"%s\",\"timestamp\":\"2026-03-01T12:00:00+00:00\"}", id);
    return coord_compatible_handle_heartbeat(c, json, (size_t)bytes, WALL);
}

static void test_compatible__a_hand_over_needs_leadership_at_that_instant(void **state)
{
    (void)state;
    struct stub stub = {true, COORD_OK, COORD_OK, 0};
    struct coord_leadership port = {is_leader, renew, release, &stub};
    struct coord_compatible *alone = make(NULL);
    struct coord_compatible *c = make(&port);
    assert_int_equal(coord_compatible_initiate_leadership_handoff(alone), COORD_E_NOT_LEADER);
    assert_false(coord_compatible_verify_leadership_lease(alone));
    stub.renewal = COORD_E_UNREACHABLE;
    assert_int_equal(coord_compatible_initiate_leadership_handoff(c), COORD_E_NOT_LEADER);
    assert_int_equal(stub.releases, 0);
    stub.renewal = COORD_OK;
    stub.release = COORD_E_UNREACHABLE;
    assert_int_equal(coord_compatible_initiate_leadership_handoff(c), COORD_E_UNREACHABLE);
    stub.release = COORD_OK;
    assert_true(coord_compatible_verify_leadership_lease(c));
    assert_int_equal(coord_compatible_initiate_leadership_handoff(c), COORD_OK);
    assert_int_equal(coord_compatible_initiate_leadership_handoff(c), COORD_E_NOT_LEADER);
    assert_int_equal(stub.releases, 2);
    coord_compatible_free(c);
    coord_compatible_free(alone);
}

static void test_compatible__assignments_are_created_by_who_leads_or_without_election(void **state)
{
    (void)state;
    struct stub stub = {true, COORD_OK, COORD_OK, 0};
    struct coord_leadership port = {is_leader, renew, release, &stub};
    struct coord_compatible *alone = make(NULL);
    struct coord_compatible *c = make(&port);
    struct coord_value none = {.kind = COORD_KIND_ABSENT};
    char out[512];
    size_t bytes = 0;
    assert_int_equal(coord_compatible_create_work_assignment(
                         c, "b", &none, 3, WALL, COORD_FORM_JSON, out, sizeof out - 1, &bytes),
                     COORD_OK);
    out[bytes] = '\0';
    assert_string_equal(out, "{\"target_instance_id\":\"b\",\"subscriptions\":[],"
                             "\"source_instance_id\":\"me\","
                             "\"assigned_at\":\"2026-03-01T12:00:00+00:00\",\"priority\":3}");
    stub.renewal = COORD_E_NOT_LEADER;
    assert_int_equal(coord_compatible_create_work_assignment(
                         c, "b", &none, 0, WALL, COORD_FORM_JSON, out, sizeof out, &bytes),
                     COORD_E_NOT_LEADER);
    assert_int_equal(coord_compatible_create_work_assignment(
                         alone, "b", &none, 0, WALL, COORD_FORM_JSON, out, sizeof out, &bytes),
                     COORD_OK);
    coord_compatible_free(c);
    coord_compatible_free(alone);
}

struct calls {
    struct coord_compatible *c;
    char text[64];
};

static void mark(struct calls *calls, const char *what)
{
    size_t used = strlen(calls->text);
    snprintf(calls->text + used, sizeof calls->text - used, "%s", what);
}

static void second(void *ctx, const struct coord_compatible_event *event)
{
    (void)event;
    mark(ctx, "2");
}

static void added(void *ctx, const struct coord_compatible_event *event)
{
    (void)event;
    mark(ctx, "3");
}

static void first(void *ctx, const struct coord_compatible_event *event)
{
    struct calls *calls = ctx;
    mark(calls, "1");
    assert_true(coord_compatible_remove_callback(calls->c, event->kind, first, ctx));
    assert_int_equal(coord_compatible_on(calls->c, event->kind, added, ctx), COORD_OK);
    assert_true(coord_compatible_remove_peer(calls->c, event->id));
}

static void test_compatible__a_callback_may_remove_itself_and_its_peer(void **state)
{
    (void)state;
    struct calls calls = {make(NULL), ""};
    struct coord_seed_peer peers[2];
    assert_int_equal(coord_compatible_on(calls.c, COORD_COMPATIBLE_HEARTBEAT, first, &calls),
                     COORD_OK);
    assert_int_equal(coord_compatible_on(calls.c, COORD_COMPATIBLE_HEARTBEAT, second, &calls),
                     COORD_OK);
    assert_int_equal(beat(calls.c, "a"), COORD_OK);
    assert_string_equal(calls.text, "12"); /* nobody is passed over; the new one comes next time */
    assert_int_equal(coord_compatible_known_peers(calls.c, peers, 2), 0);
    assert_int_equal(beat(calls.c, "a"), COORD_OK);
    assert_string_equal(calls.text, "1223");
    coord_compatible_free(calls.c);
}

static void removes_in_timeout(void *ctx, const struct coord_compatible_event *event)
{
    struct calls *calls = ctx;
    assert_null(event->message);
    mark(calls, "t");
    (void)coord_compatible_remove_peer(calls->c, event->id);
}

static void test_compatible__a_peer_may_be_removed_by_its_own_timeout(void **state)
{
    (void)state;
    struct calls calls = {make(NULL), ""};
    struct coord_value ids[2];
    size_t count = 0;
    assert_int_equal(
        coord_compatible_on(calls.c, COORD_COMPATIBLE_PEER_TIMEOUT, removes_in_timeout, &calls),
        COORD_OK);
    assert_int_equal(beat(calls.c, "a"), COORD_OK);
    assert_int_equal(beat(calls.c, "b"), COORD_OK);
    assert_int_equal(coord_compatible_check_timeouts(calls.c, WALL + 15000001, ids, 2, &count),
                     COORD_OK);
    assert_int_equal(count, 2);
    assert_string_equal(calls.text, "tt");
    assert_true(coord_view_is(&ids[1], "b", 1));
    coord_compatible_free(calls.c);
}

static void test_compatible__limits_are_counted(void **state)
{
    (void)state;
    struct coord_compatible *c = make(NULL);
    assert_int_equal(beat(c, "a"), COORD_OK);
    assert_int_equal(beat(c, "b"), COORD_OK);
    assert_int_equal(beat(c, "c"), COORD_E_LIMIT);
    assert_int_equal(coord_compatible_counts(c).peers_full, 1);
    assert_int_equal(coord_compatible_handle_heartbeat(c, "{}", 2, WALL), COORD_E_BAD_MESSAGE);
    assert_int_equal(coord_compatible_counts(c).fault[COORD_FAULT_MISSING_KEY], 1);
    char big[1200];
    memset(big, ' ', sizeof big);
    static const char json[] =
        "{\"instance_id\":\"a\",\"timestamp\":\"2026-03-01T12:00:00+00:00\"}";
    memcpy(big, json, sizeof json - 1);
    assert_int_equal(coord_compatible_handle_heartbeat(c, big, sizeof big, WALL), COORD_E_LIMIT);
    assert_int_equal(coord_compatible_counts(c).bytes_full, 1);
    coord_compatible_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compatible__a_hand_over_needs_leadership_at_that_instant),
        cmocka_unit_test(test_compatible__assignments_are_created_by_who_leads_or_without_election),
        cmocka_unit_test(test_compatible__a_callback_may_remove_itself_and_its_peer),
        cmocka_unit_test(test_compatible__a_peer_may_be_removed_by_its_own_timeout),
        cmocka_unit_test(test_compatible__limits_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
