/* SPDX-License-Identifier: MIT
 * coord/error.c - the table of codes, and the one place where their sentences are formed.
 */
#include "coord/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct entry {
    enum coord_err code;
    enum coord_error_class class_;
    const char *name;
    const char *text;
};

static const struct entry entries[] = {
#define X(symbol, value, class_, text) {COORD_E_##symbol, COORD_CLASS_##class_, #symbol, text},
    COORD_ERRORS(X)
#undef X
};

void coord__assert_failed(const char *condition, const char *file, int line)
{
    (void)condition; /* kept in the frame for a debugger */
    (void)file;
    (void)line;
    abort();
}

static const struct entry *find(enum coord_err code)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (entries[i].code == code) {
            return &entries[i];
        }
    }
    return NULL;
}

const char *coord_err_name(enum coord_err code)
{
    const struct entry *entry = find(code);
    return entry ? entry->name : "UNKNOWN";
}

const char *coord_err_text(enum coord_err code)
{
    const struct entry *entry = find(code);
    return entry ? entry->text : "an unknown error";
}

enum coord_error_class coord_err_class(enum coord_err code)
{
    const struct entry *entry = find(code);
    return entry ? entry->class_ : COORD_CLASS_SYSTEM;
}

enum coord_err coord_error_set(struct coord_error *error, enum coord_err code, const char *format,
                               ...)
{
    if (error == NULL) {
        return code;
    }
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->code = code;
    if (written < 0) {
        error->text[0] = '\0';
    }
    for (char *c = error->text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
    return code;
}
