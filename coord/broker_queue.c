/* SPDX-License-Identifier: MIT
 * coord/broker_queue.c - messages that wait, in the order in which they came.
 */
#include "coord/broker_inside.h"

#include <stdlib.h>
#include <string.h>

size_t coord__queue_weight(size_t topic_bytes, size_t count)
{
    return sizeof(struct coord__waiting) + topic_bytes + 1 + count;
}

void coord__queue_init(struct coord__queue *queue)
{
    queue->last = &queue->first;
}

void coord__queue_put(struct coord__queue *queue, struct coord__waiting *w)
{
    w->next = NULL;
    *queue->last = w;
    queue->last = &w->next;
    queue->messages++;
    queue->bytes += coord__queue_weight(w->topic_bytes, w->count);
}

struct coord__waiting *coord__queue_take(struct coord__queue *queue)
{
    struct coord__waiting *w = queue->first;
    if (w != NULL) {
        queue->first = w->next;
        if (queue->first == NULL) {
            queue->last = &queue->first;
        }
        queue->messages--;
        queue->bytes -= coord__queue_weight(w->topic_bytes, w->count);
    }
    return w;
}

void coord__queue_empty(struct coord__queue *queue)
{
    struct coord__waiting *w;
    while ((w = coord__queue_take(queue)) != NULL) {
        free(w);
    }
}

struct coord__waiting *coord__queue_copy(const char *topic, size_t topic_bytes, const void *bytes,
                                         size_t count, coord_ms now)
{
    struct coord__waiting *w = malloc(coord__queue_weight(topic_bytes, count));
    if (w == NULL) {
        return NULL;
    }
    w->next = NULL;
    w->since = now;
    w->topic_bytes = topic_bytes;
    w->count = count;
    memcpy(w->data, topic, topic_bytes);
    w->data[topic_bytes] = '\0';
    if (count > 0) {
        memcpy(w->data + topic_bytes + 1, bytes, count);
    }
    return w;
}

struct coord_broker_message coord__queue_message(const struct coord__waiting *w)
{
    return (struct coord_broker_message){
        .topic = w->data, .bytes = w->data + w->topic_bytes + 1, .count = w->count};
}
