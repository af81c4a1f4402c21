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
#include <time.h>

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

static int set_up(void **state)
{
    static const char *const none[] = {NULL};
    struct world *w = calloc(1, sizeof *w);
    *state = w;
    redis_server_start(&w->server, none);
    fleet_init(&w->fleet, coord_redis_elector());
    redis_server_name(w->name, sizeof w->name, "redis");
    return 0;
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

/* The operator's word that nobody leads, so that nothing is owed. */
static void clear(struct world *w)
{
    struct fleet_member *operator= join(w, "operator", w->server.uri);
    const struct coord_request query = {.verb = COORD_VERB_INIT};
    assert_int_equal(fleet_query(&w->fleet, operator, &query), COORD_DONE);
    fleet_drop(operator);
}

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

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define PROXY_CASE(test) cmocka_unit_test_setup_teardown(test, set_up_proxy, tear_down)

int main(void)
{
    (void)set_up_proxy;
    const struct CMUnitTest tests[] = {
        CASE(test_election__goes_to_one_and_is_handed_over_by_a_resignation),
    };
    return cmocka_run_group_tests_name("redis", tests, NULL, NULL);
}
