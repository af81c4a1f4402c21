/* SPDX-License-Identifier: MIT
 * runtime/sink_queue.c - reports that wait, for their turn or to be tried again. One that fails
 * keeps no other waiting but those of its own orphan.
 */
#include "runtime/sink_inside.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RETRY_FIRST = 250, /* ms */
    RETRY_MAX = 10000
};

static char *keep(char **at, const char *text, size_t bytes)
{
    char *kept = *at;
    memcpy(kept, text, bytes);
    kept[bytes] = '\0';
    *at += bytes + 1;
    return kept;
}

static struct coord__post *copy_report(const struct coord_report *report)
{
    const struct coord_orphan *o = report->orphan;
    const size_t fleet = report->fleet != NULL ? strlen(report->fleet) : 0;
    const size_t reporter = report->reporter != NULL ? strlen(report->reporter) : 0;
    struct coord__post *post =
        malloc(sizeof *post + o->instance_id_bytes + o->subscription_bytes + fleet + reporter + 4);
    if (post == NULL) {
        return NULL;
    }
    char *at = post->texts;
    *post = (struct coord__post){.pause = RETRY_FIRST};
    post->report = *report;
    post->orphan = *o;
    post->report.orphan = &post->orphan;
    post->orphan.instance_id = keep(&at, o->instance_id, o->instance_id_bytes);
    post->orphan.subscription = keep(&at, o->subscription, o->subscription_bytes);
    post->report.fleet = report->fleet != NULL ? keep(&at, report->fleet, fleet) : NULL;
    post->report.reporter = report->reporter != NULL ? keep(&at, report->reporter, reporter) : NULL;
    return post;
}

static bool same_orphan(const struct coord__post *a, const struct coord__post *b)
{
    return memcmp(a->orphan.report_id, b->orphan.report_id, COORD_REPORT_ID_BYTES) == 0;
}

/* Who was never told that it opened hears of it with what comes next. */
static void take_over(const struct coord__post *old, struct coord__post *later)
{
    if (old->report.kind == COORD_ORPHANS_OPENED && later->report.kind != COORD_ORPHANS_RESOLVED) {
        later->report.kind = COORD_ORPHANS_OPENED;
    }
}

/* A later report takes the place of one that waits. @return false: none of its id waits. */
static bool merge(struct coord_sink *sink, struct coord__post *post)
{
    struct coord__post **at = &sink->first;
    while (*at != NULL && !same_orphan(*at, post)) {
        at = &(*at)->next;
    }
    struct coord__post *old = *at;
    if (old == NULL) {
        return false;
    }
    sink->counts.merged++;
    if (old->report.kind == COORD_ORPHANS_OPENED && post->report.kind == COORD_ORPHANS_RESOLVED &&
        old->until == 0) {
        *at = old->next; /* nobody has to hear of either */
        sink->counts.waiting--;
        sink->counts.merged++;
        free(post);
    } else {
        take_over(old, post);
        post->next = old->next;
        *at = post;
    }
    free(old);
    return true;
}

static void append(struct coord_sink *sink, struct coord__post *post)
{
    struct coord__post **at = &sink->first;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = post;
    sink->counts.waiting++;
}

void coord_sink_put(struct coord_sink *sink, const struct coord_report *report, bool led)
{
    COORD_ASSERT(sink->magic == COORD__SINK_MAGIC);
    if ((sink->config.leader_only && !led) || sink->process != getpid()) {
        return;
    }
    struct coord__post *post = copy_report(report);
    pthread_mutex_lock(&sink->lock);
    const bool full = sink->counts.waiting >= sink->config.queue_max;
    if (post == NULL) {
        sink->counts.dropped++;
    } else if ((sink->argv != NULL || full) && merge(sink, post)) {
        /* it has taken its place */
    } else if (full) {
        sink->counts.dropped++;
        free(post);
    } else {
        append(sink, post);
    }
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
}

/* ---------------------------------------------------------------- taking */

static bool waits_behind(const struct coord_sink *sink, const struct coord__post *post)
{
    const struct coord__post *before = sink->first;
    while (before != post && !same_orphan(before, post)) {
        before = before->next;
    }
    return before != post;
}

struct coord__post *coord__sink_take(struct coord_sink *sink, coord_ms now, coord_ms *at)
{
    *at = COORD_NEVER;
    for (struct coord__post **link = &sink->first; *link != NULL; link = &(*link)->next) {
        struct coord__post *post = *link;
        if (now < post->not_before) {
            *at = coord_ms_min(*at, post->not_before);
        } else if (!waits_behind(sink, post)) {
            *link = post->next;
            sink->counts.waiting--;
            sink->counts.retried += post->until > 0 ? 1 : 0;
            post->until = post->until > 0 ? post->until : coord_ms_add(now, sink->config.retry_for);
            return post;
        }
    }
    return NULL;
}

void coord__sink_again(struct coord_sink *sink, struct coord__post *post, coord_ms now)
{
    struct coord__post *later = sink->first;
    while (later != NULL && !same_orphan(later, post)) {
        later = later->next;
    }
    if (later != NULL) {
        take_over(post, later);
        sink->counts.merged++;
        free(post);
    } else if (coord_ms_add(now, post->pause) > post->until) {
        sink->counts.failed++;
        free(post);
    } else {
        post->not_before = coord_ms_add(now, post->pause);
        post->pause = coord_ms_min(2 * post->pause, RETRY_MAX);
        post->next = sink->first;
        sink->first = post;
        sink->counts.waiting++;
    }
}
