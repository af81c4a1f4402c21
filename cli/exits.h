/* SPDX-License-Identifier: MIT
 * cli/exits.h - the exit statuses of coordctl, as docs/man/coordctl.1 promises them.
 */
#ifndef CLI_EXITS_H
#define CLI_EXITS_H

enum cli_exit {
    CLI_DONE = 0,
    CLI_NOBODY = 1,           /* status, step-down: nobody leads */
    CLI_USAGE = 2,            /* the command line is wrong */
    CLI_LOST = 121,           /* run: leadership ended before COMMAND did */
    CLI_NOT_IN_TIME = 124,    /* not within --wait */
    CLI_FAILED = 125,         /* the store cannot be asked or refuses, or the system does */
    CLI_CANNOT_EXECUTE = 126, /* run: COMMAND is there and cannot be executed */
    CLI_NOT_FOUND = 127,      /* run: there is no COMMAND */
    CLI_BY_SIGNAL = 128       /* and the signal's number */
};

#endif /* CLI_EXITS_H */
