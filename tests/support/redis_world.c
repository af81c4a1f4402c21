/* SPDX-License-Identifier: MIT
 * tests/support/redis_world.c - see redis_world.h.
 */
#include "tests/support/redis_world.h"

#include "electors/redis.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>

static int set_up_with(void **state, const char *const *options)
{
    struct redis_world *w = calloc(1, sizeof *w);
    *state = w;
    redis_server_start(&w->server, options);
    fleet_init(&w->fleet, coord_redis_elector());
    redis_server_name(w->name, sizeof w->name, "redis");
    return 0;
}

int redis_set_up(void **state)
{
    static const char *const none[] = {NULL};
    return set_up_with(state, none);
}

/* One that loses nothing. */
int redis_set_up_durable(void **state)
{
    static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    return set_up_with(state, durable);
}

/* One that replicas can follow, and at once. */
int redis_set_up_primary(void **state)
{
    static const char *const primary[] = {"--port", "auto", "--repl-diskless-sync-delay", "0",
                                          NULL};
    return set_up_with(state, primary);
}

int redis_set_up_proxy(void **state)
{
    redis_set_up(state);
    struct redis_world *w = *state;
    proxy_start(&w->proxy, w->server.socket);
    w->has_proxy = true;
    return 0;
}

int redis_tear_down(void **state)
{
    struct redis_world *w = *state;
    fleet_fini(&w->fleet);
    if (w->has_proxy) {
        proxy_stop(&w->proxy);
    }
    redis_server_stop(&w->server);
    free(w);
    return 0;
}

struct fleet_member *redis_join(struct redis_world *w, const char *identity, const char *uri)
{
    const struct fleet_member_options options = {
        .name = w->name, .identity = identity, .uri = uri, .ttl = REDIS_TTL, .metadata = "host:80"};
    struct fleet_member *member = fleet_add(&w->fleet, &options);
    if (member == NULL) {
        fail_msg("%s: %s", coord_err_name(w->fleet.error.code), w->fleet.error.text);
    }
    return member;
}

struct fleet_member *redis_stand(struct redis_world *w, const char *identity, const char *uri)
{
    struct fleet_member *member = redis_join(w, identity, uri);
    coord_lease_stand(member->lease, fleet_now());
    return member;
}

void redis_read_field(const struct redis_world *w, const char *field, char *out, size_t bytes)
{
    redisReply *reply =
        redis_server_command(&w->server, "HGET coord:{%s}:fence %s", w->name, field);
    snprintf(out, bytes, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
    freeReplyObject(reply);
}

void redis_clear(struct redis_world *w)
{
    struct fleet_member *keeper = redis_join(w, "keeper", w->server.uri);
    const struct coord_request query = {.verb = COORD_VERB_INIT};
    assert_int_equal(fleet_query(&w->fleet, keeper, &query), COORD_DONE);
    fleet_drop(keeper);
}

struct fleet_member *redis_lead(struct redis_world *w, const char *uri)
{
    redis_clear(w);
    struct fleet_member *anna = redis_stand(w, "anna", uri);
    fleet_until(&w->fleet, fleet_leads, anna);
    return anna;
}

/* ---------------------------------------------------------------- conditions */

bool redis_takes_over(void *ctx)
{
    return fleet_reason(ctx) == COORD_REASON_TAKING_OVER;
}

bool redis_is_held(void *ctx)
{
    return fleet_reason(ctx) == COORD_REASON_HELD;
}

bool redis_is_refused(void *ctx)
{
    const struct fleet_member *member = ctx;
    return coord_err_class(member->lease->error.code) == COORD_CLASS_REFUSED;
}

bool redis_has_failed(void *ctx)
{
    const struct fleet_member *member = ctx;
    return member->lease->error.code != COORD_OK;
}

bool redis_is_starting(void *ctx)
{
    const struct fleet_member *member = ctx;
    return member->lease->error.code == COORD_E_SERVER_STARTING;
}

bool redis_either_leads(void *ctx)
{
    struct redis_world *w = ctx;
    for (size_t i = 0; i < w->fleet.count; i++) {
        if (w->fleet.members[i].elector != NULL && fleet_leads(&w->fleet.members[i])) {
            return true;
        }
    }
    return false;
}

bool redis_neither_leads(void *ctx)
{
    return !redis_either_leads(ctx);
}
