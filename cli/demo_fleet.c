/* SPDX-License-Identifier: MIT
 * cli/demo_fleet.c - the second part of a demo: a fleet over a bus of this host, one member that is
 * preempted, one that crashes, and what becomes of their work.
 *
 * This process listens as `coordctl peers` and `orphans` do, and orders as `announce` does.
 */
#include "cli/demo.h"
#include "cli/fleet.h"
#include "cli/say.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    PATIENCE = 15000,
    LOOK = 50,
    DEADLINE = 10000, /* of the notice */
    SPARE = CLI_DEMO_WORKERS - 1,
    TIME_TEXT = 32
};

struct story {
    struct cli_demo *demo;
    struct cli_fleet fleet;
    int work;        /* what is waited for */
    bool table;      /* the leader has told one */
    unsigned opened; /* a bit for each work */
    unsigned resolved;
};

/* ---------------------------------------------------------------- what is heard */

static int work_of(const struct coord_orphan *orphan)
{
    for (int i = 0; i < CLI_DEMO_WORKS; i++) {
        if (strlen(cli_demo_works[i]) == orphan->subscription_bytes &&
            memcmp(cli_demo_works[i], orphan->subscription, orphan->subscription_bytes) == 0) {
            return i;
        }
    }
    return 0; /* nobody else is on this bus */
}

static void print_orphan(struct story *story, const struct coord_event *event)
{
    const struct coord_orphan *orphan = &event->orphan;
    const int work = work_of(orphan);
    char time[TIME_TEXT];
    if (event->kind == COORD_EVENT_ORPHAN_RESOLVED) {
        story->resolved |= 1u << work;
        cli_demo_print(story->demo, CLI_DEMO_GREEN, "resolved: somebody works on %s again",
                       cli_demo_works[work]);
        return;
    }
    const coord_ms left = coord_ms_sub(orphan->safe_after, coord_clock_now());
    story->opened |= 1u << work;
    cli_demo_print(story->demo, CLI_DEMO_PLAIN, "orphan %s: %s, its owner is %s, safe to take %s%s",
                   event->kind == COORD_EVENT_ORPHAN_OPENED ? "opened" : "updated",
                   cli_demo_works[work], coord_cause_name(orphan->cause), left > 0 ? "in " : "now",
                   left > 0 ? cli_say_time(left, time) : "");
}

static void print_event(struct story *story, const struct coord_event *event)
{
    char id[COORD_ESCAPED_MAX] = "";
    if (event->peer.id != NULL) {
        cli_fleet_text(event->peer.id, event->peer.id_bytes, id);
    }
    switch ((int)event->kind) {
    case COORD_EVENT_PEER_APPEARED:
        cli_demo_print(story->demo, CLI_DEMO_PLAIN, "a heartbeat of %s", id);
        break;
    case COORD_EVENT_PEER_LEAVING:
        cli_demo_print(story->demo, CLI_DEMO_PLAIN, "%s leaves, %s", id,
                       coord_intent_name(event->peer.intent));
        break;
    case COORD_EVENT_PEER_FINISHED:
        cli_demo_print(story->demo, CLI_DEMO_PLAIN, "%s says that its work has ended", id);
        break;
    case COORD_EVENT_PEER_SILENT:
        cli_demo_print(story->demo, CLI_DEMO_YELLOW, "%s is silent", id);
        break;
    case COORD_EVENT_ORPHAN_OPENED:
    case COORD_EVENT_ORPHAN_UPDATED:
    case COORD_EVENT_ORPHAN_RESOLVED:
        print_orphan(story, event);
        break;
    default:
        break;
    }
}

/* Listen until it has come about. @return false: it did not, as said. */
static bool await(struct story *story, bool (*is_so)(const struct story *story), const char *what)
{
    const coord_ms until = coord_clock_now() + PATIENCE;
    struct coord_event event;
    enum cli_fleet_news news = CLI_FLEET_NOTHING;
    /* What has happened already is told first. */
    while (news == CLI_FLEET_EVENT || !is_so(story)) {
        const int failed = atomic_load(&story->demo->page->failed);
        const coord_ms now = coord_clock_now();
        if (cli_demo_interrupted()) {
            return false;
        }
        if (failed != 0 || now >= until) {
            cli_demo_print(story->demo, CLI_DEMO_RED, "waited in vain: %s%s%s", what,
                           failed != 0 ? ": " : "",
                           failed != 0 ? coord_err_name((enum coord_err)failed) : "");
            return false;
        }
        news = cli_fleet_next(&story->fleet, coord_ms_min(until, now + LOOK), &event);
        story->table = story->table || news == CLI_FLEET_TABLE;
        if (news == CLI_FLEET_EVENT) {
            print_event(story, &event);
        } else if (news == CLI_FLEET_FAILED) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- who is there */

static bool is_healthy(const struct story *story, int worker, bool *leads)
{
    struct coord_peer peer;
    const char *id = cli_demo_names[worker];
    const bool known = coord_coordinator_find_peer(story->fleet.coordinator, id, strlen(id), &peer);
    *leads = known && peer.is_leader;
    return known && peer.status == COORD_PEER_HEALTHY;
}

static bool all_are_heard(const struct story *story)
{
    bool leads = false;
    bool all = story->table;
    for (int i = 0; i < SPARE; i++) {
        all = all && is_healthy(story, i, &leads);
    }
    return all;
}

/* One of the first three that works and does not lead. @return -1: none. */
static int follower(const struct story *story)
{
    for (int i = 0; i < SPARE; i++) {
        bool leads = false;
        if (is_healthy(story, i, &leads) && !leads) {
            return i;
        }
    }
    return -1;
}

static bool is_safe(const struct story *story)
{
    struct coord_orphan orphan;
    uint32_t at = 0;
    while (coord_coordinator_next_orphan(story->fleet.coordinator, &at, &orphan)) {
        if (work_of(&orphan) == story->work && orphan.fence != 0 &&
            orphan.safe_after <= coord_clock_now()) {
            return true;
        }
    }
    return false;
}

static bool is_resolved(const struct story *story)
{
    return (story->resolved >> story->work & 1u) != 0;
}

/* ---------------------------------------------------------------- the story */

/* Once nobody can be at it any more. */
static bool hand_to_spare(struct story *story)
{
    if (!await(story, is_safe, "its work is not reported as safe to take")) {
        return false;
    }
    cli_demo_print(story->demo, CLI_DEMO_YELLOW, "%s is safe to take: %s is given it",
                   cli_demo_works[story->work], cli_demo_names[SPARE]);
    atomic_fetch_or(&story->demo->page->members[SPARE].works, 1u << story->work);
    atomic_store(&story->demo->page->members[SPARE].begun, 1);
    return await(story, is_resolved, "its report is not resolved");
}

static bool tell_preemption(struct story *story)
{
    const int worker = follower(story);
    const int64_t wall = (int64_t)coord_clock_wall_us();
    struct coord_message notice = {.type = COORD_MESSAGE_SHUTDOWN,
                                   .intent = COORD_INTENT_PREEMPTION,
                                   .at_us = wall,
                                   .sent_at_us = wall,
                                   .has_sent_at = true,
                                   .completion_us = wall + DEADLINE * INT64_C(1000)};
    unsigned char room[8];
    if (worker < 0 || coord_texts(NULL, 0, room, sizeof room, &notice.subscriptions) != COORD_OK) {
        cli_demo_print(story->demo, CLI_DEMO_RED, "nobody is left to be preempted");
        return false;
    }
    notice.instance_id = coord_text(cli_demo_names[worker], strlen(cli_demo_names[worker]));
    story->work = worker;
    cli_demo_print(story->demo, CLI_DEMO_YELLOW, "a preemption notice: %s has %d s to end %s",
                   cli_demo_names[worker], DEADLINE / 1000, cli_demo_works[worker]);
    return cli_fleet_send(&story->fleet, &notice) == 0 && hand_to_spare(story);
}

static bool tell_crash(struct story *story)
{
    const int worker = follower(story);
    if (worker < 0) {
        cli_demo_print(story->demo, CLI_DEMO_RED, "nobody is left to crash");
        return false;
    }
    story->work = worker;
    cli_demo_end(story->demo, worker);
    cli_demo_print(story->demo, CLI_DEMO_YELLOW, "kill -9 %s: nobody says a word about %s",
                   cli_demo_names[worker], cli_demo_works[worker]);
    return hand_to_spare(story);
}

static bool tell_story(struct story *story)
{
    if (!await(story, all_are_heard, "the members are not all heard, or none leads") ||
        !tell_preemption(story) || !tell_crash(story)) {
        return false;
    }
    const bool held = story->opened == story->resolved;
    cli_demo_print(story->demo, held ? CLI_DEMO_GREEN : CLI_DEMO_RED,
                   "orphans: opened, taken when that was safe, and resolved: %s",
                   held ? "held" : "BROKEN");
    return held;
}

bool cli_demo_tell_fleet(struct cli_demo *demo)
{
    struct cli_args args = {.verb = &cli_verb_peers};
    struct story story = {.demo = demo};
    char timeout[TIME_TEXT];
    snprintf(timeout, sizeof timeout, "%dms", CLI_DEMO_TIMEOUT);
    args.value[CLI_BUS] = demo->bus;
    args.value[CLI_TIMEOUT] = timeout;
    cli_demo_print(demo, CLI_DEMO_PLAIN,
                   "now a fleet: %d members hear each other over a bus of this host", SPARE);
    /* All of them first: nothing is open here yet. */
    for (int i = 0; i < CLI_DEMO_WORKERS; i++) {
        if (!cli_demo_start(demo, i, true)) {
            cli_say_no_room("a member", errno);
            return false;
        }
    }
    if (cli_fleet_open(&args, NULL, true, &story.fleet) != 0) {
        return false;
    }
    bool told = cli_fleet_await(&story.fleet) == 0;
    for (int i = 0; i < SPARE; i++) {
        atomic_store(&demo->page->members[i].works, 1u << i);
        atomic_store(&demo->page->members[i].begun, 1);
    }
    told = told && tell_story(&story);
    cli_fleet_close(&story.fleet);
    return told;
}
