/* SPDX-License-Identifier: MIT
 * tests/sim/agents/check.c - what has to hold of life, death and leaving, after every step.
 */
#include <stdarg.h>
#include <string.h>

#include "tests/sim/agents/world.h"

const char *fleet_promise_name(enum fleet_promise promise)
{
    static const char *const names[FLEET_PROMISES] = {
        "none", "living", "twin",    "outages", "death", "report", "resolved",
        "once", "safe",   "leaving", "leader",  "time",  "calm"};
    return names[promise];
}

void fleet_break(struct fleet_world *world, enum fleet_promise promise, const char *format, ...)
{
    va_list list;
    if (world->broken != FLEET_KEPT) {
        return;
    }
    world->broken = promise;
    world->broken_at = world->now;
    va_start(list, format);
    (void)vsnprintf(world->text, sizeof world->text, format, list);
    va_end(list);
    fleet_say(world, NULL, "BREAKS %s: %s", fleet_promise_name(promise), world->text);
}

/* ---- deaths ---- */

/* How long it stood still between two instants. */
static coord_ms stood_still(const struct fleet_process *process, coord_ms from, coord_ms to)
{
    coord_ms sum = 0;
    for (unsigned i = 0; i < process->pauses; i++) {
        const coord_ms begin = coord_ms_max(process->pause[i].from, from);
        const coord_ms end = coord_ms_min(process->pause[i].to, to);
        sum += end > begin ? end - begin : 0;
    }
    return sum;
}

/*
 * With k beats lost since the last one that was heard, (k + 1) I + pause + spread of delays + one
 * tick < T kills no living peer. What waits in the inbox or on the way is late by as long as it has
 * been there. Beats that nobody could send or hear, as the bus was down, do not count as lost.
 */
static void check_living(struct fleet_process *observer, const struct fleet_process *peer)
{
    struct fleet_world *w = observer->world;
    const struct fleet_ear *ear = &w->ear[observer->number][peer->number];
    const coord_ms from = ear->last->sent;
    if (peer->started > from) {
        return; /* it was away in between */
    }
    unsigned lost = 0;
    unsigned missed = 0;
    coord_ms waits = 0;
    for (unsigned i = ear->last->place + 1; i < peer->said; i++) {
        if (fleet_has(ear->lost, i)) {
            lost++;
        } else if (fleet_has(ear->missed, i)) {
            missed++;
        } else {
            waits = w->now - peer->sign[i]->sent;
            break;
        }
    }
    const coord_ms still = stood_still(peer, from, w->now);
    const coord_ms needed = (lost + 1) * w->interval + still + waits + FLEET_TICK;
    /* Until it is known that the bus is down; what was on its way then is lost as well. */
    const coord_ms blind = 2 * w->spread_most + w->timeout / (w->untold ? 2 : 8);
    if (missed == 0 && needed < w->timeout) {
        fleet_break(w, FLEET_LIVING,
                    "%s takes %s#%u for dead, though %u beats were lost and %u ms "
                    "are accounted for",
                    fleet_host_name(observer->host), fleet_host_name(peer->host), peer->number,
                    lost, (unsigned)needed);
    } else if (lost == 0 && still == 0 && needed + blind < w->timeout) {
        fleet_break(w, FLEET_OUTAGES, "%s takes %s#%u for dead, though the bus was down",
                    fleet_host_name(observer->host), fleet_host_name(peer->host), peer->number);
    }
    w->counts.false_deaths++;
}

/* What has come in is read before anybody is judged. */
static void check_read(struct fleet_process *observer, const struct fleet_process *peer)
{
    for (unsigned i = 0; i < observer->inbox_count; i++) {
        const struct fleet_message *message =
            observer->inbox[(observer->inbox_first + i) % FLEET_INBOX];
        if (message->sender == peer->number && message->life) {
            fleet_break(observer->world, FLEET_LIVING, "%s takes %s#%u for dead, unread",
                        fleet_host_name(observer->host), fleet_host_name(peer->host), peer->number);
            return;
        }
    }
}

static struct fleet_process *process_of(struct fleet_world *w, const struct coord_peer *peer)
{
    const unsigned host = (unsigned)(peer->id[0] - 'a');
    const unsigned number =
        peer->has_incarnation ? peer->incarnation[0] - 1U : w->host[host].process;
    if (number >= w->processes || fleet_called(w, w->process[number].host) != host ||
        (w->process[number].kind == FLEET_SEED) == peer->has_incarnation) {
        return NULL;
    }
    return &w->process[number];
}

/* Long after, an unheard beat is late by more than T. */
static void check_twin(struct fleet_process *process, const struct fleet_process *peer)
{
    struct fleet_world *w = process->world;
    bool lived = (w->faults & FLEET_REPLAY) != 0;
    for (unsigned i = 0; i < w->processes; i++) {
        const struct fleet_process *other = &w->process[i];
        if (fleet_are_twins(peer, other)) {
            lived = lived || coord_ms_min(peer->ended, other->ended) >
                                 coord_ms_max(peer->started, other->started);
            w->ear[process->number][i].twin = true;
        }
    }
    w->ear[process->number][peer->number].twin = true;
    if (!lived) {
        fleet_break(w, FLEET_TWIN, "%s is told to be there twice", fleet_host_name(peer->host));
    }
}

void fleet_check_event(struct fleet_process *process, const struct coord_event *event)
{
    struct fleet_world *w = process->world;
    if (event->kind >= COORD_EVENT_ORPHAN_OPENED) {
        fleet_check_report(process, event);
        return;
    }
    if (event->peer.id == NULL) {
        fleet_say(w, process, "hears %s", coord_event_name(event->kind));
        return;
    }
    struct fleet_process *peer = process_of(w, &event->peer);
    fleet_say(w, process, "hears %s %s#%d", coord_event_name(event->kind),
              fleet_host_name((unsigned)(event->peer.id[0] - 'a')),
              peer != NULL ? (int)peer->number : -1);
    struct fleet_ear *ear = peer != NULL ? &w->ear[process->number][peer->number] : NULL;
    if (ear == NULL || !ear->known) {
        return;
    }
    if (event->kind == COORD_EVENT_PEER_SILENT) {
        if (ear->silent) {
            fleet_break(w, FLEET_DEATH, "%s#%u is told dead twice", fleet_host_name(peer->host),
                        peer->number);
        }
        w->counts.deaths++;
        ear->silent = true;
        check_read(process, peer);
        if (peer->runs && !peer->silenced) {
            check_living(process, peer);
        }
    } else if (event->kind == COORD_EVENT_PEER_RECOVERED && ear->heard_at != w->now) {
        fleet_break(w, FLEET_DEATH, "%s#%u is told alive without a sign of life",
                    fleet_host_name(peer->host), peer->number);
    } else if (event->kind == COORD_EVENT_DUPLICATE_IDENTITY) {
        check_twin(process, peer);
    }
}

/* Within T and a tick of the last sign, or of the last start anew. */
static void check_silences(struct fleet_process *process)
{
    struct fleet_world *w = process->world;
    if (!fleet_judges(process)) {
        return;
    }
    for (unsigned i = 0; i < w->processes; i++) {
        const struct fleet_ear *ear = &w->ear[process->number][i];
        if (ear->known && !ear->silent && !ear->finished && i != process->number &&
            w->now >= coord_ms_max(ear->heard_at, process->anew) + w->timeout) {
            fleet_break(w, FLEET_DEATH, "%s#%u has not been heard by %s for %u ms, and is not dead",
                        fleet_host_name(w->process[i].host), i, fleet_host_name(process->host),
                        (unsigned)(w->now - ear->heard_at));
        }
    }
}

/* ---- leaving and leading ---- */

static void check_leading(struct fleet_process *process)
{
    struct fleet_world *w = process->world;
    const enum coord_agent_phase phase = coord_agent_phase(process->agent);
    unsigned leaders = 0;
    for (unsigned i = 0; i < w->hosts; i++) {
        const unsigned number = w->host[i].process;
        leaders += number < FLEET_PROCESSES && fleet_leads(&w->process[number]) ? 1 : 0;
    }
    if (leaders > 1) {
        fleet_break(w, FLEET_LEADER, "%u lead", leaders);
    }
    if (fleet_leads(process) && phase == COORD_AGENT_DRAINING) {
        fleet_break(w, FLEET_LEAVING, "%s#%u leads while it drains", fleet_host_name(process->host),
                    process->number);
    }
    if (phase != COORD_AGENT_STAYING && phase != COORD_AGENT_LEFT && w->now > process->deadline) {
        fleet_break(w, FLEET_LEAVING, "%s#%u is past its deadline and does not know it",
                    fleet_host_name(process->host), process->number);
    }
}

void fleet_check_step(struct fleet_process *process)
{
    check_leading(process);
    check_silences(process);
    fleet_check_table(process);
}
