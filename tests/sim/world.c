/* SPDX-License-Identifier: MIT
 * tests/sim/world.c - the queue of events, the trace, the verdict.
 */
#include "tests/sim/world.h"

#include <inttypes.h>
#include <stdarg.h>

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_plan(struct sim_world *world, sim_us at, enum sim_event_kind kind, size_t index,
              uint32_t wake)
{
    COORD_ASSERT(world->event_count < SIM_EVENTS);
    const struct sim_event event = {.at = at < world->now ? world->now : at,
                                    .order = world->order++,
                                    .wake = wake,
                                    .index = (uint16_t)index,
                                    .kind = (uint8_t)kind};
    unsigned hole = world->event_count++;
    while (hole > 0 && before(&event, &world->events[(hole - 1) / 2])) {
        world->events[hole] = world->events[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    world->events[hole] = event;
}

bool sim_take(struct sim_world *world, struct sim_event *out)
{
    if (world->event_count == 0) {
        return false;
    }
    *out = world->events[0];
    const struct sim_event last = world->events[--world->event_count];
    unsigned hole = 0;
    for (;;) {
        unsigned child = 2 * hole + 1;
        if (child >= world->event_count) {
            break;
        }
        if (child + 1 < world->event_count &&
            before(&world->events[child + 1], &world->events[child])) {
            child++;
        }
        if (!before(&world->events[child], &last)) {
            break;
        }
        world->events[hole] = world->events[child];
        hole = child;
    }
    world->events[hole] = last;
    return true;
}

const char *sim_verb_name(enum coord_verb verb)
{
    static const char *const names[] = {"nothing", "acquire", "renew", "release",
                                        "undo",    "observe", "ask",   "init"};
    return names[verb];
}

const char *sim_outcome_name(enum coord_outcome outcome)
{
    static const char *const names[] = {"?",        "GRANTED",      "HELD",    "FREE",
                                        "RESERVED", "DEAD_ATTEMPT", "RENEWED", "LOST",
                                        "DONE",     "NOBODY",       "FAILED",  "UNKNOWN"};
    return names[outcome];
}

static void print_time(struct sim_world *world)
{
    fprintf(world->trace, "%7" PRIu64 ".%03" PRIu64 " ", world->now / 1000, world->now % 1000);
}

void sim_trace(struct sim_world *world, const char *format, ...)
{
    if (world->trace == NULL) {
        return;
    }
    va_list arguments;
    print_time(world);
    va_start(arguments, format);
    vfprintf(world->trace, format, arguments);
    va_end(arguments);
    fputc('\n', world->trace);
}

/* The first broken promise is the verdict; what follows from it is noise. */
void sim_broke(struct sim_world *world, enum sim_promise promise, const char *format, ...)
{
    struct sim_check *check = &world->check;
    if (check->broken != SIM_KEPT) {
        return;
    }
    va_list arguments;
    check->broken = promise;
    check->broken_at = world->now;
    va_start(arguments, format);
    vsnprintf(check->text, sizeof check->text, format, arguments);
    va_end(arguments);
    world->over = true;
    SIM_TRACE(world, "BROKEN %s: %s", sim_promise_name(promise), check->text);
}
