/* SPDX-License-Identifier: MIT
 * brokers/memory.c - members of one name in this process, each with a box that the others fill.
 *
 * The boxes are under one lock, the brokers themselves are not: each empties its own box with its
 * own process(), on its own thread.
 */
#include "brokers/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    NAME_ROOM = 256
};

struct letter {
    struct letter *next;
    size_t topic_bytes; /* without the NUL */
    size_t count;
    char data[];
};

struct member {
    struct member *next;
    char name[NAME_ROOM]; /* "": alone */
    int wake;
    struct letter *first;
    struct letter **last;
    size_t messages;
    size_t bytes;
    size_t messages_max;
    size_t bytes_max;
    uint64_t lost; /* gave way */
    uint64_t no_memory;
    char *topics[COORD_BROKER_TOPICS_MAX]; /* read by the others */
    size_t topic_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct member *members;

/* ---------------------------------------------------------------- boxes; the lock is held */

static struct letter *take(struct member *m)
{
    struct letter *l = m->first;
    if (l != NULL) {
        m->first = l->next;
        if (m->first == NULL) {
            m->last = &m->first;
        }
        m->messages--;
        m->bytes -= sizeof *l + l->topic_bytes + l->count;
    }
    return l;
}

static void put(struct member *m, const struct coord_broker_message *what)
{
    const size_t topic_bytes = strlen(what->topic);
    struct letter *l = malloc(sizeof *l + topic_bytes + what->count);
    if (l == NULL) {
        m->no_memory++;
        return;
    }
    l->next = NULL;
    l->topic_bytes = topic_bytes;
    l->count = what->count;
    memcpy(l->data, what->topic, topic_bytes);
    if (what->count > 0) {
        memcpy(l->data + topic_bytes, what->bytes, what->count);
    }
    *m->last = l;
    m->last = &l->next;
    m->messages++;
    m->bytes += sizeof *l + topic_bytes + what->count;
    while (m->messages > 1 && (m->messages > m->messages_max || m->bytes > m->bytes_max)) {
        free(take(m));
        m->lost++;
    }
    if (m->messages == 1) {
        const uint64_t one = 1;
        const ssize_t n = write(m->wake, &one, sizeof one);
        COORD_ASSERT(n == (ssize_t)sizeof one || errno == EAGAIN); /* full: it is awake */
    }
}

static bool hears(const struct member *m, const char *topic)
{
    for (size_t i = 0; i < m->topic_count; i++) {
        if (strcmp(m->topics[i], topic) == 0) {
            return true;
        }
    }
    return false;
}

static void forget_topics(struct member *m)
{
    while (m->topic_count > 0) {
        free(m->topics[--m->topic_count]);
    }
}

/* ---------------------------------------------------------------- begin and end */

static enum coord_err begin(struct coord_broker *broker, const struct coord_broker_config *config,
                            coord_ms now, struct coord_error *error)
{
    struct member *m = coord_broker_state(broker);
    const char *name = config->uri != NULL && config->uri->path != NULL ? config->uri->path : "";
    if (strlen(name) >= sizeof m->name) {
        return coord_error_set(error, COORD_E_BAD_URI,
                               "the name of a memory: bus has more than %d bytes: shorten it",
                               NAME_ROOM - 1);
    }
    snprintf(m->name, sizeof m->name, "%s", name);
    m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->wake < 0) {
        return coord_error_set(error, COORD_E_SYSTEM,
                               "no descriptor for the bus: raise the limit of open files");
    }
    m->last = &m->first;
    m->messages_max = config->inbox_messages;
    m->bytes_max = config->inbox_bytes;
    pthread_mutex_lock(&lock);
    m->next = members;
    members = m;
    pthread_mutex_unlock(&lock);
    coord_broker_report_up(broker, now);
    return COORD_OK;
}

static void end(struct coord_broker *broker, bool forked)
{
    struct member *m = coord_broker_state(broker);
    (void)forked; /* a child's list is a copy */
    pthread_mutex_lock(&lock);
    struct member **at = &members;
    while (*at != NULL && *at != m) {
        at = &(*at)->next;
    }
    if (*at == m) {
        *at = m->next;
    }
    struct letter *l;
    while ((l = take(m)) != NULL) {
        free(l);
    }
    forget_topics(m);
    pthread_mutex_unlock(&lock);
    close(m->wake);
}

/* ---------------------------------------------------------------- work */

static enum coord_err publish(struct coord_broker *broker, const struct coord_broker_message *what,
                              coord_ms now, struct coord_error *error)
{
    const struct member *own = coord_broker_state(broker);
    (void)now;
    (void)error;
    pthread_mutex_lock(&lock);
    for (struct member *m = members; m != NULL; m = m->next) {
        const bool reached = m == own || (own->name[0] != '\0' && strcmp(m->name, own->name) == 0);
        if (reached && hears(m, what->topic)) {
            put(m, what);
        }
    }
    pthread_mutex_unlock(&lock);
    return COORD_OK;
}

static void resubscribe(struct coord_broker *broker, coord_ms now)
{
    struct member *m = coord_broker_state(broker);
    const char *topic;
    (void)now;
    pthread_mutex_lock(&lock);
    forget_topics(m);
    for (size_t i = 0; (topic = coord_broker_topic(broker, i)) != NULL; i++) {
        char *kept = strdup(topic);
        if (kept != NULL) {
            m->topics[m->topic_count++] = kept;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void process(struct coord_broker *broker, coord_ms now)
{
    struct member *m = coord_broker_state(broker);
    uint64_t rung;
    (void)now;
    COORD_IGNORE(read(m->wake, &rung, sizeof rung) != 0, "it rang, or it did not");
    pthread_mutex_lock(&lock);
    struct letter *l = m->first;
    const uint64_t lost = m->lost;
    const uint64_t no_memory = m->no_memory;
    m->first = NULL;
    m->last = &m->first;
    m->messages = 0;
    m->bytes = 0;
    m->lost = 0;
    m->no_memory = 0;
    pthread_mutex_unlock(&lock);
    coord_broker_count_drop(broker, COORD_BROKER_DROP_INBOX_FULL, lost);
    coord_broker_count_drop(broker, COORD_BROKER_DROP_NO_MEMORY, no_memory);
    while (l != NULL) {
        struct letter *next = l->next;
        coord_broker_deliver(broker, l->data, l->topic_bytes, l->data + l->topic_bytes, l->count);
        free(l);
        l = next;
    }
}

static size_t descriptors(struct coord_broker *broker, struct coord_descriptor *out)
{
    const struct member *m = coord_broker_state(broker);
    out[0] = (struct coord_descriptor){
        .fd = m->wake, .read = true, .generation = (uint64_t)(uintptr_t)m};
    return 1;
}

static coord_ms deadline(struct coord_broker *broker)
{
    const struct member *m = coord_broker_state(broker);
    pthread_mutex_lock(&lock);
    const bool waits = m->first != NULL;
    pthread_mutex_unlock(&lock);
    return waits ? 0 : COORD_NEVER;
}

static const struct coord_broker_ops ops = {.size = sizeof ops,
                                            .abi = COORD_BROKER_ABI,
                                            .name = "memory",
                                            .state_bytes = sizeof(struct member),
                                            .flags = COORD_BROKER_BASIC_PUBSUB,
                                            .init = begin,
                                            .fini = end,
                                            .publish = publish,
                                            .resubscribe = resubscribe,
                                            .process = process,
                                            .descriptors = descriptors,
                                            .deadline = deadline};

const struct coord_broker_ops *coord_memory_broker(void)
{
    return &ops;
}
