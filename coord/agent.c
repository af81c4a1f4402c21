/* SPDX-License-Identifier: MIT
 * coord/agent.c - an elector, a bus and a coordinator joined, and the way out of a fleet.
 */
#include "coord/agent.h"

#include <stdlib.h>
#include <string.h>

enum {
    MESSAGES = 256,        /* taken in within one step: a flood must not keep the host waiting */
    MARGIN_MAX = 2000,     /* ms that a drain ends before its deadline, for the last word */
    MARGIN_SHARE = 10,     /* ... and at most this part of the time that is left */
    NAMES_ROOM = 64 * 1024 /* bytes of a list of subscriptions */
};

struct coord_agent {
    struct coord_coordinator *coordinator;
    struct coord_agent_bus bus;
    struct coord_elector *elector; /* NULL: none, or driven elsewhere */
    struct coord_lease *lease;     /* NULL: none */
    bool stands;
    bool observer;
    bool publishes_only;
    char id[COORD_NAME_MAX + 1];
    char topic[COORD_MESSAGE_TYPES][COORD_TOPIC_MAX];
    coord_ms now;

    struct coord_claim told; /* to the coordinator */
    coord_ms told_hard;
    uint64_t term; /* the latest that was seen */
    bool edge_given;
    bool connected;
    bool due;   /* the host said something, or messages may be waiting still */
    bool quiet; /* every event was pulled, so that a message may be handed in */

    enum coord_agent_phase phase;
    bool announce; /* the notice has to get out before anything else is done */
    bool drained;
    bool heard; /* the last word came back */
    enum coord_intent intent;
    coord_ms deadline;
    coord_ms drain_by;
    enum coord_agent_phase told_phase;
    bool told_notice; /* as it is now */

    struct coord_event event;
    struct coord_agent_counts counts;
    unsigned char message[COORD_MESSAGE_MAX]; /* that was handed in last; its views point here */
    unsigned char names[NAMES_ROOM];
};

/* ---- making ---- */

static enum coord_err check(const struct coord_agent_config *config, struct coord_error *error)
{
    if (config->size != sizeof *config) {
        return coord_error_set(error, COORD_E_VERSION_MISMATCH,
                               "the program was compiled for another version of libcoord than %s: "
                               "compile it again",
                               coord_version());
    }
    bool elects = config->elector != NULL || config->lease != NULL;
    if (config->bus.publish == NULL || (config->elector != NULL && config->lease != NULL)) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT,
                               "an agent has a bus that publishes, and one elector or one lease "
                               "at most");
    }
    if (config->publishes_only && (elects || config->role == COORD_AGENT_OBSERVER)) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT,
                               "who stands or observes has to follow the others: take "
                               "publishes_only away");
    }
    return COORD_OK;
}

static enum coord_err fill_in(struct coord_agent *a, const struct coord_agent_config *config,
                              coord_ms now, struct coord_error *error)
{
    struct coord_coordinator_config coordinator = config->coordinator;
    for (unsigned type = 0; type < COORD_MESSAGE_TYPES; type++) {
        if (coord_topic(config->topic_prefix, (enum coord_message_type)type, a->topic[type]) !=
            COORD_OK) {
            return coord_error_set(error, COORD_E_BAD_ARGUMENT,
                                   "the topic prefix is not 1 to %d printable characters without "
                                   "blanks: choose another",
                                   COORD_TOPIC_PREFIX_MAX);
        }
    }
    a->observer = config->role == COORD_AGENT_OBSERVER;
    coordinator.observer = a->observer;
    enum coord_err rc = coord_coordinator_new(&coordinator, now, &a->coordinator, error);
    if (rc != COORD_OK) {
        return rc;
    }
    memcpy(a->id, coordinator.instance_id, strlen(coordinator.instance_id) + 1);
    a->bus = config->bus;
    a->publishes_only = config->publishes_only;
    a->elector = config->elector;
    a->lease = config->elector != NULL ? coord_elector_lease(config->elector) : config->lease;
    a->stands = a->lease != NULL && !a->observer;
    a->now = now;
    a->deadline = COORD_NEVER;
    a->due = true;
    a->quiet = true;
    return COORD_OK;
}

enum coord_err coord_agent_new(const struct coord_agent_config *config, coord_ms now,
                               struct coord_agent **out, struct coord_error *error)
{
    COORD_ASSERT(config != NULL);
    COORD_ASSERT(out != NULL);
    enum coord_err rc = check(config, error);
    if (rc != COORD_OK) {
        return rc;
    }
    struct coord_agent *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    rc = fill_in(a, config, now, error);
    if (rc != COORD_OK) {
        free(a);
        return rc;
    }
    if (a->stands) {
        coord_lease_stand(a->lease, now);
    }
    *out = a;
    return COORD_OK;
}

void coord_agent_free(struct coord_agent *agent)
{
    if (agent != NULL) {
        coord_coordinator_free(agent->coordinator);
        free(agent);
    }
}

static void pass(struct coord_agent *a, coord_ms now)
{
    if (now < a->now) {
        a->counts.went_back++;
        return;
    }
    a->now = now;
}

/* ---- the elector ---- */

/* Tell the coordinator who leads, whenever the term or its end has changed. */
static void follow_lease(struct coord_agent *a)
{
    if (a->lease == NULL) {
        return;
    }
    struct coord_claim claim = coord_lease_claim(a->lease, a->now);
    coord_ms hard =
        claim.leading ? coord_ms_add(coord_ms_max(a->now, a->lease->now), claim.remaining) : 0;
    if (claim.leading != a->told.leading || claim.fence != a->told.fence || hard != a->told_hard) {
        coord_coordinator_lead(a->coordinator, claim.leading, claim.fence, hard, a->now);
        a->told_hard = hard;
    }
    a->told = claim;
    a->term = claim.leading ? claim.term : a->term;
}

static bool next_edge(struct coord_agent *a, struct coord_agent_event *out)
{
    if (a->elector == NULL || !coord_lease_next_edge(a->lease, &out->edge)) {
        return false;
    }
    a->edge_given = true;
    a->term = out->edge.term;
    out->kind = COORD_AGENT_EVENT_EDGE;
    return true;
}

static bool released(const struct coord_agent *a)
{
    return !a->stands || coord_lease_settled(a->lease);
}

/* ---- leaving ---- */

static coord_ms drain_by(coord_ms deadline, coord_ms now)
{
    coord_ms left = coord_ms_sub(deadline, now);
    return deadline == COORD_NEVER ? COORD_NEVER
                                   : deadline - coord_ms_min(left / MARGIN_SHARE, MARGIN_MAX);
}

void coord_agent_leave(struct coord_agent *agent, enum coord_intent intent, coord_ms deadline,
                       coord_ms now)
{
    struct coord_agent *a = agent;
    pass(a, now);
    if (a->phase >= COORD_AGENT_FINISHING) {
        return; /* it is gone already, or as good as gone */
    }
    if (a->phase != COORD_AGENT_STAYING && intent == COORD_INTENT_GRACEFUL) {
        intent = a->intent;
        deadline = coord_ms_min(deadline, a->deadline);
    }
    if (a->phase != COORD_AGENT_STAYING && intent == a->intent && deadline == a->deadline) {
        return;
    }
    a->intent = intent;
    a->deadline = deadline;
    a->drain_by = drain_by(deadline, a->now);
    a->told_notice = false;
    a->announce = true;
    a->due = true;
    if (a->phase == COORD_AGENT_STAYING) {
        a->phase = COORD_AGENT_RELEASING;
        a->told_phase = COORD_AGENT_STAYING; /* also of a stay that it never heard of */
        if (a->stands) {
            coord_lease_withdraw(a->lease, a->now);
        }
    }
    coord_coordinator_leave(a->coordinator, intent, deadline, a->now);
}

enum coord_err coord_agent_stay(struct coord_agent *agent, coord_ms now)
{
    struct coord_agent *a = agent;
    pass(a, now);
    if (a->phase == COORD_AGENT_STAYING) {
        return COORD_OK;
    }
    if (a->phase == COORD_AGENT_FINISHING || (a->phase == COORD_AGENT_LEFT && a->drained)) {
        return COORD_E_CLOSED;
    }
    a->phase = COORD_AGENT_STAYING;
    a->drained = false;
    a->announce = true; /* the next heartbeat, which says it, is due at once */
    a->due = true;
    coord_coordinator_withdraw(a->coordinator, a->now);
    if (a->stands) {
        coord_lease_stand(a->lease, a->now); /* after its present term, which ends all the same */
    }
    return COORD_OK;
}

static void finish(struct coord_agent *a)
{
    coord_coordinator_finish(a->coordinator, a->now);
    if (a->phase != COORD_AGENT_LEFT) {
        a->phase = COORD_AGENT_FINISHING;
    }
}

void coord_agent_drained(struct coord_agent *agent, coord_ms now)
{
    struct coord_agent *a = agent;
    pass(a, now);
    if (a->phase == COORD_AGENT_STAYING || a->drained) {
        return;
    }
    a->drained = true;
    a->due = true;
    if (a->stands) {
        coord_lease_acknowledge(a->lease, a->term, a->now);
    }
    if (a->phase == COORD_AGENT_LEFT) {
        finish(a); /* too late for a last word; but its heartbeats end */
    }
}

/* Each step ends when it is done, and all of them at the deadline. */
static void advance(struct coord_agent *a)
{
    bool late = a->now >= a->deadline;
    if (a->phase == COORD_AGENT_RELEASING && !late &&
        (a->lease == NULL || !coord_lease_leading_at(a->lease, a->now))) {
        a->phase = COORD_AGENT_DRAINING;
    }
    if (a->phase == COORD_AGENT_DRAINING && a->drained && !late) {
        finish(a);
    }
    if (a->phase == COORD_AGENT_FINISHING && !late) {
        a->heard = coord_coordinator_finished(a->coordinator);
    }
    bool over = a->phase == COORD_AGENT_FINISHING && a->heard && released(a);
    if (over || (late && a->phase != COORD_AGENT_STAYING && a->phase != COORD_AGENT_LEFT)) {
        a->phase = COORD_AGENT_LEFT;
    }
}

static bool tell(struct coord_agent *a, enum coord_agent_event_kind kind,
                 struct coord_agent_event *out)
{
    out->kind = kind;
    out->intent = a->intent;
    out->deadline = a->deadline;
    out->drain_by = a->drain_by;
    return true;
}

static bool tell_notice(struct coord_agent *a, struct coord_agent_event *out)
{
    if (a->phase == COORD_AGENT_STAYING || a->told_notice) {
        return false;
    }
    a->told_notice = true;
    if (a->told_phase == COORD_AGENT_STAYING) {
        a->told_phase = COORD_AGENT_RELEASING;
    }
    return tell(a, COORD_AGENT_EVENT_LEAVING, out);
}

/* What was told is compared with what is: so nothing piles up, whatever came in between. */
static bool tell_phase(struct coord_agent *a, struct coord_agent_event *out)
{
    enum coord_agent_phase from = a->told_phase;
    a->told_phase = a->phase;
    if (a->phase == from) {
        return false;
    }
    if (a->phase == COORD_AGENT_STAYING) {
        return tell(a, COORD_AGENT_EVENT_STAYING, out);
    }
    if (a->phase == COORD_AGENT_LEFT) {
        out->drained = a->drained;
        out->heard = a->heard;
        out->released = released(a);
        return tell(a, COORD_AGENT_EVENT_LEFT, out);
    }
    if (a->phase == COORD_AGENT_DRAINING && from < COORD_AGENT_DRAINING) {
        return tell(a, COORD_AGENT_EVENT_DRAIN, out);
    }
    return false;
}

/* ---- the bus ---- */

static enum coord_err publish(struct coord_agent *a, const struct coord_outgoing *what)
{
    enum coord_err rc =
        a->bus.publish(a->bus.ctx, a->topic[what->type], what->bytes, what->count, a->now);
    a->counts.published += rc == COORD_OK ? 1 : 0;
    a->counts.unsent += rc == COORD_OK ? 0 : 1;
    return rc;
}

/* Say all that is due. @return false: nothing was. */
static bool say(struct coord_agent *a, int64_t wall)
{
    struct coord_outgoing message;
    bool any = false;
    a->announce = false;
    while (coord_coordinator_next_message(a->coordinator, a->now, wall, &message)) {
        COORD_IGNORE(publish(a, &message) != COORD_OK, "counted; all that matters is said again");
        any = true;
    }
    if (any && a->bus.process != NULL) {
        a->bus.process(a->bus.ctx, a->now);
    }
    return any;
}

/* A publishing member takes no notice of what others say of themselves. */
static bool concerns(const struct coord_agent *a, enum coord_message_type type, size_t count)
{
    struct coord_message message;
    if (!a->publishes_only || type == COORD_MESSAGE_WORK_ASSIGNMENT) {
        return true;
    }
    return coord_message_decode(type, a->message, count, &message) != COORD_FAULT_NONE ||
           coord_view_is(&message.instance_id, a->id, strlen(a->id));
}

/* BUSY: events are to be pulled first. */
static enum coord_err hand_in(struct coord_agent *a, const char *topic, const void *bytes,
                              size_t count)
{
    unsigned type = 0;
    while (type < COORD_MESSAGE_TYPES && strcmp(topic, a->topic[type]) != 0) {
        type++;
    }
    if (type == COORD_MESSAGE_TYPES) {
        a->counts.strange++;
        return COORD_OK;
    }
    /* Events show it after the bus has forgotten it. One that is too long is refused unread. */
    const void *at = bytes;
    if (count <= sizeof a->message) {
        if (count > 0) {
            memmove(a->message, bytes, count);
        }
        at = a->message;
    }
    if (at == a->message && !concerns(a, (enum coord_message_type)type, count)) {
        return COORD_OK;
    }
    enum coord_err rc =
        coord_coordinator_handle(a->coordinator, (enum coord_message_type)type, at, count, a->now);
    a->counts.received += rc != COORD_E_BUSY ? 1 : 0;
    return rc == COORD_E_BUSY ? rc : COORD_OK; /* a bad one was counted by its fault */
}

static bool hear(struct coord_agent *a)
{
    struct coord_broker_message message;
    if (a->bus.next == NULL || !a->bus.next(a->bus.ctx, &message)) {
        return false;
    }
    enum coord_err rc = hand_in(a, message.topic, message.bytes, message.count);
    COORD_ASSERT(rc != COORD_E_BUSY); /* events were pulled until there was none */
    return true;
}

enum coord_err coord_agent_take(struct coord_agent *agent, const char *topic, const void *bytes,
                                size_t count, coord_ms now)
{
    pass(agent, now);
    if (!agent->quiet) {
        return COORD_E_BUSY;
    }
    agent->quiet = false;
    agent->due = true;
    return hand_in(agent, topic, bytes, count);
}

static void look_at_connection(struct coord_agent *a)
{
    bool connected = a->bus.connected == NULL || a->bus.connected(a->bus.ctx);
    if (a->observer && connected != a->connected) {
        coord_coordinator_connected(a->coordinator, connected, a->now);
        a->connected = connected;
    }
}

/* ---- stepping ---- */

static bool next_fleet_event(struct coord_agent *a, struct coord_agent_event *out)
{
    if (!coord_coordinator_next_event(a->coordinator, a->now, &a->event)) {
        return false;
    }
    if (a->event.kind == COORD_EVENT_ORDER) {
        coord_agent_leave(a, a->event.message->intent, a->event.deadline, a->now);
    }
    out->kind = COORD_AGENT_EVENT_FLEET;
    out->fleet = &a->event;
    return true;
}

static bool next_event(struct coord_agent *a, struct coord_agent_event *out)
{
    follow_lease(a);
    advance(a);
    return tell_notice(a, out) || next_edge(a, out) || tell_phase(a, out) ||
           next_fleet_event(a, out);
}

bool coord_agent_step(struct coord_agent *agent, coord_ms now, int64_t wall,
                      struct coord_agent_event *out)
{
    struct coord_agent *a = agent;
    pass(a, now);
    memset(out, 0, sizeof *out);
    a->due = false;
    a->quiet = false;
    if (a->announce) {
        follow_lease(a);
        say(a, wall);
    }
    if (a->edge_given) {
        a->edge_given = false;
        coord_lease_edge_done(a->lease, a->now);
    }
    if (a->elector != NULL) {
        coord_elector_process(a->elector, a->now);
    }
    if (a->bus.process != NULL) {
        a->bus.process(a->bus.ctx, a->now);
    }
    look_at_connection(a);
    for (unsigned i = 0; i < MESSAGES; i++) {
        if (next_event(a, out)) {
            return true;
        }
        if (!hear(a) && !say(a, wall)) {
            a->quiet = true;
            return false;
        }
    }
    a->due = true;
    return false;
}

coord_ms coord_agent_deadline(struct coord_agent *agent)
{
    struct coord_agent *a = agent;
    coord_ms at = coord_coordinator_deadline(a->coordinator);
    if (a->due || !a->quiet) {
        return a->now;
    }
    if (a->elector != NULL) {
        at = coord_ms_min(
            at, coord_lease_edge_pending(a->lease) ? a->now : coord_elector_deadline(a->elector));
    }
    if (a->bus.deadline != NULL) {
        at = coord_ms_min(at, a->bus.deadline(a->bus.ctx));
    }
    if (a->phase == COORD_AGENT_RELEASING) {
        at = coord_ms_min(at, a->told.leading ? a->told_hard : a->now);
    }
    if (a->phase != COORD_AGENT_STAYING && a->phase != COORD_AGENT_LEFT) {
        at = coord_ms_min(at, a->deadline);
    }
    return at;
}

size_t coord_agent_descriptors(struct coord_agent *agent, struct coord_descriptor *out)
{
    size_t count = agent->elector != NULL ? coord_elector_descriptors(agent->elector, out) : 0;
    if (agent->bus.descriptors != NULL) {
        count += agent->bus.descriptors(agent->bus.ctx, out + count);
    }
    return count;
}

/* ---- what the host says ---- */

enum coord_err coord_agent_serve(struct coord_agent *agent, const char *const *names, size_t count,
                                 int64_t in_flight_count, double load_factor)
{
    struct coord_value list;
    enum coord_err rc = coord_texts(names, count, agent->names, sizeof agent->names, &list);
    return rc != COORD_OK
               ? rc
               : coord_coordinator_serve(agent->coordinator, &list, in_flight_count, load_factor);
}

enum coord_err coord_agent_assign(struct coord_agent *agent, const char *target,
                                  const char *const *names, size_t count, int64_t priority,
                                  coord_ms now, int64_t wall)
{
    struct coord_value list;
    struct coord_outgoing message;
    pass(agent, now);
    follow_lease(agent);
    enum coord_err rc = coord_texts(names, count, agent->names, sizeof agent->names, &list);
    if (rc == COORD_OK) {
        rc = coord_coordinator_assign(agent->coordinator, target, &list, priority, agent->now, wall,
                                      &message);
    }
    return rc != COORD_OK ? rc : publish(agent, &message);
}

void coord_agent_forget_elector(struct coord_agent *agent, coord_ms now)
{
    struct coord_agent *a = agent;
    pass(a, now);
    a->elector = NULL;
    a->lease = NULL;
    a->stands = false;
    a->edge_given = false;
    a->due = true;
    a->told = (struct coord_claim){.leading = false};
    a->told_hard = 0;
    coord_coordinator_lead(a->coordinator, false, 0, 0, a->now);
}

/* ---- queries ---- */

const char *coord_agent_topic(const struct coord_agent *agent, enum coord_message_type type)
{
    bool others = type == COORD_MESSAGE_HEARTBEAT || type == COORD_MESSAGE_ORPHANS;
    return others && agent->publishes_only ? NULL : agent->topic[type];
}

enum coord_agent_phase coord_agent_phase(const struct coord_agent *agent)
{
    return agent->phase;
}

struct coord_coordinator *coord_agent_coordinator(struct coord_agent *agent)
{
    return agent->coordinator;
}

struct coord_agent_counts coord_agent_counts(const struct coord_agent *agent)
{
    return agent->counts;
}

const char *coord_agent_phase_name(enum coord_agent_phase phase)
{
    static const char *const names[] = {"staying", "releasing", "draining", "finishing", "left"};
    unsigned at = (unsigned)phase;
    return at < sizeof names / sizeof names[0] ? names[at] : "unknown";
}

const char *coord_agent_event_name(enum coord_agent_event_kind kind)
{
    static const char *const names[] = {"UNKNOWN", "EDGE",    "FLEET", "LEAVING",
                                        "DRAIN",   "STAYING", "LEFT"};
    unsigned at = (unsigned)kind;
    return at < sizeof names / sizeof names[0] ? names[at] : "UNKNOWN";
}
