/* SPDX-License-Identifier: MIT
 * electors/file_slot.c - blocks to bytes and back.
 *
 *   0  kind, four letters      4  format      6  bytes used      8  CRC-32 of the rest of them
 *
 * These places are the same in every format to come; what follows is each kind's own.
 */
#include "electors/file_slot.h"

#include "coord/timing.h"

#include <string.h>

enum {
    FRAME = 12, /* bytes before a kind's own */
    SLOT_TEXTS = 128,
    ASK_TEXTS = 56,
    HEADER_TEXTS = 16
};

static const char slot_kind[4] = {'c', 'T', 'R', 'M'};
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

/* CRC-32 (IEEE 802.3), four bits at a time: a table that fits into one line of cache. */
static uint32_t crc(uint32_t sum, const uint8_t *bytes, size_t count)
{
    static const uint32_t of_nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                           0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                           0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                           0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    sum = ~sum;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        sum = (sum >> 4) ^ of_nibble[sum & 15];
        sum = (sum >> 4) ^ of_nibble[sum & 15];
    }
    return ~sum;
}

static uint32_t block_sum(const uint8_t *block, size_t used)
{
    return crc(crc(0, block, 8), block + FRAME, used - FRAME);
}

/* ---------------------------------------------------------------- what all blocks share */

static size_t frame_close(uint8_t *block, const char kind[4], size_t used)
{
    COORD_ASSERT(used <= COORD__FILE_BLOCK);
    memcpy(block, kind, 4);
    put(block + 4, COORD__FILE_FORMAT, 2);
    put(block + 6, used, 2);
    put(block + 8, block_sum(block, used), 4);
    return used;
}

static enum coord__file_kind frame_open(const uint8_t *block, const char kind[4], size_t least,
                                        size_t *used)
{
    static const uint8_t zero[FRAME] = {0};
    if (memcmp(block, zero, FRAME) == 0) {
        return COORD__FILE_EMPTY;
    }
    *used = (size_t)get(block + 6, 2);
    if (memcmp(block, kind, 4) != 0 || *used < FRAME || *used > COORD__FILE_BLOCK ||
        get(block + 8, 4) != block_sum(block, *used)) {
        return COORD__FILE_TORN;
    }
    const uint64_t format = get(block + 4, 2);
    if (format > COORD__FILE_FORMAT) {
        return COORD__FILE_NEWER;
    }
    return format == COORD__FILE_FORMAT && *used >= least ? COORD__FILE_SOUND : COORD__FILE_TORN;
}

static size_t append(uint8_t *block, size_t at, const struct coord__file_text *text)
{
    COORD_ASSERT(text->count <= COORD__FILE_BLOCK - at);
    if (text->count > 0) {
        memcpy(block + at, text->bytes, text->count);
    }
    return at + text->count;
}

/* ---------------------------------------------------------------- terms */

size_t coord__file_slot_write(const struct coord__file_term *term,
                              const struct coord__file_texts *texts, uint8_t *block)
{
    COORD_ASSERT(term->number > 0);
    COORD_ASSERT(texts->identity.count <= COORD_NAME_MAX);
    COORD_ASSERT(texts->successor.count <= COORD_NAME_MAX);
    COORD_ASSERT(texts->metadata.count <= COORD_METADATA_MAX);
    memset(block, 0, SLOT_TEXTS);
    put(block + 12, (uint64_t)term->state, 1);
    put(block + 14, texts->identity.count, 2);
    put(block + 16, texts->successor.count, 2);
    put(block + 18, texts->metadata.count, 2);
    put(block + 24, term->number, 8);
    put(block + 32, term->fence, 8);
    put(block + 40, term->lease, 8);
    put(block + 48, term->since_us, 8);
    put(block + 56, term->valid_until, 8);
    put(block + 64, term->debt_until, 8);
    put(block + 72, term->kept_until, 8);
    put(block + 80, term->place.time_namespace, 8);
    put(block + 88, term->place.inode, 8);
    memcpy(block + 96, term->place.boot, COORD__BOOT_BYTES);
    memcpy(block + 112, term->owner, COORD_OWNER_BYTES);
    size_t used = append(block, SLOT_TEXTS, &texts->identity);
    used = append(block, used, &texts->successor);
    used = append(block, used, &texts->metadata);
    return frame_close(block, slot_kind, used);
}

static bool take_texts(const uint8_t *block, size_t used, struct coord__file_texts *texts)
{
    const size_t identity = (size_t)get(block + 14, 2);
    const size_t successor = (size_t)get(block + 16, 2);
    const size_t metadata = (size_t)get(block + 18, 2);
    if (identity > COORD_NAME_MAX || successor > COORD_NAME_MAX || metadata > COORD_METADATA_MAX ||
        used != SLOT_TEXTS + identity + successor + metadata) {
        return false;
    }
    texts->identity = (struct coord__file_text){block + SLOT_TEXTS, identity};
    texts->successor = (struct coord__file_text){block + SLOT_TEXTS + identity, successor};
    texts->metadata =
        (struct coord__file_text){block + SLOT_TEXTS + identity + successor, metadata};
    return true;
}

enum coord__file_kind coord__file_slot_read(const uint8_t *block, struct coord__file_term *term,
                                            struct coord__file_texts *texts)
{
    size_t used = 0;
    const enum coord__file_kind kind = frame_open(block, slot_kind, SLOT_TEXTS, &used);
    if (kind != COORD__FILE_SOUND) {
        return kind;
    }
    const uint64_t state = get(block + 12, 1);
    const uint64_t number = coord__file_slot_peek(block);
    if (state < COORD__FILE_TAKING || state > COORD__FILE_RESIGNED || number == 0 ||
        number > COORD__FILE_NUMBER_MAX || !take_texts(block, used, texts)) {
        return COORD__FILE_TORN;
    }
    term->number = number;
    term->state = (enum coord__file_state)state;
    term->fence = get(block + 32, 8);
    term->lease = coord_ms_min(get(block + 40, 8), COORD_TTL_MAX);
    term->since_us = get(block + 48, 8);
    term->valid_until = get(block + 56, 8);
    term->debt_until = get(block + 64, 8);
    term->kept_until = get(block + 72, 8);
    term->place.time_namespace = get(block + 80, 8);
    term->place.inode = get(block + 88, 8);
    memcpy(term->place.boot, block + 96, COORD__BOOT_BYTES);
    memcpy(term->owner, block + 112, COORD_OWNER_BYTES);
    term->checksum = (uint32_t)get(block + 8, 4);
    return COORD__FILE_SOUND;
}

uint64_t coord__file_slot_peek(const uint8_t *block)
{
    return get(block + 4, 2) > COORD__FILE_FORMAT ? UINT64_MAX : get(block + 24, 8);
}

/* ---------------------------------------------------------------- the step-down request */

size_t coord__file_ask_write(const struct coord__file_ask *ask, uint8_t *block)
{
    COORD_ASSERT(ask->to.count <= COORD_NAME_MAX);
    memset(block, 0, ASK_TEXTS);
    put(block + 12, ask->to.count, 2);
    put(block + 16, ask->fence, 8);
    put(block + 24, ask->expires, 8);
    put(block + 32, ask->place.time_namespace, 8);
    memcpy(block + 40, ask->place.boot, COORD__BOOT_BYTES);
    return frame_close(block, ask_kind, append(block, ASK_TEXTS, &ask->to));
}

enum coord__file_kind coord__file_ask_read(const uint8_t *block, struct coord__file_ask *ask)
{
    size_t used = 0;
    const enum coord__file_kind kind = frame_open(block, ask_kind, ASK_TEXTS, &used);
    if (kind != COORD__FILE_SOUND) {
        return kind;
    }
    const size_t to = (size_t)get(block + 12, 2);
    if (to > COORD_NAME_MAX || used != ASK_TEXTS + to) {
        return COORD__FILE_TORN;
    }
    *ask = (struct coord__file_ask){.fence = get(block + 16, 8),
                                    .expires = get(block + 24, 8),
                                    .place.time_namespace = get(block + 32, 8),
                                    .to = {block + ASK_TEXTS, to}};
    memcpy(ask->place.boot, block + 40, COORD__BOOT_BYTES);
    return COORD__FILE_SOUND;
}

/* ---------------------------------------------------------------- the header */

size_t coord__file_header_write(const struct coord__file_text *name, uint8_t *block)
{
    COORD_ASSERT(name->count > 0);
    COORD_ASSERT(name->count <= COORD_NAME_MAX);
    memset(block, 0, HEADER_TEXTS);
    put(block + 12, name->count, 2);
    return frame_close(block, header_kind, append(block, HEADER_TEXTS, name));
}

enum coord__file_kind coord__file_header_read(const uint8_t *block, struct coord__file_text *name)
{
    size_t used = 0;
    const enum coord__file_kind kind = frame_open(block, header_kind, HEADER_TEXTS, &used);
    if (kind != COORD__FILE_SOUND) {
        return kind;
    }
    const size_t count = (size_t)get(block + 12, 2);
    if (count == 0 || count > COORD_NAME_MAX || used != HEADER_TEXTS + count) {
        return COORD__FILE_TORN;
    }
    *name = (struct coord__file_text){block + HEADER_TEXTS, count};
    return COORD__FILE_SOUND;
}
