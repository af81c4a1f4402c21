/* SPDX-License-Identifier: MIT
 * tests/unit/test_redis_uri.c - where a URI leads, and what is wrong with those that lead nowhere.
 */
#include "connections/redis_link.h"

#include "tests/support/support.h"

#include <stdlib.h>

static struct coord__redis_target target;
static struct coord_error error;

static enum coord_err read_uri(const char *text)
{
    static struct coord_uri uri;
    const enum coord_err rc = coord_uri_parse(text, &uri, &error);
    return rc == COORD_OK ? coord__redis_target_read(&uri, &target, &error) : rc;
}

static void test_uri__of_a_server_has_host_port_login_and_database(void **state)
{
    (void)state;
    assert_int_equal(read_uri("redis://anna:pa%40ss@redis.example:7000/3"), COORD_OK);
    assert_string_equal(target.hosts[0].name, "redis.example");
    assert_int_equal(target.hosts[0].port, 7000);
    assert_string_equal(target.login.user, "anna");
    assert_string_equal(target.login.password, "pa@ss");
    assert_int_equal(target.db, 3);
    assert_string_equal(target.master, "");
    assert_string_equal(target.socket, "");
    assert_null(strstr(target.shown, "pa"));
    assert_null(strstr(target.shown, "anna"));
}

static void test_uri__of_a_server_has_defaults(void **state)
{
    (void)state;
    assert_int_equal(read_uri("redis://[::1]"), COORD_OK);
    assert_string_equal(target.hosts[0].name, "::1");
    assert_int_equal(target.hosts[0].port, 6379);
    assert_int_equal(target.db, 0);
    assert_int_equal(read_uri("redis://:secret@h"), COORD_OK);
    assert_string_equal(target.login.user, "");
    assert_string_equal(target.login.password, "secret");
    assert_int_equal(read_uri("redis://h?db=5"), COORD_OK);
    assert_int_equal(target.db, 5);
}

static void test_uri__of_a_socket_has_several_names(void **state)
{
    static const char *const good[] = {
        "redis+unix:///run/r.sock?db=2",
        "redis+socket:///run/r.sock?virtual_host=2",
        "unix:///run/r.sock?db=2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(read_uri(good[i]), COORD_OK);
        assert_string_equal(target.socket, "/run/r.sock");
        assert_int_equal(target.db, 2);
    }
}

static void test_uri__of_sentinels_names_them_and_the_primary(void **state)
{
    (void)state;
    assert_int_equal(read_uri("redis+sentinel://a,b:7,[::1]/main/4"), COORD_OK);
    assert_int_equal(target.host_count, 3);
    assert_int_equal(target.hosts[0].port, 26379);
    assert_int_equal(target.hosts[1].port, 7);
    assert_string_equal(target.hosts[2].name, "::1");
    assert_string_equal(target.master, "main");
    assert_int_equal(target.db, 4);
    assert_int_equal(read_uri("redis+sentinel://a/main"), COORD_OK);
    assert_int_equal(target.db, 0);
}

static void test_uri__that_leads_nowhere_is_refused_with_a_cure(void **state)
{
    static const struct {
        const char *uri;
        enum coord_err code;
        const char *words;
    } bad[] = {
        {"redis:///1", COORD_E_BAD_URI, "redis://HOST"},
        {"redis://a,b", COORD_E_BAD_URI, "redis+sentinel://"},
        {"redis://h/x", COORD_E_BAD_URI, "write /0"},
        {"redis://h/1/2", COORD_E_BAD_URI, "write /0"},
        {"redis://h/1000000", COORD_E_BAD_URI, "write /0"},
        {"redis://h?db=", COORD_E_BAD_URI, "write /0"},
        {"redis://h?timeout=5", COORD_E_UNKNOWN_OPTION, "timeout"},
        {"redis://h?db=1&x=2", COORD_E_UNKNOWN_OPTION, "db"},
        {"redis+unix:///", COORD_E_BAD_URI, "redis+unix:///"},
        {"redis+unix://host/run/s", COORD_E_BAD_URI, "redis+unix:///"},
        {"redis+sentinel://a", COORD_E_BAD_URI, "/MASTER"},
        {"redis+sentinel://a/", COORD_E_BAD_URI, "/MASTER"},
        {"redis+sentinel:///main", COORD_E_BAD_URI, "HOST"},
        {"http://h", COORD_E_UNKNOWN_SCHEME, "redis"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const enum coord_err code = read_uri(bad[i].uri);
        if (code != bad[i].code || strstr(error.text, bad[i].words) == NULL) {
            fail_msg("%s: %s: %s", bad[i].uri, coord_err_name(code), error.text);
        }
    }
}

static void test_uri__with_parts_that_are_too_long_is_refused(void **state)
{
    char text[COORD_URI_MAX];
    (void)state;
    strcpy(text, "redis+unix:///");
    memset(text + 14, 'x', 110);
    text[124] = '\0';
    assert_int_equal(read_uri(text), COORD_E_BAD_URI);
    strcpy(text, "redis://:");
    memset(text + 9, 'p', 1100);
    strcpy(text + 1109, "@h");
    assert_int_equal(read_uri(text), COORD_E_BAD_URI);
    assert_null(strstr(error.text, "ppp"));
}

static void test_uri__is_nearer_than_the_file_of_the_environment(void **state)
{
    (void)state;
    setenv("REDIS_PASSWORD_FILE", "/run/secret", 1);
    assert_int_equal(read_uri("redis://anna@h"), COORD_OK);
    assert_string_equal(target.login.file, "/run/secret");
    assert_int_equal(read_uri("redis://anna:secret@h"), COORD_OK);
    assert_string_equal(target.login.file, "");
    unsetenv("REDIS_PASSWORD_FILE");
}

static void test_uri__makes_one_key_for_one_server_and_login(void **state)
{
    static struct coord_uri uri;
    (void)state;
    assert_int_equal(coord_uri_parse("redis://a:b@h?coord.ttl=5s", &uri, &error), COORD_OK);
    char *key = coord__redis_share_key("redis", &uri);
    assert_string_equal(key, "redis redis://a:b@h");
    coord__redis_share_key_free(key);
    coord__redis_share_key_free(NULL);
    assert_int_equal(coord_uri_parse("rediss://h?coord.tls_ca=/a&coord.prefix=x", &uri, &error),
                     COORD_OK);
    key = coord__redis_share_key("redis", &uri);
    assert_string_equal(key, "redis rediss://h tls_ca=/a");
    coord__redis_share_key_free(key);
}

static void test_uri__has_a_login_of_its_own_for_sentinels(void **state)
{
    static struct coord_uri uri;
    static const char text[] =
        "redis+sentinel://anna:secret@s/main?coord.sentinel_user=bo&coord.sentinel_password_file=/f";
    (void)state;
    assert_int_equal(read_uri(text), COORD_OK);
    assert_string_equal(target.login.user, "anna");
    assert_string_equal(target.login.password, "secret");
    assert_string_equal(target.sentinel.user, "bo");
    assert_string_equal(target.sentinel.password, "");
    assert_string_equal(target.sentinel.file, "/f");
    assert_int_equal(coord_uri_parse(text, &uri, &error), COORD_OK);
    char *key = coord__redis_share_key("redis", &uri);
    assert_non_null(strstr(key, "sentinel_user=bo sentinel_password_file=/f"));
    coord__redis_share_key_free(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uri__of_a_server_has_host_port_login_and_database),
        cmocka_unit_test(test_uri__of_a_server_has_defaults),
        cmocka_unit_test(test_uri__of_a_socket_has_several_names),
        cmocka_unit_test(test_uri__of_sentinels_names_them_and_the_primary),
        cmocka_unit_test(test_uri__that_leads_nowhere_is_refused_with_a_cure),
        cmocka_unit_test(test_uri__with_parts_that_are_too_long_is_refused),
        cmocka_unit_test(test_uri__is_nearer_than_the_file_of_the_environment),
        cmocka_unit_test(test_uri__makes_one_key_for_one_server_and_login),
        cmocka_unit_test(test_uri__has_a_login_of_its_own_for_sentinels),
    };
    return cmocka_run_group_tests_name("redis_uri", tests, NULL, NULL);
}
