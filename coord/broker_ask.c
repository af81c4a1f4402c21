/* SPDX-License-Identifier: MIT
 * coord/broker_ask.c - what a broker can do, and the operations that not every broker has.
 */
#include "coord/broker_inside.h"

/* ---------------------------------------------------------------- names */

static const struct {
    enum coord_broker_verb verb;
    unsigned flags;
    const char *name;
} verbs[] = {
#define X(symbol, value, flags, name) {COORD_BROKER_DO_##symbol, (flags), (name)},
    COORD_BROKER_VERBS(X)
#undef X
};

enum {
    VERBS = sizeof verbs / sizeof verbs[0],
    FLAGS = 10
};

static const char *const flag_names[FLAGS] = {
    "PUBLISH",          "SUBSCRIBE",     "CONSUMER_GROUPS",   "ACK_NACK", "DELIVERY_GUARANTEES",
    "MESSAGE_ORDERING", "BLOCKING_READ", "DEAD_LETTER_QUEUE", "REPLAY",   "STREAM_PARTITIONING"};

const char *coord_broker_verb_name(enum coord_broker_verb verb)
{
    for (size_t i = 0; i < VERBS; i++) {
        if (verbs[i].verb == verb) {
            return verbs[i].name;
        }
    }
    return "unknown";
}

const char *coord_broker_drop_name(enum coord_broker_drop drop)
{
    static const char *const names[COORD_BROKER_DROPS] = {"INBOX_FULL", "OUTBOX_FULL", "WAITED",
                                                          "REFUSED",    "SLOW_MEMBER", "DAMAGED",
                                                          "INCOMPLETE", "NO_MEMORY",   "BROKEN"};
    return (unsigned)drop < COORD_BROKER_DROPS ? names[drop] : "UNKNOWN";
}

static const char *first_lacking(unsigned flags)
{
    for (int i = 0; i < FLAGS; i++) {
        if ((flags & 1u << i) != 0) {
            return flag_names[i];
        }
    }
    return "it";
}

enum coord_err coord__broker_lacks(const struct coord_broker *broker, const char *what,
                                   unsigned flags, struct coord_error *error)
{
    const unsigned lacking = flags & ~broker->ops->flags;
    return coord_error_set(error, COORD_E_NOT_SUPPORTED,
                           "the %s broker has no %s: use one that has %s", broker->ops->name, what,
                           first_lacking(lacking));
}

unsigned coord_broker_flags(const struct coord_broker *broker)
{
    return broker->ops->flags;
}

bool coord_broker_has(const struct coord_broker *broker, unsigned flag)
{
    return coord_broker_has_all(broker, flag);
}

bool coord_broker_has_all(const struct coord_broker *broker, unsigned flags)
{
    return (coord_broker_flags(broker) & flags) == flags;
}

bool coord_broker_has_any(const struct coord_broker *broker, unsigned flags)
{
    return (coord_broker_flags(broker) & flags) != 0;
}

const char *coord_broker_name(const struct coord_broker *broker)
{
    return broker->ops->name;
}

static enum coord_err check_request(const struct coord_broker *broker,
                                    const struct coord_broker_request *request,
                                    struct coord_error *error)
{
    const char *name = coord_broker_verb_name(request->verb);
    size_t i = 0;
    while (i < VERBS && verbs[i].verb != request->verb) {
        i++;
    }
    if (i == VERBS) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT,
                               "%d is no operation of brokers: use one of coord_broker_verb",
                               (int)request->verb);
    }
    if (!coord_broker_has_all(broker, verbs[i].flags)) {
        return coord__broker_lacks(broker, name, verbs[i].flags, error);
    }
    if (broker->ops->ask == NULL) {
        return coord_error_set(error, COORD_E_NOT_SUPPORTED,
                               "the %s broker has no %s: ask for its status instead",
                               broker->ops->name, name);
    }
    return COORD_OK;
}

enum coord_err coord_broker_ask(struct coord_broker *broker,
                                const struct coord_broker_request *request, coord_ms now,
                                uint64_t *out_id, struct coord_error *error)
{
    COORD_ASSERT(request != NULL);
    enum coord_err rc = check_request(broker, request, error);
    if (rc == COORD_OK) {
        rc = broker->ops->ask(broker, request, broker->asked + 1, now, error);
    }
    if (rc == COORD_OK) {
        broker->asked++;
        if (out_id != NULL) {
            *out_id = broker->asked;
        }
    }
    return rc;
}

bool coord_broker_next_reply(struct coord_broker *broker, struct coord_broker_reply *out)
{
    return broker->ops->next_reply != NULL && broker->ops->next_reply(broker, out);
}
