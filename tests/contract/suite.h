/* SPDX-License-Identifier: MIT
 * tests/contract/suite.h - the one contract that every elector keeps, run once for each of them.
 *
 * A backend brings a store (struct suite_store); each case runs in the ways of embedding that
 * matter to it: blocking calls, helper threads, a foreign loop.
 */
#ifndef COORD_TESTS_SUITE_H
#define COORD_TESTS_SUITE_H

#include "runtime/election.h"
#include "tests/support/support.h"

#include <pthread.h>

/** What a backend brings along. */
struct suite_store {
    const char *name; /* such as "memory" */
    const struct coord_scheme *schemes;
    coord_ms ttl;                   /* of most cases: short, and still fit for a busy machine */
    void (*start)(void);            /* before the first case; may skip; may be NULL */
    void (*stop)(void);             /* once; may be NULL */
    const char *(*uri)(void);       /* of the store */
    const char *bad_option;         /* an option of its own with a value that it refuses, or NULL */
    bool contends;                  /* false: every candidate is alone with its store */
    void (*lose)(const char *name); /* take the lease of a name away behind its holder's back */
    int terms;                      /* how many the case without leaks runs; 0: 1000 */
    unsigned modes;                 /* 0: all; of enum suite_mode, where another run has the rest */
};

/** Run every case; @return for main(). */
int suite_run(const struct suite_store *store);

/* ---- for the suite's own sources ---- */

enum suite_mode {
    SUITE_BLOCKING = 1,
    SUITE_THREADS = 2,
    SUITE_LOOP = 4,
    SUITE_ALL = 7
};

enum {
    SIDES = 4,
    JOURNAL = 64,
    GUARD = 30000 /* ms after which a case that hangs has failed; no measure of anything */
};

/** One callback's visit. kind 0: a leader change, with `leading` as told. */
struct suite_entry {
    enum coord_edge_kind kind;
    bool leading;   /* leader changes: what was told */
    bool is_leader; /* as asked from inside */
    uint64_t term;
    uint64_t fence;
};

/** One candidate: a runtime of its own, as another process would have. */
struct suite_side {
    struct suite_world *world;
    struct coord_runtime *runtime;
    struct coord_election *election;
    char identity[32];
    pthread_mutex_t lock;
    struct suite_entry entries[JOURNAL];
    size_t count;
};

struct suite_case;

struct suite_world {
    const struct suite_store *store;
    const struct suite_case *line;
    enum suite_mode mode;
    char name[64]; /* of the election: no other case has it */
    struct suite_side sides[SIDES];
};

struct suite_case {
    const char *name;
    void (*run)(struct suite_world *world);
    unsigned modes;
    bool rivals; /* needs a store that others reach as well */
};

/** Each ends with a line whose name is NULL. */
extern const struct suite_case suite_basics[];
extern const struct suite_case suite_terms[];
extern const struct suite_case suite_hosts[];
extern const struct suite_case suite_calls[];
extern const struct suite_case suite_process[];

/** Open side `i`, with an identity of its own, and the lease clear. */
struct suite_side *suite_open(struct suite_world *world, int i);
/** The same with a configuration, whose name and identity are filled in where they are NULL. */
struct suite_side *suite_open_with(struct suite_world *world, int i,
                                   struct coord_election_config *config);
/** Its configuration, to change and give to suite_open_with(). */
struct coord_election_config suite_config(const struct suite_world *world);
/** Journal edges, and leader changes, of a side. */
void suite_listen(struct suite_side *side);
size_t suite_count(struct suite_side *side);
struct suite_entry suite_entry(struct suite_side *side, size_t i);

/** Become the leader in the manner of the mode; fails the case where it does not. */
void suite_win(struct suite_side *side);
/** Stop leading, and wait until the store knows. */
void suite_give_up(struct suite_side *side);

typedef bool (*suite_condition)(void *ctx);
/** Drive every side until it holds; fails the case when it does not within GUARD. */
void suite_until(struct suite_world *world, suite_condition condition, void *ctx);
/** Drive every side for so long. */
void suite_drive(struct suite_world *world, coord_ms duration);

/* Conditions; ctx is a struct suite_side. */
bool suite_leads(void *ctx);
bool suite_leads_not(void *ctx);

enum coord_reason suite_reason(struct suite_side *side);

#endif /* COORD_TESTS_SUITE_H */
