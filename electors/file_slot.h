/* SPDX-License-Identifier: MIT
 * electors/file_slot.h - the records of an election's file: header, step-down request, terms.
 *
 * A file is COORD__FILE_BLOCKS blocks of 256 bytes: the header, the step-down request, the ring of
 * slots, one block each, and for each slot its texts. Each record carries its kind, its format
 * version, how much of it is used, and a checksum over that, at places that never change: so an
 * older member tells a newer format from damage. Numbers are little-endian. A slot lies within one
 * page of memory, and all slots together are read by one call.
 */
#ifndef COORD_ELECTORS_FILE_SLOT_H
#define COORD_ELECTORS_FILE_SLOT_H

#include "coord/base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COORD__FILE_FORMAT = 1, /* what we write; we read it and everything before it */
    COORD__FILE_BLOCK = 256,
    COORD__FILE_SLOTS = 64,
    COORD__FILE_HEADER_AT = 0, /* block numbers */
    COORD__FILE_HEADER_BLOCKS = 2,
    COORD__FILE_ASK_AT = 8,
    COORD__FILE_ASK_BLOCKS = 2,
    COORD__FILE_SLOTS_AT = 16,
    COORD__FILE_TEXTS_AT = COORD__FILE_SLOTS_AT + COORD__FILE_SLOTS,
    COORD__FILE_TEXTS_BLOCKS = 7,
    COORD__FILE_BLOCKS = COORD__FILE_TEXTS_AT + COORD__FILE_SLOTS * COORD__FILE_TEXTS_BLOCKS,
    COORD__FILE_BYTES = COORD__FILE_BLOCKS * COORD__FILE_BLOCK,
    COORD__FILE_HEADER_BYTES = COORD__FILE_HEADER_BLOCKS * COORD__FILE_BLOCK,
    COORD__FILE_ASK_BYTES = COORD__FILE_ASK_BLOCKS * COORD__FILE_BLOCK,
    COORD__FILE_TEXTS_BYTES = COORD__FILE_TEXTS_BLOCKS * COORD__FILE_BLOCK,
    COORD__BOOT_BYTES = 16
};

/** Term n owns the byte n of the file, as a lock; numbers above it are damage. */
#define COORD__FILE_NUMBER_MAX (UINT64_C(1) << 62)

/** The slot of a term. */
static inline unsigned coord__file_slot_of(uint64_t number)
{
    return (unsigned)(number % COORD__FILE_SLOTS);
}

/** The first block of its texts. */
static inline unsigned coord__file_texts_at(uint64_t number)
{
    return COORD__FILE_TEXTS_AT + coord__file_slot_of(number) * COORD__FILE_TEXTS_BLOCKS;
}

/** What a record turned out to be. */
enum coord__file_kind {
    COORD__FILE_EMPTY = 0, /* never written */
    COORD__FILE_SOUND = 1,
    COORD__FILE_TORN = 2, /* being written, or damaged: read it again before judging */
    COORD__FILE_NEWER = 3 /* sound, but of a format that we do not know */
};

enum coord__file_state {
    COORD__FILE_TAKING = 1,  /* granted; earlier terms may still be waited out */
    COORD__FILE_LED = 2,     /* every earlier term had ended, and no debt is left */
    COORD__FILE_RESIGNED = 3 /* ended, acknowledged by its host */
};

/** What makes valid_until and locks comparable: one boot, one offset of its clock, one file. */
struct coord__file_place {
    uint8_t boot[COORD__BOOT_BYTES];
    uint64_t time_namespace; /* 0: the kernel has none */
    uint64_t inode;
};

/** The part of a slot that the protocol decides by. Times are ms of CLOCK_BOOTTIME; 0: none. */
struct coord__file_term {
    uint64_t number; /* 1, 2, 3 ...; 0: no term */
    enum coord__file_state state;
    uint64_t fence;
    coord_ms lease;
    uint64_t since_us; /* wall clock */
    coord_ms valid_until;
    coord_ms debt_until; /* something that the file does not show may lead until then */
    coord_ms kept_until; /* RESIGNED: nobody but the successor before that */
    struct coord__file_place place;
    uint8_t owner[COORD_OWNER_BYTES];
    uint64_t checksum; /* of the slot, read only; of a torn one's bytes, whatever they are */
};

/** Bytes somewhere else. */
struct coord__file_text {
    const void *bytes;
    size_t count;
};

/** What people want to know of a term, raw: identity and successor up to COORD_NAME_MAX bytes. */
struct coord__file_texts {
    uint64_t number; /* of the term; 0: none */
    struct coord__file_text identity;
    struct coord__file_text successor; /* for whom a resigned term keeps its place */
    struct coord__file_text metadata;
};

/** A request to step down; void for every term but the one of its fence. */
struct coord__file_ask {
    uint64_t fence;
    coord_ms expires;
    struct coord__file_place place; /* its inode is not used */
    struct coord__file_text to;     /* raw; count 0: anybody */
};

/** Write a term's slot. @return how many bytes of it are used. Thread: any. */
size_t coord__file_slot_write(const struct coord__file_term *term, uint8_t *slot);

/** Read one; `term` is written when SOUND, when TORN its checksum alone. Thread: any. */
enum coord__file_kind coord__file_slot_read(const uint8_t *slot, struct coord__file_term *term);

/**
 * The number that a slot claims to have, without a look at its checksum; 0: it claims none;
 * UINT64_MAX: it is of a newer format. A term whose write is complete always shows its own here.
 *
 * Thread: any.
 */
uint64_t coord__file_slot_peek(const uint8_t *slot);

/** Write a term's texts. @return how many bytes are used. Thread: any. */
size_t coord__file_texts_write(const struct coord__file_texts *texts, uint8_t *record);

/** Read them; they lie in `record`. Thread: any. */
enum coord__file_kind coord__file_texts_read(const uint8_t *record,
                                             struct coord__file_texts *texts);

/** Write a step-down request. @return how many bytes are used. Thread: any. */
size_t coord__file_ask_write(const struct coord__file_ask *ask, uint8_t *record);

/** Read one; `to` lies in `record`. Thread: any. */
enum coord__file_kind coord__file_ask_read(const uint8_t *record, struct coord__file_ask *ask);

/** Write the header, which holds the election's raw name. @return the bytes used. Thread: any. */
size_t coord__file_header_write(const struct coord__file_text *name, uint8_t *record);

/** Read it; the name lies in `record`. Thread: any. */
enum coord__file_kind coord__file_header_read(const uint8_t *record, struct coord__file_text *name);

#ifdef __cplusplus
}
#endif
#endif /* COORD_ELECTORS_FILE_SLOT_H */
