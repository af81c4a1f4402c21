/* SPDX-License-Identifier: MIT
 * coord/broker.c - the base of every broker: what waits, what is heard, and what was lost.
 */
#include "coord/broker.h"

#include "coord/broker_inside.h"
#include "coord/elector.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum {
    INBOX_MESSAGES = 4096,
    INBOX_BYTES = 4 << 20,
    OUTBOX_MESSAGES = 1024,
    OUTBOX_BYTES = 1 << 20,
    OUTBOX_WAIT = 5000, /* ms */
    ATTEMPT = 5000      /* ms */
};

static void check(const struct coord_broker *broker)
{
    COORD_ASSERT(broker != NULL);
    COORD_ASSERT(broker->magic == COORD__BROKER_MAGIC);
}

/* ---------------------------------------------------------------- begin and end */

static enum coord_err check_versions(const struct coord_broker_ops *ops,
                                     const struct coord_broker_config *config,
                                     struct coord_error *error)
{
    if (ops->abi != COORD_BROKER_ABI || ops->size != sizeof *ops ||
        config->size != sizeof *config) {
        return coord_error_set(error, COORD_E_VERSION_MISMATCH,
                               "the %s broker and libcoord %s are of different versions: install "
                               "one version of both",
                               ops->name, coord_version());
    }
    return COORD_OK;
}

static enum coord_err check_options(const struct coord_broker_ops *ops, const struct coord_uri *uri,
                                    struct coord_error *error)
{
    for (size_t i = 0; uri != NULL && i < uri->option_count; i++) {
        const char *const *known = ops->options;
        while (known != NULL && *known != NULL && strcmp(*known, uri->options[i].key) != 0) {
            known++;
        }
        if (known == NULL || *known == NULL) {
            return coord_error_set(error, COORD_E_UNKNOWN_OPTION,
                                   "the %s broker has no option coord.%.60s: remove it, or see "
                                   "the options in the guide",
                                   ops->name, uri->options[i].key);
        }
    }
    return COORD_OK;
}

static void fill_in(struct coord_broker_config *config)
{
    config->inbox_messages = config->inbox_messages > 0 ? config->inbox_messages : INBOX_MESSAGES;
    config->inbox_bytes = config->inbox_bytes > 0 ? config->inbox_bytes : INBOX_BYTES;
    config->outbox_messages =
        config->outbox_messages > 0 ? config->outbox_messages : OUTBOX_MESSAGES;
    config->outbox_bytes = config->outbox_bytes > 0 ? config->outbox_bytes : OUTBOX_BYTES;
    config->outbox_wait = config->outbox_wait > 0 ? config->outbox_wait : OUTBOX_WAIT;
    config->attempt = config->attempt > 0 ? config->attempt : ATTEMPT;
}

enum coord_err coord_broker_new(const struct coord_broker_ops *ops,
                                const struct coord_broker_config *config, coord_ms now,
                                struct coord_broker **out, struct coord_error *error)
{
    COORD_ASSERT(ops != NULL);
    COORD_ASSERT(config != NULL);
    COORD_ASSERT(out != NULL);
    enum coord_err rc = check_versions(ops, config, error);
    if (rc == COORD_OK) {
        rc = check_options(ops, config->uri, error);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    /* One block: the base, then the broker's state at the next boundary fit for any type. */
    const size_t boundary = alignof(max_align_t);
    const size_t base = (sizeof(struct coord_broker) + boundary - 1) / boundary * boundary;
    struct coord_broker *broker = calloc(1, base + ops->state_bytes);
    if (broker == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    broker->magic = COORD__BROKER_MAGIC;
    broker->ops = ops;
    broker->state = (unsigned char *)broker + base;
    broker->config = *config;
    fill_in(&broker->config);
    broker->status.since = now;
    coord__queue_init(&broker->inbox);
    coord__queue_init(&broker->outbox);
    rc = ops->init(broker, &broker->config, now, error);
    broker->config.uri = NULL;
    if (rc != COORD_OK) {
        free(broker);
        return rc;
    }
    *out = broker;
    return COORD_OK;
}

void coord_broker_free(struct coord_broker *broker, bool forked)
{
    if (broker == NULL) {
        return;
    }
    check(broker);
    broker->ops->fini(broker, forked);
    coord__queue_empty(&broker->inbox);
    coord__queue_empty(&broker->outbox);
    free(broker->taken);
    for (size_t i = 0; i < broker->topic_count; i++) {
        free(broker->topics[i]);
    }
    broker->magic = 0;
    free(broker);
}

/* ---------------------------------------------------------------- driving */

static void log_line(const struct coord_broker *broker, coord_ms now, enum coord_log_level level,
                     enum coord_err code, const char *text)
{
    coord_log_write(&broker->config.log, now, level, code, broker->ops->name, "%s", text);
}

static void drop_stale(struct coord_broker *broker, coord_ms now)
{
    struct coord__queue *outbox = &broker->outbox;
    while (outbox->first != NULL &&
           coord_ms_sub(now, outbox->first->since) >= broker->config.outbox_wait) {
        free(coord__queue_take(outbox));
        broker->status.dropped[COORD_BROKER_DROP_WAITED]++;
    }
}

static void offer(struct coord_broker *broker, coord_ms now)
{
    struct coord__queue *outbox = &broker->outbox;
    broker->fresh = false;
    while (outbox->first != NULL) {
        const struct coord_broker_message message = coord__queue_message(outbox->first);
        struct coord_error error = {.code = COORD_OK};
        const enum coord_err rc = broker->ops->publish(broker, &message, now, &error);
        if (rc == COORD_E_BUSY) {
            return;
        }
        free(coord__queue_take(outbox));
        if (rc == COORD_OK) {
            broker->status.published++;
        } else {
            broker->status.dropped[COORD_BROKER_DROP_REFUSED]++;
        }
        if (rc != COORD_OK && rc != broker->refused) {
            log_line(broker, now, COORD_LOG_WARN, rc, error.text);
        }
        broker->refused = rc;
    }
}

void coord_broker_process(struct coord_broker *broker, coord_ms now)
{
    check(broker);
    free(broker->taken);
    broker->taken = NULL;
    broker->touched = false;
    broker->ops->process(broker, now);
    drop_stale(broker, now);
    offer(broker, now);
}

coord_ms coord_broker_deadline(struct coord_broker *broker)
{
    check(broker);
    if (broker->fresh || broker->touched) {
        return 0;
    }
    const struct coord__waiting *oldest = broker->outbox.first;
    const coord_ms stale =
        oldest != NULL ? coord_ms_add(oldest->since, broker->config.outbox_wait) : COORD_NEVER;
    return coord_ms_min(stale, broker->ops->deadline(broker));
}

size_t coord_broker_descriptors(struct coord_broker *broker, struct coord_descriptor *out)
{
    check(broker);
    const size_t count = broker->ops->descriptors(broker, out);
    COORD_ASSERT(count <= COORD_DESCRIPTORS_MAX);
    return count;
}

/* ---------------------------------------------------------------- publish and subscribe */

/* @return its bytes; 0: it is none. */
static size_t topic_length(const char *topic)
{
    size_t bytes = 0;
    while (topic != NULL && topic[bytes] > 0x20 && topic[bytes] < 0x7f) {
        if (++bytes == COORD_BROKER_TOPIC_MAX) {
            return 0;
        }
    }
    return topic != NULL && topic[bytes] == '\0' ? bytes : 0;
}

static enum coord_err bad_topic(struct coord_error *error)
{
    return coord_error_set(error, COORD_E_BAD_TOPIC,
                           "a topic is 1 to %d printable ASCII characters without blanks: change "
                           "it, or the prefix that it begins with",
                           COORD_BROKER_TOPIC_MAX - 1);
}

static enum coord_err check_publish(struct coord_broker *broker, size_t topic_bytes, size_t count,
                                    struct coord_error *error)
{
    const size_t most =
        broker->ops->message_max > 0 ? broker->ops->message_max : COORD_BROKER_MESSAGE_MAX;
    if (!coord_broker_has(broker, COORD_BROKER_PUBLISH)) {
        return coord__broker_lacks(broker, "publish", COORD_BROKER_PUBLISH, error);
    }
    if (topic_bytes == 0) {
        return bad_topic(error);
    }
    if (count > most) {
        return coord_error_set(error, COORD_E_TOO_LARGE,
                               "a message of %zu bytes is more than the %zu that the %s broker "
                               "carries: send less, or a reference to it",
                               count, most, broker->ops->name);
    }
    const struct coord__queue *outbox = &broker->outbox;
    const size_t bytes = coord__queue_weight(topic_bytes, count);
    if (outbox->messages > 0 && (outbox->messages >= broker->config.outbox_messages ||
                                 bytes > broker->config.outbox_bytes ||
                                 outbox->bytes > broker->config.outbox_bytes - bytes)) {
        broker->status.dropped[COORD_BROKER_DROP_OUTBOX_FULL]++;
        return coord_error_set(error, COORD_E_LIMIT,
                               "%zu messages wait to go out over the %s broker: it is down or "
                               "slow, publish later",
                               outbox->messages, broker->ops->name);
    }
    return COORD_OK;
}

enum coord_err coord_broker_publish(struct coord_broker *broker, const char *topic,
                                    const void *bytes, size_t count, coord_ms now,
                                    struct coord_error *error)
{
    check(broker);
    COORD_ASSERT(bytes != NULL || count == 0);
    const size_t topic_bytes = topic_length(topic);
    const enum coord_err rc = check_publish(broker, topic_bytes, count, error);
    if (rc != COORD_OK) {
        return rc;
    }
    struct coord__waiting *w = coord__queue_copy(topic, topic_bytes, bytes, count, now);
    if (w == NULL) {
        broker->status.dropped[COORD_BROKER_DROP_NO_MEMORY]++;
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    coord__queue_put(&broker->outbox, w);
    broker->fresh = true;
    return COORD_OK;
}

static size_t find_topic(const struct coord_broker *broker, const char *topic, size_t bytes)
{
    size_t i = 0;
    while (i < broker->topic_count &&
           (strncmp(broker->topics[i], topic, bytes) != 0 || broker->topics[i][bytes] != '\0')) {
        i++;
    }
    return i;
}

enum coord_err coord_broker_subscribe(struct coord_broker *broker, const char *topic, coord_ms now,
                                      struct coord_error *error)
{
    check(broker);
    const size_t bytes = topic_length(topic);
    if (!coord_broker_has(broker, COORD_BROKER_SUBSCRIBE)) {
        return coord__broker_lacks(broker, "subscribe", COORD_BROKER_SUBSCRIBE, error);
    }
    if (bytes == 0) {
        return bad_topic(error);
    }
    if (find_topic(broker, topic, bytes) < broker->topic_count) {
        return COORD_OK;
    }
    if (broker->topic_count == COORD_BROKER_TOPICS_MAX) {
        return coord_error_set(error, COORD_E_LIMIT,
                               "%d topics are heard already: unsubscribe from one, or open "
                               "another bus",
                               COORD_BROKER_TOPICS_MAX);
    }
    char *kept = malloc(bytes + 1);
    if (kept == NULL) {
        return coord_error_set(error, COORD_E_NO_MEMORY, "out of memory: free some and try again");
    }
    memcpy(kept, topic, bytes + 1);
    broker->topics[broker->topic_count++] = kept;
    broker->ops->resubscribe(broker, now);
    return COORD_OK;
}

void coord_broker_unsubscribe(struct coord_broker *broker, const char *topic, coord_ms now)
{
    check(broker);
    const size_t bytes = topic_length(topic);
    const size_t i = bytes > 0 ? find_topic(broker, topic, bytes) : broker->topic_count;
    if (i < broker->topic_count) {
        free(broker->topics[i]);
        broker->topics[i] = broker->topics[--broker->topic_count];
        broker->ops->resubscribe(broker, now);
    }
}

bool coord_broker_next_message(struct coord_broker *broker, struct coord_broker_message *out)
{
    check(broker);
    free(broker->taken);
    broker->taken = coord__queue_take(&broker->inbox);
    if (broker->taken == NULL) {
        return false;
    }
    *out = coord__queue_message(broker->taken);
    return true;
}

size_t coord_broker_waiting(const struct coord_broker *broker)
{
    check(broker);
    return broker->inbox.messages;
}

void coord_broker_get_status(const struct coord_broker *broker, struct coord_broker_status *out)
{
    check(broker);
    *out = broker->status;
    out->inbox_messages = broker->inbox.messages;
    out->inbox_bytes = broker->inbox.bytes;
    out->outbox_messages = broker->outbox.messages;
    out->outbox_bytes = broker->outbox.bytes;
}

bool coord_broker_is_idle(struct coord_broker *broker)
{
    check(broker);
    return broker->outbox.messages == 0 &&
           (broker->ops->unwritten == NULL || !broker->ops->unwritten(broker));
}

/* ---------------------------------------------------------------- the implementer's side */

void *coord_broker_state(struct coord_broker *broker)
{
    check(broker);
    return broker->state;
}

const char *coord_broker_topic(const struct coord_broker *broker, size_t index)
{
    check(broker);
    return index < broker->topic_count ? broker->topics[index] : NULL;
}

void coord_broker_deliver(struct coord_broker *broker, const char *topic, size_t topic_bytes,
                          const void *bytes, size_t count)
{
    check(broker);
    if (topic_bytes == 0 || topic_bytes >= COORD_BROKER_TOPIC_MAX ||
        find_topic(broker, topic, topic_bytes) == broker->topic_count) {
        return;
    }
    struct coord__queue *inbox = &broker->inbox;
    struct coord__waiting *w = count <= COORD_BROKER_MESSAGE_MAX
                                   ? coord__queue_copy(topic, topic_bytes, bytes, count, 0)
                                   : NULL;
    if (w == NULL) {
        broker->status.dropped[count <= COORD_BROKER_MESSAGE_MAX ? COORD_BROKER_DROP_NO_MEMORY
                                                                 : COORD_BROKER_DROP_DAMAGED]++;
        return;
    }
    broker->status.received++;
    broker->touched = true;
    coord__queue_put(inbox, w);
    /* The latest is worth more than the oldest: it says the same, or what became of it. */
    while (inbox->messages > 1 && (inbox->messages > broker->config.inbox_messages ||
                                   inbox->bytes > broker->config.inbox_bytes)) {
        free(coord__queue_take(inbox));
        broker->status.dropped[COORD_BROKER_DROP_INBOX_FULL]++;
    }
}

void coord_broker_report_up(struct coord_broker *broker, coord_ms now)
{
    check(broker);
    struct coord_broker_status *status = &broker->status;
    if (status->up) {
        return;
    }
    broker->touched = true;
    status->up = true;
    status->since = now;
    status->ups++;
    status->error.code = COORD_OK;
    status->error.text[0] = '\0';
    if (broker->told != COORD_OK) {
        broker->told = COORD_OK;
        log_line(broker, now, COORD_LOG_INFO, COORD_OK, "the bus works again");
    }
}

void coord_broker_report_down(struct coord_broker *broker, const struct coord_error *why,
                              coord_ms now)
{
    check(broker);
    struct coord_broker_status *status = &broker->status;
    if (status->up) {
        broker->touched = true;
        status->up = false;
        status->since = now;
    }
    if (why == NULL || why->code == COORD_OK) {
        return;
    }
    status->error = *why;
    if (broker->told != why->code) {
        broker->told = why->code;
        log_line(broker, now, COORD_LOG_WARN, why->code, why->text);
    }
}

void coord_broker_count_drop(struct coord_broker *broker, enum coord_broker_drop reason,
                             uint64_t count)
{
    check(broker);
    COORD_ASSERT((unsigned)reason < COORD_BROKER_DROPS);
    broker->status.dropped[reason] += count;
}

const struct coord_log *coord_broker_log(const struct coord_broker *broker)
{
    check(broker);
    return &broker->config.log;
}

const struct coord_broker_config *coord_broker_configured(const struct coord_broker *broker)
{
    check(broker);
    return &broker->config;
}
