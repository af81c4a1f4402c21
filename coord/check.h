/* SPDX-License-Identifier: MIT
 * coord/check.h - one finding of `coordctl doctor`: what was seen, why it matters, what cures it.
 */
#ifndef COORD_CHECK_H
#define COORD_CHECK_H

#include "coord/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_CHECKS_MAX = 32,
    COORD_CHECK_VALUE_MAX = 160,
    COORD_CHECK_CURE_MAX = 320
};

/** Stable values. */
enum coord_verdict {
    COORD_VERDICT_OK = 0,
    COORD_VERDICT_WARN = 1,   /* it works, until something else happens */
    COORD_VERDICT_FAIL = 2,   /* elections do not work, or do not hold what they promise */
    COORD_VERDICT_SKIPPED = 3 /* this server does not let it be seen */
};

struct coord_check {
    const char *name; /* static, such as "pooler"; stable */
    enum coord_verdict verdict;
    char value[COORD_CHECK_VALUE_MAX]; /* what was seen; no secret */
    const char *why;                   /* static: why it matters */
    char cure[COORD_CHECK_CURE_MAX];   /* "" where nothing has to be done */
};

/** Findings, as they come together. */
struct coord_checks {
    struct coord_check *list; /* room for COORD_CHECKS_MAX; the caller's */
    size_t count;
};

/**
 * Add a finding.
 *
 * @param name   static.
 * @param value  copied, as far as there is room.
 * @param why    static.
 * @param cure   copied; it counts where the verdict is not OK.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/buses.md#doctor, tests/integration/test_cli_doctor_bus.c.
 */
COORD_API void coord_check_add(struct coord_checks *checks, const char *name,
                               enum coord_verdict verdict, const char *value, const char *why,
                               const char *cure);

#ifdef __cplusplus
}
#endif
#endif /* COORD_CHECK_H */
