/* SPDX-License-Identifier: MIT
 * runtime/inside.h - what the sources of runtime/ share. Not for anybody else.
 *
 * One lock guards a runtime and all of its elections, electors and connections. It is held for
 * work that does not wait, and never while a callback runs. One thread at a time sleeps on the
 * loop (`driven`); the others wait on `changed`.
 */
#ifndef COORD_INSIDE_H
#define COORD_INSIDE_H

#include "coord/lease_status.h"
#include "runtime/cell.h"
#include "runtime/election.h"
#include "runtime/loop.h"
#include "runtime/resolve.h"
#include "runtime/rider.h"

#include <pthread.h>

enum {
    COORD__RUNTIME_MAGIC = 0x72756e74,
    COORD__ELECTION_MAGIC = 0x656c6563
};

struct coord_runtime {
    uint32_t magic;
    struct coord__cell *cell; /* only `alive`: wiped in a forked child */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something was driven, or an edge told */
    pthread_cond_t edges;   /* an edge waits for the callback thread */
    unsigned waiters;       /* on changed */

    struct coord__loop loop;
    bool driven; /* some thread sleeps on the loop, the lock let go */
    bool sync;   /* an election left, and its descriptors with it: others may share them */
    struct coord_election *first;
    struct coord__rider *riders;
    struct coord_share share;
    struct coord__resolve *resolve;
    struct coord_resolver resolver;
    struct coord_log log;

    bool telling; /* callbacks of `told` run on `teller` */
    pthread_t teller;
    struct coord_election *told;
    uint64_t tellings;

    bool threads; /* the helper threads drive and tell */
    bool ending;  /* some thread ends them */
    bool io_end;
    bool io_ended;
    bool callback_end;
    bool callback_ended;
    pthread_t io_thread;
    pthread_t callback_thread;

    struct coord_runtime *next; /* of all in this process, for fork() */
};

enum coord__callback_kind {
    COORD__CALLBACK_EDGE,
    COORD__CALLBACK_LEADER
};

struct coord__callback {
    struct coord__callback *next;
    enum coord__callback_kind kind;
    coord_edge_fn edge;
    coord_leader_change_fn leader;
    void *ctx;
    uint64_t serial;
    bool removed; /* freed when nobody walks the list any more */
};

struct coord_election {
    struct coord__cell *cell; /* first: what is_leader() reads */
    uint32_t magic;
    struct coord_runtime *runtime;
    struct coord_election *next;
    unsigned pins; /* calls and dispatches that still use it */
    bool closed;   /* the elector is gone; the rest goes with the last pin */

    const struct coord_backend_ops *ops;
    struct coord_elector *elector;
    struct coord_lease *lease;
    struct coord_timing timing;
    char name[COORD_ESCAPED_MAX];
    char identity[COORD_ESCAPED_MAX];
    struct coord__published published;

    bool explicit_ack;
    coord_watchdog_fn watchdog;
    void *watchdog_ctx;
    bool watchdog_abort;
    uint64_t barked; /* the term that the watchdog fired for */

    bool due;             /* to be processed without waiting for its deadline */
    bool one_term;        /* try_acquire(): not to stand again when the term ends */
    bool silent;          /* stop() returned: no callback begins */
    uint64_t told_last;   /* the runtime's count then: whoever waits longest is told next */
    uint64_t told_no;     /* leader-change callbacks heard "no" of this term: so does everybody */
    uint64_t silent_term; /* ended, and nobody could be told: acknowledged at silent_at */
    coord_ms silent_at;   /* COORD_NEVER: none */
    coord_ms deadline;
    struct coord_descriptor descriptors[COORD_DESCRIPTORS_MAX];
    size_t descriptor_count;

    bool querying;                    /* one call asks the store */
    char asked_to[COORD_ESCAPED_MAX]; /* of its query */

    struct coord__callback *callbacks;
    uint64_t callback_serial;
    unsigned walks; /* 0 or 1: the list is being walked */
};

/* ---- entering; each public call begins with one of these ---- */

/* false: this is a forked child, nothing is locked. */
static inline bool coord__enter(struct coord_runtime *runtime)
{
    COORD_ASSERT(runtime->magic == COORD__RUNTIME_MAGIC);
    return coord__cell_alive(runtime->cell) && pthread_mutex_lock(&runtime->lock) == 0;
}

static inline void coord__leave(struct coord_runtime *runtime)
{
    pthread_mutex_unlock(&runtime->lock);
}

/* After a callback, which may have forked: the child comes here too. Its lock is whole, and
 * nothing of the parent's is touched any more; see coord__forked(). */
static inline void coord__enter_again(struct coord_runtime *runtime)
{
    pthread_mutex_lock(&runtime->lock);
}

static inline bool coord__forked(const struct coord_runtime *runtime)
{
    return !coord__cell_alive(runtime->cell);
}

/* ---- drive.c; the lock is held ---- */

/* Something of this election changed: publish it, and have it driven soon. */
void coord__touch(struct coord_election *election);
void coord__publish(struct coord_election *election, coord_ms now);
/* Do all that can be done now. Watchdogs may run; the lock is let go for them. */
void coord__drive(struct coord_runtime *runtime);
/* The same, and tell what came of it, unless others drive or tell. */
void coord__drive_and_tell(struct coord_runtime *runtime);
/* When drive() has something to do. */
coord_ms coord__deadline(const struct coord_runtime *runtime);

typedef bool (*coord__ready_fn)(struct coord_election *election, void *ctx);
/* Wait until ready() says so, driving where nobody else does. @return false: the time was up, or
 * the election was closed. */
bool coord__await(struct coord_election *election, coord_ms until, coord__ready_fn ready,
                  void *ctx);
/* Sleep on the loop, or on `changed` where another thread does. */
void coord__wait_or_drive(struct coord_runtime *runtime, coord_ms until);
/* Wait on `changed` until a time of coord_clock_now() at the latest. */
void coord__wait_changed(struct coord_runtime *runtime, coord_ms until);
void coord__wake_waiters(struct coord_runtime *runtime);

/* ---- tell.c; the lock is held, and let go while callbacks run ---- */

bool coord__edge_waits(const struct coord_runtime *runtime);
/* Tell one edge, unless some thread is telling already. @return false: nothing was told. */
bool coord__tell_one(struct coord_runtime *runtime);
bool coord__in_own_callback(const struct coord_election *election);
/* This thread tells somebody: nobody else can be told anything before it returns. */
bool coord__in_a_callback(const struct coord_runtime *runtime);
/* The host's work of a term has ended. */
void coord__acknowledge(struct coord_election *election, uint64_t term, coord_ms now);
bool coord__has_callbacks(const struct coord_election *election);
void coord__free_callbacks(struct coord_election *election);

/* ---- election.c; the lock is held ---- */

void coord__pin(struct coord_election *election);
void coord__unpin(struct coord_election *election);
void coord__close(struct coord_election *election, bool forked);
/* Fill in *error, and return the code: why a blocking call gave up. */
enum coord_err coord__say_forked(struct coord_error *error);
enum coord_err coord__say_closed(struct coord_error *error);

/* ---- scheme.c ---- */

/* A URI taken apart, with the options of a configuration (NULL: none). */
enum coord_err coord__uri_new(const char *text, const char *const *options, struct coord_uri **out,
                              struct coord_error *error);
/* It may hold a password. NULL: nothing happens. */
void coord__uri_free(struct coord_uri *uri);

/* ---- threads.c ---- */

/* BUSY: a callback still runs at `until`. The lock is held. */
enum coord_err coord__end_threads(struct coord_runtime *runtime, coord_ms until);

/* ---- fork.c ---- */

void coord__fork_watch(struct coord_runtime *runtime);
void coord__fork_forget(struct coord_runtime *runtime);

#endif /* COORD_INSIDE_H */
