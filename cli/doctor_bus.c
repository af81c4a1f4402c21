/* SPDX-License-Identifier: MIT
 * cli/doctor_bus.c - `coordctl doctor --bus`: does what is published come back, and what limits it.
 */
#include "cli/doctor.h"

#include "brokers/local.h"
#include "brokers/postgres.h"
#include "brokers/redis.h"
#include "cli/bus_schemes.h"
#include "cli/exits.h"
#include "cli/fleet.h"
#include "cli/say.h"
#include "cli/schemes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    UP_WITHIN = 10000,
    TROUBLE_WITHIN = 2000, /* a second try is worth that, not more */
    LOOK_EACH = 250,
    HEARD_WITHIN = 5000,
    ROUND_TRIPS = 20,
    SHORT = 200 /* bytes, as a heartbeat has */
};

/* Of libraries that need not be installed. */
typedef size_t (*redis_fn)(const struct coord_redis_bus_doctor_config *config,
                           struct coord_check *out);
typedef size_t (*postgres_fn)(const char *uri, bool pooler, uint64_t (*wall)(void),
                              struct coord_check *out);

struct doctor {
    const struct cli_args *args;
    coord_ms timeout; /* T of the fleet */
    struct coord_uri uri;
    struct coord_runtime *runtime;
    struct coord_bus *bus; /* NULL: it cannot be opened, and `refused` says why */
    struct coord_error refused;
    char topic[COORD_BROKER_TOPIC_MAX]; /* its own */
    struct cli_findings found;
    unsigned char message[COORD_BROKER_MESSAGE_MAX];
};

static const char *prefix_of(const struct cli_args *args)
{
    const char *prefix = args->value[CLI_TOPIC_PREFIX];
    return prefix != NULL ? prefix : COORD_TOPIC_PREFIX;
}

static void add(struct doctor *d, const char *name, enum coord_verdict verdict, const char *value,
                const char *why, const char *cure)
{
    struct coord_checks checks = {d->found.list, d->found.count};
    coord_check_add(&checks, name, verdict, value, why, cure);
    d->found.count = checks.count;
}

/* ---------------------------------------------------------------- its own echo */

/* Send so many bytes, and wait for them. @return us, or -1 with `why`. */
static int64_t send_and_hear(struct doctor *d, size_t count, struct coord_error *why)
{
    struct coord_broker_message heard;
    const uint64_t begun = coord_clock_wall_us();
    const coord_ms until = coord_clock_now() + HEARD_WITHIN;
    const uint64_t mark = begun ^ (uint64_t)getpid() << 48; /* others may have a doctor in, too */
    memcpy(d->message, &mark, sizeof mark);
    *why = (struct coord_error){.code = COORD_OK};
    enum coord_err rc = coord_bus_publish(d->bus, d->topic, d->message, count, why);
    while (rc == COORD_OK) {
        rc = coord_bus_next(d->bus, coord_ms_sub(until, coord_clock_now()), &heard);
        if (rc == COORD_OK && heard.count == count && strcmp(heard.topic, d->topic) == 0 &&
            memcmp(heard.bytes, d->message, count) == 0) {
            return (int64_t)(coord_clock_wall_us() - begun);
        }
    }
    if (why->code == COORD_OK) {
        coord_error_set(why, rc,
                        "see that both directions reach one server, and that its rights allow the "
                        "topic %.200s",
                        d->topic);
    }
    return -1;
}

static void check_echo(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    struct coord_error why = {.code = COORD_OK};
    int64_t best = INT64_MAX;
    int64_t worst = 0;
    for (int i = 0; i < ROUND_TRIPS && worst >= 0; i++) {
        const int64_t took = send_and_hear(d, SHORT, &why);
        best = took < best ? took : best;
        worst = took < 0 || took > worst ? took : worst;
    }
    if (worst < 0) {
        add(d, "echo", COORD_VERDICT_FAIL, coord_err_name(why.code),
            "who does not hear its own heartbeat judges nobody", why.text);
        return;
    }
    snprintf(value, sizeof value, "%" PRId64 " us at best, %" PRId64 " us at worst of %d", best,
             worst, (int)ROUND_TRIPS);
    add(d, "echo", (coord_ms)worst / 1000 < d->timeout / 8 ? COORD_VERDICT_OK : COORD_VERDICT_WARN,
        value, "who has not heard its own heartbeat for half a time-out judges nobody",
        "a longer --timeout for the fleet, or a server that is nearer or less busy");
    const int64_t took = send_and_hear(d, sizeof d->message, &why);
    snprintf(value, sizeof value, "%zu bytes came back in %" PRId64 " us", sizeof d->message, took);
    add(d, "longest message", took >= 0 ? COORD_VERDICT_OK : COORD_VERDICT_FAIL,
        took >= 0 ? value : coord_err_name(why.code), "a table of orphans may be that long",
        why.text);
}

/* ---------------------------------------------------------------- the server */

static int ask_server(struct doctor *d)
{
    struct coord_check *const out = d->found.list + d->found.count;
    struct coord_error error = {.code = COORD_OK};
    const char *const scheme = d->uri.scheme;
    if (strcmp(scheme, "local") == 0) {
        d->found.count += coord_local_doctor(d->uri.path, out);
    } else if (strncmp(scheme, "redis", 5) == 0 || strcmp(scheme, "unix") == 0) {
        const redis_fn ask =
            (redis_fn)cli_scheme_function(scheme, "coord_redis_bus_doctor", &error);
        const struct coord_redis_bus_doctor_config config = {.uri = &d->uri,
                                                             .prefix = prefix_of(d->args),
                                                             .now = coord_clock_now,
                                                             .wall = coord_clock_wall_us};
        d->found.count += ask != NULL ? ask(&config, out) : 0;
    } else if (strncmp(scheme, "postgres", 8) == 0) {
        const postgres_fn ask =
            (postgres_fn)cli_scheme_function(scheme, "coord_postgres_bus_doctor", &error);
        const bool pooler = coord_uri_option(&d->uri, "pooler") != NULL;
        d->found.count += ask != NULL ? ask(d->uri.rest, pooler, coord_clock_wall_us, out) : 0;
    }
    return error.code == COORD_OK ? 0 : cli_say_error(&error);
}

/* ---------------------------------------------------------------- opening */

static int listen_to_all(struct doctor *d)
{
    struct coord_error error = {.code = COORD_OK};
    enum coord_err rc = coord_bus_subscribe(d->bus, d->topic, &error);
    for (unsigned type = 0; rc == COORD_OK && type < COORD_MESSAGE_TYPES; type++) {
        char topic[COORD_TOPIC_MAX];
        rc = coord_topic(prefix_of(d->args), (enum coord_message_type)type, topic);
        rc = rc == COORD_OK ? coord_bus_subscribe(d->bus, topic, &error) : rc;
    }
    return rc == COORD_OK ? 0 : cli_say_error(&error);
}

static int open_bus(struct doctor *d, bool options)
{
    const struct cli_args *args = d->args;
    const char *set[COORD_URI_OPTIONS_MAX + 1] = {NULL};
    struct coord_bus_config config = COORD_BUS_CONFIG_INIT;
    struct coord_error error = {.code = COORD_OK};
    if (options) {
        memcpy(set, args->set, args->set_count * sizeof *set);
        config.options = set;
    }
    enum coord_err rc = coord_uri_parse(args->value[CLI_BUS], &d->uri, &error);
    for (size_t i = 0; rc == COORD_OK && options && i < args->set_count; i++) {
        rc = coord_uri_add_option(&d->uri, args->set[i], &error);
    }
    if (rc == COORD_OK) {
        rc = coord_runtime_new(NULL, &d->runtime, &error);
    }
    if (rc == COORD_OK) {
        rc = coord_bus_open(d->runtime, cli_bus_schemes, args->value[CLI_BUS], &config, &d->bus,
                            &error);
    }
    if (rc == COORD_E_NO_RIGHT || rc == COORD_E_SYSTEM) {
        d->refused = error; /* such as a folder that is open to others: a finding */
        return 0;
    }
    return rc == COORD_OK ? listen_to_all(d) : cli_say_error(&error);
}

/* @param why  written when it does not come up. */
static bool comes_up(struct doctor *d, struct coord_error *why)
{
    const coord_ms begun = coord_clock_now();
    for (;;) {
        struct coord_broker_status status = {.up = false};
        if (coord_bus_await_up(d->bus, LOOK_EACH, why) == COORD_OK) {
            return true;
        }
        const coord_ms waited = coord_clock_now() - begun;
        COORD_IGNORE(coord_bus_get_status(d->bus, &status) != COORD_OK, "never forked");
        if (status.error.code != COORD_OK) {
            *why = status.error;
        }
        if (waited >= UP_WITHIN || (status.error.code != COORD_OK && waited >= TROUBLE_WITHIN)) {
            return false;
        }
    }
}

static int examine(struct doctor *d)
{
    struct coord_error error = d->refused;
    const bool up = d->bus != NULL && comes_up(d, &error);
    add(d, "connection", up ? COORD_VERDICT_OK : COORD_VERDICT_FAIL,
        up ? d->uri.shown : coord_err_name(error.code),
        "all members of the fleet must use this very bus, and one prefix of topics", error.text);
    if (up) {
        check_echo(d);
    }
    /* Who does not answer a bus does not answer a doctor either, after as long a wait. */
    const bool answers = up || coord_err_class(error.code) != COORD_CLASS_RETRY;
    const int status = answers ? ask_server(d) : 0;
    return status != 0 ? status : cli_doctor_print(d->args, &d->found);
}

int cli_doctor_bus(const struct cli_args *args, bool options)
{
    struct doctor *d = calloc(1, sizeof *d); /* large */
    if (d == NULL) {
        cli_say("out of memory");
        return CLI_FAILED;
    }
    d->args = args;
    snprintf(d->topic, sizeof d->topic, "%s.doctor", prefix_of(args));
    int status = cli_fleet_check_prefix(args);
    if (status == 0) {
        status = cli_fleet_timeout(args, &d->timeout);
    }
    if (status == 0) {
        status = open_bus(d, options);
    }
    if (status == 0) {
        status = examine(d);
    }
    coord_bus_close(d->bus);
    coord_runtime_free(d->runtime);
    explicit_bzero(&d->uri, sizeof d->uri); /* it may hold a password */
    free(d);
    return status;
}
