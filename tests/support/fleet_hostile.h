/* SPDX-License-Identifier: MIT
 * tests/support/fleet_hostile.h - what should not be on a fleet's topics, each with the reason
 * under which it is to be counted.
 */
#ifndef TEST_FLEET_HOSTILE_H
#define TEST_FLEET_HOSTILE_H

#include "coord/coordinator.h"

enum {
    FLEET_HOSTILE_MAX = 40,
    FLEET_HOSTILE_BYTES = 1 << 20
};

struct fleet_hostile {
    const char *what; /* in words */
    enum coord_message_type type;
    enum coord_message_fault fault; /* NONE: well formed, and refused for `refusal` */
    enum coord_refusal refusal;
    size_t count;
    const void *bytes; /* until the next call of its maker */
};

/** Bytes that are no message. @param out room for FLEET_HOSTILE_MAX. @return how many. */
size_t fleet_hostile_bytes(struct fleet_hostile *out);

/**
 * Messages that were good once, or seem to be, in the name of a peer that lives.
 *
 * @param beat  one of its heartbeats, which has been heard before.
 * @param out   room for FLEET_HOSTILE_MAX.
 * @return      how many.
 */
size_t fleet_hostile_replays(const void *beat, size_t count, struct fleet_hostile *out);

/** A table with nothing in it, of one who led long ago: believed, it would close every report. */
struct fleet_hostile fleet_hostile_table(void);

#endif /* TEST_FLEET_HOSTILE_H */
