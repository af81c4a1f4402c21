/* SPDX-License-Identifier: MIT
 * cli/json.h - a writer of one JSON object a line.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "coord/report_text.h"

#include <stdio.h>

/** Lives on the stack of who writes. */
struct cli_json {
    FILE *out;
    bool more; /* the next member needs a comma */
};

/** Begin the object of a line. */
void cli_json_begin(struct cli_json *json, FILE *out);

/** A member of text. Bytes that are no UTF-8 become U+FFFD. NULL: null. */
void cli_json_text(struct cli_json *json, const char *key, const char *value);

/** The same for bytes that may hold a NUL. */
void cli_json_bytes(struct cli_json *json, const char *key, const void *bytes, size_t count);

void cli_json_number(struct cli_json *json, const char *key, uint64_t value);
void cli_json_bool(struct cli_json *json, const char *key, bool value);
void cli_json_null(struct cli_json *json, const char *key);

/** RFC 3339 in UTC with milliseconds. 0: null. @param us since 1970. */
void cli_json_time(struct cli_json *json, const char *key, uint64_t us);

/** A member that is an object; members go into it until cli_json_leave(). */
void cli_json_enter(struct cli_json *json, const char *key);
void cli_json_leave(struct cli_json *json);

/** End the object and its line, and flush. @return false: the reader went away. */
bool cli_json_end(struct cli_json *json);

/** The same text for people. @return out. */
const char *cli_time_text(uint64_t us, char out[COORD_TIME_TEXT_MAX]);

#endif /* CLI_JSON_H */
