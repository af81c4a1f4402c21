/* SPDX-License-Identifier: MIT
 * coord/log.c - forms a record on the stack and hands it to the host's hook.
 */
#include "coord/log.h"

#include <stdarg.h>
#include <stdio.h>

void coord_log_write(const struct coord_log *log, coord_ms now, enum coord_log_level level,
                     enum coord_err code, const char *subject, const char *format, ...)
{
    if (log == NULL || log->fn == NULL || level < log->level) {
        return;
    }
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (written < 0) {
        return;
    }
    const struct coord_log_record record = {
        .now = now, .level = level, .code = code, .subject = subject, .text = text};
    log->fn(log->ctx, &record);
}
