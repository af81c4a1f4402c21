/* SPDX-License-Identifier: MIT
 * cli/liveness.c - the descriptor by which an elector's store knows that a term's host lives.
 */
#include "cli/liveness.h"

#include "electors/file.h"

#include <string.h>

/* A backend's table is static: its name tells it apart. */
int cli_liveness_of(struct coord_election *election)
{
    if (strcmp(coord_election_backend(election), coord_file_elector()->name) != 0) {
        return -1;
    }
    return coord_file_elector_liveness_fd(coord_election_elector(election));
}
