/* SPDX-License-Identifier: MIT
 * tests/integration/test_cli_doctor.c - coordctl doctor: what it says of good and of bad servers.
 */
#include "tests/integration/doctor.h"

#include <jansson.h>
#include <unistd.h>

static int doctor(const char *uri, char out[COORDCTL_TEXT])
{
    return coordctl_call(&place.scene, out, WORDS("doctor", "--elector", uri, "--ttl", "1s"));
}

/* ---------------------------------------------------------------- redis */

static void test_cli_doctor__finds_a_good_redis_good_and_leaves_nothing(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    redis_server_start(&place.redis, WORDS("--appendonly", "yes"));
    assert_int_equal(doctor(place.redis.uri, out), 0);
    expect(out, "ok", "elector's rights", "granted");
    expect(out, "ok", "channel", "granted");
    expect(out, "ok", "persistence", "append-only");
    expect(out, "ok", "eviction", "noeviction");
    expect(out, "ok", "timing",
           "lease 1000 ms, renewed every 333 ms, 125 ms an attempt, margin 33 ms, grace 200 ms");
    line_of(out, strstr(out, "warn clock read") != NULL ? "warn" : "ok", "clock read");
    for (long long left = 1; left > 0;) { /* its key runs out by itself */
        redisReply *size = redis_server_command(&place.redis, "DBSIZE");
        left = size->integer;
        freeReplyObject(size);
    }
}

static void test_cli_doctor__knows_a_redis_by_each_of_its_schemes(void **state)
{
    static const char *const schemes[] = {"redis+unix", "redis+socket", "unix"};
    char out[COORDCTL_TEXT];
    char uri[COORDCTL_PATH];
    (void)state;
    redis_server_start(&place.redis, NULL);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        snprintf(uri, sizeof uri, "%s://%s", schemes[i], place.redis.socket);
        assert_int_equal(doctor(uri, out), 0);
        expect(out, "ok", "elector's rights", "granted");
    }
}

static void test_cli_doctor__names_missing_rights_and_the_line_that_grants_them(void **state)
{
    char out[COORDCTL_TEXT];
    char uri[COORDCTL_PATH];
    (void)state;
    redis_server_start(&place.redis, WORDS(NULL));
    redis_server_do(&place.redis, "ACL SETUSER few on >hunter2 ~jobs:* -@all +eval +evalsha +get "
                                  "+set +del +pexpire +pttl +time +info");
    snprintf(uri, sizeof uri, "redis+unix://few:hunter2@%s?coord.prefix=jobs", place.redis.socket);
    assert_int_equal(doctor(uri, out), 1);
    expect(out, "FAIL", "elector's rights", "missing: hmget hset ");
    expect(out, "FAIL", "elector's rights", "ACL SETUSER few ~jobs:* &jobs:* +eval ");
    expect(out, "warn", "channel", "neither publish nor subscribe");
    expect(out, "skip", "idle timeout", "keeps its settings to itself");
    assert_null(strstr(out, "hunter2"));
    redis_server_do(&place.redis, "ACL SETUSER few allkeys resetchannels &jobs:* +hmget +hset "
                                  "+publish +subscribe +unsubscribe -info");
    assert_int_equal(doctor(uri, out), 0);
    expect(out, "warn", "run", "INFO is denied");
    expect(out, "warn", "run", "much is not looked at");
    assert_null(strstr(out, " version: "));
    assert_null(strstr(out, " persistence: ")); /* nothing is said of what is not known */
    redis_server_do(&place.redis, "ACL SETUSER few resetkeys ~other:*");
    assert_int_equal(doctor(uri, out), 1);
    expect(out, "FAIL", "elector's rights", "get set ");
}

static void test_cli_doctor__grants_all_that_is_missing_in_one_line(void **state)
{
    char out[COORDCTL_TEXT];
    char uri[COORDCTL_PATH];
    (void)state;
    redis_server_start(&place.redis, WORDS(NULL));
    redis_server_do(&place.redis, "ACL SETUSER few on >hunter2 resetchannels");
    snprintf(uri, sizeof uri, "redis+unix://few:hunter2@%s", place.redis.socket);
    assert_int_equal(doctor(uri, out), 1);
    follow_advice(out, "few");
    assert_int_equal(doctor(uri, out), 0);
    assert_null(strstr(out, "ACL SETUSER few"));
    expect(out, "ok", "elector's rights", "granted");
    expect(out, "ok", "channel", "granted");
    expect(out, "ok", "run", "can be named");
    expect(out, "ok", "primary", "master");
}

static void test_cli_doctor__fails_a_redis_that_may_evict_or_takes_no_writes(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    redis_server_start(&place.redis,
                       WORDS("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"));
    assert_int_equal(doctor(place.redis.uri, out), 1);
    expect(out, "FAIL", "eviction", "allkeys-lru");
    expect(out, "FAIL", "eviction", "CONFIG SET maxmemory-policy noeviction");
    redis_server_do(&place.redis, "CONFIG SET maxmemory-policy noeviction");
    redis_server_do(&place.redis, "CONFIG SET min-replicas-to-write 1");
    redis_server_do(&place.redis, "CONFIG SET timeout 1");
    assert_int_equal(doctor(place.redis.uri, out), 1);
    expect(out, "FAIL", "writes", "READ_ONLY");
    expect(out, "warn", "idle timeout", "1");
}

static void test_cli_doctor__a_server_that_cannot_be_asked_is_a_finding(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    assert_int_equal(doctor("redis+unix:///nonexistent/socket", out), 1);
    expect(out, "FAIL", "connection", "UNREACHABLE");
    assert_int_equal(doctor("postgresql:///x?host=/nonexistent", out), 1);
    expect(out, "FAIL", "connection", "UNREACHABLE");
    assert_int_equal(doctor("redis://h.invalid", out), 1);
    expect(out, "FAIL", "connection", "NAME_UNRESOLVED");
}

/* ---------------------------------------------------------------- postgres */

static void test_cli_doctor__tells_what_a_postgres_lacks_until_init_has_run(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    postgres_server_start(&place.postgres, NULL);
    assert_int_equal(doctor(place.postgres.uri, out), 1);
    expect(out, "FAIL", "schema", "coordctl init --elector URI");
    expect(out, "ok", "pooler", "none in between");
    const char *const init[] = {"init", "--elector", place.postgres.uri, NULL};
    assert_int_equal(coordctl_call(&place.scene, out, init), 0);
    assert_int_equal(doctor(place.postgres.uri, out), 0);
    expect(out, "ok", "schema", "coord format 1");
    postgres_server_do(&place.postgres, "create role bare login");
    char uri[COORDCTL_PATH];
    snprintf(uri, sizeof uri, "postgresql://bare@/postgres?host=%s", place.postgres.folder);
    assert_int_equal(doctor(uri, out), 1);
    expect(out, "ok", "schema", "coord format 1"); /* though it may not use it */
    expect(out, "FAIL", "elector's rights", "GRANT USAGE ON SCHEMA coord TO bare;");
    postgres_server_do(&place.postgres, "grant usage on schema coord to bare");
    assert_int_equal(doctor(uri, out), 1);
    expect(out, "FAIL", "elector's rights",
           "GRANT SELECT, INSERT, UPDATE ON TABLE coord.term TO bare");
    expect(out, "warn", "writer's rights", "GRANT EXECUTE ON FUNCTION coord.fence");
    postgres_server_do(&place.postgres, "grant select, insert, update on coord.term to bare");
    assert_int_equal(doctor(uri, out), 0);
    postgres_server_do(&place.postgres,
                       "revoke execute on function pg_control_system() from public");
    assert_int_equal(doctor(uri, out), 0); /* what a managed server keeps to itself is no failure */
    expect(out, "skip", "run", "GRANT EXECUTE ON FUNCTION pg_control_system()");
    expect(out, "ok", "tcp_user_timeout", "a local socket has none");
}

/* Not only that it cannot be reached. */
static void test_cli_doctor__says_what_a_postgres_has_against_a_login(void **state)
{
    char out[COORDCTL_TEXT];
    char uri[COORDCTL_PATH];
    (void)state;
    postgres_server_start(&place.postgres, NULL);
    snprintf(uri, sizeof uri, "postgresql://postgres@/absent?host=%s", place.postgres.folder);
    assert_int_equal(doctor(uri, out), 1);
    expect(out, "FAIL", "connection", "NOT_INITIALISED");
    expect(out, "FAIL", "connection", "create the database");
    snprintf(uri, sizeof uri, "postgresql://stranger@/postgres?host=%s", place.postgres.folder);
    assert_int_equal(doctor(uri, out), 1);
    expect(out, "FAIL", "connection", "WRONG_PASSWORD");
}

/* ---------------------------------------------------------------- form */

static void expect_text(const json_t *object, const char *key)
{
    assert_non_null(json_string_value(json_object_get(object, key)));
}

static void test_cli_doctor__prints_one_object_a_line_for_programs(void **state)
{
    char out[COORDCTL_TEXT];
    char *rest = NULL;
    bool timing = false;
    (void)state;
    redis_server_start(&place.redis, NULL);
    const char *const arguments[] = {"doctor", "--elector", place.redis.uri, "--json", NULL};
    assert_int_equal(coordctl_call(&place.scene, out, arguments), 0);
    for (char *line = strtok_r(out, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        json_t *object = json_loads(line, 0, NULL);
        assert_non_null(object);
        expect_text(object, "check");
        expect_text(object, "value");
        expect_text(object, "why");
        const char *verdict = json_string_value(json_object_get(object, "verdict"));
        const bool good = strcmp(verdict, "ok") == 0;
        assert_int_equal(json_is_null(json_object_get(object, "cure")), good);
        if (json_object_get(object, "lease_ms") != NULL) {
            timing = true;
            assert_int_equal(json_integer_value(json_object_get(object, "lease_ms")), 15000);
            assert_int_equal(json_integer_value(json_object_get(object, "renew_ms")), 5000);
            assert_int_equal(json_integer_value(json_object_get(object, "attempt_ms")), 1875);
            assert_int_equal(json_integer_value(json_object_get(object, "margin_ms")), 500);
            assert_int_equal(json_integer_value(json_object_get(object, "grace_ms")), 3000);
        }
        json_decref(object);
    }
    assert_true(timing);
}

static void test_cli_doctor__checks_the_host_where_there_is_no_server(void **state)
{
    char out[COORDCTL_TEXT];
    (void)state;
    char path[COORDCTL_PATH];
    char uri[COORDCTL_PATH + 8];
    assert_int_equal(doctor(place.scene.uri, out), 0);
    line_of(out, "ok", "timing");
    snprintf(uri, sizeof uri, "file:%s", scene_path(&place.scene, "absent", path));
    assert_int_equal(doctor(uri, out), 0);
    expect(out, "ok", "folder", "takes an election's file");
    assert_int_not_equal(access(path, F_OK), 0); /* nothing is left of the trial */
    snprintf(uri, sizeof uri, "file:%s", scene_path(&place.scene, "absent/deeper", path));
    assert_int_equal(doctor(uri, out), 1);
    expect(out, "FAIL", "folder", "NOT_INITIALISED");
    assert_int_equal(doctor("nats://h", out), 2);
    assert_int_equal(doctor("redis://h?coord.nonsense=1", out), 2);
    const char *const refused[] = {"doctor", "--elector", place.scene.uri, "--ttl",
                                   "1s",     "--option",  "grace=900ms",   NULL};
    assert_int_equal(coordctl_call(&place.scene, out, refused), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_cli_doctor__##name, open_place, close_place)
    const struct CMUnitTest tests[] = {
        TEST(finds_a_good_redis_good_and_leaves_nothing),
        TEST(knows_a_redis_by_each_of_its_schemes),
        TEST(names_missing_rights_and_the_line_that_grants_them),
        TEST(grants_all_that_is_missing_in_one_line),
        TEST(fails_a_redis_that_may_evict_or_takes_no_writes),
        TEST(a_server_that_cannot_be_asked_is_a_finding),
        TEST(tells_what_a_postgres_lacks_until_init_has_run),
        TEST(says_what_a_postgres_has_against_a_login),
        TEST(prints_one_object_a_line_for_programs),
        TEST(checks_the_host_where_there_is_no_server),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
