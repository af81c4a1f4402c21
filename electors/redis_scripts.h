/* SPDX-License-Identifier: MIT
 * electors/redis_scripts.h - what runs in the server: one script, and one round trip, a verb.
 *
 * docs/redis.md has the keys and fields. Every script answers {status, the server's time in us,
 * ...}; it looks at everything before it writes anything, so an error reply has changed nothing.
 */
#ifndef COORD_ELECTOR_REDIS_SCRIPTS_H
#define COORD_ELECTOR_REDIS_SCRIPTS_H

#include "coord/store.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD__REDIS_FORMAT = 1 /* of the lease's line and of the record */
};

/* A status is an outcome of coord/store.h, or one of these refusals. */
enum coord__redis_refusal {
    COORD__REDIS_FOREIGN = 20,   /* key: not written by coord */
    COORD__REDIS_NEWER = 21,     /* key: written by a later version of coord */
    COORD__REDIS_PERMANENT = 22, /* the lease has no expiry */
    COORD__REDIS_RANGE = 23,     /* the next fence would not fit into 53 bits */
    COORD__REDIS_BLIND = 24      /* INFO is denied, so no run can be named */
};

struct coord__redis_script {
    const char *body;
    const char *sha1;   /* of body, in hex; the tests compare it with the server's */
    int keys;           /* lease; then fence; then ask: as many of them as it needs */
    const char *key[3]; /* their last parts */
};

/**
 * The script of a verb.
 *
 * Arguments of each, as text:
 *   ACQUIRE  owner attempt ttl seen identity metadata run age
 *   RENEW    line ttl fence mode run
 *   RELEASE  line fence successor reserve
 *   UNDO     owner attempt
 *   OBSERVE  -
 *   ASK      fence successor reserve
 *   INIT     seen
 * where `line` is the beginning of the lease's value ("coord1 FENCE ATTEMPT OWNER "), `run` and
 * `age` tell for how many ms the caller has known which run of the server, and `mode` is "" (a
 * plain renewal), "led" (strike the debt, keep the record alive), or the ms that are owed.
 *
 * Answers, after the status and the time:
 *   GRANTED   fence, owed
 *   HELD      pttl, line, debt (-1: unknown), fence of the record
 *   RESERVED  ms left, successor, fence of the record
 *   FREE      ms reserved, successor, fence of the record
 *   RENEWED   successor, when somebody asks for a step-down; "" for anyone
 *   LOST      pttl, line
 *   NOBODY    pttl, line
 *   DONE      1 when something was deleted
 *   FOREIGN, NEWER   1 the lease, 2 the record
 *
 * @param verb  any but NONE.
 * @return      static.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/redis.md, tests/fault/test_redis_acquire.c, test_redis_scripts.c.
 */
const struct coord__redis_script *coord__redis_script(enum coord_verb verb);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTOR_REDIS_SCRIPTS_H */
