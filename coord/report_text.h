/* SPDX-License-Identifier: MIT
 * coord/report_text.h - an orphan report as one line of text: JSON, or a CloudEvent around it.
 *
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 */
#ifndef COORD_REPORT_TEXT_H
#define COORD_REPORT_TEXT_H

#include "coord/coordinator.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD_REPORT_EVENT_ID_MAX = 80,   /* REPORT_ID.FENCE.SEQ and the NUL */
    COORD_REPORT_TEXT_MAX = 16 * 1024 /* the longest line, its end and the NUL */
};

enum coord_report_form {
    COORD_REPORT_JSON = 0,       /* one object a line */
    COORD_REPORT_CLOUDEVENTS = 1 /* CloudEvents 1.0, structured mode: the object is its data */
};

/** One event of a report. Everything is borrowed. */
struct coord_report {
    enum coord_orphans_kind kind; /* OPENED, UPDATED, RESOLVED, or TABLE: it is open */
    const struct coord_orphan *orphan;
    const char *fleet;       /* UTF-8; the same wherever the fleet is reported. NULL: "fleet" */
    const char *reporter;    /* UTF-8; the id of who writes this; NULL: unknown */
    const char *type_prefix; /* of CloudEvents; a domain of yours, reversed. NULL: "coord" */
    coord_ms now;            /* the clock that orphan's times are of */
    int64_t wall;            /* us since the epoch at `now` */
};

/**
 * The report of an event of the coordinator, or of an agent.
 *
 * @param out  kind and orphan are written; the rest is left.
 * @return     false: it is no report.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#reports, tests/unit/test_report_text.c.
 */
COORD_API bool coord_report_of(const struct coord_event *event, struct coord_report *out);

/** REPORT_ID.FENCE.SEQ: the same wherever this event is heard. @param out COORD_REPORT_EVENT_ID_MAX
 * bytes. */
COORD_API void coord_report_event_id(const struct coord_orphan *orphan, char *out);

/**
 * Write one line, with its end and a NUL.
 *
 * @param out    room for COORD_REPORT_TEXT_MAX; written on success.
 * @param bytes  the length without the NUL; written on success.
 * @return       COORD_OK, or LIMIT: the texts are too long.
 * Thread: any.   Blocks: never.   Allocates: never.   Calls back: never.
 * Source: docs/fleet.md#reports, tests/unit/test_report_text.c.
 */
COORD_API COORD_MUST_CHECK enum coord_err coord_report_text(const struct coord_report *report,
                                                            enum coord_report_form form, char *out,
                                                            size_t *bytes);

/** An instant as RFC 3339 in UTC with milliseconds. @param out COORD_TIME_TEXT_MAX bytes. */
COORD_API void coord_report_time(int64_t epoch_us, char *out);

/** "open" for a table's, else the word of the kind, such as "resolved". */
COORD_API const char *coord_report_kind_name(enum coord_orphans_kind kind);

#ifdef __cplusplus
}
#endif
#endif /* COORD_REPORT_TEXT_H */
