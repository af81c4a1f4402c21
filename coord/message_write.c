/* SPDX-License-Identifier: MIT
 * coord/message_write.c - the two forms behind one face; JSON is written here.
 */
#include "coord/message_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void coord__put(struct coord_writer *writer, const void *bytes, size_t count)
{
    if (writer->full || count > writer->room - writer->used) {
        writer->full = true;
        return;
    }
    memcpy(writer->buffer + writer->used, bytes, count);
    writer->used += count;
}

static void put_byte(struct coord_writer *writer, char byte)
{
    coord__put(writer, &byte, 1);
}

void coord_writer_begin(struct coord_writer *writer, enum coord_form form, void *buffer,
                        size_t room)
{
    writer->buffer = buffer;
    writer->room = room;
    writer->used = 0;
    writer->form = form;
    writer->full = false;
    writer->unsuitable = false;
    writer->depth = 0;
    writer->map[0] = false;
    writer->written[0] = 0;
}

/* What stands in JSON before the next key or value; true: write JSON. */
static bool json(struct coord_writer *writer)
{
    if (writer->form != COORD_FORM_JSON) {
        return false;
    }
    uint32_t before = writer->written[writer->depth]++;
    if (writer->map[writer->depth] && before % 2 == 1) {
        put_byte(writer, ':');
    } else if (before > 0) {
        put_byte(writer, ',');
    }
    return true;
}

static void open_container(struct coord_writer *writer, bool map)
{
    if (writer->depth == COORD_VIEW_DEPTH_MAX) {
        writer->unsuitable = true;
        writer->full = true; /* write no more */
        return;
    }
    writer->depth++;
    writer->map[writer->depth] = map;
    writer->written[writer->depth] = 0;
}

void coord_write_map(struct coord_writer *writer, uint32_t pairs)
{
    if (json(writer)) {
        put_byte(writer, '{');
    } else {
        coord__pack_map(writer, pairs);
    }
    open_container(writer, true);
}

void coord_write_array(struct coord_writer *writer, uint32_t elements)
{
    if (json(writer)) {
        put_byte(writer, '[');
    } else {
        coord__pack_array(writer, elements);
    }
    open_container(writer, false);
}

void coord_write_end(struct coord_writer *writer)
{
    if (writer->depth == 0) {
        return; /* one that was too deep to open */
    }
    if (writer->form == COORD_FORM_JSON) {
        put_byte(writer, writer->map[writer->depth] ? '}' : ']');
    }
    writer->depth--;
}

static void put_json_byte(struct coord_writer *writer, unsigned char byte)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char letter[] = "\"\\bfnrt";
    const char *found = memchr(plain, byte, sizeof plain - 1);
    if (found != NULL) {
        put_byte(writer, '\\');
        put_byte(writer, letter[found - plain]);
    } else {
        char text[8];
        int count = snprintf(text, sizeof text, "\\u%04x", byte);
        coord__put(writer, text, (size_t)count);
    }
}

/* The bytes of a text, between its quotes. */
static void put_json_text(struct coord_writer *writer, const char *text, size_t bytes)
{
    size_t start = 0;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f) {
            coord__put(writer, text + start, i - start);
            put_json_byte(writer, byte);
            start = i + 1;
        }
    }
    coord__put(writer, text + start, bytes - start);
}

void coord_write_text(struct coord_writer *writer, const char *text, size_t bytes)
{
    if (json(writer)) {
        put_byte(writer, '"');
        put_json_text(writer, text, bytes);
        put_byte(writer, '"');
    } else {
        coord__pack_text(writer, bytes);
        coord__put(writer, text, bytes);
    }
}

/* A view's text, which may be escaped. */
static void write_view_text(struct coord_writer *writer, const struct coord_value *value)
{
    if (!value->escaped) {
        coord_write_text(writer, value->of.text, value->count);
        return;
    }
    bool quoted = json(writer);
    if (quoted) {
        put_byte(writer, '"');
    } else {
        coord__pack_text(writer, coord_view_text(value, NULL, 0));
    }
    const char *at = value->of.text;
    const char *end = at + value->count;
    while (at < end) {
        char part[4];
        size_t count = coord__json_character(&at, end, part);
        if (quoted) {
            put_json_text(writer, part, count);
        } else {
            coord__put(writer, part, count);
        }
    }
    if (quoted) {
        put_byte(writer, '"');
    }
}

void coord_write_integer(struct coord_writer *writer, int64_t value)
{
    if (json(writer)) {
        char text[24];
        int count = snprintf(text, sizeof text, "%lld", (long long)value);
        coord__put(writer, text, (size_t)count);
    } else {
        coord__pack_integer(writer, value);
    }
}

void coord_write_natural(struct coord_writer *writer, uint64_t value)
{
    if (json(writer)) {
        char text[24];
        int count = snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        coord__put(writer, text, (size_t)count);
    } else {
        coord__pack_natural(writer, value);
    }
}

/* The shortest text that reads back as the same number, with a mark that says it is no integer. */
static void put_json_real(struct coord_writer *writer, double value)
{
    char text[40];
    int count = 0;
    for (int digits = 15; digits <= 17; digits++) {
        count = snprintf(text, sizeof text - 3, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (!(back < value) && !(back > value)) {
            break;
        }
    }
    bool marked = false;
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        bool number = (text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '+';
        bool mark = !number && text[i] != 'e';
        marked = marked || !number;
        /* The locale of the host may have another mark, of several bytes. */
        if (!mark || used == 0 || text[used - 1] != '.') {
            text[used++] = mark ? '.' : text[i];
        }
    }
    coord__put(writer, text, used);
    if (!marked) {
        coord__put(writer, ".0", 2);
    }
}

void coord_write_real(struct coord_writer *writer, double value)
{
    if (!(value - value == 0.0)) {
        writer->unsuitable = true;
        writer->full = true;
        return;
    }
    if (json(writer)) {
        put_json_real(writer, value);
    } else {
        coord__pack_real(writer, value);
    }
}

void coord_write_boolean(struct coord_writer *writer, bool value)
{
    if (json(writer)) {
        coord__put(writer, value ? "true" : "false", value ? 4 : 5);
    } else {
        coord__pack_boolean(writer, value);
    }
}

void coord_write_null(struct coord_writer *writer)
{
    if (json(writer)) {
        coord__put(writer, "null", 4);
    } else {
        coord__pack_null(writer);
    }
}

static void write_unsuitable(struct coord_writer *writer, const struct coord_value *value)
{
    bool same = value->form == (uint8_t)writer->form;
    if (value->kind == COORD_KIND_LONG && same) {
        if (json(writer)) {
            coord__put(writer, value->at, value->bytes);
        }
    } else if (value->kind == COORD_KIND_OTHER && same) {
        coord__put(writer, value->at, value->bytes);
    } else {
        writer->unsuitable = true;
        writer->full = true;
    }
}

/* A scalar, or the opening of a container. */
static void write_head(struct coord_writer *writer, const struct coord_value *value)
{
    switch (value->kind) {
    case COORD_KIND_BOOLEAN:
        coord_write_boolean(writer, value->of.boolean);
        break;
    case COORD_KIND_INTEGER:
        coord_write_integer(writer, value->of.integer);
        break;
    case COORD_KIND_NATURAL:
        coord_write_natural(writer, value->of.natural);
        break;
    case COORD_KIND_REAL:
        coord_write_real(writer, value->of.real);
        break;
    case COORD_KIND_TEXT:
        write_view_text(writer, value);
        break;
    case COORD_KIND_ARRAY:
        coord_write_array(writer, value->count);
        break;
    case COORD_KIND_MAP:
        coord_write_map(writer, value->count);
        break;
    case COORD_KIND_LONG:
    case COORD_KIND_OTHER:
        write_unsuitable(writer, value);
        break;
    default:
        coord_write_null(writer);
        break;
    }
}

static bool is_container(const struct coord_value *value)
{
    return value->kind == COORD_KIND_ARRAY || value->kind == COORD_KIND_MAP;
}

/* A list of names, which stands in the same form already. */
static bool is_as_written(const struct coord_writer *writer, const struct coord_value *value)
{
    return value->kind == COORD_KIND_ARRAY && value->form == COORD_FORM_MSGPACK &&
           writer->form == COORD_FORM_MSGPACK && writer->depth < COORD_VIEW_DEPTH_MAX &&
           coord__msgpack_names(value, UINT8_MAX);
}

void coord_write_value(struct coord_writer *writer, const struct coord_value *value)
{
    if (is_as_written(writer, value)) {
        coord__put(writer, value->at, value->bytes);
        return;
    }
    struct coord_walk walks[COORD_VIEW_DEPTH_MAX];
    unsigned depth = 0;
    write_head(writer, value);
    if (is_container(value)) {
        coord_walk_begin(value, &walks[depth++]);
    }
    while (depth > 0) {
        struct coord_value key;
        struct coord_value item;
        if (!coord_walk_next(&walks[depth - 1], &key, &item)) {
            coord_write_end(writer);
            depth--;
            continue;
        }
        if (walks[depth - 1].pairs) {
            write_view_text(writer, &key);
        }
        write_head(writer, &item);
        if (is_container(&item) && depth < COORD_VIEW_DEPTH_MAX) {
            coord_walk_begin(&item, &walks[depth++]);
        }
    }
}

enum coord_err coord_writer_finish(struct coord_writer *writer, size_t *bytes)
{
    if (writer->unsuitable) {
        return COORD_E_BAD_MESSAGE;
    }
    if (writer->full) {
        return COORD_E_LIMIT;
    }
    *bytes = writer->used;
    return COORD_OK;
}
