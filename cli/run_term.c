/* SPDX-License-Identifier: MIT
 * cli/run_term.c - one term of `coordctl run`: COMMAND begins, and nothing of it is left when the
 * term is resigned.
 */
#include "cli/run.h"

#include "cli/exits.h"
#include "cli/liveness.h"
#include "cli/say.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

enum {
    SWEEP_MS = 2000 /* what cannot be killed in this time cannot be killed */
};

static const char *name_of(const struct cli_run *run)
{
    return coord_election_name(run->opened.election);
}

static coord_ms grace_of(const struct cli_run *run)
{
    return coord_election_timing(run->opened.election)->grace;
}

/* Later than the guardian, who does it at its kill_time(). */
static coord_ms sweep_time(const struct cli_run *run, coord_ms hard)
{
    const coord_ms late = cli_guard_kill_lead(grace_of(run)) / 2;
    const coord_ms at = coord_ms_sub(hard, late);
    return run->term.stopping
               ? coord_ms_min(at, coord_ms_add(run->term.stop_at, grace_of(run) - late))
               : at;
}

void cli_run_finish(struct cli_run *run, int status)
{
    run->finished = true;
    run->status = status;
    coord_election_withdraw(run->opened.election);
}

/* ---------------------------------------------------------------- how a term ended */

static void say_lost(const struct cli_run *run)
{
    struct coord_explanation why;
    if (coord_election_explain(run->opened.election, &why) != COORD_OK) {
        return;
    }
    const bool failed = why.last_end != COORD_END_STEPPED_DOWN && why.code != COORD_OK;
    cli_say("lost %s, fence %" PRIu64 " (%s%s%s); %s has ended", name_of(run), run->term.fence,
            coord_end_name(why.last_end), failed ? ", " : "",
            failed ? coord_err_name(why.code) : "", run->command.argv[0]);
}

/* COMMAND ended of its own accord: its status is ours. */
static int own_status(const struct cli_run *run)
{
    const struct cli_term *term = &run->term;
    if (term->exec_error != 0) {
        return cli_say_not_executed(run->command.argv[0], term->exec_error);
    }
    if (WIFSIGNALED(term->status)) {
        return CLI_BY_SIGNAL + WTERMSIG(term->status);
    }
    return WEXITSTATUS(term->status);
}

/* Nothing is left of COMMAND: only now may the term be resigned. */
static void conclude(struct cli_run *run)
{
    const struct cli_term ended = run->term;
    const bool own = ended.exited && !ended.told;
    const bool again = run->restart && run->asked_to_end == 0;
    /* First the end of the term, so that its reason is the elector's and not the withdrawal. */
    coord_election_acknowledge(run->opened.election, ended.number);
    if (own) {
        cli_run_finish(run, own_status(run));
    } else if (!again) {
        cli_run_finish(run, ended.unguarded ? CLI_FAILED : CLI_LOST);
    }
    if (ended.unguarded) {
        cli_say("the guardian of %s was killed; %s was ended", name_of(run), run->command.argv[0]);
    } else if (!own) {
        say_lost(run);
    }
    run->term = (struct cli_term){.number = 0};
    run->give_up_at = coord_ms_add(coord_clock_now(), run->wait == 0 ? COORD_NEVER : run->wait);
}

/* ---------------------------------------------------------------- killing it ourselves */

/* Everything below us but what was there before: the guardian as well. */
static void sweep(struct cli_run *run)
{
    if (cli_guard_check(&run->guard)) {
        cli_guard_kill(&run->guard);
    } else {
        run->guard_died = true;
    }
    const size_t left = cli_descendants_signal(SIGKILL, &run->spared, 0);
    if (left == 0) {
        conclude(run);
        return;
    }
    if (coord_clock_now() < run->term.sweep_end) {
        return;
    }
    /* No acknowledgement: the next leader waits as long as it has to. */
    cli_say("%zu processes of %s cannot be ended; %s is not resigned, and lapses", left,
            run->command.argv[0], name_of(run));
    run->term.number = 0;
    cli_run_finish(run, CLI_FAILED);
}

static void begin_sweep(struct cli_run *run)
{
    if (run->term.number != 0 && !run->term.sweeping) {
        run->term.sweeping = true;
        run->term.sweep_end = coord_clock_now() + SWEEP_MS;
    }
}

void cli_run_guard_died(struct cli_run *run)
{
    run->guard_died = true;
    if (run->term.number != 0) {
        run->term.unguarded = !run->term.over && !run->term.sweeping;
        begin_sweep(run);
    }
}

/* ---------------------------------------------------------------- edges and reports */

static void start_term(struct cli_run *run, const struct coord_edge *edge)
{
    const struct cli_guard_order begin = {
        .kind = CLI_GUARD_BEGIN, .term = edge->term, .fence = edge->fence, .grace = grace_of(run)};
    run->answered = true;
    if (run->finished || run->guard_died) {
        coord_election_acknowledge(run->opened.election, edge->term);
        return;
    }
    run->led = true;
    run->term = (struct cli_term){.number = edge->term, .fence = edge->fence};
    run->term.sweep_at = sweep_time(run, edge->hard);
    cli_say("leading %s, fence %" PRIu64, name_of(run), edge->fence);
    if (!cli_guard_begin(&run->guard, &begin, cli_liveness_of(run->opened.election),
                         coord_ms_sub(edge->hard, begin.grace), edge->hard)) {
        begin_sweep(run);
    }
}

static void stop_term(struct cli_run *run, coord_ms hard)
{
    const coord_ms now = coord_clock_now();
    if (!run->term.stopping) {
        run->term.stopping = true;
        run->term.stop_at = now;
        run->term.sweep_at = sweep_time(run, hard);
        cli_guard_stop(&run->guard, now);
    }
}

void cli_run_edge(void *ctx, struct coord_election *election, const struct coord_edge *edge)
{
    struct cli_run *run = ctx;
    (void)election;
    if (edge->kind == COORD_EDGE_STARTED) {
        start_term(run, edge);
    } else if (edge->term != run->term.number) {
        return; /* nothing is left of it, and it was acknowledged */
    } else if (edge->kind == COORD_EDGE_STOPPING) {
        stop_term(run, edge->hard);
    } else {
        run->term.over = true;
        run->term.sweep_at = coord_clock_now() + cli_guard_kill_lead(grace_of(run)) / 2;
        cli_guard_cut(&run->guard);
    }
}

void cli_run_take_reports(struct cli_run *run)
{
    struct cli_guard_report report;
    while (cli_guard_next(&run->guard, &report)) {
        if (report.term != run->term.number) {
            continue;
        }
        if (report.kind == CLI_GUARD_EXITED) {
            run->term.exited = true;
            run->term.told = report.told;
            run->term.status = report.status;
            run->term.exec_error = report.exec_error;
            if (!report.told) {
                /* What it left behind gets its grace; the term goes on until that is gone. */
                coord_election_withdraw(run->opened.election);
            }
        } else {
            conclude(run);
        }
    }
}

/* ---------------------------------------------------------------- time */

void cli_run_keep_time(struct cli_run *run)
{
    struct cli_term *term = &run->term;
    if (term->number == 0) {
        return;
    }
    const coord_ms now = coord_clock_now();
    const struct coord_claim claim = coord_election_claim(run->opened.election);
    if (claim.leading && claim.term == term->number && !term->over) {
        cli_guard_prolong(&run->guard, coord_ms_sub(claim.hard, grace_of(run)), claim.hard);
        term->sweep_at = sweep_time(run, claim.hard);
    }
    if (!term->sweeping && now >= term->sweep_at) {
        begin_sweep(run);
    }
    if (term->sweeping) {
        sweep(run);
    }
}

coord_ms cli_run_deadline(const struct cli_run *run)
{
    if (run->term.number == 0) {
        return COORD_NEVER;
    }
    return run->term.sweeping ? coord_clock_now() + 1 : run->term.sweep_at;
}
