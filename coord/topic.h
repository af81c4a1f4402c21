/* SPDX-License-Identifier: MIT
 * coord/topic.h - the names of the topics that a fleet talks on, one for each type of message.
 *
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 */
#ifndef COORD_TOPIC_H
#define COORD_TOPIC_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Values are stable. The type of a message is known from its topic alone. */
enum coord_message_type {
    COORD_MESSAGE_HEARTBEAT = 0,
    COORD_MESSAGE_SHUTDOWN = 1,
    COORD_MESSAGE_WORK_ASSIGNMENT = 2,
    COORD_MESSAGE_FINISHED = 3, /* ours */
    COORD_MESSAGE_ORPHANS = 4   /* ours */
};

enum {
    COORD_MESSAGE_TYPES = 5,
    COORD_TOPIC_PREFIX_MAX = 200,
    COORD_TOPIC_MAX = 224 /* the longest topic and the NUL */
};

/** The seed library's prefix; a fleet that shares a broker with another chooses its own. */
#define COORD_TOPIC_PREFIX "__eventsource_coordination"

/**
 * Form a topic: the prefix, a dot, the type's name.
 *
 * @param prefix  NULL or empty: COORD_TOPIC_PREFIX; at most COORD_TOPIC_PREFIX_MAX bytes of
 *                printable ASCII without blanks.
 * @param out     room for COORD_TOPIC_MAX; written on success.
 * @return        COORD_OK, or BAD_ARGUMENT: a prefix that a broker might refuse.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_topic.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_topic(const char *prefix,
                                                      enum coord_message_type type, char *out);

/**
 * The type that belongs to a topic.
 *
 * @param prefix  as for coord_topic().
 * @param topic   borrowed; not NUL-terminated.
 * @return        true and `out` written; false: not a topic of this prefix.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_topic.c.
 */
COORD_API bool coord_topic_type(const char *prefix, const char *topic, size_t bytes,
                                enum coord_message_type *out);

/** The last part of a type's topic, such as "work_assignment". Thread: any. */
COORD_API const char *coord_message_type_name(enum coord_message_type type);

#ifdef __cplusplus
}
#endif
#endif /* COORD_TOPIC_H */
