/* SPDX-License-Identifier: MIT
 * coord/coordinator.c - the strict coordinator: what goes in, what time does, what comes out.
 */
#include "coord/coordinator_inside.h"
#include "coord/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void coord__refuse(struct coord_coordinator *c, enum coord_refusal why)
{
    c->counts.refused[why]++;
}

/* Of ourselves there are no events: the host knows. */
void coord__event(struct coord_coordinator *c, enum coord_event_kind kind, uint32_t peer,
                  coord_ms deadline, bool with_message)
{
    if (peer != COORD__NO_REF && peer == c->self) {
        return;
    }
    COORD_ASSERT(c->event_count < COORD__EVENTS);
    unsigned at = (c->event_first + c->event_count++) % COORD__EVENTS;
    c->events[at] = (struct coord__event){kind, peer, deadline, with_message};
}

uint64_t coord__random(struct coord_coordinator *c)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return c->random;
}

/* ---- construction ---- */

static enum coord_err check(const struct coord_coordinator_config *config, coord_ms interval,
                            struct coord_error *error)
{
    if (config->size != sizeof *config) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT,
                               "the config has another size: begin with "
                               "COORD_COORDINATOR_CONFIG_INIT");
    }
    size_t bytes = config->instance_id != NULL ? strlen(config->instance_id) : 0;
    if (bytes == 0 || bytes > COORD_NAME_MAX) {
        return coord_error_set(error, COORD_E_BAD_NAME,
                               "the instance id has %zu bytes: use 1 to %d", bytes, COORD_NAME_MAX);
    }
    if (coord__utf8_span((const unsigned char *)config->instance_id, bytes) != bytes) {
        return coord_error_set(error, COORD_E_BAD_NAME,
                               "the instance id is no UTF-8, and the others could not read it: "
                               "choose another");
    }
    bool fits = config->timeout > 0 && config->timeout < (coord_ms)1 << 40 && interval > 0 &&
                interval < config->timeout &&
                coord_ms_add(interval * 3, config->tick) < config->timeout;
    if (!fits) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT,
                               "three heartbeats of %llu ms and a tick of %llu ms do not fit into "
                               "a timeout of %llu ms: beat oftener or wait longer",
                               (unsigned long long)interval, (unsigned long long)config->tick,
                               (unsigned long long)config->timeout);
    }
    if (config->peers_max == 0 || config->peers_max > (1U << 24) - 2 ||
        config->incarnations_max == 0 || config->reports_max > (1U << 24)) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT,
                               "a limit of the coordinator is out of range: at least one peer and "
                               "one incarnation, at most 2^24 - 2");
    }
    return COORD_OK;
}

static void set_empty(struct coord__list *list)
{
    list->first = COORD__NO_REF;
    list->last = COORD__NO_REF;
}

enum coord_err coord_coordinator_new(const struct coord_coordinator_config *config, coord_ms now,
                                     struct coord_coordinator **out, struct coord_error *error)
{
    coord_ms interval = config->interval != 0 ? config->interval : config->timeout / 4;
    enum coord_err err = check(config, interval, error);
    if (err != COORD_OK) {
        return err;
    }
    struct coord_coordinator *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "no memory for a coordinator");
    }
    c->config = *config;
    c->config.interval = interval;
    c->id_bytes = strlen(config->instance_id);
    memcpy(c->id, config->instance_id, c->id_bytes);
    c->config.instance_id = c->id;
    for (unsigned i = 0; i < COORD_OWNER_BYTES; i++) {
        (void)snprintf(c->incarnation + 2 * i, 3, "%02x", config->incarnation[i]);
    }
    c->now = now;
    c->started = now;
    c->anew = now;
    c->connected = !config->observer; /* a member may be told otherwise */
    c->echo = COORD_NEVER;
    c->promised = COORD_NEVER;
    c->self = COORD__NO_REF;
    c->beat_at = now;
    c->table_at = COORD_NEVER;
    c->hint_at = COORD_NEVER;
    c->forget_at = coord_ms_add(now, c->config.timeout);
    c->random = config->seed | 1;
    c->names.seed = config->seed;
    c->names.most = config->subscriptions_max;
    c->peers.free_ = COORD__NO_REF;
    set_empty(&c->peers.alive);
    set_empty(&c->peers.dead);
    set_empty(&c->reports.queue);
    set_empty(&c->reports.sends);
    *out = c;
    return COORD_OK;
}

void coord_coordinator_free(struct coord_coordinator *coordinator)
{
    if (coordinator == NULL) {
        return;
    }
    coord__peers_fini(coordinator);
    coord__reports_fini(coordinator);
    coord__names_fini(&coordinator->names);
    free(coordinator->served);
    free(coordinator);
}

/* ---- time ---- */

bool coord__leading(const struct coord_coordinator *c)
{
    return c->leading && c->now < c->leading_until;
}

/* Connected, and our own heartbeat came back within T/2: then the silence of others means
 * something. */
bool coord__judging_at(const struct coord_coordinator *c, coord_ms now)
{
    const coord_ms until = coord_ms_add(c->echo, c->config.timeout / 2);
    const bool hears = c->config.observer || (c->echo != COORD_NEVER && now <= until);
    return c->connected && COORD__RULE(hears_itself, hears);
}

bool coord__judging(const struct coord_coordinator *c)
{
    return coord__judging_at(c, c->now);
}

static void start_anew(struct coord_coordinator *c)
{
    c->anew = c->now;
    c->counts.anew++;
}

/* Every call that has a time begins here. */
void coord__pass(struct coord_coordinator *c, coord_ms now)
{
    if (now < c->now) {
        c->counts.went_back++;
        return;
    }
    /* Later than promised by T/2: we slept, and so did our ears. */
    const coord_ms much_later = coord_ms_add(c->promised, c->config.timeout / 2);
    const bool slept =
        COORD__RULE(slept_beyond_its_deadline, c->promised != COORD_NEVER && now > much_later);
    c->now = now;
    if (slept) {
        start_anew(c);
    }
    c->promised = COORD_NEVER;
    if (c->self != COORD__NO_REF) {
        coord__count_health(c, c->self);
    }
}

void coord_coordinator_connected(struct coord_coordinator *coordinator, bool connected,
                                 coord_ms now)
{
    coord__pass(coordinator, now);
    if (COORD__RULE(is_back_on_the_bus, connected && !coordinator->connected)) {
        start_anew(coordinator);
        coordinator->beat_again = true;
    }
    coordinator->connected = connected;
}

/* ---- what comes in ---- */

static void own_heartbeat(struct coord_coordinator *c, const struct coord_message *message)
{
    if (message->seq > c->seq) {
        coord__refuse(c, COORD_REFUSED_FORGED_SELF);
        return;
    }
    if (c->self != COORD__NO_REF && message->seq <= coord__peer_at(&c->peers, c->self)->seq) {
        coord__refuse(c, COORD_REFUSED_OLD_SEQ); /* a copy says nothing of what we hear now */
        return;
    }
    if (COORD__RULE(has_not_heard_itself, !coord__judging(c))) {
        start_anew(c);
    }
    c->echo = c->now;
    if (c->self == COORD__NO_REF) {
        enum coord_refusal why = COORD_REFUSED_NO_MEMORY;
        c->self = coord__peer_add(c, c->id, c->id_bytes, c->config.incarnation, &why);
        if (c->self == COORD__NO_REF) {
            coord__refuse(c, why);
            return;
        }
    }
    coord__heartbeat(c, message);
    coord__count_health(c, c->self);
}

/* A copy of an order that comes late must not put its deadline off. */
static void take_order(struct coord_coordinator *c, int64_t from, int64_t until)
{
    if (from == c->order_from && until == c->order_until) {
        coord__refuse(c, COORD_REFUSED_OLD_TIME);
        return;
    }
    c->order_from = from;
    c->order_until = until;
    int64_t left = until - from;
    coord__event(c, COORD_EVENT_ORDER, COORD__NO_REF,
                 coord_ms_add(c->now, left > 0 ? (coord_ms)(left / 1000) : 0), true);
}

/* A notice for our id that is not our own is an order to leave. */
static void take_notice(struct coord_coordinator *c, const struct coord_message *message)
{
    bool ours = false;
    if (!coord__is_self(c, message, &ours)) {
        coord__notice(c, message);
        return;
    }
    bool other = message->incarnation.kind == COORD_KIND_TEXT && !ours;
    if (other && message->seq != 0) {
        coord__notice(c, message); /* somebody else under our id leaves */
    } else if (message->seq == 0 && !other && !c->config.refuses_orders) {
        int64_t from = message->has_sent_at ? message->sent_at_us : message->at_us;
        take_order(c, from, message->completion_us);
    }
}

static void take_heartbeat(struct coord_coordinator *c, const struct coord_message *message)
{
    bool ours = false;
    bool self = coord__is_self(c, message, &ours);
    if (self && ours) {
        own_heartbeat(c, message);
    } else if (self && message->incarnation.kind != COORD_KIND_TEXT && c->self != COORD__NO_REF &&
               coord__peer_find(c, c->id, c->id_bytes, NULL) == c->self) {
        coord__refuse(c, COORD_REFUSED_FORGED_SELF); /* what is said of us, we say ourselves */
    } else {
        coord__heartbeat(c, message);
    }
}

static void take_finished(struct coord_coordinator *c, const struct coord_message *message)
{
    bool ours = false;
    if (!coord__is_self(c, message, &ours) || !ours) {
        coord__finished(c, message);
    } else if (c->finishing) {
        c->finished = true;
    }
}

static void take_assignment(struct coord_coordinator *c, const struct coord_message *message)
{
    if (!coord_view_is(&message->target, c->id, c->id_bytes)) {
        return;
    }
    /* A later leader may have told its table, and assigned nothing yet. */
    bool late = message->fence != 0 && message->fence < c->highest_fence;
    if (late || message->fence < c->assigned_fence) {
        coord__refuse(c, COORD_REFUSED_STALE_FENCE);
        return;
    }
    c->assigned_fence = message->fence;
    coord__event(c, COORD_EVENT_ASSIGNMENT, COORD__NO_REF, COORD_NEVER, true);
}

/* An event that waits shows the message that it came with. */
static bool shows_message(const struct coord_coordinator *c)
{
    bool shows = false;
    for (unsigned i = 0; i < c->event_count; i++) {
        shows = shows || c->events[(c->event_first + i) % COORD__EVENTS].with_message;
    }
    return shows;
}

enum coord_err coord_coordinator_handle(struct coord_coordinator *coordinator,
                                        enum coord_message_type type, const void *bytes,
                                        size_t count, coord_ms now)
{
    struct coord_coordinator *c = coordinator;
    if (c->event_count + COORD__EVENTS_EACH > COORD__EVENTS || shows_message(c)) {
        return COORD_E_BUSY;
    }
    coord__pass(c, now);
    coord__peer_expect(c, bytes, count);
    enum coord_message_fault fault = coord__message_decode(type, bytes, count, &c->message);
    if (fault != COORD_FAULT_NONE) {
        c->counts.fault[fault]++;
        return COORD_E_BAD_MESSAGE;
    }
    switch (type) {
    case COORD_MESSAGE_HEARTBEAT:
        take_heartbeat(c, &c->message);
        break;
    case COORD_MESSAGE_SHUTDOWN:
        take_notice(c, &c->message);
        break;
    case COORD_MESSAGE_WORK_ASSIGNMENT:
        take_assignment(c, &c->message);
        break;
    case COORD_MESSAGE_FINISHED:
        take_finished(c, &c->message);
        break;
    case COORD_MESSAGE_ORPHANS:
    default:
        coord__orphans(c, &c->message);
        break;
    }
    return COORD_OK;
}

void coord_coordinator_lead(struct coord_coordinator *coordinator, bool leading, uint64_t fence,
                            coord_ms until, coord_ms now)
{
    struct coord_coordinator *c = coordinator;
    coord__pass(c, now);
    bool new = leading && (!c->leading || fence != c->fence);
    c->leading = leading;
    c->leading_until = until;
    if (!leading) {
        c->table_at = COORD_NEVER;
        c->table_open = false;
        return;
    }
    c->fence = fence;
    if (new) {
        c->highest_fence = fence > c->highest_fence ? fence : c->highest_fence;
        c->table_at = c->now;
        c->table_started = false;
        c->seq_used = 0;
        coord__reports_led(c);
    }
}

bool coord_coordinator_remove_peer(struct coord_coordinator *coordinator, const char *id,
                                   size_t id_bytes)
{
    struct coord_coordinator *c = coordinator;
    bool found = false;
    for (;;) {
        uint32_t ref = coord__peer_find(c, id, id_bytes, NULL);
        if (ref == COORD__NO_REF || ref == c->self) {
            return found;
        }
        coord__peer_retire(c, ref);
        found = true;
    }
}

/* ---- what comes out ---- */

static void show_event(struct coord_coordinator *c, const struct coord__event *event,
                       struct coord_event *out)
{
    out->kind = event->kind;
    out->message = event->with_message ? &c->message : NULL;
    out->deadline = event->deadline;
    if (event->peer != COORD__NO_REF) {
        coord__show_peer(c, event->peer, &out->peer);
    }
}

static void look_back(struct coord_coordinator *c)
{
    if (c->now < c->forget_at) {
        return;
    }
    bool more = coord__forget(c);
    c->forget_at = coord_ms_add(c->now, more ? 1 : c->config.timeout);
    if (!more) {
        coord__reports_forget(c);
    }
}

/* @param out  zero. */
static bool waiting_event(struct coord_coordinator *c, struct coord_event *out)
{
    if (c->event_count == 0) {
        return coord__report_event(c, out);
    }
    struct coord__event event = c->events[c->event_first];
    c->event_first = (c->event_first + 1) % COORD__EVENTS;
    c->event_count--;
    show_event(c, &event, out);
    return true;
}

bool coord_coordinator_next_heard(struct coord_coordinator *coordinator, coord_ms now,
                                  struct coord_event *out)
{
    coord__pass(coordinator, now);
    memset(out, 0, sizeof *out);
    return waiting_event(coordinator, out);
}

bool coord_coordinator_next_event(struct coord_coordinator *coordinator, coord_ms now,
                                  struct coord_event *out)
{
    struct coord_coordinator *c = coordinator;
    coord__pass(c, now);
    memset(out, 0, sizeof *out);
    do {
        if (waiting_event(c, out)) {
            return true;
        }
    } while (coord__pass_deadlines(c) || coord__pass_silence(c));
    look_back(c);
    return false;
}

coord_ms coord_coordinator_deadline(struct coord_coordinator *coordinator)
{
    struct coord_coordinator *c = coordinator;
    coord_ms at = COORD_NEVER;
    if (!c->config.observer && !c->finishing) {
        at = c->beat_again ? c->now : c->beat_at;
    }
    if (c->finishing && !c->finished) {
        at = coord_ms_min(at, c->finish_at);
    }
    uint32_t first = c->peers.alive.first;
    if (first != COORD__NO_REF && first == c->self) {
        first = coord__peer_at(&c->peers, first)->next;
    }
    if (first != COORD__NO_REF && coord__judging(c)) {
        coord_ms heard = coord_ms_max(coord__peer_at(&c->peers, first)->last_heard, c->anew);
        at = coord_ms_min(at, coord_ms_add(heard, c->config.timeout));
    }
    if (c->peers.heap_count > 0) {
        at = coord_ms_min(at, coord__peer_at(&c->peers, c->peers.heap[0])->extra->deadline);
    }
    if (c->peers.dead.first != COORD__NO_REF || c->reports.used > c->reports.open) {
        at = coord_ms_min(at, c->forget_at);
    }
    if (coord__leading(c)) {
        /* Before the first table of a term we have to have listened for one T. */
        coord_ms ready = coord__judging(c) ? coord_ms_add(c->anew, c->config.timeout) : COORD_NEVER;
        at = coord_ms_min(at, c->table_started ? c->table_at : coord_ms_max(c->table_at, ready));
        at = coord_ms_min(at, c->table_open ? c->part_at : COORD_NEVER);
        at = coord_ms_min(at, c->reports.queue.first != COORD__NO_REF ? ready : COORD_NEVER);
    }
    at = coord_ms_min(at, c->hint_at);
    c->promised = at;
    return at;
}
