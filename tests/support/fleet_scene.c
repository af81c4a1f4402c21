/* SPDX-License-Identifier: MIT
 * tests/support/fleet_scene.c - see fleet_scene.h.
 */
#include "tests/support/fleet_scene.h"

#include "tests/support/fleet_hostile.h"
#include "tests/support/support.h"

#include <signal.h>

enum {
    STOPPED = 2, /* of the doomed; the rest is killed */
    LEAVES = 5,  /* the first who leaves in order */
    LEAVERS = 5
};

/* ---------------------------------------------------------------- begin and end */

/* Everybody is there, and one leads. */
static void begin(struct fleet_scene *scene, const struct fleet_store *store)
{
    unsigned others = FLEET_AGENTS - 1 + FLEET_DOOMED + 1;
    for (unsigned i = 0; i < FLEET_DOOMED; i++) {
        fleet_process_start(&scene->doomed[i], store, fleet_doomed[i]);
    }
    fleet_process_start(&scene->steady, store, "steady");
    fleet_agents_open(&scene->all, store);
    scene->all.copied_of = "steady";
    fleet_agents_until(&scene->all, "everybody sees everybody", fleet_all_see, &others);
    fleet_agents_until(&scene->all, "a leader", fleet_somebody_leads, NULL);
    fleet_agents_until(&scene->all, "a heartbeat to copy", fleet_has_beat, NULL);
}

void fleet_scene_end(struct fleet_scene *scene)
{
    for (unsigned i = 0; i < FLEET_DOOMED; i++) {
        fleet_process_kill(&scene->doomed[i]);
    }
    fleet_process_kill(&scene->steady);
    fleet_agents_close(&scene->all);
}

/* ---------------------------------------------------------------- hostile bytes */

struct expected {
    struct coord_coordinator_counts before[FLEET_AGENTS];
    uint64_t fault[COORD_FAULTS];
    uint64_t refused[COORD_REFUSALS];
};

static void publish(struct fleet_scene *scene, struct expected *expected,
                    const struct fleet_hostile *hostile, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (hostile[i].count > COORD_BROKER_MESSAGE_MAX) {
            continue; /* no bus of ours carries it */
        }
        fleet_agents_publish(&scene->all, hostile[i].type, hostile[i].bytes, hostile[i].count);
        if (hostile[i].fault != COORD_FAULT_NONE) {
            expected->fault[hostile[i].fault]++;
        } else {
            expected->refused[hostile[i].refusal]++;
        }
    }
}

static bool all_have_counted(struct fleet_agents *all, void *ctx)
{
    const struct expected *expected = ctx;
    bool counted = true;
    for (unsigned i = 0; counted && i < FLEET_AGENTS; i++) {
        const struct coord_coordinator_counts now = fleet_agents_view(&all->agent[i]).fleet;
        const struct coord_coordinator_counts *before = &expected->before[i];
        for (unsigned k = 0; k < COORD_FAULTS; k++) {
            counted = counted && now.fault[k] - before->fault[k] >= expected->fault[k];
        }
        for (unsigned k = 0; k < COORD_REFUSALS; k++) {
            counted = counted && now.refused[k] - before->refused[k] >= expected->refused[k];
        }
    }
    return counted;
}

/* Counted by all of them, and nothing else. With `table` also one of a former leader. */
static void hostile(struct fleet_scene *scene, bool table)
{
    static struct expected expected; /* large */
    struct fleet_hostile hostile[FLEET_HOSTILE_MAX];
    struct fleet_agents *all = &scene->all;
    memset(&expected, 0, sizeof expected);
    for (unsigned i = 0; i < FLEET_AGENTS; i++) {
        expected.before[i] = fleet_agents_view(&all->agent[i]).fleet;
    }
    publish(scene, &expected, hostile, fleet_hostile_bytes(hostile));
    publish(scene, &expected, hostile, fleet_hostile_replays(all->beat, all->beat_bytes, hostile));
    if (table) {
        hostile[0] = fleet_hostile_table();
        publish(scene, &expected, hostile, 1);
    }
    fleet_agents_until(all, "hostile bytes are counted", all_have_counted, &expected);
    for (unsigned i = 0; i < FLEET_AGENTS; i++) {
        const struct coord_coordinator_counts now = fleet_agents_view(&all->agent[i]).fleet;
        for (unsigned k = 0; k < COORD_FAULTS; k++) {
            assert_int_equal(now.fault[k] - expected.before[i].fault[k], expected.fault[k]);
        }
        assert_int_equal(now.peers, expected.before[i].peers);
        assert_int_equal(now.orphans, expected.before[i].orphans);
    }
}

/* ---------------------------------------------------------------- the outage */

/* The doomed are stopped or killed, and the server is killed, for longer than T. */
static void outage(struct fleet_scene *scene)
{
    for (unsigned i = 0; i < STOPPED; i++) {
        fleet_process_signal(&scene->doomed[i], SIGSTOP);
    }
    for (unsigned i = STOPPED; i < FLEET_DOOMED; i++) {
        fleet_process_kill(&scene->doomed[i]);
    }
    scene->kill();
    fleet_agents_until(&scene->all, "the outage is seen", fleet_all_are_down, NULL);
    coord_ms over = coord_clock_now() + FLEET_T + FLEET_T / 4;
    fleet_agents_until(&scene->all, "time passes", fleet_time_is, &over);
    for (unsigned i = 0; i < FLEET_AGENTS; i++) { /* nor are the doomed: nobody is judged */
        for (unsigned k = 0; k < FLEET_DOOMED; k++) {
            assert_int_equal(scene->all.agent[i].news.silent[k], 0);
        }
        assert_int_equal(scene->all.agent[i].news.wrongly_silent, 0);
    }
}

/* Those who were heard again by one agent after another: what is true of one stays so. */
struct resumption {
    coord_ms since;
    unsigned next;
};

static bool is_doomed(const char *id)
{
    bool doomed = false;
    for (unsigned i = 0; i < FLEET_DOOMED; i++) {
        doomed = doomed || strcmp(id, fleet_doomed[i]) == 0;
    }
    return doomed;
}

static bool hears_all(struct fleet_agent *agent, coord_ms since)
{
    struct coord_member_peers *peers = NULL;
    bool hears = true;
    assert_int_equal(coord_member_peers(agent->member, &peers), COORD_OK);
    assert_int_equal(peers->count, FLEET_AGENTS - 1 + FLEET_DOOMED + 1);
    for (size_t i = 0; hears && i < peers->count; i++) {
        hears = peers->peer[i].last_heard >= since || is_doomed(peers->peer[i].id);
    }
    coord_member_peers_free(peers);
    return hears;
}

static bool all_hear_all(struct fleet_agents *all, void *ctx)
{
    struct resumption *resumption = ctx;
    while (resumption->next < FLEET_AGENTS &&
           hears_all(&all->agent[resumption->next], resumption->since)) {
        resumption->next++;
    }
    return resumption->next == FLEET_AGENTS;
}

/* Everybody is heard again, by everybody. */
static void come_back(struct fleet_scene *scene)
{
    struct resumption resumption = {.since = coord_clock_now()};
    scene->again();
    scene->all.pace.last = 0; /* nobody is judged while the server is away */
    fleet_agents_until(&scene->all, "the bus is back", fleet_all_are_up, NULL);
    fleet_agents_until(&scene->all, "heartbeats resume", all_hear_all, &resumption);
}

/* ---------------------------------------------------------------- reports */

static bool all_are_told(struct fleet_agents *all, bool resolved)
{
    bool told = true;
    for (unsigned i = 0; i < FLEET_AGENTS; i++) {
        const struct fleet_news *news = &all->agent[i].news;
        for (unsigned k = 0; told && k < FLEET_DOOMED; k++) {
            told = (resolved ? news->resolved[k] : news->opened[k]) > 0;
        }
    }
    return told;
}

static bool all_are_opened(struct fleet_agents *all, void *ctx)
{
    (void)ctx;
    return all_are_told(all, false);
}

static bool all_are_resolved(struct fleet_agents *all, void *ctx)
{
    (void)ctx;
    return all_are_told(all, true);
}

/* The reports of the doomed that stand open with one of them. */
static unsigned open_with(struct fleet_agent *agent)
{
    struct coord_member_orphans *orphans = NULL;
    unsigned count = 0;
    assert_int_equal(coord_member_orphans(agent->member, &orphans), COORD_OK);
    for (size_t i = 0; i < orphans->count; i++) {
        const struct coord_orphan *orphan = &orphans->orphan[i];
        if (is_doomed(orphan->subscription)) {
            assert_string_equal(orphan->instance_id, orphan->subscription);
            assert_int_equal(orphan->cause, COORD_CAUSE_SILENT);
            assert_int_equal(orphan->certainty, COORD_SUSPECTED);
            assert_true(orphan->fence > 0);
            count++;
        }
    }
    coord_member_orphans_free(orphans);
    return count;
}

static bool late_knows(struct fleet_agents *all, void *ctx)
{
    const unsigned *open = ctx;
    return open_with(&all->late) == *open;
}

/* The doomed are reported, each once, and stand on the leader's table. */
static void reports(struct fleet_scene *scene)
{
    unsigned open = FLEET_DOOMED;
    fleet_agents_until(&scene->all, "the doomed are reported", all_are_opened, NULL);
    fleet_agents_join_late(&scene->all); /* it knows of them from the leader's table only */
    fleet_agents_until(&scene->all, "they are on the table", late_knows, &open);
    for (unsigned i = 0; i < FLEET_AGENTS; i++) {
        for (unsigned k = 0; k < FLEET_DOOMED; k++) {
            assert_int_equal(scene->all.agent[i].news.silent[k], 1);
            assert_int_equal(scene->all.agent[i].news.opened[k], 1);
            assert_int_equal(scene->all.agent[i].news.resolved[k], 0);
        }
        assert_int_equal(open_with(&scene->all.agent[i]), FLEET_DOOMED);
    }
}

/* The stopped go on, the work of the killed is taken: every report is resolved. */
static void resolution(struct fleet_scene *scene)
{
    struct fleet_agent *taker = &scene->all.agent[FLEET_AGENTS / 2];
    const char *names[FLEET_DOOMED] = {taker->id};
    unsigned none = 0;
    unsigned others = FLEET_AGENTS - 1 + STOPPED + 1;
    for (unsigned i = STOPPED; i < FLEET_DOOMED; i++) {
        names[1 + i - STOPPED] = fleet_doomed[i];
    }
    fleet_agents_serve(taker, names, 1 + FLEET_DOOMED - STOPPED);
    for (unsigned i = 0; i < STOPPED; i++) {
        fleet_process_signal(&scene->doomed[i], SIGCONT);
    }
    fleet_agents_until(&scene->all, "every report is resolved", all_are_resolved, NULL);
    fleet_agents_until(&scene->all, "the late one hears it", late_knows, &none);
    fleet_agents_until(&scene->all, "who lives is well", fleet_all_see, &others);
    for (unsigned i = 0; i < FLEET_AGENTS; i++) {
        for (unsigned k = 0; k < FLEET_DOOMED; k++) {
            assert_int_equal(scene->all.agent[i].news.opened[k], 1);
            assert_int_equal(scene->all.agent[i].news.resolved[k], 1);
        }
        assert_int_equal(open_with(&scene->all.agent[i]), 0);
    }
}

/* ---------------------------------------------------------------- departure */

static bool all_have_left(struct fleet_agents *all, void *ctx)
{
    bool left = true;
    (void)ctx;
    for (unsigned i = LEAVES; left && i < LEAVES + LEAVERS; i++) {
        left = fleet_agents_view(&all->agent[i]).phase == COORD_AGENT_LEFT;
    }
    return left;
}

static bool all_are_offered(struct fleet_agents *all, void *ctx)
{
    struct coord_member_orphans *orphans = NULL;
    unsigned finished = 0;
    (void)ctx;
    assert_int_equal(coord_member_orphans(all->late.member, &orphans), COORD_OK);
    for (size_t i = 0; i < orphans->count; i++) {
        finished += orphans->orphan[i].cause == COORD_CAUSE_FINISHED ? 1 : 0;
    }
    coord_member_orphans_free(orphans);
    return finished == LEAVERS;
}

/* Some leave in order: their work is reported as finished. */
static void departure(struct fleet_scene *scene)
{
    struct coord_agent_event left;
    for (unsigned i = LEAVES; i < LEAVES + LEAVERS; i++) {
        assert_int_equal(coord_member_leave(scene->all.agent[i].member, COORD_INTENT_MAINTENANCE,
                                            FLEET_GUARD_MS),
                         COORD_OK);
    }
    fleet_agents_until(&scene->all, "they have left", all_have_left, NULL);
    fleet_agents_until(&scene->all, "their work is offered", all_are_offered, NULL);
    for (unsigned i = LEAVES; i < LEAVES + LEAVERS; i++) {
        assert_int_equal(coord_member_wait(scene->all.agent[i].member, FLEET_GUARD_MS, &left),
                         COORD_OK);
        assert_true(left.drained);
        assert_true(left.heard);
    }
}

/* ---------------------------------------------------------------- the verdict */

/* Nobody who lived was ever called dead, by anybody. */
static void verdict(struct fleet_scene *scene)
{
    const struct fleet_report steady = fleet_process_end(&scene->steady);
    unsigned by_halted = 0;
    unsigned by_agents = 0;
    unsigned duplicates = steady.news.duplicates;
    for (unsigned i = 0; i < STOPPED; i++) {
        const struct fleet_report halted = fleet_process_end(&scene->doomed[i]);
        by_halted += halted.news.wrongly_silent;
        duplicates += halted.news.duplicates;
    }
    for (unsigned i = 0; i < FLEET_AGENTS; i++) {
        by_agents += scene->all.agent[i].news.wrongly_silent;
        duplicates += scene->all.agent[i].news.duplicates;
    }
    assert_int_equal(duplicates, 0);
    const unsigned by_steady = steady.news.wrongly_silent;
    if (by_agents + by_halted + by_steady > 0) {
        print_message("deaths of those who live: %u told by agents, %u by who was stopped, %u by "
                      "the steady one; the test was kept from running for %llu and %llu ms\n",
                      by_agents, by_halted, by_steady, (unsigned long long)scene->all.pace.longest,
                      (unsigned long long)steady.pace.longest);
        assert_false(fleet_pace_is_good(&scene->all.pace) && fleet_pace_is_good(&steady.pace));
    }
}

void fleet_scene_play(struct fleet_scene *scene, const struct fleet_store *store)
{
    begin(scene, store);
    hostile(scene, false);
    outage(scene);
    come_back(scene);
    reports(scene);
    hostile(scene, true);
    resolution(scene);
    departure(scene);
    verdict(scene);
}
