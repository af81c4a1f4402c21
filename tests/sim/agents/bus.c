/* SPDX-License-Identifier: MIT
 * tests/sim/agents/bus.c - what carries messages: to everybody who is connected, in fair weather;
 * lost, late, twice, in another order and long after, in bad.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/agents/world.h"

static bool reaches_bus(const struct fleet_world *w, unsigned host)
{
    return !w->outage && !w->host[host].cut && w->host[host].up;
}

bool fleet_connected(const struct fleet_world *world, unsigned host)
{
    return world->host[host].up;
}

/* ---- messages ---- */

static void *keep(struct fleet_world *w, const void *bytes, size_t count)
{
    const size_t at = (w->arena_used + 15) & ~(size_t)15;
    COORD_ASSERT(at + count <= FLEET_ARENA);
    w->arena_used = at + count;
    if (bytes != NULL) {
        memcpy(w->arena + at, bytes, count);
    } else {
        memset(w->arena + at, 0, count);
    }
    return w->arena + at;
}

static unsigned works_of(const struct coord_value *subscriptions)
{
    struct coord_walk walk;
    struct coord_value name;
    unsigned works = 0;
    if (subscriptions->kind != COORD_KIND_ARRAY) {
        return 0;
    }
    coord_walk_begin(subscriptions, &walk);
    while (coord_walk_next(&walk, NULL, &name)) {
        for (unsigned i = 0; i < FLEET_WORKS; i++) {
            const char *work = fleet_work_name(i);
            works |= coord_view_is(&name, work, strlen(work)) ? 1U << i : 0;
        }
    }
    return works;
}

/* The process that a report is about; one of the seed library has no incarnation. */
static unsigned owner_of(const struct fleet_world *w, const struct coord_report_wire *wire)
{
    char id[COORD_NAME_MAX];
    char incarnation[COORD_INCARNATION_MAX] = "";
    (void)coord_view_text(&wire->instance_id, id, sizeof id);
    if (wire->incarnation.kind != COORD_KIND_TEXT) {
        return w->host[id[0] - 'a'].process;
    }
    (void)coord_view_text(&wire->incarnation, incarnation, sizeof incarnation);
    incarnation[2] = '\0'; /* all its bytes are alike */
    return (unsigned)strtoul(incarnation, NULL, 16) - 1;
}

static void read_reports(const struct fleet_world *w, const struct coord_message *m,
                         struct fleet_message *message)
{
    struct coord_walk walk;
    struct coord_value element;
    struct coord_report_wire wire;
    char text[COORD_NAME_MAX];
    coord_walk_begin(&m->reports, &walk);
    while (coord_walk_next(&walk, NULL, &element)) {
        COORD_ASSERT(coord_report_read(&element, &wire) == COORD_FAULT_NONE);
        const size_t bytes = coord_view_text(&wire.subscription, text, sizeof text);
        const unsigned owner = owner_of(w, &wire);
        for (unsigned i = 0; i < FLEET_WORKS && owner < FLEET_PROCESSES; i++) {
            if (bytes == strlen(fleet_work_name(i)) &&
                memcmp(text, fleet_work_name(i), bytes) == 0) {
                fleet_set(message->reports, owner * FLEET_WORKS + i);
            }
        }
    }
}

static struct fleet_message *read_message(struct fleet_world *w, enum coord_message_type type,
                                          const void *bytes, size_t count)
{
    struct coord_message m;
    struct fleet_message *message = keep(w, NULL, sizeof *message);
    message->bytes = keep(w, bytes, count);
    message->count = count;
    COORD_ASSERT(coord_message_decode(type, message->bytes, count, &m) == COORD_FAULT_NONE);
    message->type = type;
    message->kind = m.kind;
    message->sent = w->now;
    message->seq = m.seq;
    message->stamp = m.at_us;
    message->completion = m.completion_us;
    message->life = type == COORD_MESSAGE_HEARTBEAT || type == COORD_MESSAGE_FINISHED ||
                    type == COORD_MESSAGE_SHUTDOWN;
    message->fence = m.fence;
    if (type == COORD_MESSAGE_ORPHANS && m.kind != COORD_ORPHANS_RESOLVED &&
        m.kind != COORD_ORPHANS_HINT) {
        read_reports(w, &m, message);
    }
    message->lists = works_of(&m.subscriptions);
    message->leaving = m.leaving || type == COORD_MESSAGE_SHUTDOWN;
    message->deadline = COORD_NEVER;
    if (m.leaving) {
        message->deadline = coord_ms_add(w->now, m.remaining);
    } else if (type == COORD_MESSAGE_SHUTDOWN) {
        const int64_t from = m.has_sent_at ? m.sent_at_us : m.at_us;
        const int64_t left = (m.completion_us - from) / 1000;
        message->deadline = coord_ms_add(w->now, left > 0 ? (coord_ms)left : 0);
    }
    return message;
}

/* ---- letters: the one that arrives first is on top ---- */

static bool before(const struct fleet_letter *a, const struct fleet_letter *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void post(struct fleet_world *w, unsigned to, const struct fleet_message *message,
                 coord_ms at)
{
    const struct fleet_letter letter = {at, w->order++, to, message};
    unsigned place = w->letters++;
    COORD_ASSERT(w->letters <= FLEET_LETTERS);
    while (place > 0 && before(&letter, &w->letter[(place - 1) / 2])) {
        w->letter[place] = w->letter[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    w->letter[place] = letter;
}

static struct fleet_letter take(struct fleet_world *w)
{
    const struct fleet_letter top = w->letter[0];
    const struct fleet_letter last = w->letter[--w->letters];
    unsigned place = 0;
    for (;;) {
        unsigned child = place * 2 + 1;
        if (child + 1 < w->letters && before(&w->letter[child + 1], &w->letter[child])) {
            child++;
        }
        if (child >= w->letters || !before(&w->letter[child], &last)) {
            break;
        }
        w->letter[place] = w->letter[child];
        place = child;
    }
    w->letter[place] = last;
    return top;
}

static coord_ms travel(struct fleet_world *w)
{
    return w->now + 1 + (w->spread > 0 ? sim_below(&w->random, w->spread) : 0);
}

/* One copy for one who listens, or none. */
static void send_to(struct fleet_world *w, const struct fleet_process *to,
                    const struct fleet_message *message)
{
    struct fleet_ear *ear =
        message->sender < FLEET_PROCESSES ? &w->ear[to->number][message->sender] : NULL;
    const bool counts = ear != NULL && message->life;
    if (!reaches_bus(w, to->host)) {
        if (counts) {
            fleet_set(ear->missed, message->place);
        }
        return;
    }
    const bool deaf = (w->host[to->host].deaf_to >> message->host & 1) != 0;
    if (deaf || (w->loss > 0 && sim_chance(&w->random, w->loss, 1000))) {
        if (counts) {
            fleet_set(ear->lost, message->place);
        }
        return;
    }
    post(w, to->number, message, travel(w));
    if ((w->faults & FLEET_TWICE) != 0 && w->loss > 0 && sim_chance(&w->random, 1, 8)) {
        post(w, to->number, message, travel(w));
    }
}

static void broadcast(struct fleet_world *w, const struct fleet_message *message)
{
    for (unsigned i = 0; i < w->hosts; i++) {
        const unsigned number = w->host[i].process;
        if (number < FLEET_PROCESSES && w->process[number].runs &&
            w->process[number].kind != FLEET_SEED) {
            send_to(w, &w->process[number], message);
        }
    }
    if (w->past_count < sizeof w->past / sizeof w->past[0]) {
        w->past[w->past_count++] = message;
    }
    w->counts.messages++;
}

/* Nobody hears it: because the bus was down, or because its sender had lost it. */
static void nobody_hears(struct fleet_world *w, const struct fleet_message *message)
{
    const bool outage = !w->host[message->host].cut && !w->host[message->host].down_by_cut;
    for (unsigned i = 0; i < w->processes && message->life; i++) {
        struct fleet_ear *ear = &w->ear[i][message->sender];
        fleet_set(outage || i == message->sender ? ear->missed : ear->lost, message->place);
    }
}

enum coord_err fleet_publish(struct fleet_process *process, enum coord_message_type type,
                             const void *bytes, size_t count)
{
    struct fleet_world *w = process->world;
    struct fleet_message *message = read_message(w, type, bytes, count);
    message->sender = process->number;
    message->host = process->host;
    if (message->life) {
        COORD_ASSERT(process->said < FLEET_SAID);
        message->place = process->said++;
        process->sign[message->place] = message;
    }
    fleet_say(w, process, "says %s%s%s seq %u%s", coord_message_type_name(type),
              type == COORD_MESSAGE_ORPHANS ? " " : "",
              type == COORD_MESSAGE_ORPHANS ? coord_orphans_kind_name(message->kind) : "",
              (unsigned)message->seq, message->leaving ? ", leaving" : "");
    if (!reaches_bus(w, process->host)) {
        nobody_hears(w, message);
        return w->host[process->host].up ? COORD_OK : COORD_E_UNREACHABLE;
    }
    broadcast(w, message);
    return COORD_OK;
}

/* `coordctl announce`: without incarnation, seq and sender. */
void fleet_publish_order(struct fleet_world *world, unsigned host, coord_ms within)
{
    unsigned char room[1024];
    unsigned char names[256];
    size_t count = 0;
    struct coord_message m;
    memset(&m, 0, sizeof m);
    m.type = COORD_MESSAGE_SHUTDOWN;
    m.intent = COORD_INTENT_MAINTENANCE;
    const char *id = fleet_host_name(fleet_called(world, host));
    m.instance_id = coord_text(id, strlen(id));
    m.at_us = FLEET_WALL + (int64_t)world->now * 1000;
    m.completion_us = m.at_us + (int64_t)within * 1000;
    COORD_ASSERT(coord_texts(NULL, 0, names, sizeof names, &m.subscriptions) == COORD_OK);
    COORD_ASSERT(coord_message_encode(&m, COORD_FORM_MSGPACK, room, sizeof room, &count) ==
                 COORD_OK);
    struct fleet_message *message = read_message(world, m.type, room, count);
    message->sender = FLEET_PROCESSES;
    message->host = host;
    fleet_say(world, NULL, "somebody orders %s to leave within %u", fleet_host_name(host),
              (unsigned)within);
    if (!world->outage) {
        broadcast(world, message);
    }
}

/* A message of the past comes again, to somebody. Of a peer without seq one of the last eight, as
 * more cannot be told from news. */
void fleet_replay(struct fleet_world *world)
{
    struct fleet_world *w = world;
    if (w->past_count == 0) {
        return;
    }
    const struct fleet_message *message = w->past[sim_below(&w->random, w->past_count)];
    const unsigned number = w->host[sim_below(&w->random, w->hosts)].process;
    if (number >= FLEET_PROCESSES || !w->process[number].runs ||
        w->process[number].kind == FLEET_SEED || !reaches_bus(w, w->process[number].host) ||
        message->sender >= FLEET_PROCESSES || message->sent < w->process[number].started) {
        return;
    }
    const struct fleet_process *sender = &w->process[message->sender];
    if (sender->kind == FLEET_SEED && message->place + FLEET_RING < sender->said) {
        return;
    }
    fleet_say(w, &w->process[number], "gets seq %u of %s once more", (unsigned)message->seq,
              fleet_host_name(message->host));
    post(w, number, message, travel(w));
}

coord_ms fleet_next_letter(const struct fleet_world *world)
{
    return world->letters > 0 ? world->letter[0].at : COORD_NEVER;
}

void fleet_deliver(struct fleet_world *world)
{
    while (world->letters > 0 && world->letter[0].at <= world->now) {
        const struct fleet_letter letter = take(world);
        struct fleet_process *to = &world->process[letter.to];
        if (!to->runs) {
            continue;
        }
        if (!reaches_bus(world, to->host)) { /* it was on its way when the way ended */
            if (letter.message->sender < FLEET_PROCESSES && letter.message->life) {
                fleet_set(world->ear[to->number][letter.message->sender].missed,
                          letter.message->place);
            }
            continue;
        }
        COORD_ASSERT(to->inbox_count < FLEET_INBOX);
        to->inbox[(to->inbox_first + to->inbox_count++) % FLEET_INBOX] = letter.message;
        const coord_ms late =
            (world->faults & FLEET_LATE) != 0 ? sim_below(&world->random, FLEET_TICK) : 0;
        to->wake_at = coord_ms_min(to->wake_at, world->now + late);
    }
}

/* Then it does not connect again either; it looks first at what has become of the connection. */
static bool is_stopped(const struct fleet_world *w, const struct fleet_host *host)
{
    return host->process < FLEET_PROCESSES && w->process[host->process].runs &&
           w->process[host->process].stopped_until > w->now;
}

/* Connections learn some time later of what has become of the bus. */
void fleet_turn(struct fleet_world *world)
{
    for (unsigned i = 0; i < world->hosts && !world->untold; i++) {
        struct fleet_host *host = &world->host[i];
        const bool really = !world->outage && !host->cut;
        host->down_by_cut = host->down_by_cut || host->cut;
        if (host->up == really) {
            host->turns_at = COORD_NEVER;
        } else if (host->turns_at == COORD_NEVER) {
            host->turns_at = world->now + sim_below(&world->random, world->timeout / 8);
        }
        if (really && !host->up && is_stopped(world, host)) {
            host->turns_at =
                coord_ms_max(host->turns_at, world->process[host->process].stopped_until + 1);
        }
        if (host->turns_at <= world->now) {
            host->up = really;
            host->turns_at = COORD_NEVER;
            host->down_by_cut = host->down_by_cut && !really;
            fleet_say(world, NULL, "%s is %s", fleet_host_name(i),
                      really ? "connected" : "disconnected");
            if (host->process < FLEET_PROCESSES && world->process[host->process].runs) {
                struct fleet_process *process = &world->process[host->process];
                process->wake_at = world->now;
            }
        }
    }
}
