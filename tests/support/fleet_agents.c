/* SPDX-License-Identifier: MIT
 * tests/support/fleet_agents.c - see fleet_agents.h.
 */
#include "tests/support/fleet_agents.h"

#include "tests/support/support.h"

#include <poll.h>

enum {
    TURN = 20 /* ms */
};

/* ---------------------------------------------------------------- begin and end */

static void hear(void *ctx, struct coord_member *member, const struct coord_agent_event *event)
{
    struct fleet_agent *agent = ctx;
    (void)member;
    fleet_news_hear(&agent->news, event);
}

static void open_agent(struct fleet_agents *all, struct fleet_agent *agent,
                       enum coord_agent_role role)
{
    struct coord_member_config config = COORD_MEMBER_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    agent->all = all;
    if (coord_bus_open(all->runtime, all->store->buses, all->store->uri, NULL, &agent->bus,
                       &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
    config.role = role;
    config.id = agent->id;
    config.election = agent->election;
    config.bus = agent->bus;
    config.timeout = FLEET_T;
    config.fn = hear;
    config.ctx = agent;
    if (coord_member_open(all->runtime, &config, &agent->member, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
}

/* The stranger listens, too, to have a heartbeat that it can say again. */
static void copy_beat(void *ctx, struct coord_bus *bus, const struct coord_broker_message *message)
{
    struct fleet_agents *all = ctx;
    struct coord_message m;
    (void)bus;
    if (all->copied_of == NULL ||
        coord_message_decode(COORD_MESSAGE_HEARTBEAT, message->bytes, message->count, &m) !=
            COORD_FAULT_NONE ||
        !coord_view_is(&m.instance_id, all->copied_of, strlen(all->copied_of))) {
        return;
    }
    memcpy(all->beat, message->bytes, message->count);
    all->beat_bytes = message->count;
}

static void open_stranger(struct fleet_agents *all)
{
    struct coord_bus_config config = COORD_BUS_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    char topic[COORD_TOPIC_MAX];
    config.on_message = copy_beat;
    config.ctx = all;
    assert_int_equal(coord_topic(NULL, COORD_MESSAGE_HEARTBEAT, topic), COORD_OK);
    if (coord_bus_open(all->runtime, all->store->buses, all->store->uri, &config, &all->stranger,
                       &error) != COORD_OK ||
        coord_bus_subscribe(all->stranger, topic, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
}

void fleet_agents_open(struct fleet_agents *all, const struct fleet_store *store)
{
    all->store = store;
    assert_int_equal(coord_runtime_new(NULL, &all->runtime, NULL), COORD_OK);
    for (unsigned i = 0; i < FLEET_AGENTS; i++) {
        struct fleet_agent *agent = &all->agent[i];
        const char *name = agent->id;
        snprintf(agent->id, sizeof agent->id, "agent-%03u", i);
        if (i == 0) {
            agent->election = fleet_stand(all->runtime, store, agent->id);
            assert_non_null(agent->election);
        }
        open_agent(all, agent, COORD_AGENT_MEMBER);
        fleet_agents_serve(agent, &name, 1);
    }
    open_stranger(all);
}

void fleet_agents_join_late(struct fleet_agents *all)
{
    snprintf(all->late.id, sizeof all->late.id, "late");
    open_agent(all, &all->late, COORD_AGENT_OBSERVER);
}

static void close_agent(struct fleet_agent *agent)
{
    coord_member_close(agent->member);
    coord_bus_close(agent->bus);
    coord_election_close(agent->election);
}

void fleet_agents_close(struct fleet_agents *all)
{
    if (all->runtime == NULL) {
        return;
    }
    for (unsigned i = 0; i < FLEET_AGENTS; i++) {
        close_agent(&all->agent[i]);
    }
    close_agent(&all->late);
    coord_bus_close(all->stranger);
    coord_runtime_free(all->runtime);
    all->runtime = NULL;
}

/* ---------------------------------------------------------------- driving */

void fleet_agents_until(struct fleet_agents *all, const char *what,
                        fleet_agents_condition condition, void *ctx)
{
    const coord_ms give_up = coord_clock_now() + FLEET_GUARD_MS;
    struct pollfd wait = {.fd = coord_runtime_fd(all->runtime), .events = POLLIN};
    for (;;) {
        coord_runtime_process(all->runtime);
        fleet_pace_turn(&all->pace);
        if (condition(all, ctx)) {
            return;
        }
        if (coord_clock_now() >= give_up) {
            fail_msg("it did not come: %s", what);
        }
        assert_true(poll(&wait, 1, TURN) >= 0);
    }
}

void fleet_agents_publish(struct fleet_agents *all, enum coord_message_type type, const void *bytes,
                          size_t count)
{
    struct coord_error error = {.code = COORD_OK};
    char topic[COORD_TOPIC_MAX];
    assert_int_equal(coord_topic(NULL, type, topic), COORD_OK);
    if (coord_bus_publish(all->stranger, topic, bytes, count, &error) != COORD_OK) {
        fail_msg("%s", error.text);
    }
}

struct coord_member_view fleet_agents_view(struct fleet_agent *agent)
{
    struct coord_member_view view;
    assert_int_equal(coord_member_look(agent->member, &view), COORD_OK);
    return view;
}

void fleet_agents_serve(struct fleet_agent *agent, const char *const *names, size_t count)
{
    assert_int_equal(coord_member_serve(agent->member, names, count, 1, 0.5), COORD_OK);
}

/* ---------------------------------------------------------------- conditions */

static bool all_are(struct fleet_agents *all, bool up)
{
    struct coord_broker_status status;
    bool are = true;
    for (unsigned i = 0; are && i < FLEET_AGENTS; i++) {
        are = fleet_agents_view(&all->agent[i]).bus_up == up;
    }
    assert_int_equal(coord_bus_get_status(all->stranger, &status), COORD_OK);
    return are && status.up == up;
}

bool fleet_all_are_up(struct fleet_agents *all, void *ctx)
{
    (void)ctx;
    return all_are(all, true);
}

bool fleet_all_are_down(struct fleet_agents *all, void *ctx)
{
    (void)ctx;
    return all_are(all, false);
}

bool fleet_all_see(struct fleet_agents *all, void *ctx)
{
    const unsigned *others = ctx;
    bool see = true;
    for (unsigned i = 0; see && i < FLEET_AGENTS; i++) {
        const struct coord_member_view view = fleet_agents_view(&all->agent[i]);
        see = view.judging && view.fleet.healthy == *others;
    }
    return see;
}

bool fleet_somebody_leads(struct fleet_agents *all, void *ctx)
{
    struct coord_observation seen;
    (void)ctx;
    assert_int_equal(coord_election_leader(all->agent[0].election, &seen), COORD_OK);
    return seen.leading;
}

bool fleet_time_is(struct fleet_agents *all, void *ctx)
{
    const coord_ms *when = ctx;
    (void)all;
    return coord_clock_now() >= *when;
}

bool fleet_has_beat(struct fleet_agents *all, void *ctx)
{
    (void)ctx;
    return all->beat_bytes > 0;
}
