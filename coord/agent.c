/* SPDX-License-Identifier: MIT
 * coord/agent.c - an elector, a bus and a coordinator joined: what comes in, what goes out.
 */
#include "coord/agent_inside.h"
#include "coord/rule.h"

#include <stdlib.h>
#include <string.h>

enum {
    MESSAGES = 256 /* taken in within one step: a flood must not keep the host waiting */
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
    a->interval = coordinator.interval > 0 ? coordinator.interval : coordinator.timeout / 4;
    a->said_at = now;
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

void coord__agent_pass(struct coord_agent *agent, coord_ms now)
{
    struct coord_agent *a = agent;
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
    if (claim.leading != a->told.leading || claim.fence != a->told.fence ||
        claim.hard != a->told.hard) {
        coord_coordinator_lead(a->coordinator, claim.leading, claim.fence, claim.hard, a->now);
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
    a->said_at = a->now;
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
    coord__agent_pass(agent, now);
    if (!agent->quiet) {
        return COORD_E_BUSY;
    }
    agent->quiet = false;
    agent->due = true;
    agent->handed_in = true;
    return hand_in(agent, topic, bytes, count);
}

static void look_at_connection(struct coord_agent *a)
{
    bool connected = a->bus.connected == NULL || a->bus.connected(a->bus.ctx);
    uint64_t ups = a->bus.ups != NULL ? a->bus.ups(a->bus.ctx) : a->ups;
    if (ups != a->ups && connected && a->connected) {
        /* It was down since the last look, and what was said then is lost. */
        coord_coordinator_connected(a->coordinator, false, a->now);
        a->connected = false;
    }
    a->ups = ups;
    if (connected != a->connected) {
        coord_coordinator_connected(a->coordinator, connected, a->now);
        a->connected = connected;
    }
}

/* ---- stepping ---- */

static bool tell_fleet(struct coord_agent *a, struct coord_agent_event *out)
{
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
    coord__agent_advance(a);
    return coord__agent_tell_notice(a, out) || next_edge(a, out) ||
           coord__agent_tell_phase(a, out) ||
           (COORD__RULE(reads_before_it_judges,
                        coord_coordinator_next_heard(a->coordinator, a->now, &a->event)) &&
            tell_fleet(a, out));
}

/* What time has brought, once all that waits was read: who was stopped for a while finds the
 * heartbeats of the others there. */
static bool next_judgement(struct coord_agent *a, struct coord_agent_event *out)
{
    return !a->handed_in && coord_coordinator_next_event(a->coordinator, a->now, &a->event) &&
           tell_fleet(a, out);
}

bool coord_agent_step(struct coord_agent *agent, coord_ms now, int64_t wall,
                      struct coord_agent_event *out)
{
    struct coord_agent *a = agent;
    coord__agent_pass(a, now);
    memset(out, 0, sizeof *out);
    a->due = false;
    a->quiet = false;
    /* What is due is said at the end; in a flood, which has none, before it. */
    if (a->announce || a->now > coord_ms_add(a->said_at, a->interval)) {
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
        if (hear(a)) {
            continue;
        }
        if (next_judgement(a, out)) {
            return true;
        }
        if (!say(a, wall)) {
            a->quiet = true;
            a->handed_in = false;
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
        at = coord_ms_min(at, a->told.leading ? a->told.hard : a->now);
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

enum coord_err coord_agent_assign(struct coord_agent *agent, const struct coord_agent_work *work,
                                  coord_ms now, int64_t wall)
{
    struct coord_value list;
    struct coord_outgoing message;
    coord__agent_pass(agent, now);
    follow_lease(agent);
    enum coord_err rc =
        coord_texts(work->names, work->count, agent->names, sizeof agent->names, &list);
    if (rc == COORD_OK) {
        rc = coord_coordinator_assign(agent->coordinator, work->target, &list, work->priority,
                                      agent->now, wall, &message);
    }
    return rc != COORD_OK ? rc : publish(agent, &message);
}

void coord_agent_forget_elector(struct coord_agent *agent, coord_ms now)
{
    struct coord_agent *a = agent;
    coord__agent_pass(a, now);
    a->elector = NULL;
    a->lease = NULL;
    a->stands = false;
    a->edge_given = false;
    a->due = true;
    a->told = (struct coord_claim){.leading = false};
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

const char *coord_agent_event_name(enum coord_agent_event_kind kind)
{
    static const char *const names[] = {"UNKNOWN", "EDGE",    "FLEET", "LEAVING",
                                        "DRAIN",   "STAYING", "LEFT"};
    unsigned at = (unsigned)kind;
    return at < sizeof names / sizeof names[0] ? names[at] : "UNKNOWN";
}
