/* SPDX-License-Identifier: MIT
 * coord/message_json.c - one bounded walk over JSON as RFC 8259 has it; the words NaN and Infinity,
 * which some writers emit, are refused as numbers.
 */
#include "coord/message_view.h"

#include <stdlib.h>
#include <string.h>

static bool fail(struct coord__scan *scan, enum coord_message_fault fault)
{
    scan->fault = fault;
    return false;
}

static bool blank(unsigned char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static void skip_blanks(struct coord__scan *scan)
{
    while (scan->at < scan->end && blank(*scan->at)) {
        scan->at++;
    }
}

static bool digit(const struct coord__scan *scan)
{
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

/* ---- text ---- */

static int hex(unsigned char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* The four digits of \uXXXX, or -1. */
static int32_t code_unit(const unsigned char *at, const unsigned char *end)
{
    int32_t unit = 0;
    if (end - at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        int value = hex(at[i]);
        if (value < 0) {
            return -1;
        }
        unit = unit * 16 + value;
    }
    return unit;
}

/* Behind "\u". A surrogate has to have its other half. */
static bool take_unicode(struct coord__scan *scan)
{
    int32_t unit = code_unit(scan->at, scan->end);
    if (unit < 0) {
        return fail(scan, scan->end - scan->at < 4 ? COORD_FAULT_TRUNCATED : COORD_FAULT_SYNTAX);
    }
    scan->at += 4;
    if (unit < 0xd800 || unit > 0xdfff) {
        return true;
    }
    bool pair =
        unit < 0xdc00 && scan->end - scan->at >= 6 && scan->at[0] == '\\' && scan->at[1] == 'u';
    int32_t low = pair ? code_unit(scan->at + 2, scan->end) : -1;
    if (low < 0xdc00 || low > 0xdfff) {
        return fail(scan, COORD_FAULT_BAD_TEXT);
    }
    scan->at += 6;
    return true;
}

static bool take_escape(struct coord__scan *scan)
{
    scan->at++;
    if (scan->at == scan->end) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    unsigned char kind = *scan->at++;
    if (kind == 'u') {
        return take_unicode(scan);
    }
    return memchr("\"\\/bfnrt", kind, 8) != NULL ? true : fail(scan, COORD_FAULT_SYNTAX);
}

/* Up to the next quote or backslash. */
static bool take_plain(struct coord__scan *scan)
{
    const unsigned char *start = scan->at;
    while (scan->at < scan->end && *scan->at != '"' && *scan->at != '\\') {
        if (*scan->at < 0x20) {
            return fail(scan, COORD_FAULT_SYNTAX);
        }
        scan->at++;
    }
    size_t count = (size_t)(scan->at - start);
    if (!scan->checked && coord__utf8_span(start, count) != count) {
        return fail(scan, COORD_FAULT_BAD_TEXT);
    }
    return true;
}

static bool take_text(struct coord__scan *scan, struct coord_value *out)
{
    const unsigned char *start = ++scan->at;
    out->kind = COORD_KIND_TEXT;
    out->of.text = (const char *)start;
    for (;;) {
        if (!take_plain(scan)) {
            return false;
        }
        if (scan->at == scan->end) {
            return fail(scan, COORD_FAULT_TRUNCATED);
        }
        if (*scan->at == '"') {
            out->count = (uint32_t)(scan->at - start);
            scan->at++;
            return true;
        }
        out->escaped = true;
        if (!take_escape(scan)) {
            return false;
        }
    }
}

static size_t put_utf8(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    unsigned count = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = count - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(lead[count] | code);
    return count;
}

static size_t plain_character(const char **at, const char *end, char out[4])
{
    unsigned char first = (unsigned char)**at;
    size_t count = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (count > (size_t)(end - *at)) {
        count = (size_t)(end - *at); /* cannot be, for a text that was checked */
    }
    memcpy(out, *at, count);
    *at += count;
    return count;
}

size_t coord__json_character(const char **at, const char *end, char out[4])
{
    if (**at != '\\' || end - *at < 2) {
        return plain_character(at, end, out);
    }
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    char kind = (*at)[1];
    *at += 2;
    if (kind == 'u') {
        const unsigned char *digits = (const unsigned char *)*at;
        uint32_t code = (uint32_t)code_unit(digits, digits + 4);
        *at += 4;
        if (code >= 0xd800 && code <= 0xdbff) {
            uint32_t low = (uint32_t)code_unit(digits + 6, digits + 10);
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            *at += 6;
        }
        return put_utf8(code, out);
    }
    const char *found = memchr(from, kind, 5);
    out[0] = found != NULL ? to[found - from] : kind;
    return 1;
}

/* ---- numbers ---- */

static void take_digits(struct coord__scan *scan)
{
    while (digit(scan)) {
        scan->at++;
    }
}

static bool need_digits(struct coord__scan *scan)
{
    if (!digit(scan)) {
        return fail(scan, scan->at == scan->end ? COORD_FAULT_TRUNCATED : COORD_FAULT_SYNTAX);
    }
    take_digits(scan);
    return true;
}

/* Walks over one; `whole` tells whether it is an integer. */
static bool take_number_text(struct coord__scan *scan, bool *whole)
{
    if (*scan->at == '-') {
        scan->at++;
    }
    if (scan->at < scan->end && *scan->at == 'I') {
        return fail(scan, COORD_FAULT_BAD_NUMBER);
    }
    if (scan->at < scan->end && *scan->at == '0') {
        scan->at++;
    } else if (!need_digits(scan)) {
        return false;
    }
    *whole = true;
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        *whole = false;
        if (!need_digits(scan)) {
            return false;
        }
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        scan->at++;
        *whole = false;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-')) {
            scan->at++;
        }
        return need_digits(scan);
    }
    return true;
}

static void set_whole(const unsigned char *at, const unsigned char *end, struct coord_value *out)
{
    bool negative = *at == '-';
    uint64_t size = 0;
    out->kind = COORD_KIND_LONG;
    for (at += negative ? 1 : 0; at < end; at++) {
        uint64_t value = (uint64_t)(*at - '0');
        if (size > (UINT64_MAX - value) / 10) {
            return;
        }
        size = size * 10 + value;
    }
    if (size <= INT64_MAX) {
        out->kind = COORD_KIND_INTEGER;
        out->of.integer = negative ? -(int64_t)size : (int64_t)size;
    } else if (negative && size == (uint64_t)INT64_MAX + 1) {
        out->kind = COORD_KIND_INTEGER;
        out->of.integer = INT64_MIN;
    } else if (!negative) {
        out->kind = COORD_KIND_NATURAL;
        out->of.natural = size;
    }
}

/*
 * strtod() reads the decimal mark of the host's locale, so the text that it gets has none: the
 * digits as a whole number, and the exponent moved.
 */
static double real_of(const unsigned char *at, const unsigned char *end)
{
    char text[COORD_VIEW_NUMBER_MAX + 16];
    size_t used = 0;
    int shift = 0;
    bool fraction = false;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        text[used++] = (char)*at;
        shift -= fraction ? 1 : 0;
    }
    int exponent = 0;
    if (at < end) {
        bool negative = at[1] == '-';
        for (at += 1; at < end; at++) {
            if (*at >= '0' && *at <= '9' && exponent < 100000) {
                exponent = exponent * 10 + (*at - '0');
            }
        }
        exponent = negative ? -exponent : exponent;
    }
    exponent += shift;
    text[used++] = 'e';
    text[used++] = exponent < 0 ? '-' : '+';
    unsigned left = (unsigned)(exponent < 0 ? -exponent : exponent);
    for (unsigned unit = 10000000; unit > 0; unit /= 10) {
        text[used++] = (char)('0' + left / unit % 10);
    }
    text[used] = '\0';
    return strtod(text, NULL);
}

static bool take_number(struct coord__scan *scan, struct coord_value *out)
{
    const unsigned char *start = scan->at;
    bool whole = false;
    if (!take_number_text(scan, &whole)) {
        return false;
    }
    if (scan->at - start > COORD_VIEW_NUMBER_MAX) {
        return fail(scan, COORD_FAULT_BAD_NUMBER);
    }
    if (whole) {
        set_whole(start, scan->at, out);
        return true;
    }
    out->kind = COORD_KIND_REAL;
    out->of.real = real_of(start, scan->at);
    return out->of.real - out->of.real == 0.0 ? true : fail(scan, COORD_FAULT_BAD_NUMBER);
}

/* ---- values ---- */

static bool take_word(struct coord__scan *scan, const char *word, size_t count)
{
    size_t left = (size_t)(scan->end - scan->at);
    if (memcmp(scan->at, word, left < count ? left : count) != 0) {
        return fail(scan, COORD_FAULT_SYNTAX);
    }
    if (left < count) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    scan->at += count;
    return true;
}

/* A scalar, or the bracket of a container. */
static bool take_head(struct coord__scan *scan, struct coord_value *out)
{
    skip_blanks(scan);
    out->at = scan->at;
    out->form = COORD_FORM_JSON;
    out->escaped = false;
    out->count = 0;
    if (scan->at == scan->end) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    if (scan->values == 0) {
        return fail(scan, COORD_FAULT_COUNT);
    }
    scan->values--;
    switch (*scan->at) {
    case '"':
        return take_text(scan, out);
    case '{':
    case '[':
        out->kind = *scan->at++ == '{' ? COORD_KIND_MAP : COORD_KIND_ARRAY;
        return true;
    case 't':
        out->kind = COORD_KIND_BOOLEAN;
        out->of.boolean = true;
        return take_word(scan, "true", 4);
    case 'f':
        out->kind = COORD_KIND_BOOLEAN;
        out->of.boolean = false;
        return take_word(scan, "false", 5);
    case 'n':
        out->kind = COORD_KIND_NULL;
        return take_word(scan, "null", 4);
    case 'N':
    case 'I':
        return fail(scan, COORD_FAULT_BAD_NUMBER);
    default:
        break;
    }
    if (*scan->at == '-' || digit(scan)) {
        return take_number(scan, out);
    }
    return fail(scan, COORD_FAULT_SYNTAX);
}

struct nesting {
    uint32_t count[COORD_VIEW_DEPTH_MAX]; /* elements or pairs so far */
    bool map[COORD_VIEW_DEPTH_MAX];
    unsigned depth;
};

static bool take_key(struct coord__scan *scan)
{
    skip_blanks(scan);
    if (scan->at < scan->end && *scan->at != '"') {
        return fail(scan, COORD_FAULT_SYNTAX);
    }
    struct coord_value key;
    if (!take_head(scan, &key)) {
        return false;
    }
    skip_blanks(scan);
    if (scan->at == scan->end) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    return *scan->at++ == ':' ? true : fail(scan, COORD_FAULT_SYNTAX);
}

/* Behind an opening bracket: `*empty` when it closes at once, else a value is due. */
static bool enter(struct coord__scan *scan, struct nesting *nesting, bool map, bool *empty)
{
    if (nesting->depth + scan->depth >= COORD_VIEW_DEPTH_MAX) {
        return fail(scan, COORD_FAULT_DEPTH);
    }
    skip_blanks(scan);
    *empty = scan->at < scan->end && *scan->at == (map ? '}' : ']');
    nesting->map[nesting->depth] = map;
    nesting->count[nesting->depth++] = 0;
    return *empty || !map ? true : take_key(scan);
}

/* A value is complete: what follows it? `*more` when another value is due. */
static bool leave(struct coord__scan *scan, struct nesting *nesting, bool *more)
{
    unsigned top = nesting->depth - 1;
    skip_blanks(scan);
    if (scan->at == scan->end) {
        return fail(scan, COORD_FAULT_TRUNCATED);
    }
    unsigned char mark = *scan->at++;
    *more = mark == ',';
    if (*more) {
        return nesting->map[top] ? take_key(scan) : true;
    }
    if (mark != (nesting->map[top] ? '}' : ']')) {
        return fail(scan, COORD_FAULT_SYNTAX);
    }
    nesting->depth--;
    return true;
}

/* From an opening bracket to its closing one. */
static bool scan_within(struct coord__scan *scan, struct coord_value *out)
{
    struct nesting nesting;
    nesting.depth = 0;
    struct coord_value value = *out;
    for (;;) {
        bool more = false;
        bool empty = false;
        if (value.kind == COORD_KIND_MAP || value.kind == COORD_KIND_ARRAY) {
            if (!enter(scan, &nesting, value.kind == COORD_KIND_MAP, &empty)) {
                return false;
            }
            more = !empty;
        } else {
            nesting.count[nesting.depth - 1]++;
        }
        while (!more && nesting.depth > 0) {
            if (!leave(scan, &nesting, &more)) {
                return false;
            }
            if (!more && nesting.depth > 0) {
                nesting.count[nesting.depth - 1]++;
            }
        }
        if (nesting.depth == 0) {
            out->count = nesting.count[0];
            return true;
        }
        if (!take_head(scan, &value)) {
            return false;
        }
    }
}

bool coord__json_scan(struct coord__scan *scan, struct coord_value *out)
{
    if (!take_head(scan, out)) {
        return false;
    }
    if ((out->kind == COORD_KIND_MAP || out->kind == COORD_KIND_ARRAY) && !scan_within(scan, out)) {
        return false;
    }
    out->bytes = (uint32_t)(scan->at - out->at);
    return true;
}

const unsigned char *coord__json_gap(const unsigned char *at, const unsigned char *end)
{
    while (at < end && (blank(*at) || *at == ',' || *at == ':')) {
        at++;
    }
    return at;
}
