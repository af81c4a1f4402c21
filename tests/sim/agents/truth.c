/* SPDX-License-Identifier: MIT
 * tests/sim/agents/truth.c - what each process has heard of each other, kept by the rules of
 * docs/guarantees.md beside the code that is looked at.
 */
#include "tests/sim/agents/world.h"

bool fleet_is_well(const struct fleet_ear *ear)
{
    return ear->known && !ear->silent && !ear->finished && !ear->leaving;
}

bool fleet_judges(const struct fleet_process *process)
{
    const struct fleet_world *w = process->world;
    if (process->kind == FLEET_OBSERVER || !process->was_up) {
        return process->was_up;
    }
    return process->echo != COORD_NEVER && w->now <= process->echo + w->timeout / 2;
}

/* It has slept, or its connection is back: every silence starts anew. */
void fleet_woke(struct fleet_process *process)
{
    const struct fleet_world *w = process->world;
    const bool up = fleet_connected(w, process->host);
    if (process->promised != COORD_NEVER && w->now > process->promised + w->timeout / 2) {
        process->anew = w->now;
    }
    const bool asks = !process->led &&
                      coord_coordinator_counts(coord_agent_coordinator(process->agent)).orphans > 0;
    for (unsigned work = 0; work < FLEET_WORKS && asks; work++) {
        const unsigned bit = 1U << work;
        process->served_as_it_led &= ~bit;
        process->served_as_it_led |= fleet_served(process, work) ? bit : 0;
    }
    if (up && !process->was_up) {
        process->anew = w->now;
    }
    process->was_up = up;
}

/* The time that was left counts from here on. */
static coord_ms received(const struct fleet_world *w, const struct fleet_message *message)
{
    return message->deadline == COORD_NEVER ? COORD_NEVER
                                            : w->now + (message->deadline - message->sent);
}

/* Whoever sends an order knows the id alone: it is for the process that was heard last. */
static void hear_order(struct fleet_process *process, const struct fleet_message *message)
{
    struct fleet_world *w = process->world;
    const unsigned called = fleet_called(w, message->host);
    struct fleet_ear *latest = NULL;
    for (unsigned i = 0; i < w->processes; i++) {
        struct fleet_ear *ear = &w->ear[process->number][i];
        if (fleet_called(w, w->process[i].host) == called && ear->known &&
            (latest == NULL || ear->heard_at >= latest->heard_at)) {
            latest = ear;
        }
    }
    /* What it is told itself counts when it says so. */
    if (latest != NULL && !latest->finished && fleet_called(w, process->host) != called) {
        latest->leaving = true;
        latest->deadline = received(w, message);
    }
}

/* It says its notice once, and that holds until its deadline by its own clock. */
static bool was_overtaken(const struct fleet_message *message, const struct fleet_ear *ear)
{
    return message->type == COORD_MESSAGE_SHUTDOWN && ear->newest > message->stamp &&
           ear->newest < message->completion;
}

/* Of a peer without seq a timestamp that has not been seen is a sign of life, and news if it is
 * higher, or if nothing higher came for one T. */
static bool is_fresh(const struct fleet_process *process, const struct fleet_message *message,
                     struct fleet_ear *ear, bool *news)
{
    const struct fleet_world *w = process->world;
    *news = true;
    if (message->seq != 0) {
        return message->seq > ear->seq;
    }
    if (fleet_has(ear->heard, message->place)) {
        return false;
    }
    *news = !ear->known || message->stamp > ear->newest || w->now >= ear->newest_at + w->timeout;
    return *news || message->type == COORD_MESSAGE_HEARTBEAT || was_overtaken(message, ear);
}

static void take_news(const struct fleet_world *w, const struct fleet_message *message,
                      struct fleet_ear *ear)
{
    const bool lasting = message->type == COORD_MESSAGE_HEARTBEAT && message->seq == 0;
    ear->newest = message->stamp;
    ear->newest_at = w->now;
    if (message->type != COORD_MESSAGE_SHUTDOWN || message->lists != 0) {
        ear->lists = message->lists;
    }
    if (message->type == COORD_MESSAGE_FINISHED) {
        ear->finished = true;
    } else if (!lasting || (ear->leaving && w->now >= ear->deadline + w->timeout)) {
        ear->leaving = message->leaving;
        ear->deadline = received(w, message);
    }
}

/* A leader speaks, and not one of before. */
static void hear_leader(struct fleet_process *process, const struct fleet_message *message)
{
    if (message->kind == COORD_ORPHANS_HINT || message->fence < process->fence ||
        fleet_leads(process)) {
        return;
    }
    process->fence = message->fence;
    for (unsigned i = 0; i < sizeof message->reports / sizeof message->reports[0]; i++) {
        process->hearsay[i] |= message->reports[i];
    }
}

void fleet_hear(struct fleet_process *process, const struct fleet_message *message)
{
    struct fleet_world *w = process->world;
    bool news = false;
    if (message->sender == FLEET_PROCESSES) {
        hear_order(process, message);
        return;
    }
    if (message->type == COORD_MESSAGE_ORPHANS) {
        hear_leader(process, message);
        return;
    }
    struct fleet_ear *ear = &w->ear[process->number][message->sender];
    if (message->sender == process->number && message->type == COORD_MESSAGE_HEARTBEAT &&
        message->seq > ear->seq) {
        process->anew = fleet_judges(process) ? process->anew : w->now;
        process->echo = w->now;
    }
    const bool own_word =
        message->sender == process->number && message->type != COORD_MESSAGE_HEARTBEAT;
    if (!message->life || ear->finished || own_word) {
        return; /* of itself it knows by its beats alone */
    }
    const bool fresh = is_fresh(process, message, ear, &news);
    fleet_set(ear->heard, message->place);
    if (!fresh) {
        return;
    }
    ear->known = true;
    ear->silent = false;
    ear->heard_at = w->now;
    ear->seq = message->seq;
    ear->last = message;
    if (news) {
        take_news(w, message, ear);
    } else if (message->type == COORD_MESSAGE_SHUTDOWN) {
        ear->leaving = true;
        ear->deadline = w->now + (coord_ms)((message->completion - ear->newest) / 1000);
    }
    for (unsigned work = 0; work < FLEET_WORKS && fleet_is_well(ear); work++) {
        if ((ear->lists >> work & 1) != 0) {
            process->served_at[work] = w->now;
        }
    }
}

bool fleet_served(const struct fleet_process *process, unsigned work)
{
    const struct fleet_world *w = process->world;
    for (unsigned i = 0; i < w->processes; i++) {
        const struct fleet_ear *ear = &w->ear[process->number][i];
        if (fleet_is_well(ear) && (ear->lists >> work & 1) != 0 &&
            (i != process->number || fleet_judges(process))) {
            return true;
        }
    }
    return false;
}
