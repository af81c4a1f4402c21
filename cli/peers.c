/* SPDX-License-Identifier: MIT
 * cli/peers.c - `coordctl peers`: who is there, who leaves, who fell silent.
 */
#include "cli/exits.h"
#include "cli/fleet.h"
#include "cli/peers_print.h"
#include "cli/say.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LISTEN_FOR = 20000, /* longer than the fleet's time-out: whoever died meanwhile is known */
    DRAW_EACH = 1000
};

static int print_all(const struct cli_args *args, const struct cli_fleet *fleet)
{
    struct cli_peers peers;
    if (!cli_peers_list(fleet, &peers)) {
        cli_say("out of memory");
        return CLI_FAILED;
    }
    const bool any = peers.count > 0;
    const bool printed = args->value[CLI_JSON] != NULL ? cli_peers_json(fleet, &peers)
                                                       : cli_peers_table(&peers, 0, stdout);
    free(peers.peer);
    if (!any) {
        cli_say(
            "nobody was heard: see that --bus is the fleet's own, and listen longer with --for");
    }
    return !printed || fflush(stdout) != 0 ? CLI_FAILED : any ? CLI_DONE : CLI_NOBODY;
}

static int listen_and_print(const struct cli_args *args, struct cli_fleet *fleet, coord_ms until)
{
    struct coord_event event;
    enum cli_fleet_news news = CLI_FLEET_EVENT;
    while (news == CLI_FLEET_EVENT || news == CLI_FLEET_TABLE) {
        news = cli_fleet_next(fleet, until, &event);
    }
    return news == CLI_FLEET_FAILED ? CLI_FAILED : print_all(args, fleet);
}

/* Each change is a line, until the reader goes away or a signal ends it. */
static int print_changes(const struct cli_args *args, struct cli_fleet *fleet, coord_ms until)
{
    struct coord_event event;
    fleet->is_read = true;
    for (;;) {
        const enum cli_fleet_news news = cli_fleet_next(fleet, until, &event);
        if (news == CLI_FLEET_FAILED) {
            return CLI_FAILED;
        }
        if (news == CLI_FLEET_NOTHING ||
            (news == CLI_FLEET_EVENT &&
             !cli_peers_change(fleet, &event, args->value[CLI_JSON] != NULL))) {
            return CLI_DONE;
        }
    }
}

/* The same lines again and again; the cursor waits below them. */
static int redraw(struct cli_fleet *fleet, coord_ms until)
{
    struct coord_event event;
    size_t lines = 0;
    for (coord_ms next = 0;;) {
        const coord_ms now = coord_clock_now();
        if (now >= next || now >= until) {
            if (!cli_peers_draw(fleet, &lines)) {
                return CLI_FAILED;
            }
            next = now + DRAW_EACH;
        }
        if (now >= until) {
            return CLI_DONE;
        }
        const enum cli_fleet_news news = cli_fleet_next(fleet, coord_ms_min(next, until), &event);
        if (news == CLI_FLEET_FAILED) {
            return CLI_FAILED;
        }
        if (news == CLI_FLEET_EVENT) {
            next = coord_ms_min(next, coord_clock_now() + DRAW_EACH / 5);
        }
    }
}

static int show(const struct cli_args *args, struct cli_fleet *fleet)
{
    const bool watches = args->value[CLI_WATCH] != NULL;
    coord_ms listen_for = 0;
    char time[32];
    int status = cli_args_duration(args, CLI_FOR, watches ? COORD_NEVER : LISTEN_FOR, &listen_for);
    if (status == 0) {
        status = cli_fleet_await(fleet);
    }
    if (status != 0) {
        return status;
    }
    const coord_ms until = coord_ms_add(coord_clock_now(), listen_for);
    if (!watches) {
        if (isatty(STDERR_FILENO)) {
            cli_say("listening for %s", cli_say_time(listen_for, time));
        }
        return listen_and_print(args, fleet, until);
    }
    return args->value[CLI_JSON] == NULL && isatty(STDOUT_FILENO)
               ? redraw(fleet, until)
               : print_changes(args, fleet, until);
}

static int run_peers(const struct cli_args *args)
{
    struct cli_fleet fleet;
    int status = cli_fleet_open(args, NULL, true, &fleet);
    if (status != 0) {
        return status;
    }
    status = show(args, &fleet);
    cli_fleet_close(&fleet);
    return status;
}

const struct cli_verb cli_verb_peers = {
    .name = "peers",
    .synopsis = "--bus URI [--for DUR] [--watch] [--json] [--timeout DUR]\n"
                "       [--topic-prefix PREFIX]",
    .summary = "tell who is in the fleet: alive, leaving, silent",
    .details = "It listens for --for, then prints who was heard. With --watch it goes on: on a\n"
               "terminal the list is drawn again in place, else each change is a line.\n\n"
               "exit: 0 somebody was heard; 1 nobody was; 125 the bus cannot be reached;\n"
               "2 usage\n",
    .takes = CLI_TAKES(CLI_TOPIC_PREFIX) | CLI_TAKES(CLI_BUS) | CLI_TAKES(CLI_FOR) |
             CLI_TAKES(CLI_WATCH) | CLI_TAKES(CLI_JSON) | CLI_TAKES(CLI_TIMEOUT) |
             CLI_TAKES(CLI_SET),
    .needs = CLI_TAKES(CLI_BUS),
    .run = run_peers,
};
