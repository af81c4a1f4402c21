/* SPDX-License-Identifier: MIT
 * cli/fleet.c - what every verb about a fleet begins with.
 */
#include "cli/fleet.h"

#include "cli/bus_schemes.h"
#include "cli/exits.h"
#include "cli/say.h"
#include "coord/escape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    UP_WITHIN = 10000, /* of a bus */
    LOOK_MS_MAX = 500  /* how late a broken connection is noticed */
};

/* ---------------------------------------------------------------- opening */

int cli_fleet_timeout(const struct cli_args *args, coord_ms *out)
{
    return cli_args_duration(args, CLI_TIMEOUT, COORD_TIMEOUT_DEFAULT, out);
}

int cli_fleet_check_prefix(const struct cli_args *args)
{
    char topic[COORD_TOPIC_MAX];
    return coord_topic(args->value[CLI_TOPIC_PREFIX], COORD_MESSAGE_HEARTBEAT, topic) == COORD_OK
               ? 0
               : cli_say_usage("--topic-prefix is 1 to %d printable characters without blanks",
                               (int)COORD_TOPIC_PREFIX_MAX);
}

int cli_fleet_open_bus(const struct cli_args *args, struct coord_runtime *runtime,
                       struct coord_bus **out)
{
    const char *set[COORD_URI_OPTIONS_MAX + 1] = {NULL};
    struct coord_bus_config config = COORD_BUS_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    /* Where there is an election too, --option is its own, as everywhere. */
    if ((args->verb->takes & CLI_TAKES(CLI_ELECTOR)) == 0) {
        memcpy(set, args->set, args->set_count * sizeof *set);
        config.options = set;
    }
    return coord_bus_open(runtime, cli_bus_schemes, args->value[CLI_BUS], &config, out, &error) ==
                   COORD_OK
               ? 0
               : cli_say_error(&error);
}

static int listen_to(struct cli_fleet *fleet)
{
    static const enum coord_message_type heard[] = {COORD_MESSAGE_HEARTBEAT, COORD_MESSAGE_SHUTDOWN,
                                                    COORD_MESSAGE_FINISHED, COORD_MESSAGE_ORPHANS};
    struct coord_coordinator_config config = COORD_COORDINATOR_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    char topic[COORD_TOPIC_MAX];
    config.instance_id = "coordctl";
    config.observer = true;
    config.timeout = fleet->timeout;
    COORD_IGNORE(getrandom(&config.seed, sizeof config.seed, GRND_NONBLOCK) < 0, "only a seed");
    if (coord_coordinator_new(&config, coord_clock_now(), &fleet->coordinator, &error) !=
        COORD_OK) {
        return cli_say_error(&error);
    }
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) {
        if (coord_topic(fleet->prefix, heard[i], topic) != COORD_OK ||
            coord_bus_subscribe(fleet->bus, topic, &error) != COORD_OK) {
            return cli_say_error(&error);
        }
    }
    return 0;
}

int cli_fleet_open(const struct cli_args *args, struct coord_runtime *runtime, bool listens,
                   struct cli_fleet *out)
{
    struct coord_error error = {.code = COORD_OK};
    *out = (struct cli_fleet){.runtime = runtime,
                              .own_runtime = runtime == NULL,
                              .prefix = args->value[CLI_TOPIC_PREFIX]};
    int status = cli_fleet_check_prefix(args);
    if (status == 0) {
        status = cli_args_form(args, &out->form);
    }
    if (status == 0 && listens) {
        status = cli_fleet_timeout(args, &out->timeout);
    }
    if (status != 0) {
        return status;
    }
    if (runtime == NULL && coord_runtime_new(NULL, &out->runtime, &error) != COORD_OK) {
        return cli_say_error(&error);
    }
    status = cli_fleet_open_bus(args, out->runtime, &out->bus);
    if (status == 0 && listens) {
        status = listen_to(out);
    }
    if (status != 0) {
        cli_fleet_close(out);
    }
    return status;
}

void cli_fleet_close(struct cli_fleet *fleet)
{
    coord_bus_close(fleet->bus);
    coord_coordinator_free(fleet->coordinator);
    free(fleet->table.id);
    if (fleet->own_runtime) {
        coord_runtime_free(fleet->runtime);
    }
    *fleet = (struct cli_fleet){.runtime = NULL};
}

void cli_fleet_say_bus(const struct coord_broker_status *status, bool *said_down)
{
    if (status->up && *said_down) {
        cli_say("the bus is up again");
        *said_down = false;
    } else if (!status->up && !*said_down && status->error.code != COORD_OK) {
        cli_say("the bus is down: %s: %s", coord_err_name(status->error.code), status->error.text);
        *said_down = true;
    }
}

int cli_fleet_await(struct cli_fleet *fleet)
{
    struct coord_error error = {.code = COORD_OK};
    if (coord_bus_await_up(fleet->bus, UP_WITHIN, &error) == COORD_OK) {
        return 0;
    }
    cli_say_error(&error);
    return CLI_FAILED;
}

/* ---------------------------------------------------------------- speaking */

int cli_fleet_send(struct cli_fleet *fleet, const struct coord_message *message)
{
    static unsigned char bytes[COORD_MESSAGE_MAX];
    struct coord_error error = {.code = COORD_OK};
    char topic[COORD_TOPIC_MAX];
    size_t count = 0;
    if (coord_message_encode(message, fleet->form, bytes, sizeof bytes, &count) != COORD_OK) {
        return cli_say_usage("an id, a name or a value is too long, or no UTF-8: ids have 1 to 255 "
                             "bytes, a message 64 KiB");
    }
    const int status = cli_fleet_await(fleet);
    if (status != 0) {
        return status;
    }
    if (coord_topic(fleet->prefix, message->type, topic) != COORD_OK ||
        coord_bus_publish(fleet->bus, topic, bytes, count, &error) != COORD_OK ||
        coord_bus_drain(fleet->bus, UP_WITHIN, &error) != COORD_OK) {
        cli_say_error(&error);
        return CLI_FAILED;
    }
    return 0;
}

/* ---------------------------------------------------------------- listening */

static bool all_set(const unsigned char *id)
{
    bool all = true;
    for (size_t i = 0; i < COORD_REPORT_ID_BYTES; i++) {
        all = all && id[i] == 0xff;
    }
    return all;
}

static void count_up(unsigned char *id)
{
    for (size_t i = COORD_REPORT_ID_BYTES; i-- > 0;) {
        if (++id[i] != 0) {
            return;
        }
    }
}

/* @return false: no memory. */
static bool note_ids(struct cli_table *table, const struct coord_message *part)
{
    struct coord_walk walk;
    struct coord_value element;
    struct coord_report_wire report;
    coord_walk_begin(&part->reports, &walk);
    while (coord_walk_next(&walk, NULL, &element)) {
        if (table->count == table->room) {
            const size_t room = table->room > 0 ? 2 * table->room : 64;
            void *more = realloc(table->id, room * sizeof *table->id);
            if (more == NULL) {
                return false;
            }
            table->id = more;
            table->room = room;
        }
        if (coord_report_read(&element, &report) == COORD_FAULT_NONE) {
            memcpy(table->id[table->count++], report.id, sizeof report.id);
        }
    }
    return true;
}

static int compare_ids(const void *left, const void *right)
{
    return memcmp(left, right, COORD_REPORT_ID_BYTES);
}

bool cli_fleet_lists(const struct cli_fleet *fleet, const unsigned char *report_id)
{
    const struct cli_table *table = &fleet->table;
    return table->count > 0 &&
           bsearch(report_id, table->id, table->count, sizeof *table->id, compare_ids) != NULL;
}

/* A table comes in parts, each of a range of ids. @return true: this was the last one. */
static bool take_part(struct cli_table *table, const struct coord_message *part)
{
    static const unsigned char zero[COORD_REPORT_ID_BYTES];
    const bool first = memcmp(part->first, zero, sizeof zero) == 0;
    const bool follows = table->begun && part->fence == table->fence &&
                         memcmp(part->first, table->next, sizeof table->next) == 0;
    table->count = first ? 0 : table->count;
    table->begun = (first || follows) && note_ids(table, part);
    if (!table->begun) {
        return false;
    }
    table->fence = part->fence;
    memcpy(table->next, part->last, sizeof table->next);
    count_up(table->next);
    table->begun = !all_set(part->last);
    if (!table->begun && table->count > 1) {
        qsort(table->id, table->count, sizeof *table->id, compare_ids);
    }
    return !table->begun;
}

/* @return true: a leader's table is whole. */
static bool take_message(struct cli_fleet *fleet, const struct coord_broker_message *message,
                         coord_ms now)
{
    enum coord_message_type type = COORD_MESSAGE_HEARTBEAT;
    struct coord_message read = {.kind = COORD_ORPHANS_HINT};
    if (!coord_topic_type(fleet->prefix, message->topic, strlen(message->topic), &type)) {
        return false;
    }
    if (type == COORD_MESSAGE_ORPHANS &&
        coord_message_decode(type, message->bytes, message->count, &read) == COORD_FAULT_NONE &&
        read.kind != COORD_ORPHANS_HINT && read.fence < fleet->least_fence) {
        return false;
    }
    if (coord_coordinator_handle(fleet->coordinator, type, message->bytes, message->count, now) !=
        COORD_OK) {
        return false; /* bad, and counted */
    }
    return type == COORD_MESSAGE_ORPHANS && read.kind == COORD_ORPHANS_TABLE &&
           take_part(&fleet->table, &read);
}

static void look_at_bus(struct cli_fleet *fleet, coord_ms now)
{
    struct coord_broker_status status = {.up = false};
    COORD_IGNORE(coord_bus_get_status(fleet->bus, &status) != COORD_OK, "never forked");
    if (status.ups != fleet->ups) { /* it was down since, and what was said then is lost */
        coord_coordinator_connected(fleet->coordinator, false, now);
    }
    fleet->ups = status.ups;
    coord_coordinator_connected(fleet->coordinator, status.up, now);
    cli_fleet_say_bus(&status, &fleet->said_down);
}

/* How long to wait for the next message; 0: what waits is read before anybody is judged. */
static coord_ms wait_for(struct cli_fleet *fleet, bool dry, coord_ms now, coord_ms until)
{
    const coord_ms at = coord_ms_min(until, coord_coordinator_deadline(fleet->coordinator));
    return dry ? coord_ms_sub(coord_ms_min(at, now + LOOK_MS_MAX), now) : 0;
}

enum cli_fleet_news cli_fleet_next(struct cli_fleet *fleet, coord_ms until, struct coord_event *out)
{
    struct coord_broker_message message;
    for (bool dry = false;;) {
        coord_ms now = coord_clock_now();
        look_at_bus(fleet, now);
        if (coord_coordinator_next_heard(fleet->coordinator, now, out) ||
            (dry && coord_coordinator_next_event(fleet->coordinator, now, out))) {
            return CLI_FLEET_EVENT;
        }
        if (fleet->table.whole) {
            fleet->table.whole = false;
            return CLI_FLEET_TABLE;
        }
        if (dry && fleet->is_read && cli_is_unread(0)) {
            return CLI_FLEET_NOTHING;
        }
        if (now >= until && (dry || now >= coord_ms_add(until, LOOK_MS_MAX))) {
            return CLI_FLEET_NOTHING;
        }
        const enum coord_err code =
            coord_bus_next(fleet->bus, wait_for(fleet, dry, now, until), &message);
        dry = code != COORD_OK;
        if (code == COORD_OK) {
            fleet->table.whole = take_message(fleet, &message, coord_clock_now());
        } else if (code != COORD_E_TIMEOUT && code != COORD_E_NO_MEMORY) {
            cli_say("the bus cannot be read: %s", coord_err_text(code));
            return CLI_FLEET_FAILED;
        }
    }
}

/* ---------------------------------------------------------------- names */

int cli_names_read(const char *text, struct cli_names *out)
{
    *out = (struct cli_names){.text = text != NULL ? strdup(text) : NULL};
    if (text == NULL) {
        return 0;
    }
    if (out->text == NULL) {
        cli_say("out of memory");
        return CLI_FAILED;
    }
    for (char *at = out->text; at != NULL;) {
        char *name = strsep(&at, ",");
        if (name[0] == '\0' || strlen(name) > COORD_NAME_MAX ||
            out->count == COORD_SUBSCRIPTIONS_MAX) {
            cli_names_free(out);
            return cli_say_usage("--subscriptions is a list such as orders,ledger: names of 1 to "
                                 "%d bytes, %d at most",
                                 COORD_NAME_MAX, (int)COORD_SUBSCRIPTIONS_MAX);
        }
        out->name[out->count++] = name;
    }
    return 0;
}

void cli_names_free(struct cli_names *names)
{
    free(names->text);
    *names = (struct cli_names){.count = 0};
}

const char *cli_fleet_text(const char *bytes, size_t count, char out[COORD_ESCAPED_MAX])
{
    if (coord_escape(bytes, count, out) != COORD_OK) {
        snprintf(out, COORD_ESCAPED_MAX, "?"); /* no message has one that long */
    }
    return out;
}
