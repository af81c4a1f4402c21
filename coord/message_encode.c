/* SPDX-License-Identifier: MIT
 * coord/message_encode.c - messages into bytes: the seed's keys in its order, then ours.
 */
#include "coord/message.h"

#include <string.h>

static void key(struct coord_writer *writer, const char *name)
{
    coord__write_key(writer, name);
}

static void word(struct coord_writer *writer, const char *name, const char *text)
{
    key(writer, name);
    coord_write_text(writer, text, strlen(text));
}

static void view(struct coord_writer *writer, const char *name, const struct coord_value *value)
{
    key(writer, name);
    coord_write_value(writer, value);
}

static void list(struct coord_writer *writer, const char *name, const struct coord_value *value)
{
    key(writer, name);
    if (value->kind == COORD_KIND_ARRAY) {
        coord_write_value(writer, value);
    } else {
        coord_write_array(writer, 0);
        coord_write_end(writer);
    }
}

static void instant(struct coord_writer *writer, const char *name, int64_t epoch_us)
{
    char text[COORD_TIME_TEXT_MAX];
    key(writer, name);
    coord_write_text(writer, text, coord_time_text_stamp(epoch_us, text));
}

static void integer(struct coord_writer *writer, const char *name, int64_t value)
{
    key(writer, name);
    coord_write_integer(writer, value);
}

static void natural(struct coord_writer *writer, const char *name, uint64_t value)
{
    key(writer, name);
    coord_write_natural(writer, value);
}

/* Those of ours that are set, in the order of the tables. */
static uint32_t count_ours(const struct coord_message *message)
{
    return (message->incarnation.kind == COORD_KIND_TEXT ? 1U : 0U) +
           (message->seq != 0 ? 1U : 0U) + (message->fence != 0 ? 1U : 0U) +
           (message->has_sent_at ? 1U : 0U) + (message->leaving ? 1U : 0U);
}

static void write_ours(struct coord_writer *writer, const struct coord_message *message)
{
    if (message->incarnation.kind == COORD_KIND_TEXT) {
        view(writer, "incarnation", &message->incarnation);
    }
    if (message->seq != 0) {
        natural(writer, "seq", message->seq);
    }
    if (message->fence != 0) {
        natural(writer, "fence", message->fence);
    }
    if (message->has_sent_at) {
        instant(writer, "sent_at", message->sent_at_us);
    }
    if (message->leaving) {
        key(writer, "leaving");
        coord_write_map(writer, 2);
        word(writer, "intent", coord_intent_name(message->intent));
        natural(writer, "remaining_ms", message->remaining);
        coord_write_end(writer);
    }
}

static void write_heartbeat(struct coord_writer *writer, const struct coord_message *message)
{
    coord_write_map(writer, 6 + count_ours(message));
    view(writer, "instance_id", &message->instance_id);
    instant(writer, "timestamp", message->at_us);
    list(writer, "subscriptions", &message->subscriptions);
    integer(writer, "in_flight_count", message->in_flight_count);
    key(writer, "is_leader");
    coord_write_boolean(writer, message->is_leader);
    key(writer, "load_factor");
    coord_write_real(writer, message->load_factor);
}

static void write_shutdown(struct coord_writer *writer, const struct coord_message *message)
{
    coord_write_map(writer, 7 + count_ours(message));
    view(writer, "instance_id", &message->instance_id);
    word(writer, "intent", coord_intent_name(message->intent));
    instant(writer, "initiated_at", message->at_us);
    instant(writer, "expected_completion_at", message->completion_us);
    list(writer, "subscriptions", &message->subscriptions);
    integer(writer, "in_flight_count", message->in_flight_count);
    key(writer, "metadata");
    if (message->metadata.kind == COORD_KIND_MAP) {
        coord_write_value(writer, &message->metadata);
    } else {
        coord_write_map(writer, 0);
        coord_write_end(writer);
    }
}

static void write_assignment(struct coord_writer *writer, const struct coord_message *message)
{
    coord_write_map(writer, 5 + count_ours(message));
    view(writer, "target_instance_id", &message->target);
    list(writer, "subscriptions", &message->subscriptions);
    view(writer, "source_instance_id", &message->instance_id);
    instant(writer, "assigned_at", message->at_us);
    integer(writer, "priority", message->priority);
}

/* The incarnation and seq of a finished message are among its own keys. */
static void write_finished(struct coord_writer *writer, const struct coord_message *message)
{
    coord_write_map(writer, 5 + (message->has_sent_at ? 1U : 0U));
    view(writer, "instance_id", &message->instance_id);
    view(writer, "incarnation", &message->incarnation);
    list(writer, "subscriptions", &message->subscriptions);
    instant(writer, "finished_at", message->at_us);
    natural(writer, "seq", message->seq);
    if (message->has_sent_at) {
        instant(writer, "sent_at", message->sent_at_us);
    }
}

static void write_id(struct coord_writer *writer, const char *name, const unsigned char *id)
{
    char text[COORD_REPORT_ID_TEXT];
    coord_report_id_text(id, text);
    word(writer, name, text);
}

static void write_orphans(struct coord_writer *writer, const struct coord_message *message)
{
    bool table = message->kind == COORD_ORPHANS_TABLE;
    bool named = message->incarnation.kind == COORD_KIND_TEXT;
    coord_write_map(writer, 5U + (named ? 1U : 0U) + (table ? 6U : 0U));
    word(writer, "kind", coord_orphans_kind_name(message->kind));
    view(writer, "instance_id", &message->instance_id);
    if (named) {
        view(writer, "incarnation", &message->incarnation);
    }
    natural(writer, "fence", message->fence);
    instant(writer, "sent_at", message->sent_at_us);
    if (table) {
        natural(writer, "timeout_ms", message->timeout);
        natural(writer, "interval_ms", message->interval);
        natural(writer, "heard_ms", message->heard);
        key(writer, "judging");
        coord_write_boolean(writer, message->judging);
        write_id(writer, "first", message->first);
        write_id(writer, "last", message->last);
    }
    list(writer, "reports", &message->reports);
}

/* ---- would it be read again? ---- */

static bool readable(const struct coord_value *text, size_t most)
{
    if (text->kind != COORD_KIND_TEXT) {
        return false;
    }
    size_t bytes = text->escaped ? coord_view_text(text, NULL, 0) : text->count;
    /* A view of what was read is UTF-8; one of coord_text() has to be looked at. */
    return bytes > 0 && bytes <= most &&
           (text->escaped ||
            coord__utf8_span((const unsigned char *)text->of.text, bytes) == bytes);
}

static bool readable_list(const struct coord_value *list)
{
    struct coord_walk walk;
    struct coord_value name;
    if (list->kind != COORD_KIND_ARRAY) {
        return true; /* written as an empty one */
    }
    bool good = list->count <= COORD_SUBSCRIPTIONS_MAX;
    if (list->form == COORD_FORM_MSGPACK && coord__msgpack_names(list, COORD_NAME_MAX)) {
        return good;
    }
    coord_walk_begin(list, &walk);
    while (good && coord_walk_next(&walk, NULL, &name)) {
        good = readable(&name, COORD_NAME_MAX);
    }
    return good;
}

static bool all_readable(const struct coord_message *message)
{
    bool named = message->incarnation.kind == COORD_KIND_TEXT;
    if (!readable(&message->instance_id, COORD_NAME_MAX) ||
        (named && !readable(&message->incarnation, COORD_INCARNATION_MAX)) ||
        !readable_list(&message->subscriptions)) {
        return false;
    }
    return (message->type != COORD_MESSAGE_WORK_ASSIGNMENT ||
            readable(&message->target, COORD_NAME_MAX)) &&
           (message->type != COORD_MESSAGE_FINISHED || named);
}

static bool in_range(const struct coord_message *message)
{
    const coord_ms most = (coord_ms)1 << 52; /* as the reader has it */
    return (unsigned)message->intent <= COORD_INTENT_MAINTENANCE &&
           (unsigned)message->kind <= COORD_ORPHANS_HINT && message->remaining <= most &&
           message->timeout <= most && message->interval <= most && message->heard <= most;
}

enum coord_err coord_message_encode(const struct coord_message *message, enum coord_form form,
                                    void *buffer, size_t room, size_t *bytes)
{
    if (!in_range(message) || !all_readable(message)) {
        return COORD_E_BAD_MESSAGE;
    }
    struct coord_writer writer;
    coord_writer_begin(&writer, form, buffer, room < COORD_MESSAGE_MAX ? room : COORD_MESSAGE_MAX);
    switch (message->type) {
    case COORD_MESSAGE_HEARTBEAT:
        write_heartbeat(&writer, message);
        write_ours(&writer, message);
        break;
    case COORD_MESSAGE_SHUTDOWN:
        write_shutdown(&writer, message);
        write_ours(&writer, message);
        break;
    case COORD_MESSAGE_WORK_ASSIGNMENT:
        write_assignment(&writer, message);
        write_ours(&writer, message);
        break;
    case COORD_MESSAGE_FINISHED:
        write_finished(&writer, message);
        break;
    case COORD_MESSAGE_ORPHANS:
        write_orphans(&writer, message);
        break;
    default:
        return COORD_E_BAD_MESSAGE;
    }
    coord_write_end(&writer);
    return coord_writer_finish(&writer, bytes);
}

void coord_report_id_text(const unsigned char *id, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < COORD_REPORT_ID_BYTES; i++) {
        *out++ = digits[id[i] >> 4];
        *out++ = digits[id[i] & 0x0f];
    }
    *out = '\0';
}

void coord_report_write(struct coord_writer *writer, const struct coord_report_wire *report)
{
    bool named = report->incarnation.kind == COORD_KIND_TEXT;
    coord_write_map(writer, 9U + (named ? 1U : 0U) + (report->has_deadline ? 1U : 0U));
    write_id(writer, "report_id", report->id);
    natural(writer, "fence", report->fence);
    natural(writer, "seq", report->seq);
    view(writer, "instance_id", &report->instance_id);
    if (named) {
        view(writer, "incarnation", &report->incarnation);
    }
    key(writer, "subscriptions");
    coord_write_array(writer, 1);
    coord_write_value(writer, &report->subscription);
    coord_write_end(writer);
    word(writer, "cause", coord_cause_name(report->cause));
    word(writer, "certainty", coord_certainty_name(report->certainty));
    instant(writer, "since", report->since_us);
    if (report->has_deadline) {
        instant(writer, "deadline", report->deadline_us);
    }
    instant(writer, "safe_after", report->safe_after_us);
    coord_write_end(writer);
}

struct coord_value coord_text(const char *text, size_t bytes)
{
    struct coord_value value = {.kind = COORD_KIND_TEXT, .form = COORD_FORM_MSGPACK};
    value.of.text = text;
    value.count = (uint32_t)bytes;
    return value;
}

enum coord_err coord_texts(const char *const *names, size_t count, void *buffer, size_t room,
                           struct coord_value *out)
{
    struct coord_writer writer;
    size_t bytes = 0;
    coord_writer_begin(&writer, COORD_FORM_MSGPACK, buffer, room);
    coord_write_array(&writer, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        coord_write_text(&writer, names[i], strlen(names[i]));
    }
    coord_write_end(&writer);
    enum coord_err err = coord_writer_finish(&writer, &bytes);
    if (err == COORD_OK && coord_view(buffer, bytes, out) != COORD_FAULT_NONE) {
        err = COORD_E_LIMIT; /* more names than one message may hold, or no UTF-8 */
    }
    return err;
}
