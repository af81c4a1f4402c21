/* SPDX-License-Identifier: MIT
 * coord/message_view.h - one value of a message, msgpack or JSON, looked at where it lies.
 *
 * Bytes from a bus are walked once, within bounds that no declared length can move, and then read
 * through these views. Nothing is copied and nothing is allocated; a view lives as long as the
 * bytes do.
 *
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 */
#ifndef COORD_MESSAGE_VIEW_H
#define COORD_MESSAGE_VIEW_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_MESSAGE_MAX = 64 * 1024, /* bytes of one message */
    COORD_VIEW_DEPTH_MAX = 16,     /* maps and arrays within each other, the outermost included */
    COORD_VIEW_VALUES_MAX = 8192,  /* values of one message, keys and containers included */
    COORD_VIEW_NUMBER_MAX = 128    /* bytes of a number in JSON */
};

enum coord_form {
    COORD_FORM_MSGPACK = 0,
    COORD_FORM_JSON = 1
};

/** Why a message was refused. Stable values; each is counted by itself. */
enum coord_message_fault {
    COORD_FAULT_NONE = 0,
    COORD_FAULT_TOO_LONG = 1,      /* more bytes than COORD_MESSAGE_MAX */
    COORD_FAULT_TRUNCATED = 2,     /* ends, or declares more than it holds */
    COORD_FAULT_TRAILING = 3,      /* goes on behind its end */
    COORD_FAULT_SYNTAX = 4,        /* neither msgpack nor JSON */
    COORD_FAULT_DEPTH = 5,         /* more than COORD_VIEW_DEPTH_MAX */
    COORD_FAULT_COUNT = 6,         /* more than COORD_VIEW_VALUES_MAX, or a list too long */
    COORD_FAULT_BAD_TEXT = 7,      /* not UTF-8 */
    COORD_FAULT_BAD_NUMBER = 8,    /* not finite, or too long to be one */
    COORD_FAULT_NOT_A_MAP = 9,     /* the message as a whole */
    COORD_FAULT_BAD_KEY = 10,      /* a key that is not text */
    COORD_FAULT_MISSING_KEY = 11,  /* a required one */
    COORD_FAULT_WRONG_TYPE = 12,   /* of the value of a known key */
    COORD_FAULT_BAD_ID = 13,       /* not 1 to 255 bytes */
    COORD_FAULT_BAD_TIME = 14,     /* no time */
    COORD_FAULT_NAIVE_TIME = 15,   /* a time without offset */
    COORD_FAULT_BAD_INTENT = 16,   /* none of the four */
    COORD_FAULT_OUT_OF_RANGE = 17, /* a number that the field cannot have */
    COORD_FAULT_BAD_WORD = 18      /* kind, cause or certainty unknown */
};

enum {
    COORD_FAULTS = 19
};

enum coord_kind {
    COORD_KIND_ABSENT = 0,
    COORD_KIND_NULL = 1,
    COORD_KIND_BOOLEAN = 2,
    COORD_KIND_INTEGER = 3, /* fits int64_t */
    COORD_KIND_NATURAL = 4, /* fits uint64_t only */
    COORD_KIND_LONG = 5,    /* an integer of JSON that fits neither; its digits are the view */
    COORD_KIND_REAL = 6,
    COORD_KIND_TEXT = 7,
    COORD_KIND_ARRAY = 8,
    COORD_KIND_MAP = 9,
    COORD_KIND_OTHER = 10 /* msgpack's binary and extension types */
};

/** A view. `at` and `bytes` are its encoded form; the rest is what it says. */
struct coord_value {
    const unsigned char *at;
    union {
        bool boolean;
        int64_t integer;
        uint64_t natural;
        double real;
        const char *text; /* of `count` bytes, still escaped if `escaped` */
    } of;
    uint32_t bytes;
    uint32_t count; /* bytes of a text, elements of an array, pairs of a map */
    uint8_t kind;   /* enum coord_kind */
    uint8_t form;   /* enum coord_form */
    bool escaped;   /* text of JSON with backslashes in it */
};

/** Through the elements of an array or the pairs of a map. */
struct coord_walk {
    const unsigned char *at;
    const unsigned char *end;
    uint32_t left;
    uint8_t form;
    bool pairs;
};

/**
 * Walk one whole message, check it, and look at its outermost value.
 *
 * @param bytes  borrowed, for as long as the view is used.
 * @param count  any; what is more than COORD_MESSAGE_MAX is refused.
 * @param out    written on COORD_FAULT_NONE only.
 * @return       the first fault, or NONE: then reading through the view cannot fail.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c, tests/fuzz/fuzz_message.c.
 */
COORD_API COORD_MUST_CHECK enum coord_message_fault coord_view(const void *bytes, size_t count,
                                                               struct coord_value *out);

/** Begin at the first element of an array or a map; of anything else there is none. Thread: any. */
COORD_API void coord_walk_begin(const struct coord_value *container, struct coord_walk *walk);

/**
 * The next element, or pair.
 *
 * @param key    written for maps; may be NULL.
 * @param value  written.
 * @return       false: there is none.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c.
 */
COORD_API bool coord_walk_next(struct coord_walk *walk, struct coord_value *key,
                               struct coord_value *value);

/** Is this view exactly that text? Thread: any. */
COORD_API bool coord_view_is(const struct coord_value *value, const char *text, size_t bytes);

/**
 * Take the text of a view out, without escapes.
 *
 * @param value  a text; anything else counts as empty.
 * @param out    room for `room` bytes; written up to there, and not NUL-terminated.
 * @return       the full length, also when `room` is less.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c.
 */
COORD_API size_t coord_view_text(const struct coord_value *value, char *out, size_t room);

/**
 * Do two views say the same? Numbers and booleans by value, as the seed library compares ids; an
 * array or a map equals nothing. Thread: any.
 */
COORD_API bool coord_view_equal(const struct coord_value *a, const struct coord_value *b);

/** The stable name of a fault, such as "NAIVE_TIME". Thread: any. */
COORD_API const char *coord_fault_name(enum coord_message_fault fault);

/** What a fault means, for people, without a full stop. Thread: any. */
COORD_API const char *coord_fault_text(enum coord_message_fault fault);

/* ---- between coord/message*.c only ---- */

/* Where a walk stands, and what bounds it. */
struct coord__scan {
    const unsigned char *at;
    const unsigned char *end;
    uint32_t values; /* left */
    unsigned depth;  /* of containers that are open already */
    bool checked;    /* it was walked before: texts are well-formed */
    enum coord_message_fault fault;
};

/* The form of bytes, one at least. */
enum coord_form coord__form(const void *bytes);

/* A scalar, or the head of a container. */
bool coord__msgpack_head(struct coord__scan *scan, struct coord_value *out);

/* One value with all that it contains; false: scan->fault tells why. */
bool coord__msgpack_scan(struct coord__scan *scan, struct coord_value *out);
bool coord__json_scan(struct coord__scan *scan, struct coord_value *out);

/* Does an array of msgpack that was checked hold nothing but texts of 1 to `most` bytes, each with
 * the shortest head or one of a byte? false may also mean that another head is used. */
bool coord__msgpack_names(const struct coord_value *array, size_t most);

/* To the next value within an array or map of JSON: past blanks, commas and colons. */
const unsigned char *coord__json_gap(const unsigned char *at, const unsigned char *end);

/* One character of a JSON text that was checked, at most four bytes. */
size_t coord__json_character(const char **at, const char *end, char out[4]);

/* A scalar of msgpack alone, which need not be a map. */
bool coord__view_scalar(const void *bytes, size_t count, struct coord_value *out);

/* How many bytes of well-formed UTF-8 lie there, from the start to the first fault. */
size_t coord__utf8_span(const unsigned char *bytes, size_t count);

#ifdef __cplusplus
}
#endif
#endif /* COORD_MESSAGE_VIEW_H */
