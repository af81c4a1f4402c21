/* SPDX-License-Identifier: MIT
 * tests/support/file_world.h - a file in memory, and machines of the file elector's protocol on it.
 *
 * Machines can be stopped between any two calls of the file; one that dies loses its locks. Time
 * stands unless a test moves it, and a machine sees the time that it last read.
 */
#ifndef TEST_FILE_WORLD_H
#define TEST_FILE_WORLD_H

#include "electors/file_terms.h"

#define LEASE   1000
#define WALL_US UINT64_C(1800000000000000)

enum {
    FILES = 4,
    LOCKS = 160,
    MACHINES = 4
};

struct disk_file {
    uint8_t bytes[COORD__FILE_BYTES];
    struct {
        uint64_t number;
        const void *owner; /* NULL: unused */
    } locks[LOCKS];
};

struct disk {
    struct disk_file files[FILES];
    int path; /* which file lies under the path; -1: none */
    int made;
    unsigned torn_reads; /* so many reads of a slot are torn */
    unsigned touches;
    bool full;
};

struct machine {
    struct coord__file_terms terms;
    int open; /* which file; -1: none */
    uint64_t ids;
    uint64_t calls;
    uint64_t writes;
    coord_ms now; /* what it believes the time to be: the last one that it read */
};

extern struct disk disk;
extern struct machine machines[MACHINES]; /* a, b, c, d */
extern coord_ms now;

#define A (&machines[0])
#define B (&machines[1])
#define C (&machines[2])

/** For cmocka: nothing on the disk, four new machines. */
int world_setup(void **state);

/** Begin a request at the present time. */
void begin(struct machine *m, struct coord_request request);

/** One step; fails if it makes more than one call of the file. */
enum coord__file_step step(struct machine *m);

/** Step until it is answered. */
const struct coord_reply *finish(struct machine *m);

/** Run until the next step would make the n-th write from here. */
void stop_before_write(struct machine *m, int nth);

/** Run until the next step would lock the byte of the new term. */
void stop_before_lock(struct machine *m);

const struct coord_reply *acquire(struct machine *m, uint64_t attempt);
void begin_renew(struct machine *m, bool led);
const struct coord_reply *renew(struct machine *m, bool led);
const struct coord_reply *release(struct machine *m, const char *to);

/** OBSERVE, INIT, or an ASK without a fence. */
const struct coord_reply *ask(struct machine *m, enum coord_verb verb);

/** The process dies; another one begins in its place. */
void kill_machine(struct machine *m);

/** Put a clear record where nothing was, and let one lead. @return its fence. */
uint64_t lead(struct machine *m);

/** The file under the path, and a block of its ring. */
struct disk_file *file_there(void);
uint8_t *slot_bytes(uint64_t number);

/** Is this byte locked by anybody? */
bool byte_locked(uint64_t number);

/** Lock a byte, or free all that it has locked, in the name of somebody else. */
void lock_for(const void *owner, uint64_t number);
void free_locks(const void *owner);

#endif /* TEST_FILE_WORLD_H */
