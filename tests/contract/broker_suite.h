/* SPDX-License-Identifier: MIT
 * tests/contract/broker_suite.h - the one contract that every bus keeps, run once for each of them.
 *
 * A side is one member of a fleet: a broker that a small poll() loop drives, as a host would.
 */
#ifndef COORD_TESTS_BROKER_SUITE_H
#define COORD_TESTS_BROKER_SUITE_H

#include "coord/broker.h"
#include "tests/support/support.h"

/** What a broker brings along. */
struct bus_store {
    const char *name; /* such as "redis": what the broker calls itself, too */
    const struct coord_broker_ops *(*ops)(void);
    void (*start)(void);      /* before the first case; may skip; may be NULL */
    void (*stop)(void);       /* once; may be NULL */
    const char *(*uri)(void); /* of the bus */
};

/** Run every case; @return for main(). */
int bus_suite_run(const struct bus_store *store);

/* ---- for the cases, and for tests of one broker's own ---- */

enum {
    BUS_SIDES = 200,
    BUS_CASES = 64,
    BUS_GUARD = 60000 /* ms after which a case that hangs has failed; no measure of anything */
};

struct bus_got {
    struct bus_got *next;
    size_t count;
    char topic[COORD_BROKER_TOPIC_MAX];
    unsigned char bytes[];
};

struct bus_side {
    struct coord_broker *broker; /* NULL: not open */
    bool absent;                 /* not driven: a process that was stopped */
    bool deaf;                   /* driven, but its messages are not taken */
    struct bus_got *first;
    struct bus_got **last;
    size_t got;
    size_t calls; /* of process() */
};

struct bus_world {
    const struct bus_store *store;
    char topic[64]; /* no other case has it */
    bool shared;    /* sides opened from now on share what can be shared */
    struct coord_share share;
    struct coord_broker_config config; /* of the sides opened from now on */
    struct bus_side sides[BUS_SIDES];
};

/** A world with a topic of its own. */
void bus_open_world(struct bus_world *world, const struct bus_store *store, const char *what);
/** Close all sides. */
void bus_close_world(struct bus_world *world);

/** Open side `i`; fails the case where that fails. It is not up yet. */
struct bus_side *bus_open(struct bus_world *world, int i);
/** The same, subscribed to the world's topic, and up. */
struct bus_side *bus_join(struct bus_world *world, int i);
void bus_close(struct bus_side *side);

void bus_subscribe(struct bus_side *side, const char *topic);
/** Publish to a topic; fails the case where it is refused. */
void bus_publish(struct bus_side *side, const char *topic, const void *bytes, size_t count);
/** Publish a text to the world's topic. */
void bus_say(struct bus_world *world, int i, const char *text);

/** One case; each list ends with a line whose name is NULL. */
struct bus_case {
    const char *name;
    void (*run)(struct bus_world *world);
};
extern const struct bus_case bus_carrying[];
extern const struct bus_case bus_limits[];

typedef bool (*bus_condition)(void *ctx);
/** Drive all sides until it holds; fails the case when it does not within BUS_GUARD. */
void bus_until(struct bus_world *world, bus_condition condition, void *ctx);
/** Drive all sides for so long. */
void bus_drive(struct bus_world *world, coord_ms duration);

/** Drive until a side has got `count` messages in all. */
void bus_until_got(struct bus_world *world, struct bus_side *side, size_t count);
/** Drive until it is up, or down. */
void bus_until_up(struct bus_world *world, struct bus_side *side);
void bus_until_down(struct bus_world *world, struct bus_side *side);
/** Drive until so many were lost for that reason. */
void bus_until_dropped(struct bus_world *world, struct bus_side *side,
                       enum coord_broker_drop reason, uint64_t count);
/** Drive until all that it published is on its way. */
void bus_until_idle(struct bus_world *world, struct bus_side *side);

/** Its i-th message; NULL: it has not so many. */
const struct bus_got *bus_message(const struct bus_side *side, size_t i);
/** Has it got this text, on any topic? How often? */
size_t bus_has(const struct bus_side *side, const char *text);
/** Forget what it has got. */
void bus_forget(struct bus_side *side);

struct coord_broker_status bus_status(const struct bus_side *side);

#endif /* COORD_TESTS_BROKER_SUITE_H */
