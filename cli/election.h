/* SPDX-License-Identifier: MIT
 * cli/election.h - what every verb about one election begins with.
 */
#ifndef CLI_ELECTION_H
#define CLI_ELECTION_H

#include "cli/args.h"
#include "runtime/election.h"

/** A runtime without threads, and one election in it. */
struct cli_election {
    struct coord_runtime *runtime;
    struct coord_election *election;
};

/**
 * Open what --elector, --name and the options say.
 *
 * @param identity  NULL: one that is made for the occasion.
 * @param hosting   its work runs outside: only coord_election_acknowledge() ends a term.
 * @param out       written on success; give it back with cli_election_close().
 * @return          0, or the exit status, said on stderr.
 */
int cli_election_open(const struct cli_args *args, const char *identity, bool hosting,
                      struct cli_election *out);

/** Nothing is said to the store. */
void cli_election_close(struct cli_election *opened);

/** Is this what a candidate says that the store has answered? */
bool cli_election_has_answered(enum coord_reason reason);

/** Is this what it says while the store cannot be asked, or refuses? */
bool cli_election_is_failing(enum coord_reason reason);

/** How long one question may take, a second try included. */
coord_ms cli_election_patience(const struct cli_election *opened);

#endif /* CLI_ELECTION_H */
