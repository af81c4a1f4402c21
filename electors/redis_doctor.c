/* SPDX-License-Identifier: MIT
 * electors/redis_doctor.c - what a Redis or Valkey server is like, judged for elections.
 */
#include "electors/redis_doctor.h"

#include "connections/redis_ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LISTEN = 3000, /* ms for a subscription */
    ROUND_TRIPS = 20,
    FEW_CLIENTS = 10,
    FEW_SENTINELS = 3,
    CLOCK_WARN_MS = 1000,
    CLOCK_FAIL_MS = 600 * 1000, /* the fence takes up to 71 minutes */
    FIELD = COORD__REDIS_FIELD,
    KEY = 128
};

struct doctor {
    const struct coord_redis_doctor_config *config;
    struct coord_check *list;
    size_t count;
    const char *prefix;
    const char *user; /* for the ACL lines */
    struct coord_redis_ask ask;
    struct redisReply *info; /* NULL: denied */
    char key[3][KEY];        /* of its own: lease, fence, ask; '%' alone is in no election's */
    char missing[FIELD * 2]; /* rights */
};

static struct coord_check *add(struct doctor *d, const char *name, enum coord_verdict verdict,
                               const char *value, const char *why)
{
    COORD_ASSERT(d->count < COORD_CHECKS_MAX);
    struct coord_check *check = &d->list[d->count++];
    *check = (struct coord_check){.name = name, .verdict = verdict, .why = why};
    snprintf(check->value, sizeof check->value, "%s", value);
    return check;
}

/* The cure stands beside a verdict that asks for one. */
static void cure(struct coord_check *check, const char *text)
{
    if (check->verdict != COORD_VERDICT_OK) {
        snprintf(check->cure, sizeof check->cure, "%s", text);
    }
}

static enum coord_verdict unless(bool good, enum coord_verdict bad)
{
    return good ? COORD_VERDICT_OK : bad;
}

/* ---------------------------------------------------------------- asking */

#define ASK(d, ...) COORD_REDIS_ASK(&(d)->ask, __VA_ARGS__)

static const char *field(const struct doctor *d, const char *name, char out[FIELD])
{
    return coord_redis_info_field(d->info, name, out);
}

static long number(const struct doctor *d, const char *name)
{
    char text[FIELD];
    return strtol(field(d, name, text), NULL, 10);
}

static bool setting(struct doctor *d, const char *name, char out[FIELD])
{
    return coord_redis_ask_setting(&d->ask, name, out, FIELD);
}

/* ---------------------------------------------------------------- the server */

static void check_server(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    char text[FIELD];
    const bool valkey = field(d, "valkey_version", text)[0] != '\0';
    field(d, valkey ? "valkey_version" : "redis_version", text);
    const long major = strtol(text, NULL, 10);
    const char *dot = strchr(text, '.');
    const long minor = dot != NULL ? strtol(dot + 1, NULL, 10) : 0;
    snprintf(value, sizeof value, "%s %s", valkey ? "Valkey" : "Redis", text);
    cure(add(d, "version", unless(major > 6 || (major == 6 && minor >= 2), COORD_VERDICT_FAIL),
             value, "the scripts need what 6.2 brought"),
         "upgrade the server to 6.2 or later, or to Valkey");
    add(d, "primary", COORD_VERDICT_OK, field(d, "role", text), "a replica takes no writes");
    const bool cluster = strcmp(field(d, "redis_mode", text), "cluster") == 0;
    cure(add(d, "cluster", unless(!cluster, COORD_VERDICT_WARN), cluster ? "yes" : "no",
             "each name lives on the node of its slot; redirections are not followed"),
         "name the node of the election's slot in the URI");
}

static void check_memory(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    char policy[FIELD];
    field(d, "maxmemory_policy", policy);
    const bool safe = strcmp(policy, "noeviction") == 0;
    const bool limited = number(d, "maxmemory") > 0;
    snprintf(value, sizeof value, "maxmemory-policy %s, maxmemory %ld, %ld evicted",
             policy[0] != '\0' ? policy : "not told", number(d, "maxmemory"),
             number(d, "evicted_keys"));
    cure(add(d, "eviction",
             safe                ? COORD_VERDICT_OK
             : policy[0] == '\0' ? COORD_VERDICT_SKIPPED
             : limited           ? COORD_VERDICT_FAIL
                                 : COORD_VERDICT_WARN,
             value, "a lease that is evicted lets a second leader in"),
         policy[0] == '\0' ? "see to it that it is noeviction"
                           : "CONFIG SET maxmemory-policy noeviction, and the same in its file");
    const long most = number(d, "maxclients");
    const long left = most - number(d, "connected_clients");
    snprintf(value, sizeof value, "%ld of %ld in use", most - left, most);
    cure(add(d, "clients",
             most > 0 ? unless(left >= FEW_CLIENTS, COORD_VERDICT_WARN) : COORD_VERDICT_SKIPPED,
             most > 0 ? value : "not told", "each process that stands needs two connections"),
         "raise maxclients where there is no room for two connections a process");
    char dropped[FIELD];
    char most_memory[FIELD];
    if (field(d, "evicted_clients", dropped)[0] == '\0') {
        return; /* before 7.0 no client is dropped for its memory */
    }
    const bool told = setting(d, "maxmemory-clients", most_memory);
    snprintf(value, sizeof value, "maxmemory-clients %s, %s dropped",
             told ? most_memory : "not told", dropped);
    cure(add(d, "client eviction", unless(strcmp(dropped, "0") == 0, COORD_VERDICT_WARN), value,
             "a connection that is dropped for memory comes back, later than a renewal may bear"),
         "raise maxmemory-clients, or let the large clients read faster");
}

static void check_durability(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    char text[FIELD];
    const bool aof = number(d, "aof_enabled") > 0;
    const bool told = setting(d, "save", text);
    cure(add(d, "persistence", unless(aof, COORD_VERDICT_WARN),
             aof               ? "append-only file"
             : text[0] != '\0' ? "snapshots only"
             : told            ? "none"
                               : "no append-only file",
             "after a restart that lost the last terms each name's next takeover waits a lease"),
         "appendonly yes; fences rise and nobody leads twice without it, too");
    const long up = number(d, "uptime_in_seconds");
    const bool old = up > 0 && (coord_ms)up * 1000 > d->config->lease + 1000;
    snprintf(value, sizeof value, "%ld s", up);
    cure(add(d, "uptime", unless(old, COORD_VERDICT_WARN), value,
             "until a server is older than the lease a new name waits"),
         "wait for a lease, or coordctl init --name NAME where nobody leads");
}

/* That replication is asynchronous, and what each replica more or less would mean. */
static void check_replicas(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    char text[FIELD];
    const long replicas = number(d, "connected_slaves");
    snprintf(value, sizeof value, "%ld%s", replicas, replicas > 0 ? ", asynchronous" : "");
    cure(add(d, "replicas", unless(replicas == 0, COORD_VERDICT_WARN), value,
             "a replica that is promoted may not have the last term: the next one waits a lease, "
             "which covers members of one lease only"),
         "use one coord.ttl for all members, guard what must not be written twice with the fence; "
         "min-replicas-to-write 1 makes the loss rarer");
    const bool told = setting(d, "min-replicas-to-write", text);
    const long needed = strtol(text, NULL, 10);
    const bool spare = needed == 0 || number(d, "min_slaves_good_slaves") > needed;
    snprintf(value, sizeof value, "%ld needed, %ld in time", needed,
             needed > 0 ? number(d, "min_slaves_good_slaves") : replicas);
    cure(add(d, "min-replicas", told ? unless(spare, COORD_VERDICT_WARN) : COORD_VERDICT_SKIPPED,
             told ? value : "this server keeps it to itself",
             "with fewer replicas than min-replicas-to-write it refuses renewals, too: who leads "
             "has lost its lease"),
         "have one replica more than min-replicas-to-write asks for");
}

/* Each Sentinel listens to one channel of each server that it watches. */
static void check_sentinels(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    struct coord_error why;
    const bool by_name = strstr(d->config->uri->scheme, "sentinel") != NULL;
    const redisReply *reply = ASK(d, "PUBSUB", "NUMSUB", "__sentinel__:hello");
    const bool told = coord_redis_ask_code(&d->ask, reply, &why) == COORD_OK &&
                      reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                      reply->element[1]->type == REDIS_REPLY_INTEGER;
    const long long sentinels = told ? reply->element[1]->integer : 0;
    const bool followed = sentinels == 0 || by_name;
    const bool few = sentinels > 0 && sentinels < FEW_SENTINELS;
    snprintf(value, sizeof value, "%lld watch this server%s", sentinels,
             followed ? "" : ", which the URI names by its address");
    cure(add(d, "sentinels",
             told ? unless(followed && !few, COORD_VERDICT_WARN) : COORD_VERDICT_SKIPPED,
             told ? value : "not told",
             followed ? "a failover needs most of them"
                      : "after a failover the URI names what is a replica then: nobody is elected"),
         !told      ? "grant PUBSUB: ACL SETUSER NAME +pubsub|numsub"
         : followed ? "run three at least; SENTINEL CKQUORUM MASTER says whether they are enough"
                    : "name the Sentinels: redis+sentinel://HOST,HOST,HOST/MASTER");
}

static bool is_loopback(const char *host)
{
    return host[0] == '\0' || strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

static void check_connection(struct doctor *d)
{
    const struct coord_uri *uri = d->config->uri;
    char text[FIELD];
    const bool covered = strncmp(uri->scheme, "rediss", strlen("rediss")) == 0;
    bool near = strchr(uri->scheme, '+') != NULL || strcmp(uri->scheme, "unix") == 0;
    near = near && strstr(uri->scheme, "sentinel") == NULL;
    near = near || (uri->host_count > 0 && is_loopback(uri->hosts[0].host));
    cure(add(d, "tls", unless(covered || near, COORD_VERDICT_WARN),
             covered ? "encrypted"
             : near  ? "not needed within this host"
                     : "not encrypted",
             "who reads the network sees the password, and who has it can elect"),
         "rediss:// with coord.tls_ca, unless the network is yours alone");
    const bool told = setting(d, "timeout", text);
    const coord_ms limit = strtoull(text, NULL, 10) * 1000;
    cure(add(d, "idle timeout",
             told ? unless(limit == 0 || limit > d->config->lease, COORD_VERDICT_WARN)
                  : COORD_VERDICT_SKIPPED,
             told ? text : "this server keeps its settings to itself",
             "a connection that the server closes between two renewals is opened again each time"),
         "see to it that `timeout` is 0, or longer than the lease");
    const bool known = setting(d, "tcp-keepalive", text);
    cure(add(d, "tcp-keepalive",
             known ? unless(strcmp(text, "0") != 0, COORD_VERDICT_WARN) : COORD_VERDICT_SKIPPED,
             known ? text : "this server keeps its settings to itself",
             "connections of hosts that are gone count against maxclients for ever without it"),
         "see to it that `tcp-keepalive` is 300, as it is by default");
}

/* ---------------------------------------------------------------- rights */

/* It counts as missing where the server says that it may not be used. */
static void try_right(struct doctor *d, const char *right, const redisReply *reply)
{
    struct coord_error why;
    if (coord_redis_ask_code(&d->ask, reply, &why) == COORD_E_NO_RIGHT) {
        const size_t used = strlen(d->missing);
        snprintf(d->missing + used, sizeof d->missing - used, "%s%s", used > 0 ? " " : "", right);
    }
}

static void acl_line(const struct doctor *d, char out[COORD_CHECK_CURE_MAX])
{
    snprintf(out, COORD_CHECK_CURE_MAX,
             "ACL SETUSER %.60s ~%s:* &%s:* +eval +evalsha +get +set +del +pexpire +pttl +time "
             "+hset +hmget +info +publish +subscribe +unsubscribe",
             d->user, d->prefix, d->prefix);
}

static void check_rights(struct doctor *d)
{
    char line[COORD_CHECK_CURE_MAX];
    char value[COORD_CHECK_VALUE_MAX];
    struct coord_error why = {.code = COORD_OK};
    acl_line(d, line);
    try_right(d, "eval", ASK(d, "EVAL", "return 1", "0"));
    try_right(d, "evalsha", ASK(d, "EVALSHA", "0000000000000000000000000000000000000000", "0"));
    try_right(d, "time", ASK(d, "TIME"));
    try_right(d, "get", ASK(d, "GET", d->key[0]));
    try_right(d, "set", ASK(d, "SET", d->key[0], "", "XX", "KEEPTTL"));
    try_right(d, "pttl", ASK(d, "PTTL", d->key[0]));
    try_right(d, "hmget", ASK(d, "HMGET", d->key[1], "v"));
    try_right(d, "del", ASK(d, "DEL", d->key[2]));
    try_right(d, "pexpire", ASK(d, "PEXPIRE", d->key[1], "1000"));
    if (strstr(d->missing, "pexpire") == NULL) { /* what cannot be taken back is not written */
        try_right(d, "hset", ASK(d, "HSET", d->key[1], "v", "doctor"));
        COORD_IGNORE(coord_redis_ask_code(&d->ask, d->ask.call.reply, &why) != COORD_OK,
                     "looked at below");
        COORD_IGNORE(ASK(d, "PEXPIRE", d->key[1], "1000") == NULL, "it is tried above");
    }
    snprintf(value, sizeof value, "missing: %s (or its keys, %s:*)", d->missing, d->prefix);
    cure(add(d, "elector's rights", unless(d->missing[0] == '\0', COORD_VERDICT_FAIL),
             d->missing[0] == '\0' ? "granted" : value,
             "the scripts of an election use these commands on its keys"),
         line);
    const bool refused = why.code != COORD_OK && why.code != COORD_E_NO_RIGHT;
    cure(add(d, "writes", unless(!refused, COORD_VERDICT_FAIL),
             refused ? coord_err_name(why.code) : "taken", "an acquire writes"),
         why.text);
}

static bool hears(struct doctor *d)
{
    const struct coord_redis_config config = {.uri = d->config->uri,
                                              .resolver = &coord__redis_resolve_at_once};
    struct coord_redis_user member = d->ask.member;
    struct coord_redis_events *events = NULL;
    struct coord_redis_listener listener = {.heard = false};
    if (coord_redis_events_open(&config, &member, &events, NULL) != COORD_OK) {
        return false;
    }
    snprintf(listener.channel, sizeof listener.channel, "%s:{%%doctor}:events", d->prefix);
    const coord_ms until = d->config->now() + LISTEN;
    coord_redis_events_listen(events, &listener, d->config->now());
    coord_redis_events_process(events, d->config->now());
    while (!listener.heard && d->config->now() < until) {
        struct coord_descriptor wanted;
        const coord_ms now = d->config->now();
        const bool open = coord_redis_events_descriptor(events, &wanted);
        const coord_ms at = coord_ms_min(until, coord_redis_events_deadline(events));
        coord_redis_ask_wait(open, &wanted, coord_ms_sub(at, now));
        coord_redis_events_process(events, d->config->now());
    }
    coord_redis_events_drop(events, &listener);
    coord_redis_events_close(events, &member, false);
    return listener.heard;
}

static void check_channel(struct doctor *d)
{
    char line[COORD_CHECK_CURE_MAX];
    char channel[KEY];
    struct coord_error why;
    acl_line(d, line);
    snprintf(channel, sizeof channel, "%s:{%%doctor}:events", d->prefix);
    const bool speaks =
        coord_redis_ask_code(&d->ask, ASK(d, "PUBLISH", channel, "doctor"), &why) == COORD_OK;
    const bool listens = hears(d);
    cure(add(d, "channel", unless(speaks && listens, COORD_VERDICT_WARN),
             speaks && listens ? "granted"
             : speaks          ? "may not subscribe"
             : listens         ? "may not publish"
                               : "may neither publish nor subscribe",
             "a resignation is heard at once; without it the next look finds it, a third of a "
             "lease later at most"),
         line);
    const bool told = d->info != NULL;
    cure(add(d, "run", unless(told, COORD_VERDICT_WARN), told ? "can be named" : "INFO is denied",
             told ? "a record counts as proof only within the run of the server in which it was "
                    "written"
                  : "without it every takeover waits a lease, a replica is not recognised, and "
                    "much is not looked at here"),
         line);
}

/* ---------------------------------------------------------------- time */

static void check_time(struct doctor *d)
{
    char value[COORD_CHECK_VALUE_MAX];
    int64_t worst = 0;
    int64_t best = INT64_MAX;
    int64_t apart = 0; /* as the fastest answer told it */
    for (int i = 0; i < ROUND_TRIPS; i++) {
        const int64_t before = (int64_t)d->config->wall();
        const int64_t server = coord_redis_clock_of(ASK(d, "TIME"));
        const int64_t after = (int64_t)d->config->wall();
        if (server == 0) {
            return; /* the rights say why */
        }
        worst = after - before > worst ? after - before : worst;
        if (after - before < best) {
            best = after - before;
            apart = (server - before - (after - before) / 2) / 1000;
        }
    }
    snprintf(value, sizeof value, "%" PRId64 " ms apart", apart);
    const int64_t size = apart < 0 ? -apart : apart;
    cure(add(d, "clock",
             size >= CLOCK_FAIL_MS   ? COORD_VERDICT_FAIL
             : size >= CLOCK_WARN_MS ? COORD_VERDICT_WARN
                                     : COORD_VERDICT_OK,
             value, "fences follow the server's clock when a record is lost"),
         "let both hosts follow a time server");
    snprintf(value, sizeof value, "%" PRId64 " us at best, %" PRId64 " us at worst of %d", best,
             worst, (int)ROUND_TRIPS);
    cure(add(d, "round trip",
             unless(worst / 1000 < (int64_t)d->config->attempt / 2, COORD_VERDICT_WARN), value,
             "a renewal has an eighth of a lease for its answer"),
         "a longer coord.ttl, or a server that is nearer or less busy");
}

/* ---------------------------------------------------------------- all of it */

static void examine(struct doctor *d)
{
    struct coord_error why = {.code = COORD_OK};
    const redisReply *reply = ASK(d, "INFO");
    if (coord_redis_ask_code(&d->ask, reply, &why) != COORD_OK && why.code != COORD_E_NO_RIGHT) {
        cure(add(d, "connection", COORD_VERDICT_FAIL, coord_err_name(why.code),
                 "nobody can be elected over a server that cannot be asked"),
             why.text);
        return;
    }
    if (reply != NULL && reply->type == REDIS_REPLY_STRING) {
        d->info = d->ask.call.reply;
        d->ask.call.reply = NULL;
    }
    add(d, "connection", COORD_VERDICT_OK, d->config->uri->shown,
        "all members of an election must use this very server, database and prefix");
    if (d->info != NULL) {
        check_server(d);
    }
    check_rights(d);
    check_channel(d);
    if (d->info != NULL) {
        check_memory(d);
        check_durability(d);
        check_replicas(d);
    }
    check_sentinels(d);
    check_connection(d);
    check_time(d);
    freeReplyObject(d->info);
}

size_t coord_redis_doctor(const struct coord_redis_doctor_config *config, struct coord_check *out)
{
    static const char *const parts[] = {"lease", "fence", "ask"};
    struct doctor d = {.config = config, .list = out};
    d.prefix = coord_uri_option(config->uri, "prefix");
    d.prefix = d.prefix != NULL ? d.prefix : "coord";
    d.user =
        config->uri->user != NULL && config->uri->user[0] != '\0' ? config->uri->user : "default";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(d.key[i], KEY, "%.64s:{%%doctor}:%s", d.prefix, parts[i]);
    }
    if (coord_redis_ask_open(config->uri, config->now, &d.ask) != COORD_OK) {
        return 0;
    }
    examine(&d);
    coord_redis_ask_close(&d.ask);
    return d.count;
}
