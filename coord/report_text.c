/* SPDX-License-Identifier: MIT
 * coord/report_text.c - the members of a report and of the envelope around it.
 */
#include "coord/report_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SOURCE_MAX = 1024,
    MILLISECONDS = 23 /* characters up to and with them */
};

bool coord_report_of(const struct coord_event *event, struct coord_report *out)
{
    switch ((int)event->kind) {
    case COORD_EVENT_ORPHAN_OPENED:
        out->kind = COORD_ORPHANS_OPENED;
        break;
    case COORD_EVENT_ORPHAN_UPDATED:
        out->kind = COORD_ORPHANS_UPDATED;
        break;
    case COORD_EVENT_ORPHAN_RESOLVED:
        out->kind = COORD_ORPHANS_RESOLVED;
        break;
    default:
        return false;
    }
    out->orphan = &event->orphan;
    return true;
}

void coord_report_event_id(const struct coord_orphan *orphan, char *out)
{
    char id[COORD_REPORT_ID_TEXT];
    coord_report_id_text(orphan->report_id, id);
    (void)snprintf(out, COORD_REPORT_EVENT_ID_MAX, "%s.%" PRIu64 ".%" PRIu64, id, orphan->fence,
                   orphan->seq);
}

const char *coord_report_kind_name(enum coord_orphans_kind kind)
{
    return kind == COORD_ORPHANS_TABLE ? "open" : coord_orphans_kind_name(kind);
}

/* ---- small parts ---- */

void coord_report_time(int64_t epoch_us, char *out)
{
    (void)coord_time_text_stamp(epoch_us, out);
    memcpy(out + MILLISECONDS, "Z", 2);
}

static void text(struct coord_writer *w, const char *what)
{
    coord_write_text(w, what, strlen(what));
}

static void member(struct coord_writer *w, const char *key, const char *value)
{
    text(w, key);
    if (value != NULL) {
        text(w, value);
    } else {
        coord_write_null(w);
    }
}

static void number(struct coord_writer *w, const char *key, uint64_t value)
{
    text(w, key);
    coord_write_natural(w, value);
}

static void instant(struct coord_writer *w, const char *key, int64_t epoch_us)
{
    char at[COORD_TIME_TEXT_MAX];
    coord_report_time(epoch_us, at);
    member(w, key, at);
}

/* An instant of our clock; COORD_NEVER: null. */
static void moment(struct coord_writer *w, const struct coord_report *report, const char *key,
                   coord_ms at)
{
    if (at == COORD_NEVER) {
        member(w, key, NULL);
    } else {
        instant(w, key, coord_time_at(report->wall, report->now, at));
    }
}

/* Work that is surely given up is less of an alarm than work whose owner fell silent. */
static const char *severity(const struct coord_report *report)
{
    if (report->kind == COORD_ORPHANS_RESOLVED) {
        return "INFO";
    }
    return report->orphan->certainty == COORD_SUSPECTED ||
                   report->orphan->cause == COORD_CAUSE_OVERRUN
               ? "ERROR"
               : "WARN";
}

/* ---- the object ---- */

static void write_peer(struct coord_writer *w, const struct coord_orphan *orphan)
{
    char incarnation[COORD_OWNER_HEX];
    coord_report_id_text(orphan->incarnation, incarnation); /* of as many bytes */
    text(w, "peer");
    coord_write_map(w, 2);
    text(w, "instance_id");
    coord_write_text(w, orphan->instance_id, orphan->instance_id_bytes);
    member(w, "incarnation", orphan->has_incarnation ? incarnation : NULL);
    coord_write_end(w);
}

static void write_object(struct coord_writer *w, const struct coord_report *report)
{
    const struct coord_orphan *orphan = report->orphan;
    char id[COORD_REPORT_EVENT_ID_MAX];
    coord_report_event_id(orphan, id);
    coord_write_map(w, 18);
    member(w, "kind", coord_report_kind_name(report->kind));
    member(w, "id", id);
    coord_report_id_text(orphan->report_id, id);
    member(w, "report_id", id);
    number(w, "fence", orphan->fence);
    number(w, "seq", orphan->seq);
    member(w, "fleet", report->fleet != NULL ? report->fleet : "fleet");
    member(w, "reporter", report->reporter);
    write_peer(w, orphan);
    text(w, "subscription");
    coord_write_text(w, orphan->subscription, orphan->subscription_bytes);
    member(w, "cause", coord_cause_name(orphan->cause));
    member(w, "certainty", coord_certainty_name(orphan->certainty));
    member(w, "severity", severity(report));
    moment(w, report, "since", orphan->since);
    moment(w, report, "deadline", orphan->deadline);
    moment(w, report, "safe_after", orphan->safe_after);
    if (orphan->safe_after == COORD_NEVER) {
        member(w, "safe_in_ms", NULL);
    } else {
        number(w, "safe_in_ms", coord_ms_sub(orphan->safe_after, report->now));
    }
    number(w, "age_ms", coord_ms_sub(report->now, orphan->since));
    instant(w, "reported_at", report->wall);
    coord_write_end(w);
}

/* ---- the envelope ---- */

/* A segment of a URI reference. */
static void percent(const char *from, char *out, size_t room)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;
    for (; *from != '\0' && used + 4 <= room; from++) {
        unsigned char c = (unsigned char)*from;
        if (strchr(plain, c) != NULL) {
            out[used++] = (char)c;
        } else {
            out[used++] = '%';
            out[used++] = digits[c >> 4];
            out[used++] = digits[c & 15];
        }
    }
    out[used] = '\0';
}

/* Numbers that sort as text do. */
static void padded(struct coord_writer *w, const char *key, uint64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%020" PRIu64, value);
    member(w, key, digits);
}

static void write_envelope(struct coord_writer *w, const struct coord_report *report)
{
    const struct coord_orphan *orphan = report->orphan;
    char source[SOURCE_MAX];
    char type[256];
    char id[COORD_REPORT_EVENT_ID_MAX];
    /* (source, id) is what consumers tell events apart by: nothing of who writes it is in there. */
    memcpy(source, "/coord/", sizeof "/coord/");
    percent(report->fleet != NULL ? report->fleet : "fleet", source + strlen(source),
            sizeof source - strlen(source));
    (void)snprintf(type, sizeof type, "%s.orphan.%s.v1",
                   report->type_prefix != NULL ? report->type_prefix : "coord",
                   coord_report_kind_name(report->kind));
    coord_report_event_id(orphan, id);
    coord_write_map(w, 11);
    member(w, "specversion", "1.0");
    member(w, "id", id);
    member(w, "source", source);
    member(w, "type", type);
    text(w, "subject");
    coord_write_text(w, orphan->instance_id, orphan->instance_id_bytes);
    instant(w, "time", report->wall);
    member(w, "datacontenttype", "application/json");
    padded(w, "fence", orphan->fence);
    padded(w, "sequence", orphan->seq);
    member(w, "severitytext", severity(report));
    text(w, "data");
    write_object(w, report);
    coord_write_end(w);
}

enum coord_err coord_report_text(const struct coord_report *report, enum coord_report_form form,
                                 char *out, size_t *bytes)
{
    struct coord_writer writer;
    coord_writer_begin(&writer, COORD_FORM_JSON, out, COORD_REPORT_TEXT_MAX - 2);
    if (form == COORD_REPORT_CLOUDEVENTS) {
        write_envelope(&writer, report);
    } else {
        write_object(&writer, report);
    }
    size_t used = 0;
    enum coord_err rc = coord_writer_finish(&writer, &used);
    if (rc != COORD_OK) {
        return rc;
    }
    memcpy(out + used, "\n", 2);
    *bytes = used + 1;
    return COORD_OK;
}
