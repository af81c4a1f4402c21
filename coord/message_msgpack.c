/* SPDX-License-Identifier: MIT
 * coord/message_msgpack.c - one bounded walk over msgpack. A declared length moves nothing but a
 * comparison with the bytes that are there.
 */
#include "coord/message_view.h"

#include <string.h>

#if defined(__GNUC__)
#define COORD__APART __attribute__((noinline))
#else
#define COORD__APART
#endif

static bool fail(struct coord__scan *scan, enum coord_message_fault fault)
{
    scan->fault = fault;
    return false;
}

static inline uint32_t big_endian_half(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Written out, so that a compiler sees that it is one load. */
static inline uint64_t big_endian(const unsigned char *at, unsigned width)
{
    switch (width) {
    case 1:
        return at[0];
    case 2:
        return (uint64_t)at[0] << 8 | at[1];
    case 4:
        return big_endian_half(at);
    default:
        return (uint64_t)big_endian_half(at) << 32 | big_endian_half(at + 4);
    }
}

/* An unsigned number of 1, 2, 4 or 8 bytes behind the type byte. */
static bool take_number(struct coord__scan *scan, unsigned width, uint64_t *out)
{
    if ((size_t)(scan->end - scan->at) < width) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    *out = big_endian(scan->at, width);
    scan->at += width;
    return true;
}

static bool take_bytes(struct coord__scan *scan, uint64_t count)
{
    if ((uint64_t)(scan->end - scan->at) < count) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    scan->at += count;
    return true;
}

static inline uint64_t word_at(const unsigned char *at)
{
    uint64_t word = 0;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint64_t half_at(const unsigned char *at)
{
    uint32_t half = 0;
    memcpy(&half, at, sizeof half);
    return half;
}

/* Most texts are short and plain: by words, the last of which may overlap the one before. */
static inline bool well_formed(const unsigned char *text, size_t count)
{
    const uint64_t high = UINT64_C(0x8080808080808080);
    uint64_t seen = 0;
    if (count >= sizeof seen) {
        size_t last = count - sizeof seen;
        for (size_t at = 0; at < last; at += sizeof seen) {
            seen |= word_at(text + at);
        }
        seen |= word_at(text + last);
    } else if (count >= sizeof(uint32_t)) {
        seen = half_at(text) | half_at(text + count - sizeof(uint32_t));
    } else {
        for (size_t at = 0; at < count; at++) {
            seen |= text[at];
        }
    }
    return (seen & high) == 0 || coord__utf8_span(text, count) == count;
}

static inline bool take_text(struct coord__scan *scan, uint64_t count, struct coord_value *out)
{
    const unsigned char *text = scan->at;
    if ((uint64_t)(scan->end - text) < count) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    scan->at += count;
    if (!scan->checked && !well_formed(text, (size_t)count)) {
        return fail(scan, COORD_FAULT_BAD_TEXT);
    }
    out->kind = COORD_KIND_TEXT;
    out->of.text = (const char *)text;
    out->count = (uint32_t)count;
    return true;
}

static bool take_container(struct coord__scan *scan, enum coord_kind kind, uint64_t count,
                           struct coord_value *out)
{
    /* Each element takes a byte at least. */
    uint64_t elements = kind == COORD_KIND_MAP ? count * 2 : count;
    if (elements > (uint64_t)(scan->end - scan->at)) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    out->kind = (uint8_t)kind;
    out->count = (uint32_t)count;
    return true;
}

static bool take_real(struct coord__scan *scan, unsigned width, struct coord_value *out)
{
    uint64_t bits = 0;
    if (!take_number(scan, width, &bits)) {
        return false;
    }
    if (width == 4) {
        uint32_t half = (uint32_t)bits;
        float narrow = 0;
        memcpy(&narrow, &half, sizeof narrow);
        out->of.real = (double)narrow;
    } else {
        memcpy(&out->of.real, &bits, sizeof bits);
    }
    /* Neither infinite nor not a number. */
    if (!(out->of.real - out->of.real == 0.0)) {
        return fail(scan, COORD_FAULT_BAD_NUMBER);
    }
    out->kind = COORD_KIND_REAL;
    return true;
}

static bool take_unsigned(struct coord__scan *scan, unsigned width, struct coord_value *out)
{
    uint64_t value = 0;
    if (!take_number(scan, width, &value)) {
        return false;
    }
    if (value > INT64_MAX) {
        out->kind = COORD_KIND_NATURAL;
        out->of.natural = value;
    } else {
        out->kind = COORD_KIND_INTEGER;
        out->of.integer = (int64_t)value;
    }
    return true;
}

static bool take_signed(struct coord__scan *scan, unsigned width, struct coord_value *out)
{
    uint64_t value = 0;
    if (!take_number(scan, width, &value)) {
        return false;
    }
    uint64_t sign = UINT64_C(1) << (width * 8 - 1);
    /* Sign extension without a shift of a negative number. */
    int64_t low = (int64_t)(value & (sign - 1));
    out->kind = COORD_KIND_INTEGER;
    out->of.integer = (value & sign) != 0 ? low + (-1 - (int64_t)(sign - 1)) : low;
    return true;
}

static bool take_other(struct coord__scan *scan, uint64_t count, struct coord_value *out)
{
    out->kind = COORD_KIND_OTHER;
    return take_bytes(scan, count);
}

/* Types of one byte that carry a length of 1, 2 or 4 bytes. */
static bool take_sized(struct coord__scan *scan, unsigned type, struct coord_value *out)
{
    static const unsigned char widths[] = {1, 2, 4};
    uint64_t count = 0;
    unsigned width = type <= 0xc6   ? widths[type - 0xc4]  /* bin */
                     : type <= 0xc9 ? widths[type - 0xc7]  /* ext */
                     : type <= 0xdb ? widths[type - 0xd9]  /* str */
                     : type <= 0xdd ? widths[type - 0xdb]  /* array, from 2 */
                                    : widths[type - 0xdd]; /* map, from 2 */
    if (!take_number(scan, width, &count)) {
        return false;
    }
    if (type <= 0xc6) {
        return take_other(scan, count, out);
    }
    if (type <= 0xc9) {
        return take_other(scan, count + 1, out); /* and the kind of extension */
    }
    if (type <= 0xdb) {
        return take_text(scan, count, out);
    }
    return take_container(scan, type <= 0xdd ? COORD_KIND_ARRAY : COORD_KIND_MAP, count, out);
}

static bool take_typed(struct coord__scan *scan, unsigned type, struct coord_value *out)
{
    switch (type) {
    case 0xc0:
        out->kind = COORD_KIND_NULL;
        return true;
    case 0xc1:
        return fail(scan, COORD_FAULT_SYNTAX);
    case 0xc2:
    case 0xc3:
        out->kind = COORD_KIND_BOOLEAN;
        out->of.boolean = type == 0xc3;
        return true;
    case 0xca:
        return take_real(scan, 4, out);
    case 0xcb:
        return take_real(scan, 8, out);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        return take_unsigned(scan, 1U << (type - 0xcc), out);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return take_signed(scan, 1U << (type - 0xd0), out);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return take_other(scan, (1U << (type - 0xd4)) + 1U, out);
    default:
        return take_sized(scan, type, out);
    }
}

static inline bool take_head(struct coord__scan *scan, struct coord_value *out)
{
    out->at = scan->at;
    out->form = COORD_FORM_MSGPACK;
    out->escaped = false;
    if (scan->at == scan->end) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    if (scan->values == 0) {
        return fail(scan, COORD_FAULT_COUNT);
    }
    scan->values--;
    unsigned type = *scan->at++;
    if ((type & 0xe0) == 0xa0) {
        return take_text(scan, type & 0x1f, out);
    }
    if (type < 0x80 || type >= 0xe0) {
        out->kind = COORD_KIND_INTEGER;
        out->of.integer = type < 0x80 ? (int64_t)type : (int64_t)type - 256;
        return true;
    }
    if (type < 0xa0) {
        return take_container(scan, type < 0x90 ? COORD_KIND_MAP : COORD_KIND_ARRAY, type & 0x0f,
                              out);
    }
    return take_typed(scan, type, out);
}

/* Most of what a message holds: a text of at most 255 bytes, or a small number. false: it is
 * something else, or not as it should be, and nothing was taken. */
static inline bool take_plain(struct coord__scan *scan, struct coord_value *out)
{
    const unsigned char *at = scan->at;
    size_t left = (size_t)(scan->end - at);
    if (left < 2 || scan->values == 0) {
        return false;
    }
    unsigned type = *at;
    size_t head = type == 0xd9 ? 2 : 1;
    size_t count = type == 0xd9 ? at[1] : type & 0x1f;
    if (type == 0xd9 || (type & 0xe0) == 0xa0) {
        if (left - head < count || (!scan->checked && !well_formed(at + head, count))) {
            return false;
        }
        out->kind = COORD_KIND_TEXT;
        out->of.text = (const char *)at + head;
        out->count = (uint32_t)count;
    } else if (type < 0x80) {
        count = 0;
        out->kind = COORD_KIND_INTEGER;
        out->of.integer = (int64_t)type;
    } else {
        return false;
    }
    out->at = at;
    out->form = COORD_FORM_MSGPACK;
    out->escaped = false;
    out->bytes = (uint32_t)(head + count);
    scan->values--;
    scan->at = at + head + count;
    return true;
}

bool coord__msgpack_head(struct coord__scan *scan, struct coord_value *out)
{
    return take_head(scan, out);
}

/* What is left to read of each container that is open. */
struct nesting {
    uint32_t left[COORD_VIEW_DEPTH_MAX];
    bool map[COORD_VIEW_DEPTH_MAX];
    unsigned depth;
};

static bool enter(struct coord__scan *scan, struct nesting *nesting,
                  const struct coord_value *value)
{
    if (value->kind != COORD_KIND_ARRAY && value->kind != COORD_KIND_MAP) {
        return true;
    }
    if (nesting->depth + scan->depth >= COORD_VIEW_DEPTH_MAX) {
        return fail(scan, COORD_FAULT_DEPTH);
    }
    bool map = value->kind == COORD_KIND_MAP;
    nesting->map[nesting->depth] = map;
    nesting->left[nesting->depth++] = map ? value->count * 2 : value->count;
    return true;
}

static bool scan_within(struct coord__scan *scan, struct nesting *nesting)
{
    while (nesting->depth > 0) {
        unsigned top = nesting->depth - 1;
        if (nesting->left[top] == 0) {
            nesting->depth--;
            continue;
        }
        struct coord_value value;
        if (!take_plain(scan, &value) && !take_head(scan, &value)) {
            return false;
        }
        bool key = nesting->map[top] && nesting->left[top] % 2 == 0;
        if (key && value.kind != COORD_KIND_TEXT) {
            return fail(scan, COORD_FAULT_BAD_KEY);
        }
        nesting->left[top]--;
        if (!enter(scan, nesting, &value)) {
            return false;
        }
    }
    return true;
}

/* Apart, so that what is plain needs no frame. */
COORD__APART static bool scan_other(struct coord__scan *scan, struct coord_value *out)
{
    if (!take_head(scan, out)) {
        return false;
    }
    if (out->kind == COORD_KIND_ARRAY || out->kind == COORD_KIND_MAP) {
        struct nesting nesting;
        nesting.depth = 0;
        if (!enter(scan, &nesting, out) || !scan_within(scan, &nesting)) {
            return false;
        }
    }
    out->bytes = (uint32_t)(scan->at - out->at);
    return true;
}

bool coord__msgpack_scan(struct coord__scan *scan, struct coord_value *out)
{
    return take_plain(scan, out) || scan_other(scan, out);
}

bool coord__msgpack_names(const struct coord_value *array, size_t most)
{
    struct coord_walk walk;
    coord_walk_begin(array, &walk);
    for (uint32_t i = 0; i < array->count; i++) {
        unsigned type = *walk.at++;
        size_t count = type & 0x1f;
        if (type == 0xd9) {
            count = *walk.at++;
        } else if ((type & 0xe0) != 0xa0) {
            return false;
        }
        if (count == 0 || count > most) {
            return false;
        }
        walk.at += count;
    }
    return true;
}
