/* SPDX-License-Identifier: MIT
 * cli/fleet.h - what every verb about a fleet begins with: a bus, and an observer that listens.
 */
#ifndef CLI_FLEET_H
#define CLI_FLEET_H

#include "cli/args.h"
#include "coord/coordinator.h"
#include "runtime/bus.h"

/** Which parts of a leader's table were heard so far. */
struct cli_table {
    bool begun;
    bool whole;
    uint64_t fence;                             /* of the leader */
    unsigned char next[COORD_REPORT_ID_BYTES];  /* the id after the last part */
    unsigned char (*id)[COORD_REPORT_ID_BYTES]; /* what it lists; ascending */
    size_t count;
    size_t room;
};

/** One thread drives it all, inside cli_fleet_next(). */
struct cli_fleet {
    struct coord_runtime *runtime; /* its own, unless it was given */
    bool own_runtime;
    struct coord_bus *bus;
    struct coord_coordinator *coordinator; /* NULL: it only speaks */
    const char *prefix;                    /* of its topics; NULL: the usual one */
    coord_ms timeout;                      /* T */
    enum coord_form form;                  /* of what is sent */
    struct cli_table table;                /* of the last CLI_FLEET_TABLE */
    uint64_t least_fence;                  /* what a leader with a lower one tells is passed over */
    bool said_down;
    bool is_read; /* stop listening when nobody reads standard output */
    uint64_t ups; /* of the bus, when it was looked at last */
};

/** A list of names, `A,B`, taken apart. */
struct cli_names {
    char *text;
    const char *name[COORD_SUBSCRIPTIONS_MAX];
    size_t count;
};

/** What cli_fleet_next() came back with. */
enum cli_fleet_news {
    CLI_FLEET_NOTHING = 0, /* the time is up; or nobody reads any more, where that counts */
    CLI_FLEET_EVENT = 1,
    CLI_FLEET_TABLE = 2, /* a leader's whole list of orphans was read */
    CLI_FLEET_FAILED = 3 /* said on stderr */
};

/**
 * Open the bus that --bus says.
 *
 * @param runtime  NULL: one of its own.
 * @param listens  with an observer, which subscribes to all that is said.
 * @param out      written on success; give it back with cli_fleet_close().
 * @return         0, or the exit status, said on stderr.
 */
int cli_fleet_open(const struct cli_args *args, struct coord_runtime *runtime, bool listens,
                   struct cli_fleet *out);

void cli_fleet_close(struct cli_fleet *fleet);

/** A bus on this runtime, as --bus says. @return 0, or the exit status, said. */
int cli_fleet_open_bus(const struct cli_args *args, struct coord_runtime *runtime,
                       struct coord_bus **out);

/** Is --topic-prefix one? @return 0, or CLI_USAGE, said. */
int cli_fleet_check_prefix(const struct cli_args *args);

/** --timeout. @return 0, or CLI_USAGE, said. */
int cli_fleet_timeout(const struct cli_args *args, coord_ms *out);

/** Tell people once that the bus is down, and why; and when it is up again. */
void cli_fleet_say_bus(const struct coord_broker_status *status, bool *said_down);

/** Wait until the bus carries messages. @return 0, or the exit status, said. */
int cli_fleet_await(struct cli_fleet *fleet);

/** Send a message, and wait until it is on its way. @return 0, or the exit status, said. */
int cli_fleet_send(struct cli_fleet *fleet, const struct coord_message *message);

/** Listen until something happens, or until that instant. @param out written on EVENT; borrowed. */
enum cli_fleet_news cli_fleet_next(struct cli_fleet *fleet, coord_ms until,
                                   struct coord_event *out);

/** Does the last whole table list this report? Its fence may be of an earlier term. */
bool cli_fleet_lists(const struct cli_fleet *fleet, const unsigned char *report_id);

/** Take `A,B` apart. NULL is an empty list. @return 0, or the exit status, said. */
int cli_names_read(const char *text, struct cli_names *out);
void cli_names_free(struct cli_names *names);

/** An id or a name of work, printable as coord_escape() makes it. @return out. */
const char *cli_fleet_text(const char *bytes, size_t count, char out[COORD_ESCAPED_MAX]);

#endif /* CLI_FLEET_H */
