/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis.c - whole electors on a real server, while it and the network misbehave.
 */
#include "electors/redis.h"

#include "tests/support/redis_world.h"

#include <hiredis/hiredis.h>

/* ---------------------------------------------------------------- an election */

static void test_election__goes_to_one_and_is_handed_over_by_a_resignation(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->server.uri);
    struct fleet_member *bert = redis_stand(w, "bert", w->server.uri);
    fleet_drive(&w->fleet, REDIS_TTL);
    assert_int_equal(fleet_reason(bert), COORD_REASON_HELD);
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_leads, bert);
    fleet_until(&w->fleet, fleet_settled, anna);
    assert_int_equal(anna->lease->release, COORD_RELEASE_RELEASED);
    assert_true(bert->fence > anna->fence);
}

/* ---------------------------------------------------------------- takeover */

static void test_takeover__of_a_new_name_waits_a_lease_on_a_young_server(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, redis_takes_over, anna);
    /* Long enough for renewals that must not make it lead. */
    fleet_until(&w->fleet, fleet_leads, anna);
    assert_int_equal(anna->lease->error.code, COORD_OK);
}

static void test_takeover__from_a_dead_leader_comes_when_its_lease_runs_out(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->server.uri);
    struct fleet_member *bert = redis_stand(w, "bert", w->server.uri);
    fleet_drive(&w->fleet, REDIS_TTL);
    fleet_drop(anna);
    fleet_until(&w->fleet, fleet_leads, bert);
    assert_true(bert->fence > anna->fence);
}

static void test_takeover__from_a_stopped_leader_ends_it_before(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->server.uri);
    struct fleet_member *bert = redis_stand(w, "bert", w->server.uri);
    anna->stuck = true;
    fleet_until(&w->fleet, fleet_leads, bert);
    assert_false(fleet_leads(anna));
    anna->stuck = false;
    fleet_drive(&w->fleet, REDIS_TTL);
    assert_true(fleet_leads(bert));
    assert_int_equal(anna->stopped, 1);
}

/* ---------------------------------------------------------------- the network */

static void test_network__that_loses_the_reply_to_a_grant_makes_nobody_a_stranger(void **state)
{
    struct redis_world *w = *state;
    proxy_drop_reply(&w->proxy, "EVAL");
    struct fleet_member *anna = redis_lead(w, w->proxy.uri);
    assert_int_equal(proxy_dropped(&w->proxy), 1);
    assert_int_equal(anna->started, 1);
    fleet_drive(&w->fleet, REDIS_TTL);
    assert_true(fleet_leads(anna));
}

static void test_network__that_loses_renewals_and_replies_ends_no_term(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->proxy.uri);
    for (unsigned i = 0; i < 3; i++) {
        proxy_drop_reply(&w->proxy, "EVALSHA");
        fleet_drive(&w->fleet, REDIS_TTL);
        proxy_drop_request(&w->proxy, "EVALSHA");
        fleet_drive(&w->fleet, REDIS_TTL);
        assert_true(fleet_leads(anna));
    }
    assert_int_equal(proxy_dropped(&w->proxy), 6);
    assert_int_equal(anna->started, 1);
}

static void test_network__that_is_cut_off_ends_a_term_before_the_next_begins(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->proxy.uri);
    struct fleet_member *bert = redis_stand(w, "bert", w->server.uri);
    proxy_stall(&w->proxy, true);
    fleet_until(&w->fleet, fleet_leads, bert);
    assert_false(fleet_leads(anna));
    assert_int_equal(anna->stopped, 1);
    proxy_stall(&w->proxy, false);
    fleet_until(&w->fleet, redis_is_held, anna);
    assert_true(fleet_leads(bert));
}

static void test_network__that_delivers_an_old_acquire_late_makes_no_second_term(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->proxy.uri);
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    /* Her next acquire is under way for long, on a connection that she has given up. */
    proxy_hold(&w->proxy, true);
    coord_lease_stand(anna->lease, fleet_now());
    fleet_drive(&w->fleet, REDIS_TTL);
    assert_false(fleet_leads(anna));
    proxy_hold(&w->proxy, false);
    fleet_until(&w->fleet, fleet_leads, anna);
    fleet_drive(&w->fleet, REDIS_TTL);
    assert_true(fleet_leads(anna));
    assert_int_equal(anna->started, 2);
}

static void test_network__that_loses_the_reply_to_a_resignation_still_releases(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->proxy.uri);
    fleet_drive(&w->fleet, 50);
    proxy_drop_reply(&w->proxy, "EVALSHA");
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    assert_int_equal(anna->lease->release, COORD_RELEASE_RELEASED);
    struct fleet_member *bert = redis_stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, bert);
}

/* No network does that, but a broken proxy may: the answers would belong to nobody. */
static void test_network__that_doubles_a_reply_costs_a_connection_and_no_term(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->proxy.uri);
    for (int i = 0; i < 3; i++) {
        proxy_double_reply(&w->proxy, "EVALSHA");
        fleet_drive(&w->fleet, REDIS_TTL);
        assert_true(fleet_leads(anna));
    }
    assert_int_equal(anna->started, 1);
    assert_true(fleet_logged(&w->fleet, "was not asked"));
}

/* ---------------------------------------------------------------- the server */

static void test_server__that_forgets_its_scripts_is_told_them_again(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->server.uri);
    for (int i = 0; i < 4; i++) {
        redis_server_do(&w->server, "SCRIPT FLUSH");
        fleet_drive(&w->fleet, REDIS_TTL / 2);
        assert_true(fleet_leads(anna));
    }
    redis_server_do(&w->server, "SCRIPT FLUSH");
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    assert_int_equal(anna->lease->release, COORD_RELEASE_RELEASED);
    assert_int_equal(anna->started, 1);
}

/* One of them does not get to ask, so that it is the other's turn. */
static void empty_for(struct redis_world *w, struct fleet_member *next, struct fleet_member *held)
{
    const uint64_t before = next->fence > held->fence ? next->fence : held->fence;
    const coord_ms emptied = fleet_now();
    held->stuck = true;
    redis_server_do(&w->server, "FLUSHALL");
    if (fleet_leads(next)) {
        fleet_until(&w->fleet, fleet_leads_not, next);
        assert_int_equal(next->lease->last_end, COORD_END_LOST);
    }
    fleet_until(&w->fleet, fleet_leads, next);
    assert_true(fleet_now() >= emptied + REDIS_TTL); /* whoever led until then has ended */
    assert_true(next->fence > before);
    assert_false(fleet_leads(held));
    held->stuck = false;
}

static void test_server__that_is_emptied_makes_all_who_knew_the_name_wait_a_lease(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->server.uri);
    struct fleet_member *bert = redis_stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, redis_is_held, bert);
    fleet_drive(&w->fleet, 2 * REDIS_TTL); /* the server is older than a lease, and they know */
    empty_for(w, anna, bert);              /* whose term it ends */
    empty_for(w, bert, anna);              /* who has not led, and saw an older fence */
}

static void test_server__that_was_killed_and_came_back_empty_has_one_leader_again(void **state)
{
    struct redis_world *w = *state;
    redis_clear(w);
    struct fleet_member *anna = redis_stand(w, "anna", w->server.uri);
    struct fleet_member *bert = redis_stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, redis_either_leads, w);
    for (int i = 0; i < 3; i++) {
        const uint64_t before = anna->fence > bert->fence ? anna->fence : bert->fence;
        redis_server_kill(&w->server);
        fleet_drive(&w->fleet, REDIS_TTL / 3);
        redis_server_again(&w->server);
        fleet_until(&w->fleet, redis_neither_leads, w);
        fleet_until(&w->fleet, redis_either_leads, w);
        assert_true(anna->fence > before || bert->fence > before);
    }
    assert_true(fleet_logged(&w->fleet, "UNREACHABLE"));
    assert_true(fleet_logged(&w->fleet, "connected again"));
}

static void test_server__that_restarts_with_its_data_keeps_its_leader(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->server.uri);
    char before[128];
    char after[128];
    redis_read_field(w, "run", before, sizeof before);
    redis_server_kill(&w->server);
    redis_server_again(&w->server);
    do {
        fleet_drive(&w->fleet, REDIS_TTL / 2);
        redis_read_field(w, "run", after, sizeof after);
    } while (strcmp(before, after) == 0 && fleet_leads(anna));
    /* Her term outlived a lease in the new run: its record follows. */
    assert_true(fleet_leads(anna));
    assert_int_equal(anna->started, 1);
}

static void test_server__that_became_a_replica_is_refused_until_it_is_a_primary_again(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->server.uri);
    redis_server_do(&w->server, "REPLICAOF 127.0.0.1 1");
    fleet_until(&w->fleet, redis_is_refused, anna);
    assert_int_equal(anna->lease->error.code, COORD_E_STANDBY);
    assert_non_null(strstr(anna->lease->error.text, "replica"));
    redis_server_do(&w->server, "REPLICAOF NO ONE");
    fleet_until(&w->fleet, fleet_leads, anna);
}

/* @return how many replicas have all that was written, once one has. */
static long long replicated(const struct redis_server *primary)
{
    redisReply *reply = redis_server_command(primary, "WAIT 1 %d", FLEET_GUARD);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    const long long count = reply->integer;
    freeReplyObject(reply);
    return count;
}

/* Its process, its uptime and its connections are those of the replica; its run is a new one. */
static void test_server__that_is_promoted_as_it_runs_owes_a_lease_and_fences_rise(void **state)
{
    struct redis_world *w = *state;
    struct redis_server replica;
    static const char *const none[] = {NULL};
    redis_clear(w);
    redis_server_start(&replica, none);
    redis_server_do(&replica, "REPLICAOF 127.0.0.1 %d", w->server.port);
    redis_server_do(&w->server, "SET filler x"); /* something to have */
    assert_int_equal(replicated(&w->server), 1);
    struct fleet_member *anna = redis_stand(w, "anna", w->server.uri);
    struct fleet_member *bert = redis_stand(w, "bert", replica.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    fleet_until(&w->fleet, redis_is_refused, bert);
    assert_int_equal(bert->lease->error.code, COORD_E_STANDBY);
    fleet_drive(&w->fleet, 3 * REDIS_TTL); /* longer than a lease, so that only its run says it */
    assert_true(fleet_leads(anna));
    assert_int_equal(replicated(&w->server), 1);
    redis_server_kill(&w->server);
    const coord_ms promoted = fleet_now();
    redis_server_do(&replica, "REPLICAOF NO ONE");
    fleet_until(&w->fleet, fleet_leads, bert);
    assert_true(fleet_now() >= promoted + REDIS_TTL);
    assert_true(bert->fence > anna->fence);
    assert_false(fleet_leads(anna));
    fleet_drop(bert);
    redis_server_stop(&replica);
}

static void test_server__that_is_full_says_so_and_a_leader_goes_on(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_lead(w, w->server.uri);
    redis_server_do(&w->server, "CONFIG SET maxmemory 1");
    fleet_drive(&w->fleet, REDIS_TTL);
    assert_true(fleet_leads(anna));
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    struct fleet_member *bert = redis_stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, redis_has_failed, bert);
    assert_int_equal(bert->lease->error.code, COORD_E_SERVER_FULL);
    redis_server_do(&w->server, "CONFIG SET maxmemory 0");
    fleet_until(&w->fleet, fleet_leads, bert);
}

static void test_server__that_loads_its_data_is_waited_for(void **state)
{
    struct redis_world *w = *state;
    struct fleet_member *anna = redis_stand(w, "anna", w->server.uri);
    redis_server_do(&w->server, "EVAL %s 0",
                    "for i = 1, 2000 do redis.call('SET', 'filler' .. i, i) end");
    redis_server_do(&w->server, "SAVE");
    redis_server_kill(&w->server);
    static const char *const slow[] = {"--key-load-delay", "1500",
                                       "--loading-process-events-interval-bytes", "1024", NULL};
    memcpy(w->server.options, slow, sizeof slow);
    redis_server_launch(&w->server);
    fleet_until(&w->fleet, redis_is_starting, anna);
    fleet_until(&w->fleet, fleet_leads, anna);
}

static void test_server__with_a_key_of_another_program_is_refused_with_the_cure(void **state)
{
    struct redis_world *w = *state;
    redis_server_do(&w->server, "LPUSH coord:{%s}:lease x", w->name);
    struct fleet_member *anna = redis_stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, redis_is_refused, anna);
    assert_int_equal(anna->lease->error.code, COORD_E_FOREIGN_RECORD);
    assert_non_null(strstr(anna->lease->error.text, "delete it"));
    redis_server_do(&w->server, "DEL coord:{%s}:lease", w->name);
    redis_server_do(&w->server, "SET coord:{%s}:lease mine", w->name);
    fleet_drive(&w->fleet, REDIS_TTL);
    assert_int_equal(anna->lease->error.code, COORD_E_FOREIGN_RECORD);
    redis_server_do(&w->server, "DEL coord:{%s}:lease", w->name);
    fleet_until(&w->fleet, fleet_leads, anna);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, redis_set_up, redis_tear_down)
#define DURABLE_CASE(test) \
    cmocka_unit_test_setup_teardown(test, redis_set_up_durable, redis_tear_down)
#define PRIMARY_CASE(test) \
    cmocka_unit_test_setup_teardown(test, redis_set_up_primary, redis_tear_down)
#define PROXY_CASE(test) cmocka_unit_test_setup_teardown(test, redis_set_up_proxy, redis_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(test_election__goes_to_one_and_is_handed_over_by_a_resignation),
        CASE(test_takeover__of_a_new_name_waits_a_lease_on_a_young_server),
        CASE(test_takeover__from_a_dead_leader_comes_when_its_lease_runs_out),
        CASE(test_takeover__from_a_stopped_leader_ends_it_before),
        PROXY_CASE(test_network__that_loses_the_reply_to_a_grant_makes_nobody_a_stranger),
        PROXY_CASE(test_network__that_loses_renewals_and_replies_ends_no_term),
        PROXY_CASE(test_network__that_is_cut_off_ends_a_term_before_the_next_begins),
        PROXY_CASE(test_network__that_delivers_an_old_acquire_late_makes_no_second_term),
        PROXY_CASE(test_network__that_loses_the_reply_to_a_resignation_still_releases),
        PROXY_CASE(test_network__that_doubles_a_reply_costs_a_connection_and_no_term),
        CASE(test_server__that_forgets_its_scripts_is_told_them_again),
        CASE(test_server__that_is_emptied_makes_all_who_knew_the_name_wait_a_lease),
        CASE(test_server__that_was_killed_and_came_back_empty_has_one_leader_again),
        DURABLE_CASE(test_server__that_restarts_with_its_data_keeps_its_leader),
        CASE(test_server__that_became_a_replica_is_refused_until_it_is_a_primary_again),
        PRIMARY_CASE(test_server__that_is_promoted_as_it_runs_owes_a_lease_and_fences_rise),
        CASE(test_server__that_is_full_says_so_and_a_leader_goes_on),
        CASE(test_server__that_loads_its_data_is_waited_for),
        CASE(test_server__with_a_key_of_another_program_is_refused_with_the_cure),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis", tests, NULL, NULL);
}
