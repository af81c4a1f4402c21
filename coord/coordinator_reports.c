/* SPDX-License-Identifier: MIT
 * coord/coordinator_reports.c - work that is nobody's: what we see ourselves, and what is told.
 */
#include "coord/coordinator_inside.h"
#include "coord/rule.h"

/* ---- news ---- */

void coord__report_queue(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__report *report = c->reports.at[ref];
    if ((report->flags & COORD__REPORT_QUEUED) != 0) {
        return;
    }
    report->flags |= COORD__REPORT_QUEUED;
    report->queue_next = COORD__NO_REF;
    if (c->reports.queue.last != COORD__NO_REF) {
        c->reports.at[c->reports.queue.last]->queue_next = ref;
    } else {
        c->reports.queue.first = ref;
    }
    c->reports.queue.last = ref;
}

/* What we say as the leader; who does not lead keeps it to himself. */
void coord__report_tell(struct coord_coordinator *c, uint32_t ref, enum coord_orphans_kind news)
{
    struct coord__report *report = c->reports.at[ref];
    if (!coord__leading(c)) {
        return;
    }
    bool opened = (report->flags & (COORD__REPORT_TELL | COORD__REPORT_TOLD)) == COORD__REPORT_TELL;
    report->news = opened && news == COORD_ORPHANS_UPDATED ? COORD_ORPHANS_OPENED : news;
    report->flags |= COORD__REPORT_TELL;
    coord__report_queue(c, ref);
}

uint32_t coord__report_owner(const struct coord_coordinator *c, const struct coord__report *report)
{
    return coord__peer_find(c, report->peer_id, report->peer_bytes,
                            report->has_incarnation ? report->incarnation : NULL);
}

/* Closed because its owner is well: then it opens again when that one falls silent, though nothing
 * more was heard of it. Closed for another reason: only if it was heard since. */
static coord_ms closed_at(const struct coord_coordinator *c, const struct coord__report *report)
{
    uint32_t ref = coord__report_owner(c, report);
    const struct coord__peer *owner = ref != COORD__NO_REF ? coord__peer_at(&c->peers, ref) : NULL;
    return owner != NULL && (owner->flags & COORD__PEER_COUNTED) != 0 ? owner->last_heard : c->now;
}

void coord__report_set_open(struct coord_coordinator *c, struct coord__report *report, bool open)
{
    bool was = (report->flags & COORD__REPORT_OPEN) != 0;
    if (!open && (was || report->resolved_at == 0)) {
        report->resolved_at = closed_at(c, report);
    }
    if (was == open) {
        return;
    }
    report->flags ^= COORD__REPORT_OPEN;
    c->reports.open += open ? 1U : UINT32_MAX;
    if (!open) {
        report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_HINT;
    }
}

bool coord__name_is_healthy(const struct coord_coordinator *c, uint32_t name)
{
    return c->names.name[name]->healthy > 0;
}

/* A healthy peer lists it, which nobody did before. What a leader told, a leader resolves. */
void coord__name_healthy(struct coord_coordinator *c, uint32_t name)
{
    for (uint32_t ref = c->names.name[name]->reports; ref != COORD__NO_REF;
         ref = c->reports.at[ref]->next_of_name) {
        struct coord__report *report = c->reports.at[ref];
        if ((report->flags & COORD__REPORT_OPEN) == 0) {
            continue;
        }
        if (coord__leading(c) || report->fence == 0) {
            coord__report_set_open(c, report, false);
            coord__report_tell(c, ref, COORD_ORPHANS_RESOLVED);
        }
    }
}

/* ---- what we see ourselves ---- */

static coord_ms safe_after(const struct coord_coordinator *c, const struct coord__peer *peer,
                           enum coord_cause cause)
{
    coord_ms timeout = c->config.timeout;
    coord_ms after = COORD__RULE(a_deadline_has_a_reserve, timeout);
    coord_ms drained = coord__peer_leaving(peer) ? coord_ms_add(peer->extra->deadline, after) : 0;
    if (cause == COORD_CAUSE_FINISHED) {
        return c->now;
    }
    if (cause == COORD_CAUSE_SILENT) {
        /* It may be cut off, and at work until its deadline, if that ever comes. */
        coord_ms heard = coord_ms_max(peer->last_heard, c->anew); /* as its silence counts */
        coord_ms least = coord_ms_add(heard, COORD__RULE(silent_may_be_at_work, timeout * 2));
        return coord_ms_max(drained == COORD_NEVER ? 0 : drained, least);
    }
    return drained;
}

/* Others may have heard its owner earlier than we have: then what we know counts. */
void coord__report_reserve(const struct coord_coordinator *c, struct coord__report *report)
{
    uint32_t ref = coord__report_owner(c, report);
    if (ref != COORD__NO_REF && report->cause != COORD_CAUSE_FINISHED) {
        const struct coord__peer *owner = coord__peer_at(&c->peers, ref);
        coord_ms least = safe_after(c, owner, (enum coord_cause)report->cause);
        report->safe_after = coord_ms_max(report->safe_after, least);
    }
}

static coord_ms deadline_of(const struct coord__peer *peer)
{
    bool ends = coord__peer_leaving(peer) && peer->extra->deadline != COORD_ENDLESS;
    return ends ? peer->extra->deadline : COORD_NEVER;
}

static void fill(struct coord_coordinator *c, struct coord__report *report,
                 const struct coord__peer *peer, enum coord_cause cause)
{
    report->cause = (uint8_t)cause;
    report->certainty = cause == COORD_CAUSE_SILENT ? COORD_SUSPECTED : COORD_ANNOUNCED;
    report->deadline = deadline_of(peer);
    report->safe_after = safe_after(c, peer, cause);
}

static struct coord__owner owner_of(const struct coord__peer *peer)
{
    const bool has = (peer->flags & COORD__PEER_INCARNATION) != 0;
    return (struct coord__owner){coord__peer_id(peer), peer->id_bytes,
                                 has ? peer->incarnation : NULL};
}

static void offer_one(struct coord_coordinator *c, const struct coord__peer *peer, uint32_t name,
                      enum coord_cause cause)
{
    unsigned char id[COORD_REPORT_ID_BYTES];
    const struct coord__name *n = c->names.name[name];
    struct coord__owner owner = owner_of(peer);
    if (coord__name_is_healthy(c, name)) {
        return;
    }
    coord__report_id(&owner, n, id);
    uint32_t ref = coord__report_find(c, id);
    bool new = ref == COORD__NO_REF;
    if (new) {
        ref = coord__report_add(c, id, &owner, n->text, n->bytes);
        if (ref == COORD__NO_REF) {
            return;
        }
    }
    struct coord__report *report = c->reports.at[ref];
    bool open = (report->flags & COORD__REPORT_OPEN) != 0;
    if (!new && !open && COORD__RULE(not_heard_since, peer->last_heard < report->resolved_at)) {
        return; /* it was resolved, and nothing was heard of its owner since */
    }
    if (open && report->cause == (uint8_t)cause && report->deadline == deadline_of(peer)) {
        return;
    }
    if (!open) {
        report->since = cause == COORD_CAUSE_SILENT ? peer->last_heard
                        : coord__peer_leaving(peer) ? peer->extra->notice_at
                                                    : c->now;
        coord__report_set_open(c, report, true);
    }
    fill(c, report, peer, cause);
    coord__report_tell(c, ref, open ? COORD_ORPHANS_UPDATED : COORD_ORPHANS_OPENED);
}

void coord__offer(struct coord_coordinator *c, uint32_t peer_ref, enum coord_cause cause)
{
    const struct coord__peer *peer = coord__peer_at(&c->peers, peer_ref);
    if (peer->set == COORD__NO_REF) {
        return;
    }
    const struct coord__set *set = c->names.set[peer->set];
    for (uint32_t i = 0; i < set->count; i++) {
        offer_one(c, peer, set->names[i], cause);
    }
}

bool coord__peer_has_report(const struct coord_coordinator *c, uint32_t peer_ref)
{
    const struct coord__peer *peer = coord__peer_at(&c->peers, peer_ref);
    const struct coord__owner owner = owner_of(peer);
    uint32_t count = peer->set != COORD__NO_REF ? c->names.set[peer->set]->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        unsigned char id[COORD_REPORT_ID_BYTES];
        coord__report_id(&owner, c->names.name[c->names.set[peer->set]->names[i]], id);
        uint32_t ref = coord__report_find(c, id);
        if (ref != COORD__NO_REF && (c->reports.at[ref]->flags & COORD__REPORT_OPEN) != 0) {
            return true;
        }
    }
    return false;
}

/* We lead now: what is open is ours to tell, what somebody looks after is not open. */
void coord__reports_led(struct coord_coordinator *c)
{
    for (uint32_t ref = 0; ref < c->reports.count; ref++) {
        struct coord__report *report = c->reports.at[ref];
        if (report == NULL || (report->flags & COORD__REPORT_OPEN) == 0) {
            continue;
        }
        if (coord__name_is_healthy(c, report->name)) {
            coord__report_set_open(c, report, false);
            coord__report_tell(c, ref, COORD_ORPHANS_RESOLVED);
            continue;
        }
        coord__report_reserve(c, report);
        if (report->fence == 0) {
            coord__report_tell(c, ref,
                               COORD_ORPHANS_OPENED); /* the others stand in our first table */
        }
    }
}

/* ---- events ---- */

static void append(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__report *report = c->reports.at[ref];
    if ((report->flags & COORD__REPORT_SEND) != 0) {
        return;
    }
    report->flags |= COORD__REPORT_SEND;
    report->send_next = COORD__NO_REF;
    if (c->reports.sends.last != COORD__NO_REF) {
        c->reports.at[c->reports.sends.last]->send_next = ref;
    } else {
        c->reports.sends.first = ref;
    }
    c->reports.sends.last = ref;
}

static uint32_t take_news(struct coord_coordinator *c)
{
    uint32_t ref = c->reports.queue.first;
    c->reports.queue.first = c->reports.at[ref]->queue_next;
    if (c->reports.queue.first == COORD__NO_REF) {
        c->reports.queue.last = COORD__NO_REF;
    }
    return ref;
}

/* The next piece of news; what we tell as the leader gets its number here. */
bool coord__report_event(struct coord_coordinator *c, struct coord_event *out)
{
    static const enum coord_event_kind kinds[] = {
        COORD_EVENT_ORPHAN_OPENED, COORD_EVENT_ORPHAN_UPDATED, COORD_EVENT_ORPHAN_RESOLVED};
    const unsigned reasons = COORD__REPORT_QUEUED | COORD__REPORT_TELL | COORD__REPORT_HEARD;
    while (c->reports.queue.first != COORD__NO_REF) {
        struct coord__report *report = c->reports.at[c->reports.queue.first];
        bool leading = coord__leading(c);
        bool ours = (report->flags & COORD__REPORT_TELL) != 0;
        if (ours && leading && !coord__may_report(c)) {
            return false; /* not before we have listened for one T */
        }
        uint32_t ref = take_news(c);
        bool heard = (report->flags & COORD__REPORT_HEARD) != 0;
        report->flags &= (uint16_t)~reasons;
        if (ours && leading) {
            uint64_t former = report->fence == c->fence ? report->seq : c->seq_used;
            report->seq = COORD__RULE(numbers_rise, former) + 1;
            report->fence = c->fence;
            report->listed_at = c->now;
            append(c, ref);
        } else if (!heard) {
            continue; /* we led when it came up, and do not any more */
        }
        if (report->news == COORD_ORPHANS_RESOLVED) {
            report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_TOLD;
        } else {
            report->flags |= COORD__REPORT_TOLD;
        }
        out->kind = kinds[report->news];
        coord__report_show(c, report, &out->orphan);
        return true;
    }
    return false;
}
