/* SPDX-License-Identifier: MIT
 * coord/coordinator_send.c - the messages that are to be sent, formed as they are pulled.
 */
#include "coord/coordinator_inside.h"
#include "coord/rule.h"

#include <stdlib.h>
#include <string.h>

/* ---- what we are ---- */

/* In the form of our messages, with room for all else that they say; and others can read it. */
static bool fits(struct coord_coordinator *c, const struct coord_value *subscriptions)
{
    size_t bytes = 0;
    struct coord_message trial = {.type = COORD_MESSAGE_HEARTBEAT,
                                  .instance_id = coord_text(c->id, c->id_bytes),
                                  .subscriptions = *subscriptions};
    return coord_message_encode(&trial, c->config.form, c->out, sizeof c->out - 4096, &bytes) ==
           COORD_OK;
}

enum coord_err coord_coordinator_serve(struct coord_coordinator *coordinator,
                                       const struct coord_value *subscriptions,
                                       int64_t in_flight_count, double load_factor)
{
    struct coord_coordinator *c = coordinator;
    struct coord_writer writer;
    size_t bytes = 0;
    struct coord_value checked = {.kind = COORD_KIND_ABSENT};
    unsigned char *copy = NULL;
    if (!(load_factor - load_factor == 0.0)) {
        return COORD_E_BAD_ARGUMENT;
    }
    if (subscriptions->kind == COORD_KIND_ARRAY) {
        coord_writer_begin(&writer, COORD_FORM_MSGPACK, c->work, sizeof c->work / 2);
        coord_write_value(&writer, subscriptions);
        if (subscriptions->count > COORD_SUBSCRIPTIONS_MAX || !fits(c, subscriptions) ||
            coord_writer_finish(&writer, &bytes) != COORD_OK) {
            return COORD_E_BAD_ARGUMENT;
        }
        copy = malloc(bytes);
        if (copy == NULL) {
            return COORD_E_NO_MEMORY;
        }
        memcpy(copy, c->work, bytes);
        if (coord_view(copy, bytes, &checked) != COORD_FAULT_NONE) {
            free(copy);
            return COORD_E_BAD_ARGUMENT;
        }
    }
    free(c->served);
    c->served = copy;
    c->served_bytes = bytes;
    c->subscriptions = checked;
    c->in_flight_count = in_flight_count;
    c->load_factor = load_factor;
    return COORD_OK;
}

void coord_coordinator_leave(struct coord_coordinator *coordinator, enum coord_intent intent,
                             coord_ms deadline, coord_ms now)
{
    coordinator->leaving = true;
    coordinator->notice_due = true;
    coordinator->intent = intent;
    coordinator->deadline = deadline;
    coordinator->beat_at = coord_ms_min(coordinator->beat_at, now);
}

void coord_coordinator_withdraw(struct coord_coordinator *coordinator, coord_ms now)
{
    coordinator->leaving = false;
    coordinator->notice_due = false;
    coordinator->beat_at = coord_ms_min(coordinator->beat_at, now);
}

void coord_coordinator_finish(struct coord_coordinator *coordinator, coord_ms now)
{
    if (!coordinator->finishing) {
        coordinator->finishing = true;
        /* Who says nothing has no last word. */
        coordinator->finished = coordinator->config.observer;
        coordinator->finish_at = now;
    }
}

bool coord_coordinator_finished(const struct coord_coordinator *coordinator)
{
    return coordinator->finished;
}

bool coord_coordinator_is_leaving(const struct coord_coordinator *coordinator)
{
    return coordinator->leaving;
}

/* ---- forming ---- */

void coord__message_begin(const struct coord_coordinator *c, enum coord_message_type type,
                          int64_t wall, struct coord_message *message)
{
    memset(message, 0, sizeof *message);
    message->type = type;
    message->instance_id = coord_text(c->id, c->id_bytes);
    message->incarnation = coord_text(c->incarnation, COORD_OWNER_HEX - 1);
    message->at_us = wall;
    message->sent_at_us = wall;
}

bool coord__message_form(struct coord_coordinator *c, const struct coord_message *message,
                         struct coord_outgoing *out)
{
    out->type = message->type;
    out->bytes = c->out;
    return coord_message_encode(message, c->config.form, c->out, sizeof c->out, &out->count) ==
           COORD_OK;
}

static bool heartbeat(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
{
    struct coord_message message;
    if (c->config.observer || c->finishing || (c->now < c->beat_at && !c->beat_again)) {
        return false;
    }
    coord__message_begin(c, COORD_MESSAGE_HEARTBEAT, wall, &message);
    message.seq = ++c->seq;
    message.subscriptions = c->subscriptions;
    message.in_flight_count = c->in_flight_count;
    message.load_factor = c->load_factor;
    message.is_leader = coord__leading(c);
    message.fence = message.is_leader ? c->fence : 0;
    message.leaving = c->leaving;
    message.intent = c->leaving ? c->intent : COORD_INTENT_GRACEFUL;
    message.remaining = c->leaving ? coord_ms_sub(c->deadline, c->now) : 0;
    if (message.remaining > (coord_ms)1 << 52) {
        message.remaining = (coord_ms)1 << 52;
    }
    /* On time, so that being late adds up to one tick and no more. One that goes out besides moves
     * no other: a fleet that was cut off together beats no more together than before. */
    if (c->now >= c->beat_at) {
        c->beat_at = coord_ms_add(COORD__RULE(beats_on_time, c->beat_at), c->config.interval);
        c->beat_at = c->beat_at > c->now ? c->beat_at : coord_ms_add(c->now, c->config.interval);
    }
    c->beat_again = false;
    return coord__message_form(c, &message, out);
}

static bool notice(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
{
    struct coord_message message;
    if (!c->notice_due || c->config.observer) {
        return false;
    }
    c->notice_due = false;
    coord__message_begin(c, COORD_MESSAGE_SHUTDOWN, wall, &message);
    message.seq = ++c->seq;
    message.intent = c->intent;
    message.subscriptions = c->subscriptions;
    message.in_flight_count = c->in_flight_count;
    coord_ms left = coord_ms_min(coord_ms_sub(c->deadline, c->now), COORD__ENDLESS);
    message.completion_us = coord_time_at(wall, c->now, coord_ms_add(c->now, left));
    message.has_sent_at = true;
    return coord__message_form(c, &message, out);
}

static bool last_word(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
{
    struct coord_message message;
    if (!c->finishing || c->finished || c->config.observer) {
        return false;
    }
    if (c->leaving && c->now >= c->deadline) {
        c->finished = true; /* the deadline won: nothing is said of what has not ended */
        return false;
    }
    if (c->now < c->finish_at) {
        return false;
    }
    c->finish_at = coord_ms_add(c->now, c->config.interval);
    coord__message_begin(c, COORD_MESSAGE_FINISHED, wall, &message);
    message.seq = ++c->seq;
    message.subscriptions = c->subscriptions;
    message.has_sent_at = true;
    return coord__message_form(c, &message, out);
}

bool coord_coordinator_next_message(struct coord_coordinator *coordinator, coord_ms now,
                                    int64_t wall, struct coord_outgoing *out)
{
    struct coord_coordinator *c = coordinator;
    coord__pass(c, now);
    return notice(c, wall, out) || heartbeat(c, wall, out) || last_word(c, wall, out) ||
           coord__say_news(c, wall, out) || coord__say_table(c, wall, out) ||
           coord__say_hint(c, wall, out);
}

enum coord_err coord_coordinator_assign(struct coord_coordinator *coordinator, const char *target,
                                        const struct coord_value *subscriptions, int64_t priority,
                                        coord_ms now, int64_t wall, struct coord_outgoing *out)
{
    struct coord_coordinator *c = coordinator;
    struct coord_message message;
    size_t bytes = strlen(target);
    coord__pass(c, now);
    if (bytes == 0 || bytes > COORD_NAME_MAX) {
        return COORD_E_BAD_ARGUMENT;
    }
    if (!coord__leading(c)) {
        return COORD_E_NOT_LEADER;
    }
    coord__message_begin(c, COORD_MESSAGE_WORK_ASSIGNMENT, wall, &message);
    message.incarnation = (struct coord_value){.kind = COORD_KIND_ABSENT};
    message.target = coord_text(target, bytes);
    message.subscriptions = *subscriptions;
    message.priority = priority;
    message.fence = c->fence;
    out->type = message.type;
    out->bytes = c->out;
    enum coord_err rc =
        coord_message_encode(&message, c->config.form, c->out, sizeof c->out, &out->count);
    return rc == COORD_E_BAD_MESSAGE ? COORD_E_BAD_ARGUMENT : rc;
}

enum coord_err coord_coordinator_hand_over(struct coord_coordinator *coordinator,
                                           const struct coord_leadership *leadership, coord_ms now)
{
    coord__pass(coordinator, now);
    if (leadership == NULL || !coord__leading(coordinator) ||
        !coord_leadership_verify(leadership)) {
        return COORD_E_NOT_LEADER;
    }
    return leadership->release(leadership->ctx);
}
