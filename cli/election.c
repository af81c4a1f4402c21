/* SPDX-License-Identifier: MIT
 * cli/election.c - what every verb about one election begins with.
 */
#include "cli/election.h"

#include "cli/say.h"
#include "cli/schemes.h"

#include <string.h>

static int open_election(const struct cli_args *args, const struct coord_election_config *config,
                         struct cli_election *out)
{
    struct coord_error error;
    if (coord_runtime_new(NULL, &out->runtime, &error) != COORD_OK) {
        return cli_say_error(&error);
    }
    if (coord_election_open(out->runtime, cli_schemes, args->value[CLI_ELECTOR], config,
                            &out->election, &error) != COORD_OK) {
        coord_runtime_free(out->runtime);
        return cli_say_error(&error);
    }
    return 0;
}

int cli_election_open(const struct cli_args *args, const char *identity, bool hosting,
                      struct cli_election *out)
{
    const char *set[COORD_URI_OPTIONS_MAX + 1] = {NULL};
    struct coord_election_config config = COORD_ELECTION_CONFIG_INIT;
    config.name = args->value[CLI_NAME];
    config.name_bytes = strlen(args->value[CLI_NAME]);
    config.identity = identity;
    config.identity_bytes = identity == NULL ? 0 : strlen(identity);
    config.explicit_ack = hosting;
    config.options = set;
    memcpy(set, args->set, args->set_count * sizeof *set);
    int status = cli_args_length(args, CLI_TTL, &config.ttl);
    if (status == 0) {
        status = cli_args_length(args, CLI_KILL_AFTER, &config.grace);
    }
    return status != 0 ? status : open_election(args, &config, out);
}

void cli_election_close(struct cli_election *opened)
{
    coord_election_close(opened->election);
    coord_runtime_free(opened->runtime);
    *opened = (struct cli_election){.runtime = NULL};
}

bool cli_election_has_answered(enum coord_reason reason)
{
    return reason == COORD_REASON_HELD || reason == COORD_REASON_TAKING_OVER ||
           reason == COORD_REASON_CLAIM_DELAY || reason == COORD_REASON_RESERVED ||
           reason == COORD_REASON_LEADING || reason == COORD_REASON_STOPPING;
}

bool cli_election_is_failing(enum coord_reason reason)
{
    return reason == COORD_REASON_RETRYING || reason == COORD_REASON_REFUSED;
}

coord_ms cli_election_patience(const struct cli_election *opened)
{
    return 2 * coord_election_timing(opened->election)->attempt + 1000;
}
