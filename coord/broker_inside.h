/* SPDX-License-Identifier: MIT
 * coord/broker_inside.h - the state of a broker's base, for its sources.
 */
#ifndef COORD_BROKER_INSIDE_H
#define COORD_BROKER_INSIDE_H

#include "coord/broker.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD__BROKER_MAGIC = 0x62726f6b
};

/* One message that waits: the topic, a NUL, the bytes. */
struct coord__waiting {
    struct coord__waiting *next;
    coord_ms since;
    size_t topic_bytes;
    size_t count;
    char data[1]; /* as many as it takes */
};

struct coord__queue {
    struct coord__waiting *first;
    struct coord__waiting **last; /* where the next one goes */
    size_t messages;
    size_t bytes;
};

struct coord_broker {
    uint32_t magic;
    const struct coord_broker_ops *ops;
    void *state;
    struct coord_broker_config config;
    struct coord__queue inbox;
    struct coord__queue outbox;
    bool fresh;                   /* something in the outbox was not offered yet */
    struct coord__waiting *taken; /* what the caller reads */
    char *topics[COORD_BROKER_TOPICS_MAX];
    size_t topic_count;
    uint64_t asked;
    bool touched; /* by another's reading: the host has something to see */
    struct coord_broker_status status;
    enum coord_err told;    /* the trouble that the log has heard of */
    enum coord_err refused; /* ... of single messages */
};

/* ---- coord/broker_queue.c ---- */

void coord__queue_init(struct coord__queue *queue);
/* Memory that a message takes up. */
size_t coord__queue_weight(size_t topic_bytes, size_t count);
/* A copy; NULL: no memory. */
struct coord__waiting *coord__queue_copy(const char *topic, size_t topic_bytes, const void *bytes,
                                         size_t count, coord_ms now);
void coord__queue_put(struct coord__queue *queue, struct coord__waiting *w);
/* The oldest, given; NULL: none. */
struct coord__waiting *coord__queue_take(struct coord__queue *queue);
void coord__queue_empty(struct coord__queue *queue);
struct coord_broker_message coord__queue_message(const struct coord__waiting *w);

/* ---- coord/broker_ask.c ---- */

/* The sentence of NOT_SUPPORTED: `what` needs these flags. */
enum coord_err coord__broker_lacks(const struct coord_broker *broker, const char *what,
                                   unsigned flags, struct coord_error *error);

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_INSIDE_H */
