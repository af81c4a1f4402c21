/* SPDX-License-Identifier: MIT
 * coord/message_record.c - the known keys of each type, and the seed library's way with them.
 */
#include "coord/message.h"

#include <string.h>

#define FIELD(name, flags)            \
    {                                 \
        name, sizeof(name) - 1, flags \
    }
#define REQUIRED COORD__FIELD_REQUIRED
#define OURS     COORD__FIELD_OURS
#define TIME     COORD__FIELD_TIME

static const struct coord__field heartbeat[] = {
    FIELD("instance_id", REQUIRED), FIELD("timestamp", REQUIRED | TIME),
    FIELD("subscriptions", 0),      FIELD("in_flight_count", 0),
    FIELD("is_leader", 0),          FIELD("load_factor", 0),
    FIELD("incarnation", OURS),     FIELD("seq", OURS),
    FIELD("fence", OURS),           FIELD("sent_at", OURS),
    FIELD("leaving", OURS),
};
static const struct coord__field shutdown[] = {
    FIELD("instance_id", REQUIRED),
    FIELD("intent", REQUIRED),
    FIELD("initiated_at", REQUIRED | TIME),
    FIELD("expected_completion_at", REQUIRED | TIME),
    FIELD("subscriptions", 0),
    FIELD("in_flight_count", 0),
    FIELD("metadata", 0),
    FIELD("incarnation", OURS),
    FIELD("seq", OURS),
    FIELD("sent_at", OURS),
};
static const struct coord__field work_assignment[] = {
    FIELD("target_instance_id", REQUIRED),
    FIELD("subscriptions", REQUIRED),
    FIELD("source_instance_id", REQUIRED),
    FIELD("assigned_at", REQUIRED | TIME),
    FIELD("priority", 0),
    FIELD("fence", OURS),
    FIELD("sent_at", OURS),
};
static const struct coord__field finished[] = {
    FIELD("instance_id", REQUIRED | OURS),   FIELD("incarnation", REQUIRED | OURS),
    FIELD("subscriptions", REQUIRED | OURS), FIELD("finished_at", REQUIRED | OURS),
    FIELD("seq", REQUIRED | OURS),           FIELD("sent_at", OURS),
};
static const struct coord__field orphans[] = {
    FIELD("kind", REQUIRED | OURS),
    FIELD("instance_id", REQUIRED | OURS),
    FIELD("incarnation", OURS),
    FIELD("fence", REQUIRED | OURS),
    FIELD("sent_at", REQUIRED | OURS),
    FIELD("timeout_ms", OURS),
    FIELD("interval_ms", OURS),
    FIELD("heard_ms", OURS),
    FIELD("judging", OURS),
    FIELD("first", OURS),
    FIELD("last", OURS),
    FIELD("reports", REQUIRED | OURS),
};

/* And the last one that is required. */
#define TABLE(fields, last)                                      \
    {                                                            \
        fields, sizeof(fields) / sizeof((fields)[0]), (last) + 1 \
    }

static const struct {
    const struct coord__field *fields;
    unsigned count;
    unsigned required; /* the fields before it are all that may be */
} tables[COORD_MESSAGE_TYPES] = {TABLE(heartbeat, COORD_HEARTBEAT_TIMESTAMP),
                                 TABLE(shutdown, COORD_SHUTDOWN_EXPECTED_COMPLETION_AT),
                                 TABLE(work_assignment, COORD_ASSIGNMENT_ASSIGNED_AT),
                                 TABLE(finished, COORD_FINISHED_SEQ),
                                 TABLE(orphans, COORD_ORPHANS_REPORTS)};

const struct coord__field *coord__fields(enum coord_message_type type, unsigned *count)
{
    *count = tables[type].count;
    return tables[type].fields;
}

void coord__write_key(struct coord_writer *writer, const char *name)
{
    coord_write_text(writer, name, strlen(name));
}

/* ---- reading ---- */

static inline bool same_word(const char *a, const char *b)
{
    uint64_t x = 0;
    uint64_t y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x == y;
}

static inline bool same_half(const char *a, const char *b)
{
    uint32_t x = 0;
    uint32_t y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x == y;
}

/* Keys are short: two words, which overlap, say it without a call. */
static inline bool same_bytes(const char *a, const char *b, size_t count)
{
    if (count >= 8 && count <= 16) {
        return same_word(a, b) && same_word(a + count - 8, b + count - 8);
    }
    if (count >= 4 && count < 8) {
        return same_half(a, b) && same_half(a + count - 4, b + count - 4);
    }
    return memcmp(a, b, count) == 0;
}

static inline bool named(const struct coord_value *key, const struct coord__field *field)
{
    if (key->escaped) {
        return coord_view_is(key, field->name, field->bytes);
    }
    return key->count == field->bytes && same_bytes(key->of.text, field->name, field->bytes);
}

static unsigned find_field(const struct coord_value *key, const struct coord__field *fields,
                           unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (named(key, &fields[i])) {
            return i;
        }
    }
    return count;
}

/* Past the key of that very field, where the next bytes are it. */
static inline bool pass_key(struct coord__scan *scan, const struct coord__field *field)
{
    const unsigned char *at = scan->at;
    if ((size_t)(scan->end - at) <= field->bytes || *at != (0xa0U | field->bytes) ||
        scan->values == 0 || !same_bytes((const char *)at + 1, field->name, field->bytes)) {
        return false;
    }
    scan->values--;
    scan->at = at + 1 + field->bytes;
    return true;
}

/* The field of the key that is next; `count`: an unknown one; more: the scan has failed. */
static unsigned take_key(struct coord__scan *scan, const struct coord__field *fields,
                         unsigned count, unsigned likely)
{
    struct coord_value key;
    if (likely < count && pass_key(scan, &fields[likely])) {
        return likely;
    }
    if (!coord__msgpack_head(scan, &key)) {
        return count + 1;
    }
    if (key.kind != COORD_KIND_TEXT) {
        scan->fault = COORD_FAULT_BAD_KEY;
        return count + 1;
    }
    return find_field(&key, fields, count);
}

static enum coord_message_fault read_msgpack(struct coord__scan *scan, struct coord_record *out)
{
    struct coord_value head;
    if (!coord__msgpack_head(scan, &head)) {
        return scan->fault;
    }
    if (head.kind != COORD_KIND_MAP) {
        return COORD_FAULT_NOT_A_MAP;
    }
    unsigned count = 0;
    const struct coord__field *fields = coord__fields(out->type, &count);
    unsigned likely = 0; /* writers keep to the order of the table */
    scan->depth = 1;
    for (uint32_t i = 0; i < head.count; i++) {
        struct coord_value skipped;
        unsigned at = take_key(scan, fields, count, likely);
        if (at > count || !coord__msgpack_scan(scan, at < count ? &out->field[at] : &skipped)) {
            return scan->fault;
        }
        likely = at + 1;
    }
    return scan->at == scan->end ? COORD_FAULT_NONE : COORD_FAULT_TRAILING;
}

static enum coord_message_fault read_json(const void *bytes, size_t count, struct coord_record *out)
{
    struct coord_value whole;
    enum coord_message_fault fault = coord_view(bytes, count, &whole);
    if (fault != COORD_FAULT_NONE) {
        return fault;
    }
    if (whole.kind != COORD_KIND_MAP) {
        return COORD_FAULT_NOT_A_MAP;
    }
    unsigned fields = 0;
    const struct coord__field *table = coord__fields(out->type, &fields);
    struct coord_walk walk;
    struct coord_value key;
    struct coord_value value;
    coord_walk_begin(&whole, &walk);
    while (coord_walk_next(&walk, &key, &value)) {
        unsigned at = find_field(&key, table, fields);
        if (at < fields) {
            out->field[at] = value;
        }
    }
    return COORD_FAULT_NONE;
}

/* JSON that is no map is not told by its first byte. */
static bool other_json(unsigned char byte)
{
    return byte == '[' || byte == '"';
}

/* The first required key that is not there, or NULL. */
static inline const char *missing(const struct coord_record *record)
{
    const struct coord__field *fields = tables[record->type].fields;
    for (unsigned i = 0; i < tables[record->type].required; i++) {
        if ((fields[i].flags & REQUIRED) != 0 && record->field[i].kind == COORD_KIND_ABSENT) {
            return fields[i].name;
        }
    }
    return NULL;
}

enum coord_message_fault coord_record_read(enum coord_message_type type, const void *bytes,
                                           size_t count, struct coord_record *out)
{
    COORD_ASSERT((unsigned)type < COORD_MESSAGE_TYPES);
    if (count > COORD_MESSAGE_MAX) {
        return COORD_FAULT_TOO_LONG;
    }
    if (count == 0) {
        return COORD_FAULT_TRUNCATED;
    }
    out->type = type;
    out->fields = tables[type].count;
    for (unsigned i = 0; i < out->fields; i++) {
        out->field[i].kind = COORD_KIND_ABSENT;
    }
    enum coord_message_fault fault = COORD_FAULT_NONE;
    if (coord__form(bytes) == COORD_FORM_JSON) {
        fault = read_json(bytes, count, out);
    } else if (other_json(*(const unsigned char *)bytes)) {
        fault = COORD_FAULT_NOT_A_MAP;
    } else {
        struct coord__scan scan = {
            bytes,           (const unsigned char *)bytes + count, COORD_VIEW_VALUES_MAX, 0, false,
            COORD_FAULT_NONE};
        fault = read_msgpack(&scan, out);
    }
    if (fault == COORD_FAULT_NONE && missing(out) != NULL) {
        fault = COORD_FAULT_MISSING_KEY;
    }
    return fault;
}

const char *coord_record_missing(const struct coord_record *record)
{
    return missing(record);
}

/* ---- as the seed library judges ---- */

static bool read_time(const struct coord_value *value, struct coord_time *out)
{
    char text[COORD_VIEW_NUMBER_MAX];
    size_t count = coord_view_text(value, text, sizeof text);
    if (value->kind != COORD_KIND_TEXT) {
        return false;
    }
    if (!value->escaped) {
        return coord_time_text_parse(value->of.text, value->count, out);
    }
    return count <= sizeof text && coord_time_text_parse(text, count, out);
}

static unsigned subscriptions_of(enum coord_message_type type)
{
    switch (type) {
    case COORD_MESSAGE_HEARTBEAT:
        return COORD_HEARTBEAT_SUBSCRIPTIONS;
    case COORD_MESSAGE_SHUTDOWN:
        return COORD_SHUTDOWN_SUBSCRIPTIONS;
    case COORD_MESSAGE_WORK_ASSIGNMENT:
        return COORD_ASSIGNMENT_SUBSCRIPTIONS;
    case COORD_MESSAGE_FINISHED:
        return COORD_FINISHED_SUBSCRIPTIONS;
    case COORD_MESSAGE_ORPHANS:
    default:
        return COORD_FIELDS_MAX;
    }
}

static bool iterable(const struct coord_value *value)
{
    return value->kind == COORD_KIND_ABSENT || value->kind == COORD_KIND_TEXT ||
           value->kind == COORD_KIND_ARRAY || value->kind == COORD_KIND_MAP;
}

enum coord_message_fault coord_record_check(const struct coord_record *record)
{
    unsigned list = subscriptions_of(record->type);
    for (unsigned i = 0; i < record->fields; i++) {
        const struct coord_value *value = &record->field[i];
        struct coord_time time;
        if ((tables[record->type].fields[i].flags & TIME) != 0) {
            if (value->kind != COORD_KIND_TEXT) {
                return COORD_FAULT_WRONG_TYPE;
            }
            if (!read_time(value, &time)) {
                return COORD_FAULT_BAD_TIME;
            }
        }
        if (i == list && !iterable(value)) {
            return COORD_FAULT_WRONG_TYPE;
        }
    }
    if (record->type == COORD_MESSAGE_SHUTDOWN) {
        enum coord_intent intent;
        char word[32];
        size_t bytes = coord_view_text(&record->field[COORD_SHUTDOWN_INTENT], word, sizeof word);
        if (bytes > sizeof word || !coord_intent_parse(word, bytes, &intent)) {
            return COORD_FAULT_BAD_INTENT;
        }
    }
    return COORD_FAULT_NONE;
}

struct coord_time coord_record_time(const struct coord_record *record, unsigned field)
{
    struct coord_time time = {0, 0, true};
    if (field < record->fields) {
        if (!read_time(&record->field[field], &time)) {
            time.naive = true;
        }
    }
    return time;
}

void coord_names_begin(const struct coord_value *subscriptions, struct coord_names *names)
{
    bool text = subscriptions->kind == COORD_KIND_TEXT;
    names->at = text ? subscriptions->of.text : NULL;
    names->end = text ? subscriptions->of.text + subscriptions->count : NULL;
    names->escaped = text && subscriptions->escaped;
    struct coord_value none = {.kind = COORD_KIND_ABSENT};
    coord_walk_begin(text ? &none : subscriptions, &names->walk);
}

bool coord_names_next(struct coord_names *names, struct coord_value *out)
{
    if (names->at == NULL) {
        struct coord_value value;
        return names->walk.pairs ? coord_walk_next(&names->walk, out, &value)
                                 : coord_walk_next(&names->walk, NULL, out);
    }
    if (names->at == names->end) {
        return false;
    }
    size_t count = 0;
    if (names->escaped) {
        count = coord__json_character(&names->at, names->end, names->part);
    } else {
        unsigned char first = (unsigned char)*names->at;
        count = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        memcpy(names->part, names->at, count);
        names->at += count;
    }
    *out = coord_text(names->part, count);
    return true;
}

uint32_t coord_names_count(const struct coord_value *subscriptions)
{
    struct coord_names names;
    struct coord_value name;
    uint32_t count = 0;
    coord_names_begin(subscriptions, &names);
    while (coord_names_next(&names, &name)) {
        count++;
    }
    return count;
}

/* ---- writing ---- */

static void write_time(struct coord_writer *writer, const struct coord_value *value)
{
    struct coord_time time;
    char text[COORD_TIME_TEXT_MAX];
    if (read_time(value, &time)) {
        coord_write_text(writer, text, coord_time_text_write(&time, text));
    } else {
        coord_write_value(writer, value);
    }
}

static void write_names(struct coord_writer *writer, const struct coord_value *value)
{
    struct coord_names names;
    struct coord_value name;
    coord_write_array(writer, coord_names_count(value));
    coord_names_begin(value, &names);
    while (coord_names_next(&names, &name)) {
        coord_write_value(writer, &name);
    }
    coord_write_end(writer);
}

/* What the seed library fills in. */
static void write_default(struct coord_writer *writer, enum coord_message_type type, unsigned field)
{
    if (type == COORD_MESSAGE_HEARTBEAT && field == COORD_HEARTBEAT_IS_LEADER) {
        coord_write_boolean(writer, false);
    } else if (type == COORD_MESSAGE_HEARTBEAT && field == COORD_HEARTBEAT_LOAD_FACTOR) {
        coord_write_real(writer, 0.0);
    } else if (type == COORD_MESSAGE_SHUTDOWN && field == COORD_SHUTDOWN_METADATA) {
        coord_write_map(writer, 0);
        coord_write_end(writer);
    } else {
        coord_write_integer(writer, 0);
    }
}

enum coord_err coord_record_write(const struct coord_record *record, enum coord_form form,
                                  void *buffer, size_t room, size_t *bytes)
{
    const struct coord__field *fields = tables[record->type].fields;
    uint32_t pairs = 0;
    for (unsigned i = 0; i < record->fields; i++) {
        pairs += (fields[i].flags & OURS) == 0 ? 1 : 0;
    }
    if (pairs == 0) {
        return COORD_E_BAD_MESSAGE;
    }
    struct coord_writer writer;
    coord_writer_begin(&writer, form, buffer, room);
    coord_write_map(&writer, pairs);
    unsigned list = subscriptions_of(record->type);
    for (unsigned i = 0; i < record->fields; i++) {
        const struct coord_value *value = &record->field[i];
        if ((fields[i].flags & OURS) != 0) {
            continue;
        }
        coord__write_key(&writer, fields[i].name);
        if ((fields[i].flags & TIME) != 0) {
            write_time(&writer, value);
        } else if (i == list) {
            write_names(&writer, value);
        } else if (value->kind == COORD_KIND_ABSENT) {
            write_default(&writer, record->type, i);
        } else {
            coord_write_value(&writer, value);
        }
    }
    coord_write_end(&writer);
    return coord_writer_finish(&writer, bytes);
}
