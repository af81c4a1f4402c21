/* SPDX-License-Identifier: MIT
 * tests/sim/agents/plant.h - planted faults: each takes one rule of the coordinator or of the agent
 * out, and the simulator has to notice.
 *
 * They are planted where it says COORD__RULE(name, expression), in the simulator's own copy of the
 * source (tests/sim/agents/shipped_*.c, plant_rules.h).
 */
#ifndef SIM_AGENTS_PLANT_H
#define SIM_AGENTS_PLANT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * X(symbol, name, faults that are switched on in each schedule, faults that are switched off,
 * schedules within which it must be noticed, a seed, what it takes out)
 *
 * The seed is one from which the fault is noticed within FLEET_PINNED schedules: 1, or, for the
 * rare ones, the first that breaks. Each is tried in each `make test`. When the simulator has
 * changed, or the code in it, a seed is another schedule: then the test says how to find one anew.
 */
#define FLEET_PLANTS(X)                                                                           \
    X(DEAF_JUDGE, "deaf-judge", FLEET_OUTAGE, 0, 100, 1,                                          \
      "silence is judged though our own heartbeat does not come back")                            \
    X(ASLEEP_BETWEEN_CALLS, "asleep-between-calls", FLEET_OBSERVERS | FLEET_KILL | FLEET_CUT, 0,  \
      200, 1, "who sleeps to its deadline counts as having slept, by the time between calls")     \
    X(BACK_UNNOTICED, "back-unnoticed", FLEET_OUTAGE | FLEET_OBSERVERS, 0, 100, 1,                \
      "a connection that is back is no start anew, and no heartbeat follows")                     \
    X(ECHO_IGNORED, "echo-ignored", FLEET_OUTAGE | FLEET_CUT, 0, 100, 1,                          \
      "our own heartbeat that is back is no start anew")                                          \
    X(CLOCK_BACK_DEAD, "clock-back-dead", FLEET_SEEDS | FLEET_CLOCK, 0, 100, 1,                   \
      "of a peer without seq only a higher time is life: a clock that is set back kills")         \
    X(SHORT_MEMORY, "short-memory", FLEET_SEEDS | FLEET_REPLAY | FLEET_KILL, 0, 500, 1,           \
      "of a peer without seq one time is remembered, not eight")                                  \
    X(REPLAY_LIVES, "replay-lives", FLEET_REPLAY | FLEET_KILL, 0, 100, 1,                         \
      "a heartbeat with an old seq is life")                                                      \
    X(DRAINER_RESOLVES, "drainer-resolves", FLEET_NOTICE, 0, 50, 1,                               \
      "the heartbeats of a draining peer resolve its own report")                                 \
    X(OLDER_RETIRED, "older-retired", FLEET_KILL, 0, 50, 1,                                       \
      "the older start of an id is retired on sight")                                             \
    X(NOTICE_STAYS, "notice-stays", FLEET_NOTICE, 0, 1000, 75,                                    \
      "a heartbeat without a notice does not withdraw it")                                        \
    X(LEAVING_FOR_EVER, "leaving-for-ever", FLEET_NOTICE | FLEET_KILL, 0, 50, 1,                  \
      "a leaving peer that falls silent is not dead")                                             \
    X(SAFE_AT_DEADLINE, "safe-at-deadline", FLEET_NOTICE, 0, 100, 1,                              \
      "draining work is safe to take at its deadline")                                            \
    X(SAFE_AT_DEATH, "safe-at-death", FLEET_KILL, 0, 50, 1,                                       \
      "the work of the silent is safe to take T after the last beat")                             \
    X(RESOLVED_REOPENS, "resolved-reopens",                                                       \
      FLEET_NOTICE | FLEET_TAKERS | FLEET_ORDER | FLEET_DELAY, 0, 5000, 701,                      \
      "a resolved report opens again though nothing was heard of its owner")                      \
    X(NUMBERS_ANEW, "numbers-anew", FLEET_KILL | FLEET_NOTICE, 0, 50, 1,                          \
      "each event of a term has the number 1")                                                    \
    X(NO_ADOPTION, "no-adoption", FLEET_KILL | FLEET_JOIN, 0, 1000, 239,                          \
      "nobody adopts the reports that it hears")                                                  \
    X(EMPTY_TABLE_CLOSES, "empty-table-closes", FLEET_KILL | FLEET_JOIN | FLEET_STORE, 0, 1000,   \
      75, "the first, empty table of a new leader closes what is absent")                         \
    X(ABSENT_CLOSES, "absent-closes", FLEET_KILL | FLEET_JOIN | FLEET_PARTITION | FLEET_PAUSE, 0, \
      50000, 8770, "what is absent is closed without a hint")                                     \
    X(NO_HINTS, "no-hints", FLEET_KILL | FLEET_JOIN | FLEET_STORE, 0, 500, 1,                     \
      "nobody hints at what is absent")                                                           \
    X(BEATS_DRIFT, "beats-drift", FLEET_LOSS | FLEET_DELAY | FLEET_LATE, 0, 5000, 217,            \
      "a heartbeat counts from the one before: late ones add up")                                 \
    X(JUDGES_FIRST, "judges-first", FLEET_PAUSE | FLEET_LOSS, 0, 100, 1,                          \
      "silences are judged before what waits is read")                                            \
    X(NO_DEADLINE, "no-deadline", FLEET_NOTICE, 0, 50, 1, "the deadline of leaving ends nothing") \
    X(LEADS_ON, "leads-on", FLEET_NOTICE, 0, 100, 1, "it drains while it leads")                  \
    X(TWINS_UNTOLD, "twins-untold", FLEET_TWINS, FLEET_REPLAY, 100, 1,                            \
      "two that live under one id are not told")                                                  \
    X(TWINS_AT_ONCE, "twins-at-once", FLEET_DELAY | FLEET_KILL, FLEET_REPLAY | FLEET_TWINS, 1000, \
      136, "a late message of a former start makes two of one that was started anew")

enum fleet_plant {
    FLEET_PLANT_NONE = 0,
#define X(symbol, name, faults, without, schedules, seed, text) FLEET_PLANT_##symbol,
    FLEET_PLANTS(X)
#undef X
    FLEET_PLANT_COUNT
};

enum {
    FLEET_SOON = 1000, /* a fault that has to be noticed within so many is looked for each time */
    FLEET_PINNED = 50  /* schedules from the seed of a fault on, within which it is noticed */
};

extern enum fleet_plant fleet_plant_now;

static inline bool fleet_planted(enum fleet_plant plant)
{
    return __builtin_expect(fleet_plant_now == plant, 0);
}

struct fleet_plant_info {
    const char *name;
    uint32_t faults; /* enum fleet_fault */
    uint32_t without;
    uint64_t schedules; /* within which it must be noticed */
    uint64_t seed;      /* from which it is noticed within FLEET_PINNED */
    const char *text;
};

extern const struct fleet_plant_info fleet_plants[FLEET_PLANT_COUNT];

/* Find one by name; FLEET_PLANT_NONE: there is none. */
enum fleet_plant fleet_plant_named(const char *name);

#endif /* SIM_AGENTS_PLANT_H */
