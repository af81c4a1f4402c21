/* SPDX-License-Identifier: MIT
 * electors/redis_reply.h - what the scripts answer, as replies of coord/store.h.
 */
#ifndef COORD_ELECTOR_REDIS_REPLY_H
#define COORD_ELECTOR_REDIS_REPLY_H

#include "coord/store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct redisReply;

/** Whom and what a reply is for; all borrowed. */
struct coord__redis_question {
    const struct coord_request *request;
    const char *identity; /* of this candidate */
    const void *metadata; /* of this candidate */
    size_t metadata_bytes;
    const char *lease_key;
    const char *record_key;
};

/**
 * Take a script's answer apart. Whatever it holds, the outcome is one that the verb can have.
 *
 * @param question  borrowed.
 * @param answer    borrowed; out->asked_for points into it.
 * @param out       written, but for its id.
 * @param leader    what was told last, zeroed at first; written when out->leader points to it.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: electors/redis_scripts.h, tests/unit/test_redis_reply.c.
 */
void coord__redis_read(const struct coord__redis_question *question,
                       const struct redisReply *answer, struct coord_reply *out,
                       struct coord_observation *leader);

/**
 * Take the lease's line apart.
 *
 * @return  false: it is none of ours, and nothing was written.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/redis.md, tests/unit/test_redis_reply.c.
 */
bool coord__redis_read_line(const char *line, size_t bytes, struct coord_observation *leader);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTOR_REDIS_REPLY_H */
