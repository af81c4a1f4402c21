/* SPDX-License-Identifier: MIT
 * coord/coordinator_inside.h - between coord/coordinator*.c and coord/peer*.c only.
 */
#ifndef COORD_COORDINATOR_INSIDE_H
#define COORD_COORDINATOR_INSIDE_H

#include "coord/coordinator.h"
#include "coord/peer_index.h"

enum {
    COORD__ID_INLINE = 40,   /* an id up to here lies in the record: a UUID does */
    COORD__CHUNK = 256,      /* records that are allocated at once */
    COORD__RING = 8,         /* timestamps that are remembered of a peer without seq */
    COORD__EVENTS = 16,      /* events that wait to be pulled */
    COORD__EVENTS_EACH = 6,  /* that one message can make */
    COORD__FORGET = 10,      /* timeouts until something over is forgotten */
    COORD__PACKED_SHORT = 31 /* bytes of a name whose head is one byte */
};

/* From here on the time that is left is no time: 139 years. */
#define COORD__ENDLESS ((coord_ms)1 << 42)

/* ---- names and sets of names, each kept once ---- */

struct coord__name {
    char *text;
    uint32_t bytes;
    uint32_t hash;
    uint32_t refs;    /* sets and reports */
    uint32_t reports; /* the first report of it, or COORD__NO_REF */
    uint32_t healthy; /* sets that hold it, and have healthy peers */
};

/* A list of subscriptions. Peers with equal lists share it. */
struct coord__set {
    uint32_t refs;
    uint32_t healthy; /* peers that hold it and are healthy */
    uint32_t hash;
    uint32_t count;
    uint32_t packed_bytes;
    uint32_t *names;
    unsigned char *packed; /* the names as elements of an array of msgpack, with shortest heads */
};

struct coord__names {
    struct coord__name **name;
    uint32_t name_count;
    uint32_t name_room;
    uint32_t *name_free; /* places that are empty, so that none has to be searched for */
    uint32_t names_free;
    struct coord__set **set;
    uint32_t set_count;
    uint32_t set_room;
    uint32_t *set_free;
    uint32_t sets_free;
    struct coord__index by_text;
    struct coord__index by_list;
    uint64_t seed;
    uint32_t most;
};

/* The list of a message, packed into `packed` (of `room`). false: it does not fit. */
bool coord__pack_list(const struct coord_value *subscriptions, unsigned char *packed, size_t room,
                      uint32_t *bytes, uint32_t *count);

/* To the bytes of the name that is next in a packed list, and how many they are. */
static inline uint32_t coord__packed_next(const unsigned char **at)
{
    unsigned head = *(*at)++;
    return head == 0xd9 ? *(*at)++ : head & COORD__PACKED_SHORT;
}

/* The set of a packed list with one reference more, or COORD__NO_REF and why. */
uint32_t coord__set_take(struct coord__names *names, const unsigned char *packed, uint32_t bytes,
                         uint32_t count, enum coord_refusal *why);
void coord__set_drop(struct coord__names *names, uint32_t set);
uint32_t coord__name_take(struct coord__names *names, const char *text, uint32_t bytes,
                          enum coord_refusal *why);
void coord__name_drop(struct coord__names *names, uint32_t name);
void coord__names_fini(struct coord__names *names);

/* ---- peers ---- */

enum {
    COORD__PEER_USED = 1,
    COORD__PEER_INCARNATION = 2,
    COORD__PEER_SILENT = 4,
    COORD__PEER_FINISHED = 8,
    COORD__PEER_OVERRUN = 16,
    COORD__PEER_LEADER = 32,   /* as it says */
    COORD__PEER_SHARED = 64,   /* its id has other incarnations */
    COORD__PEER_TWIN = 128,    /* DUPLICATE_IDENTITY was told */
    COORD__PEER_COUNTED = 256, /* among the healthy of its set */
    COORD__PEER_UNHEARD = 512  /* only told of, by a notice without an incarnation */
};

/* What few peers have. */
struct coord__peer_extra {
    coord_ms deadline; /* of its leaving; COORD_NEVER: it does not leave */
    uint32_t heap_at;  /* its place among the deadlines, or COORD__NO_REF */
    enum coord_intent intent;
    coord_ms notice_at;
    int64_t ring[COORD__RING]; /* timestamps, of a peer without seq */
    uint32_t ring_at;
    uint32_t ring_count;
    int64_t newest; /* timestamp */
    coord_ms newest_at;
    coord_ms first_heard; /* of this incarnation */
};

/* 104 bytes; with the index, at its emptiest, 123 for each peer. */
struct coord__peer {
    coord_ms last_heard;
    uint64_t seq; /* the highest */
    unsigned char incarnation[COORD_OWNER_BYTES];
    struct coord__peer_extra *extra; /* NULL: none of it */
    uint32_t set;                    /* COORD__NO_REF: nothing is listed */
    uint32_t previous;               /* in the list of the living or of the dead */
    uint32_t next;
    uint32_t in_flight; /* as far as it fits */
    float load;
    uint16_t flags;
    uint8_t id_bytes;
    union {
        char near_[COORD__ID_INLINE];
        char *far_;
    } id;
};

struct coord__list {
    uint32_t first;
    uint32_t last;
};

struct coord__peers {
    struct coord__peer **chunk;
    uint32_t chunks;
    uint32_t made;  /* records ever used */
    uint32_t free_; /* chained by next */
    uint32_t count;
    uint32_t healthy;
    struct coord__index by_id;
    struct coord__list alive; /* by the time of last hearing */
    struct coord__list dead;  /* by the time of death or of the last word */
    uint32_t *heap;           /* of leaving peers, the nearest deadline first */
    uint32_t heap_count;
    uint32_t heap_room;
    const char *expected; /* the id in the message that is handled; NULL: not known */
    size_t expected_bytes;
    uint32_t expected_hash;
};

static inline struct coord__peer *coord__peer_at(const struct coord__peers *peers, uint32_t ref)
{
    return &peers->chunk[ref / COORD__CHUNK][ref % COORD__CHUNK];
}

static inline const char *coord__peer_id(const struct coord__peer *peer)
{
    return peer->id_bytes <= COORD__ID_INLINE ? peer->id.near_ : peer->id.far_;
}

static inline bool coord__peer_leaving(const struct coord__peer *peer)
{
    return peer->extra != NULL && peer->extra->deadline != COORD_NEVER;
}

/* ---- reports ---- */

enum {
    COORD__REPORT_OPEN = 1,
    COORD__REPORT_TELL = 2,     /* an event, and a message of ours, are due */
    COORD__REPORT_HEARD = 4,    /* an event is due: a leader has told it */
    COORD__REPORT_SEND = 8,     /* a message is due */
    COORD__REPORT_HINT = 16,    /* the leader does not seem to know it */
    COORD__REPORT_TOLD = 32,    /* it was opened, for the host */
    COORD__REPORT_SEEN = 64,    /* in the part of a table that is being read */
    COORD__REPORT_QUEUED = 128, /* in the queue of what is to be told */
    COORD__REPORT_ABSENT = 256  /* closed because no table listed it */
};

struct coord__report {
    unsigned char id[COORD_REPORT_ID_BYTES];
    uint64_t fence;
    uint64_t seq;
    unsigned char incarnation[COORD_OWNER_BYTES];
    char *peer_id;
    uint32_t peer_bytes;
    bool has_incarnation;
    uint8_t cause;
    uint8_t certainty;
    uint16_t flags;
    uint32_t name;
    uint32_t next_of_name;
    uint32_t queue_next;
    uint32_t send_next;
    coord_ms since;
    coord_ms deadline;
    coord_ms safe_after;
    coord_ms resolved_at;
    coord_ms hinted_at;           /* 0: not since it was last in a table */
    uint32_t reminders;           /* since then, as far as they are counted */
    coord_ms listed_at;           /* by a leader; 0: never */
    int64_t absent_us;            /* when the table was sent that closed it by not listing it */
    enum coord_orphans_kind news; /* what is to be told of it */
};

struct coord__reports {
    struct coord__report **at;
    uint32_t count; /* places */
    uint32_t room;
    uint32_t used;
    uint32_t open;
    uint32_t resolved;
    uint32_t *empty;  /* places without one, below `count` */
    uint32_t *sorted; /* places of all, by id, when `order` holds */
    bool order;
    coord_ms swept_at; /* when room was last made */
    struct coord__index by_id;
    struct coord__list queue; /* events that are due, by queue_next */
    struct coord__list sends; /* messages that are due, by send_next */
};

struct coord__event {
    enum coord_event_kind kind;
    uint32_t peer;
    coord_ms deadline;
    bool with_message;
};

struct coord_coordinator {
    struct coord_coordinator_config config;
    char id[COORD_NAME_MAX + 1];
    size_t id_bytes;
    char incarnation[COORD_OWNER_HEX];
    coord_ms now;
    coord_ms started;
    struct coord__names names;
    struct coord__peers peers;
    struct coord__reports reports;
    struct coord_coordinator_counts counts;

    struct coord__event events[COORD__EVENTS];
    unsigned event_first;
    unsigned event_count;
    struct coord_message message; /* that was handed in last */

    coord_ms anew; /* every silence counts from here at the earliest */
    coord_ms echo; /* our own heartbeat came back; COORD_NEVER: not yet */
    bool connected;
    coord_ms promised; /* the deadline that we gave; COORD_NEVER: none */
    uint32_t self;     /* our own record, or COORD__NO_REF */

    uint64_t seq;
    unsigned char *served; /* an array of msgpack */
    size_t served_bytes;
    struct coord_value subscriptions;
    int64_t in_flight_count;
    double load_factor;
    coord_ms beat_at;
    bool beat_again; /* besides: the connection is back, and nobody has heard us meanwhile */
    bool leaving;
    bool notice_due;
    enum coord_intent intent;
    coord_ms deadline;
    int64_t order_from; /* the times of the last order, by the clock of its sender */
    int64_t order_until;
    bool finishing;
    bool finished;
    coord_ms finish_at;

    bool leading;
    uint64_t fence;
    coord_ms leading_until;
    uint64_t highest_fence; /* of reports */
    uint64_t seq_used;      /* the highest of this term whose report is forgotten */
    uint64_t assigned_fence;
    coord_ms table_at;
    bool table_open;      /* parts of a table are left */
    uint32_t table_parts; /* that were said of it */
    coord_ms part_at;     /* when the next one is */
    unsigned char table_from[COORD_REPORT_ID_BYTES];
    bool table_started; /* of this term: from then on it is repeated in any case */
    coord_ms hint_at;   /* COORD_NEVER: none wanted */
    coord_ms forget_at; /* when to look for what is over */
    uint64_t random;
    unsigned char out[COORD_MESSAGE_MAX];
    unsigned char work[COORD_MESSAGE_MAX];
    unsigned char packed[COORD_MESSAGE_MAX];
};

/* coordinator.c */
void coord__refuse(struct coord_coordinator *c, enum coord_refusal why);
void coord__event(struct coord_coordinator *c, enum coord_event_kind kind, uint32_t peer,
                  coord_ms deadline, bool with_message);
bool coord__judging(const struct coord_coordinator *c);
bool coord__judging_at(const struct coord_coordinator *c, coord_ms now);
void coord__pass(struct coord_coordinator *c, coord_ms now);
bool coord__leading(const struct coord_coordinator *c);
uint64_t coord__random(struct coord_coordinator *c);

/* peer.c: the table */
uint32_t coord__peer_add(struct coord_coordinator *c, const char *id, size_t id_bytes,
                         const unsigned char *incarnation, enum coord_refusal *why);
void coord__peer_free(struct coord_coordinator *c, uint32_t ref);
uint32_t coord__peer_find(const struct coord_coordinator *c, const char *id, size_t id_bytes,
                          const unsigned char *incarnation);
/* Who the message is from, found before it is checked: its place comes from memory meanwhile. */
void coord__peer_expect(struct coord_coordinator *c, const void *bytes, size_t count);
uint32_t coord__peer_find_expected(const struct coord_coordinator *c, const char *id,
                                   size_t id_bytes, const unsigned char *incarnation);
uint32_t coord__peer_hash(const struct coord_coordinator *c, const struct coord__peer *peer);
struct coord__peer_extra *coord__peer_extra(struct coord_coordinator *c, uint32_t ref);
void coord__list_add(struct coord__peers *peers, struct coord__list *list, uint32_t ref);
void coord__list_remove(struct coord__peers *peers, struct coord__list *list, uint32_t ref);
bool coord__heap_set(struct coord__peers *peers, uint32_t ref, coord_ms deadline);
void coord__heap_remove(struct coord__peers *peers, uint32_t ref);
void coord__peers_fini(struct coord_coordinator *c);

/* peer_incarnation.c */
void coord__incarnation(const char *text, size_t bytes, unsigned char *out);

/* coordinator_peers.c: what messages do to them */
void coord__heartbeat(struct coord_coordinator *c, const struct coord_message *message);
void coord__notice(struct coord_coordinator *c, const struct coord_message *message);
void coord__finished(struct coord_coordinator *c, const struct coord_message *message);
void coord__count_health(struct coord_coordinator *c, uint32_t ref);
bool coord__is_self(const struct coord_coordinator *c, const struct coord_message *message,
                    bool *same_incarnation);

/* coordinator_silence.c: what time does to them */
bool coord__pass_silence(struct coord_coordinator *c);
bool coord__pass_deadlines(struct coord_coordinator *c);
void coord__peer_retire(struct coord_coordinator *c, uint32_t ref);
bool coord__forget(struct coord_coordinator *c);

/* coordinator_table.c: the table of reports */
struct coord__owner {
    const char *id;
    size_t id_bytes;
    const unsigned char *incarnation; /* NULL: none */
};

/* The same on every host. */
void coord__report_id(const struct coord__owner *owner, const struct coord__name *name,
                      unsigned char *out);
uint32_t coord__report_find(const struct coord_coordinator *c, const unsigned char *id);
uint32_t coord__report_add(struct coord_coordinator *c, const unsigned char *id,
                           const struct coord__owner *owner, const char *name, size_t name_bytes);
void coord__reports_forget(struct coord_coordinator *c);
void coord__reports_fini(struct coord_coordinator *c);
void coord__report_show(const struct coord_coordinator *c, const struct coord__report *report,
                        struct coord_orphan *out);

/* coordinator_reports.c: what we see, and what is told */
void coord__report_reserve(const struct coord_coordinator *c, struct coord__report *report);
/* The peer that it is about, or COORD__NO_REF. */
uint32_t coord__report_owner(const struct coord_coordinator *c, const struct coord__report *report);
void coord__report_queue(struct coord_coordinator *c, uint32_t ref);
void coord__report_tell(struct coord_coordinator *c, uint32_t ref, enum coord_orphans_kind news);
void coord__report_set_open(struct coord_coordinator *c, struct coord__report *report, bool open);
void coord__offer(struct coord_coordinator *c, uint32_t peer, enum coord_cause cause);
void coord__name_healthy(struct coord_coordinator *c, uint32_t name);
bool coord__name_is_healthy(const struct coord_coordinator *c, uint32_t name);
void coord__reports_led(struct coord_coordinator *c);
bool coord__report_event(struct coord_coordinator *c, struct coord_event *out);
bool coord__peer_has_report(const struct coord_coordinator *c, uint32_t peer);

/* coordinator_adopt.c */
void coord__orphans(struct coord_coordinator *c, const struct coord_message *message);

/* coordinator_query.c */
void coord__show_peer(const struct coord_coordinator *c, uint32_t ref, struct coord_peer *out);

/* coordinator_send.c: a message with what each of them has; it is written with the rest */
void coord__message_begin(const struct coord_coordinator *c, enum coord_message_type type,
                          int64_t wall, struct coord_message *message);
/* false: it is longer than a message may be. */
bool coord__message_form(struct coord_coordinator *c, const struct coord_message *message,
                         struct coord_outgoing *out);

/* coordinator_say.c: the next message of each kind, if there is one */
bool coord__may_report(const struct coord_coordinator *c);
bool coord__say_news(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out);
bool coord__say_table(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out);
bool coord__say_hint(struct coord_coordinator *c, int64_t wall, struct coord_outgoing *out);

#endif /* COORD_COORDINATOR_INSIDE_H */
