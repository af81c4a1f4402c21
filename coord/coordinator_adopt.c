/* SPDX-License-Identifier: MIT
 * coord/coordinator_adopt.c - reports of others: told by a leader, listed in its table, hinted at.
 */
#include "coord/coordinator_inside.h"
#include "coord/rule.h"

#include <string.h>

enum {
    REMINDERS = 3 /* of a report, before the leader's silence is an answer */
};

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

/* A table that came late closed it here, and the leader goes on listing it as it did before. */
static bool closed_in_error(const struct coord__report *report, const struct coord_message *message,
                            const struct coord_report_wire *wire)
{
    return (report->flags & COORD__REPORT_ABSENT) != 0 && message->kind == COORD_ORPHANS_TABLE &&
           message->sent_at_us >= report->absent_us && wire->fence == report->fence &&
           wire->seq + 1 >= report->seq;
}

static bool is_ahead(const struct coord__report *report, const struct coord_report_wire *wire)
{
    return report->fence > wire->fence || (report->fence == wire->fence && report->seq > wire->seq);
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
    uint32_t ref = coord__report_find(c, wire->id);
    if (ref != COORD__NO_REF || !make) {
        return ref;
    }
    struct coord__owner owner = {id, coord_view_text(&wire->instance_id, id, sizeof id), NULL};
    if (wire->incarnation.kind == COORD_KIND_TEXT) {
        size_t bytes = coord_view_text(&wire->incarnation, text, sizeof text);
        coord__incarnation(text, bytes, incarnation);
        owner.incarnation = incarnation;
    }
    size_t name_bytes = coord_view_text(&wire->subscription, name, sizeof name);
    return coord__report_add(c, wire->id, &owner, name, name_bytes);
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
    report->flags |= message->kind == COORD_ORPHANS_TABLE ? COORD__REPORT_SEEN : 0;
    report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_HINT;
    report->listed_at = c->now;
    if (resolved && !is_ahead(report, wire)) {
        report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_ABSENT; /* it was right to close it */
    }
    if (COORD__RULE(is_adopted, !newer(report, wire) && !closed_in_error(report, message, wire))) {
        return;
    }
    bool open = (report->flags & COORD__REPORT_OPEN) != 0;
    bool told = (report->flags & COORD__REPORT_TOLD) != 0;
    report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_ABSENT;
    report->fence = wire->fence;
    report->seq = wire->seq;
    copy_wire(c, report, message, wire);
    coord__report_set_open(c, report, !resolved);
    if (resolved && !told && !open) {
        return;
    }
    report->news = resolved         ? COORD_ORPHANS_RESOLVED
                   : !told || !open ? COORD_ORPHANS_OPENED
                                    : COORD_ORPHANS_UPDATED;
    report->flags |= COORD__REPORT_HEARD;
    coord__report_queue(c, ref);
}

/* Work of the same name is open by another report. */
static bool is_open_otherwise(const struct coord_coordinator *c, uint32_t ref)
{
    uint32_t other = c->names.name[c->reports.at[ref]->name]->reports;
    while (other != COORD__NO_REF &&
           (other == ref || (c->reports.at[other]->flags & COORD__REPORT_OPEN) == 0)) {
        other = c->reports.at[other]->next_of_name;
    }
    return other != COORD__NO_REF;
}

/* Does a hint open again what we have closed? Not if its sender has missed what was told since, and
 * has not heard the owner later either; nor if somebody else's report of the work is open. */
static bool opens_again(const struct coord_coordinator *c, uint32_t ref,
                        const struct coord_message *message, const struct coord_report_wire *wire)
{
    const struct coord__report *report = c->reports.at[ref];
    bool ahead =
        !is_ahead(report, wire) || local_time(c, message, wire->since_us) > report->resolved_at;
    return ahead && !is_open_otherwise(c, ref);
}

static void take_hint(struct coord_coordinator *c, const struct coord_message *message,
                      const struct coord_report_wire *wire)
{
    bool known = coord__report_find(c, wire->id) != COORD__NO_REF;
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
    if (!known || opens_again(c, ref, message, wire)) {
        copy_wire(c, report, message, wire);
        coord__report_reserve(c, report);
        coord__report_set_open(c, report, !coord__name_is_healthy(c, report->name));
    }
    bool open = (report->flags & COORD__REPORT_OPEN) != 0;
    coord__report_tell(c, ref, open ? COORD_ORPHANS_OPENED : COORD_ORPHANS_RESOLVED);
}

/* We have seen ourselves that its owner has left the work. */
static bool is_witnessed(const struct coord_coordinator *c, const struct coord__report *report)
{
    uint32_t ref = coord__report_owner(c, report);
    return ref != COORD__NO_REF &&
           (coord__peer_at(&c->peers, ref)->flags & COORD__PEER_COUNTED) == 0;
}

/* Closed without a word. If the host has heard that it is open, that gets the number behind the one
 * that was heard last. */
static void close_absent(struct coord_coordinator *c, uint32_t ref,
                         const struct coord_message *table)
{
    struct coord__report *report = c->reports.at[ref];
    coord__report_set_open(c, report, false);
    if ((report->flags & COORD__REPORT_TOLD) == 0) {
        return;
    }
    report->seq = table->fence > report->fence ? 0 : report->seq + 1;
    report->fence = table->fence;
    report->absent_us = table->sent_at_us;
    report->news = COORD_ORPHANS_RESOLVED;
    report->flags |= COORD__REPORT_HEARD | COORD__REPORT_ABSENT;
    coord__report_queue(c, ref);
}

/* An open report that the leader does not list. It is reminded of it each T, and answers. Without
 * an answer it is closed where it is known from hearsay alone, and the leader has listened since
 * before it came up; a reminder may get lost, three hardly. */
static void read_absent(struct coord_coordinator *c, uint32_t ref,
                        const struct coord_message *message)
{
    struct coord__report *report = c->reports.at[ref];
    bool young = message->judging && coord_ms_sub(c->now, report->since) < message->heard;
    bool in_vain = COORD__RULE(is_brought_up_first,
                               report->reminders >= REMINDERS && !is_witnessed(c, report));
    bool over = in_vain || coord__name_is_healthy(c, report->name);
    /* One that it told just now is in the next table, or not: this one may have been overtaken. */
    const coord_ms lately = coord_ms_sub(message->timeout, message->interval);
    if (report->listed_at != 0 && c->now < coord_ms_add(report->listed_at, lately)) {
        return;
    }
    if (report->fence != 0 && young && over) {
        close_absent(c, ref, message);
    } else if (COORD__RULE(is_hinted_at,
                           report->hinted_at == 0 ||
                               c->now >= coord_ms_add(report->hinted_at, c->config.timeout / 2))) {
        report->flags |= COORD__REPORT_HINT;
        report->reminders++;
        if (c->hint_at == COORD_NEVER) {
            c->hint_at = c->now + coord__random(c) % (c->config.interval / 2 + 1);
        }
    }
}

/* What the part of a table that covers it does not list. */
static void read_absence(struct coord_coordinator *c, const struct coord_message *message)
{
    for (uint32_t ref = 0; ref < c->reports.count; ref++) {
        struct coord__report *report = c->reports.at[ref];
        if (report == NULL) {
            continue;
        }
        bool seen = (report->flags & COORD__REPORT_SEEN) != 0;
        report->flags &= (uint16_t) ~(unsigned)COORD__REPORT_SEEN;
        if (seen) {
            report->hinted_at = 0;
            report->reminders = 0;
        } else if ((report->flags & COORD__REPORT_OPEN) != 0 &&
                   memcmp(report->id, message->first, COORD_REPORT_ID_BYTES) >= 0 &&
                   memcmp(report->id, message->last, COORD_REPORT_ID_BYTES) <= 0) {
            read_absent(c, ref, message);
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
