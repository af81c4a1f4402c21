/* SPDX-License-Identifier: MIT
 * tests/sim/plant.h - planted faults: each takes one rule out, and the simulator has to notice.
 *
 * Faults of stores and networks are planted in the models. Those of the code that ships are
 * planted where it says COORD__RULE(name, expression): the simulator compiles its own copy of
 * that source with the macro of plant_rules.h, in which a planted rule has another value. In what
 * ships COORD__RULE is its expression and nothing else (coord/rule.h).
 */
#ifndef SIM_PLANT_H
#define SIM_PLANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/fault.h"

/*
 * X(symbol, name, store, faults that are switched on in each schedule, schedules within which it
 * must be noticed, a seed, what it takes out)
 *
 * Where that is not enough, the profile or what happens is made for it: sim_planted() there.
 *
 * The seed is one from which the fault is noticed within SIM_PINNED schedules: 1, or, for the
 * rare ones, the first that breaks. Each is tried in each `make test`. When the simulator has
 * changed, or the code in it, a seed is another schedule: then the test says how to find one anew.
 */
#define SIM_PLANTS(X)                                                                              \
    X(ANCHOR_AT_REPLY, "anchor-at-reply", SIM_STORE_REDIS, SIM_FAULT_SLOW | SIM_FAULT_PAUSE,       \
      10000, 813, "a term counts from the reply of its renewal, not from the sending")             \
    X(GRANT_AT_REPLY, "grant-at-reply", SIM_STORE_REDIS, SIM_FAULT_SLOW | SIM_FAULT_PAUSE, 20000,  \
      250, "a term counts from the reply of its grant, not from the sending")                      \
    X(STALE_YES, "stale-yes", SIM_STORE_REDIS, SIM_FAULT_PAUSE, 1000, 1,                           \
      "the deadline is not compared when somebody asks who leads")                                 \
    X(ALIVE_AFTER_STOPPED, "alive-after-stopped", SIM_STORE_REDIS,                                 \
      SIM_FAULT_WITHDRAW | SIM_FAULT_STEP_DOWN, 1000, 1,                                           \
      "a term whose resignation was sent goes on saying yes")                                      \
    X(EARLY_RESIGNATION, "early-resignation", SIM_STORE_REDIS,                                     \
      SIM_FAULT_SLOW_HOST | SIM_FAULT_STEP_DOWN, 1000, 1,                                          \
      "the return of a callback resigns, though the host acknowledges by a call")                  \
    X(STRAY_ACKNOWLEDGEMENT, "stray-acknowledgement", SIM_STORE_REDIS,                             \
      SIM_FAULT_SLOW_HOST | SIM_FAULT_STEP_DOWN, 5000, 1,                                          \
      "an acknowledgement of another term ends this one")                                          \
    X(STANDS_BEFORE_HOST, "stands-before-host", SIM_STORE_REDIS,                                   \
      SIM_FAULT_HUNG_HOST | SIM_FAULT_PAUSE, 2000, 1,                                              \
      "it stands again before its host has acknowledged the last term")                            \
    X(RENEWS_FOR_EVER, "renews-for-ever", SIM_STORE_REDIS, SIM_FAULT_HUNG_HOST | SIM_FAULT_HEALTH, \
      2000, 1, "renewals go on for as long as the host hangs")                                     \
    X(NOT_ASIDE, "not-aside", SIM_STORE_REDIS, SIM_FAULT_STEP_DOWN, 2000, 1,                       \
      "who stepped down stands again at once")                                                     \
    X(DEBT_STRUCK, "debt-struck", SIM_STORE_REDIS, SIM_FAULT_RESTART | SIM_FAULT_KILL, 20000, 1,   \
      "renewals strike the debt while it is still waited for")                                     \
    X(JUMP_IGNORED, "jump-ignored", SIM_STORE_REDIS, SIM_FAULT_JUMP, 10000, 1,                     \
      "a grant is clear though the server's clock went forward")                                   \
    X(SEEN_FORGOTTEN, "seen-forgotten", SIM_STORE_REDIS, SIM_FAULT_FLUSH, 10000, 1,                \
      "a candidate does not tell the fence that it has seen")                                      \
    X(UNDONE_LIVES, "undone-lives", SIM_STORE_REDIS,                                               \
      SIM_FAULT_STALL | SIM_FAULT_CANDIDACY | SIM_FAULT_LOSS, 100000, 716,                         \
      "an attempt is asked for again after its undo was sent")                                     \
    X(UNDO_BY_OWNER, "undo-by-owner", SIM_STORE_REDIS,                                             \
      SIM_FAULT_STALL | SIM_FAULT_CANDIDACY | SIM_FAULT_LOSS, 50000, 471,                          \
      "an undo compares the owner, not the attempt")                                               \
    X(UNORDERED, "unordered", SIM_STORE_REDIS,                                                     \
      SIM_FAULT_STALL | SIM_FAULT_CANDIDACY | SIM_FAULT_LOSS | SIM_FAULT_TWICE, 200000, 4716,      \
      "an attempt below the one that the lease holds is granted")                                  \
    X(UNDO_RESIGNS, "undo-resigns", SIM_STORE_REDIS, SIM_FAULT_RESTART | SIM_FAULT_WITHDRAW,       \
      20000, 85, "a candidate that gives up while it waits strikes the debt")                      \
    X(BLIND_RENEWAL, "blind-renewal", SIM_STORE_REDIS, SIM_FAULT_PAUSE, 2000, 1,                   \
      "a renewal makes a lease anew that is gone, or another's")                                   \
    X(BARE_DELETE, "bare-delete", SIM_STORE_REDIS, SIM_FAULT_STALL | SIM_FAULT_STEP_DOWN, 2000, 1, \
      "a resignation deletes whatever lease is there")                                             \
    X(SAME_FENCE, "same-fence", SIM_STORE_REDIS, SIM_FAULT_STALL | SIM_FAULT_LOSS, 50000, 220,     \
      "a second attempt keeps the fence of the first")                                             \
    X(LEAP_OUTSIDE, "leap-outside", SIM_STORE_REDIS, SIM_FAULT_RESTART | SIM_FAULT_KILL, 10000, 1, \
      "2^32 is added to the maximum, not to the clock")                                            \
    X(RUN_IGNORED, "run-ignored", SIM_STORE_REDIS, SIM_FAULT_RESTART, 2000, 1,                     \
      "a record of another run counts as one of this run")                                         \
    X(OWN_LEASE, "own-lease", SIM_STORE_REDIS, SIM_FAULT_RESTART, 50000, 267,                      \
      "what is owed leaves out one's own lease")                                                   \
    X(UPTIME_NOT_ROUNDED, "uptime-not-rounded", SIM_STORE_REDIS, SIM_FAULT_RESTART, 50000, 1373,   \
      "uptime, in whole seconds, is taken for the age of the run")                                 \
    X(UPTIME_OF_PROMOTED, "uptime-of-promoted", SIM_STORE_REDIS, SIM_FAULT_PROMOTE, 10000, 1,      \
      "the uptime of a promoted replica is taken for the age of its run")                          \
    X(AGE_OF_OLD_RUN, "age-of-old-run", SIM_STORE_REDIS, SIM_FAULT_RESTART, 10000, 1,              \
      "how long a client has known a run counts for another one as well")                          \
    X(SEEN_IGNORED, "seen-ignored", SIM_STORE_REDIS, SIM_FAULT_FLUSH, 2000, 1,                     \
      "no record is clear for one who has seen a fence")                                           \
    X(LONG_LIFE, "long-life", SIM_STORE_REDIS, SIM_FAULT_JUMP | SIM_FAULT_KILL, 5000, 63,          \
      "a lease that outlives what was asked for is not cut")                                       \
    X(LOOKS_FOR_EVER, "looks-for-ever", SIM_STORE_REDIS, SIM_FAULT_JUMP | SIM_FAULT_KILL, 100000,  \
      669, "those of a worse rank only look at a lease that lives for too long")                   \
    X(LONG_RESERVE, "long-reserve", SIM_STORE_REDIS,                                               \
      SIM_FAULT_JUMP | SIM_FAULT_KILL | SIM_FAULT_STEP_DOWN, 200000, 6618,                         \
      "a reservation that outlives what was asked for is not cut")                                 \
    X(DEBT_DROPPED, "debt-dropped", SIM_STORE_REDIS, SIM_FAULT_RESTART | SIM_FAULT_STALL, 100000,  \
      296, "a grant over one's own dead attempt is clear")                                         \
    X(REGRANT_CLEAR, "regrant-clear", SIM_STORE_REDIS, SIM_FAULT_RESTART | SIM_FAULT_LOSS, 10000,  \
      70, "a grant that is given again is clear")                                                  \
    X(REGRANT_ANY_RUN, "regrant-any-run", SIM_STORE_REDIS,                                         \
      SIM_FAULT_PROMOTE | SIM_FAULT_JUMP | SIM_FAULT_STALL | SIM_FAULT_PAUSE, 1000000, 87432,      \
      "a grant is given again by a server that came back with an older state")                     \
    X(REGRANT_EXPIRY, "regrant-expiry", SIM_STORE_REDIS, SIM_FAULT_SLOW | SIM_FAULT_LOSS, 10000,   \
      293, "a grant that is given again is not prolonged")                                         \
    X(ONE_LOCK, "one-lock", SIM_STORE_FILE, SIM_FAULT_PAUSE | SIM_FAULT_KILL, 1000, 1,             \
      "one lock stands for all terms of a file")                                                   \
    X(SLOT_STOLEN, "slot-stolen", SIM_STORE_FILE,                                                  \
      SIM_FAULT_CHURN | SIM_FAULT_PAUSE | SIM_FAULT_KILL, 10000, 1,                                \
      "a slot is taken while its former term still holds its byte")                                \
    X(STUBBORN_TAKER, "stubborn-taker", SIM_STORE_FILE, SIM_FAULT_PAUSE, 100000, 246,              \
      "a taker that finds a higher term goes on")                                                  \
    X(EARLIER_IGNORED, "earlier-ignored", SIM_STORE_FILE, SIM_FAULT_PAUSE, 100000, 4338,           \
      "a taker does not wait for earlier terms")                                                   \
    X(STUBBORN_RENEWAL, "stubborn-renewal", SIM_STORE_FILE, SIM_FAULT_PAUSE | SIM_FAULT_STALE,     \
      100000, 1, "a renewal that finds a higher term goes on")                                     \
    X(NEW_FILE_CLEAR, "new-file-clear", SIM_STORE_FILE, SIM_FAULT_FLUSH | SIM_FAULT_PAUSE, 10000,  \
      1, "a file without a record owes nothing")                                                   \
    X(COPY_TRUSTED, "copy-trusted", SIM_STORE_FILE, SIM_FAULT_COPY, 10000, 1,                      \
      "the slots of another file count as those of this one")                                      \
    X(FILE_DEBT_LOST, "file-debt-lost", SIM_STORE_FILE, SIM_FAULT_FLUSH | SIM_FAULT_KILL, 20000,   \
      1, "a debt in an earlier slot is not inherited")                                             \
    X(STALE_DEBT, "stale-debt", SIM_STORE_FILE,                                                    \
      SIM_FAULT_FLUSH | SIM_FAULT_STALE | SIM_FAULT_PAUSE, 100000, 61,                             \
      "a debt counts from a time that was read before the look")                                   \
    X(OTHER_CLOCK, "other-clock", SIM_STORE_FILE, SIM_FAULT_NAMESPACE, 10000, 1,                   \
      "times of another time namespace are compared with ours")                                    \
    X(PATH_UNCHECKED, "path-unchecked", SIM_STORE_FILE, SIM_FAULT_FLUSH, 10000, 1,                 \
      "a renewal does not look whether its file still lies there")                                 \
    X(PG_NO_WAIT, "pg-no-wait", SIM_STORE_POSTGRES, SIM_FAULT_TERMINATE | SIM_FAULT_PAUSE, 2000,   \
      1, "a takeover waits for nothing")                                                           \
    X(PG_WAIT_FROM_SENDING, "pg-wait-from-sending", SIM_STORE_POSTGRES,                            \
      SIM_FAULT_TERMINATE | SIM_FAULT_STALL | SIM_FAULT_SLOW, 200000, 14821,                       \
      "what is owed counts from the sending of the acquire")                                       \
    X(PG_RESIGNED_IN_WAIT, "pg-resigned-in-wait", SIM_STORE_POSTGRES,                              \
      SIM_FAULT_TERMINATE | SIM_FAULT_PAUSE | SIM_FAULT_WITHDRAW | SIM_FAULT_CANDIDACY, 50000, 1,  \
      "a candidate that gives up while it waits marks the row as resigned")                        \
    X(PG_DEBT_SHRINKS, "pg-debt-shrinks", SIM_STORE_POSTGRES,                                      \
      SIM_FAULT_TERMINATE | SIM_FAULT_PAUSE | SIM_FAULT_LEASES, 100000, 1,                         \
      "what the former term itself still owed is not inherited")                                   \
    X(PG_LEASE_IS_PROOF, "pg-lease-is-proof", SIM_STORE_POSTGRES,                                  \
      SIM_FAULT_TERMINATE | SIM_FAULT_PAUSE, 5000, 1,                                              \
      "a lease in the row that has passed is clear")                                               \
    X(PG_TRUNCATED_CLEAR, "pg-truncated-clear", SIM_STORE_POSTGRES,                                \
      SIM_FAULT_TERMINATE | SIM_FAULT_PAUSE | SIM_FAULT_FLUSH, 50000, 1,                           \
      "no record is clear, after a TRUNCATE too")                                                  \
    X(PG_STRANGE_ROW, "pg-strange-row", SIM_STORE_POSTGRES,                                        \
      SIM_FAULT_TERMINATE | SIM_FAULT_PAUSE | SIM_FAULT_COPY | SIM_FAULT_STEP_DOWN, 100000, 1,     \
      "an older row that is put back is taken for the present one")                                \
    X(PG_FORMER_BESIDE, "pg-former-beside", SIM_STORE_POSTGRES,                                    \
      SIM_FAULT_TERMINATE | SIM_FAULT_PAUSE | SIM_FAULT_SLOW | SIM_FAULT_STEP_DOWN, 200000, 298,   \
      "the former term is read beside the upsert, as old as its snapshot")                         \
    X(PG_NO_GATE, "pg-no-gate", SIM_STORE_POSTGRES, SIM_FAULT_WRITERS, 2000, 1,                    \
      "a term leads without having passed the gate")                                               \
    X(PG_GATE_FIRST, "pg-gate-first", SIM_STORE_POSTGRES, SIM_FAULT_WRITERS | SIM_FAULT_TERMINATE, \
      20000, 1328, "the gate is passed before the row is written")                                 \
    X(PG_EXISTS, "pg-exists", SIM_STORE_POSTGRES, SIM_FAULT_WRITERS, 2000, 1,                      \
      "guarded work looks at the row (EXISTS) and takes no gate")                                  \
    X(PG_HELD_FOR_EVER, "pg-held-for-ever", SIM_STORE_POSTGRES, SIM_FAULT_HUNG_HOST, 2000, 1,      \
      "a term that is over keeps its lock for as long as its host hangs")                          \
    X(PG_LONG_RESERVE, "pg-long-reserve", SIM_STORE_POSTGRES,                                      \
      SIM_FAULT_JUMP | SIM_FAULT_KILL | SIM_FAULT_STEP_DOWN, 200000, 34863,                        \
      "a reservation that outlives what was asked for stands")                                     \
    X(PG_ERROR_KEEPS, "pg-error-keeps", SIM_STORE_POSTGRES, SIM_FAULT_COMMIT, 2000, 1,             \
      "an acquire that fails is not followed by an unlock")                                        \
    X(PG_LOCK_FORGOTTEN, "pg-lock-forgotten", SIM_STORE_POSTGRES, 0, 5000, 517,                    \
      "an elector that leaves a shared session leaves its lock behind")                            \
    X(PG_LATE_GRANT, "pg-late-grant", SIM_STORE_POSTGRES, SIM_FAULT_SLOW | SIM_FAULT_STALL, 20000, \
      460, "a grant whose elector has left a shared session is kept")                              \
    X(PG_LOCKED_TWICE, "pg-locked-twice", SIM_STORE_POSTGRES, SIM_FAULT_HUNG_HOST, 20000, 319,     \
      "an acquire does not wait for the unlock of the term before")                                \
    X(PG_PATIENT, "pg-patient", SIM_STORE_POSTGRES,                                                \
      SIM_FAULT_TERMINATE | SIM_FAULT_RESTART | SIM_FAULT_STALL, 5000, 45,                         \
      "a lost session is opened again a second later, however short the lease is")

enum sim_plant {
    SIM_PLANT_NONE = 0,
#define X(symbol, name, store, faults, schedules, seed, text) SIM_PLANT_##symbol,
    SIM_PLANTS(X)
#undef X
    SIM_PLANT_COUNT
};

enum {
    SIM_SOON = 10000, /* a fault that has to be noticed within so many is looked for each time */
    SIM_PINNED = 50   /* schedules from the seed of a fault on, within which it is noticed */
};

extern enum sim_plant sim_plant_now;

static inline bool sim_planted(enum sim_plant plant)
{
    return __builtin_expect(sim_plant_now == plant, 0);
}

struct sim_plant_info {
    const char *name;
    enum sim_store store;
    uint32_t faults;    /* enum sim_fault */
    uint64_t schedules; /* within which it must be noticed */
    uint64_t seed;      /* from which it is noticed within SIM_PINNED */
    const char *text;
};

extern const struct sim_plant_info sim_plants[SIM_PLANT_COUNT];

/* Find one by name; SIM_PLANT_NONE: there is none. */
enum sim_plant sim_plant_named(const char *name);

#endif /* SIM_PLANT_H */
