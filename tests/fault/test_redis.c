/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis.c - whole electors on a real server, while it and the network misbehave.
 */
#include "electors/redis.h"

#include "tests/support/fleet.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>
#include <sys/wait.h>

enum {
    TTL = 600
};

struct world {
    struct redis_server server;
    struct proxy proxy;
    bool has_proxy;
    struct fleet fleet;
    char name[64];
};

static int set_up_with(void **state, const char *const *options)
{
    struct world *w = calloc(1, sizeof *w);
    *state = w;
    redis_server_start(&w->server, options);
    fleet_init(&w->fleet, coord_redis_elector());
    redis_server_name(w->name, sizeof w->name, "redis");
    return 0;
}

static int set_up(void **state)
{
    static const char *const none[] = {NULL};
    return set_up_with(state, none);
}

/* One that loses nothing. */
static int set_up_durable(void **state)
{
    static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    return set_up_with(state, durable);
}

static int set_up_proxy(void **state)
{
    set_up(state);
    struct world *w = *state;
    proxy_start(&w->proxy, w->server.socket);
    w->has_proxy = true;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    fleet_fini(&w->fleet);
    if (w->has_proxy) {
        proxy_stop(&w->proxy);
    }
    redis_server_stop(&w->server);
    free(w);
    return 0;
}

static struct fleet_member *join(struct world *w, const char *identity, const char *uri)
{
    const struct fleet_member_options options = {
        .name = w->name, .identity = identity, .uri = uri, .ttl = TTL, .metadata = "host:80"};
    struct fleet_member *member = fleet_add(&w->fleet, &options);
    if (member == NULL) {
        fail_msg("%s: %s", coord_err_name(w->fleet.error.code), w->fleet.error.text);
    }
    return member;
}

/* The same, and it stands. */
static struct fleet_member *stand(struct world *w, const char *identity, const char *uri)
{
    struct fleet_member *member = join(w, identity, uri);
    coord_lease_stand(member->lease, fleet_now());
    return member;
}

static void read_field(const struct world *w, const char *field, char *out, size_t bytes)
{
    redisReply *reply =
        redis_server_command(&w->server, "HGET coord:{%s}:fence %s", w->name, field);
    snprintf(out, bytes, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
    freeReplyObject(reply);
}

/* The operator's word that nobody leads, so that nothing is owed. */
static void clear(struct world *w)
{
    struct fleet_member *keeper = join(w, "keeper", w->server.uri);
    const struct coord_request query = {.verb = COORD_VERB_INIT};
    assert_int_equal(fleet_query(&w->fleet, keeper, &query), COORD_DONE);
    fleet_drop(keeper);
}

/* ---------------------------------------------------------------- conditions */

static bool takes_over(void *ctx)
{
    return fleet_reason(ctx) == COORD_REASON_TAKING_OVER;
}

static bool is_held(void *ctx)
{
    return fleet_reason(ctx) == COORD_REASON_HELD;
}

static bool is_refused(void *ctx)
{
    const struct fleet_member *member = ctx;
    return coord_err_class(member->lease->error.code) == COORD_CLASS_REFUSED;
}

static bool has_failed(void *ctx)
{
    const struct fleet_member *member = ctx;
    return member->lease->error.code != COORD_OK;
}

static bool is_starting(void *ctx)
{
    const struct fleet_member *member = ctx;
    return member->lease->error.code == COORD_E_SERVER_STARTING;
}

static bool either_leads(void *ctx)
{
    struct world *w = ctx;
    for (size_t i = 0; i < w->fleet.count; i++) {
        if (w->fleet.members[i].elector != NULL && fleet_leads(&w->fleet.members[i])) {
            return true;
        }
    }
    return false;
}

static bool neither_leads(void *ctx)
{
    return !either_leads(ctx);
}

/* ---------------------------------------------------------------- an election */

static void test_election__goes_to_one_and_is_handed_over_by_a_resignation(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand(w, "bert", w->server.uri);
    fleet_drive(&w->fleet, TTL);
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
    struct world *w = *state;
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, takes_over, anna);
    /* Long enough for renewals that must not make it lead. */
    fleet_until(&w->fleet, fleet_leads, anna);
    assert_int_equal(anna->lease->error.code, COORD_OK);
}

static void test_takeover__from_a_dead_leader_comes_when_its_lease_runs_out(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand(w, "bert", w->server.uri);
    fleet_drive(&w->fleet, TTL);
    fleet_drop(anna);
    fleet_until(&w->fleet, fleet_leads, bert);
    assert_true(bert->fence > anna->fence);
}

static void test_takeover__from_a_stopped_leader_ends_it_before(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand(w, "bert", w->server.uri);
    anna->stuck = true;
    fleet_until(&w->fleet, fleet_leads, bert);
    assert_false(fleet_leads(anna));
    anna->stuck = false;
    fleet_drive(&w->fleet, TTL);
    assert_true(fleet_leads(bert));
    assert_int_equal(anna->stopped, 1);
}

/* ---------------------------------------------------------------- the network */

static void test_network__that_loses_the_reply_to_a_grant_makes_nobody_a_stranger(void **state)
{
    struct world *w = *state;
    clear(w);
    proxy_drop_reply(&w->proxy, "EVAL");
    struct fleet_member *anna = stand(w, "anna", w->proxy.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    assert_int_equal(proxy_dropped(&w->proxy), 1);
    assert_int_equal(anna->started, 1);
    fleet_drive(&w->fleet, TTL);
    assert_true(fleet_leads(anna));
}

static void test_network__that_loses_renewals_and_replies_ends_no_term(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->proxy.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    for (unsigned i = 0; i < 3; i++) {
        proxy_drop_reply(&w->proxy, "EVALSHA");
        fleet_drive(&w->fleet, TTL);
        proxy_drop_request(&w->proxy, "EVALSHA");
        fleet_drive(&w->fleet, TTL);
        assert_true(fleet_leads(anna));
    }
    assert_int_equal(proxy_dropped(&w->proxy), 6);
    assert_int_equal(anna->started, 1);
}

static void test_network__that_is_cut_off_ends_a_term_before_the_next_begins(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->proxy.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand(w, "bert", w->server.uri);
    proxy_stall(&w->proxy, true);
    fleet_until(&w->fleet, fleet_leads, bert);
    assert_false(fleet_leads(anna));
    assert_int_equal(anna->stopped, 1);
    proxy_stall(&w->proxy, false);
    fleet_until(&w->fleet, is_held, anna);
    assert_true(fleet_leads(bert));
}

static void test_network__that_delivers_an_old_acquire_late_makes_no_second_term(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->proxy.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    /* Her next acquire is under way for long, on a connection that she has given up. */
    proxy_hold(&w->proxy, true);
    coord_lease_stand(anna->lease, fleet_now());
    fleet_drive(&w->fleet, TTL);
    assert_false(fleet_leads(anna));
    proxy_hold(&w->proxy, false);
    fleet_until(&w->fleet, fleet_leads, anna);
    fleet_drive(&w->fleet, TTL);
    assert_true(fleet_leads(anna));
    assert_int_equal(anna->started, 2);
}

static void test_network__that_loses_the_reply_to_a_resignation_still_releases(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->proxy.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    fleet_drive(&w->fleet, 50);
    proxy_drop_reply(&w->proxy, "EVALSHA");
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    assert_int_equal(anna->lease->release, COORD_RELEASE_RELEASED);
    struct fleet_member *bert = stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, bert);
}

/* ---------------------------------------------------------------- the server */

static void test_server__that_forgets_its_scripts_is_told_them_again(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    for (int i = 0; i < 4; i++) {
        redis_server_do(&w->server, "SCRIPT FLUSH");
        fleet_drive(&w->fleet, TTL / 2);
        assert_true(fleet_leads(anna));
    }
    redis_server_do(&w->server, "SCRIPT FLUSH");
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    assert_int_equal(anna->lease->release, COORD_RELEASE_RELEASED);
    assert_int_equal(anna->started, 1);
}

static void test_server__that_is_emptied_ends_the_term_and_the_next_one_waits(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, is_held, bert);
    redis_server_do(&w->server, "FLUSHALL");
    fleet_until(&w->fleet, fleet_leads_not, anna);
    assert_int_equal(anna->lease->last_end, COORD_END_LOST);
    const uint64_t fence = anna->fence;
    fleet_until(&w->fleet, either_leads, w);
    assert_true(anna->fence > fence || bert->fence > fence);
}

static void test_server__that_was_killed_and_came_back_empty_has_one_leader_again(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    struct fleet_member *bert = stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, either_leads, w);
    for (int i = 0; i < 3; i++) {
        const uint64_t before = anna->fence > bert->fence ? anna->fence : bert->fence;
        redis_server_kill(&w->server);
        fleet_drive(&w->fleet, TTL / 3);
        redis_server_again(&w->server);
        fleet_until(&w->fleet, neither_leads, w);
        fleet_until(&w->fleet, either_leads, w);
        assert_true(anna->fence > before || bert->fence > before);
    }
    assert_true(fleet_logged(&w->fleet, "UNREACHABLE"));
    assert_true(fleet_logged(&w->fleet, "connected again"));
}

static void test_server__that_restarts_with_its_data_keeps_its_leader(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    char before[128];
    char after[128];
    read_field(w, "run", before, sizeof before);
    redis_server_kill(&w->server);
    redis_server_again(&w->server);
    do {
        fleet_drive(&w->fleet, TTL / 2);
        read_field(w, "run", after, sizeof after);
    } while (strcmp(before, after) == 0 && fleet_leads(anna));
    /* Her term outlived a lease in the new run: its record follows. */
    assert_true(fleet_leads(anna));
    assert_int_equal(anna->started, 1);
}

static void test_server__that_became_a_replica_is_refused_until_it_is_a_primary_again(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    redis_server_do(&w->server, "REPLICAOF 127.0.0.1 1");
    fleet_until(&w->fleet, is_refused, anna);
    assert_int_equal(anna->lease->error.code, COORD_E_STANDBY);
    assert_non_null(strstr(anna->lease->error.text, "replica"));
    redis_server_do(&w->server, "REPLICAOF NO ONE");
    fleet_until(&w->fleet, fleet_leads, anna);
}

static void test_server__that_is_full_says_so_and_a_leader_goes_on(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    redis_server_do(&w->server, "CONFIG SET maxmemory 1");
    fleet_drive(&w->fleet, TTL);
    assert_true(fleet_leads(anna));
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    struct fleet_member *bert = stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, has_failed, bert);
    assert_int_equal(bert->lease->error.code, COORD_E_SERVER_FULL);
    redis_server_do(&w->server, "CONFIG SET maxmemory 0");
    fleet_until(&w->fleet, fleet_leads, bert);
}

static void test_server__that_loads_its_data_is_waited_for(void **state)
{
    struct world *w = *state;
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    redis_server_do(&w->server, "EVAL %s 0",
                    "for i = 1, 2000 do redis.call('SET', 'filler' .. i, i) end");
    redis_server_do(&w->server, "SAVE");
    redis_server_kill(&w->server);
    static const char *const slow[] = {"--key-load-delay", "1500",
                                       "--loading-process-events-interval-bytes", "1024", NULL};
    memcpy(w->server.options, slow, sizeof slow);
    redis_server_launch(&w->server);
    fleet_until(&w->fleet, is_starting, anna);
    fleet_until(&w->fleet, fleet_leads, anna);
}

static void test_server__with_a_key_of_another_program_is_refused_with_the_cure(void **state)
{
    struct world *w = *state;
    redis_server_do(&w->server, "LPUSH coord:{%s}:lease x", w->name);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, is_refused, anna);
    assert_int_equal(anna->lease->error.code, COORD_E_FOREIGN_RECORD);
    assert_non_null(strstr(anna->lease->error.text, "delete it"));
    redis_server_do(&w->server, "DEL coord:{%s}:lease", w->name);
    redis_server_do(&w->server, "SET coord:{%s}:lease mine", w->name);
    fleet_drive(&w->fleet, TTL);
    assert_int_equal(anna->lease->error.code, COORD_E_FOREIGN_RECORD);
    redis_server_do(&w->server, "DEL coord:{%s}:lease", w->name);
    fleet_until(&w->fleet, fleet_leads, anna);
}

/* ---------------------------------------------------------------- rights */

#define RIGHTS                                                                                \
    "ACL SETUSER coord on >secret ~coord:* resetchannels &coord:* -@all +eval +evalsha +get " \
    "+set +del +pexpire +pttl +time +hset +hmget +info +publish +subscribe +unsubscribe"

static void limited_uri(const struct world *w, const char *password, char *out, size_t bytes)
{
    snprintf(out, bytes, "redis+unix://coord:%s@%s", password, w->server.socket);
}

/* Every verb once, as the user with the few rights. */
static void use_every_verb(struct world *w, struct fleet_member *anna)
{
    const struct coord_request init = {.verb = COORD_VERB_INIT};
    const struct coord_request observe = {.verb = COORD_VERB_OBSERVE};
    assert_int_equal(fleet_query(&w->fleet, anna, &init), COORD_DONE);
    coord_lease_stand(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_leads, anna);
    fleet_drive(&w->fleet, TTL); /* renewals */
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
    struct world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS);
    limited_uri(w, "secret", uri, sizeof uri);
    struct fleet_member *anna = join(w, "anna", uri);
    use_every_verb(w, anna);
    assert_false(fleet_logged(&w->fleet, "NO_RIGHT"));
}

static void test_rights__that_are_missing_are_named_with_the_cure(void **state)
{
    static const char *const rights[] = {"eval", "evalsha", "get",   "set", "pexpire",
                                         "time", "hset",    "hmget", "pttl"};
    struct world *w = *state;
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
        struct fleet_member *anna = stand(w, "anna", uri);
        fleet_until(&w->fleet, is_refused, anna);
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
    struct world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS " -del");
    limited_uri(w, "secret", uri, sizeof uri);
    struct fleet_member *anna = stand(w, "anna", uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    assert_int_equal(anna->lease->release, COORD_RELEASE_LAPSING);
    assert_true(fleet_logged(&w->fleet, "NO_RIGHT"));
}

static void test_rights__to_keys_and_channels_are_named_too(void **state)
{
    struct world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS " resetkeys ~other:*");
    limited_uri(w, "secret", uri, sizeof uri);
    struct fleet_member *anna = stand(w, "anna", uri);
    fleet_until(&w->fleet, is_refused, anna);
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
    struct world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS " -info");
    limited_uri(w, "secret", uri, sizeof uri);
    struct fleet_member *anna = stand(w, "anna", uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    assert_true(fleet_logged(&w->fleet, "INFO is denied"));
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_settled, anna);
    struct fleet_member *bert = stand(w, "bert", uri);
    fleet_until(&w->fleet, takes_over, bert);
    const struct coord_request init = {.verb = COORD_VERB_INIT};
    redis_server_name(w->name, sizeof w->name, "blind");
    struct fleet_member *keeper = join(w, "keeper", uri);
    assert_int_equal(fleet_query(&w->fleet, keeper, &init), COORD_FAILED);
    assert_int_equal(keeper->lease->query_error.code, COORD_E_NO_RIGHT);
}

static void test_password__that_is_wrong_is_refused_and_appears_nowhere(void **state)
{
    struct world *w = *state;
    char uri[192];
    redis_server_do(&w->server, RIGHTS);
    limited_uri(w, "a-wrong-one", uri, sizeof uri);
    struct fleet_member *anna = stand(w, "anna", uri);
    fleet_until(&w->fleet, is_refused, anna);
    assert_int_equal(anna->lease->error.code, COORD_E_WRONG_PASSWORD);
    assert_null(strstr(anna->lease->error.text, "a-wrong-one"));
    assert_false(fleet_logged(&w->fleet, "a-wrong-one"));
    redis_server_do(&w->server, "ACL SETUSER coord >a-wrong-one");
    fleet_until(&w->fleet, fleet_leads, anna);
}

static void test_password__that_is_missing_is_asked_for_and_can_come_from_a_file(void **state)
{
    struct world *w = *state;
    redis_server_do(&w->server, "CONFIG SET requirepass geheim");
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, is_refused, anna);
    assert_int_equal(anna->lease->error.code, COORD_E_WRONG_PASSWORD);
    assert_non_null(strstr(anna->lease->error.text, "REDIS_PASSWORD_FILE"));
    char path[128];
    snprintf(path, sizeof path, "%s/password", w->server.folder);
    FILE *file = fopen(path, "w");
    fputs("geheim\n", file);
    fclose(file);
    setenv("REDIS_PASSWORD_FILE", path, 1);
    const struct fleet_member_options options = {
        .name = w->name, .identity = "bert", .uri = w->server.uri, .ttl = TTL, .private = true};
    struct fleet_member *bert = fleet_add(&w->fleet, &options);
    unsetenv("REDIS_PASSWORD_FILE");
    coord_lease_stand(bert->lease, fleet_now());
    fleet_until(&w->fleet, fleet_leads, bert);
}

/* ---------------------------------------------------------------- events */

static struct fleet_member *stand_long(struct world *w, const char *identity)
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
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand_long(w, "anna");
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand_long(w, "bert");
    fleet_until(&w->fleet, is_held, bert);
    fleet_drive(&w->fleet, 300); /* it listens by now */
    coord_lease_withdraw(anna->lease, fleet_now());
    fleet_until(&w->fleet, fleet_leads, bert);
}

static bool has_kept(void *ctx)
{
    struct world *w = ctx;
    return proxy_kept(&w->proxy) > 0;
}

/* A "held" that is older than the news of the resignation must not put it to sleep. */
static void test_events__that_overtake_an_answer_are_not_forgotten(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand_long(w, "anna");
    fleet_until(&w->fleet, fleet_leads, anna);
    const struct fleet_member_options options = {
        .name = w->name, .identity = "bert", .uri = w->proxy.uri, .ttl = 90 * 1000};
    struct fleet_member *bert = fleet_add(&w->fleet, &options);
    assert_non_null(bert);
    coord_lease_stand(bert->lease, fleet_now());
    fleet_until(&w->fleet, is_held, bert);
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
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand_long(w, "anna");
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand_long(w, "bert");
    fleet_until(&w->fleet, is_held, bert);
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
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand_long(w, "anna"); /* renews each 10 s */
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand_long(w, "bert");
    struct fleet_member *carl = stand_long(w, "carl");
    fleet_until(&w->fleet, is_held, bert);
    fleet_until(&w->fleet, is_held, carl);
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

static size_t clients(struct world *w)
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
    struct world *w = *state;
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
    fleet_drive(&w->fleet, TTL);
    assert_true(fleet_leads(members[7]));
    fleet_drop(members[7]);
    assert_int_equal(clients(w), 0);
}

static void test_sharing__one_that_goes_with_a_request_outstanding_leaves_the_others_theirs(
    void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->proxy.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    proxy_hold(&w->proxy, true);
    struct fleet_member *bert = stand(w, "bert", w->proxy.uri);
    coord_elector_process(bert->elector, fleet_now()); /* its acquire is under way */
    fleet_drop(bert);
    coord_lease_renew(anna->lease, fleet_now());
    coord_elector_process(anna->elector, fleet_now());
    proxy_hold(&w->proxy, false);
    fleet_drive(&w->fleet, TTL);
    assert_true(fleet_leads(anna));
    assert_int_equal(anna->lease->error.code, COORD_OK);
}

static void test_sharing__a_forked_child_lets_go_without_a_word(void **state)
{
    struct world *w = *state;
    clear(w);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    const pid_t pid = fork();
    if (pid == 0) {
        coord_elector_free(anna->elector, true);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    fleet_drive(&w->fleet, 3 * TTL);
    assert_true(fleet_leads(anna));
    assert_int_equal(anna->started, 1);
    assert_false(fleet_logged(&w->fleet, "connected again"));
}

/* ---------------------------------------------------------------- what is told */

static void test_observe__tells_the_leader_its_address_and_what_is_left(void **state)
{
    struct world *w = *state;
    struct fleet_member *anna = stand(w, "anna and co", w->server.uri);
    fleet_until(&w->fleet, takes_over, anna);
    struct fleet_member *watcher = join(w, "watcher", w->server.uri);
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
    assert_true(seen->remaining <= TTL);
    assert_true(seen->since_us > 1600000000000000u);
    assert_true(anna->lease->leader.leading); /* and she of herself */
    assert_string_equal(anna->lease->leader.identity, "anna and co");
}

static void test_names__of_any_bytes_work(void **state)
{
    struct world *w = *state;
    snprintf(w->name, sizeof w->name, "%s", "}{ %\x01\xff*?[\r\n");
    clear(w);
    struct fleet_member *anna = stand(w, "an na\n$-1\r\n{x}", w->server.uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    struct fleet_member *bert = stand(w, "bert", w->server.uri);
    fleet_until(&w->fleet, is_held, bert);
    assert_string_equal(bert->lease->leader.identity, "an na%0a$-1%0d%0a%7bx%7d");
}

static void test_options__keep_two_fleets_apart_by_their_prefix(void **state)
{
    struct world *w = *state;
    char uri[160];
    snprintf(uri, sizeof uri, "%s?coord.prefix=other", w->server.uri);
    struct fleet_member *anna = stand(w, "anna", w->server.uri);
    fleet_until(&w->fleet, takes_over, anna);
    redis_server_do(&w->server, "EXISTS coord:{%s}:lease", w->name);
    struct fleet_member *bert = join(w, "bert", uri);
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
    struct world *w = *state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct fleet_member_options options = {
            .name = "n", .identity = "i", .uri = bad[i].uri};
        assert_null(fleet_add(&w->fleet, &options));
        assert_int_equal(w->fleet.error.code, bad[i].code);
    }
}

#define CASE(test)         cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define DURABLE_CASE(test) cmocka_unit_test_setup_teardown(test, set_up_durable, tear_down)
#define PROXY_CASE(test)   cmocka_unit_test_setup_teardown(test, set_up_proxy, tear_down)

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
        CASE(test_server__that_forgets_its_scripts_is_told_them_again),
        CASE(test_server__that_is_emptied_ends_the_term_and_the_next_one_waits),
        CASE(test_server__that_was_killed_and_came_back_empty_has_one_leader_again),
        DURABLE_CASE(test_server__that_restarts_with_its_data_keeps_its_leader),
        CASE(test_server__that_became_a_replica_is_refused_until_it_is_a_primary_again),
        CASE(test_server__that_is_full_says_so_and_a_leader_goes_on),
        CASE(test_server__that_loads_its_data_is_waited_for),
        CASE(test_server__with_a_key_of_another_program_is_refused_with_the_cure),
        CASE(test_rights__that_the_page_lists_are_enough_for_every_verb),
        CASE(test_rights__that_are_missing_are_named_with_the_cure),
        CASE(test_rights__to_delete_are_missed_by_a_resignation),
        CASE(test_rights__to_keys_and_channels_are_named_too),
        CASE(test_rights__without_info_every_takeover_waits_and_the_log_says_why),
        CASE(test_password__that_is_wrong_is_refused_and_appears_nowhere),
        CASE(test_password__that_is_missing_is_asked_for_and_can_come_from_a_file),
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
    return cmocka_run_group_tests_name("redis", tests, NULL, NULL);
}
