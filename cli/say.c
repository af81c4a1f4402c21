/* SPDX-License-Identifier: MIT
 * cli/say.c - what coordctl tells people, on stderr: one line an event.
 */
#include "cli/say.h"

#include "cli/exits.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 1024,
    TIME_TEXT = 32,
    PATIENCE_MS = 100
};

/*
 * A terminal that is stopped, or a pipe that nobody reads, must not stop heartbeats and leaving: a
 * line that is not taken soon is lost, and the next ones are not waited for.
 */
static bool is_taken(void)
{
    static atomic_bool stuck;
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    const bool taken = poll(&out, 1, atomic_load(&stuck) ? 0 : PATIENCE_MS) != 0;
    atomic_store(&stuck, !taken);
    return taken;
}

/* One write, so that the lines of several processes on one terminal do not mix. */
COORD_PRINTF(2, 0) static void say(const char *before, const char *format, va_list arguments)
{
    char line[LINE_MAX_BYTES + 2];
    const int head = snprintf(line, LINE_MAX_BYTES, "coordctl: %s", before);
    size_t length = head > 0 ? (size_t)head : 0;
    const int body = vsnprintf(line + length, LINE_MAX_BYTES - length, format, arguments);
    if (body > 0) {
        length += (size_t)body;
    }
    if (length >= LINE_MAX_BYTES) {
        length = LINE_MAX_BYTES - 1;
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) {
            line[i] = '?';
        }
    }
    line[length] = '\n';
    if (!is_taken()) {
        return;
    }
    COORD_IGNORE(write(STDERR_FILENO, line, length + 1) < 0, "nobody is left to be told");
}

void cli_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}

int cli_say_error(const struct coord_error *error)
{
    const char *text = error->text[0] != '\0' ? error->text : coord_err_text(error->code);
    cli_say("%s: %s", coord_err_name(error->code), text);
    return coord_err_class(error->code) == COORD_CLASS_USAGE ? CLI_USAGE : CLI_FAILED;
}

int cli_say_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
    return CLI_USAGE;
}

int cli_say_no_room(const char *what, int error)
{
    cli_say("the system has no room for %s just now: %s: see the limits of processes, memory and "
            "open files",
            what, strerror(error));
    return CLI_FAILED;
}

int cli_say_not_executed(const char *command, int error)
{
    if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE) {
        return cli_say_no_room(command, error);
    }
    cli_say("cannot execute %s: %s", command, strerror(error));
    return error == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
}

bool cli_is_unread(coord_ms wait)
{
    /* A pipe or a socket whose other end is closed tells of it unasked. */
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, (int)wait) > 0;
}

const char *cli_say_word(const char *name, char *out)
{
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-./:@%+,=";
    size_t used = 0;
    if (name[0] != '\0' && strspn(name, bare) == strlen(name)) {
        return name;
    }
    out[used++] = '\'';
    for (; *name != '\0' && used + 5 < CLI_WORD_MAX; name++) {
        if (*name == '\'') { /* the quote ends, one that is escaped, and it begins again */
            memcpy(out + used, "'\\'", 3);
            used += 3;
        }
        out[used++] = *name;
    }
    memcpy(out + used, "'", 2);
    return out;
}

const char *cli_say_time(coord_ms time, char *out)
{
    if (time >= 10000 || (time > 0 && time % 1000 == 0)) {
        snprintf(out, TIME_TEXT, "%" PRIu64 " s", (time + 500) / 1000);
    } else {
        snprintf(out, TIME_TEXT, "%" PRIu64 " ms", time);
    }
    return out;
}
