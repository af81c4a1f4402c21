/* SPDX-License-Identifier: MIT
 * tests/sim/plant.h - planted faults: each takes one rule out, and the simulator has to notice.
 *
 * Faults of stores and networks are planted in the models. Those of the code that ships are
 * planted where it says COORD__RULE(name, expression): the simulator compiles its own copy of
 * that source with the macro of this header, in which a planted rule has another value. In what
 * ships COORD__RULE is its expression and nothing else (coord/rule.h).
 */
#ifndef SIM_PLANT_H
#define SIM_PLANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(symbol, name, store, schedules within which it must be noticed, what it takes out) */
#define SIM_PLANTS(X)                                                                              \
    X(BLIND_RENEWAL, "blind-renewal", "redis", 20000, "a renewal makes a lease that is gone anew") \
    X(BARE_DELETE, "bare-delete", "redis", 20000, "a resignation deletes whatever lease is there") \
    X(UNDO_BY_OWNER, "undo-by-owner", "redis", 20000, "an undo does not compare the attempt")      \
    X(UNORDERED, "unordered", "redis", 20000, "an attempt below the one that holds is granted")    \
    X(SAME_FENCE, "same-fence", "redis", 20000, "a second attempt keeps the fence of the first")   \
    X(LEAP_OUTSIDE, "leap-outside", "redis", 20000, "2^32 is added to the maximum, not the clock") \
    X(RUN_IGNORED, "run-ignored", "redis", 20000, "a record of another run counts as of this one") \
    X(UPTIME_NOT_ROUNDED, "uptime-not-rounded", "redis", 20000, "uptime is taken to the second")   \
    X(SEEN_IGNORED, "seen-ignored", "redis", 20000, "no record is clear for who saw a fence")      \
    X(LONG_LIFE, "long-life", "redis", 20000, "a lease that lives too long is not cut")            \
    X(LONG_RESERVE, "long-reserve", "redis", 20000, "a reservation outlives what was asked for")   \
    X(BEHIND_IGNORED, "behind-ignored", "redis", 20000, "a record behind what was seen is trusted")\
    X(OWN_LEASE, "own-lease", "redis", 20000, "what is owed leaves out one's own lease")           \
    X(DEBT_DROPPED, "debt-dropped", "redis", 20000, "a grant over one's own dead attempt is clear")\
    X(REGRANT_DEBT, "regrant-clear", "redis", 20000, "a grant that is given again is clear")       \
    X(REGRANT_EXPIRY, "regrant-expiry", "redis", 20000, "a grant given again is not prolonged")

enum sim_plant {
    SIM_PLANT_NONE = 0,
#define X(symbol, name, store, schedules, text) SIM_PLANT_##symbol,
    SIM_PLANTS(X)
#undef X
    SIM_PLANT_COUNT
};

extern enum sim_plant sim_plant_now;

static inline bool sim_planted(enum sim_plant plant)
{
    return __builtin_expect(sim_plant_now == plant, 0);
}

struct sim_plant_info {
    const char *name;
    const char *store;
    uint64_t schedules; /* within which it must be noticed */
    const char *text;
};

extern const struct sim_plant_info sim_plants[SIM_PLANT_COUNT];

#endif /* SIM_PLANT_H */
