/* SPDX-License-Identifier: MIT
 * cli/orphans.c - `coordctl orphans`: work that nobody looks after, as the leader tells it.
 */
#include "cli/election.h"
#include "cli/exits.h"
#include "cli/fleet.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "coord/report_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TIME_TEXT = 32
};

/** How reports are printed, and whose count. */
struct orphans {
    const struct cli_args *args;
    struct cli_fleet fleet;
    struct cli_election election; /* with --elector */
    bool has_election;
};

/* ---------------------------------------------------------------- printing */

static bool print_text(const struct coord_report *report)
{
    const struct coord_orphan *orphan = report->orphan;
    char work[COORD_ESCAPED_MAX];
    char owner[COORD_ESCAPED_MAX];
    char time[TIME_TEXT];
    printf("%s: %s, of %s, %s, %s, fence %" PRIu64,
           cli_fleet_text(orphan->subscription, orphan->subscription_bytes, work),
           coord_report_kind_name(report->kind),
           cli_fleet_text(orphan->instance_id, orphan->instance_id_bytes, owner),
           coord_cause_name(orphan->cause), coord_certainty_name(orphan->certainty), orphan->fence);
    if (report->kind != COORD_ORPHANS_RESOLVED) {
        if (orphan->safe_after <= report->now) {
            printf(", safe to take");
        } else if (orphan->safe_after == COORD_NEVER) {
            printf(", not safe to take");
        } else {
            printf(", safe to take in %s", cli_say_time(orphan->safe_after - report->now, time));
        }
    }
    return putchar('\n') != EOF;
}

/* @return false: the reader went away. */
static bool print(const struct orphans *orphans, struct coord_report *report)
{
    static char line[COORD_REPORT_TEXT_MAX];
    const bool event = orphans->args->value[CLI_CLOUDEVENTS] != NULL;
    size_t bytes = 0;
    report->fleet = orphans->args->value[CLI_NAME];
    report->reporter = "coordctl";
    report->now = coord_clock_now();
    report->wall = (int64_t)coord_clock_wall_us();
    if (!event && orphans->args->value[CLI_JSON] == NULL) {
        return print_text(report) && fflush(stdout) == 0;
    }
    if (coord_report_text(report, event ? COORD_REPORT_CLOUDEVENTS : COORD_REPORT_JSON, line,
                          &bytes) != COORD_OK) {
        cli_say("a report is left out: it is too long for one line");
        return true;
    }
    return fwrite(line, 1, bytes, stdout) == bytes && fflush(stdout) == 0;
}

static bool print_table(const struct orphans *orphans)
{
    struct coord_orphan orphan;
    uint32_t at = 0;
    bool good = true;
    while (good && coord_coordinator_next_orphan(orphans->fleet.coordinator, &at, &orphan)) {
        struct coord_report report = {.kind = COORD_ORPHANS_TABLE, .orphan = &orphan};
        /* What it does not list, the leader does not know, or has closed. */
        if (cli_fleet_lists(&orphans->fleet, orphan.report_id)) {
            good = print(orphans, &report);
        }
    }
    return good;
}

/* ---------------------------------------------------------------- listening */

/* Ask the store which term is the present one. @return true: it said nothing against the table. */
static bool ask_store(struct orphans *orphans)
{
    struct coord_observation seen = {.leading = false};
    struct coord_error error = {.code = COORD_OK};
    if (!orphans->has_election) {
        return true;
    }
    if (coord_election_observe(orphans->election.election,
                               cli_election_patience(&orphans->election), &seen,
                               &error) != COORD_OK) {
        cli_say_error(&error);
    } else if (seen.fence > orphans->fleet.least_fence) {
        orphans->fleet.least_fence = seen.fence;
    }
    return orphans->fleet.table.fence >= orphans->fleet.least_fence;
}

static int await_table(struct orphans *orphans)
{
    const coord_ms patience = 2 * orphans->fleet.timeout + 1000;
    const coord_ms until = coord_ms_add(coord_clock_now(), patience);
    struct coord_event event;
    char time[TIME_TEXT];
    for (;;) {
        const enum cli_fleet_news news = cli_fleet_next(&orphans->fleet, until, &event);
        if (news == CLI_FLEET_FAILED) {
            return CLI_FAILED;
        }
        if (news == CLI_FLEET_NOTHING) {
            cli_say("no leader told its table within %s: see that one leads, and that --bus and "
                    "--timeout are the fleet's own",
                    cli_say_time(patience, time));
            return CLI_NOT_IN_TIME;
        }
        if (news == CLI_FLEET_TABLE && ask_store(orphans)) {
            return print_table(orphans) && fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
        }
    }
}

/* Until the reader goes away, or a signal ends it. */
static int follow(struct orphans *orphans)
{
    struct coord_event event;
    orphans->fleet.is_read = true;
    for (;;) {
        struct coord_report report = {.orphan = NULL};
        const enum cli_fleet_news news = cli_fleet_next(&orphans->fleet, COORD_NEVER, &event);
        if (news == CLI_FLEET_FAILED) {
            return CLI_FAILED;
        }
        if (news == CLI_FLEET_TABLE) {
            COORD_IGNORE(!ask_store(orphans), "what it tells from now on is passed over");
        }
        if (news == CLI_FLEET_NOTHING ||
            (news == CLI_FLEET_EVENT && coord_report_of(&event, &report) &&
             !print(orphans, &report))) {
            return CLI_DONE;
        }
    }
}

/* ---------------------------------------------------------------- the verb */

static int open_all(const struct cli_args *args, struct orphans *out)
{
    *out = (struct orphans){.args = args};
    if (args->value[CLI_JSON] != NULL && args->value[CLI_CLOUDEVENTS] != NULL) {
        return cli_say_usage("--json and --cloudevents exclude each other; leave one out");
    }
    if (args->value[CLI_ELECTOR] != NULL && args->value[CLI_NAME] == NULL) {
        return cli_say_usage("--elector needs --name NAME; it may also stand in COORD_NAME");
    }
    int status = cli_fleet_open(args, NULL, true, &out->fleet);
    if (status == 0 && args->value[CLI_ELECTOR] != NULL) {
        status = cli_election_open(args, NULL, false, &out->election);
        out->has_election = status == 0;
        if (status != 0) {
            cli_fleet_close(&out->fleet);
        }
    }
    return status;
}

static int run_orphans(const struct cli_args *args)
{
    struct orphans orphans;
    int status = open_all(args, &orphans);
    if (status != 0) {
        return status;
    }
    status = cli_fleet_await(&orphans.fleet);
    if (status == 0) {
        COORD_IGNORE(!ask_store(&orphans), "there is no table yet");
        status = args->value[CLI_FOLLOW] != NULL ? follow(&orphans) : await_table(&orphans);
    }
    if (orphans.has_election) {
        cli_election_close(&orphans.election);
    }
    cli_fleet_close(&orphans.fleet);
    return status;
}

const struct cli_verb cli_verb_orphans = {
    .name = "orphans",
    .synopsis = "--bus URI [--elector URI --name NAME] [--follow] [--json|--cloudevents]\n"
                "       [--timeout DUR] [--topic-prefix PREFIX]",
    .summary = "tell which work nobody looks after, as the leader reports it",
    .details = "It waits for one whole table of the leader, who repeats it each --timeout, and\n"
               "prints what is open. With --follow it goes on, and prints each report as it is\n"
               "opened, updated or resolved. With --elector only the present leader counts.\n\n"
               "exit: 0 a whole table was heard, whatever is in it; 124 none was, in twice the\n"
               "time-out; 125 the bus or the store cannot be reached; 2 usage\n",
    .takes = CLI_TAKES(CLI_TOPIC_PREFIX) | CLI_TAKES(CLI_BUS) | CLI_TAKES(CLI_ELECTOR) |
             CLI_TAKES(CLI_NAME) | CLI_TAKES(CLI_FOLLOW) | CLI_TAKES(CLI_JSON) |
             CLI_TAKES(CLI_CLOUDEVENTS) | CLI_TAKES(CLI_TIMEOUT) | CLI_TAKES(CLI_SET),
    .needs = CLI_TAKES(CLI_BUS),
    .run = run_orphans,
};
