/* SPDX-License-Identifier: MIT
 * coord/escape.c - one text for each name, and one name for each text.
 */
#include "coord/escape.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

static bool stands_for_itself(unsigned char byte)
{
    return byte >= 0x20 && byte <= 0x7e && byte != '%' && byte != '{' && byte != '}';
}

/* Lower case only, so that two texts never mean the same bytes. */
static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

enum coord_err coord_escape(const void *bytes, size_t count, char *out)
{
    COORD_ASSERT(bytes != NULL || count == 0);
    COORD_ASSERT(out != NULL);
    if (count < 1 || count > COORD_NAME_MAX) {
        return COORD_E_BAD_NAME;
    }
    const unsigned char *in = bytes;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (stands_for_itself(in[i])) {
            out[at++] = (char)in[i];
        } else {
            out[at++] = '%';
            out[at++] = digits[in[i] >> 4];
            out[at++] = digits[in[i] & 15];
        }
    }
    COORD_ASSERT(at < COORD_ESCAPED_MAX);
    out[at] = '\0';
    return COORD_OK;
}

enum coord_err coord_unescape(const char *text, void *out, size_t *count)
{
    COORD_ASSERT(text != NULL);
    COORD_ASSERT(out != NULL && count != NULL);
    unsigned char bytes[COORD_NAME_MAX];
    size_t at = 0;
    while (*text != '\0') {
        if (at == sizeof bytes) {
            return COORD_E_BAD_NAME;
        }
        unsigned char byte = (unsigned char)*text++;
        if (byte == '%') {
            const int high = digit_value(text[0]);
            const int low = high < 0 ? -1 : digit_value(text[1]);
            if (low < 0) {
                return COORD_E_BAD_NAME;
            }
            byte = (unsigned char)(high * 16 + low);
            if (stands_for_itself(byte)) {
                return COORD_E_BAD_NAME;
            }
            text += 2;
        } else if (!stands_for_itself(byte)) {
            return COORD_E_BAD_NAME;
        }
        bytes[at++] = byte;
    }
    if (at == 0) {
        return COORD_E_BAD_NAME;
    }
    memcpy(out, bytes, at);
    *count = at;
    return COORD_OK;
}
