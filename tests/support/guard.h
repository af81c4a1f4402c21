/* SPDX-License-Identifier: MIT
 * tests/support/guard.h - a condition is waited for; the guard only turns a hang into a failure.
 */
#ifndef TEST_GUARD_H
#define TEST_GUARD_H

#include "tests/support/support.h"

#include <time.h>

enum {
    GUARD_MS = 60000 /* no test depends on it otherwise */
};

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void nap(void)
{
    const struct timespec time = {.tv_nsec = 1000000};
    nanosleep(&time, NULL);
}

struct guard {
    uint64_t until;
    const char *what;
};

static inline struct guard guard_for(const char *what)
{
    return (struct guard){.until = now_ns() + GUARD_MS * 1000000ull, .what = what};
}

/** To be called each time the condition does not hold yet. */
static inline void wait_on(const struct guard *guard)
{
    if (now_ns() > guard->until) {
        fail_msg("waited too long for %s", guard->what);
    }
    nap();
}

#endif /* TEST_GUARD_H */
