/* SPDX-License-Identifier: MIT
 * coord/message.c - messages that coord acts on: every value typed, every time an instant.
 */
#include "coord/message.h"

#include <string.h>

static const char *const intents[] = {"graceful", "preemption", "health_failure", "maintenance"};
static const char *const kinds[] = {"opened", "updated", "resolved", "table", "hint"};
static const char *const causes[] = {"draining", "overrun", "silent", "finished"};
static const char *const certainties[] = {"announced", "suspected"};

#define COUNT(words)       (sizeof(words) / sizeof((words)[0]))
#define NAME(words, value) ((unsigned)(value) < COUNT(words) ? (words)[value] : "unknown")

const char *coord_intent_name(enum coord_intent intent)
{
    return NAME(intents, intent);
}

const char *coord_orphans_kind_name(enum coord_orphans_kind kind)
{
    return NAME(kinds, kind);
}

const char *coord_cause_name(enum coord_cause cause)
{
    return NAME(causes, cause);
}

const char *coord_certainty_name(enum coord_certainty certainty)
{
    return NAME(certainties, certainty);
}

bool coord_intent_parse(const char *text, size_t bytes, enum coord_intent *out)
{
    for (unsigned i = 0; i < COUNT(intents); i++) {
        if (bytes == strlen(intents[i]) && memcmp(text, intents[i], bytes) == 0) {
            *out = (enum coord_intent)i;
            return true;
        }
    }
    return false;
}

/* Which of the words it is; `count`: none of them. */
static unsigned word_of(const struct coord_value *value, const char *const *words, unsigned count)
{
    unsigned i = 0;
    while (i < count && !coord_view_is(value, words[i], strlen(words[i]))) {
        i++;
    }
    return i;
}

/* ---- reading ---- */

/* The reading of one message: the first fault stays. */
struct reader {
    enum coord_message_fault fault;
};

static bool given(const struct coord_value *value)
{
    return value->kind != COORD_KIND_ABSENT && value->kind != COORD_KIND_NULL;
}

static void note(struct reader *reader, enum coord_message_fault fault)
{
    if (reader->fault == COORD_FAULT_NONE) {
        reader->fault = fault;
    }
}

static struct coord_value text(struct reader *reader, const struct coord_value *value, size_t most)
{
    if (value->kind != COORD_KIND_TEXT) {
        note(reader, COORD_FAULT_WRONG_TYPE);
        return *value;
    }
    size_t bytes = value->escaped ? coord_view_text(value, NULL, 0) : value->count;
    if (bytes == 0 || bytes > most) {
        note(reader, COORD_FAULT_BAD_ID);
    }
    return *value;
}

static struct coord_value incarnation(struct reader *reader, const struct coord_value *value)
{
    if (!given(value)) {
        return (struct coord_value){.kind = COORD_KIND_ABSENT};
    }
    return text(reader, value, COORD_INCARNATION_MAX);
}

static struct coord_value subscriptions(struct reader *reader, const struct coord_value *value)
{
    if (!given(value)) {
        return (struct coord_value){.kind = COORD_KIND_ABSENT};
    }
    if (value->kind != COORD_KIND_ARRAY) {
        note(reader, COORD_FAULT_WRONG_TYPE);
        return *value;
    }
    if (value->count > COORD_SUBSCRIPTIONS_MAX) {
        note(reader, COORD_FAULT_COUNT);
        return *value;
    }
    if (value->form == COORD_FORM_MSGPACK && coord__msgpack_names(value, COORD_NAME_MAX)) {
        return *value;
    }
    struct coord_walk walk;
    struct coord_value name;
    coord_walk_begin(value, &walk);
    while (coord_walk_next(&walk, NULL, &name)) {
        (void)text(reader, &name, COORD_NAME_MAX);
    }
    return *value;
}

static int64_t instant(struct reader *reader, const struct coord_value *value)
{
    char copy[COORD_VIEW_NUMBER_MAX];
    const char *at = value->of.text;
    size_t bytes = value->count;
    struct coord_time time = {0, 0, false};
    if (value->kind != COORD_KIND_TEXT) {
        note(reader, COORD_FAULT_WRONG_TYPE);
        return 0;
    }
    if (value->escaped) {
        bytes = coord_view_text(value, copy, sizeof copy);
        at = copy;
    }
    if ((value->escaped && bytes > sizeof copy) || !coord_time_text_parse(at, bytes, &time)) {
        note(reader, COORD_FAULT_BAD_TIME);
    } else if (time.naive) {
        note(reader, COORD_FAULT_NAIVE_TIME);
    }
    return coord_time_epoch(&time);
}

static int64_t integer(struct reader *reader, const struct coord_value *value)
{
    if (!given(value)) {
        return 0;
    }
    if (value->kind != COORD_KIND_INTEGER) {
        bool wide = value->kind == COORD_KIND_NATURAL || value->kind == COORD_KIND_LONG;
        note(reader, wide ? COORD_FAULT_OUT_OF_RANGE : COORD_FAULT_WRONG_TYPE);
        return 0;
    }
    return value->of.integer;
}

static uint64_t natural(struct reader *reader, const struct coord_value *value)
{
    if (value->kind == COORD_KIND_NATURAL) {
        return value->of.natural;
    }
    int64_t number = integer(reader, value);
    if (number < 0) {
        note(reader, COORD_FAULT_OUT_OF_RANGE);
        return 0;
    }
    return (uint64_t)number;
}

static bool boolean(struct reader *reader, const struct coord_value *value)
{
    if (!given(value)) {
        return false;
    }
    if (value->kind != COORD_KIND_BOOLEAN) {
        note(reader, COORD_FAULT_WRONG_TYPE);
        return false;
    }
    return value->of.boolean;
}

static double real(struct reader *reader, const struct coord_value *value)
{
    if (value->kind == COORD_KIND_REAL) {
        return value->of.real;
    }
    return (double)integer(reader, value);
}

/* A duration that does not reach past the end of our clock. */
static coord_ms duration(struct reader *reader, const struct coord_value *value)
{
    uint64_t ms = natural(reader, value);
    if (ms > UINT64_C(1) << 52) {
        note(reader, COORD_FAULT_OUT_OF_RANGE);
        return 0;
    }
    return ms;
}

static enum coord_intent intent(struct reader *reader, const struct coord_value *value)
{
    unsigned word = word_of(value, intents, COUNT(intents));
    if (word == COUNT(intents)) {
        note(reader, COORD_FAULT_BAD_INTENT);
        return COORD_INTENT_GRACEFUL;
    }
    return (enum coord_intent)word;
}

static void sent_at(struct reader *reader, const struct coord_value *value,
                    struct coord_message *out)
{
    out->has_sent_at = given(value);
    if (out->has_sent_at) {
        out->sent_at_us = instant(reader, value);
    }
}

static void leaving(struct reader *reader, const struct coord_value *value,
                    struct coord_message *out)
{
    if (!given(value)) {
        return;
    }
    if (value->kind != COORD_KIND_MAP) {
        note(reader, COORD_FAULT_WRONG_TYPE);
        return;
    }
    bool found = false;
    bool timed = false;
    struct coord_walk walk;
    struct coord_value key;
    struct coord_value item;
    coord_walk_begin(value, &walk);
    while (coord_walk_next(&walk, &key, &item)) {
        if (coord_view_is(&key, "intent", 6)) {
            out->intent = intent(reader, &item);
            found = true;
        } else if (coord_view_is(&key, "remaining_ms", 12)) {
            out->remaining = duration(reader, &item);
            timed = true;
        }
    }
    out->leaving = true;
    if (!found || !timed) {
        note(reader, COORD_FAULT_MISSING_KEY);
    }
}

static void read_heartbeat(struct reader *reader, const struct coord_value *field,
                           struct coord_message *out)
{
    out->instance_id = text(reader, &field[COORD_HEARTBEAT_INSTANCE_ID], COORD_NAME_MAX);
    out->at_us = instant(reader, &field[COORD_HEARTBEAT_TIMESTAMP]);
    out->subscriptions = subscriptions(reader, &field[COORD_HEARTBEAT_SUBSCRIPTIONS]);
    out->in_flight_count = integer(reader, &field[COORD_HEARTBEAT_IN_FLIGHT_COUNT]);
    out->is_leader = boolean(reader, &field[COORD_HEARTBEAT_IS_LEADER]);
    out->load_factor = real(reader, &field[COORD_HEARTBEAT_LOAD_FACTOR]);
    out->incarnation = incarnation(reader, &field[COORD_HEARTBEAT_INCARNATION]);
    out->seq = natural(reader, &field[COORD_HEARTBEAT_SEQ]);
    out->fence = natural(reader, &field[COORD_HEARTBEAT_FENCE]);
    sent_at(reader, &field[COORD_HEARTBEAT_SENT_AT], out);
    leaving(reader, &field[COORD_HEARTBEAT_LEAVING], out);
}

static void read_shutdown(struct reader *reader, const struct coord_value *field,
                          struct coord_message *out)
{
    out->instance_id = text(reader, &field[COORD_SHUTDOWN_INSTANCE_ID], COORD_NAME_MAX);
    out->intent = intent(reader, &field[COORD_SHUTDOWN_INTENT]);
    out->at_us = instant(reader, &field[COORD_SHUTDOWN_INITIATED_AT]);
    out->completion_us = instant(reader, &field[COORD_SHUTDOWN_EXPECTED_COMPLETION_AT]);
    out->subscriptions = subscriptions(reader, &field[COORD_SHUTDOWN_SUBSCRIPTIONS]);
    out->in_flight_count = integer(reader, &field[COORD_SHUTDOWN_IN_FLIGHT_COUNT]);
    out->metadata = field[COORD_SHUTDOWN_METADATA];
    if (given(&out->metadata) && out->metadata.kind != COORD_KIND_MAP) {
        note(reader, COORD_FAULT_WRONG_TYPE);
    }
    out->incarnation = incarnation(reader, &field[COORD_SHUTDOWN_INCARNATION]);
    out->seq = natural(reader, &field[COORD_SHUTDOWN_SEQ]);
    sent_at(reader, &field[COORD_SHUTDOWN_SENT_AT], out);
}

static void read_assignment(struct reader *reader, const struct coord_value *field,
                            struct coord_message *out)
{
    out->target = text(reader, &field[COORD_ASSIGNMENT_TARGET_INSTANCE_ID], COORD_NAME_MAX);
    out->subscriptions = subscriptions(reader, &field[COORD_ASSIGNMENT_SUBSCRIPTIONS]);
    out->instance_id = text(reader, &field[COORD_ASSIGNMENT_SOURCE_INSTANCE_ID], COORD_NAME_MAX);
    out->at_us = instant(reader, &field[COORD_ASSIGNMENT_ASSIGNED_AT]);
    out->priority = integer(reader, &field[COORD_ASSIGNMENT_PRIORITY]);
    out->fence = natural(reader, &field[COORD_ASSIGNMENT_FENCE]);
    sent_at(reader, &field[COORD_ASSIGNMENT_SENT_AT], out);
}

static void read_finished(struct reader *reader, const struct coord_value *field,
                          struct coord_message *out)
{
    out->instance_id = text(reader, &field[COORD_FINISHED_INSTANCE_ID], COORD_NAME_MAX);
    out->incarnation = text(reader, &field[COORD_FINISHED_INCARNATION], COORD_INCARNATION_MAX);
    out->subscriptions = subscriptions(reader, &field[COORD_FINISHED_SUBSCRIPTIONS]);
    out->at_us = instant(reader, &field[COORD_FINISHED_FINISHED_AT]);
    out->seq = natural(reader, &field[COORD_FINISHED_SEQ]);
    sent_at(reader, &field[COORD_FINISHED_SENT_AT], out);
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static void report_id(struct reader *reader, const struct coord_value *value, unsigned char *out)
{
    char digits[COORD_REPORT_ID_TEXT];
    if (value->kind != COORD_KIND_TEXT) {
        note(reader, COORD_FAULT_WRONG_TYPE);
        return;
    }
    if (coord_view_text(value, digits, sizeof digits) != COORD_REPORT_ID_TEXT - 1) {
        note(reader, COORD_FAULT_BAD_ID);
        return;
    }
    for (unsigned i = 0; i < COORD_REPORT_ID_BYTES; i++) {
        int high = hex_digit(digits[2 * i]);
        int low = hex_digit(digits[2 * i + 1]);
        if (high < 0 || low < 0) {
            note(reader, COORD_FAULT_BAD_ID);
            return;
        }
        out[i] = (unsigned char)(high * 16 + low);
    }
}

static void read_orphans(struct reader *reader, const struct coord_value *field,
                         struct coord_message *out)
{
    unsigned kind = word_of(&field[COORD_ORPHANS_KIND], kinds, COUNT(kinds));
    if (kind == COUNT(kinds)) {
        note(reader, COORD_FAULT_BAD_WORD);
        return;
    }
    out->kind = (enum coord_orphans_kind)kind;
    out->instance_id = text(reader, &field[COORD_ORPHANS_INSTANCE_ID], COORD_NAME_MAX);
    out->incarnation = incarnation(reader, &field[COORD_ORPHANS_INCARNATION]);
    out->fence = natural(reader, &field[COORD_ORPHANS_FENCE]);
    sent_at(reader, &field[COORD_ORPHANS_SENT_AT], out);
    out->at_us = out->sent_at_us;
    out->timeout = duration(reader, &field[COORD_ORPHANS_TIMEOUT_MS]);
    out->interval = duration(reader, &field[COORD_ORPHANS_INTERVAL_MS]);
    out->heard = duration(reader, &field[COORD_ORPHANS_HEARD_MS]);
    out->judging = boolean(reader, &field[COORD_ORPHANS_JUDGING]);
    if (out->kind == COORD_ORPHANS_TABLE) {
        report_id(reader, &field[COORD_ORPHANS_FIRST], out->first);
        report_id(reader, &field[COORD_ORPHANS_LAST], out->last);
    }
    out->reports = field[COORD_ORPHANS_REPORTS];
    if (out->reports.kind != COORD_KIND_ARRAY) {
        note(reader, COORD_FAULT_WRONG_TYPE);
        return;
    }
    struct coord_walk walk;
    struct coord_value element;
    struct coord_report_wire ignored;
    coord_walk_begin(&out->reports, &walk);
    while (reader->fault == COORD_FAULT_NONE && coord_walk_next(&walk, NULL, &element)) {
        note(reader, coord_report_read(&element, &ignored));
    }
}

enum coord_message_fault coord__message_decode(enum coord_message_type type, const void *bytes,
                                               size_t count, struct coord_message *out)
{
    struct coord_record record;
    struct reader reader = {coord_record_read(type, bytes, count, &record)};
    if (reader.fault != COORD_FAULT_NONE) {
        return reader.fault;
    }
    memset(out, 0, sizeof *out);
    out->type = type;
    switch (type) {
    case COORD_MESSAGE_HEARTBEAT:
        read_heartbeat(&reader, record.field, out);
        break;
    case COORD_MESSAGE_SHUTDOWN:
        read_shutdown(&reader, record.field, out);
        break;
    case COORD_MESSAGE_WORK_ASSIGNMENT:
        read_assignment(&reader, record.field, out);
        break;
    case COORD_MESSAGE_FINISHED:
        read_finished(&reader, record.field, out);
        break;
    case COORD_MESSAGE_ORPHANS:
    default:
        read_orphans(&reader, record.field, out);
        break;
    }
    if (!out->has_sent_at) {
        out->sent_at_us = out->at_us;
    }
    return reader.fault;
}

enum coord_message_fault coord_message_decode(enum coord_message_type type, const void *bytes,
                                              size_t count, struct coord_message *out)
{
    struct coord_message message;
    enum coord_message_fault fault = coord__message_decode(type, bytes, count, &message);
    if (fault == COORD_FAULT_NONE) {
        *out = message;
    }
    return fault;
}

/* ---- reports ---- */

static void read_report_member(struct reader *reader, const struct coord_value *key,
                               const struct coord_value *item, struct coord_report_wire *out)
{
    if (coord_view_is(key, "report_id", 9)) {
        report_id(reader, item, out->id);
    } else if (coord_view_is(key, "fence", 5)) {
        out->fence = natural(reader, item);
    } else if (coord_view_is(key, "seq", 3)) {
        out->seq = natural(reader, item);
    } else if (coord_view_is(key, "instance_id", 11)) {
        out->instance_id = text(reader, item, COORD_NAME_MAX);
    } else if (coord_view_is(key, "incarnation", 11)) {
        out->incarnation = incarnation(reader, item);
    } else if (coord_view_is(key, "subscriptions", 13)) {
        struct coord_walk walk;
        struct coord_value names = subscriptions(reader, item);
        coord_walk_begin(&names, &walk);
        if (names.count != 1 || !coord_walk_next(&walk, NULL, &out->subscription)) {
            note(reader, COORD_FAULT_OUT_OF_RANGE);
        }
    } else if (coord_view_is(key, "since", 5)) {
        out->since_us = instant(reader, item);
    } else if (coord_view_is(key, "deadline", 8)) {
        out->has_deadline = given(item);
        out->deadline_us = out->has_deadline ? instant(reader, item) : 0;
    } else if (coord_view_is(key, "safe_after", 10)) {
        out->safe_after_us = instant(reader, item);
    } else if (coord_view_is(key, "cause", 5)) {
        unsigned word = word_of(item, causes, COUNT(causes));
        out->cause = (enum coord_cause)word;
        note(reader, word == COUNT(causes) ? COORD_FAULT_BAD_WORD : COORD_FAULT_NONE);
    } else if (coord_view_is(key, "certainty", 9)) {
        unsigned word = word_of(item, certainties, COUNT(certainties));
        out->certainty = (enum coord_certainty)word;
        note(reader, word == COUNT(certainties) ? COORD_FAULT_BAD_WORD : COORD_FAULT_NONE);
    }
}

enum coord_message_fault coord_report_read(const struct coord_value *element,
                                           struct coord_report_wire *out)
{
    static const char *const required[] = {"report_id",   "fence",         "seq",
                                           "instance_id", "subscriptions", "cause",
                                           "certainty",   "since",         "safe_after"};
    struct reader reader = {COORD_FAULT_NONE};
    if (element->kind != COORD_KIND_MAP) {
        return COORD_FAULT_WRONG_TYPE;
    }
    memset(out, 0, sizeof *out);
    unsigned seen = 0;
    struct coord_walk walk;
    struct coord_value key;
    struct coord_value item;
    coord_walk_begin(element, &walk);
    while (coord_walk_next(&walk, &key, &item)) {
        unsigned word = word_of(&key, required, COUNT(required));
        seen |= word < COUNT(required) ? 1U << word : 0U;
        read_report_member(&reader, &key, &item, out);
    }
    if (seen != (1U << COUNT(required)) - 1U) {
        note(&reader, COORD_FAULT_MISSING_KEY);
    }
    return reader.fault;
}
