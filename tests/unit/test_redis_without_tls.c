/* SPDX-License-Identifier: MIT
 * tests/unit/test_redis_without_tls.c - a build without OpenSSL refuses rediss:// with the cure.
 */
#include "electors/redis.h"

/* This file's copy takes the place of the library's. */
#undef COORD_HAVE_OPENSSL
#include "connections/redis_tls.c"

#include "coord/uri.h"
#include "tests/support/support.h"

static struct coord_error error;

static enum coord_err open_elector(const char *text)
{
    static struct coord_uri uri;
    struct coord_elector *elector = NULL;
    struct coord_elector_config config = COORD_ELECTOR_CONFIG_INIT;
    assert_int_equal(coord_uri_parse(text, &uri, &error), COORD_OK);
    config.uri = &uri;
    config.name = "jobs";
    config.name_bytes = 4;
    config.identity = "anna";
    config.identity_bytes = 4;
    config.ttl = 1000;
    const enum coord_err rc =
        coord_elector_new(coord_redis_elector(), &config, 1000, &elector, &error);
    if (rc == COORD_OK) {
        coord_elector_free(elector, false);
    }
    return rc;
}

static void test_redis_without_tls__rediss_is_refused_with_the_cure(void **state)
{
    (void)state;
    assert_int_equal(open_elector("rediss://127.0.0.1"), COORD_E_NO_TLS);
    assert_non_null(strstr(error.text, "OpenSSL"));
    assert_non_null(strstr(error.text, "stunnel"));
}

static void test_redis_without_tls__redis_is_not(void **state)
{
    (void)state;
    assert_int_equal(open_elector("redis://127.0.0.1:1"), COORD_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redis_without_tls__rediss_is_refused_with_the_cure),
        cmocka_unit_test(test_redis_without_tls__redis_is_not),
    };
    return cmocka_run_group_tests_name("redis_without_tls", tests, NULL, NULL);
}
