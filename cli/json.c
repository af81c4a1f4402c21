/* SPDX-License-Identifier: MIT
 * cli/json.c - a writer of one JSON object a line.
 */
#include "cli/json.h"

#include <inttypes.h>
#include <string.h>

/* How many bytes of valid UTF-8 stand at the front; 0: none. RFC 3629, the table of section 4. */
static size_t utf8_length(const unsigned char *bytes, size_t count)
{
    const unsigned char first = bytes[0];
    if (first < 0x80) {
        return 1;
    }
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || count < length) {
        return 0;
    }
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    if (first == 0xe0) {
        low = 0xa0;
    } else if (first == 0xed) {
        high = 0x9f;
    } else if (first == 0xf0) {
        low = 0x90;
    } else if (first == 0xf4) {
        high = 0x8f;
    }
    if (bytes[1] < low || bytes[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (bytes[i] < 0x80 || bytes[i] > 0xbf) {
            return 0;
        }
    }
    return length;
}

static void put_string(FILE *out, const unsigned char *bytes, size_t count)
{
    fputc('"', out);
    for (size_t at = 0; at < count;) {
        const size_t length = utf8_length(bytes + at, count - at);
        if (length == 0) {
            fputs("\\ufffd", out);
            at++;
            continue;
        }
        if (length == 1 && (bytes[at] < 0x20 || bytes[at] == 0x7f)) {
            fprintf(out, "\\u%04x", (unsigned)bytes[at]);
        } else {
            if (bytes[at] == '"' || bytes[at] == '\\') {
                fputc('\\', out);
            }
            fwrite(bytes + at, 1, length, out);
        }
        at += length;
    }
    fputc('"', out);
}

static void put_key(struct cli_json *json, const char *key)
{
    fprintf(json->out, "%s\"%s\":", json->more ? "," : "", key);
    json->more = true;
}

void cli_json_begin(struct cli_json *json, FILE *out)
{
    *json = (struct cli_json){.out = out};
    fputc('{', out);
}

void cli_json_text(struct cli_json *json, const char *key, const char *value)
{
    if (value == NULL) {
        cli_json_null(json, key);
        return;
    }
    cli_json_bytes(json, key, value, strlen(value));
}

void cli_json_bytes(struct cli_json *json, const char *key, const void *bytes, size_t count)
{
    put_key(json, key);
    put_string(json->out, bytes, count);
}

void cli_json_number(struct cli_json *json, const char *key, uint64_t value)
{
    put_key(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void cli_json_bool(struct cli_json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->out);
}

void cli_json_null(struct cli_json *json, const char *key)
{
    put_key(json, key);
    fputs("null", json->out);
}

const char *cli_time_text(uint64_t us, char out[COORD_TIME_TEXT_MAX])
{
    coord_report_time(us > INT64_MAX ? INT64_MAX : (int64_t)us, out);
    return out;
}

void cli_json_time(struct cli_json *json, const char *key, uint64_t us)
{
    char text[COORD_TIME_TEXT_MAX] = "";
    cli_json_text(json, key, us == 0 ? NULL : cli_time_text(us, text));
}

void cli_json_enter(struct cli_json *json, const char *key)
{
    put_key(json, key);
    fputc('{', json->out);
    json->more = false;
}

void cli_json_leave(struct cli_json *json)
{
    fputc('}', json->out);
    json->more = true;
}

bool cli_json_end(struct cli_json *json)
{
    fputs("}\n", json->out);
    return fflush(json->out) == 0;
}
