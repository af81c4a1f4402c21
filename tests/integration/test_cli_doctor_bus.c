/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_doctor_bus.c - coordctl doctor --bus: what it says of good and of bad
 * buses.
 */
#include "tests/integration/doctor.h"

#include <jansson.h>
#include <sys/stat.h>

static int doctor(const char *uri, const char *option, const char *value, char out[COORDCTL_TEXT])
{
    return coordctl_call(&place.scene, out, WORDS("doctor", "--bus", uri, option, value));
}

/* How fast it is depends on the machine. */
static void line_present(const char *out, const char *name)
{
    char head[64];
    snprintf(head, sizeof head, " %s: ", name);
    assert_non_null(strstr(out, head));
    snprintf(head, sizeof head, "FAIL %s: ", name);
    assert_null(strstr(out, head));
}

static void test_cli_doctor_bus__needs_no_server_on_one_host(void **state)
{
    char out[COORDCTL_TEXT];
    char uri[COORDCTL_PATH];
    char folder[COORDCTL_PATH];
    (void)state;
    scene_path(&place.scene, "bus", folder);
    snprintf(uri, sizeof uri, "local:%.200s", folder);
    assert_int_equal(doctor(uri, NULL, NULL, out), 0);
    expect(out, "ok", "connection", uri);
    line_present(out, "echo");
    expect(out, "ok", "longest message", "65536 bytes came back");
    expect(out, "ok", "members", "1");
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(doctor(uri, NULL, NULL, out), 1);
    expect(out, "FAIL", "connection", "NO_RIGHT");
    expect(out, "FAIL", "folder", "chmod 700");
}

static void test_cli_doctor_bus__names_what_limits_a_redis(void **state)
{
    char out[COORDCTL_TEXT];
    char uri[COORDCTL_PATH];
    (void)state;
    redis_server_start(&place.redis, WORDS(NULL));
    assert_int_equal(doctor(place.redis.uri, NULL, NULL, out), 0);
    line_present(out, "echo");
    expect(out, "ok", "right to publish", "granted");
    expect(out, "ok", "client-output-buffer-limit", "pubsub 33554432 8388608 60");
    redis_server_do(&place.redis, "ACL SETUSER few on >hunter2 resetchannels &jobs.* -@all "
                                  "+publish +subscribe +unsubscribe +ping");
    snprintf(uri, sizeof uri, "redis+unix://few:hunter2@%s", place.redis.socket);
    assert_int_equal(doctor(uri, "--topic-prefix", "jobs", out), 0);
    expect(out, "skip", "version", "not told");
    expect(out, "skip", "client-output-buffer-limit", "keeps its settings to itself");
    assert_int_equal(doctor(uri, NULL, NULL, out), 1);
    expect(out, "FAIL", "connection", "NO_RIGHT");
    expect(out, "FAIL", "right to publish",
           "ACL SETUSER few &__eventsource_coordination.* +publish");
    assert_null(strstr(out, "hunter2"));
    follow_advice(out, "few");
    assert_int_equal(doctor(uri, NULL, NULL, out), 0);
    assert_null(strstr(out, "ACL SETUSER"));
    expect(out, "ok", "version", "");
    line_present(out, "clock");
}

static void test_cli_doctor_bus__warns_of_a_redis_whose_memory_has_no_bound(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    redis_server_start(&place.redis, WORDS("--client-output-buffer-limit", "pubsub 0 0 0"));
    assert_int_equal(doctor(place.redis.uri, NULL, NULL, out), 0);
    expect(out, "warn", "client-output-buffer-limit", "without a limit");
    expect(out, "warn", "client-output-buffer-limit", "pubsub 32mb 8mb 60");
}

static void test_cli_doctor_bus__looks_at_a_postgres(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    postgres_server_start(&place.postgres, NULL);
    assert_int_equal(doctor(place.postgres.uri, NULL, NULL, out), 0);
    line_present(out, "echo");
    expect(out, "ok", "longest message", "65536 bytes came back");
    expect(out, "ok", "pooler", "none in between");
    expect(out, "ok", "notification queue", "0 % full");
    expect(out, "ok", "payload", "5940 bytes");
}

static void test_cli_doctor_bus__a_server_that_cannot_be_asked_is_a_finding(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    assert_int_equal(doctor("redis+unix:///nonexistent/socket", NULL, NULL, out), 1);
    expect(out, "FAIL", "connection", "UNREACHABLE");
    assert_int_equal(doctor("nats://h", NULL, NULL, out), 2);
    assert_int_equal(doctor("memory:", "--topic-prefix", "a b", out), 2);
}

/* With both in the environment both are looked at; a flag says which one is meant. */
static void test_cli_doctor_bus__a_flag_says_what_is_meant(void **state)
{
    char elector[COORDCTL_PATH + 32];
    const char *const environment[] = {elector, "COORD_BUS=memory:", NULL};
    const char *const one[] = {"doctor", "--bus", "memory:", NULL};
    char out[COORDCTL_TEXT];
    struct coordctl called;
    (void)state;
    snprintf(elector, sizeof elector, "COORD_ELECTOR=%s", place.scene.uri);
    coordctl_start_with(&place.scene, &called, -1, environment, WORDS("doctor"));
    assert_int_equal(coordctl_wait(&called), 0);
    coordctl_output(called.out, out);
    expect(out, "ok", "timing", "lease");
    line_present(out, "echo");
    coordctl_start_with(&place.scene, &called, -1, environment, one);
    assert_int_equal(coordctl_wait(&called), 0);
    assert_null(strstr(coordctl_output(called.out, out), "timing"));
}

static void test_cli_doctor_bus__prints_one_object_a_line_for_programs(void **state)
{
    char out[COORDCTL_TEXT];
    char *rest = NULL;
    unsigned count = 0;
    (void)state;
    assert_int_equal(doctor("memory:", "--json", NULL, out), 0);
    for (char *line = strtok_r(out, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        assert_non_null(json_string_value(json_object_get(object, "check")));
        assert_non_null(json_string_value(json_object_get(object, "value")));
        json_decref(object);
        count++;
    }
    assert_int_equal(count, 3);
}

int main(void)
{
#define TEST(name) \
    cmocka_unit_test_setup_teardown(test_cli_doctor_bus__##name, open_place, close_place)
    const struct CMUnitTest tests[] = {
        TEST(needs_no_server_on_one_host),
        TEST(names_what_limits_a_redis),
        TEST(warns_of_a_redis_whose_memory_has_no_bound),
        TEST(looks_at_a_postgres),
        TEST(a_server_that_cannot_be_asked_is_a_finding),
        TEST(a_flag_says_what_is_meant),
        TEST(prints_one_object_a_line_for_programs),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
