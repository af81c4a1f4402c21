/* SPDX-License-Identifier: MIT
 * brokers/redis_doctor.c - what a Redis or Valkey server is like, judged for a bus.
 */
#include "brokers/redis.h"

#include "connections/redis_ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETTING = 128,
    TOPIC = COORD_BROKER_TOPIC_MAX + 8,
    FEW_CLIENTS = 10,
    LEAST_BUFFER = 1024 * 1024, /* sixteen of the longest messages */
    CLOCK_WARN_MS = 1000
};

struct doctor {
    const struct coord_redis_bus_doctor_config *config;
    struct coord_checks checks;
    struct coord_redis_ask ask;
    struct redisReply *info; /* NULL: denied */
};

static void add(struct doctor *d, const char *name, enum coord_verdict verdict, const char *value,
                const char *why, const char *cure)
{
    coord_check_add(&d->checks, name, verdict, value, why, cure);
}

/* All that a bus and this doctor need. */
static const char *acl_line(const struct doctor *d, char out[COORD_CHECK_CURE_MAX])
{
    const char *user = d->config->uri->user;
    snprintf(out, COORD_CHECK_CURE_MAX,
             "ACL SETUSER %.60s &%.80s.* +publish +subscribe +unsubscribe +ping +info +time",
             user != NULL && user[0] != '\0' ? user : "default", d->config->prefix);
    return out;
}

static void check_server(struct doctor *d)
{
    char version[COORD__REDIS_FIELD];
    char value[COORD_CHECK_VALUE_MAX];
    char line[COORD_CHECK_CURE_MAX];
    const bool valkey = coord_redis_info_field(d->info, "valkey_version", version)[0] != '\0';
    coord_redis_info_field(d->info, valkey ? "valkey_version" : "redis_version", version);
    snprintf(value, sizeof value, "%s %s", valkey ? "Valkey" : "Redis", version);
    const bool old = strtol(version, NULL, 10) < 6;
    add(d, "version",
        d->info == NULL ? COORD_VERDICT_SKIPPED
        : old           ? COORD_VERDICT_FAIL
                        : COORD_VERDICT_OK,
        d->info == NULL ? "not told" : value, "who may use which channel is told apart from 6 on",
        d->info == NULL ? acl_line(d, line) : "upgrade the server to 6 or later, or to Valkey");
}

/* "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60" */
static void check_buffer(struct doctor *d)
{
    char setting[SETTING];
    char value[COORD_CHECK_VALUE_MAX] = "this server keeps its settings to itself";
    unsigned long long hard = 0;
    unsigned long long soft = 0;
    unsigned long long seconds = 0;
    COORD_IGNORE(
        !coord_redis_ask_setting(&d->ask, "client-output-buffer-limit", setting, sizeof setting),
        "looked at below");
    const char *at = strstr(setting, "pubsub ");
    const bool told =
        at != NULL && sscanf(at, "pubsub %llu %llu %llu", &hard, &soft, &seconds) == 3;
    const bool none = hard == 0 && soft == 0;
    const bool small = (hard > 0 && hard < LEAST_BUFFER) || (soft > 0 && soft < LEAST_BUFFER);
    if (told) {
        snprintf(value, sizeof value, "pubsub %llu %llu %llu%s", hard, soft, seconds,
                 none    ? ", without a limit"
                 : small ? ", less than 1 MiB"
                         : "");
    }
    add(d, "client-output-buffer-limit",
        !told           ? COORD_VERDICT_SKIPPED
        : none || small ? COORD_VERDICT_WARN
                        : COORD_VERDICT_OK,
        value,
        "a listener that does not read costs the server that much, and then its connection, which "
        "is made again",
        "CONFIG SET client-output-buffer-limit \"pubsub 32mb 8mb 60\", and the same in its file");
}

static void check_clients(struct doctor *d)
{
    char text[COORD__REDIS_FIELD];
    char value[COORD_CHECK_VALUE_MAX];
    char line[COORD_CHECK_CURE_MAX];
    const long most = strtol(coord_redis_info_field(d->info, "maxclients", text), NULL, 10);
    const long used = strtol(coord_redis_info_field(d->info, "connected_clients", text), NULL, 10);
    snprintf(value, sizeof value, "%ld of %ld in use", used, most);
    add(d, "clients",
        most <= 0                   ? COORD_VERDICT_SKIPPED
        : most - used < FEW_CLIENTS ? COORD_VERDICT_WARN
                                    : COORD_VERDICT_OK,
        most <= 0 ? "not told" : value, "each process of the fleet needs two connections",
        most <= 0 ? acl_line(d, line) : "raise maxclients");
}

static void check_right(struct doctor *d)
{
    char topic[TOPIC];
    char line[COORD_CHECK_CURE_MAX];
    struct coord_error why;
    snprintf(topic, sizeof topic, "%s.doctor", d->config->prefix);
    const redisReply *reply = COORD_REDIS_ASK(&d->ask, "PUBLISH", topic, "doctor");
    const enum coord_err code = coord_redis_ask_code(&d->ask, reply, &why);
    add(d, "right to publish", code == COORD_OK ? COORD_VERDICT_OK : COORD_VERDICT_FAIL,
        code == COORD_OK ? "granted" : coord_err_name(code),
        "who is not heard is dead to the fleet",
        code == COORD_E_NO_RIGHT ? acl_line(d, line) : why.text);
}

static void check_clock(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    char line[COORD_CHECK_CURE_MAX];
    const int64_t before = (int64_t)d->config->wall();
    const int64_t server = coord_redis_clock_of(COORD_REDIS_ASK(&d->ask, "TIME"));
    const int64_t after = (int64_t)d->config->wall();
    const int64_t apart = (server - before - (after - before) / 2) / 1000;
    const bool far = apart >= CLOCK_WARN_MS || apart <= -CLOCK_WARN_MS;
    snprintf(value, sizeof value, "%" PRId64 " ms apart", apart);
    add(d, "clock",
        server == 0 ? COORD_VERDICT_SKIPPED
        : far       ? COORD_VERDICT_WARN
                    : COORD_VERDICT_OK,
        server == 0 ? "TIME is denied" : value,
        "times in messages count as differences, but people and logs compare them",
        server == 0 ? acl_line(d, line) : "let both hosts follow a time server");
}

static void examine(struct doctor *d)
{
    struct coord_error why = {.code = COORD_OK};
    const redisReply *reply = COORD_REDIS_ASK(&d->ask, "INFO");
    const enum coord_err code = coord_redis_ask_code(&d->ask, reply, &why);
    if (code != COORD_OK && code != COORD_E_NO_RIGHT) {
        return; /* that it cannot be reached is told by who opens the bus */
    }
    if (code == COORD_OK && reply->type == REDIS_REPLY_STRING) {
        d->info = d->ask.call.reply;
        d->ask.call.reply = NULL;
    }
    check_server(d);
    check_right(d);
    check_buffer(d);
    check_clients(d);
    check_clock(d);
    freeReplyObject(d->info);
}

size_t coord_redis_bus_doctor(const struct coord_redis_bus_doctor_config *config,
                              struct coord_check *out)
{
    struct doctor d = {.config = config, .checks = {out, 0}};
    if (coord_redis_ask_open(config->uri, config->now, &d.ask) != COORD_OK) {
        return 0;
    }
    examine(&d);
    coord_redis_ask_close(&d.ask);
    return d.checks.count;
}
