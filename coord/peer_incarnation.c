/* SPDX-License-Identifier: MIT
 * coord/peer_incarnation.c - the sixteen bytes that stand for the text of an incarnation.
 */
#include "coord/coordinator_inside.h"

/* Four bytes, the first one highest; written out, so that a compiler sees that it is one load. */
static inline uint32_t half_word(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Eight hexadecimal digits, small letters, as four bytes. false: they are not that. */
static inline bool hex_word(const char *text, unsigned char *out)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word = (uint64_t)half_word(text) << 32 | half_word(text + 4);
    /* Bit 6 is set in letters and clear in digits: what the digit is worth, in each byte. */
    uint64_t letter = word >> 6 & ones;
    uint64_t value = (word & ones * 0x0f) + letter * 9;
    /* Written again it must be what it was ('0' is 0x30, 'a' is 0x57 and ten), from ten on a
     * letter, and below 16. */
    if (value + ones * 0x30 + letter * 0x27 != word || ((value + ones * 6) >> 4 & ones) != letter ||
        (value & ones * 0x10) != 0) {
        return false;
    }
    value = (value | value >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    value = (value | value >> 8) & UINT64_C(0x0000ffff0000ffff);
    value |= value >> 16;
    const uint32_t four = (uint32_t)value;
    out[0] = (unsigned char)(four >> 24);
    out[1] = (unsigned char)(four >> 16);
    out[2] = (unsigned char)(four >> 8);
    out[3] = (unsigned char)four;
    return true;
}

/* A foreign text is folded, the same on every host: FNV-1a, twice. */
static void fold(const char *text, size_t bytes, unsigned char *out)
{
    uint64_t half[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4)};
    for (size_t i = 0; i < bytes; i++) {
        half[0] = (half[0] ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
        half[1] = (half[1] ^ (unsigned char)(text[i] + 1)) * UINT64_C(0x100000001b3);
    }
    for (unsigned i = 0; i < COORD_OWNER_BYTES; i++) {
        out[i] = (unsigned char)(half[i / 8] >> (i % 8 * 8));
    }
}

void coord__incarnation(const char *text, size_t bytes, unsigned char *out)
{
    bool hex = bytes == COORD_OWNER_HEX - 1;
    for (unsigned i = 0; hex && i < COORD_OWNER_BYTES / 4; i++) {
        hex = hex_word(text + i * 8, out + i * 4);
    }
    if (!hex) {
        fold(text, bytes, out);
    }
}
