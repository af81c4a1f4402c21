/* SPDX-License-Identifier: MIT
 * tests/sim/test_agents.c - whole agents in bad weather: cuts, losses, delays, pauses, kills,
 * restarts under one id, notices and their withdrawal; and what has to hold all the same.
 *
 * AGENT_SEEDS=N runs N seeds, AGENT_SEED=S that one alone, with its log.
 */
#include "tests/unit/agents.h"

enum {
    MEMBERS = 5,
    SEEDS = 500,
    STORM = 240000, /* ms of faults */
    CALM = 6 * AGENT_T + 2 * AGENT_TTL
};

static const char *const ids[] = {"a", "b", "c", "d", "e"};
static const char *const works[] = {"orders", "ledger", "mail", "audit", "orders"};

struct storm {
    struct world w;
    coord_ms back_at[MEMBERS]; /* a killed one starts again, a stopped one goes on */
    uint64_t seed;
};

/* ---- what holds at every instant ---- */

static void check_now(struct storm *s)
{
    unsigned leaders = 0;
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct agent_node *node = &s->w.node[i];
        if (node->agent == NULL) {
            continue;
        }
        const bool leads = node_leads(node);
        const enum coord_agent_phase phase = coord_agent_phase(node->agent);
        leaders += leads ? 1U : 0U;
        if (leads && phase == COORD_AGENT_DRAINING) {
            fail_msg("seed %llu: %s leads while it drains", (unsigned long long)s->seed, node->id);
        }
        const bool leaving = phase != COORD_AGENT_STAYING && phase != COORD_AGENT_LEFT;
        if (leaving && !node->stopped && s->w.now > node->last.deadline) {
            fail_msg("seed %llu: %s is past its deadline and does not know it",
                     (unsigned long long)s->seed, node->id);
        }
    }
    if (leaders > 1) {
        fail_msg("seed %llu: two lead", (unsigned long long)s->seed);
    }
}

static void run_on(struct storm *s, coord_ms length)
{
    const coord_ms end = s->w.now + length;
    while (s->w.now < end) {
        world_run(&s->w, coord_ms_min(end - s->w.now, 1 + world_random(&s->w, 400)));
        check_now(s);
    }
}

/* ---- faults ---- */

static bool still_there(const struct agent_node *node)
{
    return node->agent != NULL && !node->stopped;
}

static void notice(struct storm *s, struct agent_node *node)
{
    static const coord_ms lengths[] = {0, 100, 5000, 30000, COORD_NEVER};
    node->drains_for = lengths[world_random(&s->w, 5)];
    node_leave(node, (enum coord_intent)world_random(&s->w, 4), lengths[world_random(&s->w, 4)]);
}

static void strike(struct storm *s)
{
    struct world *w = &s->w;
    const unsigned i = (unsigned)world_random(w, MEMBERS);
    struct agent_node *node = &w->node[i];
    switch (world_random(w, 9)) {
    case 0:
        node->bus_cut = !node->bus_cut;
        break;
    case 1:
        node->store_cut = !node->store_cut;
        break;
    case 2:
        for (unsigned j = 0; j < w->count; j++) {
            w->node[j].bus_cut = node->bus_cut; /* the bus is down, or up, for all */
        }
        break;
    case 3:
    case 4:
        if (still_there(node)) {
            node_kill(node);
            s->back_at[i] = w->now + 1000 + world_random(w, 60000);
        }
        break;
    case 5:
        if (still_there(node)) {
            node->stopped = true;
            s->back_at[i] = w->now + world_random(w, 30000);
        }
        break;
    case 6:
        if (still_there(node)) {
            notice(s, node);
        }
        break;
    case 7:
        if (still_there(node)) {
            COORD_IGNORE(coord_agent_stay(node->agent, w->now) != COORD_OK, "too late is fine");
        }
        break;
    default:
        w->loss = (unsigned)world_random(w, 4) * 100;
        w->delay = world_random(w, 2) * 2000;
        break;
    }
}

static void come_back(struct storm *s, bool all)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct agent_node *node = &s->w.node[i];
        if (node->agent == NULL && (all || s->w.now >= s->back_at[i])) {
            node_start(node, true, false);
        } else if (node->stopped && (all || s->w.now >= s->back_at[i])) {
            node->stopped = false;
        }
    }
}

/* Whoever has left ends its process, and is started anew some time later. */
static void end_the_left(struct storm *s)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct agent_node *node = &s->w.node[i];
        if (still_there(node) && coord_agent_phase(node->agent) == COORD_AGENT_LEFT) {
            node_kill(node);
            s->back_at[i] = s->w.now + world_random(&s->w, 40000);
        }
    }
}

static void clear_up(struct storm *s)
{
    s->w.loss = 0;
    s->w.delay = 0;
    for (unsigned i = 0; i < s->w.count; i++) {
        struct agent_node *node = &s->w.node[i];
        node->bus_cut = false;
        node->store_cut = false;
        node->stopped = false;
        if (i < MEMBERS && node->agent != NULL && coord_agent_stay(node->agent, s->w.now) != 0) {
            node_kill(node);
        }
    }
}

/* ---- what holds when the faults have ceased ---- */

static bool is_served(const struct storm *s, const char *work)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (s->w.node[i].agent != NULL && strcmp(s->w.node[i].serves, work) == 0) {
            return true;
        }
    }
    return false;
}

static void check_calm(struct storm *s)
{
    const struct agent_node *leader = NULL;
    unsigned alive = 0;
    for (unsigned i = 0; i < MEMBERS; i++) {
        alive += s->w.node[i].agent != NULL ? 1U : 0U;
        if (s->w.node[i].agent != NULL && node_leads(&s->w.node[i])) {
            leader = &s->w.node[i];
        }
    }
    if (alive == 0) {
        return;
    }
    if (leader == NULL) {
        fail_msg("seed %llu: nobody leads", (unsigned long long)s->seed);
        return;
    }
    for (unsigned i = 0; i < MEMBERS; i++) {
        const struct agent_node *node = &s->w.node[i];
        if (node->agent != NULL && node_sees(leader, node->id) != COORD_PEER_HEALTHY) {
            fail_msg("seed %llu: %s is well, and %s does not see it", (unsigned long long)s->seed,
                     node->id, leader->id);
        }
    }
    /* The observer has to know of the leader's table, whatever it missed before. */
    for (unsigned who = 0; who < 2; who++) {
        const struct agent_node *node = who == 0 ? leader : &s->w.node[MEMBERS];
        struct coord_orphan orphan;
        uint32_t at = 0;
        while (coord_coordinator_next_orphan(coord_agent_coordinator(node->agent), &at, &orphan)) {
            if (is_served(s, orphan.subscription)) {
                fail_msg("seed %llu: %s is served, and still open for %s",
                         (unsigned long long)s->seed, orphan.subscription, node->id);
            }
        }
    }
}

static void run_seed(uint64_t seed, bool loud)
{
    struct storm s;
    memset(&s, 0, sizeof s);
    s.seed = seed;
    s.w.random = seed * 0x9e3779b97f4a7c15u + 1;
    s.w.quiet = !loud;
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct agent_node *node = world_add(&s.w, ids[i], works[i]);
        node->explicit_ack = world_random(&s.w, 2) == 0;
        node->acks_for = world_random(&s.w, 2) * 4000;
        if (i < MEMBERS - 1) {
            node_start(node, true, false);
        }
    }
    node_start(world_add(&s.w, "o", NULL), false, true);
    run_on(&s, 20000);
    for (coord_ms end = s.w.now + STORM; s.w.now < end;) {
        strike(&s);
        run_on(&s, 100 + world_random(&s.w, 8000));
        end_the_left(&s);
        come_back(&s, false);
    }
    clear_up(&s);
    come_back(&s, seed % 2 == 0); /* every other time those who are gone stay away */
    run_on(&s, CALM);
    if (loud) {
        fputs(s.w.log, stdout);
    }
    check_calm(&s);
    world_end(&s.w);
}

static void test_agents__hold_what_they_promise_in_bad_weather(void **state)
{
    const char *one = getenv("AGENT_SEED");
    const char *many = getenv("AGENT_SEEDS");
    (void)state;
    if (one != NULL) {
        run_seed(strtoull(one, NULL, 10), true);
        return;
    }
    const uint64_t count = many != NULL ? strtoull(many, NULL, 10) : SEEDS;
    for (uint64_t seed = 1; seed <= count; seed++) {
        run_seed(seed, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents__hold_what_they_promise_in_bad_weather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
