/* SPDX-License-Identifier: MIT
 * brokers/postgres_parts.c - a message as notifications: base64, as they are text, in parts of less
 * than the 8,000 bytes that the server takes.
 *
 * The parts of one message are one transaction, so the server hands them out without another's in
 * between. Whoever misses one has lost the message.
 */
#include "brokers/postgres_parts.h"

#include <openssl/evp.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD_MAX = 32, /* "1 ID PART PARTS " */
    PART_TEXT = (COORD__BUS_PART_BYTES + 2) / 3 * 4,
    QUOTES = 3 /* of an element, and the comma */
};

void coord__bus_channel(const char *topic, char *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    /* It fails only where libcrypto has no SHA-256, and then no TLS either. */
    const int ok = EVP_Digest(topic, strlen(topic), digest, &length, EVP_sha256(), NULL);
    COORD_ASSERT(ok == 1);
    COORD_ASSERT(length >= 16);
    int n = snprintf(out, COORD__BUS_CHANNEL, "coord_bus_");
    for (unsigned i = 0; i < 16; i++) {
        n += snprintf(out + n, COORD__BUS_CHANNEL - (size_t)n, "%02x", digest[i]);
    }
}

/* ---------------------------------------------------------------- out */

static char *add_part(char *at, uint64_t id, unsigned part, unsigned parts,
                      const unsigned char *bytes, size_t count)
{
    const int n = snprintf(at, HEAD_MAX + 2, "\"1 %" PRIx64 " %u %u ", id, part, parts);
    COORD_ASSERT(n > 0 && n < HEAD_MAX + 2);
    at += n;
    if (count > 0) {
        at += EVP_EncodeBlock((unsigned char *)at, bytes, (int)count);
    }
    *at++ = '"';
    return at;
}

char *coord__bus_split(uint64_t id, const void *bytes, size_t count)
{
    const unsigned parts =
        count == 0 ? 1 : (unsigned)((count + COORD__BUS_PART_BYTES - 1) / COORD__BUS_PART_BYTES);
    const unsigned char *from = bytes;
    char *text = malloc(parts * (size_t)(HEAD_MAX + PART_TEXT + QUOTES + 1) + 3);
    COORD_ASSERT(parts <= COORD__BUS_PARTS_MAX);
    if (text == NULL) {
        return NULL;
    }
    char *at = text;
    *at++ = '{';
    for (unsigned part = 1; part <= parts; part++) {
        const size_t some = count < COORD__BUS_PART_BYTES ? count : COORD__BUS_PART_BYTES;
        if (part > 1) {
            *at++ = ',';
        }
        at = add_part(at, id, part, parts, from, some);
        from = some > 0 ? from + some : from;
        count -= some;
    }
    *at++ = '}';
    *at = '\0';
    return text;
}

/* ---------------------------------------------------------------- in */

/* A number and the blank behind it. @return NULL: it is none. */
static const char *read_number(const char *at, int base, uint64_t *out)
{
    char *end = NULL;
    if (!((*at >= '0' && *at <= '9') || (base == 16 && *at >= 'a' && *at <= 'f'))) {
        return NULL;
    }
    *out = strtoull(at, &end, base);
    return end - at <= 16 && *end == ' ' ? end + 1 : NULL;
}

static const char *read_head(const char *payload, uint64_t *id, unsigned *part, unsigned *parts)
{
    uint64_t number[2] = {0, 0};
    const char *at = strncmp(payload, "1 ", 2) == 0 ? payload + 2 : NULL;
    at = at != NULL ? read_number(at, 16, id) : NULL;
    at = at != NULL ? read_number(at, 10, &number[0]) : NULL;
    at = at != NULL ? read_number(at, 10, &number[1]) : NULL;
    if (at == NULL || number[0] == 0 || number[0] > number[1] || number[1] > COORD__BUS_PARTS_MAX) {
        return NULL;
    }
    *part = (unsigned)number[0];
    *parts = (unsigned)number[1];
    return at;
}

/* @return its bytes; -1: it is no base64, or too long. */
static int decode(const char *text, unsigned char *out)
{
    const size_t length = strlen(text);
    size_t padding = 0;
    while (padding < length && padding < 2 && text[length - 1 - padding] == '=') {
        padding++;
    }
    if (length > PART_TEXT || length % 4 != 0 ||
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") !=
            length - padding) {
        return -1;
    }
    const int n = length > 0 ? EVP_DecodeBlock(out, (const unsigned char *)text, (int)length) : 0;
    return n < (int)padding ? -1 : n - (int)padding;
}

static enum coord__bus_part add(struct coord__bus_parts *parts, const char *text)
{
    unsigned char raw[PART_TEXT / 4 * 3 + 3];
    const int n = decode(text, raw);
    if (n < 0 || (size_t)n > COORD_BROKER_MESSAGE_MAX - parts->bytes) {
        parts->next = 0;
        return COORD__BUS_DAMAGED;
    }
    memcpy(parts->data + parts->bytes, raw, (size_t)n);
    parts->bytes += (size_t)n;
    parts->next = parts->next == parts->count ? 0 : parts->next + 1;
    return parts->next == 0 ? COORD__BUS_WHOLE : COORD__BUS_MORE;
}

enum coord__bus_part coord__bus_join(struct coord__bus_parts *parts, const char *payload)
{
    uint64_t id = 0;
    unsigned part = 0;
    unsigned count = 0;
    const char *text = read_head(payload, &id, &part, &count);
    if (text == NULL) {
        return COORD__BUS_DAMAGED;
    }
    if (parts->data == NULL && (parts->data = malloc(COORD_BROKER_MESSAGE_MAX)) == NULL) {
        return COORD__BUS_NO_MEMORY;
    }
    const bool begins = part == 1;
    const bool goes_on = parts->next == part && parts->id == id && parts->count == count;
    if (!begins && !goes_on) {
        parts->next = 0;
        return COORD__BUS_INCOMPLETE;
    }
    if (begins) {
        parts->id = id;
        parts->count = count;
        parts->next = 1;
        parts->bytes = 0;
    }
    return add(parts, text);
}

void coord__bus_parts_clear(struct coord__bus_parts *parts)
{
    free(parts->data);
    memset(parts, 0, sizeof *parts);
}
