/* SPDX-License-Identifier: MIT
 * coord/coordinator_table.c - the table of reports: their ids, their places, their end.
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

void coord__report_id(const struct coord__owner *owner, const struct coord__name *name,
                      unsigned char *out)
{
    struct wide w = {{0x6295c58d, 0x62b82175, 0x07bb0142, 0x6c62272e}};
    unsigned char length = (unsigned char)owner->id_bytes;
    mix(&w, &length, 1);
    mix(&w, owner->id, length);
    length = owner->incarnation != NULL ? COORD_OWNER_BYTES : 0;
    mix(&w, &length, 1);
    mix(&w, owner->incarnation, length);
    mix(&w, name->text, name->bytes);
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

uint32_t coord__report_find(const struct coord_coordinator *c, const unsigned char *id)
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
    uint32_t *empty = realloc(reports->empty, room * sizeof(*empty));
    if (empty == NULL) {
        return false;
    }
    reports->empty = empty;
    reports->room = room;
    return true;
}

static uint32_t free_place(const struct coord__reports *reports)
{
    const uint32_t empty = reports->count - reports->used;
    return empty > 0 ? reports->empty[empty - 1] : reports->count;
}

static void free_report(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__report *report = c->reports.at[ref];
    uint32_t *link = &c->names.name[report->name]->reports;
    while (*link != ref) {
        link = &c->reports.at[*link]->next_of_name;
    }
    *link = report->next_of_name;
    if (report->fence == c->fence && report->seq > c->seq_used) {
        c->seq_used = report->seq; /* no event of this term gets its number again */
    }
    coord__name_drop(&c->names, report->name);
    coord__index_remove(&c->reports.by_id, hash_of(report->id), ref);
    c->reports.at[ref] = NULL;
    c->reports.empty[c->reports.count - c->reports.used] = ref;
    c->reports.used--;
    c->reports.order = false;
    free(report);
}

/* Resolved ones are kept for a while, so that nothing late opens them again. */
static void forget_resolved(struct coord_coordinator *c, coord_ms keep)
{
    for (uint32_t ref = 0; ref < c->reports.count; ref++) {
        struct coord__report *report = c->reports.at[ref];
        unsigned busy = COORD__REPORT_OPEN | COORD__REPORT_QUEUED | COORD__REPORT_SEND;
        if (report != NULL && (report->flags & busy) == 0 &&
            c->now >= coord_ms_add(report->resolved_at, keep)) {
            free_report(c, ref);
        }
    }
}

/* Where there is no other room, what was resolved a T ago makes way for what is open. */
static bool has_room(struct coord_coordinator *c)
{
    struct coord__reports *reports = &c->reports;
    if (reports->used >= c->config.reports_max && reports->used > reports->open &&
        reports->swept_at != c->now) {
        reports->swept_at = c->now; /* it looks at all of them: once for each instant */
        forget_resolved(c, c->config.timeout);
    }
    return reports->used < c->config.reports_max;
}

uint32_t coord__report_add(struct coord_coordinator *c, const unsigned char *id,
                           const struct coord__owner *owner, const char *name, size_t name_bytes)
{
    struct coord__reports *reports = &c->reports;
    enum coord_refusal why = COORD_REFUSED_NO_MEMORY;
    if (!has_room(c)) {
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

void coord__reports_forget(struct coord_coordinator *c)
{
    forget_resolved(c, c->config.timeout * COORD__FORGET);
}

void coord__reports_fini(struct coord_coordinator *c)
{
    for (uint32_t i = 0; i < c->reports.count; i++) {
        free(c->reports.at[i]);
    }
    free(c->reports.at);
    free(c->reports.sorted);
    free(c->reports.empty);
    coord__index_fini(&c->reports.by_id);
}

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
    out->listed = report->listed_at;
}
