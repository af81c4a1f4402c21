/* SPDX-License-Identifier: MIT
 * cli/step_down.c - `coordctl step-down`: ask whoever leads to hand over.
 */
#include "cli/election.h"
#include "cli/exits.h"
#include "cli/json.h"
#include "cli/say.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool print_json(const struct cli_election *opened, const struct coord_observation *before,
                       const char *to, bool done)
{
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_text(&json, "name", coord_election_name(opened->election));
    cli_json_text(&json, "leader", before->leading ? before->identity : NULL);
    if (before->leading && before->fence != 0) {
        cli_json_number(&json, "fence", before->fence);
    } else {
        cli_json_null(&json, "fence");
    }
    cli_json_text(&json, "to", to);
    cli_json_bool(&json, "stepped_down", done);
    return cli_json_end(&json);
}

static int exit_of(enum coord_err code, const struct coord_error *error)
{
    switch ((int)code) {
    case COORD_OK:
        return CLI_DONE;
    case COORD_E_NO_LEADER:
        cli_say("nobody leads; there is nothing to step down from");
        return CLI_NOBODY;
    case COORD_E_TIMEOUT:
        cli_say("it did not step down in time: %s", error->text);
        return CLI_NOT_IN_TIME;
    default:
        return cli_say_error(error);
    }
}

static int step_down(const struct cli_args *args, const struct cli_election *opened)
{
    struct coord_observation before;
    struct coord_error error = {.code = COORD_OK};
    coord_ms wait = 0;
    const char *to = args->value[CLI_TO];
    const int status = cli_args_duration(args, CLI_WAIT,
                                         2 * coord_election_timing(opened->election)->lease, &wait);
    if (status != 0) {
        return status;
    }
    if (to != NULL && strlen(to) > COORD_NAME_MAX) {
        return cli_say_usage("--to has %zu bytes; an identity has 1 to %d", strlen(to),
                             (int)COORD_NAME_MAX);
    }
    /* Whom it is asked of; the request itself names the fence that it finds. */
    if (coord_election_observe(opened->election, cli_election_patience(opened), &before, &error) !=
        COORD_OK) {
        return cli_say_error(&error);
    }
    enum coord_err code = COORD_E_NO_LEADER;
    if (before.leading) {
        code = coord_election_ask_step_down(opened->election, to, wait, &error);
    }
    if (args->value[CLI_JSON] != NULL) {
        COORD_IGNORE(!print_json(opened, &before, to, code == COORD_OK), "the status tells it");
    } else if (code == COORD_OK) {
        printf("%s: %s stepped down, fence %" PRIu64 "\n", coord_election_name(opened->election),
               before.identity, before.fence);
    }
    return exit_of(code, &error);
}

static int run_step_down(const struct cli_args *args)
{
    struct cli_election opened;
    int status = cli_election_open(args, NULL, false, &opened);
    if (status != 0) {
        return status;
    }
    status = step_down(args, &opened);
    cli_election_close(&opened);
    return status;
}

const struct cli_verb cli_verb_step_down = {
    .name = "step-down",
    .synopsis = "--elector URI --name NAME [--to ID] [--wait DUR] [--json]",
    .summary = "ask the leader to hand over, and wait until it has",
    .details = "The leader ends its work and resigns; --to keeps the place for one candidate.\n"
               "--wait is two leases by default.\n\n"
               "exit: 0 it stepped down; 1 nobody leads; 124 not within --wait; 125 the store\n"
               "cannot be asked; 2 usage\n",
    .takes = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME) | CLI_TAKES(CLI_TO) |
             CLI_TAKES(CLI_WAIT) | CLI_TAKES(CLI_JSON) | CLI_TAKES(CLI_SET),
    .needs = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME),
    .run = run_step_down,
};
