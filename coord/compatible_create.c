/* SPDX-License-Identifier: MIT
 * coord/compatible_create.c - what the seed library's create_* calls write, and the hand-over.
 */
#include "coord/compatible_inside.h"

#include <string.h>

#define SECOND_US INT64_C(1000000)

static struct coord_value of_integer(int64_t value)
{
    struct coord_value view = {.kind = COORD_KIND_INTEGER};
    view.of.integer = value;
    return view;
}

static struct coord_value of_real(double value)
{
    struct coord_value view = {.kind = COORD_KIND_REAL};
    view.of.real = value;
    return view;
}

static struct coord_value of_boolean(bool value)
{
    struct coord_value view = {.kind = COORD_KIND_BOOLEAN};
    view.of.boolean = value;
    return view;
}

/* `text` keeps what the view shows. false: no year has this instant. */
static bool of_time(int64_t wall, char *text, struct coord_value *out)
{
    struct coord_time time = coord_time_utc(wall);
    size_t bytes = coord_time_text_write(&time, text);
    *out = coord_text(text, bytes);
    return bytes > 0;
}

static void begin(struct coord_record *record, enum coord_message_type type)
{
    memset(record, 0, sizeof *record);
    record->type = type;
    (void)coord__fields(type, &record->fields);
}

enum coord_err coord_compatible_create_heartbeat(struct coord_compatible *coordinator,
                                                 const struct coord_value *subscriptions,
                                                 int64_t in_flight_count, double load_factor,
                                                 int64_t wall, enum coord_form form, void *buffer,
                                                 size_t room, size_t *bytes)
{
    const struct coord_leadership *leadership = coordinator->config.leadership;
    uint64_t fence = 0;
    bool leading = leadership != NULL && leadership->is_leader(leadership->ctx, &fence);
    struct coord_record record;
    char text[COORD_TIME_TEXT_MAX];
    begin(&record, COORD_MESSAGE_HEARTBEAT);
    if (!of_time(wall, text, &record.field[COORD_HEARTBEAT_TIMESTAMP])) {
        return COORD_E_BAD_ARGUMENT;
    }
    record.field[COORD_HEARTBEAT_INSTANCE_ID] = coordinator->self;
    record.field[COORD_HEARTBEAT_SUBSCRIPTIONS] = *subscriptions;
    record.field[COORD_HEARTBEAT_IN_FLIGHT_COUNT] = of_integer(in_flight_count);
    record.field[COORD_HEARTBEAT_IS_LEADER] = of_boolean(leading);
    record.field[COORD_HEARTBEAT_LOAD_FACTOR] = of_real(load_factor);
    return coord_record_write(&record, form, buffer, room, bytes);
}

/* Seconds to microseconds, halves to the even one, as the seed library's clock does. */
static bool to_us(double seconds, int64_t *out)
{
    if (!(seconds > -4e11) || !(seconds < 4e11)) {
        return false; /* further than from year 1 to year 9999, or no number */
    }
    int64_t whole = (int64_t)seconds;
    double part = (seconds - (double)whole) * 1e6;
    int64_t us = (int64_t)part;
    double rest = part - (double)us;
    double size = rest < 0 ? -rest : rest;
    bool odd = us % 2 != 0;
    if (size > 0.5 || (size >= 0.5 && odd)) {
        us += rest < 0 ? -1 : 1;
    }
    *out = whole * SECOND_US + us;
    return true;
}

enum coord_err coord_compatible_create_shutdown_notification(
    struct coord_compatible *coordinator, const struct coord_compatible_drain *drain, int64_t wall,
    enum coord_form form, void *buffer, size_t room, size_t *bytes)
{
    struct coord_record record;
    char initiated[COORD_TIME_TEXT_MAX];
    char completion[COORD_TIME_TEXT_MAX];
    int64_t length = 0;
    const char *intent = coord_intent_name(drain->intent);
    begin(&record, COORD_MESSAGE_SHUTDOWN);
    if (!to_us(drain->drain_s, &length) ||
        !of_time(wall, initiated, &record.field[COORD_SHUTDOWN_INITIATED_AT]) ||
        !of_time(wall + length, completion, &record.field[COORD_SHUTDOWN_EXPECTED_COMPLETION_AT])) {
        return COORD_E_BAD_ARGUMENT;
    }
    record.field[COORD_SHUTDOWN_INSTANCE_ID] = coordinator->self;
    record.field[COORD_SHUTDOWN_INTENT] = coord_text(intent, strlen(intent));
    record.field[COORD_SHUTDOWN_SUBSCRIPTIONS] = drain->subscriptions;
    record.field[COORD_SHUTDOWN_IN_FLIGHT_COUNT] = of_integer(drain->in_flight_count);
    record.field[COORD_SHUTDOWN_METADATA] = drain->metadata;
    size_t count = 0;
    enum coord_err err = coord_record_write(&record, form, buffer, room, &count);
    if (err == COORD_OK) {
        err = coord__keep(&coordinator->notice, COORD_MESSAGE_SHUTDOWN, buffer, count);
    }
    if (err == COORD_OK) {
        coordinator->shutting_down = true;
        *bytes = count;
    }
    return err;
}

enum coord_err coord_compatible_create_work_assignment(struct coord_compatible *coordinator,
                                                       const char *target,
                                                       const struct coord_value *subscriptions,
                                                       int64_t priority, int64_t wall,
                                                       enum coord_form form, void *buffer,
                                                       size_t room, size_t *bytes)
{
    struct coord_record record;
    char text[COORD_TIME_TEXT_MAX];
    size_t target_bytes = strlen(target);
    begin(&record, COORD_MESSAGE_WORK_ASSIGNMENT);
    if (target_bytes == 0 || target_bytes > COORD_NAME_MAX ||
        !of_time(wall, text, &record.field[COORD_ASSIGNMENT_ASSIGNED_AT])) {
        return COORD_E_BAD_ARGUMENT;
    }
    if (!coord_leadership_verify(coordinator->config.leadership)) {
        return COORD_E_NOT_LEADER;
    }
    record.field[COORD_ASSIGNMENT_TARGET_INSTANCE_ID] = coord_text(target, target_bytes);
    record.field[COORD_ASSIGNMENT_SUBSCRIPTIONS] = *subscriptions;
    record.field[COORD_ASSIGNMENT_SOURCE_INSTANCE_ID] = coordinator->self;
    record.field[COORD_ASSIGNMENT_PRIORITY] = of_integer(priority);
    return coord_record_write(&record, form, buffer, room, bytes);
}

bool coord_compatible_verify_leadership_lease(struct coord_compatible *coordinator)
{
    return coordinator->config.leadership != NULL &&
           coord_leadership_verify(coordinator->config.leadership);
}

enum coord_err coord_compatible_initiate_leadership_handoff(struct coord_compatible *coordinator)
{
    if (!coord_compatible_verify_leadership_lease(coordinator)) {
        return COORD_E_NOT_LEADER;
    }
    const struct coord_leadership *leadership = coordinator->config.leadership;
    return leadership->release(leadership->ctx);
}
