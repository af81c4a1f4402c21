/* SPDX-License-Identifier: MIT
 * cli/peers_print.h - peers of a fleet as lines: for people, as JSON, and drawn on a terminal.
 */
#ifndef CLI_PEERS_PRINT_H
#define CLI_PEERS_PRINT_H

#include "cli/fleet.h"

#include <stdio.h>

/** All that are known, by id. Borrowed from the fleet, except for the list itself: free it. */
struct cli_peers {
    struct coord_peer *peer;
    size_t count;
    const struct cli_fleet *fleet;
    coord_ms now;
};

/** @return false: no memory. */
bool cli_peers_list(const struct cli_fleet *fleet, struct cli_peers *out);

/** A heading and a line for each. @param columns where lines are cut; 0: nowhere. */
bool cli_peers_table(const struct cli_peers *peers, size_t columns, FILE *out);

/** One object a line on stdout. @return false: it cannot be written. */
bool cli_peers_json(const struct cli_fleet *fleet, const struct cli_peers *peers);

/** A line on stdout, if the event is of a peer. @return false: the reader went away. */
bool cli_peers_change(const struct cli_fleet *fleet, const struct coord_event *event, bool json);

/** Draw the list over the one before. @param lines of that one; 0 at first; written. */
bool cli_peers_draw(const struct cli_fleet *fleet, size_t *lines);

#endif /* CLI_PEERS_PRINT_H */
