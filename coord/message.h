/* SPDX-License-Identifier: MIT
 * coord/message.h - the messages of a fleet: what is in them, how they are read and written.
 *
 * There are two ways to read. A record is what the seed library accepts: known keys with whatever
 * values they have, to be echoed. A message is what coord itself acts on: every value has its
 * type, every time its offset, every id its length. Keys that are not known are skipped in both;
 * of a key that comes twice the last one counts.
 *
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 */
#ifndef COORD_MESSAGE_H
#define COORD_MESSAGE_H

#include "coord/message_write.h"
#include "coord/time_text.h"
#include "coord/topic.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_FIELDS_MAX = 13,
    COORD_SUBSCRIPTIONS_MAX = 1024, /* of one message */
    COORD_INCARNATION_MAX = 64,     /* bytes of the text */
    COORD_REPORT_ID_BYTES = 16,
    COORD_REPORT_ID_TEXT = 33 /* its hexadecimal form and the NUL */
};

/* ---- records ---- */

/** Where the fields of each type stand in a record; the order is that in which they are written. */
enum {
    COORD_HEARTBEAT_INSTANCE_ID = 0,
    COORD_HEARTBEAT_TIMESTAMP,
    COORD_HEARTBEAT_SUBSCRIPTIONS,
    COORD_HEARTBEAT_IN_FLIGHT_COUNT,
    COORD_HEARTBEAT_IS_LEADER,
    COORD_HEARTBEAT_LOAD_FACTOR, /* the seed's keys end here */
    COORD_HEARTBEAT_INCARNATION,
    COORD_HEARTBEAT_SEQ,
    COORD_HEARTBEAT_FENCE,
    COORD_HEARTBEAT_SENT_AT,
    COORD_HEARTBEAT_LEAVING,

    COORD_SHUTDOWN_INSTANCE_ID = 0,
    COORD_SHUTDOWN_INTENT,
    COORD_SHUTDOWN_INITIATED_AT,
    COORD_SHUTDOWN_EXPECTED_COMPLETION_AT,
    COORD_SHUTDOWN_SUBSCRIPTIONS,
    COORD_SHUTDOWN_IN_FLIGHT_COUNT,
    COORD_SHUTDOWN_METADATA,
    COORD_SHUTDOWN_INCARNATION,
    COORD_SHUTDOWN_SEQ,
    COORD_SHUTDOWN_SENT_AT,

    COORD_ASSIGNMENT_TARGET_INSTANCE_ID = 0,
    COORD_ASSIGNMENT_SUBSCRIPTIONS,
    COORD_ASSIGNMENT_SOURCE_INSTANCE_ID,
    COORD_ASSIGNMENT_ASSIGNED_AT,
    COORD_ASSIGNMENT_PRIORITY,
    COORD_ASSIGNMENT_FENCE,
    COORD_ASSIGNMENT_SENT_AT,

    COORD_FINISHED_INSTANCE_ID = 0,
    COORD_FINISHED_INCARNATION,
    COORD_FINISHED_SUBSCRIPTIONS,
    COORD_FINISHED_FINISHED_AT,
    COORD_FINISHED_SEQ,
    COORD_FINISHED_SENT_AT,

    COORD_ORPHANS_KIND = 0,
    COORD_ORPHANS_INSTANCE_ID,
    COORD_ORPHANS_INCARNATION,
    COORD_ORPHANS_FENCE,
    COORD_ORPHANS_SENT_AT,
    COORD_ORPHANS_TIMEOUT_MS,
    COORD_ORPHANS_INTERVAL_MS,
    COORD_ORPHANS_HEARD_MS,
    COORD_ORPHANS_JUDGING,
    COORD_ORPHANS_FIRST,
    COORD_ORPHANS_LAST,
    COORD_ORPHANS_REPORTS
};

/** The known keys of one message, as they came. Views of the message's bytes. */
struct coord_record {
    enum coord_message_type type;
    unsigned fields; /* how many the type has */
    struct coord_value field[COORD_FIELDS_MAX];
};

/**
 * Find the known keys of a message. Only the required ones have to be there; no value is judged.
 *
 * @param bytes  borrowed for as long as the record is used.
 * @param out    written on NONE and MISSING_KEY only.
 * @return       NONE, a fault of form, NOT_A_MAP or MISSING_KEY.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c, build/tests/vectors_eventsource.
 */
COORD_API COORD_MUST_CHECK enum coord_message_fault coord_record_read(enum coord_message_type type,
                                                                      const void *bytes,
                                                                      size_t count,
                                                                      struct coord_record *out);

/** The first required key that the record lacks; NULL: none of its own. Thread: any. */
COORD_API const char *coord_record_missing(const struct coord_record *record);

/**
 * Would the seed library take this record? It looks at times, the intent, and whether the
 * subscriptions are a list, a map or a text; at nothing else.
 *
 * @return  NONE; BAD_INTENT, BAD_TIME or WRONG_TYPE.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#compatible, build/tests/vectors_eventsource.
 */
COORD_API COORD_MUST_CHECK enum coord_message_fault coord_record_check(
    const struct coord_record *record);

/** The time in a field that coord_record_check() found good. Thread: any. */
COORD_API struct coord_time coord_record_time(const struct coord_record *record, unsigned field);

/**
 * Write a record as the seed library does: its own keys and none of ours, each with its default
 * where it was absent, times in the form of coord_time_text_write().
 *
 * @param bytes  written on success.
 * @return       COORD_OK; LIMIT: the room is too small; BAD_MESSAGE: a value has no place in this
 *               form, or the type is none of the seed's.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#compatible, build/tests/vectors_eventsource.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_record_write(const struct coord_record *record,
                                                             enum coord_form form, void *buffer,
                                                             size_t room, size_t *bytes);

/** The elements of the subscriptions as the seed library sees them: a text falls into its
 * characters, a map into its keys. */
struct coord_names {
    struct coord_walk walk;
    const char *at; /* of a text */
    const char *end;
    bool escaped;
    char part[4];
};

/** Begin at the first; an absent list is empty. Thread: any. */
COORD_API void coord_names_begin(const struct coord_value *subscriptions,
                                 struct coord_names *names);

/** The next one, borrowed until the one after it. Thread: any. @return false: none. */
COORD_API bool coord_names_next(struct coord_names *names, struct coord_value *out);

/** How many there are. Thread: any. */
COORD_API uint32_t coord_names_count(const struct coord_value *subscriptions);

/* ---- messages ---- */

/** Why somebody leaves. Stable values. */
enum coord_intent {
    COORD_INTENT_GRACEFUL = 0,
    COORD_INTENT_PREEMPTION = 1,
    COORD_INTENT_HEALTH_FAILURE = 2,
    COORD_INTENT_MAINTENANCE = 3
};

enum coord_orphans_kind {
    COORD_ORPHANS_OPENED = 0,
    COORD_ORPHANS_UPDATED = 1,
    COORD_ORPHANS_RESOLVED = 2,
    COORD_ORPHANS_TABLE = 3,
    COORD_ORPHANS_HINT = 4
};

/**
 * A message that coord acts on. Which members count depends on the type; the others are zero.
 * Texts are views: of the bytes that were read, or made by coord_text().
 */
struct coord_message {
    enum coord_message_type type;
    enum coord_intent intent;         /* shutdown; heartbeat while leaving */
    enum coord_orphans_kind kind;     /* orphans */
    bool is_leader;                   /* heartbeat */
    bool leaving;                     /* heartbeat: a notice holds */
    bool judging;                     /* orphans, of a table */
    bool has_sent_at;                 /* without it, the message's own time stands for it */
    struct coord_value instance_id;   /* of the sender; the source of an assignment */
    struct coord_value incarnation;   /* text, may be absent */
    struct coord_value target;        /* of an assignment */
    struct coord_value subscriptions; /* an array of texts */
    struct coord_value metadata;      /* of a notice, free; absent: empty */
    struct coord_value reports;       /* orphans: an array of maps, see coord_report_read() */
    int64_t at_us;                    /* timestamp, initiated_at, assigned_at or finished_at */
    int64_t completion_us;            /* shutdown: expected_completion_at */
    int64_t sent_at_us;               /* by the clock of the sender */
    uint64_t seq;                     /* 0: none */
    uint64_t fence;                   /* 0: none */
    int64_t in_flight_count;
    int64_t priority;
    double load_factor;
    coord_ms remaining; /* heartbeat while leaving: until the deadline */
    coord_ms timeout;   /* orphans: the leader's T */
    coord_ms interval;  /* orphans: the leader's I */
    coord_ms heard;     /* orphans: how long the leader has listened without starting anew */
    unsigned char first[COORD_REPORT_ID_BYTES]; /* of the range that a part of a table covers */
    unsigned char last[COORD_REPORT_ID_BYTES];
};

/**
 * Read a message that coord may act on.
 *
 * @param bytes  borrowed for as long as the message is used.
 * @param out    written on NONE only.
 * @return       NONE, or why the whole message is dropped; count it.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c, tests/fuzz/fuzz_message.c.
 */
COORD_API COORD_MUST_CHECK enum coord_message_fault coord_message_decode(
    enum coord_message_type type, const void *bytes, size_t count, struct coord_message *out);

/**
 * Write a message: all keys of the seed, then those of ours that are set.
 *
 * @param bytes  written on success.
 * @return       COORD_OK; LIMIT: the room is too small; BAD_MESSAGE: it would not be read again.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_message_encode(const struct coord_message *message,
                                                               enum coord_form form, void *buffer,
                                                               size_t room, size_t *bytes);

/** A view of a text in memory, for messages to be written. Borrowed. Thread: any. */
COORD_API struct coord_value coord_text(const char *text, size_t bytes);

/**
 * A view of a list of texts, for messages to be written.
 *
 * @param names   borrowed for the call; each NUL-terminated.
 * @param buffer  holds the list; borrowed for as long as the view is used.
 * @return        COORD_OK and `out` written, or LIMIT.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/guide.md#messages, tests/unit/test_message.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_texts(const char *const *names, size_t count,
                                                      void *buffer, size_t room,
                                                      struct coord_value *out);

/** The word of an intent, such as "health_failure". Thread: any. */
COORD_API const char *coord_intent_name(enum coord_intent intent);

/** The intent of a word, exactly. Thread: any. @return false: none of the four. */
COORD_API bool coord_intent_parse(const char *text, size_t bytes, enum coord_intent *out);

/** The word of a kind, such as "opened". Thread: any. */
COORD_API const char *coord_orphans_kind_name(enum coord_orphans_kind kind);

/* ---- reports ---- */

/** Why work is nobody's. Stable values. */
enum coord_cause {
    COORD_CAUSE_DRAINING = 0, /* its owner said that it leaves */
    COORD_CAUSE_OVERRUN = 1,  /* ... and is still there past its deadline */
    COORD_CAUSE_SILENT = 2,   /* its owner is not heard any more */
    COORD_CAUSE_FINISHED = 3  /* its owner said that it has ended */
};

enum coord_certainty {
    COORD_ANNOUNCED = 0,
    COORD_SUSPECTED = 1
};

/** One report in a message. Times are on the sender's clock. */
struct coord_report_wire {
    unsigned char id[COORD_REPORT_ID_BYTES];
    uint64_t fence;
    uint64_t seq;
    struct coord_value instance_id; /* of the owner */
    struct coord_value incarnation; /* may be absent */
    struct coord_value subscription;
    enum coord_cause cause;
    enum coord_certainty certainty;
    int64_t since_us;
    int64_t deadline_us; /* only with has_deadline */
    int64_t safe_after_us;
    bool has_deadline;
};

/** Read one element of message.reports. Thread: any. @return NONE, or its fault. */
COORD_API COORD_MUST_CHECK enum coord_message_fault coord_report_read(
    const struct coord_value *element, struct coord_report_wire *out);

/** Write one element of message.reports. Thread: any. */
COORD_API void coord_report_write(struct coord_writer *writer,
                                  const struct coord_report_wire *report);

/** 32 hexadecimal digits and the NUL. Thread: any. */
COORD_API void coord_report_id_text(const unsigned char *id, char *out);

/** The word of a cause, such as "silent". Thread: any. */
COORD_API const char *coord_cause_name(enum coord_cause cause);

/** "announced" or "suspected". Thread: any. */
COORD_API const char *coord_certainty_name(enum coord_certainty certainty);

/* ---- between coord/message*.c only ---- */
struct coord__field {
    const char *name;
    uint8_t bytes;
    uint8_t flags; /* COORD__FIELD_* */
};

enum {
    COORD__FIELD_REQUIRED = 1, /* by the seed library, or by us for our own types */
    COORD__FIELD_OURS = 2,     /* not written into the seed's form */
    COORD__FIELD_TIME = 4
};

/* As coord_message_decode(), but `out` is written on a fault too: one copy less. */
enum coord_message_fault coord__message_decode(enum coord_message_type type, const void *bytes,
                                               size_t count, struct coord_message *out);
const struct coord__field *coord__fields(enum coord_message_type type, unsigned *count);
void coord__write_key(struct coord_writer *writer, const char *name);

#ifdef __cplusplus
}
#endif
#endif /* COORD_MESSAGE_H */
