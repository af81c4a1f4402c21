/* SPDX-License-Identifier: MIT
 * coord/topic.c - prefix, dot, type.
 */
#include "coord/topic.h"

#include <string.h>

static const char *const names[COORD_MESSAGE_TYPES] = {"heartbeat", "shutdown", "work_assignment",
                                                       "finished", "orphans"};

static const char *chosen(const char *prefix)
{
    return prefix != NULL && *prefix != '\0' ? prefix : COORD_TOPIC_PREFIX;
}

static bool acceptable(const char *prefix)
{
    size_t count = strlen(prefix);
    for (size_t i = 0; i < count; i++) {
        if (prefix[i] <= ' ' || prefix[i] > '~') {
            return false;
        }
    }
    return count <= COORD_TOPIC_PREFIX_MAX;
}

const char *coord_message_type_name(enum coord_message_type type)
{
    return (unsigned)type < COORD_MESSAGE_TYPES ? names[type] : "unknown";
}

enum coord_err coord_topic(const char *prefix, enum coord_message_type type, char *out)
{
    prefix = chosen(prefix);
    if ((unsigned)type >= COORD_MESSAGE_TYPES || !acceptable(prefix)) {
        return COORD_E_BAD_ARGUMENT;
    }
    size_t count = strlen(prefix);
    memcpy(out, prefix, count);
    out[count] = '.';
    memcpy(out + count + 1, names[type], strlen(names[type]) + 1);
    return COORD_OK;
}

bool coord_topic_type(const char *prefix, const char *topic, size_t bytes,
                      enum coord_message_type *out)
{
    prefix = chosen(prefix);
    size_t count = strlen(prefix);
    if (bytes <= count || memcmp(topic, prefix, count) != 0 || topic[count] != '.') {
        return false;
    }
    for (unsigned type = 0; type < COORD_MESSAGE_TYPES; type++) {
        size_t name_bytes = strlen(names[type]);
        if (bytes == count + 1 + name_bytes &&
            memcmp(topic + count + 1, names[type], name_bytes) == 0) {
            *out = (enum coord_message_type)type;
            return true;
        }
    }
    return false;
}
