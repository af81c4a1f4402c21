/* SPDX-License-Identifier: MIT
 * runtime/resolve.c - the resolver thread.
 */
#include "runtime/resolve.h"
#include "runtime/thread.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct coord_resolution {
    struct coord_resolution *next; /* of the questions that wait */
    enum coord_err code;           /* BUSY: no answer yet */
    struct coord_error error;
    struct coord_addresses addresses;
    char host[]; /* copied */
};

struct coord__resolve {
    pthread_mutex_t lock;
    pthread_cond_t asked;
    struct coord__loop *loop; /* NULL: the runtime is gone */
    struct coord_resolution *first;
    struct coord_resolution *running; /* NULL: idle, or its question was dropped */
    bool busy;                        /* the thread is inside getaddrinfo() */
    bool started;
    atomic_bool answered;
    pthread_t thread;
};

/* ---------------------------------------------------------------- on the thread */

static void add_address(struct coord_addresses *out, const struct addrinfo *found)
{
    char *text = out->text[out->count];
    if (getnameinfo(found->ai_addr, found->ai_addrlen, text, COORD_ADDRESS_TEXT_MAX, NULL, 0,
                    NI_NUMERICHOST) != 0) {
        return;
    }
    for (size_t i = 0; i < out->count; i++) {
        if (strcmp(out->text[i], text) == 0) {
            return;
        }
    }
    out->count++;
}

static enum coord_err look_up(const char *host, struct coord_addresses *out,
                              struct coord_error *error)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    errno = 0;
    const int rc = getaddrinfo(host, NULL, &hints, &found);
    const bool full = rc != 0 && (errno == EMFILE || errno == ENFILE);
    out->count = 0;
    for (const struct addrinfo *a = rc == 0 ? found : NULL;
         a != NULL && out->count < COORD_ADDRESSES_MAX; a = a->ai_next) {
        add_address(out, a);
    }
    if (rc == 0) {
        freeaddrinfo(found);
    }
    if (full) {
        return coord_error_set(error, COORD_E_SYSTEM,
                               "no descriptor is left to resolve the host name \"%s\": raise the "
                               "limit of open files",
                               host);
    }
    if (out->count == 0) {
        return coord_error_set(error, COORD_E_NAME_UNRESOLVED,
                               "the host name \"%s\" cannot be resolved (%s): check its spelling "
                               "and the name service",
                               host, rc != 0 ? gai_strerror(rc) : "no address");
    }
    return COORD_OK;
}

/* Answer one question, the lock let go meanwhile. */
static void answer(struct coord__resolve *resolve, struct coord_resolution *question)
{
    resolve->running = question;
    resolve->busy = true;
    pthread_mutex_unlock(&resolve->lock);
    const enum coord_err code = look_up(question->host, &question->addresses, &question->error);
    pthread_mutex_lock(&resolve->lock);
    const bool dropped = resolve->running == NULL;
    resolve->running = NULL;
    resolve->busy = false;
    if (dropped) {
        free(question);
        return;
    }
    question->code = code;
    atomic_store(&resolve->answered, true);
    if (resolve->loop != NULL) {
        coord__loop_wake(resolve->loop);
    }
}

static void destroy(struct coord__resolve *resolve)
{
    pthread_cond_destroy(&resolve->asked);
    pthread_mutex_destroy(&resolve->lock);
    free(resolve);
}

static void *run(void *ctx)
{
    struct coord__resolve *resolve = ctx;
    pthread_mutex_lock(&resolve->lock);
    while (resolve->loop != NULL) {
        struct coord_resolution *question = resolve->first;
        if (question == NULL) {
            pthread_cond_wait(&resolve->asked, &resolve->lock);
            continue;
        }
        resolve->first = question->next;
        answer(resolve, question);
    }
    /* Left behind while it was stuck: nobody else knows of it any more. */
    const bool alone = !resolve->started;
    pthread_mutex_unlock(&resolve->lock);
    if (alone) {
        destroy(resolve);
    }
    return NULL;
}

/* ---------------------------------------------------------------- from the loop */

struct coord__resolve *coord__resolve_new(struct coord__loop *loop)
{
    struct coord__resolve *resolve = calloc(1, sizeof *resolve);
    if (resolve != NULL) {
        pthread_mutex_init(&resolve->lock, NULL);
        pthread_cond_init(&resolve->asked, NULL);
        resolve->loop = loop;
    }
    return resolve;
}

void coord__resolve_lock(struct coord__resolve *resolve)
{
    pthread_mutex_lock(&resolve->lock);
}

void coord__resolve_unlock(struct coord__resolve *resolve)
{
    pthread_mutex_unlock(&resolve->lock);
}

void coord__resolve_free(struct coord__resolve *resolve, bool forked)
{
    if (forked) {
        free(resolve); /* its thread, which may wait on it for ever, is the parent's */
        return;
    }
    pthread_mutex_lock(&resolve->lock);
    resolve->loop = NULL;
    const bool started = resolve->started;
    const bool stuck = resolve->busy;
    if (stuck) {
        resolve->started = false;
        pthread_detach(resolve->thread);
    }
    pthread_cond_signal(&resolve->asked);
    pthread_mutex_unlock(&resolve->lock);
    if (stuck) {
        return;
    }
    if (started) {
        pthread_join(resolve->thread, NULL);
    }
    destroy(resolve);
}

struct coord_resolution *coord__resolve_start(void *ctx, const char *host)
{
    struct coord__resolve *resolve = ctx;
    const size_t bytes = strlen(host) + 1;
    struct coord_resolution *question = calloc(1, sizeof *question + bytes);
    if (question == NULL) {
        return NULL;
    }
    question->code = COORD_E_BUSY;
    memcpy(question->host, host, bytes);
    pthread_mutex_lock(&resolve->lock);
    if (!resolve->started) {
        resolve->started = coord__thread_start(&resolve->thread, "coord-resolver", run, resolve);
    }
    if (resolve->started) {
        struct coord_resolution **at = &resolve->first;
        while (*at != NULL) {
            at = &(*at)->next;
        }
        *at = question;
        pthread_cond_signal(&resolve->asked);
    } else {
        question->code = coord_error_set(&question->error, COORD_E_SYSTEM,
                                         "cannot start the resolver thread: raise the limit of "
                                         "threads, or give the address in digits");
    }
    pthread_mutex_unlock(&resolve->lock);
    return question;
}

enum coord_err coord__resolve_poll(void *ctx, struct coord_resolution *resolution,
                                   struct coord_addresses *out, struct coord_error *error)
{
    struct coord__resolve *resolve = ctx;
    pthread_mutex_lock(&resolve->lock);
    const enum coord_err code = resolution->code;
    if (code == COORD_OK) {
        *out = resolution->addresses;
    } else if (code != COORD_E_BUSY && error != NULL) {
        *error = resolution->error;
    }
    pthread_mutex_unlock(&resolve->lock);
    return code;
}

void coord__resolve_drop(void *ctx, struct coord_resolution *resolution)
{
    struct coord__resolve *resolve = ctx;
    pthread_mutex_lock(&resolve->lock);
    struct coord_resolution **at = &resolve->first;
    while (*at != NULL && *at != resolution) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = resolution->next;
    }
    const bool running = resolve->running == resolution;
    if (running) {
        resolve->running = NULL; /* who looks it up frees it */
    }
    pthread_mutex_unlock(&resolve->lock);
    if (!running) {
        free(resolution);
    }
}

bool coord__resolve_answered(struct coord__resolve *resolve)
{
    return atomic_exchange(&resolve->answered, false);
}
