/* SPDX-License-Identifier: MIT
 * tests/sim/agents/world.h - a fleet of whole agents in simulated time: its hosts and processes,
 * the bus between them, the store of their election, and what each of them has really heard.
 *
 * All times are ms of true time, but where it says local. A process reads the clock of its host,
 * which is off by a constant; so is the host's wall clock, which is set now and then.
 */
#ifndef SIM_AGENTS_WORLD_H
#define SIM_AGENTS_WORLD_H

#include <stdio.h>

#include "coord/agent.h"
#include "tests/sim/agents/plant.h"
#include "tests/sim/random.h"

enum {
    FLEET_HOSTS = 6, /* each with an id, of its own but for a twin; one process at a time */
    FLEET_PROCESSES = 48,
    FLEET_WORKS = 5,
    FLEET_TICK = 100, /* ms that a process wakes late */
    FLEET_INBOX = 1024,
    FLEET_LETTERS = 16384,
    FLEET_SAID = 256, /* messages of one process that are a sign of its life */
    FLEET_PAUSES = 32,
    FLEET_REPORTS = FLEET_PROCESSES * FLEET_WORKS, /* there may be at most */
    FLEET_RING = 8, /* timestamps that are remembered of a peer without seq */
    FLEET_ARENA = 8 << 20,
    FLEET_TEXT = 240
};

#define FLEET_WALL INT64_C(1772366400000000) /* us: the true wall time at 0 */

enum fleet_kind {
    FLEET_MEMBER = 0,
    FLEET_OBSERVER = 1,
    FLEET_SEED = 2 /* a peer of the seed library: heartbeats and notices without our keys */
};

/* What may happen in a schedule; each seed switches some of it on. */
enum fleet_fault {
    FLEET_LOSS = 1 << 0,
    FLEET_TWICE = 1 << 1,     /* a message comes again at once */
    FLEET_DELAY = 1 << 2,     /* ... late and in another order */
    FLEET_REPLAY = 1 << 3,    /* an old one comes again, long after */
    FLEET_PARTITION = 1 << 4, /* some do not hear some others */
    FLEET_CUT = 1 << 5,       /* a host loses the bus */
    FLEET_OUTAGE = 1 << 6,    /* everybody does */
    FLEET_PAUSE = 1 << 7,     /* SIGSTOP, SIGCONT */
    FLEET_KILL = 1 << 8,
    FLEET_NOTICE = 1 << 9, /* a process leaves, and may change its mind */
    FLEET_ORDER = 1 << 10, /* somebody else wants it to leave */
    FLEET_CLOCK = 1 << 11, /* wall clocks are wrong by minutes, and are set */
    FLEET_STORE = 1 << 12, /* a host loses the store of the election */
    FLEET_STEP_DOWN = 1 << 13,
    FLEET_SEEDS = 1 << 14,     /* some peers are of the seed library */
    FLEET_OBSERVERS = 1 << 15, /* some only observe */
    FLEET_LATE = 1 << 16,      /* processes wake late, by a tick at most */
    FLEET_TAKERS = 1 << 17,    /* members take work that is safe to take */
    FLEET_JOIN = 1 << 18,      /* some hosts start in the middle of it */
    FLEET_TWINS = 1 << 19,     /* two hosts run under one id */
    FLEET_FAULTS = 1 << 20
};

/* What is looked at. */
enum fleet_promise {
    FLEET_KEPT = 0,
    FLEET_LIVING,   /* few losses kill no living peer */
    FLEET_TWIN,     /* two that live under one id are told, and nobody else is */
    FLEET_OUTAGES,  /* a bus that is down kills nobody */
    FLEET_DEATH,    /* a death is told in time, once */
    FLEET_REPORT,   /* the leader reports what it sees at once */
    FLEET_RESOLVED, /* by a healthy peer, and by nothing else */
    FLEET_ONCE,     /* an event of a report has one number, and numbers rise */
    FLEET_SAFE,     /* nothing is safe to take while its owner works within its time */
    FLEET_LEAVING,  /* bounded, and without leadership */
    FLEET_LEADER,   /* one at a time */
    FLEET_TIME,     /* who has nothing to do sleeps */
    FLEET_CALM,     /* after the faults: everything known is open or served */
    FLEET_PROMISES
};

struct fleet_world;

/* A message as it was sent, and what it says. */
struct fleet_message {
    enum coord_message_type type;
    enum coord_orphans_kind kind;
    unsigned sender; /* process; FLEET_PROCESSES: none of them */
    unsigned host;   /* that it speaks of */
    unsigned place;  /* among the sender's signs of life */
    bool life;
    bool leaving;
    coord_ms sent;
    coord_ms deadline; /* of leaving */
    uint64_t seq;
    int64_t stamp;      /* timestamp, us */
    int64_t completion; /* of a notice, likewise */
    unsigned lists;     /* works, a bit each */
    uint64_t fence;
    uint32_t reports[FLEET_REPORTS / 32 + 1]; /* that a leader says are open */
    size_t count;
    const unsigned char *bytes;
};

struct fleet_letter {
    coord_ms at;
    uint64_t order;
    unsigned to; /* process */
    const struct fleet_message *message;
};

struct fleet_host {
    coord_ms base;    /* what its clock shows at 0 */
    int64_t wall_off; /* us */
    bool cut;         /* from the bus */
    bool store_cut;
    bool up;           /* it knows itself connected */
    bool down_by_cut;  /* ... not, and not for an outage alone */
    coord_ms turns_at; /* `up` follows what is */
    unsigned deaf_to;  /* hosts, a bit each */
    enum fleet_kind kind;
    unsigned process; /* the latest; FLEET_PROCESSES: none yet */
    coord_ms back_at; /* a dead one starts again; COORD_NEVER: it does not */
};

struct fleet_pause {
    coord_ms from;
    coord_ms to;
};

struct fleet_process {
    struct fleet_world *world;
    unsigned number;
    unsigned host;
    enum fleet_kind kind;
    bool runs;
    coord_ms started;
    coord_ms ended;
    unsigned char incarnation[COORD_OWNER_BYTES];
    struct coord_agent *agent; /* NULL: of the seed library, or dead */
    struct coord_elector *elector;
    const struct fleet_message *inbox[FLEET_INBOX];
    unsigned inbox_first;
    unsigned inbox_count;
    coord_ms wake_at;
    coord_ms promised; /* when it wanted to wake; COORD_NEVER */
    coord_ms stopped_until;
    struct fleet_pause pause[FLEET_PAUSES];
    unsigned pauses;
    uint64_t seed; /* of its elector and coordinator */

    unsigned serves; /* as its beats say */
    unsigned holds;  /* what it really works on */
    bool leaving;
    bool silenced; /* it sends no beats any more */
    coord_ms deadline;
    coord_ms drains_for;
    coord_ms drained_at;
    bool explicit_ack;
    coord_ms acks_for;
    coord_ms ack_at;
    uint64_t ack_term;

    coord_ms next_beat; /* of a seed peer */
    bool notice_due;
    bool noticed; /* it has given one, in this life or in one before */
    enum coord_intent intent;

    unsigned said; /* signs of life so far */
    const struct fleet_message *sign[FLEET_SAID];

    /* what it could know of its own ears */
    bool was_up;
    coord_ms echo;
    coord_ms anew;
    bool led;
    unsigned served_as_it_led; /* works, just before its term began */
    uint64_t fence;            /* the highest that it has heard a leader speak under */
    uint32_t hearsay[FLEET_REPORTS / 32 + 1]; /* reports that a leader has told it */
    coord_ms served_at[FLEET_WORKS];          /* when somebody who is well said so last */
};

/* What one process has really heard of another. */
struct fleet_ear {
    bool known;
    bool silent; /* as it was told */
    bool finished;
    bool leaving;
    bool twin; /* it was told that there are two of its id */
    coord_ms deadline;
    coord_ms heard_at;
    uint64_t seq;
    int64_t newest; /* of a seed peer: its highest timestamp, and when that came */
    coord_ms newest_at;
    unsigned lists;
    const struct fleet_message *last;
    uint32_t lost[FLEET_SAID / 32];   /* by bad weather: a bit for each sign of life */
    uint32_t missed[FLEET_SAID / 32]; /* because the bus was down, or our way to it */
    uint32_t heard[FLEET_SAID / 32];
};

/* What one process was told of the report of a work. */
struct fleet_told {
    uint64_t fence;
    uint64_t seq;
    coord_ms safe_after;
    coord_ms opened_at;
    coord_ms resolved_at; /* 0: never */
    bool by_owner;        /* ... because its owner is well */
    bool open;
    unsigned char report_id[COORD_REPORT_ID_BYTES]; /* of an author: its id; zero: not told yet */
};

/* Paper of the election's store. */
struct fleet_store {
    unsigned holder; /* process; FLEET_PROCESSES: none */
    uint64_t attempt;
    uint64_t fence;
    coord_ms valid_until;
};

struct fleet_counts {
    uint64_t schedules;
    uint64_t messages;
    uint64_t steps;
    uint64_t deaths;
    uint64_t false_deaths; /* of the living, where that is not promised against */
    uint64_t reports;
    uint64_t taken;
    uint64_t taken_early; /* while the owner worked, where that is not promised against */
    uint64_t lost;        /* known to nobody who lived on */
    uint64_t broken[FLEET_PROMISES];
};

struct fleet_world {
    uint64_t seed;
    struct sim_random random;
    uint32_t faults;
    coord_ms now;
    coord_ms timeout;  /* T */
    coord_ms interval; /* I */
    coord_ms ttl;
    unsigned hosts;
    struct fleet_host host[FLEET_HOSTS];
    unsigned twin; /* the host that has the id of the first; FLEET_HOSTS: none */
    unsigned processes;
    struct fleet_process process[FLEET_PROCESSES];
    struct fleet_ear ear[FLEET_PROCESSES][FLEET_PROCESSES]; /* of, about */
    struct fleet_told told[FLEET_PROCESSES][FLEET_PROCESSES][FLEET_WORKS];
    struct fleet_told author[FLEET_PROCESSES][FLEET_WORKS]; /* as its leader told it last */
    coord_ms resolved_at[FLEET_WORKS];                      /* by a leader, the last time */
    coord_ms taken_at; /* a member took work up, the last time */
    struct fleet_store store;

    /* the weather now */
    unsigned loss; /* of 1,000 */
    coord_ms spread;
    coord_ms spread_most; /* so far */
    bool outage;
    coord_ms back_at; /* the bus, or a host's way to it: the last time */
    bool untold;      /* connections that break tell nobody, as those of a bus of one's own */
    bool calm;        /* the faults have ceased */

    struct fleet_letter letter[FLEET_LETTERS];
    unsigned letters;
    uint64_t order;
    const struct fleet_message *past[4096];
    unsigned past_count;
    size_t arena_used;
    unsigned char arena[FLEET_ARENA];

    FILE *trace;
    enum fleet_promise broken;
    coord_ms broken_at;
    char text[FLEET_TEXT];
    struct fleet_counts counts;
};

/* ---- schedule.c ---- */

/* Run the schedule of a seed; what broke is in the world afterwards. */
void fleet_schedule(struct fleet_world *world, uint64_t seed, FILE *trace);

/* Schedules of a planted fault until one breaks. @return how many it took, 0: none did. */
uint64_t fleet_notice(struct fleet_world *world, enum fleet_plant plant, uint64_t first,
                      uint64_t most);

/* ---- process.c ---- */

/* Where no more processes may be started nothing happens. */
void fleet_start(struct fleet_world *world, unsigned host, enum fleet_kind kind, unsigned serves);
void fleet_kill(struct fleet_process *process);
void fleet_stop(struct fleet_process *process, coord_ms until);
void fleet_wake(struct fleet_process *process);
void fleet_serve(struct fleet_process *process, unsigned serves);
void fleet_leave(struct fleet_process *process, enum coord_intent intent, coord_ms within,
                 coord_ms drains_for);
void fleet_stay(struct fleet_process *process);
bool fleet_leads(const struct fleet_process *process);
const char *fleet_host_name(unsigned host);
const char *fleet_work_name(unsigned work);

/* The host after which it is called. */
static inline unsigned fleet_called(const struct fleet_world *world, unsigned host)
{
    return host == world->twin ? 0 : host;
}

/* Do two processes run under one id? */
static inline bool fleet_are_twins(const struct fleet_process *one,
                                   const struct fleet_process *other)
{
    return one->host != other->host &&
           fleet_called(one->world, one->host) == fleet_called(one->world, other->host);
}

static inline coord_ms fleet_local(const struct fleet_process *process)
{
    return process->world->now + process->world->host[process->host].base;
}

static inline coord_ms fleet_true(const struct fleet_process *process, coord_ms local)
{
    const coord_ms base = process->world->host[process->host].base;
    return local == COORD_NEVER ? COORD_NEVER : local > base ? local - base : 0;
}

static inline int64_t fleet_wall(const struct fleet_process *process)
{
    const struct fleet_world *world = process->world;
    return FLEET_WALL + (int64_t)world->now * 1000 + world->host[process->host].wall_off;
}

/* ---- seed_peer.c ---- */
void fleet_seed_wake(struct fleet_process *process);

/* ---- bus.c ---- */
bool fleet_connected(const struct fleet_world *world, unsigned host);
enum coord_err fleet_publish(struct fleet_process *process, enum coord_message_type type,
                             const void *bytes, size_t count);
void fleet_publish_order(struct fleet_world *world, unsigned host, coord_ms within);
void fleet_replay(struct fleet_world *world);
coord_ms fleet_next_letter(const struct fleet_world *world);
void fleet_deliver(struct fleet_world *world);
void fleet_turn(struct fleet_world *world);

/* ---- store.c ---- */
const struct coord_backend_ops *fleet_store_ops(void);

/* ---- truth.c: what each has heard, by the rules and not by the code ---- */
void fleet_hear(struct fleet_process *process, const struct fleet_message *message);
void fleet_woke(struct fleet_process *process);
bool fleet_judges(const struct fleet_process *process);
bool fleet_is_well(const struct fleet_ear *ear);
bool fleet_served(const struct fleet_process *process, unsigned work);

/* ---- check.c ---- */
void fleet_check_event(struct fleet_process *process, const struct coord_event *event);
void fleet_check_step(struct fleet_process *process);
void fleet_break(struct fleet_world *world, enum fleet_promise promise, const char *format, ...)
    COORD_PRINTF(3, 4);
const char *fleet_promise_name(enum fleet_promise promise);

/* ---- check_reports.c ---- */
void fleet_check_report(struct fleet_process *process, const struct coord_event *event);
void fleet_check_table(struct fleet_process *process);
void fleet_check_take(struct fleet_process *process, const struct coord_orphan *orphan);
void fleet_check_calm(struct fleet_world *world, const struct fleet_process *leader);

/* A line of the trace; NULL: of nobody. */
void fleet_say(const struct fleet_world *world, const struct fleet_process *process,
               const char *format, ...) COORD_PRINTF(3, 4);

static inline bool fleet_has(const uint32_t *bits, unsigned at)
{
    return (bits[at / 32] >> (at % 32) & 1) != 0;
}

static inline void fleet_set(uint32_t *bits, unsigned at)
{
    bits[at / 32] |= UINT32_C(1) << (at % 32);
}

#endif /* SIM_AGENTS_WORLD_H */
