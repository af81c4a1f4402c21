/* SPDX-License-Identifier: MIT
 * tests/support/postgres_candidate.h - candidates over PostgreSQL, driven by one poll loop of the
 * test: the electors themselves, without runtime/.
 */
#ifndef TEST_POSTGRES_CANDIDATE_H
#define TEST_POSTGRES_CANDIDATE_H

#include "coord/elector.h"
#include "electors/postgres.h"

#include <stdbool.h>

enum {
    CANDIDATES_MAX = 64,
    CANDIDATE_PATIENCE = 30000 /* ms: a guard against hanging, no measure of anything */
};

struct candidate {
    struct coord_elector *elector;
    struct coord_lease *lease;
    struct coord_share *share; /* candidates of one share are one process to the server */
    struct coord_share own;
    unsigned started, stopping, stopped; /* edges told */
    uint64_t fence;                      /* of the last term that started */
    coord_ms started_at;
    bool frozen; /* as if its process were stopped: nobody drives it */
    bool deaf;   /* its host takes no edge */
};

/** Settings of one candidate; zero is the default of each. */
struct candidate_wish {
    const char *uri;
    const char *name;
    const char *identity; /* NULL: "a", "b" ... in the order of their making */
    coord_ms ttl;         /* 0: 1000 */
    unsigned rank;
    const char *metadata;
    struct coord_share *share; /* NULL: its own */
    const struct coord_resolver *resolver;
    bool explicit_ack;
};

/** All of one test; zero-initialised. */
struct candidates {
    struct candidate *list[CANDIDATES_MAX];
    size_t count;
    unsigned overlaps; /* how often two of one name led at one instant; only looked at by watch */
};

/** Make one; it does not stand yet. Fails the test where it is refused. */
struct candidate *candidate_new(struct candidates *all, const struct candidate_wish *wish);

/** The same, for those that are refused. @return the code. */
enum coord_err candidate_try(struct candidates *all, const struct candidate_wish *wish,
                             struct candidate **out, struct coord_error *error);

/** Forget one, without a word to the server. */
void candidate_free(struct candidates *all, struct candidate *candidate);

/** Forget all. */
void candidates_free(struct candidates *all);

/** Drive them for up to `most` ms, or until one event was handled. */
void candidates_turn(struct candidates *all, coord_ms most);

/** Drive them for so long. */
void candidates_run(struct candidates *all, coord_ms duration);

typedef bool (*candidate_condition)(const struct candidate *candidate);
/** Drive them until it holds; fails the test with what explain() says when it never does. */
void candidates_until(struct candidates *all, const struct candidate *candidate,
                      candidate_condition condition);
/** Drive them until the last failure of the candidate has this code. */
void candidates_until_error(struct candidates *all, const struct candidate *candidate,
                            enum coord_err code);

bool candidate_leads(const struct candidate *candidate);
bool candidate_leads_not(const struct candidate *candidate);
bool candidate_settled(const struct candidate *candidate);
bool candidate_waits(const struct candidate *candidate);   /* TAKING_OVER */
bool candidate_is_held(const struct candidate *candidate); /* HELD: another has it */

/** Stand now. */
void candidate_stand(struct candidate *candidate);
/** Stand, and drive until it leads. */
void candidate_win(struct candidates *all, struct candidate *candidate);
/** Withdraw, acknowledge, and drive until the server has it in writing. */
void candidate_resign(struct candidates *all, struct candidate *candidate);
/** OBSERVE, ASK or INIT, and drive until it is answered. @return the outcome. */
enum coord_outcome candidate_query(struct candidates *all, struct candidate *candidate,
                                   const struct coord_request *query);
enum coord_reason candidate_reason(const struct candidate *candidate);

#endif /* TEST_POSTGRES_CANDIDATE_H */
