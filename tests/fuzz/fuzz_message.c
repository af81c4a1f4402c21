/* SPDX-License-Identifier: MIT
 * tests/fuzz/fuzz_message.c - any bytes as a message, against msgpack-c and jansson.
 *
 * The first byte chooses the type. What our walk takes the others take as well, with the same
 * values; what it refuses for its form they refuse too.
 */
#include "coord/message.h"

#include <jansson.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static bool same_real(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* ---- JSON ---- */

static bool same_json(const struct coord_value *ours, json_t *theirs);

static bool same_json_text(const struct coord_value *ours, const char *text, size_t bytes)
{
    return coord_view_is(ours, text, bytes);
}

/* Of a key that comes twice jansson keeps the last value. */
static bool same_object(const struct coord_value *ours, json_t *theirs)
{
    const char *name = NULL;
    json_t *item = NULL;
    json_object_foreach(theirs, name, item)
    {
        struct coord_walk walk;
        struct coord_value key;
        struct coord_value value;
        struct coord_value last = {.kind = COORD_KIND_ABSENT};
        coord_walk_begin(ours, &walk);
        while (coord_walk_next(&walk, &key, &value)) {
            if (same_json_text(&key, name, strlen(name))) {
                last = value;
            }
        }
        if (!same_json(&last, item)) {
            return false;
        }
    }
    return ours->count >= json_object_size(theirs);
}

static bool same_json_array(const struct coord_value *ours, json_t *theirs)
{
    struct coord_walk walk;
    struct coord_value value;
    size_t at = 0;
    coord_walk_begin(ours, &walk);
    while (coord_walk_next(&walk, NULL, &value)) {
        if (!same_json(&value, json_array_get(theirs, at++))) {
            return false;
        }
    }
    return at == json_array_size(theirs) && at == ours->count;
}

static bool same_json(const struct coord_value *ours, json_t *theirs)
{
    switch (json_typeof(theirs)) {
    case JSON_OBJECT:
        return ours->kind == COORD_KIND_MAP && same_object(ours, theirs);
    case JSON_ARRAY:
        return ours->kind == COORD_KIND_ARRAY && same_json_array(ours, theirs);
    case JSON_STRING:
        return same_json_text(ours, json_string_value(theirs), json_string_length(theirs));
    case JSON_INTEGER:
        return ours->kind == COORD_KIND_INTEGER && ours->of.integer == json_integer_value(theirs);
    case JSON_REAL:
        return ours->kind == COORD_KIND_REAL && same_real(ours->of.real, json_real_value(theirs));
    case JSON_TRUE:
    case JSON_FALSE:
        return ours->kind == COORD_KIND_BOOLEAN && ours->of.boolean == json_is_true(theirs);
    case JSON_NULL:
    default:
        return ours->kind == COORD_KIND_NULL;
    }
}

/* jansson has no integer past 64 bits, and no NUL in a key. */
static bool jansson_lacks(const json_error_t *error)
{
    return strstr(error->text, "too big") != NULL || strstr(error->text, "NUL byte") != NULL ||
           strstr(error->text, "\\u0000") != NULL;
}

static void against_jansson(const char *bytes, size_t count)
{
    struct coord_value ours;
    enum coord_message_fault fault = coord_view(bytes, count, &ours);
    if (fault == COORD_FAULT_DEPTH || fault == COORD_FAULT_COUNT ||
        fault == COORD_FAULT_BAD_NUMBER || fault == COORD_FAULT_TOO_LONG) {
        return; /* limits of ours */
    }
    if (memchr(bytes, '\0', count) != NULL) {
        must(fault != COORD_FAULT_NONE);
        return; /* jansson overlooks a NUL behind a number */
    }
    json_error_t error;
    json_t *theirs = json_loadb(bytes, count, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (fault != COORD_FAULT_NONE) {
        must(theirs == NULL);
        return;
    }
    if (theirs == NULL) {
        must(jansson_lacks(&error));
        return;
    }
    must(same_json(&ours, theirs));
    json_decref(theirs);
}

/* ---- msgpack ---- */

static bool same_msgpack(const struct coord_value *ours, const msgpack_object *theirs);

static bool same_msgpack_map(const struct coord_value *ours, const msgpack_object_map *theirs)
{
    struct coord_walk walk;
    struct coord_value key;
    struct coord_value value;
    uint32_t at = 0;
    coord_walk_begin(ours, &walk);
    while (coord_walk_next(&walk, &key, &value)) {
        if (at == theirs->size || !same_msgpack(&key, &theirs->ptr[at].key) ||
            !same_msgpack(&value, &theirs->ptr[at].val)) {
            return false;
        }
        at++;
    }
    return at == theirs->size;
}

static bool same_msgpack_array(const struct coord_value *ours, const msgpack_object_array *theirs)
{
    struct coord_walk walk;
    struct coord_value value;
    uint32_t at = 0;
    coord_walk_begin(ours, &walk);
    while (coord_walk_next(&walk, NULL, &value)) {
        if (at == theirs->size || !same_msgpack(&value, &theirs->ptr[at])) {
            return false;
        }
        at++;
    }
    return at == theirs->size;
}

static bool same_msgpack(const struct coord_value *ours, const msgpack_object *theirs)
{
    switch (theirs->type) {
    case MSGPACK_OBJECT_NIL:
        return ours->kind == COORD_KIND_NULL;
    case MSGPACK_OBJECT_BOOLEAN:
        return ours->kind == COORD_KIND_BOOLEAN && ours->of.boolean == theirs->via.boolean;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        return ours->kind == COORD_KIND_NATURAL
                   ? ours->of.natural == theirs->via.u64
                   : ours->kind == COORD_KIND_INTEGER && ours->of.integer >= 0 &&
                         (uint64_t)ours->of.integer == theirs->via.u64;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return ours->kind == COORD_KIND_INTEGER && ours->of.integer == theirs->via.i64;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return ours->kind == COORD_KIND_REAL && same_real(ours->of.real, theirs->via.f64);
    case MSGPACK_OBJECT_STR:
        return coord_view_is(ours, theirs->via.str.ptr, theirs->via.str.size);
    case MSGPACK_OBJECT_ARRAY:
        return ours->kind == COORD_KIND_ARRAY && same_msgpack_array(ours, &theirs->via.array);
    case MSGPACK_OBJECT_MAP:
        return ours->kind == COORD_KIND_MAP && same_msgpack_map(ours, &theirs->via.map);
    case MSGPACK_OBJECT_BIN:
    case MSGPACK_OBJECT_EXT:
    default:
        return ours->kind == COORD_KIND_OTHER;
    }
}

static void against_msgpack(const char *bytes, size_t count)
{
    struct coord_value ours;
    enum coord_message_fault fault = coord_view(bytes, count, &ours);
    /* It would reserve what is declared, so it is not asked about the rest. */
    if (fault != COORD_FAULT_NONE && fault != COORD_FAULT_SYNTAX) {
        return;
    }
    msgpack_unpacked theirs;
    msgpack_unpacked_init(&theirs);
    size_t used = 0;
    msgpack_unpack_return code = msgpack_unpack_next(&theirs, bytes, count, &used);
    if (fault == COORD_FAULT_NONE) {
        must(code == MSGPACK_UNPACK_SUCCESS && used == count);
        must(same_msgpack(&ours, &theirs.data));
    } else {
        must(code != MSGPACK_UNPACK_SUCCESS);
    }
    msgpack_unpacked_destroy(&theirs);
}

/* ---- what follows from a good reading ---- */

static char first[2 * COORD_MESSAGE_MAX];
static char second[2 * COORD_MESSAGE_MAX];

/* What was read can be written in either form, and reads the same again. */
static void check_value(const char *bytes, size_t count)
{
    struct coord_value value;
    struct coord_value again;
    /* The form of a scalar is not told by its first byte. */
    if (coord_view(bytes, count, &value) != COORD_FAULT_NONE || value.kind != COORD_KIND_MAP) {
        return;
    }
    for (int form = 0; form <= 1; form++) {
        struct coord_writer writer;
        size_t used = 0;
        coord_writer_begin(&writer, (enum coord_form)form, first, sizeof first);
        coord_write_value(&writer, &value);
        if (coord_writer_finish(&writer, &used) != COORD_OK || used > COORD_MESSAGE_MAX) {
            continue;
        }
        must(coord_view(first, used, &again) == COORD_FAULT_NONE);
        size_t used_again = 0;
        coord_writer_begin(&writer, (enum coord_form)form, second, sizeof second);
        coord_write_value(&writer, &again);
        must(coord_writer_finish(&writer, &used_again) == COORD_OK);
        must(used == used_again && memcmp(first, second, used) == 0);
    }
}

static void check_message(enum coord_message_type type, const char *bytes, size_t count)
{
    struct coord_record record;
    enum coord_message_fault fault = coord_record_read(type, bytes, count, &record);
    if (fault == COORD_FAULT_NONE && coord_record_check(&record) == COORD_FAULT_NONE) {
        size_t used = 0;
        if (coord_record_write(&record, COORD_FORM_MSGPACK, first, COORD_MESSAGE_MAX, &used) ==
            COORD_OK) {
            must(coord_record_read(type, first, used, &record) == COORD_FAULT_NONE);
            must(coord_record_check(&record) == COORD_FAULT_NONE);
        }
    }
    struct coord_message message;
    enum coord_message_fault strict = coord_message_decode(type, bytes, count, &message);
    must(fault == COORD_FAULT_NONE || strict == fault);
    if (strict != COORD_FAULT_NONE) {
        return;
    }
    for (int form = 0; form <= 1; form++) {
        size_t used = 0;
        if (coord_message_encode(&message, (enum coord_form)form, first, sizeof first, &used) ==
            COORD_OK) {
            struct coord_message again;
            must(coord_message_decode(type, first, used, &again) == COORD_FAULT_NONE);
            must(again.seq == message.seq && again.fence == message.fence);
            must(again.in_flight_count == message.in_flight_count);
            must(again.leaving == message.leaving && again.intent == message.intent);
            must(again.at_us == message.at_us || message.at_us < COORD_TIME_MIN_US ||
                 message.at_us > COORD_TIME_MAX_US);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    /* Of the exact size, so that a byte too far is seen. */
    size_t count = size - 1;
    char *bytes = malloc(count);
    must(bytes != NULL);
    memcpy(bytes, data + 1, count);
    if (memchr("{ \n\r\t", bytes[0], 5) != NULL) {
        against_jansson(bytes, count);
    } else {
        against_msgpack(bytes, count);
    }
    check_value(bytes, count);
    check_message((enum coord_message_type)(data[0] % COORD_MESSAGE_TYPES), bytes, count);
    free(bytes);
    return 0;
}
