/* SPDX-License-Identifier: MIT
 * coord/message_view.c - which form the bytes have, and how to read what was checked.
 */
#include "coord/message_view.h"

#include <string.h>

static const struct {
    const char *name;
    const char *text;
} faults[COORD_FAULTS] = {
    {"NONE", "no fault"},
    {"TOO_LONG", "longer than 64 KiB"},
    {"TRUNCATED", "ends before it is complete"},
    {"TRAILING", "goes on behind its end"},
    {"SYNTAX", "neither msgpack nor JSON"},
    {"DEPTH", "nested too deeply"},
    {"COUNT", "holds too many values"},
    {"BAD_TEXT", "a text is not UTF-8"},
    {"BAD_NUMBER", "a number is not finite, or too long"},
    {"NOT_A_MAP", "is no map"},
    {"BAD_KEY", "a key is no text"},
    {"MISSING_KEY", "a required key is missing"},
    {"WRONG_TYPE", "a value has the wrong type"},
    {"BAD_ID", "an id is not 1 to 255 bytes"},
    {"BAD_TIME", "a time cannot be read"},
    {"NAIVE_TIME", "a time has no offset from UTC"},
    {"BAD_INTENT", "the intent is none of the four"},
    {"OUT_OF_RANGE", "a number is out of range"},
    {"BAD_WORD", "a kind, cause or certainty is unknown"},
};

const char *coord_fault_name(enum coord_message_fault fault)
{
    return (unsigned)fault < COORD_FAULTS ? faults[fault].name : "UNKNOWN";
}

const char *coord_fault_text(enum coord_message_fault fault)
{
    return (unsigned)fault < COORD_FAULTS ? faults[fault].text : "an unknown fault";
}

/* ---- UTF-8 ---- */

/* The length of the well-formed sequence at `at`, or 0. */
static size_t sequence(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    size_t count = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (left < count) {
        return 0;
    }
    /* The second byte shuts out overlong forms, surrogates, and what is past U+10FFFF. */
    unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < least || at[1] > most) {
        return 0;
    }
    for (size_t i = 2; i < count; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return count;
}

size_t coord__utf8_span(const unsigned char *bytes, size_t count)
{
    size_t at = 0;
    while (at < count) {
        uint64_t word = 0;
        while (count - at >= sizeof word) {
            memcpy(&word, bytes + at, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) != 0) {
                break;
            }
            at += sizeof word;
        }
        while (at < count && bytes[at] < 0x80) {
            at++;
        }
        if (at < count) {
            size_t step = sequence(bytes + at, count - at);
            if (step == 0) {
                return at;
            }
            at += step;
        }
    }
    return at;
}

/* ---- the whole ---- */

static bool json_begin(unsigned char byte)
{
    return byte == '{' || byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* The form by the first byte: msgpack has no map that begins as JSON does. */
enum coord_form coord__form(const void *bytes)
{
    return json_begin(*(const unsigned char *)bytes) ? COORD_FORM_JSON : COORD_FORM_MSGPACK;
}

enum coord_message_fault coord_view(const void *bytes, size_t count, struct coord_value *out)
{
    if (count > COORD_MESSAGE_MAX) {
        return COORD_FAULT_TOO_LONG;
    }
    if (count == 0) {
        return COORD_FAULT_TRUNCATED;
    }
    struct coord__scan scan = {
        bytes,           (const unsigned char *)bytes + count, COORD_VIEW_VALUES_MAX, 0, false,
        COORD_FAULT_NONE};
    struct coord_value value;
    if (json_begin(*scan.at)) {
        if (!coord__json_scan(&scan, &value)) {
            return scan.fault;
        }
        while (scan.at < scan.end && *scan.at != '{' && json_begin(*scan.at)) {
            scan.at++; /* blanks at the end */
        }
    } else if (!coord__msgpack_scan(&scan, &value)) {
        return scan.fault;
    }
    if (scan.at != scan.end) {
        return COORD_FAULT_TRAILING;
    }
    *out = value;
    return COORD_FAULT_NONE;
}

bool coord__view_scalar(const void *bytes, size_t count, struct coord_value *out)
{
    struct coord__scan scan = {bytes,           (const unsigned char *)bytes + count, 1, 0, false,
                               COORD_FAULT_NONE};
    return coord__msgpack_scan(&scan, out) && scan.at == scan.end;
}

/* ---- reading ---- */

void coord_walk_begin(const struct coord_value *container, struct coord_walk *walk)
{
    bool has = container->kind == COORD_KIND_ARRAY || container->kind == COORD_KIND_MAP;
    walk->form = container->form;
    walk->pairs = container->kind == COORD_KIND_MAP;
    walk->left = has ? container->count : 0;
    walk->at = container->at;
    walk->end = container->at;
    if (!has) {
        return;
    }
    walk->end = container->at + container->bytes;
    unsigned char type = *container->at;
    bool wide = type == 0xdd || type == 0xdf;
    bool narrow = type == 0xdc || type == 0xde;
    walk->at += container->form == COORD_FORM_JSON ? 1 : wide ? 5 : narrow ? 3 : 1;
}

static bool read_one(struct coord_walk *walk, struct coord_value *out)
{
    struct coord__scan scan = {walk->at, walk->end, COORD_VIEW_VALUES_MAX,
                               0,        true,      COORD_FAULT_NONE};
    bool json = walk->form == COORD_FORM_JSON;
    if (json) {
        scan.at = coord__json_gap(scan.at, scan.end);
    }
    if (!(json ? coord__json_scan(&scan, out) : coord__msgpack_scan(&scan, out))) {
        return false; /* cannot be, for a view that coord_view() gave */
    }
    walk->at = scan.at;
    return true;
}

bool coord_walk_next(struct coord_walk *walk, struct coord_value *key, struct coord_value *value)
{
    if (walk->left == 0) {
        return false;
    }
    walk->left--;
    struct coord_value ignored;
    if (walk->pairs && !read_one(walk, key != NULL ? key : &ignored)) {
        walk->left = 0;
        return false;
    }
    if (!read_one(walk, value)) {
        walk->left = 0;
        return false;
    }
    return true;
}

bool coord_view_is(const struct coord_value *value, const char *text, size_t bytes)
{
    if (value->kind != COORD_KIND_TEXT) {
        return false;
    }
    if (!value->escaped) {
        return value->count == bytes && (bytes == 0 || memcmp(value->of.text, text, bytes) == 0);
    }
    const char *at = value->of.text;
    const char *end = at + value->count;
    size_t done = 0;
    while (at < end) {
        char part[4];
        size_t count = coord__json_character(&at, end, part);
        if (count > bytes - done || memcmp(text + done, part, count) != 0) {
            return false;
        }
        done += count;
    }
    return done == bytes;
}

size_t coord_view_text(const struct coord_value *value, char *out, size_t room)
{
    if (value->kind != COORD_KIND_TEXT) {
        return 0;
    }
    if (!value->escaped) {
        if (room > 0) {
            memcpy(out, value->of.text, value->count < room ? value->count : room);
        }
        return value->count;
    }
    const char *at = value->of.text;
    const char *end = at + value->count;
    size_t done = 0;
    while (at < end) {
        char part[4];
        size_t count = coord__json_character(&at, end, part);
        for (size_t i = 0; i < count; i++, done++) {
            if (done < room) {
                out[done] = part[i];
            }
        }
    }
    return done;
}

/* ---- equality of scalars ---- */

static bool text_equal(const struct coord_value *a, const struct coord_value *b)
{
    if (!a->escaped || !b->escaped) {
        const struct coord_value *plain = a->escaped ? b : a;
        return coord_view_is(plain == a ? b : a, plain->of.text, plain->count);
    }
    const char *at = a->of.text;
    const char *end = at + a->count;
    const char *other = b->of.text;
    const char *other_end = other + b->count;
    while (at < end && other < other_end) {
        char x[4];
        char y[4];
        size_t count = coord__json_character(&at, end, x);
        if (count != coord__json_character(&other, other_end, y) || memcmp(x, y, count) != 0) {
            return false;
        }
    }
    return at == end && other == other_end;
}

static bool whole(const struct coord_value *value)
{
    return value->kind == COORD_KIND_BOOLEAN || value->kind == COORD_KIND_INTEGER;
}

static int64_t whole_of(const struct coord_value *value)
{
    return value->kind == COORD_KIND_BOOLEAN ? (int64_t)value->of.boolean : value->of.integer;
}

static bool real_equals(double real, const struct coord_value *other)
{
    if (other->kind == COORD_KIND_REAL) {
        return !(real < other->of.real) && !(real > other->of.real);
    }
    if (other->kind == COORD_KIND_NATURAL) {
        return real >= 9223372036854775808.0 && real < 18446744073709551616.0 &&
               (uint64_t)real == other->of.natural && !(real < (double)other->of.natural) &&
               !(real > (double)other->of.natural);
    }
    if (!whole(other) || !(real >= -9223372036854775808.0) || !(real < 9223372036854775808.0)) {
        return false;
    }
    int64_t cut = (int64_t)real;
    return cut == whole_of(other) && !(real < (double)cut) && !(real > (double)cut);
}

bool coord_view_equal(const struct coord_value *a, const struct coord_value *b)
{
    if (a->kind == COORD_KIND_REAL) {
        return real_equals(a->of.real, b);
    }
    if (b->kind == COORD_KIND_REAL) {
        return real_equals(b->of.real, a);
    }
    if (whole(a) && whole(b)) {
        return whole_of(a) == whole_of(b);
    }
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case COORD_KIND_NULL:
        return true;
    case COORD_KIND_TEXT:
        return text_equal(a, b);
    case COORD_KIND_NATURAL:
        return a->of.natural == b->of.natural;
    case COORD_KIND_LONG:
        return a->bytes == b->bytes && memcmp(a->at, b->at, a->bytes) == 0;
    default:
        return false;
    }
}
