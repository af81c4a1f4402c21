/* SPDX-License-Identifier: MIT
 * connections/redis_greet.c - who we are, and whom we met: login, database, role, run; Sentinel.
 *
 * All of it goes out in one write. HELLO is never said: replies stay those of protocol 2.
 */
#include "connections/redis_link.h"

#include <hiredis/hiredis.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- what is said */

static bool say(struct coord__redis_link *link, enum coord__redis_greeting greeting, int argc,
                const char **argv)
{
    char *text = NULL;
    const long long bytes = redisFormatCommandArgv(&text, argc, argv, NULL);
    if (bytes < 0) {
        return false;
    }
    const bool added = coord__redis_buffer_add(&link->greeting, text, (size_t)bytes);
    explicit_bzero(text, (size_t)bytes); /* it may hold the password */
    redisFreeCommand(text);
    if (added) {
        link->greetings[link->greeting_count++] = greeting;
    }
    return added;
}

/* The first line of the file, without its end. */
static bool read_password(const char *path, char *out, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return false;
    }
    const ssize_t count = read(fd, out, room - 1);
    close(fd);
    if (count < 0) {
        return false;
    }
    out[count] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    return true;
}

static bool say_login(struct coord__redis_link *link, const struct coord__redis_login *login,
                      struct coord_error *error)
{
    char password[COORD__REDIS_SECRET_MAX];
    if (login->password[0] == '\0' && login->user[0] == '\0' && login->file[0] == '\0') {
        return true;
    }
    strcpy(password, login->password);
    if (login->file[0] != '\0' && !read_password(login->file, password, sizeof password)) {
        const bool full = errno == EMFILE || errno == ENFILE;
        coord_error_set(error, full ? COORD_E_SYSTEM : COORD_E_WRONG_PASSWORD,
                        "the file in %s (%.120s) cannot be read: %s", login->named_by, login->file,
                        full ? "raise the limit of open files" : "correct its path, or its mode");
        return false;
    }
    const char *with_user[] = {"AUTH", login->user, password};
    const char *alone[] = {"AUTH", password};
    const bool named = login->user[0] != '\0';
    const bool said = say(link, COORD__REDIS_GREET_AUTH, named ? 3 : 2, named ? with_user : alone);
    explicit_bzero(password, sizeof password);
    return said;
}

static bool at_sentinel(const struct coord__redis_link *link)
{
    return link->target.master[0] != '\0' && !link->at_master;
}

static bool say_all(struct coord__redis_link *link, struct coord_error *error)
{
    const struct coord__redis_target *target = &link->target;
    if (at_sentinel(link)) {
        const char *argv[] = {"SENTINEL", "get-master-addr-by-name", target->master};
        return say_login(link, &target->sentinel, error) &&
               say(link, COORD__REDIS_GREET_SENTINEL, 3, argv);
    }
    if (!say_login(link, &target->login, error)) {
        return false;
    }
    if (target->db != 0) {
        char db[16];
        snprintf(db, sizeof db, "%u", target->db);
        const char *argv[] = {"SELECT", db};
        if (!say(link, COORD__REDIS_GREET_SELECT, 2, argv)) {
            return false;
        }
    }
    const char *server[] = {"INFO", "server"};
    const char *replication[] = {"INFO", "replication"};
    return say(link, COORD__REDIS_GREET_SERVER, 2, server) &&
           say(link, COORD__REDIS_GREET_REPLICATION, 2, replication);
}

void coord__redis_greet(struct coord__redis_link *link, coord_ms now)
{
    struct coord_error error;
    coord_error_set(&error, COORD_E_NO_MEMORY, "out of memory: free some");
    link->greeting_count = 0;
    link->greeting_at = 0;
    link->run_id[0] = '\0';
    if (!say_all(link, &error)) {
        coord__redis_link_fail(link, &error, now);
    }
}

/* ---------------------------------------------------------------- what is answered */

/* The value of `key:` in an INFO text. */
static void info_field(const char *info, const char *key, char *out, size_t room)
{
    const size_t bytes = strlen(key);
    const char *at = info;
    out[0] = '\0';
    while (at != NULL) {
        if (strncmp(at, key, bytes) == 0 && at[bytes] == ':') {
            const size_t length = strcspn(at + bytes + 1, "\r\n");
            if (length < room) {
                memcpy(out, at + bytes + 1, length);
                out[length] = '\0';
            }
            return;
        }
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
}

static void meet_run(struct coord__redis_link *link, const char *history, coord_ms now)
{
    char run[COORD__REDIS_RUN_MAX] = "";
    if (link->run_id[0] != '\0' && history[0] != '\0') {
        snprintf(run, sizeof run, "%s:%s", link->run_id, history);
    }
    if (link->runs == 0 || strcmp(run, link->run) != 0) {
        memcpy(link->run, run, sizeof run);
        link->run_met = now;
        link->run_since = COORD_NEVER;
        link->runs++;
    }
}

static void is_a_replica(struct coord__redis_link *link, const char *info, coord_ms now)
{
    struct coord_error error;
    char master[128];
    info_field(info, "master_host", master, sizeof master);
    coord_error_set(&error, COORD_E_STANDBY,
                    "the server is a replica of %.100s: name the primary, or use "
                    "redis+sentinel://",
                    master);
    coord__redis_link_next_host(link, &error, now);
}

/* Without INFO an election works, but can prove nothing about the past. */
static void may_not_ask(struct coord__redis_link *link, const char *text, coord_ms now)
{
    struct coord_error error;
    coord_redis_error(text, &error);
    if (link->greeting_at + 1 == link->greeting_count) {
        coord__redis_link_log(link, now, COORD_LOG_WARN, error.code,
                              "INFO is denied, so a replica is not recognised and every takeover "
                              "waits for a lease: grant it with ACL SETUSER NAME +info");
        meet_run(link, "", now);
    }
}

static bool met_server(struct coord__redis_link *link, enum coord__redis_greeting greeting,
                       const redisReply *reply, coord_ms now)
{
    struct coord_error error;
    const bool is_info =
        greeting == COORD__REDIS_GREET_SERVER || greeting == COORD__REDIS_GREET_REPLICATION;
    if (reply->type == REDIS_REPLY_ERROR) {
        const enum coord_err code = coord_redis_error(reply->str, &error);
        if (is_info && code == COORD_E_NO_RIGHT) {
            may_not_ask(link, reply->str, now);
            return true;
        }
        if (greeting == COORD__REDIS_GREET_SELECT && code == COORD_E_NO_RIGHT) {
            coord_error_set(&error, code,
                            "the login may not choose a database: grant it with ACL SETUSER NAME "
                            "+select, or leave the database out of the URI");
        }
        coord__redis_link_next_host(link, &error, now);
        return false;
    }
    if (is_info && reply->type != REDIS_REPLY_STRING) {
        coord_error_set(&error, COORD_E_PROTOCOL,
                        "the server answers INFO with something else: is it Redis, without a "
                        "proxy?");
        coord__redis_link_next_host(link, &error, now);
        return false;
    }
    if (greeting == COORD__REDIS_GREET_SERVER) {
        info_field(reply->str, "run_id", link->run_id, sizeof link->run_id);
    }
    if (greeting == COORD__REDIS_GREET_REPLICATION) {
        char role[16];
        char history[48];
        info_field(reply->str, "role", role, sizeof role);
        if (strcmp(role, "slave") == 0 || strcmp(role, "replica") == 0) {
            is_a_replica(link, reply->str, now);
            return false;
        }
        info_field(reply->str, "master_replid", history, sizeof history);
        meet_run(link, history, now);
    }
    return true;
}

static void refused_by_sentinel(const char *text, struct coord_error *error)
{
    const enum coord_err code = coord_redis_error(text, error);
    if (code == COORD_E_WRONG_PASSWORD) {
        coord_error_set(error, code,
                        "the Sentinel says \"%.90s\": its password belongs into the file that "
                        "coord.sentinel_password_file names, a user into coord.sentinel_user; the "
                        "login of the URI is for the server",
                        text);
    } else if (code == COORD_E_NO_RIGHT) {
        coord_error_set(error, code,
                        "the Sentinel says \"%.90s\": grant it there: ACL SETUSER NAME "
                        "+sentinel|get-master-addr-by-name",
                        text);
    } else if (code == COORD_E_SERVER_TOO_OLD) {
        coord_error_set(error, COORD_E_BAD_URI,
                        "what answers there is no Sentinel: name one, or write redis:// for a "
                        "server");
    }
}

static void met_sentinel(struct coord__redis_link *link, enum coord__redis_greeting greeting,
                         const redisReply *reply, coord_ms now)
{
    struct coord_error error;
    if (greeting == COORD__REDIS_GREET_AUTH && reply->type != REDIS_REPLY_ERROR) {
        link->greeting_at++;
        return;
    }
    const bool found = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                       reply->element[0]->type == REDIS_REPLY_STRING &&
                       reply->element[1]->type == REDIS_REPLY_STRING;
    const unsigned long port = found ? strtoul(reply->element[1]->str, NULL, 10) : 0;
    if (found && port > 0 && port <= UINT16_MAX &&
        strlen(reply->element[0]->str) < sizeof link->found.name) {
        strcpy(link->found.name, reply->element[0]->str);
        link->found.port = (uint16_t)port;
        coord__redis_link_go_to_master(link);
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        refused_by_sentinel(reply->str, &error);
    } else {
        coord_error_set(&error, COORD_E_UNREACHABLE,
                        "the Sentinel knows no primary named %.80s: correct the name in the URI",
                        link->target.master);
    }
    coord__redis_link_next_host(link, &error, now);
}

void coord__redis_greeted(struct coord__redis_link *link, struct redisReply *reply, coord_ms now)
{
    if (link->greeting_at == link->greeting_count) {
        struct coord_error error;
        coord_error_set(&error, COORD_E_PROTOCOL, "the server answers what it was not asked");
        freeReplyObject(reply);
        coord__redis_link_next_host(link, &error, now);
        return;
    }
    const enum coord__redis_greeting greeting = link->greetings[link->greeting_at];
    if (at_sentinel(link)) {
        met_sentinel(link, greeting, reply, now);
    } else if (met_server(link, greeting, reply, now) &&
               ++link->greeting_at == link->greeting_count) {
        coord__redis_link_is_up(link, now);
    }
    freeReplyObject(reply);
}
