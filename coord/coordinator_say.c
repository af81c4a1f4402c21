/* SPDX-License-Identifier: MIT
 * coord/coordinator_say.c - reports as messages: a leader's news and its table, and hints to it.
 */
#include "coord/coordinator_inside.h"
#include "coord/rule.h"

#include <string.h>

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
    return coord__message_form(c, message, out);
}

bool coord__say_news(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
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
        coord__message_begin(c, COORD_MESSAGE_ORPHANS, wall, &message);
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

bool coord__say_table(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
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
    coord__message_begin(c, COORD_MESSAGE_ORPHANS, wall, &message);
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

bool coord__say_hint(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out)
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
    coord__message_begin(c, COORD_MESSAGE_ORPHANS, wall, &message);
    message.kind = COORD_ORPHANS_HINT;
    message.fence = c->highest_fence;
    return form_reports(c, &message, refs, count, wall, out);
}
