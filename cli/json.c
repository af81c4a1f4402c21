/* SPDX-License-Identifier: MIT
 * cli/json.c - a writer of one JSON object a line.
 */
#include "cli/json.h"

#include "coord/message_view.h"

#include <inttypes.h>
#include <string.h>

static void put_byte(FILE *out, unsigned char byte)
{
    if (byte < 0x20 || byte == 0x7f) {
        fprintf(out, "\\u%04x", (unsigned)byte);
        return;
    }
    if (byte == '"' || byte == '\\') {
        fputc('\\', out);
    }
    fputc(byte, out);
}

static void put_string(FILE *out, const unsigned char *bytes, size_t count)
{
    size_t sound = 0; /* up to here it is UTF-8 */
    fputc('"', out);
    for (size_t at = 0; at < count; at++) {
        if (at == sound) {
            sound += coord__utf8_span(bytes + at, count - at);
        }
        if (at == sound) {
            fputs("\\ufffd", out);
            sound++;
        } else {
            put_byte(out, bytes[at]);
        }
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
