/* SPDX-License-Identifier: MIT
 * tests/unit/test_uri.c - what is read from a URI, what is refused, and what nobody may see.
 */
#include "coord/uri.h"

#include "tests/support/support.h"

/* Large, and it must not be moved: one for all tests. */
static struct coord_uri uri;
static struct coord_error error;

/* Every text is read from the edge of a page. */
static enum coord_err parse(const char *text)
{
    struct guarded g = guarded_text(text);
    memset(&error, 0, sizeof error);
    memset(&uri, 0x55, sizeof uri);
    const enum coord_err code = coord_uri_parse(g.at, &uri, &error);
    guarded_free(&g); /* so that nothing can point into it */
    return code;
}

static void parse_well(const char *text)
{
    if (parse(text) != COORD_OK) {
        fail_msg("%s: %s", text, error.text);
    }
}

static void assert_text(const char *actual, const char *wanted)
{
    if (wanted == NULL) {
        assert_null(actual);
    } else {
        assert_non_null(actual);
        assert_string_equal(actual, wanted);
    }
}

struct wanted {
    const char *text;
    const char *scheme;
    const char *user;
    const char *password;
    const char *host; /* the first; NULL: no host */
    unsigned port;
    const char *path;
};

static void test_uri__the_forms_of_the_guide_are_read(void **state)
{
    (void)state;
    static const struct wanted good[] = {
        {"memory:", "memory", NULL, NULL, NULL, 0, NULL},
        {"memory:shared", "memory", NULL, NULL, NULL, 0, "shared"},
        {"file:/var/lib/coord", "file", NULL, NULL, NULL, 0, "/var/lib/coord"},
        {"file:relative/dir", "file", NULL, NULL, NULL, 0, "relative/dir"},
        {"file:///var/lib/coord", "file", NULL, NULL, NULL, 0, "/var/lib/coord"},
        {"file:/a dir/me@home", "file", NULL, NULL, NULL, 0, "/a dir/me@home"},
        {"local:/run/coord", "local", NULL, NULL, NULL, 0, "/run/coord"},
        {"redis://cache", "redis", NULL, NULL, "cache", 0, NULL},
        {"redis://cache:6380/2", "redis", NULL, NULL, "cache", 6380, "/2"},
        {"redis://", "redis", NULL, NULL, NULL, 0, NULL},
        {"redis://:6380", "redis", NULL, NULL, "", 6380, NULL},
        {"redis://cache:/", "redis", NULL, NULL, "cache", 0, "/"},
        {"redis://:pw@cache", "redis", NULL, "pw", "cache", 0, NULL},
        {"redis://me@cache", "redis", "me", NULL, "cache", 0, NULL},
        {"redis://me:@cache", "redis", "me", "", "cache", 0, NULL},
        {"rediss://me:p:w@cache:6379/0", "rediss", "me", "p:w", "cache", 6379, "/0"},
        {"REDIS://Cache", "redis", NULL, NULL, "Cache", 0, NULL},
        {"redis+unix:///run/redis.sock", "redis+unix", NULL, NULL, NULL, 0, "/run/redis.sock"},
        {"redis+unix://me:pw@/run/r.sock", "redis+unix", "me", "pw", NULL, 0, "/run/r.sock"},
        {"redis+sentinel://s/mymaster/0", "redis+sentinel", NULL, NULL, "s", 0, "/mymaster/0"},
        {"postgresql://u@h/db", "postgresql", "u", NULL, "h", 0, "/db"},
        {"postgresql:///db", "postgresql", NULL, NULL, NULL, 0, "/db"},
        {"postgresql://%2Frun%2Fpg/db", "postgresql", NULL, NULL, "/run/pg", 0, "/db"},
        {"nats://n:4222", "nats", NULL, NULL, "n", 4222, NULL},
        {"redis://[::1]:6379/0", "redis", NULL, NULL, "::1", 6379, "/0"},
        {"redis://[::1]", "redis", NULL, NULL, "::1", 0, NULL},
        {"redis://me:pw@[fe80::1%25eth0]:1", "redis", "me", "pw", "fe80::1%eth0", 1, NULL},
        {"redis://[::ffff:10.0.0.1]:65535", "redis", NULL, NULL, "::ffff:10.0.0.1", 65535, NULL},
        {"unheard-of://h", "unheard-of", NULL, NULL, "h", 0, NULL},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct wanted *w = &good[i];
        parse_well(w->text);
        assert_text(uri.scheme, w->scheme);
        assert_text(uri.user, w->user);
        assert_text(uri.password, w->password);
        assert_int_equal(uri.host_count, w->host == NULL ? 0 : 1);
        assert_text(uri.hosts[0].host, w->host ? w->host : "");
        assert_int_equal(uri.hosts[0].port, w->port);
        assert_text(uri.path, w->path);
        assert_text(uri.rest, w->text);
        assert_null(uri.query);
        assert_int_equal(uri.option_count, 0);
    }
}

static void test_uri__several_hosts_keep_their_order_and_ports(void **state)
{
    (void)state;
    parse_well("redis+sentinel://:pw@a:26379,b,[::2]:3/mymaster");
    assert_int_equal(uri.host_count, 3);
    assert_string_equal(uri.hosts[0].host, "a");
    assert_int_equal(uri.hosts[0].port, 26379);
    assert_string_equal(uri.hosts[1].host, "b");
    assert_int_equal(uri.hosts[1].port, 0);
    assert_string_equal(uri.hosts[2].host, "::2");
    assert_int_equal(uri.hosts[2].port, 3);
    assert_string_equal(uri.hosts[3].host, "");
    parse_well("redis+sentinel://1,2,3,4,5,6,7,8/m");
    assert_int_equal(uri.host_count, COORD_URI_HOSTS_MAX);
    assert_int_equal(parse("redis+sentinel://1,2,3,4,5,6,7,8,9/m"), COORD_E_BAD_URI);
}

static void test_uri__percent_signs_are_decoded_once(void **state)
{
    (void)state;
    parse_well("redis://m%40e:p%2fw%3F%25%32@h%6f%73t/%31?coord.prefix=a%26b%3dc");
    assert_string_equal(uri.user, "m@e");
    assert_string_equal(uri.password, "p/w?%2");
    assert_string_equal(uri.hosts[0].host, "host");
    assert_string_equal(uri.path, "/1");
    assert_string_equal(coord_uri_option(&uri, "prefix"), "a&b=c");
}

static void test_uri__options_of_ours_are_taken_out_and_the_rest_is_left(void **state)
{
    (void)state;
    parse_well("postgresql://h/db?sslmode=require&coord.ttl=10s&x=%20&c%6ford.grace=1s&");
    assert_int_equal(uri.option_count, 2);
    assert_string_equal(uri.options[0].key, "ttl");
    assert_string_equal(uri.options[0].value, "10s");
    assert_string_equal(coord_uri_option(&uri, "grace"), "1s");
    assert_null(coord_uri_option(&uri, "priority"));
    assert_string_equal(uri.rest, "postgresql://h/db?sslmode=require&x=%20");
    assert_string_equal(uri.query, "sslmode=require&x=%20");
    parse_well("file:/d?coord.fs=trust&coord.ttl=");
    assert_string_equal(uri.rest, "file:/d");
    assert_string_equal(uri.path, "/d");
    assert_string_equal(coord_uri_option(&uri, "ttl"), "");
    assert_null(uri.query);
}

static void test_uri__an_option_twice_without_name_or_value_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "memory:?coord.ttl=1s&coord.ttl=2s",
        "memory:?coord.ttl=1s&coord.tt%6c=1s",
        "memory:?coord.ttl",
        "memory:?coord.=1",
        "memory:?coord.a=&coord.b=&coord.c=&coord.d=&coord.e=&coord.f=&coord.g=&coord.h=&coord.i=&"
        "coord.j=&coord.k=&coord.l=&coord.m=&coord.n=&coord.o=&coord.p=&coord.q=&coord.r=&coord.s="
        "&coord.t=&coord.u=&coord.v=&coord.w=&coord.x=&coord.y=",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(parse(bad[i]), COORD_E_BAD_OPTION);
        assert_int_equal(error.code, COORD_E_BAD_OPTION);
    }
}

static void test_uri__what_cannot_be_read_is_refused_and_nothing_is_left(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        ":",
        "://",
        "redis",
        "/var/lib",
        "1redis://h",
        "re_dis://h",
        "+x:",
        " redis://h",
        "a-scheme-that-is-longer-than-anybody-needs://h",
        "redis:h",
        "redis:/h",
        "localhost:6379",
        "postgresql:db",
        "file://host/dir",
        "memory://name",
        "file://:1/x",
        "local://me@localhost/x",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:99999999999999999999",
        "redis://h:6379x",
        "redis://h:-1",
        "redis://h:+1",
        "redis://::1",
        "redis://h:1:2",
        "redis://[::1",
        "redis://[::1]6379",
        "redis://[]",
        "redis://[h]",
        "redis://[1]",
        "redis://[::1%25]",
        "redis://[::1%eth0]",
        "redis://[::1]]",
        "redis://a,",
        "redis://,a",
        "redis://a,,b",
        "redis://,",
        "redis://a,:1",
        "redis://h/%00",
        "redis://%00",
        "redis://a:%00@h",
        "memory:?coord.a=%00",
        "memory:?%00=1",
        "redis://h/%",
        "redis://h/%4",
        "redis://h/%4g",
        "redis://h/%g4",
        "redis://%",
        "file:/a%",
        "memory:?coord.a=%",
        "memory:?%=1",
        "redis://%@h",
        "redis://a:%@h",
        "redis://h/\n",
        "redis://h/\x7f",
        "redis://h\t",
        "file:/a\rb",
        "redis://a@b@h",
        "redis://a:b@c:d@h",
        "redis://h/a@b",
        "redis://h?a@b",
        "redis://h/?x=a@b",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parse(bad[i]) != COORD_E_BAD_URI) {
            fail_msg("'%s' was read", bad[i]);
        }
        assert_int_equal(error.code, COORD_E_BAD_URI);
        assert_true(strlen(error.text) > 20);
        const struct coord_uri nothing = {0};
        assert_memory_equal(&uri, &nothing, sizeof uri);
        assert_int_equal(coord_uri_parse(bad[i], &uri, NULL), COORD_E_BAD_URI);
    }
}

static void test_uri__the_longest_uri_is_read_and_one_byte_more_is_refused(void **state)
{
    (void)state;
    static char text[COORD_URI_MAX + 2];
    /* In turn: all path, all password, all hidden pairs, all options, all percent signs. */
    static const char *const starts[] = {"file:", "redis://:", "x://h?", "x://h/?coord.a="};
    static const char *const fills[] = {"a", "a", "a&port=&", "a"};
    static const char *const ends[] = {"", "@h", "", ""};
    for (size_t i = 0; i < 4; i++) {
        const size_t end = COORD_URI_MAX - strlen(ends[i]);
        size_t at = strlen(starts[i]);
        memcpy(text, starts[i], at);
        for (size_t k = 0; at < end; k++) {
            text[at++] = fills[i][k % strlen(fills[i])];
        }
        (void)snprintf(text + at, sizeof text - at, "%s", ends[i]);
        assert_int_equal(strlen(text), COORD_URI_MAX);
        parse_well(text);
        assert_int_equal(coord_uri_add_option(&uri, "added=1", &error), COORD_OK);
        (void)snprintf(text + at, sizeof text - at, "a%s", ends[i]);
        assert_int_equal(parse(text), COORD_E_BAD_URI);
    }
}

/* ---- secrets ---- */

static void test_uri__the_shown_form_has_neither_user_nor_password(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"redis://me:hunter2@h:1/0", "redis://***@h:1/0"},
        {"redis://:hunter2@h", "redis://***@h"},
        {"redis://hunter2@h", "redis://***@h"},
        {"redis://h/0", "redis://h/0"},
        {"Redis://%68unter2@h", "Redis://***@h"},
        {"redis+unix://:hunter2@/run/r", "redis+unix://***@/run/r"},
        {"redis+sentinel://:hunter2@a,b:2/m", "redis+sentinel://***@a,b:2/m"},
        {"postgresql://h/d?password=hunter2", "postgresql://h/d?***"},
        {"postgresql://h/d?pass%77ord=hunter2&sslmode=require&hunter2",
         "postgresql://h/d?sslmode=require&***"},
        {"redis://h?coord.ttl=9s&hunter2=x&coord.grace=1s",
         "redis://h?coord.ttl=9s&coord.grace=1s&***"},
        {"file:/var/lib/coord?coord.ttl=1s", "file:/var/lib/coord?coord.ttl=1s"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        parse_well(pairs[i][0]);
        assert_string_equal(uri.shown, pairs[i][1]);
    }
}

/* A password as somebody pastes it, without %: refused or read, but never shown. */
static void test_uri__a_password_that_was_not_encoded_is_never_shown(void **state)
{
    (void)state;
    static const char *const pieces[] = {"hun", "ter", "12", ""};
    static const char *const joints[] = {"/", "?", "#", "@", ":", "&",
                                         "=", ",", "[", "]", "%", "//"};
    for (size_t a = 0; a < 4; a++) {
        for (size_t b = 0; b < 4; b++) {
            for (size_t j = 0; j < sizeof joints / sizeof joints[0]; j++) {
                char secret[64];
                char text[128];
                (void)snprintf(secret, sizeof secret, "%s%s%s!", pieces[a], joints[j], pieces[b]);
                for (unsigned with_user = 0; with_user < 2; with_user++) {
                    (void)snprintf(text, sizeof text, "redis://%s:%s@srv/0", with_user ? "me" : "",
                                   secret);
                    const char *shown = parse(text) == COORD_OK ? uri.shown : error.text;
                    assert_null(strstr(shown, "hun"));
                    assert_null(strstr(shown, "ter!"));
                    assert_null(strstr(shown, "12!"));
                }
            }
        }
    }
}

static void test_uri__no_sentence_repeats_a_secret(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "redis://me:hunter2@h:hunter2", "redis://hunter2@hunter2@h", "redis://:hunter2@[x]",
        "redis://:hunter2%@h",          "redis://h?x=hunter2@",      "hunter2://:1x",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(parse(bad[i]), COORD_E_BAD_URI);
        assert_null(strstr(error.text, "hunter2"));
    }
}

/* ---- options of a command line ---- */

static void test_uri__an_added_option_counts_like_one_of_the_uri(void **state)
{
    (void)state;
    parse_well("redis://h?coord.ttl=9s");
    assert_int_equal(coord_uri_add_option(&uri, "grace=1s", &error), COORD_OK);
    assert_int_equal(coord_uri_add_option(&uri, "coord.prefix=a=b%20", &error), COORD_OK);
    assert_int_equal(uri.option_count, 3);
    assert_string_equal(coord_uri_option(&uri, "ttl"), "9s");
    assert_string_equal(coord_uri_option(&uri, "grace"), "1s");
    assert_string_equal(coord_uri_option(&uri, "prefix"), "a=b%20");
    assert_string_equal(uri.rest, "redis://h");
}

static void test_uri__an_added_option_replaces_one_of_the_uri_and_of_before(void **state)
{
    (void)state;
    parse_well("redis://h?coord.ttl=9s&coord.grace=2s");
    assert_int_equal(coord_uri_add_option(&uri, "ttl=10s", &error), COORD_OK);
    assert_int_equal(coord_uri_add_option(&uri, "prefix=a", &error), COORD_OK);
    assert_int_equal(coord_uri_add_option(&uri, "prefix=b", &error), COORD_OK);
    assert_int_equal(coord_uri_add_option(&uri, "format=1", &error), COORD_OK);
    assert_int_equal(uri.option_count, 4);
    assert_string_equal(coord_uri_option(&uri, "ttl"), "10s");
    assert_string_equal(coord_uri_option(&uri, "grace"), "2s");
    assert_string_equal(coord_uri_option(&uri, "prefix"), "b");
    assert_string_equal(coord_uri_option(&uri, "format"), "1");
}

static void test_uri__an_added_option_that_is_none_is_refused(void **state)
{
    (void)state;
    static char long_name[5000];
    memset(long_name, 'k', sizeof long_name - 1);
    long_name[sizeof long_name - 2] = '=';
    parse_well("memory:");
    assert_int_equal(coord_uri_add_option(&uri, "ttl", &error), COORD_E_BAD_OPTION);
    assert_int_equal(coord_uri_add_option(&uri, "", &error), COORD_E_BAD_OPTION);
    assert_int_equal(coord_uri_add_option(&uri, "=1", &error), COORD_E_BAD_OPTION);
    assert_int_equal(coord_uri_add_option(&uri, "coord.=1", &error), COORD_E_BAD_OPTION);
    assert_int_equal(coord_uri_add_option(&uri, long_name, NULL), COORD_E_BAD_OPTION);
    assert_int_equal(uri.option_count, 0);
    for (char name[] = "a=1"; name[0] <= 'x'; name[0]++) {
        assert_int_equal(coord_uri_add_option(&uri, name, &error), COORD_OK);
    }
    assert_int_equal(coord_uri_add_option(&uri, "y=1", &error), COORD_E_BAD_OPTION);
    assert_int_equal(coord_uri_add_option(&uri, "x=2", &error), COORD_OK);
    assert_int_equal(uri.option_count, COORD_URI_OPTIONS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uri__the_forms_of_the_guide_are_read),
        cmocka_unit_test(test_uri__several_hosts_keep_their_order_and_ports),
        cmocka_unit_test(test_uri__percent_signs_are_decoded_once),
        cmocka_unit_test(test_uri__options_of_ours_are_taken_out_and_the_rest_is_left),
        cmocka_unit_test(test_uri__an_option_twice_without_name_or_value_is_refused),
        cmocka_unit_test(test_uri__what_cannot_be_read_is_refused_and_nothing_is_left),
        cmocka_unit_test(test_uri__the_longest_uri_is_read_and_one_byte_more_is_refused),
        cmocka_unit_test(test_uri__the_shown_form_has_neither_user_nor_password),
        cmocka_unit_test(test_uri__a_password_that_was_not_encoded_is_never_shown),
        cmocka_unit_test(test_uri__no_sentence_repeats_a_secret),
        cmocka_unit_test(test_uri__an_added_option_counts_like_one_of_the_uri),
        cmocka_unit_test(test_uri__an_added_option_replaces_one_of_the_uri_and_of_before),
        cmocka_unit_test(test_uri__an_added_option_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
