/* SPDX-License-Identifier: MIT
 * tests/fuzz/fuzz_frames.c - any datagram of a local bus, any notification of a PostgreSQL: it is
 * refused, or read within its bounds; and what we write is read as it was.
 *
 * The first byte of an input tells what it is: L, a datagram; P, notifications, one a line;
 * anything else, a message that goes out and comes in again over both.
 */
#include "brokers/local_parts.h"
#include "brokers/postgres_parts.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void read_datagram(const uint8_t *data, size_t size)
{
    struct coord__local_frame frame;
    if (!coord__local_frame_read(data, size, &frame)) {
        return;
    }
    must(frame.topic_bytes > 0 && frame.count <= COORD_BROKER_MESSAGE_MAX);
    must((const uint8_t *)frame.topic > data);
    must((const uint8_t *)frame.topic + frame.topic_bytes == frame.bytes);
    must(frame.bytes + frame.count == data + size);
}

/* Each line as a text of its exact size, so that a byte too far is seen. */
static void read_notifications(const uint8_t *data, size_t size)
{
    struct coord__bus_parts parts = {.next = 0};
    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        const size_t length = end != NULL ? (size_t)(end - data) : size;
        char *payload = malloc(length + 1);
        must(payload != NULL);
        memcpy(payload, data, length);
        payload[length] = '\0';
        const enum coord__bus_part what = coord__bus_join(&parts, payload);
        must(what != COORD__BUS_NO_MEMORY);
        must(parts.bytes <= COORD_BROKER_MESSAGE_MAX);
        must(what != COORD__BUS_MORE || (parts.next > 1 && parts.next <= COORD__BUS_PARTS_MAX));
        must(what == COORD__BUS_MORE || parts.next == 0 || what == COORD__BUS_DAMAGED);
        free(payload);
        data += end != NULL ? length + 1 : length;
        size -= end != NULL ? length + 1 : length;
    }
    coord__bus_parts_clear(&parts);
}

/* {"...","..."}: the server takes the elements apart; nothing in them is escaped. */
static void send_notifications(const uint8_t *data, size_t size)
{
    struct coord__bus_parts parts = {.next = 0};
    enum coord__bus_part what = COORD__BUS_MORE;
    char *text = coord__bus_split(7, data, size);
    must(text != NULL);
    for (char *at = strchr(text, '"'); at != NULL; at = strchr(at + 1, '"')) {
        char *end = strchr(at + 1, '"');
        must(end != NULL && what == COORD__BUS_MORE && end - at < 8000);
        *end = '\0';
        what = coord__bus_join(&parts, at + 1);
        at = end;
    }
    must(what == COORD__BUS_WHOLE && parts.bytes == size);
    must(size == 0 || memcmp(parts.data, data, size) == 0);
    coord__bus_parts_clear(&parts);
    free(text);
}

static void send_datagram(const uint8_t *data, size_t size)
{
    static unsigned char written[COORD__LOCAL_FRAME_MAX];
    const struct coord_broker_message message = {.topic = "t", .bytes = data, .count = size};
    struct coord__local_frame frame;
    const size_t count = coord__local_frame_write(&message, written);
    must(coord__local_frame_read(written, count, &frame));
    must(frame.topic_bytes == 1 && frame.topic[0] == 't' && frame.count == size);
    must(size == 0 || memcmp(frame.bytes, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t kind = size > 0 ? data[0] : 0;
    if (kind == 'L') {
        read_datagram(data + 1, size - 1);
    } else if (kind == 'P') {
        read_notifications(data + 1, size - 1);
    } else if (size <= COORD_BROKER_MESSAGE_MAX) {
        send_datagram(data, size);
        send_notifications(data, size);
    }
    return 0;
}
