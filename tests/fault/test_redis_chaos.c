/* SPDX-License-Identifier: MIT
 * tests/fault/test_redis_chaos.c - four electors, each behind a network of its own, on a server
 * that dies and forgets: never two leaders, fences rise, and in the end there is a leader.
 *
 *   COORD_CHAOS_MS=60000 COORD_CHAOS_SEED=7   for longer, and for a run again
 */
#include "electors/redis.h"

#include "tests/support/fleet.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <time.h>

enum {
    ELECTORS = 4,
    TTL = 400,
    DURATION = 7000,
    WAYS = 11
};

struct world {
    struct redis_server server;
    struct proxy proxies[ELECTORS];
    struct fleet fleet;
    struct fleet_member *members[ELECTORS];
    bool stalled[ELECTORS];
    uint64_t random;
    char name[64];
    unsigned happened[WAYS];
};

static unsigned below(struct world *w, unsigned limit)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (unsigned)(w->random >> 33) % limit;
}

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

static int start(void **state, const char *const *options)
{
    struct world *w = calloc(1, sizeof *w);
    *state = w;
    redis_server_start(&w->server, options);
    fleet_init(&w->fleet, coord_redis_elector());
    redis_server_name(w->name, sizeof w->name, "chaos");
    w->random = from_environment("COORD_CHAOS_SEED", (unsigned long)time(NULL)) * 2 + 1;
    print_message("COORD_CHAOS_SEED=%lu\n", (unsigned long)(w->random / 2));
    for (int i = 0; i < ELECTORS; i++) {
        char identity[16];
        snprintf(identity, sizeof identity, "elector %d", i);
        proxy_start(&w->proxies[i], w->server.socket);
        const struct fleet_member_options member = {.name = w->name,
                                                    .identity = identity,
                                                    .uri = w->proxies[i].uri,
                                                    .ttl = TTL,
                                                    .private = true};
        w->members[i] = fleet_add(&w->fleet, &member);
        assert_non_null(w->members[i]);
        coord_lease_stand(w->members[i]->lease, fleet_now());
    }
    return 0;
}

static int set_up_forgetful(void **state)
{
    static const char *const none[] = {NULL};
    return start(state, none);
}

static int set_up_durable(void **state)
{
    static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    return start(state, durable);
}

static int tear_down(void **state)
{
    struct world *w = *state;
    fleet_fini(&w->fleet);
    for (int i = 0; i < ELECTORS; i++) {
        proxy_stop(&w->proxies[i]);
    }
    redis_server_stop(&w->server);
    free(w);
    return 0;
}

static void restart(struct world *w)
{
    redis_server_kill(&w->server);
    fleet_drive(&w->fleet, below(w, TTL));
    redis_server_again(&w->server);
}

/* One thing goes wrong, or ends. */
static void spoil(struct world *w)
{
    const unsigned way = below(w, WAYS);
    const unsigned i = below(w, ELECTORS);
    struct proxy *proxy = &w->proxies[i];
    struct fleet_member *member = w->members[i];
    w->happened[way]++;
    switch (way) {
    case 0:
        proxy_drop_reply(proxy, "EVAL");
        break;
    case 1:
        proxy_keep_reply(proxy, "EVAL");
        break;
    case 2:
        proxy_let_go(proxy);
        break;
    case 3:
        proxy_cut(proxy, false);
        break;
    case 4:
    case 5:
        w->stalled[i] = !w->stalled[i];
        proxy_stall(proxy, w->stalled[i]);
        break;
    case 6:
        proxy_hold(proxy, true);
        fleet_drive(&w->fleet, below(w, TTL));
        proxy_hold(proxy, false);
        break;
    case 7:
        member->stuck = !member->stuck;
        break;
    case 8:
        redis_server_do(&w->server, "SCRIPT FLUSH");
        break;
    case 9:
        if (!member->stuck && coord_lease_step_down(member->lease, NULL, fleet_now()) != COORD_OK) {
            coord_lease_hint(member->lease, fleet_now());
        }
        break;
    default:
        if (below(w, 4) == 0) {
            restart(w);
        }
        break;
    }
}

static bool somebody_leads(void *ctx)
{
    struct world *w = ctx;
    for (int i = 0; i < ELECTORS; i++) {
        if (fleet_leads(w->members[i])) {
            return true;
        }
    }
    return false;
}

/* The fleet's own checks run at each step: one leader at most, and fences that rise. */
static void test_chaos__makes_no_second_leader_and_ends_with_one(void **state)
{
    struct world *w = *state;
    const coord_ms end = fleet_now() + from_environment("COORD_CHAOS_MS", DURATION);
    unsigned terms = 0;
    while (fleet_now() < end) {
        fleet_drive(&w->fleet, below(w, TTL / 2));
        spoil(w);
    }
    for (int i = 0; i < ELECTORS; i++) {
        proxy_let_go(&w->proxies[i]);
        proxy_stall(&w->proxies[i], false);
        w->members[i]->stuck = false;
    }
    fleet_until(&w->fleet, somebody_leads, w);
    for (int i = 0; i < ELECTORS; i++) {
        terms += w->members[i]->started;
    }
    print_message("%u terms; ", terms);
    for (int i = 0; i < WAYS; i++) {
        print_message("%u ", w->happened[i]);
    }
    print_message("\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        {"test_chaos__on_a_server_that_forgets",
         test_chaos__makes_no_second_leader_and_ends_with_one, set_up_forgetful, tear_down, NULL},
        {"test_chaos__on_a_server_that_remembers",
         test_chaos__makes_no_second_leader_and_ends_with_one, set_up_durable, tear_down, NULL},
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("redis_chaos", tests, NULL, NULL);
}
