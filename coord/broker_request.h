/* SPDX-License-Identifier: MIT
 * coord/broker_request.h - what can be asked of a broker besides publish and subscribe: one request
 * and one reply for all of it, so that brokers come to it and never change it.
 *
 * A stream keeps its entries, a group has its own position in it, a consumer is one reader of a
 * group. A partition is the stream of one key; who works on it holds its lease, and says so with a
 * token that the store compares. Which fields a verb reads and writes stands at the verb.
 */
#ifndef COORD_BROKER_REQUEST_H
#define COORD_BROKER_REQUEST_H

#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a broker can do; the bits are those of Protean's capabilities, and stable. */
enum {
    COORD_BROKER_PUBLISH = 1,               /* can send */
    COORD_BROKER_SUBSCRIBE = 2,             /* can receive */
    COORD_BROKER_CONSUMER_GROUPS = 4,       /* groups with positions of their own */
    COORD_BROKER_ACK_NACK = 8,              /* each message is acknowledged, or not */
    COORD_BROKER_DELIVERY_GUARANTEES = 16,  /* at least once */
    COORD_BROKER_MESSAGE_ORDERING = 32,     /* order is kept within a stream */
    COORD_BROKER_BLOCKING_READ = 64,        /* the server waits for entries */
    COORD_BROKER_DEAD_LETTER_QUEUE = 128,   /* the dlq_ verbs */
    COORD_BROKER_REPLAY = 256,              /* history can be read again */
    COORD_BROKER_STREAM_PARTITIONING = 512, /* leases of partitions, fenced reads */

    COORD_BROKER_BASIC_PUBSUB = 3,
    COORD_BROKER_SIMPLE_QUEUING = 7,
    COORD_BROKER_RELIABLE_MESSAGING = 31,
    COORD_BROKER_ORDERED_MESSAGING = 63,
    COORD_BROKER_ENTERPRISE_STREAMING = 1023
};

/*
 * X(symbol, value, flags that are needed, name). Values are stable, verbs are only appended. After
 * the arrow what a reply with outcome DONE holds. `stream` is streams[0].
 */
#define COORD_BROKER_VERBS(X)                                                            \
    /* stream, body -> text: the id of the entry */                                      \
    X(PUBLISH, 1, COORD_BROKER_PUBLISH | COORD_BROKER_CONSUMER_GROUPS, "publish")        \
    /* stream, group -> entries: none or one; never a pending one */                     \
    X(GET_NEXT, 2, COORD_BROKER_CONSUMER_GROUPS, "get_next")                             \
    /* stream, group, count -> entries: new ones first, then own pending */              \
    X(READ, 3, COORD_BROKER_CONSUMER_GROUPS, "read")                                     \
    /* stream, group, consumer, wait, count -> entries; without BLOCKING_READ as READ */ \
    X(READ_BLOCKING, 4, COORD_BROKER_CONSUMER_GROUPS, "read_blocking")                   \
    /* streams, group, consumer, wait, count -> entries, in the order of streams */      \
    X(READ_BLOCKING_STREAMS, 5, COORD_BROKER_CONSUMER_GROUPS, "read_blocking_streams")   \
    /* stream, group, entry -> yes: it was pending, and is not any more */               \
    X(ACK, 6, COORD_BROKER_ACK_NACK, "ack")                                              \
    /* stream, group, entry -> yes: it is pending */                                     \
    X(NACK, 7, COORD_BROKER_ACK_NACK, "nack")                                            \
    /* streams, count (the most) -> entries, `dead` too; the latest failure first */     \
    X(DLQ_LIST, 8, COORD_BROKER_DEAD_LETTER_QUEUE, "dlq_list")                           \
    /* stream, entry -> entries: none or one */                                          \
    X(DLQ_INSPECT, 9, COORD_BROKER_DEAD_LETTER_QUEUE, "dlq_inspect")                     \
    /* stream, entry, target -> yes: it was there, and moved to target */                \
    X(DLQ_REPLAY, 10, COORD_BROKER_DEAD_LETTER_QUEUE, "dlq_replay")                      \
    /* stream, target -> number: how many moved */                                       \
    X(DLQ_REPLAY_ALL, 11, COORD_BROKER_DEAD_LETTER_QUEUE, "dlq_replay_all")              \
    /* stream -> number: how many there were */                                          \
    X(DLQ_PURGE, 12, COORD_BROKER_DEAD_LETTER_QUEUE, "dlq_purge")                        \
    /* stream, entry (the oldest to keep) -> number: how many went */                    \
    X(DLQ_TRIM, 13, COORD_BROKER_DEAD_LETTER_QUEUE, "dlq_trim")                          \
    /* stream -> number */                                                               \
    X(DLQ_DEPTH, 14, COORD_BROKER_DEAD_LETTER_QUEUE, "dlq_depth")                        \
    /* stream, maxlen -> number: how many went */                                        \
    X(TRIM, 15, COORD_BROKER_CONSUMER_GROUPS, "trim")                                    \
    /* -> text: JSON, {"consumer_groups": ...} */                                        \
    X(INFO, 16, COORD_BROKER_CONSUMER_GROUPS, "info")                                    \
    /* -> text: JSON, {"status", "connected", ...} */                                    \
    X(HEALTH_STATS, 17, 0, "health_stats")                                               \
    /* group, key, owner, ttl -> number: the generation; 0: another holds it */          \
    X(ACQUIRE_PARTITION, 18, COORD_BROKER_STREAM_PARTITIONING, "acquire_partition")      \
    /* group, key, token, ttl -> yes: it is still held */                                \
    X(RENEW_PARTITION, 19, COORD_BROKER_STREAM_PARTITIONING, "renew_partition")          \
    /* group, key, token -> yes: it was held */                                          \
    X(RELEASE_PARTITION, 20, COORD_BROKER_STREAM_PARTITIONING, "release_partition")      \
    /* stream, group, key, token, consumer, count, pending -> entries; or LEASE_LOST */  \
    X(READ_PARTITION, 21, COORD_BROKER_STREAM_PARTITIONING, "read_partition")            \
    /* stream, group, key, token, entry -> yes; or LEASE_LOST */                         \
    X(ACK_PARTITION, 22, COORD_BROKER_STREAM_PARTITIONING, "ack_partition")              \
    /* stream, group, consumer, min_idle, count (of one step) -> entries that moved */   \
    X(RECLAIM_PARTITION, 23, COORD_BROKER_STREAM_PARTITIONING, "reclaim_partition")      \
    /* stream (the category), key */                                                     \
    X(RECORD_PARTITION, 24, COORD_BROKER_STREAM_PARTITIONING, "record_partition")        \
    /* stream (the category) -> keys */                                                  \
    X(PARTITION_KEYS, 25, COORD_BROKER_STREAM_PARTITIONING, "partition_keys")            \
    /* stream (the category), key, suffix, min_idle -> yes: it was empty, and is gone */ \
    X(REAP_PARTITION, 26, COORD_BROKER_STREAM_PARTITIONING, "reap_partition")

enum coord_broker_verb {
    COORD_BROKER_DO_NOTHING = 0,
#define X(symbol, value, flags, name) COORD_BROKER_DO_##symbol = (value),
    COORD_BROKER_VERBS(X)
#undef X
};

/** Bytes of somebody else; `at` may be NULL where count is 0. */
struct coord_bytes {
    const void *at;
    size_t count;
};

/** Zero-initialised; only the fields that the verb names are read. All texts are copied. */
struct coord_broker_request {
    enum coord_broker_verb verb;
    const struct coord_bytes *streams;
    size_t stream_count;
    struct coord_bytes group;
    struct coord_bytes consumer;
    struct coord_bytes entry;  /* an id */
    struct coord_bytes target; /* a stream */
    struct coord_bytes key;    /* of a partition */
    struct coord_bytes owner;
    struct coord_bytes token;  /* "OWNER:GENERATION" */
    struct coord_bytes suffix; /* of the backfill lane; none: there is no such lane */
    struct coord_bytes body;   /* JSON */
    size_t count;
    int64_t maxlen;
    coord_ms wait; /* 0: not at all */
    coord_ms ttl;
    coord_ms min_idle;
    bool pending; /* this consumer's own pending ones, not new ones */
};

/** What a dead-letter entry says of its failure; absent texts have count 0. */
struct coord_broker_dead {
    struct coord_bytes original_stream;
    struct coord_bytes original_id;
    struct coord_bytes group;
    struct coord_bytes reason;
    struct coord_bytes failed_at;
    uint64_t retries;
};

struct coord_broker_entry {
    struct coord_bytes stream; /* it was read from */
    struct coord_bytes id;
    struct coord_bytes body;
    const struct coord_broker_dead *dead; /* NULL: it is none */
};

enum coord_broker_outcome {
    COORD_BROKER_DONE = 0,
    COORD_BROKER_FAILED = 1, /* surely not done; `error` says why */
    COORD_BROKER_UNKNOWN = 2 /* perhaps done; `error` says why */
};

struct coord_broker_reply {
    uint64_t id; /* as coord_broker_ask() gave it */
    enum coord_broker_verb verb;
    enum coord_broker_outcome outcome;
    struct coord_error error;
    bool yes;
    uint64_t number;
    struct coord_bytes text;
    const struct coord_broker_entry *entries;
    size_t entry_count;
    const struct coord_bytes *keys;
    size_t key_count;
};

#ifdef __cplusplus
}
#endif
#endif /* COORD_BROKER_REQUEST_H */
