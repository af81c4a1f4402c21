/* SPDX-License-Identifier: MIT
 * cli/init.c - `coordctl init`: create what the server lacks, or clear the record of one name.
 */
#include "cli/election.h"
#include "cli/exits.h"
#include "cli/json.h"
#include "cli/say.h"
#include "cli/schemes.h"
#include "cli/verbs.h"
#include "coord/uri.h"
#include "electors/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* coord_postgres_init(), of a library that need not be installed. */
typedef enum coord_err (*prepare_fn)(const char *uri, char *grants, struct coord_error *error);

/* ---------------------------------------------------------------- one name */

static bool print(const struct cli_args *args, const struct cli_election *opened)
{
    const char *name = coord_election_name(opened->election);
    const char *backend = coord_election_backend(opened->election);
    const char *takeover = args->value[CLI_TAKEOVER];
    if (args->value[CLI_JSON] == NULL) {
        printf("%s: nobody leads, by your word; the next candidate leads at once%s%s\n", name,
               takeover != NULL ? "; from now on with coord.takeover=" : "",
               takeover != NULL ? takeover : "");
        return fflush(stdout) == 0;
    }
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_text(&json, "name", name);
    cli_json_bool(&json, "initialised", true);
    cli_json_text(&json, "backend", backend);
    if (takeover != NULL) {
        cli_json_text(&json, "takeover", takeover);
    }
    return cli_json_end(&json);
}

static int clear_name(const struct cli_args *args)
{
    struct cli_args with = *args;
    struct cli_election opened;
    struct coord_error error;
    char takeover[32];
    if (args->value[CLI_TAKEOVER] != NULL) {
        if (with.set_count == COORD_URI_OPTIONS_MAX) {
            return cli_say_usage("too many times --option; leave some out");
        }
        snprintf(takeover, sizeof takeover, "takeover=%.20s", args->value[CLI_TAKEOVER]);
        with.set[with.set_count++] = takeover;
    }
    int status = cli_election_open(&with, NULL, false, &opened);
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

/* ---------------------------------------------------------------- the server */

/* @param grants  NULL: nothing had to be made. */
static bool print_prepared(const struct cli_args *args, const char *backend, const char *grants)
{
    if (args->value[CLI_JSON] == NULL) {
        if (grants != NULL) {
            printf("-- schema coord, table coord.term and function coord.fence() are there\n%s",
                   grants);
        } else {
            printf("%s: nothing has to be made; with --name NAME, init writes your word that "
                   "nobody leads NAME\n",
                   backend);
        }
        return fflush(stdout) == 0;
    }
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_bool(&json, "initialised", true);
    cli_json_text(&json, "backend", backend);
    if (grants != NULL) {
        cli_json_text(&json, "grants", grants);
    }
    return cli_json_end(&json);
}

static int prepare(const struct cli_args *args, const struct coord_uri *uri)
{
    char grants[COORD_POSTGRES_INIT_TEXT_MAX];
    struct coord_error error;
    const struct coord_backend_ops *ops = NULL;
    if (coord_scheme_find(cli_schemes, uri->scheme, &ops, &error) != COORD_OK) {
        return cli_say_error(&error);
    }
    if (strcmp(ops->name, "postgres") != 0) {
        return print_prepared(args, ops->name, NULL) ? CLI_DONE : CLI_FAILED;
    }
    const prepare_fn run =
        (prepare_fn)cli_scheme_function(uri->scheme, "coord_postgres_init", &error);
    if (run == NULL) {
        return cli_say_error(&error);
    }
    if (run(uri->rest, grants, &error) != COORD_OK) {
        return cli_say_error(&error);
    }
    return print_prepared(args, ops->name, grants) ? CLI_DONE : CLI_FAILED;
}

static int prepare_server(const struct cli_args *args)
{
    struct coord_error error;
    if (args->value[CLI_TAKEOVER] != NULL) {
        return cli_say_usage("--takeover belongs to one election; give its --name as well");
    }
    struct coord_uri *uri = malloc(sizeof *uri); /* large */
    if (uri == NULL) {
        cli_say("out of memory");
        return CLI_FAILED;
    }
    const int status = coord_uri_parse(args->value[CLI_ELECTOR], uri, &error) == COORD_OK
                           ? prepare(args, uri)
                           : cli_say_error(&error);
    explicit_bzero(uri, sizeof *uri); /* it may hold a password */
    free(uri);
    return status;
}

static int run_init(const struct cli_args *args)
{
    return args->value[CLI_NAME] != NULL ? clear_name(args) : prepare_server(args);
}

const struct cli_verb cli_verb_init = {
    .name = "init",
    .synopsis = "--elector URI [--name NAME [--takeover safe|fast]] [--json]",
    .summary = "prepare a PostgreSQL; with --name, your word that nobody leads NAME",
    .details = "Without --name: creates what a PostgreSQL lacks, checks what is there, and prints\n"
               "the GRANT lines; it may be run again, and by many at once. On a file or a Redis\n"
               "nothing has to be made, and it says so.\n"
               "With --name: the next candidate need not wait. Refused while somebody leads.\n\n"
               "exit: 0 done; 125 the store refuses or cannot be asked; 2 usage\n",
    .takes = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME) | CLI_TAKES(CLI_JSON) |
             CLI_TAKES(CLI_SET) | CLI_TAKES(CLI_TAKEOVER),
    .needs = CLI_TAKES(CLI_ELECTOR),
    .run = run_init,
};
