/* SPDX-License-Identifier: MIT
 * tests/sim/agents/check_reports.c - what has to hold of reports: each time one is told, after
 * every step of a leader, and when the faults have ceased.
 */
#include <string.h>

#include "tests/sim/agents/world.h"

/* The process and the work that a report is about. */
static struct fleet_process *owner_of(struct fleet_world *w, const struct coord_orphan *orphan,
                                      unsigned *work)
{
    const unsigned host = (unsigned)(orphan->instance_id[0] - 'a');
    const unsigned number =
        orphan->has_incarnation ? orphan->incarnation[0] - 1U : w->host[host].process;
    *work = 0;
    while (orphan->subscription_bytes != strlen(fleet_work_name(*work)) ||
           memcmp(orphan->subscription, fleet_work_name(*work), orphan->subscription_bytes) != 0) {
        (*work)++;
        COORD_ASSERT(*work < FLEET_WORKS);
    }
    COORD_ASSERT(number < w->processes && fleet_called(w, w->process[number].host) == host);
    return &w->process[number];
}

static bool is_newer(const struct fleet_told *told, const struct coord_orphan *orphan)
{
    return orphan->fence > told->fence || (orphan->fence == told->fence && orphan->seq > told->seq);
}

static bool is_author(const struct fleet_process *process, uint64_t fence)
{
    return fleet_leads(process) &&
           coord_lease_claim(coord_elector_lease(process->elector), fleet_local(process)).fence ==
               fence;
}

static void note(struct fleet_told *told, const struct fleet_process *process, unsigned owner,
                 const struct coord_event *event)
{
    const bool resolved = event->kind == COORD_EVENT_ORPHAN_RESOLVED;
    const struct fleet_ear *ear = &process->world->ear[process->number][owner];
    told->fence = event->orphan.fence;
    told->seq = event->orphan.seq;
    told->safe_after = fleet_true(process, event->orphan.safe_after);
    if (resolved) {
        told->by_owner = fleet_is_well(ear); /* then its silence is news */
        told->resolved_at = process->world->now;
    } else if (event->kind == COORD_EVENT_ORPHAN_OPENED) {
        told->opened_at = process->world->now;
    }
    told->open = !resolved;
}

static coord_ms heard_by_anybody(const struct fleet_world *w, unsigned number)
{
    coord_ms at = 0;
    for (unsigned i = 0; i < w->processes; i++) {
        at = coord_ms_max(at, w->ear[i][number].heard_at);
    }
    return at;
}

/* Suspected work is safe two T after the last beat at the earliest, draining work one T after its
 * deadline. A new deadline that is hardly later than the one before need not be told. */
static void check_reserve(const struct fleet_process *process, const struct fleet_process *owner,
                          unsigned work, const struct coord_event *event)
{
    struct fleet_world *w = process->world;
    const struct fleet_ear *ear = &w->ear[process->number][owner->number];
    const coord_ms safe_after = fleet_true(process, event->orphan.safe_after);
    const bool silent = event->orphan.cause == COORD_CAUSE_SILENT && ear->silent;
    const bool drains =
        event->orphan.cause == COORD_CAUSE_DRAINING && ear->leaving && w->now < ear->deadline;
    if (event->kind != COORD_EVENT_ORPHAN_RESOLVED && ear->known && !ear->finished &&
        ((silent && safe_after < ear->heard_at + 2 * w->timeout) ||
         (drains && safe_after + w->timeout / 2 < coord_ms_add(ear->deadline, w->timeout)))) {
        fleet_break(w, FLEET_SAFE, "%s of %s#%u is safe too early", fleet_work_name(work),
                    fleet_host_name(owner->host), owner->number);
    }
}

/* A peer of the seed library that has left, or come back, may be taken for either. */
static bool has_come_back(const struct fleet_world *w, unsigned work)
{
    for (unsigned i = 0; i < w->processes; i++) {
        if (w->process[i].kind == FLEET_SEED && w->process[i].noticed &&
            (w->process[i].serves >> work & 1) != 0) {
            return true;
        }
    }
    return false;
}

static void check_author(struct fleet_process *process, const struct fleet_process *owner,
                         unsigned work, const struct coord_event *event)
{
    struct fleet_world *w = process->world;
    const struct fleet_told *told = &w->told[process->number][owner->number][work];
    struct fleet_told *author = &w->author[owner->number][work];
    w->counts.reports++;
    if (!is_newer(author, &event->orphan)) {
        fleet_break(w, FLEET_ONCE, "%s of %s#%u: number %u.%u is told again", fleet_work_name(work),
                    fleet_host_name(owner->host), owner->number, (unsigned)event->orphan.fence,
                    (unsigned)event->orphan.seq);
    }
    /* It may be told later than it was seen. */
    const bool was_served = fleet_served(process, work) ||
                            process->served_at[work] > told->opened_at ||
                            (process->served_as_it_led >> work & 1) != 0 || has_come_back(w, work);
    if (event->kind == COORD_EVENT_ORPHAN_RESOLVED && author->resolved_at == 0 && !was_served) {
        fleet_break(w, FLEET_RESOLVED, "%s of %s#%u is resolved, and nobody looks after it",
                    fleet_work_name(work), fleet_host_name(owner->host), owner->number);
    }
    if (event->kind == COORD_EVENT_ORPHAN_OPENED && told->resolved_at != 0 && !told->by_owner &&
        !author->open && heard_by_anybody(w, owner->number) < author->opened_at) {
        fleet_break(w, FLEET_RESOLVED, "%s of %s#%u opens again, and nothing was heard of it",
                    fleet_work_name(work), fleet_host_name(owner->host), owner->number);
    }
    check_reserve(process, owner, work, event);
    note(author, process, owner->number, event);
    if (event->kind == COORD_EVENT_ORPHAN_RESOLVED) {
        w->resolved_at[work] = w->now;
    }
}

/* Peers of the seed library have no incarnation: their host is all that a report knows of them. */
static unsigned known_as(const struct fleet_process *owner, const struct coord_orphan *orphan)
{
    unsigned number = owner->number;
    for (unsigned i = 0; i < number && !orphan->has_incarnation; i++) {
        number = owner->world->process[i].host == owner->host ? i : number;
    }
    return number;
}

/* One id for each work of each process, whoever tells it; and each id for one of them. */
static void check_id(const struct fleet_process *owner, unsigned work,
                     const struct coord_orphan *orphan)
{
    static const unsigned char none[COORD_REPORT_ID_BYTES];
    struct fleet_world *w = owner->world;
    unsigned char *id = w->author[known_as(owner, orphan)][work].report_id;
    const size_t bytes = sizeof none;
    if (memcmp(id, orphan->report_id, bytes) == 0 && memcmp(id, none, bytes) != 0) {
        return;
    }
    bool used = memcmp(id, none, bytes) != 0 || memcmp(orphan->report_id, none, bytes) == 0;
    for (unsigned i = 0; i < w->processes * FLEET_WORKS && !used; i++) {
        const struct fleet_told *other = &w->author[i / FLEET_WORKS][i % FLEET_WORKS];
        used = memcmp(other->report_id, orphan->report_id, bytes) == 0;
    }
    memcpy(id, orphan->report_id, bytes);
    if (used) {
        fleet_break(w, FLEET_ONCE, "%s of %s#%u: its report has an id of another one",
                    fleet_work_name(work), fleet_host_name(owner->host), owner->number);
    }
}

void fleet_check_report(struct fleet_process *process, const struct coord_event *event)
{
    struct fleet_world *w = process->world;
    const struct coord_orphan *orphan = &event->orphan;
    unsigned work = 0;
    const struct fleet_process *owner = owner_of(w, orphan, &work);
    struct fleet_told *told = &w->told[process->number][owner->number][work];
    const struct fleet_told *author = &w->author[owner->number][work];
    const coord_ms safe_after = fleet_true(process, orphan->safe_after);
    fleet_say(w, process, "hears %s %s of %s#%u, %s, %u.%u, safe at %.3f",
              coord_event_name(event->kind), fleet_work_name(work), fleet_host_name(owner->host),
              owner->number, coord_cause_name(orphan->cause), (unsigned)orphan->fence,
              (unsigned)orphan->seq, (double)safe_after / 1000);
    check_id(owner, work, orphan);
    if (is_author(process, orphan->fence)) {
        check_author(process, owner, work, event);
    } else if (event->kind != COORD_EVENT_ORPHAN_RESOLVED && orphan->fence == author->fence &&
               orphan->seq == author->seq && safe_after + 2 < author->safe_after) {
        fleet_break(w, FLEET_SAFE, "%s of %s#%u is safe for %s %u ms before its leader says so",
                    fleet_work_name(work), fleet_host_name(owner->host), owner->number,
                    fleet_host_name(process->host), (unsigned)(author->safe_after - safe_after));
    }
    /* An old table that came late closed it here, and the leader lists it as before. */
    const bool again = event->kind == COORD_EVENT_ORPHAN_OPENED && !told->open &&
                       orphan->fence == told->fence && orphan->seq + 1 >= told->seq;
    if (!is_newer(told, orphan) && !again) {
        fleet_break(w, FLEET_ONCE, "%s of %s#%u: %s hears number %u.%u after %u.%u",
                    fleet_work_name(work), fleet_host_name(owner->host), owner->number,
                    fleet_host_name(process->host), (unsigned)orphan->fence, (unsigned)orphan->seq,
                    (unsigned)told->fence, (unsigned)told->seq);
    }
    note(told, process, owner->number, event);
}

/* Its owner works, and whoever is asked has lately heard that it does. */
static bool is_at_work(const struct fleet_process *process, const struct fleet_process *owner,
                       unsigned work)
{
    const struct fleet_world *w = process->world;
    const struct fleet_ear *ear = &w->ear[process->number][owner->number];
    /* A peer of the seed library that came back is taken for leaving, as it was when it went. */
    const bool came_back = owner->kind == FLEET_SEED && owner->noticed;
    if (!owner->runs || came_back || (owner->holds >> work & 1) == 0 || !ear->known ||
        ear->finished || w->now >= ear->heard_at + w->timeout) {
        return false;
    }
    return !ear->leaving || w->now < ear->deadline;
}

void fleet_check_take(struct fleet_process *process, const struct coord_orphan *orphan)
{
    struct fleet_world *w = process->world;
    unsigned work = 0;
    const struct fleet_process *owner = owner_of(w, orphan, &work);
    if (owner->runs && (owner->holds >> work & 1) != 0 &&
        (!owner->leaving || w->now < owner->deadline)) {
        w->counts.taken_early++;
    }
}

/* When it was last told that somebody looks after a work. */
static coord_ms resolved_for(const struct fleet_process *process, unsigned work)
{
    const struct fleet_world *w = process->world;
    coord_ms at = 0;
    for (unsigned i = 0; i < w->processes; i++) {
        at = coord_ms_max(at, w->told[process->number][i][work].resolved_at);
    }
    return at;
}

/* What the leader has seen to be nobody's is open, as soon as it has listened for one T. */
static void check_reported(struct fleet_process *process, unsigned open)
{
    struct fleet_world *w = process->world;
    if (!fleet_judges(process) || w->now < process->anew + w->timeout) {
        return;
    }
    for (unsigned i = 0; i < w->processes; i++) {
        const struct fleet_ear *ear = &w->ear[process->number][i];
        const bool came_back = w->process[i].kind == FLEET_SEED && w->process[i].noticed;
        if (!ear->known || i == process->number || came_back ||
            (!ear->silent && !ear->finished && !ear->leaving)) {
            continue;
        }
        for (unsigned work = 0; work < FLEET_WORKS; work++) {
            if ((ear->lists >> work & 1) != 0 && (open >> work & 1) == 0 &&
                resolved_for(process, work) <= ear->heard_at && !fleet_served(process, work)) {
                fleet_break(w, FLEET_REPORT, "%s leads and does not report %s of %s#%u",
                            fleet_host_name(process->host), fleet_work_name(work),
                            fleet_host_name(w->process[i].host), i);
            }
        }
    }
}

/* The works that are open in the table of a process. */
static unsigned open_works(const struct fleet_process *process)
{
    struct coord_orphan orphan;
    uint32_t at = 0;
    unsigned open = 0;
    while (coord_coordinator_next_orphan(coord_agent_coordinator(process->agent), &at, &orphan)) {
        unsigned work = 0;
        (void)owner_of(process->world, &orphan, &work);
        open |= 1U << work;
    }
    return open;
}

void fleet_check_table(struct fleet_process *process)
{
    struct fleet_world *w = process->world;
    struct coord_coordinator *coordinator = coord_agent_coordinator(process->agent);
    struct coord_orphan orphan;
    uint32_t at = 0;
    process->led = fleet_leads(process);
    if (!process->led) {
        return;
    }
    while (coord_coordinator_next_orphan(coordinator, &at, &orphan)) {
        unsigned work = 0;
        const struct fleet_process *owner = owner_of(w, &orphan, &work);
        if (owner != process && orphan.safe_after <= fleet_local(process) &&
            is_at_work(process, owner, work)) {
            fleet_break(w, FLEET_SAFE, "%s is safe to take while %s#%u works on it",
                        fleet_work_name(work), fleet_host_name(owner->host), owner->number);
        }
    }
    check_reported(process, open_works(process));
}

/* ---- when the faults have ceased ---- */

static bool is_well(const struct fleet_process *process)
{
    return process->runs && !process->leaving && !process->silenced &&
           process->kind != FLEET_OBSERVER;
}

static bool is_well_served(const struct fleet_world *w, unsigned work)
{
    for (unsigned i = 0; i < w->processes; i++) {
        if (is_well(&w->process[i]) && (w->process[i].serves >> work & 1) != 0) {
            return true;
        }
    }
    return false;
}

/* It has heard the owner list the work, and not been told since that another does. */
static bool is_witness(const struct fleet_world *w, const struct fleet_process *process,
                       unsigned number, unsigned work)
{
    const struct fleet_ear *ear = &w->ear[process->number][number];
    return (ear->lists >> work & 1) != 0 && w->resolved_at[work] < ear->heard_at + w->timeout;
}

/* A leader has told it so, and it has not been told since that it is over. */
static bool has_been_told(const struct fleet_world *w, const struct fleet_process *process,
                          unsigned number, unsigned work)
{
    return fleet_has(process->hearsay, number * FLEET_WORKS + work) &&
           w->told[process->number][number][work].resolved_at == 0;
}

static bool is_remembered(const struct fleet_world *w, unsigned number, unsigned work)
{
    for (unsigned i = 0; i < w->processes; i++) {
        const struct fleet_process *process = &w->process[i];
        if (process->runs && process->kind != FLEET_SEED && i != number &&
            (is_witness(w, process, number, work) || has_been_told(w, process, number, work))) {
            return true;
        }
    }
    return false;
}

static coord_ms last_sign(const struct fleet_process *process)
{
    return process->said > 0 ? process->sign[process->said - 1]->sent : 0;
}

static void check_orphan(struct fleet_world *w, const struct fleet_process *leader, unsigned open,
                         unsigned number, unsigned work)
{
    const struct fleet_process *owner = &w->process[number];
    if (is_well(owner) || (owner->serves >> work & 1) == 0 || (open >> work & 1) != 0 ||
        is_well_served(w, work) || w->author[number][work].resolved_at != 0 ||
        w->resolved_at[work] > last_sign(owner)) {
        return;
    }
    if (!is_remembered(w, number, work)) {
        w->counts.lost++;
        return;
    }
    fleet_break(w, FLEET_CALM, "%s of %s#%u is nobody's, and %s, who leads, does not say so",
                fleet_work_name(work), fleet_host_name(owner->host), number,
                fleet_host_name(leader->host));
}

static void check_open(struct fleet_world *w, const struct fleet_process *process)
{
    struct coord_orphan orphan;
    uint32_t at = 0;
    /* What was taken up just now is not on the air yet. */
    const bool settled = w->now > w->taken_at + w->timeout / 2;
    while (settled &&
           coord_coordinator_next_orphan(coord_agent_coordinator(process->agent), &at, &orphan)) {
        unsigned work = 0;
        const struct fleet_process *owner = owner_of(w, &orphan, &work);
        if (is_well_served(w, work)) {
            fleet_break(w, FLEET_CALM, "%s of %s#%u is served, and still open for %s",
                        fleet_work_name(work), fleet_host_name(owner->host), owner->number,
                        fleet_host_name(process->host));
        }
    }
}

static void check_seen(struct fleet_world *w, const struct fleet_process *leader,
                       const struct fleet_process *peer)
{
    const unsigned called = fleet_called(w, peer->host);
    const char *id = fleet_host_name(called);
    struct coord_peer seen;
    if (w->twin < FLEET_HOSTS && called == 0) {
        return; /* by its id the other one may be found */
    }
    if (is_well(peer) && peer != leader &&
        (!coord_coordinator_find_peer(coord_agent_coordinator(leader->agent), id, strlen(id),
                                      &seen) ||
         seen.status != COORD_PEER_HEALTHY)) {
        fleet_break(w, FLEET_CALM, "%s#%u is well, and %s does not see it", id, peer->number,
                    fleet_host_name(leader->host));
    }
}

/* Two that have lived under one id for three T by now. */
static void check_twins(struct fleet_world *w, const struct fleet_process *leader)
{
    if (w->twin == FLEET_HOSTS) {
        return;
    }
    const unsigned one = w->host[0].process;
    const unsigned other = w->host[w->twin].process;
    if (one < FLEET_PROCESSES && other < FLEET_PROCESSES && is_well(&w->process[one]) &&
        is_well(&w->process[other]) && !w->ear[leader->number][one].twin) {
        fleet_break(w, FLEET_TWIN, "#%u and #%u are well under one id, and %s does not say so", one,
                    other, fleet_host_name(leader->host));
    }
}

void fleet_check_calm(struct fleet_world *world, const struct fleet_process *leader)
{
    check_twins(world, leader);
    const unsigned open = open_works(leader);
    for (unsigned i = 0; i < world->processes; i++) {
        const struct fleet_process *process = &world->process[i];
        check_seen(world, leader, process);
        if (process->runs && (process == leader || process->kind == FLEET_OBSERVER)) {
            check_open(world, process);
        }
        for (unsigned work = 0; work < FLEET_WORKS; work++) {
            check_orphan(world, leader, open, i, work);
        }
    }
}
