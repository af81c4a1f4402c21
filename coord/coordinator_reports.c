/* SPDX-License-Identifier: MIT
 * coord/coordinator_reports.c - the table of work that is nobody's: opened, adopted, resolved.
 */
#include "coord/coordinator_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- ids: FNV-1a of 128 bits over (peer, incarnation, subscription), the same everywhere ---- */

struct wide {
    uint32_t limb[4]; /* the least first */
};

/* By the prime 2^88 + 0x13b. */
static void multiply(struct wide *w)
{
    const uint32_t was[4] = {w->limb[0], w->limb[1], w->limb[2], w->limb[3]};
    uint64_t carry = 0;
    for (unsigned i = 0; i < 4; i++) {
        carry += (uint64_t)was[i] * 0x13b;
        if (i >= 2) {
            carry += (uint64_t)was[i - 2] << 24 & UINT32_MAX;
        }
        if (i == 3) {
            carry += was[0] >> 8;
        }
        w->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void mix(struct wide *w, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++) {
        w->limb[0] ^= at[i];
        multiply(w);
    }
}

static void report_id(const char *peer, size_t peer_bytes, const unsigned char *incarnation,
                      const char *name, size_t name_bytes, unsigned char *out)
{
    struct wide w = {{0x6295c58d, 0x62b82175, 0x07bb0142, 0x6c62272e}};
    unsigned char length = (unsigned char)peer_bytes;
    mix(&w, &length, 1);
    mix(&w, peer, peer_bytes);
    length = incarnation != NULL ? COORD_OWNER_BYTES : 0;
    mix(&w, &length, 1);
    mix(&w, incarnation, length);
    mix(&w, name, name_bytes);
    for (unsigned i = 0; i < COORD_REPORT_ID_BYTES; i++) {
        out[i] = (unsigned char)(w.limb[3 - i / 4] >> (24 - i % 4 * 8));
    }
}

/* ---- the table ---- */

static uint32_t hash_of(const unsigned char *id)
{
    uint32_t hash = 0;
    memcpy(&hash, id, sizeof hash);
    return hash;
}

static uint32_t find_report(const struct coord_coordinator *c, const unsigned char *id)
{
    struct coord__probe probe = coord__index_begin(&c->reports.by_id, hash_of(id));
    uint32_t ref = coord__index_next(&c->reports.by_id, &probe);
    while (ref != COORD__NO_REF && memcmp(c->reports.at[ref]->id, id, COORD_REPORT_ID_BYTES) != 0) {
        ref = coord__index_next(&c->reports.by_id, &probe);
    }
    return ref;
}

static bool more_room(struct coord__reports *reports)
{
    uint32_t room = reports->room == 0 ? 16 : reports->room * 2;
    struct coord__report **at = realloc(reports->at, room * sizeof(*at));
    if (at == NULL) {
        return false;
    }
    reports->at = at;
    uint32_t *sorted = realloc(reports->sorted, room * sizeof(*sorted));
    if (sorted == NULL) {
        return false;
    }
    reports->sorted = sorted;
    reports->room = room;
    return true;
}

static uint32_t free_place(struct coord__reports *reports)
{
    uint32_t at = reports->used == reports->count ? reports->count : 0;
    while (at < reports->count && reports->at[at] != NULL) {
        at++;
    }
    return at;
}

struct owner {
    const char *id;
    size_t id_bytes;
    const unsigned char *incarnation; /* NULL: none */
};

static uint32_t add_report(struct coord_coordinator *c, const unsigned char *id,
                           const struct owner *owner, const char *name, size_t name_bytes)
{
    struct coord__reports *reports = &c->reports;
    enum coord_refusal why = COORD_REFUSED_NO_MEMORY;
    if (reports->used >= c->config.reports_max) {
        coord__refuse(c, COORD_REFUSED_REPORTS_FULL);
        return COORD__NO_REF;
    }
    uint32_t name_ref = coord__name_take(&c->names, name, (uint32_t)name_bytes, &why);
    if (name_ref == COORD__NO_REF) {
        coord__refuse(c, why);
        return COORD__NO_REF;
    }
    struct coord__report *report = calloc(1, sizeof *report + owner->id_bytes);
    uint32_t ref = free_place(reports);
    bool room = ref < reports->room || more_room(reports);
    if (report == NULL || !room || !coord__index_add(&reports->by_id, hash_of(id), ref)) {
        free(report);
        coord__name_drop(&c->names, name_ref);
        coord__refuse(c, COORD_REFUSED_NO_MEMORY);
        return COORD__NO_REF;
    }
    memcpy(report->id, id, COORD_REPORT_ID_BYTES);
    report->peer_id = (char *)(report + 1);
    report->peer_bytes = (uint32_t)owner->id_bytes;
    memcpy(report->peer_id, owner->id, owner->id_bytes);
    report->has_incarnation = owner->incarnation != NULL;
    if (owner->incarnation != NULL) {
        memcpy(report->incarnation, owner->incarnation, COORD_OWNER_BYTES);
    }
    report->name = name_ref;
    report->next_of_name = c->names.name[name_ref]->reports;
    c->names.name[name_ref]->reports = ref;
    report->deadline = COORD_NEVER;
    reports->at[ref] = report;
    reports->count += ref == reports->count ? 1 : 0;
    reports->used++;
    reports->order = false;
    return ref;
}

static void free_report(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__report *report = c->reports.at[ref];
    uint32_t *link = &c->names.name[report->name]->reports;
    while (*link != ref) {
        link = &c->reports.at[*link]->next_of_name;
    }
    *link = report->next_of_name;
    coord__name_drop(&c->names, report->name);
    coord__index_remove(&c->reports.by_id, hash_of(report->id), ref);
    c->reports.at[ref] = NULL;
    c->reports.used--;
    c->reports.order = false;
    free(report);
}

/* ---- news ---- */

static void queue(struct coord_coordinator *c, uint32_t ref)
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
static void tell(struct coord_coordinator *c, uint32_t ref, enum coord_orphans_kind news)
{
    struct coord__report *report = c->reports.at[ref];
    if (!coord__leading(c)) {
        return;
    }
    bool opened = (report->flags & (COORD__REPORT_TELL | COORD__REPORT_TOLD)) == COORD__REPORT_TELL;
    report->news = opened && news == COORD_ORPHANS_UPDATED ? COORD_ORPHANS_OPENED : news;
    report->flags |= COORD__REPORT_TELL;
    queue(c, ref);
}

static void set_open(struct coord_coordinator *c, struct coord__report *report, bool open)
{
    bool was = (report->flags & COORD__REPORT_OPEN) != 0;
    if (was == open) {
        return;
    }
    report->flags ^= COORD__REPORT_OPEN;
    c->reports.open += open ? 1U : UINT32_MAX;
    report->resolved_at = c->now;
    if (!open) {
        report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_HINT;
    }
}

bool coord__name_is_healthy(const struct coord_coordinator *c, uint32_t name)
{
    const struct coord__name *n = c->names.name[name];
    for (uint32_t i = 0; i < n->set_count; i++) {
        if (c->names.set[n->sets[i]]->healthy > 0) {
            return true;
        }
    }
    return false;
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
            set_open(c, report, false);
            tell(c, ref, COORD_ORPHANS_RESOLVED);
        }
    }
}

/* ---- what we see ourselves ---- */

static coord_ms safe_after(const struct coord_coordinator *c, const struct coord__peer *peer,
                           enum coord_cause cause)
{
    coord_ms timeout = c->config.timeout;
    coord_ms drained = coord__peer_leaving(peer) ? coord_ms_add(peer->extra->deadline, timeout) : 0;
    if (cause == COORD_CAUSE_FINISHED) {
        return c->now;
    }
    if (cause == COORD_CAUSE_SILENT) {
        /* It may be cut off, and at work until its deadline. */
        return coord_ms_max(drained, coord_ms_add(peer->last_heard, timeout * 2));
    }
    return drained;
}

static void fill(struct coord_coordinator *c, struct coord__report *report,
                 const struct coord__peer *peer, enum coord_cause cause)
{
    report->cause = (uint8_t)cause;
    report->certainty = cause == COORD_CAUSE_SILENT ? COORD_SUSPECTED : COORD_ANNOUNCED;
    report->deadline = coord__peer_leaving(peer) ? peer->extra->deadline : COORD_NEVER;
    report->safe_after = safe_after(c, peer, cause);
}

static void offer_one(struct coord_coordinator *c, const struct coord__peer *peer, uint32_t name,
                      enum coord_cause cause)
{
    unsigned char id[COORD_REPORT_ID_BYTES];
    const struct coord__name *n = c->names.name[name];
    struct owner owner = {coord__peer_id(peer), peer->id_bytes,
                          (peer->flags & COORD__PEER_INCARNATION) != 0 ? peer->incarnation : NULL};
    if (coord__name_is_healthy(c, name)) {
        return;
    }
    report_id(owner.id, owner.id_bytes, owner.incarnation, n->text, n->bytes, id);
    uint32_t ref = find_report(c, id);
    bool new = ref == COORD__NO_REF;
    if (new) {
        ref = add_report(c, id, &owner, n->text, n->bytes);
        if (ref == COORD__NO_REF) {
            return;
        }
    }
    struct coord__report *report = c->reports.at[ref];
    bool open = (report->flags & COORD__REPORT_OPEN) != 0;
    if (!new && !open && peer->last_heard <= report->resolved_at) {
        return; /* it was resolved, and nothing was heard of its owner since */
    }
    if (open && report->cause == (uint8_t)cause &&
        report->deadline == (coord__peer_leaving(peer) ? peer->extra->deadline : COORD_NEVER)) {
        return;
    }
    if (!open) {
        report->since = cause == COORD_CAUSE_SILENT ? peer->last_heard
                        : coord__peer_leaving(peer) ? peer->extra->notice_at
                                                    : c->now;
        set_open(c, report, true);
    }
    fill(c, report, peer, cause);
    tell(c, ref, open ? COORD_ORPHANS_UPDATED : COORD_ORPHANS_OPENED);
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
    uint32_t count = peer->set != COORD__NO_REF ? c->names.set[peer->set]->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        unsigned char id[COORD_REPORT_ID_BYTES];
        const struct coord__name *n = c->names.name[c->names.set[peer->set]->names[i]];
        report_id(coord__peer_id(peer), peer->id_bytes,
                  (peer->flags & COORD__PEER_INCARNATION) != 0 ? peer->incarnation : NULL, n->text,
                  n->bytes, id);
        uint32_t ref = find_report(c, id);
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
            set_open(c, report, false);
            tell(c, ref, COORD_ORPHANS_RESOLVED);
        } else if (report->fence == 0) {
            tell(c, ref, COORD_ORPHANS_OPENED); /* the others stand in our first table */
        }
    }
}

/* Resolved ones are kept, so that nothing late opens them again. */
void coord__reports_forget(struct coord_coordinator *c)
{
    coord_ms keep = c->config.timeout * COORD__FORGET;
    for (uint32_t ref = 0; ref < c->reports.count; ref++) {
        struct coord__report *report = c->reports.at[ref];
        unsigned busy = COORD__REPORT_OPEN | COORD__REPORT_QUEUED | COORD__REPORT_SEND;
        if (report != NULL && (report->flags & busy) == 0 &&
            c->now >= coord_ms_add(report->resolved_at, keep)) {
            free_report(c, ref);
        }
    }
}

void coord__reports_fini(struct coord_coordinator *c)
{
    for (uint32_t i = 0; i < c->reports.count; i++) {
        free(c->reports.at[i]);
    }
    free(c->reports.at);
    free(c->reports.sorted);
    coord__index_fini(&c->reports.by_id);
}

/* ---- what leaders and others say ---- */

static coord_ms local_time(const struct coord_coordinator *c, const struct coord_message *message,
                           int64_t time_us)
{
    int64_t apart = (time_us - message->sent_at_us) / 1000;
    return apart >= 0 ? coord_ms_add(c->now, (coord_ms)apart)
                      : coord_ms_sub(c->now, (coord_ms)-apart);
}

static bool newer(const struct coord__report *report, const struct coord_report_wire *wire)
{
    return wire->fence > report->fence || (wire->fence == report->fence && wire->seq > report->seq);
}

static void copy_wire(const struct coord_coordinator *c, struct coord__report *report,
                      const struct coord_message *message, const struct coord_report_wire *wire)
{
    report->cause = (uint8_t)wire->cause;
    report->certainty = (uint8_t)wire->certainty;
    report->since = local_time(c, message, wire->since_us);
    report->deadline = wire->has_deadline ? local_time(c, message, wire->deadline_us) : COORD_NEVER;
    report->safe_after = local_time(c, message, wire->safe_after_us);
}

/* The report of a message, made if it is new and `make`. */
static uint32_t report_of(struct coord_coordinator *c, const struct coord_report_wire *wire,
                          bool make)
{
    char id[COORD_NAME_MAX];
    char name[COORD_NAME_MAX];
    char text[COORD_INCARNATION_MAX];
    unsigned char incarnation[COORD_OWNER_BYTES];
    uint32_t ref = find_report(c, wire->id);
    if (ref != COORD__NO_REF || !make) {
        return ref;
    }
    struct owner owner = {id, coord_view_text(&wire->instance_id, id, sizeof id), NULL};
    if (wire->incarnation.kind == COORD_KIND_TEXT) {
        size_t bytes = coord_view_text(&wire->incarnation, text, sizeof text);
        coord__incarnation(text, bytes, incarnation);
        owner.incarnation = incarnation;
    }
    size_t name_bytes = coord_view_text(&wire->subscription, name, sizeof name);
    return add_report(c, wire->id, &owner, name, name_bytes);
}

static void adopt(struct coord_coordinator *c, const struct coord_message *message,
                  const struct coord_report_wire *wire)
{
    bool resolved = message->kind == COORD_ORPHANS_RESOLVED;
    uint32_t ref = report_of(c, wire, !resolved);
    if (ref == COORD__NO_REF) {
        return;
    }
    struct coord__report *report = c->reports.at[ref];
    report->flags |= COORD__REPORT_SEEN;
    report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_HINT;
    if (!newer(report, wire)) {
        return;
    }
    bool open = (report->flags & COORD__REPORT_OPEN) != 0;
    bool told = (report->flags & COORD__REPORT_TOLD) != 0;
    report->fence = wire->fence;
    report->seq = wire->seq;
    copy_wire(c, report, message, wire);
    set_open(c, report, !resolved);
    if (resolved && !told && !open) {
        return;
    }
    report->news = resolved         ? COORD_ORPHANS_RESOLVED
                   : !told || !open ? COORD_ORPHANS_OPENED
                                    : COORD_ORPHANS_UPDATED;
    report->flags |= COORD__REPORT_HEARD;
    queue(c, ref);
}

static void take_hint(struct coord_coordinator *c, const struct coord_message *message,
                      const struct coord_report_wire *wire)
{
    bool known = find_report(c, wire->id) != COORD__NO_REF;
    uint32_t ref = report_of(c, wire, coord__leading(c));
    if (ref == COORD__NO_REF) {
        return;
    }
    struct coord__report *report = c->reports.at[ref];
    if (!coord__leading(c)) {
        report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_HINT; /* somebody has said it */
        report->hinted_at = c->now;
        return;
    }
    if ((report->flags & COORD__REPORT_OPEN) != 0) {
        return; /* it is in the next table */
    }
    if (known || coord__name_is_healthy(c, report->name)) {
        report->resolved_at = c->now;
        tell(c, ref, COORD_ORPHANS_RESOLVED);
        return;
    }
    copy_wire(c, report, message, wire);
    set_open(c, report, true);
    tell(c, ref, COORD_ORPHANS_OPENED);
}

/* Absent from the part of the table that covers it. */
static void read_absence(struct coord_coordinator *c, const struct coord_message *message)
{
    for (uint32_t ref = 0; ref < c->reports.count; ref++) {
        struct coord__report *report = c->reports.at[ref];
        if (report == NULL) {
            continue;
        }
        bool seen = (report->flags & COORD__REPORT_SEEN) != 0;
        report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_SEEN;
        if (seen || (report->flags & COORD__REPORT_OPEN) == 0 ||
            memcmp(report->id, message->first, COORD_REPORT_ID_BYTES) < 0 ||
            memcmp(report->id, message->last, COORD_REPORT_ID_BYTES) > 0) {
            continue;
        }
        coord_ms age = coord_ms_sub(c->now, report->since);
        if (message->judging && report->fence != 0 && age < message->heard) {
            /* The leader has listened since before it came up, and does not list it. */
            set_open(c, report, false);
            report->news = COORD_ORPHANS_RESOLVED;
            report->flags |= COORD__REPORT_HEARD;
            queue(c, ref);
        } else if (age >= message->heard &&
                   c->now >= coord_ms_add(report->hinted_at, c->config.timeout)) {
            report->flags |= COORD__REPORT_HINT;
            if (c->hint_at == COORD_NEVER) {
                c->hint_at = c->now + coord__random(c) % (c->config.interval / 2 + 1);
            }
        }
    }
}

void coord__orphans(struct coord_coordinator *c, const struct coord_message *message)
{
    bool own = false;
    if (coord__is_self(c, message, &own) && own) {
        return;
    }
    bool hint = message->kind == COORD_ORPHANS_HINT;
    if (!hint &&
        (message->fence < c->highest_fence || (coord__leading(c) && message->fence <= c->fence))) {
        coord__refuse(c, COORD_REFUSED_STALE_FENCE);
        return;
    }
    if (!hint) {
        c->highest_fence = message->fence;
    }
    struct coord_walk walk;
    struct coord_value element;
    struct coord_report_wire wire;
    coord_walk_begin(&message->reports, &walk);
    while (coord_walk_next(&walk, NULL, &element)) {
        if (coord_report_read(&element, &wire) != COORD_FAULT_NONE) {
            continue; /* cannot be: the message was read as a whole */
        }
        if (hint) {
            take_hint(c, message, &wire);
        } else {
            adopt(c, message, &wire);
        }
    }
    if (message->kind == COORD_ORPHANS_TABLE) {
        read_absence(c, message);
    }
}

/* ---- events ---- */

void coord__report_show(const struct coord_coordinator *c, const struct coord__report *report,
                        struct coord_orphan *out)
{
    const struct coord__name *name = c->names.name[report->name];
    memcpy(out->report_id, report->id, sizeof out->report_id);
    memcpy(out->incarnation, report->incarnation, sizeof out->incarnation);
    out->has_incarnation = report->has_incarnation;
    out->fence = report->fence;
    out->seq = report->seq;
    out->instance_id = report->peer_id;
    out->instance_id_bytes = report->peer_bytes;
    out->subscription = name->text;
    out->subscription_bytes = name->bytes;
    out->cause = (enum coord_cause)report->cause;
    out->certainty = (enum coord_certainty)report->certainty;
    out->since = report->since;
    out->deadline = report->deadline;
    out->safe_after = report->safe_after;
    out->open = (report->flags & COORD__REPORT_OPEN) != 0;
}

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
            report->seq = report->fence == c->fence ? report->seq + 1 : 1;
            report->fence = c->fence;
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
