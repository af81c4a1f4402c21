/* SPDX-License-Identifier: MIT
 * electors/file_terms.h - the protocol of the file elector: terms, their bytes and their slots.
 *
 * It is a machine of steps over an injected file: each step makes at most one call of struct
 * coord__file_io, so that a process can be stopped between any two, and has no clock. The real
 * file is electors/file_io.c; the simulator brings its own and runs the same machine.
 *
 * Term n owns byte n of the file, as a lock that dies with its process, and slot n mod 64, which
 * only its holder writes. Nobody holds a lock across a write that others need. To take over: lock
 * byte n + 1, write its slot, look for a higher term, then wait until every earlier one is free or
 * past. To renew: write, then look for a higher term, and only then believe it.
 */
#ifndef COORD_ELECTORS_FILE_TERMS_H
#define COORD_ELECTORS_FILE_TERMS_H

#include "coord/store.h"
#include "electors/file_slot.h"

#ifdef __cplusplus
extern "C" {
#endif

enum coord__file_mode {
    COORD__FILE_READ = 1,  /* reading is enough; what is not there is not made */
    COORD__FILE_WRITE = 2, /* ... with the right to write */
    COORD__FILE_CREATE = 3 /* ... and made where it is missing, folder and all */
};

/**
 * The file, one operation a call; none waits. All but the last two return COORD_OK, or fill in
 * *error and return its code. Locks belong to the open file: what is opened twice excludes itself.
 */
struct coord__file_io {
    void *ctx;
    /* Make sure that what is open is what lies under the path just now; if not, that is opened and
     * the other one closed, which frees its locks. *inode tells which file it is.
     * NOT_INITIALISED: no file lies there (READ, WRITE). */
    enum coord_err (*open)(void *ctx, enum coord__file_mode mode, uint64_t *inode,
                           struct coord_error *error);
    /* Does the path still lead to what is open? FOREIGN_RECORD: not any more. */
    enum coord_err (*check)(void *ctx, struct coord_error *error);
    /* Lock a byte; *taken tells whether it is ours now. */
    enum coord_err (*lock)(void *ctx, uint64_t number, bool *taken, struct coord_error *error);
    /* Some byte from first to last that another open file has locked; *number = 0: none. */
    enum coord_err (*locked)(void *ctx, uint64_t first, uint64_t last, uint64_t *number,
                             struct coord_error *error);
    /* Read whole blocks; what lies past the end of the file reads as zero. May be torn. */
    enum coord_err (*read)(void *ctx, unsigned block, unsigned count, uint8_t *bytes,
                           struct coord_error *error);
    /* Write that many bytes from the beginning of a block. */
    enum coord_err (*write)(void *ctx, unsigned block, const uint8_t *from, size_t bytes,
                            struct coord_error *error);
    void (*unlock)(void *ctx, uint64_t number);
    /* Wake those who watch the file. */
    void (*touch)(void *ctx);
};

enum {
    COORD__FILE_CHUNK = COORD__FILE_SLOTS, /* blocks of one read, at most */
    COORD__FILE_REREADS = 4                /* of a torn slot, before it counts as damaged */
};

struct coord__file_config {
    struct coord__file_io io;
    struct coord__file_place place; /* its inode is found out */
    coord_ms lease;                 /* our own L */
    const char *identity;           /* escaped; copied */
    uint8_t owner[COORD_OWNER_BYTES];
    const void *metadata; /* kept */
    size_t metadata_bytes;
    unsigned chunk; /* slots of one read, 1 to COORD__FILE_CHUNK; 0: the most */
};

enum coord__file_step {
    COORD__FILE_MORE = 1,  /* call again, also with the same time */
    COORD__FILE_FRESH = 2, /* call again, with a time that was read after this call */
    COORD__FILE_DONE = 3   /* the reply is there; or there is nothing to do */
};

/** Something that cannot be judged by a time in it: since when it has not changed. */
struct coord__file_sight {
    uint64_t number;
    uint64_t checksum; /* 0: a lock without a slot */
    coord_ms since;
};

/** Our own term. */
struct coord__file_mine {
    struct coord__file_term term; /* number 0: none, and no byte is locked */
    uint64_t attempt;
    bool lost; /* it answers no; the byte stays locked until the host has acknowledged that */
};

/** Fields are for electors/file_*.c and for tests. Some 36 KiB, so better not on a small stack. */
struct coord__file_terms {
    struct coord__file_config config;
    struct coord__file_place place;
    uint8_t identity[COORD_NAME_MAX];
    size_t identity_bytes;
    struct coord__file_mine mine;
    struct coord__file_sight sights[COORD__FILE_SLOTS];

    struct coord_request request; /* verb NONE: idle */
    uint8_t successor[COORD_NAME_MAX];
    size_t successor_bytes;
    unsigned phase;
    bool fresh;   /* the time of this step was read after everything that is known */
    int restarts; /* of the present acquire: others were faster */

    /* What was read. */
    struct coord__file_term ring[COORD__FILE_SLOTS]; /* number 0: empty or torn */
    bool torn[COORD__FILE_SLOTS];
    unsigned cursor;  /* the next slot to read */
    unsigned rereads; /* of the slot at the cursor */
    uint64_t newest;  /* the highest number in a sound slot; 0: none */
    uint64_t top;     /* the highest number at all: a slot's or a lock's */
    bool held;        /* the newest one's byte is locked */
    bool for_us;      /* its texts name us as successor */

    /* What is to be taken. */
    uint64_t number;
    bool half;           /* its byte is ours, but it is not granted yet */
    uint64_t busy;       /* a bit for each slot whose former term may still write to it */
    coord_ms debt_until; /* what the new slot has to say */
    bool foreign;        /* the fence has to leap: no record, or not one of this run */

    /* Parts that several verbs have. */
    unsigned then;       /* the phase that follows */
    unsigned then_found; /* look: the phase after a higher number; locks: that of each byte */
    uint64_t above;      /* look: is there a number above it? */
    bool look_locks;     /* ... also a locked byte */
    bool look_fences;    /* ... and what is the highest fence below it? */
    uint64_t low;        /* locks: the lowest locked byte is sought from low to high ... */
    uint64_t high;
    uint64_t last;                   /* ... and the others up to last */
    uint64_t found;                  /* the lowest so far; 0: none */
    struct coord__file_term earlier; /* what its slot says; number 0: nothing sound */
    coord_ms wait_until;

    struct coord_reply reply;
    struct coord_observation leader;
    char asked_for[COORD_ESCAPED_MAX];
    uint8_t blocks[COORD__FILE_CHUNK * COORD__FILE_BLOCK];
};

/** Put a machine into its first state: nothing held. Thread: confined. Allocates: never. */
void coord__file_terms_init(struct coord__file_terms *terms,
                            const struct coord__file_config *config);

/** Begin one request; another one must not be outstanding. Its texts are copied. */
void coord__file_terms_begin(struct coord__file_terms *terms, const struct coord_request *request);

/**
 * Do one step of it.
 *
 * @param now      ms of CLOCK_BOOTTIME; it may be old, but see COORD__FILE_FRESH.
 * @param wall_us  the store's wall clock, since 1970.
 * @return         DONE: coord__file_terms_reply() has the answer, until the next begin().
 * Thread: confined.   Blocks: never.   Allocates: never.   Calls back: config.io, at most once.
 * Source: docs/guarantees.md#takeover, tests/unit/test_file_terms.c.
 */
enum coord__file_step coord__file_terms_step(struct coord__file_terms *terms, coord_ms now,
                                             uint64_t wall_us);

/** The answer; its leader and asked_for lie in `terms`. */
const struct coord_reply *coord__file_terms_reply(const struct coord__file_terms *terms);

/** Forget the outstanding request, wherever it is. What it locked is freed by the next acquire. */
void coord__file_terms_abandon(struct coord__file_terms *terms);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTORS_FILE_TERMS_H */
