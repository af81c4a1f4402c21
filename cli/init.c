/* SPDX-License-Identifier: MIT
 * cli/init.c - `coordctl init`: create what the store lacks.
 */
#include "cli/election.h"
#include "cli/exits.h"
#include "cli/json.h"
#include "cli/say.h"
#include "cli/verbs.h"

#include <stdio.h>

static bool print(const struct cli_args *args, const struct cli_election *opened)
{
    const char *name = coord_election_name(opened->election);
    const char *backend = coord_election_backend(opened->election);
    if (args->value[CLI_JSON] == NULL) {
        printf("%s: nobody leads, by your word; the next candidate leads at once\n", name);
        return fflush(stdout) == 0;
    }
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_text(&json, "name", name);
    cli_json_bool(&json, "initialised", true);
    cli_json_text(&json, "backend", backend);
    return cli_json_end(&json);
}

static int run_init(const struct cli_args *args)
{
    struct cli_election opened;
    struct coord_error error;
    int status = cli_election_open(args, NULL, false, &opened);
    if (status != 0) {
        return status;
    }
    if (coord_election_init_record(opened.election, cli_election_patience(&opened), &error) !=
        COORD_OK) {
        status = cli_say_error(&error);
    } else if (!print(args, &opened)) {
        status = CLI_FAILED;
    }
    cli_election_close(&opened);
    return status;
}

const struct cli_verb cli_verb_init = {
    .name = "init",
    .synopsis = "--elector URI --name NAME [--json]",
    .summary = "your word that nobody leads: the next candidate need not wait",
    .details = "Refused while somebody leads.\n\n"
               "exit: 0 done; 125 the store refuses or cannot be asked; 2 usage\n",
    .takes =
        CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME) | CLI_TAKES(CLI_JSON) | CLI_TAKES(CLI_SET),
    .needs = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME),
    .run = run_init,
};
