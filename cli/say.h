/* SPDX-License-Identifier: MIT
 * cli/say.h - what coordctl tells people, on stderr: one line an event.
 */
#ifndef CLI_SAY_H
#define CLI_SAY_H

#include "coord/error.h"

/** "coordctl: ..." and a newline, in one write. Cut at 1 KiB; control characters become '?'. */
void cli_say(const char *format, ...) COORD_PRINTF(1, 2);

/** A failure with its code: "coordctl: WRONG_PASSWORD: ...". @return the exit status for it. */
int cli_say_error(const struct coord_error *error);

/** A mistake in the command line, with its cure. @return CLI_USAGE. */
int cli_say_usage(const char *format, ...) COORD_PRINTF(1, 2);

/** A process or a descriptor was refused. @param error  errno. @return CLI_FAILED. */
int cli_say_no_room(const char *what, int error);

/**
 * COMMAND was not executed.
 *
 * @param error  errno of the fork or the exec.
 * @return       CLI_NOT_FOUND, CLI_CANNOT_EXECUTE; CLI_FAILED where the machine lacks what that
 *               takes just now, and COMMAND is not to blame.
 */
int cli_say_not_executed(const char *command, int error);

/** Is nobody left who reads standard output? Waits for that so many ms, while there is somebody. */
bool cli_is_unread(coord_ms wait);

enum {
    CLI_WORD_MAX = 4 * COORD_NAME_MAX + 8
};

/**
 * A name as one word of a shell's command line: bare where it can be, else in quotes.
 *
 * @param out  room for CLI_WORD_MAX; cut there.
 * @return     name or out.
 */
const char *cli_say_word(const char *name, char *out);

/** Milliseconds for people: "250 ms", "3 s". @param out room for 32 bytes. @return out. */
const char *cli_say_time(coord_ms time, char *out);

#endif /* CLI_SAY_H */
