/* SPDX-License-Identifier: MIT
 * electors/file_slot.c - records to bytes and back.
 *
 *   0  kind, four letters      4  format      6  bytes used      8  checksum of the rest of them
 *
 * These places are the same in every format to come; what follows is each kind's own.
 */
#include "electors/file_slot.h"

#include "coord/timing.h"

#include <assert.h>
#include <string.h>

enum {
    FRAME = 16, /* bytes before a kind's own */
    SLOT_BYTES = 128,
    TEXTS_TEXTS = 32,
    ASK_TEXTS = 64,
    HEADER_TEXTS = 24
};

static const char slot_kind[4] = {'c', 'T', 'R', 'M'};
static const char texts_kind[4] = {'c', 'T', 'X', 'T'};
static const char ask_kind[4] = {'c', 'A', 'S', 'K'};
static const char header_kind[4] = {'c', 'N', 'A', 'M'};

/* ---------------------------------------------------------------- numbers */

static void put(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

/* Written out, since compilers make one load of this and not of a loop. */
static uint64_t get_word(const uint8_t *at)
{
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
           (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 |
           (uint64_t)at[7] << 56;
}

/* Each step is a bijection of the sum, so a change within one word never goes unnoticed; any other
 * one does so once in 2^64. A CRC costs twenty times as much, and the ring is read whole. */
static uint64_t mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return sum ^ (sum >> 32);
}

static uint64_t checksum(const uint8_t *record, size_t used)
{
    uint64_t sum = mix(UINT64_C(0x9e3779b97f4a7c15), get_word(record));
    size_t at = FRAME;
    for (; at + 8 <= used; at += 8) {
        sum = mix(sum, get_word(record + at));
    }
    return at < used ? mix(sum, get(record + at, used - at)) : sum;
}

/* ---------------------------------------------------------------- what all records share */

static size_t frame_close(uint8_t *record, const char kind[4], size_t used)
{
    memcpy(record, kind, 4);
    put(record + 4, COORD__FILE_FORMAT, 2);
    put(record + 6, used, 2);
    put(record + 8, checksum(record, used), 8);
    return used;
}

static enum coord__file_kind frame_open(const uint8_t *record, const char kind[4], size_t least,
                                        size_t most, size_t *used)
{
    static const uint8_t zero[FRAME] = {0};
    if (memcmp(record, zero, FRAME) == 0) {
        return COORD__FILE_EMPTY;
    }
    *used = (size_t)get(record + 6, 2);
    if (memcmp(record, kind, 4) != 0 || *used < FRAME || *used > most ||
        get_word(record + 8) != checksum(record, *used)) {
        return COORD__FILE_TORN;
    }
    const uint64_t format = get(record + 4, 2);
    if (format > COORD__FILE_FORMAT) {
        return COORD__FILE_NEWER;
    }
    return format == COORD__FILE_FORMAT && *used >= least ? COORD__FILE_SOUND : COORD__FILE_TORN;
}

static size_t append(uint8_t *record, size_t at, const struct coord__file_text *text)
{
    if (text->count > 0) {
        memcpy(record + at, text->bytes, text->count);
    }
    return at + text->count;
}

/* ---------------------------------------------------------------- slots */

size_t coord__file_slot_write(const struct coord__file_term *term, uint8_t *slot)
{
    static_assert((int)SLOT_BYTES <= (int)COORD__FILE_BLOCK, "a slot is one block");
    COORD_ASSERT(term->number > 0);
    memset(slot, 0, SLOT_BYTES);
    put(slot + 16, (uint64_t)term->state, 1);
    put(slot + 24, term->number, 8);
    put(slot + 32, term->fence, 8);
    put(slot + 40, term->lease, 8);
    put(slot + 48, term->since_us, 8);
    put(slot + 56, term->valid_until, 8);
    put(slot + 64, term->debt_until, 8);
    put(slot + 72, term->kept_until, 8);
    put(slot + 80, term->place.time_namespace, 8);
    put(slot + 88, term->place.inode, 8);
    memcpy(slot + 96, term->place.boot, COORD__BOOT_BYTES);
    memcpy(slot + 112, term->owner, COORD_OWNER_BYTES);
    return frame_close(slot, slot_kind, SLOT_BYTES);
}

static enum coord__file_kind kind_of(const uint8_t *slot)
{
    size_t used = 0;
    const enum coord__file_kind kind =
        frame_open(slot, slot_kind, SLOT_BYTES, COORD__FILE_BLOCK, &used);
    if (kind != COORD__FILE_SOUND) {
        return kind;
    }
    const uint64_t state = get(slot + 16, 1);
    const uint64_t number = coord__file_slot_peek(slot);
    const bool sane = state >= COORD__FILE_TAKING && state <= COORD__FILE_RESIGNED && number > 0 &&
                      number <= COORD__FILE_NUMBER_MAX;
    return sane ? COORD__FILE_SOUND : COORD__FILE_TORN;
}

enum coord__file_kind coord__file_slot_read(const uint8_t *slot, struct coord__file_term *term)
{
    const enum coord__file_kind kind = kind_of(slot);
    if (kind == COORD__FILE_TORN) {
        term->checksum = checksum(slot, COORD__FILE_BLOCK);
    }
    if (kind != COORD__FILE_SOUND) {
        return kind;
    }
    term->number = coord__file_slot_peek(slot);
    term->state = (enum coord__file_state)get(slot + 16, 1);
    term->fence = get_word(slot + 32);
    term->lease = coord_ms_min(get_word(slot + 40), COORD_TTL_MAX);
    term->since_us = get_word(slot + 48);
    term->valid_until = get_word(slot + 56);
    term->debt_until = get_word(slot + 64);
    term->kept_until = get_word(slot + 72);
    term->place.time_namespace = get_word(slot + 80);
    term->place.inode = get_word(slot + 88);
    memcpy(term->place.boot, slot + 96, COORD__BOOT_BYTES);
    memcpy(term->owner, slot + 112, COORD_OWNER_BYTES);
    term->checksum = get_word(slot + 8);
    return COORD__FILE_SOUND;
}

uint64_t coord__file_slot_peek(const uint8_t *slot)
{
    return get(slot + 4, 2) > COORD__FILE_FORMAT ? UINT64_MAX : get_word(slot + 24);
}

/* ---------------------------------------------------------------- texts */

size_t coord__file_texts_write(const struct coord__file_texts *texts, uint8_t *record)
{
    static_assert((int)TEXTS_TEXTS + 2 * (int)COORD_NAME_MAX + (int)COORD_METADATA_MAX <=
                      COORD__FILE_TEXTS_BYTES,
                  "the longest texts fit");
    COORD_ASSERT(texts->identity.count <= COORD_NAME_MAX);
    COORD_ASSERT(texts->successor.count <= COORD_NAME_MAX);
    COORD_ASSERT(texts->metadata.count <= COORD_METADATA_MAX);
    memset(record, 0, TEXTS_TEXTS);
    put(record + 16, texts->identity.count, 2);
    put(record + 18, texts->successor.count, 2);
    put(record + 20, texts->metadata.count, 2);
    put(record + 24, texts->number, 8);
    size_t used = append(record, TEXTS_TEXTS, &texts->identity);
    used = append(record, used, &texts->successor);
    used = append(record, used, &texts->metadata);
    return frame_close(record, texts_kind, used);
}

enum coord__file_kind coord__file_texts_read(const uint8_t *record, struct coord__file_texts *texts)
{
    size_t used = 0;
    const enum coord__file_kind kind =
        frame_open(record, texts_kind, TEXTS_TEXTS, COORD__FILE_TEXTS_BYTES, &used);
    if (kind != COORD__FILE_SOUND) {
        return kind;
    }
    const size_t identity = (size_t)get(record + 16, 2);
    const size_t successor = (size_t)get(record + 18, 2);
    const size_t metadata = (size_t)get(record + 20, 2);
    if (identity > COORD_NAME_MAX || successor > COORD_NAME_MAX || metadata > COORD_METADATA_MAX ||
        used != TEXTS_TEXTS + identity + successor + metadata) {
        return COORD__FILE_TORN;
    }
    const uint8_t *text = record + TEXTS_TEXTS;
    texts->number = get_word(record + 24);
    texts->identity = (struct coord__file_text){text, identity};
    texts->successor = (struct coord__file_text){text + identity, successor};
    texts->metadata = (struct coord__file_text){text + identity + successor, metadata};
    return COORD__FILE_SOUND;
}

/* ---------------------------------------------------------------- the step-down request */

size_t coord__file_ask_write(const struct coord__file_ask *ask, uint8_t *record)
{
    static_assert((int)ASK_TEXTS + (int)COORD_NAME_MAX <= COORD__FILE_ASK_BYTES,
                  "the longest request fits");
    COORD_ASSERT(ask->to.count <= COORD_NAME_MAX);
    memset(record, 0, ASK_TEXTS);
    put(record + 16, ask->to.count, 2);
    put(record + 24, ask->fence, 8);
    put(record + 32, ask->expires, 8);
    put(record + 40, ask->place.time_namespace, 8);
    memcpy(record + 48, ask->place.boot, COORD__BOOT_BYTES);
    return frame_close(record, ask_kind, append(record, ASK_TEXTS, &ask->to));
}

enum coord__file_kind coord__file_ask_read(const uint8_t *record, struct coord__file_ask *ask)
{
    size_t used = 0;
    const enum coord__file_kind kind =
        frame_open(record, ask_kind, ASK_TEXTS, COORD__FILE_ASK_BYTES, &used);
    if (kind != COORD__FILE_SOUND) {
        return kind;
    }
    const size_t to = (size_t)get(record + 16, 2);
    if (to > COORD_NAME_MAX || used != ASK_TEXTS + to) {
        return COORD__FILE_TORN;
    }
    *ask = (struct coord__file_ask){.fence = get_word(record + 24),
                                    .expires = get_word(record + 32),
                                    .place.time_namespace = get_word(record + 40),
                                    .to = {record + ASK_TEXTS, to}};
    memcpy(ask->place.boot, record + 48, COORD__BOOT_BYTES);
    return COORD__FILE_SOUND;
}

/* ---------------------------------------------------------------- the header */

size_t coord__file_header_write(const struct coord__file_text *name, uint8_t *record)
{
    static_assert((int)HEADER_TEXTS + (int)COORD_NAME_MAX <= COORD__FILE_HEADER_BYTES,
                  "the longest name fits");
    COORD_ASSERT(name->count > 0);
    COORD_ASSERT(name->count <= COORD_NAME_MAX);
    memset(record, 0, HEADER_TEXTS);
    put(record + 16, name->count, 2);
    return frame_close(record, header_kind, append(record, HEADER_TEXTS, name));
}

enum coord__file_kind coord__file_header_read(const uint8_t *record, struct coord__file_text *name)
{
    size_t used = 0;
    const enum coord__file_kind kind =
        frame_open(record, header_kind, HEADER_TEXTS, COORD__FILE_HEADER_BYTES, &used);
    if (kind != COORD__FILE_SOUND) {
        return kind;
    }
    const size_t count = (size_t)get(record + 16, 2);
    if (count == 0 || count > COORD_NAME_MAX || used != HEADER_TEXTS + count) {
        return COORD__FILE_TORN;
    }
    *name = (struct coord__file_text){record + HEADER_TEXTS, count};
    return COORD__FILE_SOUND;
}
