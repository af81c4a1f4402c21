/* SPDX-License-Identifier: MIT
 * tests/unit/test_redis_error.c - what servers of several versions say, and what it means.
 */
#include "connections/redis.h"

#include "tests/support/support.h"

struct said {
    const char *text;
    enum coord_err code;
};

/* As 7.0, 8.0 and Valkey say it, and as 6.2 wraps it. */
static const struct said said[] = {
    {"NOAUTH Authentication required.", COORD_E_WRONG_PASSWORD},
    {"WRONGPASS invalid username-password pair or user is disabled.", COORD_E_WRONG_PASSWORD},
    {"ERR invalid password", COORD_E_WRONG_PASSWORD},
    {"ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure your configuration is correct?",
     COORD_E_WRONG_PASSWORD},
    {"ERR Client sent AUTH, but no password is set", COORD_E_WRONG_PASSWORD},
    {"NOPERM this user has no permissions to run the 'eval' command", COORD_E_NO_RIGHT},
    {"NOPERM No permissions to access a key", COORD_E_NO_RIGHT},
    {"NOPERM this user has no permissions to access one of the channels used as arguments",
     COORD_E_NO_RIGHT},
    {"ERR The user executing the script can't run this command or subcommand script: 0123, on "
     "@user_script:3.",
     COORD_E_NO_RIGHT},
    {"ERR ACL failure in script: User coord has no permissions to run the 'hset' command script: "
     "0123, on @user_script:40.",
     COORD_E_NO_RIGHT},
    {"ERR Error running script (call to f_0123): @user_script:3: @user_script: 3: -NOPERM No "
     "permissions to access a key",
     COORD_E_NO_RIGHT},
    {"DENIED Redis is running in protected mode because ...", COORD_E_NO_RIGHT},
    {"LOADING Redis is loading the dataset in memory", COORD_E_SERVER_STARTING},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     COORD_E_SERVER_STARTING},
    {"CLUSTERDOWN The cluster is down", COORD_E_SERVER_STARTING},
    {"READONLY You can't write against a read only replica. script: 0123, on @user_script:9.",
     COORD_E_STANDBY},
    {"ERR Error running script (call to f_0123): @user_script:9: @user_script: 9: -READONLY You "
     "can't write against a read only replica.",
     COORD_E_STANDBY},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     COORD_E_STANDBY},
    {"MOVED 12182 127.0.0.1:7001", COORD_E_STANDBY},
    {"OOM command not allowed when used memory > 'maxmemory'. script: 0123", COORD_E_SERVER_FULL},
    {"ERR Error running script (call to f_0123): @user_script:5: @user_script: 5: -OOM command "
     "not allowed when used memory > 'maxmemory'.",
     COORD_E_SERVER_FULL},
    {"ERR max number of clients reached", COORD_E_SERVER_FULL},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on "
     "disk.",
     COORD_E_READ_ONLY},
    {"NOREPLICAS Not enough good replicas to write.", COORD_E_READ_ONLY},
    {"WRONGTYPE Operation against a key holding the wrong kind of value script: 0123",
     COORD_E_FOREIGN_RECORD},
    {"ERR unknown command 'EVALSHA', with args beginning with:", COORD_E_SERVER_TOO_OLD},
    {"ERR DB index is out of range", COORD_E_BAD_URI},
    {"ERR something that no version has said yet", COORD_E_PROTOCOL},
};

static void test_error__has_the_code_of_what_the_server_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        struct coord_error error;
        const enum coord_err code = coord_redis_error(said[i].text, &error);
        assert_int_equal(code, error.code);
        if (code != said[i].code) {
            fail_msg("%s: %s", said[i].text, coord_err_name(code));
        }
        /* The words of the server, and a cure behind them. */
        char words[21];
        snprintf(words, sizeof words, "%.20s", said[i].text);
        assert_non_null(strstr(error.text, words));
        assert_non_null(strstr(error.text, "\": "));
        assert_true(strlen(error.text) + 1 < sizeof error.text); /* nothing is cut */
    }
}

static void test_error__is_not_misled_by_words_that_are_part_of_a_name(void **state)
{
    struct coord_error error;
    (void)state;
    assert_int_equal(coord_redis_error("ERR no such key 'coord:{LOADING OOM}:lease'", &error),
                     COORD_E_PROTOCOL);
    assert_int_equal(coord_redis_error("ERR READONLYISH", &error), COORD_E_PROTOCOL);
    assert_int_equal(coord_redis_error("", &error), COORD_E_PROTOCOL);
}

static void test_error__knows_a_script_that_was_forgotten(void **state)
{
    (void)state;
    assert_true(coord_redis_is_noscript("NOSCRIPT No matching script. Please use EVAL."));
    assert_false(coord_redis_is_noscript("ERR the key NOSCRIPT is not there"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error__has_the_code_of_what_the_server_says),
        cmocka_unit_test(test_error__is_not_misled_by_words_that_are_part_of_a_name),
        cmocka_unit_test(test_error__knows_a_script_that_was_forgotten),
    };
    return cmocka_run_group_tests_name("redis_error", tests, NULL, NULL);
}
