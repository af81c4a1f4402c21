/* SPDX-License-Identifier: MIT
 * brokers/redis.c - PUBLISH over the connection for commands, SUBSCRIBE over the one that listens.
 */
#include "brokers/redis.h"

#include "connections/redis.h"

#include <hiredis/hiredis.h>

#include <stdlib.h>
#include <string.h>

enum {
    FLYING = 16 /* messages that the server has not answered for */
};

/* One topic that is heard. */
struct ear {
    struct ear *next;
    bool wanted;
    struct coord_redis_listener listener;
};

struct flight {
    struct coord_redis_call call;
    coord_ms sent;
};

struct redis_bus {
    struct coord_redis *redis;
    struct coord_redis_user user;
    struct coord_redis_events *events;
    struct coord_redis_user listening_user;
    struct ear *ears;
    struct flight flying[FLYING]; /* a ring: answers come in order */
    unsigned first;
    unsigned count;
    struct coord_error refused; /* the answer to the last message */
    bool said_up;
    bool listens; /* or did: what it hears is read until the end */
};

/* ---------------------------------------------------------------- begin and end */

static enum coord_err begin(struct coord_broker *broker, const struct coord_broker_config *config,
                            coord_ms now, struct coord_error *error)
{
    struct redis_bus *bus = coord_broker_state(broker);
    (void)now;
    if (config->uri == NULL) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "the redis broker needs a URI: give redis://HOST:6379");
    }
    const struct coord_redis_config connection = {.uri = config->uri,
                                                  .share = config->share,
                                                  .resolver = config->resolver,
                                                  .seed = config->seed};
    bus->user.log = coord_broker_log(broker);
    bus->user.attempt = config->attempt;
    bus->listening_user = bus->user;
    enum coord_err rc = coord_redis_open(&connection, &bus->user, &bus->redis, error);
    if (rc == COORD_OK) {
        rc = coord_redis_events_open(&connection, &bus->listening_user, &bus->events, error);
        if (rc != COORD_OK) {
            coord_redis_close(bus->redis, &bus->user, false);
        }
    }
    return rc;
}

static void drop_ear(struct redis_bus *bus, struct ear **at)
{
    struct ear *ear = *at;
    *at = ear->next;
    coord_redis_events_drop(bus->events, &ear->listener);
    free(ear);
}

static void end(struct coord_broker *broker, bool forked)
{
    struct redis_bus *bus = coord_broker_state(broker);
    for (unsigned i = 0; i < FLYING; i++) {
        coord_redis_forget(bus->redis, &bus->flying[i].call);
    }
    while (bus->ears != NULL) {
        drop_ear(bus, &bus->ears);
    }
    coord_redis_events_close(bus->events, &bus->listening_user, forked);
    coord_redis_close(bus->redis, &bus->user, forked);
}

/* ---------------------------------------------------------------- how it is */

static bool is_up(const struct redis_bus *bus)
{
    bool up = coord_redis_is_up(bus->redis) && bus->refused.code == COORD_OK;
    for (const struct ear *ear = bus->ears; up && ear != NULL; ear = ear->next) {
        up = ear->listener.in_force;
    }
    return up;
}

static void report(struct coord_broker *broker, coord_ms now)
{
    struct redis_bus *bus = coord_broker_state(broker);
    const struct coord_error *why = &bus->refused;
    bus->said_up = is_up(bus);
    if (bus->said_up) {
        coord_broker_report_up(broker, now);
        return;
    }
    if (!coord_redis_is_up(bus->redis)) {
        why = coord_redis_trouble(bus->redis);
    } else if (bus->refused.code == COORD_OK) {
        why = coord_redis_events_trouble(bus->events);
    }
    coord_broker_report_down(broker, why, now);
}

/* ---------------------------------------------------------------- publishing */

static enum coord_err publish(struct coord_broker *broker, const struct coord_broker_message *what,
                              coord_ms now, struct coord_error *error)
{
    struct redis_bus *bus = coord_broker_state(broker);
    const char *argv[] = {"PUBLISH", what->topic, what->count > 0 ? what->bytes : ""};
    const size_t bytes[] = {strlen(argv[0]), strlen(argv[1]), what->count};
    (void)error;
    if (!coord_redis_is_up(bus->redis) || bus->count == FLYING) {
        return COORD_E_BUSY;
    }
    struct flight *flight = &bus->flying[(bus->first + bus->count) % FLYING];
    flight->sent = now;
    bus->count++;
    coord_redis_send(bus->redis, &flight->call, 3, argv, bytes, now);
    coord_redis_flush(bus->redis, now);
    return COORD_OK;
}

static void landed(struct coord_broker *broker, struct coord_redis_call *call)
{
    struct redis_bus *bus = coord_broker_state(broker);
    if (call->state != COORD_REDIS_ANSWERED) {
        coord_broker_count_drop(broker, COORD_BROKER_DROP_BROKEN, 1);
    } else if (call->reply->type == REDIS_REPLY_ERROR) {
        coord_broker_count_drop(broker, COORD_BROKER_DROP_REFUSED, 1);
        coord_redis_error(call->reply->str, &bus->refused);
    } else {
        bus->refused.code = COORD_OK;
    }
    coord_redis_call_clear(call);
}

static const struct flight *oldest(const struct redis_bus *bus)
{
    return bus->count > 0 ? &bus->flying[bus->first] : NULL;
}

static void follow(struct coord_broker *broker, coord_ms now)
{
    struct redis_bus *bus = coord_broker_state(broker);
    const struct coord_broker_config *config = coord_broker_configured(broker);
    while (bus->count > 0) {
        struct flight *flight = &bus->flying[bus->first];
        if (flight->call.state == COORD_REDIS_WAITING) {
            if (now < coord_ms_add(flight->sent, config->attempt)) {
                return;
            }
            coord_redis_stuck(bus->redis, &flight->call, now); /* the rest becomes UNKNOWN */
            coord_broker_count_drop(broker, COORD_BROKER_DROP_BROKEN, 1);
        } else {
            landed(broker, &flight->call);
        }
        bus->first = (bus->first + 1) % FLYING;
        bus->count--;
    }
}

/* ---------------------------------------------------------------- listening */

static void came_in(struct coord_redis_listener *listener, const void *bytes, size_t count)
{
    coord_broker_deliver(listener->ctx, listener->channel, strlen(listener->channel), bytes, count);
}

static void listen_to(struct coord_broker *broker, const char *topic, coord_ms now)
{
    struct redis_bus *bus = coord_broker_state(broker);
    struct ear *ear = bus->ears;
    while (ear != NULL && strcmp(ear->listener.channel, topic) != 0) {
        ear = ear->next;
    }
    if (ear == NULL) {
        ear = calloc(1, sizeof *ear);
        if (ear == NULL) {
            struct coord_error error;
            coord_error_set(&error, COORD_E_NO_MEMORY, "no memory to hear a topic: free some");
            coord_broker_report_down(broker, &error, now);
            return;
        }
        memcpy(ear->listener.channel, topic, strlen(topic) + 1);
        ear->listener.message = came_in;
        ear->listener.ctx = broker;
        ear->next = bus->ears;
        bus->ears = ear;
        bus->listens = true;
        coord_redis_events_listen(bus->events, &ear->listener, now);
    }
    ear->wanted = true;
}

static void resubscribe(struct coord_broker *broker, coord_ms now)
{
    struct redis_bus *bus = coord_broker_state(broker);
    const char *topic;
    for (struct ear *ear = bus->ears; ear != NULL; ear = ear->next) {
        ear->wanted = false;
    }
    for (size_t i = 0; (topic = coord_broker_topic(broker, i)) != NULL; i++) {
        listen_to(broker, topic, now);
    }
    for (struct ear **at = &bus->ears; *at != NULL;) {
        if ((*at)->wanted) {
            at = &(*at)->next;
        } else {
            drop_ear(bus, at);
        }
    }
    report(broker, now);
}

/* ---------------------------------------------------------------- driving */

static void process(struct coord_broker *broker, coord_ms now)
{
    struct redis_bus *bus = coord_broker_state(broker);
    coord_redis_flush(bus->redis, now); /* connects, at first */
    coord_redis_process(bus->redis, now);
    follow(broker, now);
    if (bus->listens) {
        coord_redis_events_process(bus->events, now);
    }
    report(broker, now);
}

static size_t descriptors(struct coord_broker *broker, struct coord_descriptor *out)
{
    const struct redis_bus *bus = coord_broker_state(broker);
    size_t count = 0;
    count += coord_redis_descriptor(bus->redis, &out[count]) ? 1 : 0;
    if (bus->listens) {
        count += coord_redis_events_descriptor(bus->events, &out[count]) ? 1 : 0;
    }
    return count;
}

/* What another user of the connections read for us is there already: at once. */
static coord_ms deadline(struct coord_broker *broker)
{
    const struct redis_bus *bus = coord_broker_state(broker);
    const struct flight *flight = oldest(bus);
    coord_ms at = coord_redis_deadline(bus->redis);
    if (is_up(bus) != bus->said_up ||
        (flight != NULL && flight->call.state != COORD_REDIS_WAITING)) {
        return 0;
    }
    if (flight != NULL) {
        at = coord_ms_min(at, coord_ms_add(flight->sent, coord_broker_configured(broker)->attempt));
    }
    if (bus->listens) {
        at = coord_ms_min(at, coord_redis_events_deadline(bus->events));
    }
    return at;
}

static bool unwritten(struct coord_broker *broker)
{
    const struct redis_bus *bus = coord_broker_state(broker);
    return bus->count > 0;
}

static const char *const options[] = {
    "tls_ca", "tls_cert", "tls_key", "sentinel_user", "sentinel_password_file", NULL};

static const struct coord_broker_ops ops = {.size = sizeof ops,
                                            .abi = COORD_BROKER_ABI,
                                            .name = "redis",
                                            .state_bytes = sizeof(struct redis_bus),
                                            .flags = COORD_BROKER_BASIC_PUBSUB,
                                            .options = options,
                                            .init = begin,
                                            .fini = end,
                                            .publish = publish,
                                            .resubscribe = resubscribe,
                                            .process = process,
                                            .descriptors = descriptors,
                                            .deadline = deadline,
                                            .unwritten = unwritten};

const struct coord_broker_ops *coord_redis_broker(void)
{
    return &ops;
}
