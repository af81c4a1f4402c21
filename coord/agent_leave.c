/* SPDX-License-Identifier: MIT
 * coord/agent_leave.c - the way out of a fleet: stop standing, say so, release, drain, last word.
 */
#include "coord/agent_inside.h"
#include "coord/rule.h"

enum {
    MARGIN_MAX = 2000, /* ms that a drain ends before its deadline, for the last word */
    MARGIN_SHARE = 10  /* ... and at most this part of the time that is left */
};

static bool released(const struct coord_agent *a)
{
    return !a->stands || coord_lease_settled(a->lease);
}

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
    coord__agent_pass(a, now);
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
    coord__agent_pass(a, now);
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
    coord__agent_pass(a, now);
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
void coord__agent_advance(struct coord_agent *agent)
{
    struct coord_agent *a = agent;
    bool late = COORD__RULE(a_deadline_ends_each_step, a->now >= a->deadline);
    if (a->phase == COORD_AGENT_RELEASING && !late &&
        COORD__RULE(releases_before_it_drains,
                    a->lease == NULL || !coord_lease_leading_at(a->lease, a->now))) {
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

bool coord__agent_tell_notice(struct coord_agent *agent, struct coord_agent_event *out)
{
    struct coord_agent *a = agent;
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
bool coord__agent_tell_phase(struct coord_agent *agent, struct coord_agent_event *out)
{
    struct coord_agent *a = agent;
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

const char *coord_agent_phase_name(enum coord_agent_phase phase)
{
    static const char *const names[] = {"staying", "releasing", "draining", "finishing", "left"};
    unsigned at = (unsigned)phase;
    return at < sizeof names / sizeof names[0] ? names[at] : "unknown";
}
