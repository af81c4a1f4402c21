/* SPDX-License-Identifier: MIT
 * electors/redis_doctor.h - what a Redis or Valkey server is like, judged for elections.
 */
#ifndef COORD_ELECTOR_REDIS_DOCTOR_H
#define COORD_ELECTOR_REDIS_DOCTOR_H

#include "coord/check.h"
#include "coord/uri.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the doctor is told about who asks. */
struct coord_redis_doctor_config {
    const struct coord_uri *uri; /* borrowed; coord.prefix and the options of TLS count */
    coord_ms lease;              /* L of the elections that are meant */
    coord_ms attempt;            /* A */
    coord_ms (*now)(void);       /* ms of a clock that never goes back */
    uint64_t (*wall)(void);      /* us since 1970 by this host's clock */
};

/**
 * Look at a server as `coordctl doctor` does. It tries each command that elections use, on keys of
 * its own that no election can have and that are gone after a second. It blocks.
 *
 * @param config  borrowed for the call.
 * @param out     room for COORD_CHECKS_MAX; a server that cannot be asked is one FAIL, too.
 * @return        how many were written; 0: out of memory, or the URI cannot be read.
 * Thread: any.   Blocks: up to 10 s a question, and while names are resolved.
 * Allocates: hiredis's buffers.   Calls back: config->now, config->wall.
 * Source: docs/redis.md#doctor, tests/fault/test_redis_doctor.c.
 */
COORD_API size_t coord_redis_doctor(const struct coord_redis_doctor_config *config,
                                    struct coord_check *out);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTOR_REDIS_DOCTOR_H */
