/* SPDX-License-Identifier: MIT
 * cli/run.h - `coordctl run`, between its files: run.c sets it up and tells how it ended,
 * run_loop.c waits, run_term.c carries one term.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli/args.h"
#include "cli/descendants.h"
#include "cli/election.h"
#include "cli/guardian.h"

/** One term of ours, from its start until nothing is left of COMMAND. */
struct cli_term {
    uint64_t number; /* 0: none */
    uint64_t fence;
    bool stopping;
    bool over;   /* stopped by the elector: nothing may be left */
    bool exited; /* COMMAND has ended, with: */
    bool told;   /* ... after SIGTERM for the end of the term */
    int status;  /* ... as of waitpid() */
    int exec_error;
    bool sweeping;     /* the guardian is gone or silent: we kill what is left */
    bool unguarded;    /* the guardian died in this term */
    coord_ms stop_at;  /* stopping: since when */
    coord_ms sweep_at; /* when we do it ourselves */
    coord_ms sweep_end;
};

struct cli_run {
    const struct cli_args *args;
    const char *identity;
    struct cli_guard_command command;
    struct cli_spared spared;
    coord_ms wait; /* --wait; 0: one attempt */
    bool restart;
    int signals; /* signalfd */

    /* a session: as long as one guardian lives */
    struct cli_guard guard;
    coord_ms guard_since;
    bool guard_died;
    struct cli_election opened;

    struct cli_term term;
    coord_ms give_up_at; /* waiting: until when */
    bool answered;       /* the store has taken part once: refusals are waited out from then on */
    bool led;            /* in this session */
    int asked_to_end;    /* the signal that said so; 0: none */
    bool finished;
    int status; /* of coordctl, when finished */

    enum coord_reason said_reason; /* what was said last, so that it is said once */
    bool said_blocked;
    uint64_t said_fence;
};

/** Go through one session: until finished, or until the guardian has died. */
void cli_run_loop(struct cli_run *run);

/** The elector's edges. */
void cli_run_edge(void *ctx, struct coord_election *election, const struct coord_edge *edge);

/** Take what the guardian reports. */
void cli_run_take_reports(struct cli_run *run);

/** It is dead. */
void cli_run_guard_died(struct cli_run *run);

/** Tell the guardian of renewals, and kill what it did not. */
void cli_run_keep_time(struct cli_run *run);

/** End with this status as soon as nothing is held any more. */
void cli_run_finish(struct cli_run *run, int status);

/** When cli_run_keep_time() has to be called again; COORD_NEVER. */
coord_ms cli_run_deadline(const struct cli_run *run);

#endif /* CLI_RUN_H */
