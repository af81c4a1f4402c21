/* SPDX-License-Identifier: MIT
 * tests/sim/agents/seed_peer.c - a peer of the seed library: it beats and gives notice without
 * incarnation, seq and sent_at, says no last word, and ends at its deadline.
 */
#include <string.h>

#include "tests/sim/agents/world.h"

static void form(struct fleet_process *process, enum coord_message_type type,
                 struct coord_message *m, unsigned char *names, size_t room)
{
    const char *works[FLEET_WORKS];
    size_t count = 0;
    for (unsigned i = 0; i < FLEET_WORKS; i++) {
        if ((process->serves >> i & 1) != 0) {
            works[count++] = fleet_work_name(i);
        }
    }
    memset(m, 0, sizeof *m);
    m->type = type;
    m->instance_id =
        coord_text(fleet_host_name(process->host), strlen(fleet_host_name(process->host)));
    m->at_us = fleet_wall(process);
    COORD_ASSERT(coord_texts(works, count, names, room, &m->subscriptions) == COORD_OK);
}

static void say(struct fleet_process *process, enum coord_message_type type)
{
    unsigned char names[256];
    unsigned char bytes[1024];
    size_t count = 0;
    struct coord_message m;
    form(process, type, &m, names, sizeof names);
    if (type == COORD_MESSAGE_SHUTDOWN) {
        m.intent = process->intent;
        m.completion_us = m.at_us + (int64_t)(process->deadline - process->world->now) * 1000;
    }
    COORD_ASSERT(coord_message_encode(&m, COORD_FORM_JSON, bytes, sizeof bytes, &count) ==
                 COORD_OK);
    COORD_IGNORE(fleet_publish(process, type, bytes, count) != COORD_OK, "it does not look");
}

void fleet_seed_wake(struct fleet_process *process)
{
    const coord_ms now = process->world->now;
    process->inbox_count = 0;
    if (process->leaving && process->deadline <= now) {
        fleet_kill(process);
        return;
    }
    if (process->notice_due) {
        process->notice_due = false;
        say(process, COORD_MESSAGE_SHUTDOWN);
    }
    if (process->next_beat <= now) {
        process->next_beat = now + process->world->interval;
        say(process, COORD_MESSAGE_HEARTBEAT);
    }
    process->wake_at = coord_ms_min(process->next_beat, process->deadline);
}
