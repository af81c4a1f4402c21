/* SPDX-License-Identifier: MIT
 * brokers/local_frame.c - one message as one datagram.
 *
 * "cob1", the topic's length in two bytes (the high one first), the topic, the bytes.
 */
#include "brokers/local_parts.h"

#include <string.h>

enum {
    MARK = 4
};

static const unsigned char mark[MARK] = {'c', 'o', 'b', '1'};

size_t coord__local_frame_write(const struct coord_broker_message *what, unsigned char *out)
{
    const size_t topic = strlen(what->topic);
    memcpy(out, mark, MARK);
    out[MARK] = (unsigned char)(topic >> 8);
    out[MARK + 1] = (unsigned char)(topic & 0xff);
    memcpy(out + COORD__LOCAL_HEAD, what->topic, topic);
    if (what->count > 0) {
        memcpy(out + COORD__LOCAL_HEAD + topic, what->bytes, what->count);
    }
    return COORD__LOCAL_HEAD + topic + what->count;
}

bool coord__local_frame_read(const unsigned char *frame, size_t count,
                             struct coord__local_frame *out)
{
    if (count < COORD__LOCAL_HEAD || memcmp(frame, mark, MARK) != 0) {
        return false;
    }
    const size_t left = count - COORD__LOCAL_HEAD;
    const size_t topic = (size_t)frame[MARK] << 8 | (size_t)frame[MARK + 1];
    if (topic == 0 || topic > left || left - topic > COORD_BROKER_MESSAGE_MAX) {
        return false;
    }
    *out = (struct coord__local_frame){.topic = (const char *)frame + COORD__LOCAL_HEAD,
                                       .topic_bytes = topic,
                                       .bytes = frame + COORD__LOCAL_HEAD + topic,
                                       .count = left - topic};
    return true;
}
