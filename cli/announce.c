/* SPDX-License-Identifier: MIT
 * cli/announce.c - `coordctl announce`: order a member of a fleet to leave.
 */
#include "cli/exits.h"
#include "cli/fleet.h"
#include "cli/say.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

enum {
    DEADLINE = 120000
};

/* {"reason": "spot", ...} @return 0, or the exit status, said. */
static int metadata_of(const struct cli_args *args, unsigned char *room, size_t size,
                       struct coord_value *out)
{
    struct coord_writer writer;
    size_t bytes = 0;
    coord_writer_begin(&writer, COORD_FORM_MSGPACK, room, size);
    coord_write_map(&writer, (uint32_t)args->metadata_count);
    for (size_t i = 0; i < args->metadata_count; i++) {
        const char *pair = args->metadata[i];
        const size_t key = strcspn(pair, "=");
        coord_write_text(&writer, pair, key);
        coord_write_text(&writer, pair + key + 1, strlen(pair + key + 1));
    }
    coord_write_end(&writer);
    if (coord_writer_finish(&writer, &bytes) != COORD_OK ||
        coord_view(room, bytes, out) != COORD_FAULT_NONE) {
        return cli_say_usage("--metadata is too long, or no UTF-8");
    }
    return 0;
}

static int read_notice(const struct cli_args *args, struct coord_message *out, coord_ms *within)
{
    const char *intent = args->value[CLI_INTENT];
    const int64_t wall = (int64_t)coord_clock_wall_us();
    if (!coord_intent_parse(intent, strlen(intent), &out->intent)) {
        return cli_say_usage(
            "no such --intent: use graceful, preemption, health_failure or maintenance");
    }
    const int status = cli_args_duration(args, CLI_DEADLINE, DEADLINE, within);
    out->type = COORD_MESSAGE_SHUTDOWN;
    out->instance_id = coord_text(args->value[CLI_ID], strlen(args->value[CLI_ID]));
    out->at_us = wall;
    out->sent_at_us = wall;
    out->has_sent_at = true;
    out->completion_us = coord_time_at(wall, 0, *within);
    return status;
}

static int send_notice(const struct cli_args *args, const struct coord_message *notice,
                       coord_ms within)
{
    struct cli_fleet fleet;
    char time[32];
    char id[COORD_ESCAPED_MAX];
    int status = cli_fleet_open(args, NULL, false, &fleet);
    if (status != 0) {
        return status;
    }
    status = cli_fleet_send(&fleet, notice);
    cli_fleet_close(&fleet);
    if (status == 0) {
        printf("%s: told to leave, %s, within %s\n",
               cli_fleet_text(args->value[CLI_ID], strlen(args->value[CLI_ID]), id),
               coord_intent_name(notice->intent), cli_say_time(within, time));
        status = fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
    }
    return status;
}

static int run_announce(const struct cli_args *args)
{
    static unsigned char listed[COORD_MESSAGE_MAX];
    static unsigned char noted[COORD_MESSAGE_MAX];
    struct coord_message notice = {.type = COORD_MESSAGE_SHUTDOWN};
    struct cli_names names;
    coord_ms within = 0;
    int status = cli_names_read(args->value[CLI_SUBSCRIPTIONS], &names);
    if (status != 0) {
        return status;
    }
    status = read_notice(args, &notice, &within);
    if (status == 0 && coord_texts(names.name, names.count, listed, sizeof listed,
                                   &notice.subscriptions) != COORD_OK) {
        status = cli_say_usage("--subscriptions is too long, or no UTF-8");
    }
    if (status == 0) {
        status = metadata_of(args, noted, sizeof noted, &notice.metadata);
    }
    if (status == 0) {
        status = send_notice(args, &notice, within);
    }
    cli_names_free(&names);
    return status;
}

const struct cli_verb cli_verb_announce = {
    .name = "announce",
    .synopsis = "--bus URI --id ID --intent INTENT [--deadline DUR] [--subscriptions A,B]\n"
                "       [--metadata KEY=VALUE]... [--topic-prefix PREFIX]\n"
                "       [--format msgpack|json]",
    .summary = "order a member of the fleet to leave",
    .details = "It is told to all who hear the bus just now; 'coordctl peers' shows whether the\n"
               "member leaves. One that refuses orders, or is not there, does not.\n\n"
               "exit: 0 it was sent; 125 the bus cannot be reached or refuses; 2 usage\n",
    .takes = CLI_TAKES(CLI_TOPIC_PREFIX) | CLI_TAKES(CLI_BUS) | CLI_TAKES(CLI_ID) |
             CLI_TAKES(CLI_INTENT) | CLI_TAKES(CLI_DEADLINE) | CLI_TAKES(CLI_SUBSCRIPTIONS) |
             CLI_TAKES(CLI_METADATA) | CLI_TAKES(CLI_FORMAT) | CLI_TAKES(CLI_SET),
    .needs = CLI_TAKES(CLI_BUS) | CLI_TAKES(CLI_ID) | CLI_TAKES(CLI_INTENT),
    .run = run_announce,
};
