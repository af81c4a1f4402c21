/* SPDX-License-Identifier: MIT
 * electors/redis.c - carries one request at a time to the scripts in the server.
 */
#include "electors/redis.h"

#include "connections/redis.h"
#include "coord/uri.h"
#include "electors/redis_reply.h"
#include "electors/redis_scripts.h"

#include <hiredis/hiredis.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    DEFAULT_TTL = 15000, /* ms */
    HINT_JITTER = 4,     /* ms */
    PREFIX_MAX = 64,
    KEY_MAX = COORD__REDIS_CHANNEL_MAX,
    LINE_MAX = 128, /* the beginning of the lease's value */
    DIGITS_MAX = 24,
    NUMBERS = 4,
    ARGUMENTS = 16,
    TOUCH = 24 * 60 * 60 * 1000 /* ms: how often a leader keeps its record alive */
};

enum part {
    PART_LEASE = 0,
    PART_FENCE,
    PART_ASK,
    PARTS
};

static const char *const part_names[PARTS] = {"lease", "fence", "ask"};

struct redis_elector {
    struct coord_redis *redis;
    struct coord_redis_user user;
    struct coord_redis_events *events;
    struct coord_redis_user listening_user;
    struct coord_redis_listener listener;
    bool listening;

    char key[PARTS][KEY_MAX];
    struct coord_request request; /* the outstanding one */
    struct coord_redis_call call;
    bool whole;     /* it was sent as EVAL */
    bool just_sent; /* nothing can have come since */

    bool settled;        /* the record says that this term led */
    coord_ms touched_at; /* when it said so last */
    uint64_t run;        /* the run that the record names, as the connection counts them */
    bool adopts;         /* the outstanding renewal may put another into it */
    bool touches;        /* ... and keeps the record alive */
    struct coord_observation leader;
};

/* ---------------------------------------------------------------- a command's arguments */

struct command {
    const char *argv[ARGUMENTS];
    size_t bytes[ARGUMENTS];
    int argc;
    char digits[NUMBERS][DIGITS_MAX];
    int numbers;
    char line[LINE_MAX];
    char run[COORD__REDIS_RUN_MAX];
};

static void add(struct command *c, const void *bytes, size_t count)
{
    COORD_ASSERT(c->argc < ARGUMENTS);
    c->argv[c->argc] = count > 0 ? bytes : "";
    c->bytes[c->argc++] = count;
}

static void add_text(struct command *c, const char *text)
{
    add(c, text, strlen(text));
}

static void add_number(struct command *c, uint64_t number)
{
    COORD_ASSERT(c->numbers < NUMBERS);
    char *digits = c->digits[c->numbers++];
    snprintf(digits, DIGITS_MAX, "%" PRIu64, number);
    add_text(c, digits);
}

/* What the lease's value begins with while it is this term's. */
static void add_line(struct command *c, const struct coord_elector *elector,
                     const struct coord_request *request)
{
    snprintf(c->line, sizeof c->line, "coord1 %" PRIu64 " %" PRIu64 " %s ", request->fence,
             request->attempt, coord_backend_owner(elector));
    add_text(c, c->line);
}

static void add_acquire(struct command *c, struct coord_elector *elector,
                        const struct redis_elector *r, coord_ms now)
{
    size_t bytes = 0;
    coord_ms age = 0;
    const void *metadata = coord_backend_metadata(elector, &bytes);
    add_text(c, coord_backend_owner(elector));
    add_number(c, r->request.attempt);
    add_number(c, r->request.lease);
    add_number(c, r->request.seen);
    add_text(c, coord_backend_identity(elector));
    add(c, metadata, bytes);
    (void)coord_redis_run(r->redis, now, c->run, &age);
    add_text(c, c->run);
    add_number(c, age);
}

/*
 * A plain renewal touches the lease alone. The first after leading strikes the debt, one a day
 * keeps the record alive, and one follows a new run of the server that this term has outlived.
 */
static void add_renew(struct command *c, struct coord_elector *elector, struct redis_elector *r,
                      coord_ms now)
{
    const struct coord_request *request = &r->request;
    coord_ms age = 0;
    const uint64_t run = coord_redis_run(r->redis, now, c->run, &age);
    r->adopts = request->led && run != r->run && age > request->lease;
    r->touches = request->led && (!r->settled || r->adopts || now - r->touched_at >= TOUCH);
    add_line(c, elector, request);
    add_number(c, request->lease);
    add_number(c, request->fence);
    if (!request->led) {
        add_number(c, request->debt);
    } else {
        add_text(c, r->touches ? "led" : "");
    }
    add_text(c, r->adopts ? c->run : "");
}

static void add_arguments(struct command *c, struct coord_elector *elector, coord_ms now)
{
    struct redis_elector *r = coord_backend_state(elector);
    const struct coord_request *request = &r->request;
    const char *successor = request->successor != NULL ? request->successor : "";
    switch (request->verb) {
    case COORD_VERB_ACQUIRE:
        add_acquire(c, elector, r, now);
        return;
    case COORD_VERB_RENEW:
        add_renew(c, elector, r, now);
        return;
    case COORD_VERB_RELEASE:
        add_line(c, elector, request);
        add_number(c, request->fence);
        add_text(c, successor);
        add_number(c, request->reserve);
        return;
    case COORD_VERB_UNDO:
        add_text(c, coord_backend_owner(elector));
        add_number(c, request->attempt);
        return;
    case COORD_VERB_ASK:
        add_number(c, request->fence);
        add_text(c, successor);
        add_number(c, coord_ms_max(request->reserve, 1));
        return;
    case COORD_VERB_INIT:
        add_number(c, request->seen);
        return;
    case COORD_VERB_OBSERVE:
    case COORD_VERB_NONE:
        return;
    }
}

static const char *key_of(const struct redis_elector *r, const char *name)
{
    for (int i = 0; i < PARTS; i++) {
        if (strcmp(name, part_names[i]) == 0) {
            return r->key[i];
        }
    }
    COORD_ASSERT(false);
    return NULL;
}

/*
 * The word that wakes those who listen. It is a command of its own behind the script: inside one
 * a missing right to PUBLISH would leave the rest undone. Nobody waits for its answer.
 */
static void tell_others(struct redis_elector *r, coord_ms now)
{
    const struct coord_request *request = &r->request;
    char word[DIGITS_MAX + 16];
    if (request->verb == COORD_VERB_RELEASE) {
        snprintf(word, sizeof word, "released %" PRIu64, request->fence);
    } else if (request->verb == COORD_VERB_UNDO) {
        snprintf(word, sizeof word, "undone");
    } else if (request->verb == COORD_VERB_ASK) {
        snprintf(word, sizeof word, "step-down %" PRIu64, request->fence);
    } else {
        return;
    }
    const char *argv[] = {"PUBLISH", r->listener.channel, word};
    const size_t bytes[] = {strlen(argv[0]), strlen(argv[1]), strlen(argv[2])};
    coord_redis_send(r->redis, NULL, 3, argv, bytes, now);
}

static void send_script(struct coord_elector *elector, bool whole, coord_ms now)
{
    struct redis_elector *r = coord_backend_state(elector);
    const struct coord__redis_script *script = coord__redis_script(r->request.verb);
    struct command command;
    command.argc = 0;
    command.numbers = 0;
    r->whole = whole;
    add_text(&command, whole ? "EVAL" : "EVALSHA");
    add_text(&command, whole ? script->body : script->sha1);
    add_text(&command, script->keys == 2 ? "2" : "3");
    for (int i = 0; i < script->keys; i++) {
        add_text(&command, key_of(r, script->key[i]));
    }
    add_arguments(&command, elector, now);
    coord_redis_send(r->redis, &r->call, command.argc, command.argv, command.bytes, now);
    if (r->call.state == COORD_REDIS_WAITING) {
        tell_others(r, now);
    }
    coord_redis_flush(r->redis, now);
}

/* ---------------------------------------------------------------- begin and end */

static enum coord_err read_prefix(const struct coord_uri *uri, const char **out,
                                  struct coord_error *error)
{
    const char *prefix = coord_uri_option(uri, "prefix");
    *out = "coord";
    if (prefix == NULL) {
        return COORD_OK;
    }
    bool good = prefix[0] != '\0' && strlen(prefix) <= PREFIX_MAX;
    for (const char *c = prefix; good && *c != '\0'; c++) {
        good = *c > 0x20 && *c < 0x7f && *c != '{' && *c != '}';
    }
    if (!good) {
        return coord_error_set(error, COORD_E_BAD_OPTION,
                               "coord.prefix takes 1 to %d printable characters without spaces "
                               "and braces: use letters, digits, ':' and '-'",
                               PREFIX_MAX);
    }
    *out = prefix;
    return COORD_OK;
}

static void write_keys(struct redis_elector *r, const char *prefix, const char *name)
{
    for (int i = 0; i < PARTS; i++) {
        snprintf(r->key[i], KEY_MAX, "%s:{%s}:%s", prefix, name, part_names[i]);
    }
    snprintf(r->listener.channel, sizeof r->listener.channel, "%s:{%s}:events", prefix, name);
}

static enum coord_err begin(struct coord_elector *elector,
                            const struct coord_elector_config *config, struct coord_error *error)
{
    struct redis_elector *r = coord_backend_state(elector);
    if (config->uri == NULL) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "the Redis elector needs a URI: give redis://HOST:6379");
    }
    const char *prefix = NULL;
    enum coord_err rc = read_prefix(config->uri, &prefix, error);
    if (rc != COORD_OK) {
        return rc;
    }
    write_keys(r, prefix, coord_backend_name(elector));
    const struct coord_redis_config connection = {.uri = config->uri,
                                                  .share = config->share,
                                                  .resolver = config->resolver,
                                                  .seed = config->seed};
    r->user.log = coord_backend_log(elector);
    r->user.attempt = coord_backend_attempt(elector);
    r->listening_user = r->user;
    rc = coord_redis_open(&connection, &r->user, &r->redis, error);
    if (rc == COORD_OK) {
        rc = coord_redis_events_open(&connection, &r->listening_user, &r->events, error);
        if (rc != COORD_OK) {
            coord_redis_close(r->redis, &r->user, false);
        }
    }
    return rc;
}

static void end(struct coord_elector *elector, bool forked)
{
    struct redis_elector *r = coord_backend_state(elector);
    coord_redis_forget(r->redis, &r->call);
    coord_redis_events_drop(r->events, &r->listener);
    coord_redis_events_close(r->events, &r->listening_user, forked);
    coord_redis_close(r->redis, &r->user, forked);
}

/* ---------------------------------------------------------------- requests and answers */

static void request(struct coord_elector *elector, const struct coord_request *what, coord_ms now)
{
    struct redis_elector *r = coord_backend_state(elector);
    COORD_ASSERT(r->call.state == COORD_REDIS_IDLE);
    r->request = *what;
    send_script(elector, false, now);
    r->just_sent = r->call.state == COORD_REDIS_WAITING && coord_redis_is_up(r->redis);
}

static void abandon(struct coord_elector *elector, coord_ms now)
{
    struct redis_elector *r = coord_backend_state(elector);
    coord_redis_stuck(r->redis, &r->call, now);
}

/* Whoever follows or leads listens: for resignations, and to be asked to step down. */
static void listen_from_now_on(struct redis_elector *r, coord_ms now)
{
    if (!r->listening) {
        r->listening = true;
        coord_redis_events_listen(r->events, &r->listener, now);
    }
}

static void note(struct redis_elector *r, const struct coord_reply *reply, coord_ms now)
{
    char run[COORD__REDIS_RUN_MAX];
    coord_ms age = 0;
    if (reply->outcome == COORD_GRANTED) {
        r->settled = false;
        r->run = coord_redis_run(r->redis, now, run, &age);
    } else if (reply->outcome == COORD_RENEWED && r->touches) {
        r->settled = true;
        r->touched_at = now;
        if (r->adopts) {
            r->run = coord_redis_run(r->redis, now, run, &age);
        }
    }
    if (reply->outcome == COORD_GRANTED || reply->outcome == COORD_HELD ||
        reply->outcome == COORD_RESERVED) {
        listen_from_now_on(r, now);
    }
}

static void read_answer(struct coord_elector *elector, struct redis_elector *r,
                        struct coord_reply *reply)
{
    struct coord__redis_question question = {.request = &r->request,
                                             .identity = coord_backend_identity(elector),
                                             .lease_key = r->key[PART_LEASE],
                                             .record_key = r->key[PART_FENCE]};
    question.metadata = coord_backend_metadata(elector, &question.metadata_bytes);
    if (r->call.state == COORD_REDIS_ANSWERED) {
        coord__redis_read(&question, r->call.reply, reply, &r->leader);
    } else {
        *reply = (struct coord_reply){.retry_in = COORD_NEVER, .error = r->call.error};
        reply->outcome = r->call.state == COORD_REDIS_FAILED ? COORD_FAILED : COORD_UNKNOWN;
    }
    reply->id = r->request.id;
}

static void answered(struct coord_elector *elector, struct redis_elector *r, coord_ms now)
{
    const redisReply *said = r->call.state == COORD_REDIS_ANSWERED ? r->call.reply : NULL;
    if (said != NULL && said->type == REDIS_REPLY_ERROR && coord_redis_is_noscript(said->str) &&
        !r->whole) {
        coord_redis_call_clear(&r->call); /* it was never sent, or forgotten: once as a whole */
        send_script(elector, true, now);
        return;
    }
    struct coord_reply reply;
    read_answer(elector, r, &reply);
    note(r, &reply, now);
    /* Its texts lie in the call until the base has read them. */
    coord_backend_reply(elector, &reply, now);
    coord_redis_call_clear(&r->call);
}

static bool is_over(const struct redis_elector *r)
{
    return r->call.state > COORD_REDIS_WAITING;
}

static void process(struct coord_elector *elector, coord_ms now)
{
    struct redis_elector *r = coord_backend_state(elector);
    if (r->just_sent) {
        r->just_sent = false; /* the base looks once more before it waits: that read is spared */
        return;
    }
    coord_redis_process(r->redis, now);
    if (is_over(r)) {
        answered(elector, r, now);
    }
    if (r->listening) {
        coord_redis_events_process(r->events, now);
    }
    if (r->listener.heard) {
        r->listener.heard = false;
        coord_backend_hint(elector, now);
    }
}

static size_t descriptors(struct coord_elector *elector, struct coord_descriptor *out)
{
    const struct redis_elector *r = coord_backend_state(elector);
    size_t count = 0;
    count += coord_redis_descriptor(r->redis, &out[count]) ? 1 : 0;
    if (r->listening) {
        count += coord_redis_events_descriptor(r->events, &out[count]) ? 1 : 0;
    }
    return count;
}

/* What arrived while another user of the connection read it is there already: at once. */
static coord_ms deadline(struct coord_elector *elector)
{
    const struct redis_elector *r = coord_backend_state(elector);
    if (is_over(r) || r->listener.heard) {
        return 0;
    }
    const coord_ms events = r->listening ? coord_redis_events_deadline(r->events) : COORD_NEVER;
    return coord_ms_min(coord_redis_deadline(r->redis), events);
}

static const char *const options[] = {
    "prefix", "tls_ca", "tls_cert", "tls_key", "sentinel_user", "sentinel_password_file", NULL};

static const struct coord_backend_ops ops = {.size = sizeof ops,
                                             .abi = COORD_BACKEND_ABI,
                                             .name = "redis",
                                             .state_bytes = sizeof(struct redis_elector),
                                             .default_ttl = DEFAULT_TTL,
                                             .hint_jitter = HINT_JITTER,
                                             .options = options,
                                             .init = begin,
                                             .fini = end,
                                             .request = request,
                                             .abandon = abandon,
                                             .process = process,
                                             .descriptors = descriptors,
                                             .deadline = deadline};

const struct coord_backend_ops *coord_redis_elector(void)
{
    return &ops;
}
