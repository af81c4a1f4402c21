/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_events.c - what electors hear, share, and tell of each other.
 */
#include "electors/redis.h"

#include "tests/support/redis_world.h"

#include <hiredis/hiredis.h>

#include <sys/wait.h>

/* ---------------------------------------------------------------- events */

static struct fleet_member *stand_long(struct redis_world *w, const char *identity)
{
    const struct fleet_member_options options = {
        .name = w->name, .identity = identity, .uri = w->server.uri, .ttl = 90 * 1000};
    struct fleet_member *member = fleet_add(&w->fleet, &options);
    assert_non_null(member);
    coord_lease_stand(member->lease, fleet_now());
    return member;
}

/* A follower of such a lease looks each 30 s: only the word of a resignation is faster. */
static void test_events__tell_a_follower_of_a_resignation(void **state)
{
    struct redis_world *w = *state;
    redis_clear(w);
    struct fleet_member *anna = stand_long(w, "anna");
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand_long(w, "bert");
    fleet_until(&w->fleet, redis_is_held, bert);
    fleet_drive(&w->fleet, 300); /* it listens by now */
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_leads, bert);
}

static bool has_kept(void *ctx)
{
    struct redis_world *w = ctx;
    return proxy_kept(&w->proxy) > 0;
}

/* A "held" that is older than the news of the resignation must not put it to sleep. */
static void test_events__that_overtake_an_answer_are_not_forgotten(void **state)
{
    struct redis_world *w = *state;
    redis_clear(w);
    struct fleet_member *anna = stand_long(w, "anna");
    fleet_until(&w->fleet, fleet_leads, anna);
    const struct fleet_member_options options = {
        .name = w->name, .identity = "bert", .uri = w->proxy.uri, .ttl = 90 * 1000};
    struct fleet_member *bert = fleet_add(&w->fleet, &options);
    assert_non_null(bert);
    coord_lease_stand(bert->lease, fleet_now());
    fleet_until(&w->fleet, redis_is_held, bert);
    fleet_drive(&w->fleet, 300);
    proxy_keep_reply(&w->proxy, "EVALSHA");
    coord_lease_hint(bert->lease, fleet_now());
    fleet_until(&w->fleet, has_kept, w);
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    fleet_drive(&w->fleet, 100);
    proxy_let_go(&w->proxy);
    fleet_until(&w->fleet, fleet_leads, bert);
}

static void test_events__that_were_interrupted_begin_again_with_a_look(void **state)
{
    struct redis_world *w = *state;
    redis_clear(w);
    struct fleet_member *anna = stand_long(w, "anna");
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand_long(w, "bert");
    fleet_until(&w->fleet, redis_is_held, bert);
    fleet_drive(&w->fleet, 300);
    redis_server_do(&w->server, "CLIENT KILL TYPE pubsub");
    bert->stuck = true; /* it hears nothing while anna goes */
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    fleet_drop(anna);
    bert->stuck = false;
    fleet_until(&w->fleet, fleet_leads, bert);
}

static void test_events__tell_a_leader_that_it_is_asked_to_step_down(void **state)
{
    struct redis_world *w = *state;
    redis_clear(w);
    struct fleet_member *anna = stand_long(w, "anna"); /* renews each 10 s */
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand_long(w, "bert");
    struct fleet_member *carl = stand_long(w, "carl");
    fleet_until(&w->fleet, redis_is_held, bert);
    fleet_until(&w->fleet, redis_is_held, carl);
    fleet_drive(&w->fleet, 300);
    const struct coord_request ask = {
        .verb = COORD_VERB_ASK, .fence = anna->fence, .successor = "carl", .reserve = 10000};
    const coord_ms asked = fleet_now();
    assert_int_equal(fleet_query(&w->fleet, bert, &ask), COORD_DONE);
    fleet_until(&w->fleet, fleet_leads, carl);
    assert_true(fleet_now() - asked < 5000);
    assert_int_equal(bert->started, 0);
    assert_int_equal(anna->lease->last_end, COORD_END_STEPPED_DOWN);
}

/* ---------------------------------------------------------------- sharing */

static size_t clients(struct redis_world *w)
{
    redisReply *reply = redis_server_command(&w->server, "CLIENT LIST");
    size_t count = 0;
    for (const char *at = reply->str; (at = strstr(at, "id=")) != NULL; at++) {
        count++;
    }
    freeReplyObject(reply);
    return count - 1; /* the one that asks */
}

static void test_sharing__many_elections_take_two_connections(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *members[8];
    char uri[160];
    for (int i = 0; i < 8; i++) {
        redis_server_name(w->name, sizeof w->name, "shared");
        snprintf(uri, sizeof uri, "%s?coord.ttl=%dms", w->server.uri, 600 + i);
        const struct fleet_member_options options = {
            .name = w->name, .identity = "anna", .uri = uri};
        members[i] = fleet_add(&w->fleet, &options);
        assert_non_null(members[i]);
        coord_lease_stand(members[i]->lease, fleet_now());
    }
    for (int i = 0; i < 8; i++) {
        fleet_until(&w->fleet, fleet_leads, members[i]);
    }
    assert_int_equal(clients(w), 2);
    for (int i = 0; i < 7; i++) {
        fleet_drop(members[i]);
    }
    fleet_drive(&w->fleet, REDIS_TTL);
    assert_true(fleet_leads(members[7]));
    fleet_drop(members[7]);
    assert_int_equal(clients(w), 0);
}

static void test_sharing__one_that_goes_with_a_request_outstanding_leaves_the_others_theirs(
    void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->proxy.uri);
    proxy_hold(&w->proxy, true);
    struct fleet_member *bert = redis_stand(w, "bert", w->proxy.uri);
    coord_elector_process(bert->elector, fleet_now()); /* its acquire is under way */
    fleet_drop(bert);
    coord_lease_renew(anna->lease, fleet_now());
    coord_elector_process(anna->elector, fleet_now());
    proxy_hold(&w->proxy, false);
    fleet_drive(&w->fleet, REDIS_TTL);
    assert_true(fleet_leads(anna));
    assert_int_equal(anna->lease->error.code, COORD_OK);
}

static void test_sharing__a_forked_child_lets_go_without_a_word(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->server.uri);
    const pid_t pid = fork();
    if (pid == 0) {
        coord_elector_free(anna->elector, true);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    fleet_drive(&w->fleet, 3 * REDIS_TTL);
    assert_true(fleet_leads(anna));
    assert_int_equal(anna->started, 1);
    assert_false(fleet_logged(&w->fleet, "connected again"));
}

/* ---------------------------------------------------------------- what is told */

static void test_observe__tells_the_leader_its_address_and_what_is_left(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_stand(w, "anna and co", w->server.uri);
    fleet_until(&w->fleet, redis_takes_over, anna);
    struct fleet_member *watcher = redis_join(w, "watcher", w->server.uri);
    const struct coord_request observe = {.verb = COORD_VERB_OBSERVE};
    assert_int_equal(fleet_query(&w->fleet, watcher, &observe), COORD_HELD);
    const struct coord_observation *seen = &watcher->lease->leader;
    assert_true(seen->taking_over);
    assert_false(seen->leading);
    fleet_until(&w->fleet, fleet_leads, anna);
    assert_int_equal(fleet_query(&w->fleet, watcher, &observe), COORD_HELD);
    assert_true(seen->leading);
    assert_string_equal(seen->identity, "anna and co");
    assert_int_equal(seen->metadata_bytes, 7);
    assert_memory_equal(seen->metadata, "host:80", 7);
    assert_true(seen->fence == anna->fence && seen->last_fence == anna->fence);
    assert_true(seen->remaining <= REDIS_TTL);
    assert_true(seen->since_us > 1600000000000000u);
    assert_true(anna->lease->leader.leading); /* and she of herself */
    assert_string_equal(anna->lease->leader.identity, "anna and co");
}

static void test_names__of_any_bytes_work(void **state)
{
    struct redis_world *w = *state;
    snprintf(w->name, sizeof w->name, "%s", "}{ %\x01\xff*?[\r\n");
    redis_clear(w);
    struct fleet_member *anna = redis_stand(w, "an na\n$-1\r\n{x}", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = redis_stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, redis_is_held, bert);
    assert_string_equal(bert->lease->leader.identity, "an na%0a$-1%0d%0a%7bx%7d");
}

static void test_options__keep_two_fleets_apart_by_their_prefix(void **state)
{
    struct redis_world *w = *state;
    char uri[160];
    snprintf(uri, sizeof uri, "%s?coord.prefix=other", w->server.uri);
    struct fleet_member *anna = redis_stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, redis_takes_over, anna);
    redis_server_do(&w->server, "EXISTS coord:{%s}:lease", w->name);
    struct fleet_member *bert = redis_join(w, "bert", uri);
    const struct coord_request observe = {.verb = COORD_VERB_OBSERVE};
    assert_int_equal(fleet_query(&w->fleet, bert, &observe), COORD_FREE);
}

static void test_options__that_make_no_sense_are_refused_before_any_io(void **state)
{
    static const struct {
        const char *uri;
        enum coord_err code;
    } bad[] = {
        {"redis+unix:///s?coord.prefix=a{b", COORD_E_BAD_OPTION},
        {"redis+unix:///s?coord.prefix=", COORD_E_BAD_OPTION},
        {"redis+unix:///s?coord.nonsense=1", COORD_E_UNKNOWN_OPTION},
        {"redis://localhost?timeout=3", COORD_E_UNKNOWN_OPTION},
        {"redis://a,b/0", COORD_E_BAD_URI},
        {"redis://a/zero", COORD_E_BAD_URI},
        {"redis+unix://", COORD_E_BAD_URI},
        {"redis+unix:///s?db=x", COORD_E_BAD_URI},
        {"redis+sentinel://a,b", COORD_E_BAD_URI},
    };
    struct redis_world *w = *state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct fleet_member_options options = {
            .name = "n", .identity = "i", .uri = bad[i].uri};
        assert_null(fleet_add(&w->fleet, &options));
        assert_int_equal(w->fleet.error.code, bad[i].code);
    }
}

#define CASE(test)       cmocka_unit_test_setup_teardown(test, redis_set_up, redis_tear_down)
#define PROXY_CASE(test) cmocka_unit_test_setup_teardown(test, redis_set_up_proxy, redis_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(test_events__tell_a_follower_of_a_resignation),
        PROXY_CASE(test_events__that_overtake_an_answer_are_not_forgotten),
        CASE(test_events__that_were_interrupted_begin_again_with_a_look),
        CASE(test_events__tell_a_leader_that_it_is_asked_to_step_down),
        CASE(test_sharing__many_elections_take_two_connections),
        PROXY_CASE(test_sharing__one_that_goes_with_a_request_outstanding_leaves_the_others_theirs),
        CASE(test_sharing__a_forked_child_lets_go_without_a_word),
        CASE(test_observe__tells_the_leader_its_address_and_what_is_left),
        CASE(test_names__of_any_bytes_work),
        CASE(test_options__keep_two_fleets_apart_by_their_prefix),
        CASE(test_options__that_make_no_sense_are_refused_before_any_io),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_events", tests, NULL, NULL);
}
