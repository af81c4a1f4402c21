/* SPDX-License-Identifier: MIT
 * brokers/postgres_channel.c - statements under way, and the channels that are listened to.
 */
#include "brokers/postgres_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- statements */

bool coord__bus_has_room(const struct coord__bus_session *session)
{
    return session->job_count < COORD__POSTGRES_FLYING_MAX;
}

bool coord__bus_put_job(struct coord__bus_session *session, const struct coord__bus_job *job,
                        const struct coord__postgres_statement *statement, int count,
                        const char *const *values)
{
    COORD_ASSERT(coord__bus_has_room(session));
    if (!coord__postgres_send(session->link, statement, count, values)) {
        return false;
    }
    session->jobs[(session->first_job + session->job_count) % COORD__POSTGRES_FLYING_MAX] = *job;
    session->job_count++;
    session->messages += job->kind == COORD__BUS_JOB_NOTIFY ? 1 : 0;
    return true;
}

struct coord__bus_job coord__bus_take_job(struct coord__bus_session *session)
{
    COORD_ASSERT(session->job_count > 0);
    const struct coord__bus_job job = session->jobs[session->first_job];
    session->first_job = (session->first_job + 1) % COORD__POSTGRES_FLYING_MAX;
    session->job_count--;
    session->messages -= job.kind == COORD__BUS_JOB_NOTIFY ? 1 : 0;
    if (job.member != NULL) {
        job.member->flying--;
    }
    if (job.channel != NULL) {
        job.channel->asked = false;
    }
    return job;
}

/* ---------------------------------------------------------------- channels */

void coord__bus_free_channel(struct coord__bus_channel_state *channel)
{
    coord__bus_parts_clear(&channel->parts);
    free(channel);
}

static void use_channel(struct coord__bus_session *session, const char *topic)
{
    struct coord__bus_channel_state *c = session->channels;
    while (c != NULL && strcmp(c->topic, topic) != 0) {
        c = c->next;
    }
    if (c == NULL && (c = calloc(1, sizeof *c)) != NULL) {
        memcpy(c->topic, topic, strlen(topic) + 1);
        coord__bus_channel(topic, c->name);
        c->next = session->channels;
        session->channels = c;
    }
    if (c != NULL) {
        c->users++;
    }
}

void coord__bus_session_count(struct coord__bus_session *session)
{
    for (struct coord__bus_channel_state *c = session->channels; c != NULL; c = c->next) {
        c->users = 0;
    }
    for (const struct coord__bus_member *m = session->first; m != NULL; m = m->next) {
        const char *topic;
        for (size_t i = 0; (topic = coord_broker_topic(m->broker, i)) != NULL; i++) {
            use_channel(session, topic);
        }
    }
}

bool coord__bus_wants_word(const struct coord__bus_channel_state *c)
{
    return !c->asked && c->in_force != (c->users > 0);
}

/* LISTEN takes no parameter; a channel is letters, digits and underscores only. */
static void say_word(struct coord__bus_session *session, struct coord__bus_channel_state *c,
                     coord_ms now)
{
    const bool listen = c->users > 0;
    const struct coord__bus_job job = {.kind =
                                           listen ? COORD__BUS_JOB_LISTEN : COORD__BUS_JOB_UNLISTEN,
                                       .channel = c,
                                       .sent = now};
    snprintf(c->text, sizeof c->text, "%s %s", listen ? "listen" : "unlisten", c->name);
    c->statement = (struct coord__postgres_statement){0, NULL, c->text, 0, false};
    c->asked = coord__bus_put_job(session, &job, &c->statement, 0, NULL);
}

void coord__bus_tend_channels(struct coord__bus_session *session, coord_ms now)
{
    for (struct coord__bus_channel_state **at = &session->channels; *at != NULL;) {
        struct coord__bus_channel_state *c = *at;
        if (session->ready && coord__bus_wants_word(c) && coord__bus_has_room(session) &&
            now >= session->word_at) {
            say_word(session, c, now);
        }
        if (c->users == 0 && !c->asked && !c->in_force) {
            *at = c->next;
            coord__bus_free_channel(c);
        } else {
            at = &c->next;
        }
    }
}
