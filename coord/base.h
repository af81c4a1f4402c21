/* SPDX-License-Identifier: MIT
 * coord/base.h - the few words that every other header needs: time, visibility, asserts.
 */
#ifndef COORD_BASE_H
#define COORD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define COORD_API        __attribute__((visibility("default")))
#define COORD_MUST_CHECK __attribute__((warn_unused_result))
#define COORD_NORETURN   __attribute__((noreturn))
#define COORD_PRINTF(format_index, first_index) \
    __attribute__((format(printf, format_index, first_index)))
#else
#define COORD_API
#define COORD_MUST_CHECK
#define COORD_NORETURN
#define COORD_PRINTF(format_index, first_index)
#endif

/** Milliseconds: an instant of a clock that never goes back and counts suspend, or a duration. */
typedef uint64_t coord_ms;

/** No deadline; no end. */
#define COORD_NEVER UINT64_MAX

enum {
    COORD_NAME_MAX = 255,      /* bytes of a name or an identity; any byte, at least one */
    COORD_ESCAPED_MAX = 766,   /* its escaped form, three bytes for one, and the NUL */
    COORD_METADATA_MAX = 1024, /* bytes of a leader's metadata */
    COORD_OWNER_BYTES = 16,    /* the random incarnation of one elector object */
    COORD_OWNER_HEX = 33       /* its text form and the NUL */
};

/*
 * COORD_X_CONFIG_INIT is made of these: the size, these fields, the others 0. C++ has no designated
 * initializers before C++20, and wants all fields named; there the fields are assigned.
 */
#ifdef __cplusplus
#define COORD__SET(field, value) coord__made.field = value;
#define COORD__INIT(type, fields)              \
    []() -> struct type {                      \
        struct type coord__made = {};          \
        coord__made.size = sizeof coord__made; \
        fields return coord__made;             \
    }()
#else
#define COORD__SET(field, value) .field = value,
#define COORD__INIT(type, fields)           \
    {                                       \
        .size = sizeof(struct type), fields \
    }
#endif

/** Drop a result on purpose, and say why. gcc takes no (void) cast for COORD_MUST_CHECK. */
#define COORD_IGNORE(expression, why) \
    do {                              \
        if (expression) { /* why */   \
        }                             \
    } while (0)

/** A programmer's error ends the process, in release builds too. No byte from outside does. */
#define COORD_ASSERT(condition)                                   \
    do {                                                          \
        if (!(condition)) {                                       \
            coord__assert_failed(#condition, __FILE__, __LINE__); \
        }                                                         \
    } while (0)

/* The file is part of the message only; nothing is printed by a library. */
COORD_API COORD_NORETURN void coord__assert_failed(const char *condition, const char *file,
                                                   int line);

/** a + b, where COORD_NEVER and anything past it stays COORD_NEVER. */
static inline coord_ms coord_ms_add(coord_ms a, coord_ms b)
{
    return a > COORD_NEVER - b ? COORD_NEVER : a + b;
}

/** a - b, not below zero. */
static inline coord_ms coord_ms_sub(coord_ms a, coord_ms b)
{
    return a > b ? a - b : 0;
}

static inline coord_ms coord_ms_min(coord_ms a, coord_ms b)
{
    return a < b ? a : b;
}

static inline coord_ms coord_ms_max(coord_ms a, coord_ms b)
{
    return a > b ? a : b;
}

#ifdef __cplusplus
}
#endif
#endif /* COORD_BASE_H */
