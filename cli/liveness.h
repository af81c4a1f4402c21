/* SPDX-License-Identifier: MIT
 * cli/liveness.h - the descriptor by which an elector's store knows that a term's host lives.
 */
#ifndef CLI_LIVENESS_H
#define CLI_LIVENESS_H

#include "runtime/election.h"

/** Of the running term, borrowed; -1: the backend has none. */
int cli_liveness_of(struct coord_election *election);

#endif /* CLI_LIVENESS_H */
