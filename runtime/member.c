/* SPDX-License-Identifier: MIT
 * runtime/member.c - joining, driving and letting go of a member of a fleet.
 */
#include "runtime/member_inside.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uuid/uuid.h>

enum {
    STEPS = 1024, /* in one go: others ride as well */
    LEAVE_WITHIN = 30000
};

static atomic_uint_fast64_t generations;

/* ---------------------------------------------------------------- driving */

static void look_for_election(struct coord_member *m)
{
    if (m->election != NULL && m->election->closed) {
        coord_agent_forget_elector(m->agent, coord_clock_now());
        coord__unpin(m->election);
        m->election = NULL;
    }
}

bool coord__member_enter(struct coord_member *member)
{
    COORD_ASSERT(member->magic == COORD__MEMBER_MAGIC);
    if (!coord__enter(member->rider.runtime)) {
        return false;
    }
    look_for_election(member);
    return true;
}

void coord__member_touch(struct coord_member *member)
{
    coord__rider_touch(&member->rider);
    if (member->election != NULL) {
        coord__touch(member->election);
    }
}

static void look_for_signal(struct coord_member *m, coord_ms now)
{
    uint64_t count = 0;
    if (read(m->signal, &count, sizeof count) == (ssize_t)sizeof count) {
        coord_agent_leave(m->agent, COORD_INTENT_GRACEFUL, coord_ms_add(now, m->leave_within), now);
        coord__member_touch(m);
    }
}

static void process(struct coord__rider *rider, coord_ms now)
{
    struct coord_member *m = coord__member_of(rider);
    struct coord_agent_event event;
    look_for_election(m);
    look_for_signal(m, now);
    const enum coord_agent_phase before = coord_agent_phase(m->agent);
    bool more = true;
    for (int i = 0; i < STEPS && more; i++) {
        more = coord_agent_step(m->agent, now, (int64_t)coord_clock_wall_us(), &event);
        if (more) {
            coord__member_note(m, &event, now);
        }
    }
    if (before != coord_agent_phase(m->agent) && m->election != NULL) {
        coord__touch(m->election); /* an order to leave withdrew it */
    }
}

static coord_ms deadline(struct coord__rider *rider)
{
    struct coord_member *m = coord__member_of(rider);
    look_for_election(m);
    return coord_agent_deadline(m->agent);
}

static size_t descriptors(struct coord__rider *rider, struct coord_descriptor *out)
{
    struct coord_member *m = coord__member_of(rider);
    out[0] = (struct coord_descriptor){.fd = m->signal, .read = true, .generation = m->generation};
    return 1 + coord_agent_descriptors(m->agent, out + 1);
}

/* ---------------------------------------------------------------- letting go */

static void release(struct coord_member *m, bool forked)
{
    coord__member_leave_bus(m, forked);
    coord_agent_free(m->agent);
    m->agent = NULL;
    if (m->signal >= 0) {
        close(m->signal);
    }
    m->signal = -1;
    if (m->election != NULL) {
        coord__unpin(m->election);
    }
    m->election = NULL;
}

static void close_rider(struct coord__rider *rider, bool forked)
{
    struct coord_member *m = coord__member_of(rider);
    coord__rider_leave(rider, forked);
    release(m, forked);
}

static void free_rider(struct coord__rider *rider)
{
    struct coord_member *m = coord__member_of(rider);
    coord__member_forget_notices(m);
    m->magic = 0;
    free(m);
}

static const struct coord__rider_ops ops = {
    .process = process,
    .deadline = deadline,
    .descriptors = descriptors,
    .tells = coord__member_tells,
    .tell = coord__member_tell,
    .close = close_rider,
    .free = free_rider,
};

void coord_member_close(struct coord_member *member)
{
    if (member == NULL) {
        return;
    }
    struct coord_runtime *runtime = member->rider.runtime;
    COORD_ASSERT(member->magic == COORD__MEMBER_MAGIC);
    const bool forked = !coord__enter(runtime);
    coord__rider_pin(&member->rider);
    close_rider(&member->rider, forked);
    coord__rider_unpin(&member->rider);
    if (!forked) {
        coord__leave(runtime);
    }
}

/* ---------------------------------------------------------------- joining */

static void fill_agent(struct coord_member *m, const struct coord_member_config *config,
                       struct coord_agent_config *out)
{
    out->role = config->role;
    out->topic_prefix = config->topic_prefix;
    out->publishes_only = config->publishes_only;
    out->lease = m->election != NULL ? m->election->lease : NULL;
    out->bus = coord__member_bus(m);
    out->coordinator.instance_id = m->id;
    out->coordinator.refuses_orders = config->refuses_orders;
    out->coordinator.heartbeat_events = config->heartbeat_events;
    out->coordinator.form = config->form;
    out->coordinator.interval = config->interval;
    if (config->timeout > 0) {
        out->coordinator.timeout = config->timeout;
    }
}

static enum coord_err join_fleet(struct coord_member *m, const struct coord_member_config *config,
                                 struct coord_error *error)
{
    struct coord_agent_config agent = COORD_AGENT_CONFIG_INIT;
    const coord_ms now = coord_clock_now();
    uuid_generate(agent.coordinator.incarnation);
    memcpy(&agent.coordinator.seed, agent.coordinator.incarnation, sizeof agent.coordinator.seed);
    fill_agent(m, config, &agent);
    const enum coord_err rc = coord_agent_new(&agent, now, &m->agent, error);
    if (rc != COORD_OK) {
        return rc;
    }
    m->bus = config->bus;
    return coord__member_join_bus(m, now, error);
}

static enum coord_err check(const struct coord_runtime *runtime,
                            const struct coord_member_config *config, struct coord_error *error)
{
    if (config->size != sizeof *config) {
        return coord_error_set(error, COORD_E_VERSION_MISMATCH,
                               "the program was compiled for another version of libcoord than %s: "
                               "compile it again",
                               coord_version());
    }
    if (config->bus == NULL) {
        return coord_error_set(error, COORD_E_BAD_ARGUMENT,
                               "a member needs a bus: open one with coord_bus_open()");
    }
    const struct coord__rider *bus = (const struct coord__rider *)(const void *)config->bus;
    if (bus->runtime != runtime ||
        (config->election != NULL && config->election->runtime != runtime)) {
        return coord_error_set(
            error, COORD_E_BAD_ARGUMENT,
            "the bus or the election is of another runtime: open it on this one");
    }
    const char *id = config->id != NULL         ? config->id
                     : config->election != NULL ? config->election->identity
                                                : NULL;
    if (id == NULL || id[0] == '\0' || strlen(id) > COORD_NAME_MAX) {
        return coord_error_set(error, COORD_E_BAD_NAME,
                               "a member has an id of 1 to %d bytes, or an election that has one",
                               COORD_NAME_MAX);
    }
    return COORD_OK;
}

static void fill_in(struct coord_member *m, const struct coord_member_config *config)
{
    const char *fleet = config->election != NULL       ? config->election->name
                        : config->topic_prefix != NULL ? config->topic_prefix
                                                       : "fleet";
    const char *id = config->id != NULL ? config->id : config->election->identity;
    COORD_ASSERT(id != NULL); /* check() has seen to it */
    memcpy(m->id, id, strlen(id) + 1);
    memcpy(m->fleet, fleet, strnlen(fleet, sizeof m->fleet - 1));
    m->election = config->election;
    m->leave_within = config->leave_within > 0 ? config->leave_within : LEAVE_WITHIN;
    m->explicit_drain = config->explicit_drain;
    m->fn = config->fn;
    m->ctx = config->ctx;
    m->log = config->log.fn != NULL ? config->log : m->rider.runtime->log;
    m->rider.follows = true;
    m->generation = atomic_fetch_add(&generations, 1) + 1;
}

enum coord_err coord_member_open(struct coord_runtime *runtime,
                                 const struct coord_member_config *config,
                                 struct coord_member **out, struct coord_error *error)
{
    COORD_ASSERT(config != NULL);
    COORD_ASSERT(out != NULL);
    enum coord_err rc = check(runtime, config, error);
    if (rc != COORD_OK) {
        return rc;
    }
    struct coord_member *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    m->magic = COORD__MEMBER_MAGIC;
    m->rider.runtime = runtime;
    fill_in(m, config);
    m->signal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->signal < 0) {
        free(m);
        return coord_error_set(error, COORD_E_SYSTEM,
                               "no descriptor for a member: raise the limit of open files");
    }
    if (!coord__enter(runtime)) {
        close(m->signal);
        free(m);
        return coord__say_forked(error);
    }
    if (m->election != NULL) {
        coord__pin(m->election);
    }
    rc = join_fleet(m, config, error);
    if (rc == COORD_OK) {
        coord__rider_join(&m->rider, runtime, &ops);
        coord__member_touch(m);
        *out = m;
    } else {
        release(m, false);
        free_rider(&m->rider);
    }
    coord__leave(runtime);
    return rc;
}
