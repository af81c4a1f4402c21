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

static void begin(const struct coord_coordinator *c, enum coord_message_type type, int64_t wall,
                  struct coord_message *message)
{
    memset(message, 0, sizeof *message);
    message->type = type;
    message->instance_id = coord_text(c->id, c->id_bytes);
    message->incarnation = coord_text(c->incarnation, COORD_OWNER_HEX - 1);
    message->at_us = wall;
    message->sent_at_us = wall;
}

/* false: it is longer than a message may be. */
static bool form(struct coord_coordinator *c, const struct coord_message *message,
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
    begin(c, COORD_MESSAGE_HEARTBEAT, wall, &message);
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
    return form(c, &message, out);
}

static bool notice(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
{
    struct coord_message message;
    if (!c->notice_due || c->config.observer) {
        return false;
    }
    c->notice_due = false;
    begin(c, COORD_MESSAGE_SHUTDOWN, wall, &message);
    message.seq = ++c->seq;
    message.intent = c->intent;
    message.subscriptions = c->subscriptions;
    message.in_flight_count = c->in_flight_count;
    coord_ms left = coord_ms_min(coord_ms_sub(c->deadline, c->now), COORD__ENDLESS);
    message.completion_us = coord_time_at(wall, c->now, coord_ms_add(c->now, left));
    message.has_sent_at = true;
    return form(c, &message, out);
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
    begin(c, COORD_MESSAGE_FINISHED, wall, &message);
    message.seq = ++c->seq;
    message.subscriptions = c->subscriptions;
    message.has_sent_at = true;
    return form(c, &message, out);
}

/* ---- reports ---- */

bool coord__may_report(const struct coord_coordinator *c)
{
    return coord__judging(c) && c->now >= coord_ms_add(c->anew, c->config.timeout);
}

static void incarnation_text(const unsigned char *incarnation, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < COORD_OWNER_BYTES; i++) {
        out[2 * i] = digits[incarnation[i] >> 4];
        out[2 * i + 1] = digits[incarnation[i] & 0x0f];
    }
}

static void write_report(const struct coord_coordinator *c, const struct coord__report *report,
                         int64_t wall, struct coord_writer *writer)
{
    char incarnation[COORD_OWNER_HEX];
    struct coord_report_wire wire;
    const struct coord__name *name = c->names.name[report->name];
    memset(&wire, 0, sizeof wire);
    memcpy(wire.id, report->id, sizeof wire.id);
    wire.fence = report->fence;
    wire.seq = report->seq;
    wire.instance_id = coord_text(report->peer_id, report->peer_bytes);
    if (report->has_incarnation) {
        incarnation_text(report->incarnation, incarnation);
        wire.incarnation = coord_text(incarnation, COORD_OWNER_HEX - 1);
    }
    wire.subscription = coord_text(name->text, name->bytes);
    wire.cause = (enum coord_cause)report->cause;
    wire.certainty = (enum coord_certainty)report->certainty;
    wire.since_us = coord_time_at(wall, c->now, report->since);
    wire.has_deadline = report->deadline != COORD_NEVER;
    wire.deadline_us = coord_time_at(wall, c->now, report->deadline);
    wire.safe_after_us = coord_time_at(wall, c->now, report->safe_after);
    coord_report_write(writer, &wire);
}

/* What goes into one message, in either form, and how many messages go out at once. */
enum {
    REPORTS_ROOM = COORD_MESSAGE_MAX - 2048,
    REPORTS_PART = 256, /* that one message carries */
    PARTS_AT_ONCE = 8   /* of a table: more of them would not fit into what a bus keeps */
};

static size_t room_of(const struct coord_coordinator *c, const struct coord__report *report)
{
    /* A control character is six bytes of JSON. */
    return 512 + 6 * ((size_t)report->peer_bytes + c->names.name[report->name]->bytes);
}

/* Several reports as an array of msgpack in c->work, and the message around it. */
static bool form_reports(struct coord_coordinator *c, struct coord_message *message,
                         const uint32_t *refs, uint32_t count, int64_t wall,
                         struct coord_outgoing *out)
{
    struct coord_writer writer;
    size_t bytes = 0;
    coord_writer_begin(&writer, COORD_FORM_MSGPACK, c->work, sizeof c->work);
    coord_write_array(&writer, count);
    for (uint32_t i = 0; i < count; i++) {
        write_report(c, c->reports.at[refs[i]], wall, &writer);
    }
    coord_write_end(&writer);
    if (coord_writer_finish(&writer, &bytes) != COORD_OK ||
        coord_view(c->work, bytes, &message->reports) != COORD_FAULT_NONE) {
        return false;
    }
    return form(c, message, out);
}

static bool news(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
{
    struct coord_message message;
    while (c->reports.sends.first != COORD__NO_REF) {
        uint32_t ref = c->reports.sends.first;
        struct coord__report *report = c->reports.at[ref];
        c->reports.sends.first = report->send_next;
        if (report->send_next == COORD__NO_REF) {
            c->reports.sends.last = COORD__NO_REF;
        }
        report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_SEND;
        if (!coord__leading(c)) {
            continue;
        }
        begin(c, COORD_MESSAGE_ORPHANS, wall, &message);
        message.kind = report->news;
        message.fence = c->fence;
        if (form_reports(c, &message, &ref, 1, wall, out)) {
            return true;
        }
    }
    return false;
}

/* ---- the table ---- */

static int compare(const struct coord_coordinator *c, uint32_t a, uint32_t b)
{
    return memcmp(c->reports.at[a]->id, c->reports.at[b]->id, COORD_REPORT_ID_BYTES);
}

static void sift(struct coord_coordinator *c, uint32_t root, uint32_t count)
{
    uint32_t *sorted = c->reports.sorted;
    for (;;) {
        uint32_t child = root * 2 + 1;
        if (child >= count) {
            return;
        }
        if (child + 1 < count && compare(c, sorted[child], sorted[child + 1]) < 0) {
            child++;
        }
        if (compare(c, sorted[root], sorted[child]) >= 0) {
            return;
        }
        uint32_t kept = sorted[root];
        sorted[root] = sorted[child];
        sorted[child] = kept;
        root = child;
    }
}

static void sort_reports(struct coord_coordinator *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->reports.count && !c->reports.order; i++) {
        if (c->reports.at[i] != NULL) {
            c->reports.sorted[count++] = i;
        }
    }
    if (c->reports.order) {
        return;
    }
    for (uint32_t i = count / 2; i > 0; i--) {
        sift(c, i - 1, count);
    }
    for (uint32_t i = count; i > 1; i--) {
        uint32_t kept = c->reports.sorted[0];
        c->reports.sorted[0] = c->reports.sorted[i - 1];
        c->reports.sorted[i - 1] = kept;
        sift(c, 0, i - 1);
    }
    c->reports.order = true;
}

/* Open reports from `table_from` on, up to what one message carries. `*end`: it was the last. */
static uint32_t take_part(struct coord_coordinator *c, uint32_t *refs, bool *end)
{
    uint32_t count = 0;
    size_t room = REPORTS_ROOM;
    *end = true;
    for (uint32_t i = 0; i < c->reports.used; i++) {
        uint32_t ref = c->reports.sorted[i];
        struct coord__report *report = c->reports.at[ref];
        if ((report->flags & COORD__REPORT_OPEN) == 0 ||
            memcmp(report->id, c->table_from, COORD_REPORT_ID_BYTES) < 0) {
            continue;
        }
        size_t bytes = room_of(c, report);
        if (count == COORD__RULE(reports_in_a_part, REPORTS_PART) || bytes > room) {
            *end = false;
            break;
        }
        room -= bytes;
        refs[count++] = ref;
        report->listed_at = c->now;
        /* What has changed since it was told has another number, though it is told later. */
        if (report->fence != c->fence || (report->flags & COORD__REPORT_TELL) != 0) {
            report->seq = (report->fence == c->fence ? report->seq : c->seq_used) + 1;
            report->fence = c->fence;
        }
    }
    return count;
}

/* The id behind this one; there is one, as another report follows. */
static void step(unsigned char *id)
{
    for (unsigned i = COORD_REPORT_ID_BYTES; i > 0; i--) {
        if (++id[i - 1] != 0) {
            return;
        }
    }
}

/* A long table takes half a T: at once, a bus would drop its end, and each time the same. */
static coord_ms next_part_at(const struct coord_coordinator *c, uint32_t count)
{
    if (c->table_parts % PARTS_AT_ONCE != 0) {
        return c->now;
    }
    coord_ms share = c->config.timeout / 2 * count * PARTS_AT_ONCE / (c->reports.open + 1);
    return coord_ms_add(c->now, share);
}

static bool table(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
{
    uint32_t refs[REPORTS_PART];
    struct coord_message message;
    bool end = true;
    if (!coord__leading(c) || c->now < (c->table_open ? c->part_at : c->table_at) ||
        (!c->table_started && !coord__may_report(c))) {
        return false;
    }
    if (!c->table_open) {
        c->table_open = true;
        c->table_started = true;
        c->table_parts = 0;
        memset(c->table_from, 0, sizeof c->table_from);
        c->table_at = coord_ms_add(c->now, c->config.timeout);
    }
    sort_reports(c);
    uint32_t count = take_part(c, refs, &end);
    begin(c, COORD_MESSAGE_ORPHANS, wall, &message);
    message.kind = COORD_ORPHANS_TABLE;
    message.fence = c->fence;
    message.timeout = c->config.timeout;
    message.interval = c->config.interval;
    message.judging = coord__judging(c);
    message.heard =
        COORD__RULE(says_how_long_it_heard, message.judging ? coord_ms_sub(c->now, c->anew) : 0);
    memcpy(message.first, c->table_from, sizeof message.first);
    memset(message.last, 0xff, sizeof message.last);
    if (!end) {
        memcpy(message.last, c->reports.at[refs[count - 1]]->id, sizeof message.last);
        memcpy(c->table_from, message.last, sizeof c->table_from);
        step(c->table_from);
    }
    c->table_open = !end;
    c->table_parts++;
    c->part_at = next_part_at(c, count);
    return form_reports(c, &message, refs, count, wall, out);
}

static bool hint(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
{
    uint32_t refs[REPORTS_PART / 8];
    struct coord_message message;
    uint32_t count = 0;
    size_t room = REPORTS_ROOM;
    if (c->now < c->hint_at || c->hint_at == COORD_NEVER) {
        return false;
    }
    for (uint32_t i = 0; i < c->reports.count && count < REPORTS_PART / 8; i++) {
        struct coord__report *report = c->reports.at[i];
        if (report != NULL && (report->flags & COORD__REPORT_HINT) != 0 &&
            room_of(c, report) <= room) {
            room -= room_of(c, report);
            report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_HINT;
            report->hinted_at = c->now;
            refs[count++] = i;
        }
    }
    if (count == 0 || coord__leading(c)) {
        c->hint_at = COORD_NEVER;
        return false;
    }
    begin(c, COORD_MESSAGE_ORPHANS, wall, &message);
    message.kind = COORD_ORPHANS_HINT;
    message.fence = c->highest_fence;
    return form_reports(c, &message, refs, count, wall, out);
}

bool coord_coordinator_next_message(struct coord_coordinator *coordinator, coord_ms now,
                                    int64_t wall, struct coord_outgoing *out)
{
    struct coord_coordinator *c = coordinator;
    coord__pass(c, now);
    return notice(c, wall, out) || heartbeat(c, wall, out) || last_word(c, wall, out) ||
           news(c, wall, out) || table(c, wall, out) || hint(c, wall, out);
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
    begin(c, COORD_MESSAGE_WORK_ASSIGNMENT, wall, &message);
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
