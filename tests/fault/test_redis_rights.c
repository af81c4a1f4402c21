/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_rights.c - which rights an elector needs, and what it says without them.
 */
#include "electors/redis.h"

#include "tests/support/redis_world.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>

/* ---------------------------------------------------------------- rights */

#define RIGHTS                                                                                \
    "ACL SETUSER coord on >secret ~coord:* resetchannels &coord:* -@all +eval +evalsha +get " \
    "+set +del +pexpire +pttl +time +hset +hmget +info +publish +subscribe +unsubscribe"

static void limited_uri(const struct redis_world *w, const char *password, char *out, size_t bytes)
{
    snprintf(out, bytes, "redis+unix://coord:%s@%s", password, w->server.socket);
}

/* Every verb once, as the user with the few rights. */
static void use_every_verb(struct redis_world *w, struct fleet_member *anna)
{
    const struct coord_request init = {.verb = COORD_VERB_INIT};
    const struct coord_request observe = {.verb = COORD_VERB_OBSERVE};
    assert_int_equal(fleet_query(&w->fleet, anna, &init), COORD_DONE);
    coord_lease_stand(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_leads, anna);
    fleet_drive(&w->fleet, REDIS_TTL); /* renewals */
    assert_int_equal(fleet_query(&w->fleet, anna, &observe), COORD_HELD);
    const struct coord_request ask = {
        .verb = COORD_VERB_ASK, .fence = anna->fence, .successor = "bert", .reserve = 1000};
    assert_int_equal(fleet_query(&w->fleet, anna, &ask), COORD_DONE);
    fleet_until(&w->fleet, fleet_leads_not, anna);
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    assert_int_equal(anna->lease->release, COORD_RELEASE_RELEASED);
}

static void test_rights__that_the_page_lists_are_enough_for_every_verb(void **state)
{
    struct redis_world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS);
    limited_uri(w, "secret", uri, sizeof uri);
    struct fleet_member *anna = redis_join(w, "anna", uri);
    use_every_verb(w, anna);
    assert_false(fleet_logged(&w->fleet, "NO_RIGHT"));
}

static void test_rights__that_are_missing_are_named_with_the_cure(void **state)
{
    static const char *const rights[] = {"eval", "evalsha", "get",   "set", "pexpire",
                                         "time", "hset",    "hmget", "pttl"};
    struct redis_world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS);
    limited_uri(w, "secret", uri, sizeof uri);
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
        redis_server_name(w->name, sizeof w->name, rights[i]);
        redis_server_do(&w->server, "SCRIPT FLUSH");
        redis_server_do(&w->server, "ACL SETUSER coord -%s", rights[i]);
        if (strcmp(rights[i], "pttl") == 0) { /* needed where somebody holds it */
            redis_server_do(&w->server, "SET coord:{%s}:lease %s PX 600000", w->name,
                            "coord1_7_1_ab_600000_7_4_bert");
            redis_server_do(&w->server, "EVAL %s 1 coord:{%s}:lease",
                            "local v = redis.call('GET', KEYS[1]):gsub('_', ' ')"
                            "return redis.call('SET', KEYS[1], v, 'PX', 600000)",
                            w->name);
        }
        struct fleet_member *anna = redis_stand(w, "anna", uri);
        fleet_until(&w->fleet, redis_is_refused, anna);
        assert_int_equal(anna->lease->error.code, COORD_E_NO_RIGHT);
        assert_non_null(strstr(anna->lease->error.text, "ACL SETUSER"));
        fleet_drop(anna);
        w->fleet.count--;
        redis_server_do(&w->server, "ACL SETUSER coord +%s", rights[i]);
        redisReply *left = redis_server_command(&w->server, "EXISTS coord:{%s}:fence", w->name);
        assert_int_equal(left->integer, 0);
        freeReplyObject(left);
    }
}

static void test_rights__to_delete_are_missed_by_a_resignation(void **state)
{
    struct redis_world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS " -del");
    limited_uri(w, "secret", uri, sizeof uri);
    struct fleet_member *anna = redis_stand(w, "anna", uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    assert_int_equal(anna->lease->release, COORD_RELEASE_LAPSING);
    assert_true(fleet_logged(&w->fleet, "NO_RIGHT"));
}

static void test_rights__to_keys_and_channels_are_named_too(void **state)
{
    struct redis_world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS " resetkeys ~other:*");
    limited_uri(w, "secret", uri, sizeof uri);
    struct fleet_member *anna = redis_stand(w, "anna", uri);
    fleet_until(&w->fleet, redis_is_refused, anna);
    assert_int_equal(anna->lease->error.code, COORD_E_NO_RIGHT);
    redis_server_do(&w->server, "ACL SETUSER coord resetkeys ~coord:* resetchannels");
    fleet_until(&w->fleet, fleet_leads, anna); /* without a channel it is slower, no more */
    fleet_drive(&w->fleet, 100);
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    assert_int_equal(anna->lease->release, COORD_RELEASE_RELEASED);
    assert_true(fleet_logged(&w->fleet, "NO_RIGHT"));
}

static void test_rights__without_info_every_takeover_waits_and_the_log_says_why(void **state)
{
    struct redis_world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS " -info");
    limited_uri(w, "secret", uri, sizeof uri);
    struct fleet_member *anna = redis_stand(w, "anna", uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    assert_true(fleet_logged(&w->fleet, "INFO is denied"));
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    struct fleet_member *bert = redis_stand(w, "bert", uri);
    fleet_until(&w->fleet, redis_takes_over, bert);
    const struct coord_request init = {.verb = COORD_VERB_INIT};
    redis_server_name(w->name, sizeof w->name, "blind");
    struct fleet_member *keeper = redis_join(w, "keeper", uri);
    assert_int_equal(fleet_query(&w->fleet, keeper, &init), COORD_FAILED);
    assert_int_equal(keeper->lease->query_error.code, COORD_E_NO_RIGHT);
}

static void test_password__that_is_wrong_is_refused_and_appears_nowhere(void **state)
{
    struct redis_world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS);
    limited_uri(w, "a-wrong-one", uri, sizeof uri);
    struct fleet_member *anna = redis_stand(w, "anna", uri);
    fleet_until(&w->fleet, redis_is_refused, anna);
    assert_int_equal(anna->lease->error.code, COORD_E_WRONG_PASSWORD);
    assert_null(strstr(anna->lease->error.text, "a-wrong-one"));
    assert_false(fleet_logged(&w->fleet, "a-wrong-one"));
    redis_server_do(&w->server, "ACL SETUSER coord >a-wrong-one");
    fleet_until(&w->fleet, fleet_leads, anna);
}

static void test_password__that_is_missing_is_asked_for_and_can_come_from_a_file(void **state)
{
    struct redis_world *w = *state;
    redis_server_do(&w->server, "CONFIG SET requirepass geheim");
    struct fleet_member *anna = redis_stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, redis_is_refused, anna);
    assert_int_equal(anna->lease->error.code, COORD_E_WRONG_PASSWORD);
    assert_non_null(strstr(anna->lease->error.text, "REDIS_PASSWORD_FILE"));
    char path[128];
    snprintf(path, sizeof path, "%s/password", w->server.folder);
    FILE *file = fopen(path, "w");
    fputs("geheim\n", file);
    fclose(file);
    setenv("REDIS_PASSWORD_FILE", path, 1);
    const struct fleet_member_options options = {.name = w->name,
                                                 .identity = "bert",
                                                 .uri = w->server.uri,
                                                 .ttl = REDIS_TTL,
                                                 .private = true};
    struct fleet_member *bert = fleet_add(&w->fleet, &options);
    unsetenv("REDIS_PASSWORD_FILE");
    coord_lease_stand(bert->lease, fleet_now());
    fleet_until(&w->fleet, fleet_leads, bert);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, redis_set_up, redis_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(test_rights__that_the_page_lists_are_enough_for_every_verb),
        CASE(test_rights__that_are_missing_are_named_with_the_cure),
        CASE(test_rights__to_delete_are_missed_by_a_resignation),
        CASE(test_rights__to_keys_and_channels_are_named_too),
        CASE(test_rights__without_info_every_takeover_waits_and_the_log_says_why),
        CASE(test_password__that_is_wrong_is_refused_and_appears_nowhere),
        CASE(test_password__that_is_missing_is_asked_for_and_can_come_from_a_file),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_rights", tests, NULL, NULL);
}
