/* SPDX-License-Identifier: MIT
 * electors/redis_reply.c - see redis_reply.h. Bytes of the server are checked, never trusted.
 */
#include "electors/redis_reply.h"

#include "connections/redis.h"
#include "electors/redis_scripts.h"

#include <hiredis/hiredis.h>

#include <string.h>

enum {
    PLACE_LEASE = 1 /* of FOREIGN and NEWER */
};

/* ---------------------------------------------------------------- the lease's line */

struct text {
    const char *at;
    const char *end;
};

static bool read_number(struct text *text, uint64_t *out)
{
    uint64_t number = 0;
    const char *start = text->at;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9') {
        if (number > (UINT64_MAX - 9) / 10) {
            return false;
        }
        number = number * 10 + (uint64_t)(*text->at++ - '0');
    }
    if (text->at == start || text->at == text->end || *text->at != ' ') {
        return false;
    }
    text->at++;
    *out = number;
    return true;
}

static bool skip_word(struct text *text)
{
    const char *space = memchr(text->at, ' ', (size_t)(text->end - text->at));
    if (space == NULL) {
        return false;
    }
    text->at = space + 1;
    return true;
}

/* coord1 FENCE ATTEMPT OWNER LEASE SINCE BYTES IDENTITY METADATA */
bool coord__redis_read_line(const char *line, size_t bytes, struct coord_observation *leader)
{
    static const char start[] = "coord1 ";
    struct text text = {line, line + bytes};
    uint64_t fence = 0;
    uint64_t attempt = 0;
    uint64_t lease = 0;
    uint64_t since = 0;
    uint64_t identity = 0;
    if (bytes < sizeof start || memcmp(line, start, sizeof start - 1) != 0) {
        return false;
    }
    text.at += sizeof start - 1;
    if (!read_number(&text, &fence) || !read_number(&text, &attempt) || !skip_word(&text) ||
        !read_number(&text, &lease) || !read_number(&text, &since) ||
        !read_number(&text, &identity)) {
        return false;
    }
    const size_t left = (size_t)(text.end - text.at);
    if (identity == 0 || identity >= COORD_ESCAPED_MAX || identity > left ||
        left - identity > COORD_METADATA_MAX || memchr(text.at, '\0', identity) != NULL) {
        return false;
    }
    leader->fence = fence;
    leader->since_us = since;
    memcpy(leader->identity, text.at, identity);
    leader->identity[identity] = '\0';
    leader->metadata_bytes = left - identity;
    memcpy(leader->metadata, text.at + identity, left - identity);
    return true;
}

/* ---------------------------------------------------------------- the parts of an answer */

static const redisReply *part(const redisReply *answer, size_t index, int type)
{
    const bool there = index < answer->elements && answer->element[index]->type == type;
    return there ? answer->element[index] : NULL;
}

/* What cannot be is 0. */
static uint64_t number(const redisReply *answer, size_t index)
{
    const redisReply *p = part(answer, index, REDIS_REPLY_INTEGER);
    return p != NULL && p->integer > 0 ? (uint64_t)p->integer : 0;
}

static bool is_negative(const redisReply *answer, size_t index)
{
    const redisReply *p = part(answer, index, REDIS_REPLY_INTEGER);
    return p == NULL || p->integer < 0;
}

static const char *string(const redisReply *answer, size_t index)
{
    const redisReply *p = part(answer, index, REDIS_REPLY_STRING);
    return p != NULL ? p->str : "";
}

static void no_sense(struct coord_reply *out)
{
    out->outcome = COORD_UNKNOWN;
    coord_error_set(&out->error, COORD_E_PROTOCOL,
                    "the server answered a script with something else: is a proxy between?");
}

/* {.., pttl, line, debt, fence}; a pttl of -1 is no expiry, -2 no lease. */
static bool read_holder(const redisReply *answer, size_t index, struct coord_reply *out,
                        struct coord_observation *leader)
{
    const redisReply *line = part(answer, index + 1, REDIS_REPLY_STRING);
    *leader = (struct coord_observation){.remaining = COORD_NEVER};
    if (line == NULL || !coord__redis_read_line(line->str, line->len, leader)) {
        return false;
    }
    if (!is_negative(answer, index)) {
        leader->remaining = number(answer, index);
    }
    leader->taking_over = number(answer, index + 2) > 0;
    leader->leading = !leader->taking_over;
    leader->last_fence = number(answer, index + 3);
    if (leader->fence > leader->last_fence) {
        leader->last_fence = leader->fence;
    }
    out->leader = leader;
    return true;
}

static void nobody_holds(uint64_t last_fence, struct coord_reply *out,
                         struct coord_observation *leader)
{
    *leader = (struct coord_observation){.remaining = COORD_NEVER, .last_fence = last_fence};
    out->leader = leader;
}

/* A renewal tells nothing new, but that the wait is over. */
static void we_go_on(const struct coord__redis_question *question, struct coord_reply *out,
                     struct coord_observation *leader)
{
    if (leader->fence == question->request->fence) {
        leader->leading = question->request->led;
        leader->taking_over = !leader->leading;
        leader->remaining = question->request->lease;
        out->leader = leader;
    }
}

static void we_hold(const struct coord__redis_question *question, uint64_t fence, bool owes,
                    struct coord_reply *out, struct coord_observation *leader)
{
    *leader = (struct coord_observation){.leading = !owes,
                                         .taking_over = owes,
                                         .fence = fence,
                                         .last_fence = fence,
                                         .remaining = question->request->lease,
                                         .metadata_bytes = question->metadata_bytes};
    COORD_ASSERT(question->metadata_bytes <= sizeof leader->metadata);
    memcpy(leader->identity, question->identity, strlen(question->identity) + 1);
    if (question->metadata_bytes > 0) {
        memcpy(leader->metadata, question->metadata, question->metadata_bytes);
    }
    out->leader = leader;
}

/* ---------------------------------------------------------------- refusals */

static void refused(const struct coord__redis_question *question, uint64_t status,
                    const redisReply *answer, struct coord_reply *out)
{
    const char *key = number(answer, 2) == PLACE_LEASE ? question->lease_key : question->record_key;
    out->outcome = COORD_FAILED;
    switch ((enum coord__redis_refusal)status) {
    case COORD__REDIS_FOREIGN:
        coord_error_set(&out->error, COORD_E_FOREIGN_RECORD,
                        "the key %.120s holds something that coord did not write: delete it if "
                        "nobody needs it, or set coord.prefix",
                        key);
        return;
    case COORD__REDIS_NEWER:
        coord_error_set(&out->error, COORD_E_NEWER_FORMAT,
                        "the key %.120s was written by a later version of coord: update this one",
                        key);
        return;
    case COORD__REDIS_PERMANENT:
        coord_error_set(&out->error, COORD_E_FOREIGN_RECORD,
                        "somebody took the expiry from the key %.120s: delete it if its holder "
                        "is gone",
                        question->lease_key);
        return;
    case COORD__REDIS_RANGE:
        coord_error_set(&out->error, COORD_E_FOREIGN_RECORD,
                        "the fence in the key %.120s, or one seen before, is too large to go on: "
                        "delete the key and end those who saw it",
                        question->record_key);
        return;
    case COORD__REDIS_BLIND:
        coord_error_set(&out->error, COORD_E_NO_RIGHT,
                        "INFO is denied, so the server's run cannot be named: grant it with ACL "
                        "SETUSER NAME +info");
        return;
    }
    no_sense(out);
}

/* ---------------------------------------------------------------- outcomes */

static void held(const redisReply *answer, struct coord_reply *out,
                 struct coord_observation *leader)
{
    if (!read_holder(answer, 2, out, leader)) {
        no_sense(out);
        return;
    }
    out->outcome = COORD_HELD;
    /* The server lets a key go when its time has passed, not when it has come. */
    out->retry_in = coord_ms_add(leader->remaining, 1);
}

static void is_free(const struct coord__redis_question *question, const redisReply *answer,
                    struct coord_reply *out, struct coord_observation *leader)
{
    const uint64_t left = number(answer, 2);
    const char *to = string(answer, 3);
    nobody_holds(number(answer, 4), out, leader);
    out->outcome = COORD_FREE;
    if (left > 0 && to[0] != '\0') {
        out->for_us = strcmp(to, question->identity) == 0;
        if (!out->for_us) {
            out->outcome = COORD_RESERVED;
            out->retry_in = coord_ms_add(left, 1);
        }
    }
    if (out->outcome == COORD_RESERVED && strlen(to) < sizeof leader->identity) {
        memcpy(leader->identity, to, strlen(to) + 1); /* for whom it is kept */
    }
}

static void lost(const redisReply *answer, struct coord_reply *out,
                 struct coord_observation *leader)
{
    out->outcome = COORD_LOST;
    if (read_holder(answer, 2, out, leader)) {
        coord_error_set(&out->error, COORD_E_NOT_LEADER,
                        "the lease is held by %.160s now: it ran out here before it was renewed",
                        leader->identity);
        return;
    }
    coord_error_set(&out->error, COORD_E_NOT_LEADER,
                    "the lease is gone: it ran out before it was renewed, or the server lost it "
                    "(a restart, a failover, an eviction, a DEL)");
}

static void outcome(const struct coord__redis_question *question, uint64_t status,
                    const redisReply *answer, struct coord_reply *out,
                    struct coord_observation *leader)
{
    switch ((enum coord_outcome)status) {
    case COORD_GRANTED:
        if (number(answer, 2) == 0 || is_negative(answer, 3)) {
            break;
        }
        out->outcome = COORD_GRANTED;
        out->fence = number(answer, 2);
        out->owed = number(answer, 3);
        we_hold(question, out->fence, out->owed > 0, out, leader);
        leader->since_us = out->server_us;
        return;
    case COORD_HELD:
        held(answer, out, leader);
        return;
    case COORD_FREE:
    case COORD_RESERVED:
        is_free(question, answer, out, leader);
        return;
    case COORD_RENEWED:
        out->outcome = COORD_RENEWED;
        out->owed = COORD_NEVER;
        out->asked = part(answer, 2, REDIS_REPLY_STRING) != NULL;
        out->asked_for = string(answer, 2)[0] != '\0' ? string(answer, 2) : NULL;
        we_go_on(question, out, leader);
        return;
    case COORD_LOST:
        lost(answer, out, leader);
        return;
    case COORD_NOBODY:
        out->outcome = COORD_NOBODY;
        if (!read_holder(answer, 2, out, leader)) {
            nobody_holds(0, out, leader);
        }
        return;
    case COORD_DEAD_ATTEMPT:
    case COORD_DONE:
        out->outcome = (enum coord_outcome)status;
        return;
    case COORD_FAILED:
    case COORD_UNKNOWN:
        break;
    }
    no_sense(out);
}

/* Which outcomes a verb can have; a server that says another is not believed. */
static bool may_have(enum coord_verb verb, uint64_t status)
{
    static const unsigned allowed[] = {
        [COORD_VERB_ACQUIRE] = 1u << COORD_GRANTED | 1u << COORD_HELD | 1u << COORD_RESERVED |
                               1u << COORD_DEAD_ATTEMPT,
        [COORD_VERB_RENEW] = 1u << COORD_RENEWED | 1u << COORD_LOST,
        [COORD_VERB_RELEASE] = 1u << COORD_DONE,
        [COORD_VERB_UNDO] = 1u << COORD_DONE,
        [COORD_VERB_OBSERVE] = 1u << COORD_HELD | 1u << COORD_FREE,
        [COORD_VERB_ASK] = 1u << COORD_DONE | 1u << COORD_NOBODY,
        [COORD_VERB_INIT] = 1u << COORD_DONE | 1u << COORD_HELD,
    };
    return status <= COORD_UNKNOWN && (allowed[verb] & 1u << status) != 0;
}

void coord__redis_read(const struct coord__redis_question *question,
                       const struct redisReply *answer, struct coord_reply *out,
                       struct coord_observation *leader)
{
    *out = (struct coord_reply){.retry_in = COORD_NEVER};
    if (answer->type == REDIS_REPLY_ERROR) {
        /* The scripts look before they write: an error has changed nothing. */
        out->outcome = COORD_FAILED;
        coord_redis_error(answer->str, &out->error);
        return;
    }
    if (answer->type != REDIS_REPLY_ARRAY || answer->elements < 2) {
        no_sense(out);
        return;
    }
    const uint64_t status = number(answer, 0);
    out->server_us = number(answer, 1);
    if (status >= COORD__REDIS_FOREIGN) {
        refused(question, status, answer, out);
    } else if (may_have(question->request->verb, status)) {
        outcome(question, status, answer, out, leader);
    } else {
        no_sense(out);
    }
}
