/* SPDX-License-Identifier: MIT
 * cli/doctor.c - `coordctl doctor`: look at a server, and say what is wrong and what cures it.
 */
#include "cli/doctor.h"

#include "cli/election.h"
#include "cli/exits.h"
#include "cli/json.h"
#include "cli/say.h"
#include "cli/schemes.h"
#include "cli/verbs.h"
#include "electors/file.h"
#include "electors/redis_doctor.h"
#include "runtime/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of libraries that need not be installed. */
typedef size_t (*postgres_fn)(const char *uri, bool pooler, uint64_t (*wall)(void),
                              struct coord_check *out);
typedef size_t (*redis_fn)(const struct coord_redis_doctor_config *config, struct coord_check *out);

/* ---------------------------------------------------------------- timing */

static void check_timing(struct cli_findings *found)
{
    const struct coord_timing *t = found->timing;
    struct coord_check *check = &found->list[found->count++];
    *check = (struct coord_check){.name = "timing",
                                  .verdict = COORD_VERDICT_OK,
                                  .why = "all of it follows from coord.ttl and coord.grace"};
    snprintf(check->value, sizeof check->value,
             "lease %" PRIu64 " ms, renewed every %" PRIu64 " ms, %" PRIu64
             " ms an attempt, margin %" PRIu64 " ms, grace %" PRIu64 " ms",
             t->lease, t->renew, t->attempt, t->margin, t->grace);
}

/* ---------------------------------------------------------------- printing */

static const char *const verdicts[] = {"ok", "warn", "FAIL", "skip"};
static const char *const verdict_names[] = {"ok", "warn", "fail", "skipped"};

static void print_text(const struct coord_check *check)
{
    printf("%-4s %s: %s - %s%s%s\n", verdicts[check->verdict], check->name, check->value,
           check->why, check->cure[0] != '\0' ? "; cure: " : "", check->cure);
}

static bool print_json(const struct cli_findings *found, const struct coord_check *check)
{
    struct cli_json json;
    cli_json_begin(&json, stdout);
    cli_json_text(&json, "check", check->name);
    cli_json_text(&json, "verdict", verdict_names[check->verdict]);
    cli_json_text(&json, "value", check->value);
    cli_json_text(&json, "why", check->why);
    cli_json_text(&json, "cure", check->cure[0] != '\0' ? check->cure : NULL);
    if (strcmp(check->name, "timing") == 0) {
        cli_json_number(&json, "lease_ms", found->timing->lease);
        cli_json_number(&json, "renew_ms", found->timing->renew);
        cli_json_number(&json, "attempt_ms", found->timing->attempt);
        cli_json_number(&json, "margin_ms", found->timing->margin);
        cli_json_number(&json, "grace_ms", found->timing->grace);
    }
    return cli_json_end(&json);
}

int cli_doctor_print(const struct cli_args *args, const struct cli_findings *found)
{
    unsigned count[sizeof verdicts / sizeof *verdicts] = {0};
    for (size_t i = 0; i < found->count; i++) {
        count[found->list[i].verdict]++;
        if (args->value[CLI_JSON] == NULL) {
            print_text(&found->list[i]);
        } else if (!print_json(found, &found->list[i])) {
            return CLI_FAILED;
        }
    }
    if (fflush(stdout) != 0) {
        return CLI_FAILED;
    }
    return count[COORD_VERDICT_FAIL] > 0 ? CLI_NOBODY : CLI_DONE;
}

/* ---------------------------------------------------------------- the server */

static int ask_postgres(const struct coord_uri *uri, struct cli_findings *found)
{
    struct coord_error error;
    const postgres_fn examine =
        (postgres_fn)cli_scheme_function(uri->scheme, "coord_postgres_doctor", &error);
    if (examine == NULL) {
        return cli_say_error(&error);
    }
    found->count = examine(uri->rest, coord_uri_option(uri, "pooler") != NULL, coord_clock_wall_us,
                           found->list);
    return 0;
}

static int ask_redis(const struct coord_uri *uri, struct cli_findings *found)
{
    struct coord_error error;
    const struct coord_redis_doctor_config config = {.uri = uri,
                                                     .lease = found->timing->lease,
                                                     .attempt = found->timing->attempt,
                                                     .now = coord_clock_now,
                                                     .wall = coord_clock_wall_us};
    const redis_fn examine =
        (redis_fn)cli_scheme_function(uri->scheme, "coord_redis_doctor", &error);
    if (examine == NULL) {
        return cli_say_error(&error);
    }
    found->count = examine(&config, found->list);
    return 0;
}

/* `backend` as the elector calls itself: one has many schemes. */
static int ask_server(const struct cli_args *args, const char *backend, const struct coord_uri *uri,
                      struct cli_findings *found)
{
    int status = 0;
    const bool postgres = strcmp(backend, "postgres") == 0;
    const bool redis = strcmp(backend, "redis") == 0;
    if (postgres) {
        status = ask_postgres(uri, found);
    } else if (redis) {
        status = ask_redis(uri, found);
    } else if (strcmp(backend, "file") == 0) {
        found->count = coord_file_doctor(uri, found->list);
    }
    if (status == 0 && (postgres || redis) && found->count == 0) {
        cli_say("out of memory");
        status = CLI_FAILED;
    }
    if (status != 0) {
        return status;
    }
    check_timing(found);
    cli_doctor_host(found);
    cli_doctor_names(found, uri);
    return cli_doctor_print(args, found);
}

static int examine(const struct cli_args *args, const char *backend, struct coord_uri *uri,
                   struct cli_findings *found)
{
    struct coord_error error;
    enum coord_err rc = coord_uri_parse(args->value[CLI_ELECTOR], uri, &error);
    for (size_t i = 0; rc == COORD_OK && i < args->set_count; i++) {
        rc = coord_uri_add_option(uri, args->set[i], &error);
    }
    return rc == COORD_OK ? ask_server(args, backend, uri, found) : cli_say_error(&error);
}

static int examine_election(const struct cli_args *args)
{
    struct cli_args with = *args;
    struct cli_election opened;
    /* Nothing is asked through it: it checks the URI and the options, and derives the timing. */
    with.value[CLI_NAME] = "doctor";
    int status = cli_election_open(&with, NULL, false, &opened);
    if (status != 0) {
        return status;
    }
    struct coord_uri *uri = malloc(sizeof *uri); /* large */
    struct cli_findings *found = calloc(1, sizeof *found);
    if (uri == NULL || found == NULL) {
        cli_say("out of memory");
        status = CLI_FAILED;
    } else {
        found->timing = coord_election_timing(opened.election);
        status = examine(args, coord_election_backend(opened.election), uri, found);
        explicit_bzero(uri, sizeof *uri); /* it may hold a password */
    }
    free(found);
    free(uri);
    cli_election_close(&opened);
    return status;
}

static int run_doctor(const struct cli_args *args)
{
    const char *const elector = args->value[CLI_ELECTOR];
    const char *const bus = args->value[CLI_BUS];
    /* A flag says which one is meant, where the environment has both. */
    const unsigned known = args->from_environment;
    const bool only_bus = bus != NULL && (known & CLI_TAKES(CLI_BUS)) == 0 &&
                          (elector == NULL || (known & CLI_TAKES(CLI_ELECTOR)) != 0);
    const bool only_elector = elector != NULL && (known & CLI_TAKES(CLI_ELECTOR)) == 0 &&
                              (bus == NULL || (known & CLI_TAKES(CLI_BUS)) != 0);
    int status = 0;
    if (elector == NULL && bus == NULL) {
        return cli_say_usage("doctor needs --elector URI or --bus URI; they may also stand in "
                             "COORD_ELECTOR and COORD_BUS");
    }
    if (elector != NULL && !only_bus) {
        status = examine_election(args);
    }
    if (bus != NULL && !only_elector && status <= CLI_NOBODY) {
        const int other = cli_doctor_bus(args, elector == NULL || only_bus);
        status = other > status ? other : status;
    }
    return status;
}

const struct cli_verb cli_verb_doctor = {
    .name = "doctor",
    .synopsis = "--elector URI [--ttl DUR] [--json]\n"
                "       coordctl doctor --bus URI [--topic-prefix PREFIX] [--timeout DUR] [--json]",
    .summary = "look at a server: what was seen, why it matters, what cures it",
    .details = "One line a check: ok, warn, FAIL, or skip where the server keeps it to itself.\n"
               "To a bus it sends messages of its own, to the topic PREFIX.doctor, and waits for\n"
               "them to come back.\n\n"
               "exit: 0 nothing FAILs; 1 something does; 125 the system fails; 2 usage\n",
    .takes = CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_TTL) | CLI_TAKES(CLI_BUS) |
             CLI_TAKES(CLI_TOPIC_PREFIX) | CLI_TAKES(CLI_TIMEOUT) | CLI_TAKES(CLI_JSON) |
             CLI_TAKES(CLI_SET),
    .run = run_doctor,
};
