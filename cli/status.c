/* SPDX-License-Identifier: MIT
 * cli/status.c - `coordctl status`: who leads.
 */
#include "cli/election.h"
#include "cli/exits.h"
#include "cli/json.h"
#include "cli/say.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LOOK_MS_MAX = 1000,
    TIME_TEXT = 32
};

static bool same(const struct coord_observation *a, const struct coord_observation *b)
{
    return a->leading == b->leading && a->taking_over == b->taking_over && a->fence == b->fence &&
           strcmp(a->identity, b->identity) == 0 && a->metadata_bytes == b->metadata_bytes &&
           memcmp(a->metadata, b->metadata, a->metadata_bytes) == 0;
}

/* What the leader said of itself is any bytes: as text, where it said something. */
static void put_metadata(struct cli_json *json, const struct coord_observation *seen)
{
    cli_json_enter(json, "metadata");
    if (seen->metadata_bytes > 0) {
        cli_json_bytes(json, "text", seen->metadata, seen->metadata_bytes);
    }
    cli_json_leave(json);
}

static bool print_json(const struct cli_election *opened, const struct coord_observation *seen)
{
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_text(&json, "name", coord_election_name(opened->election));
    cli_json_text(&json, "leader", seen->leading ? seen->identity : NULL);
    if (seen->leading && seen->fence != 0) {
        cli_json_number(&json, "fence", seen->fence);
    } else {
        cli_json_null(&json, "fence");
    }
    cli_json_time(&json, "since", seen->leading ? seen->since_us : 0);
    if (seen->leading && seen->remaining != COORD_NEVER) {
        cli_json_number(&json, "lease_remaining_ms", seen->remaining);
    } else {
        cli_json_null(&json, "lease_remaining_ms");
    }
    cli_json_text(&json, "taking_over", seen->taking_over ? seen->identity : NULL);
    put_metadata(&json, seen);
    cli_json_text(&json, "backend", coord_election_backend(opened->election));
    return cli_json_end(&json);
}

static bool print_text(const struct cli_election *opened, const struct coord_observation *seen)
{
    const char *name = coord_election_name(opened->election);
    char time[COORD_TIME_TEXT_MAX];
    char left[TIME_TEXT];
    if (seen->taking_over) {
        printf("%s: nobody leads; %s takes over\n", name, seen->identity);
    } else if (!seen->leading) {
        printf("%s: nobody leads\n", name);
    } else {
        printf("%s: %s leads, fence %" PRIu64, name, seen->identity, seen->fence);
        if (seen->since_us != 0) {
            printf(", since %s", cli_time_text(seen->since_us, time));
        }
        if (seen->remaining != COORD_NEVER) {
            printf(", lease runs out in %s", cli_say_time(seen->remaining, left));
        }
        printf("\n");
    }
    return fflush(stdout) == 0;
}

static bool print(const struct cli_args *args, const struct cli_election *opened,
                  const struct coord_observation *seen)
{
    return args->value[CLI_JSON] != NULL ? print_json(opened, seen) : print_text(opened, seen);
}

/* @return false: the reader went away. */
static bool rest(const struct cli_election *opened)
{
    const coord_ms lease = coord_election_timing(opened->election)->lease;
    return !cli_is_unread(coord_ms_min(LOOK_MS_MAX, lease / 3));
}

/* Until the reader goes away, or a signal ends it. */
static int watch(const struct cli_args *args, const struct cli_election *opened)
{
    struct coord_observation seen = {.leading = false};
    struct coord_observation last = seen;
    struct coord_error error;
    bool any = false;
    bool failing = false;
    for (;;) {
        const enum coord_err code =
            coord_election_observe(opened->election, cli_election_patience(opened), &seen, &error);
        if (code == COORD_OK && (!any || !same(&seen, &last))) {
            last = seen;
            any = true;
            if (!print(args, opened, &seen)) {
                return CLI_DONE;
            }
        }
        if (code != COORD_OK && !failing) {
            const int status = cli_say_error(&error);
            if (!any && coord_err_class(code) != COORD_CLASS_RETRY && code != COORD_E_TIMEOUT) {
                return status;
            }
        }
        failing = code != COORD_OK;
        if (!rest(opened)) {
            return CLI_DONE;
        }
    }
}

static int observe(const struct cli_args *args, const struct cli_election *opened)
{
    struct coord_observation seen = {.leading = false};
    struct coord_error error;
    if (coord_election_observe(opened->election, cli_election_patience(opened), &seen, &error) !=
        COORD_OK) {
        return cli_say_error(&error);
    }
    if (!print(args, opened, &seen)) {
        return CLI_FAILED;
    }
    return seen.leading ? CLI_DONE : CLI_NOBODY;
}

static int run_status(const struct cli_args *args)
{
    struct cli_election opened;
    int status = cli_election_open(args, NULL, false, &opened);
    if (status != 0) {
        return status;
    }
    status = args->value[CLI_WATCH] != NULL ? watch(args, &opened) : observe(args, &opened);
    cli_election_close(&opened);
    return status;
}

const struct cli_verb cli_verb_status = {
    .name = "status",
    .synopsis = "--elector URI --name NAME [--watch] [--json]",
    .summary = "tell who leads",
    .details = "exit: 0 a leader is known; 1 nobody leads, also while somebody takes over;\n"
               "125 the store cannot be asked; 2 usage\n",
    .takes = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME) | CLI_TAKES(CLI_WATCH) |
             CLI_TAKES(CLI_JSON) | CLI_TAKES(CLI_SET),
    .needs = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME),
    .run = run_status,
};
