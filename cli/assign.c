/* SPDX-License-Identifier: MIT
 * cli/assign.c - `coordctl assign`: give work to a member, under the fence of the present term.
 */
#include "cli/election.h"
#include "cli/exits.h"
#include "cli/fleet.h"
#include "cli/say.h"
#include "cli/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_priority(const struct cli_args *args, int64_t *out)
{
    const char *text = args->value[CLI_PRIORITY];
    char *end = NULL;
    *out = 0;
    if (text == NULL) {
        return 0;
    }
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno != 0 || end == text || *end != '\0'
               ? cli_say_usage("--priority is an integer, such as 10")
               : 0;
}

/* @return 0, 1 when nobody leads, or the exit status, said. */
static int find_fence(const struct cli_election *opened, uint64_t *out)
{
    struct coord_observation seen = {.leading = false};
    struct coord_error error = {.code = COORD_OK};
    if (coord_election_observe(opened->election, cli_election_patience(opened), &seen, &error) !=
        COORD_OK) {
        return cli_say_error(&error);
    }
    if (!seen.leading) {
        cli_say("nobody leads %s, so there is no term to assign work under",
                coord_election_name(opened->election));
        return CLI_NOBODY;
    }
    *out = seen.fence;
    return 0;
}

static int send_assignment(const struct cli_args *args, struct coord_message *assignment)
{
    struct cli_election opened;
    struct cli_fleet fleet;
    char target[COORD_ESCAPED_MAX];
    const char *to = args->value[CLI_TO];
    int status = cli_election_open(args, NULL, false, &opened);
    if (status != 0) {
        return status;
    }
    status = cli_fleet_open(args, opened.runtime, false, &fleet);
    if (status != 0) {
        cli_election_close(&opened);
        return status;
    }
    /* Up first: the fence is to be young when it is sent. */
    status = cli_fleet_await(&fleet);
    if (status == 0) {
        status = find_fence(&opened, &assignment->fence);
    }
    if (status == 0) {
        assignment->at_us = (int64_t)coord_clock_wall_us();
        assignment->sent_at_us = assignment->at_us;
        status = cli_fleet_send(&fleet, assignment);
    }
    cli_fleet_close(&fleet);
    cli_election_close(&opened);
    if (status == 0) {
        printf("%s: assigned %s, fence %" PRIu64 "\n", cli_fleet_text(to, strlen(to), target),
               args->value[CLI_SUBSCRIPTIONS], assignment->fence);
        status = fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
    }
    return status;
}

static int run_assign(const struct cli_args *args)
{
    static unsigned char listed[COORD_MESSAGE_MAX];
    static const char source[] = "coordctl";
    struct coord_message assignment = {.type = COORD_MESSAGE_WORK_ASSIGNMENT, .has_sent_at = true};
    struct cli_names names;
    int status = cli_names_read(args->value[CLI_SUBSCRIPTIONS], &names);
    if (status != 0) {
        return status;
    }
    status = read_priority(args, &assignment.priority);
    assignment.instance_id = coord_text(source, sizeof source - 1);
    assignment.target = coord_text(args->value[CLI_TO], strlen(args->value[CLI_TO]));
    if (status == 0 && coord_texts(names.name, names.count, listed, sizeof listed,
                                   &assignment.subscriptions) != COORD_OK) {
        status = cli_say_usage("--subscriptions is too long, or no UTF-8");
    }
    if (status == 0) {
        status = send_assignment(args, &assignment);
    }
    cli_names_free(&names);
    return status;
}

const struct cli_verb cli_verb_assign = {
    .name = "assign",
    .synopsis = "--bus URI --elector URI --name NAME --to ID --subscriptions A,B [--priority N]\n"
                "       [--topic-prefix PREFIX] [--format msgpack|json]",
    .summary = "give work to a member of the fleet, under the present term's fence",
    .details = "It is advisory: the member hears it if it is there, and 'coordctl peers' shows\n"
               "whether it took the work. What is sent under an earlier term is dropped by it.\n\n"
               "exit: 0 it was sent; 1 nobody leads, and nothing was sent; 125 the store or the\n"
               "bus cannot be reached; 2 usage\n",
    .takes = CLI_TAKES(CLI_TOPIC_PREFIX) | CLI_TAKES(CLI_BUS) | CLI_TAKES(CLI_ELECTOR) |
             CLI_TAKES(CLI_NAME) | CLI_TAKES(CLI_TO) | CLI_TAKES(CLI_SUBSCRIPTIONS) |
             CLI_TAKES(CLI_PRIORITY) | CLI_TAKES(CLI_FORMAT) | CLI_TAKES(CLI_SET),
    .needs = CLI_TAKES(CLI_BUS) | CLI_TAKES(CLI_ELECTOR) | CLI_TAKES(CLI_NAME) | CLI_TAKES(CLI_TO) |
             CLI_TAKES(CLI_SUBSCRIPTIONS),
    .run = run_assign,
};
