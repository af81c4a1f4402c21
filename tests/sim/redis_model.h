/* SPDX-License-Identifier: MIT
 * tests/sim/redis_model.h - what the scripts of the Redis elector do to a server, as plain C.
 *
 * The rules are those of electors/redis*.c, one function a script; tests/contract holds the
 * scripts themselves against a real server.
 */
#ifndef SIM_REDIS_MODEL_H
#define SIM_REDIS_MODEL_H

#include "coord/store.h"
#include "tests/sim/clock.h"

enum {
    SIM_NOBODY = 255
};

/* The lease key. */
struct sim_redis_lease {
    bool present;
    uint8_t identity;
    uint32_t owner;
    uint64_t attempt;
    uint64_t fence;
    coord_ms lease;
    uint64_t expires_ms; /* on the server's wall clock */
};

/* The fence's hash. */
struct sim_redis_record {
    bool fenced; /* an undo alone leaves one without a fence */
    uint32_t run;
    uint32_t owner;
    uint64_t attempt;
    uint64_t fence;
    coord_ms lease; /* of the last term */
    coord_ms debt;
    uint8_t successor;
    uint64_t reserved_until_us; /* on the server's wall clock */
    coord_ms reserve;
    uint32_t undone; /* an owner, and which of its attempts are dead */
    uint64_t undone_attempt;
};

/* The request to step down. */
struct sim_redis_ask {
    bool present;
    uint64_t fence;
    uint8_t to;
    uint64_t expires_ms;
};

struct sim_redis_data {
    struct sim_redis_lease lease;
    struct sim_redis_record record;
    struct sim_redis_ask ask;
};

struct sim_redis {
    struct sim_redis_data data;
    struct sim_clock wall;
    uint32_t run;       /* run_id and master_replid, as one number */
    uint64_t started_s; /* wall clock at its start: uptime is counted in whole seconds */
    bool may_info;      /* false: the right to INFO is missing, so no run matches */
    bool was_promoted;  /* the run is younger than the process */
};

/* One script call; identities and owners are numbers here. */
struct sim_redis_call {
    enum coord_verb verb;
    uint8_t identity;
    uint8_t successor;
    bool led;
    bool touches; /* RENEW: the record is written as well */
    uint32_t run; /* ACQUIRE: the run that the client has met; RENEW: to put into the record */
    coord_ms age; /* ACQUIRE: for how long it has known that run */
    uint32_t owner;
    uint64_t attempt;
    uint64_t fence;
    uint64_t seen;
    coord_ms lease;
    coord_ms debt;
    coord_ms reserve;
};

struct sim_redis_answer {
    enum coord_outcome outcome;
    uint64_t fence;
    coord_ms owed;
    coord_ms retry_in;
    uint64_t server_us;
    bool asked;
    uint8_t asked_for;
    bool for_us;
    bool published;    /* a resignation: waiters are told */
    bool granted_anew; /* a new fence was given */
    bool no_record;    /* ... where no record stood */
    /* who holds it */
    uint8_t holder;
    bool taking_over;
    uint64_t holder_fence;
    uint64_t last_fence;
    coord_ms remaining;
};

void sim_redis_execute(struct sim_redis *redis, const struct sim_redis_call *call, sim_us at,
                       struct sim_redis_answer *answer);

/* A server that starts with `data`, or with nothing (NULL): another run. */
void sim_redis_start(struct sim_redis *redis, const struct sim_redis_data *data, sim_us at);

/* A replica that holds `data` becomes the primary: another run of an old process. */
void sim_redis_promote(struct sim_redis *redis, const struct sim_redis_data *data, sim_us at);

/* The lease key as a client sees it: gone when its time is over. */
bool sim_redis_holds(struct sim_redis *redis, sim_us at);

#endif /* SIM_REDIS_MODEL_H */
