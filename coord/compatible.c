/* SPDX-License-Identifier: MIT
 * coord/compatible.c - the table of peers as the seed library keeps it, and what changes it.
 */
#include "coord/compatible_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- copies ---- */

void coord__drop(struct coord__kept *kept)
{
    free(kept->bytes);
    kept->bytes = NULL;
    kept->count = 0;
}

enum coord_err coord__keep(struct coord__kept *kept, enum coord_message_type type,
                           const void *bytes, size_t count)
{
    struct coord__kept copy = {malloc(count), count, {0}};
    if (copy.bytes == NULL) {
        return COORD_E_NO_MEMORY;
    }
    memcpy(copy.bytes, bytes, count);
    enum coord_message_fault fault = coord_record_read(type, copy.bytes, count, &copy.record);
    COORD_ASSERT(fault == COORD_FAULT_NONE); /* it was read before */
    coord__drop(kept);
    *kept = copy;
    return COORD_OK;
}

/* ---- peers ---- */

/* Equal ids have equal hashes: texts by their characters, all numbers alike. */
static uint32_t hash_id(const struct coord_value *id)
{
    if (id->kind != COORD_KIND_TEXT) {
        return id->kind == COORD_KIND_NULL ? 1 : 2;
    }
    if (!id->escaped) {
        return coord__hash(0, id->of.text, id->count);
    }
    char text[COORD_NAME_MAX];
    size_t bytes = coord_view_text(id, text, sizeof text);
    return bytes <= sizeof text ? coord__hash(0, text, bytes) : 3;
}

/* A text that is too long to be unescaped on the stack shares one hash with its kind. */
static uint32_t hash_of(const struct coord_value *id)
{
    bool long_text = id->kind == COORD_KIND_TEXT && id->count > COORD_NAME_MAX;
    if (long_text && coord_view_text(id, NULL, 0) > COORD_NAME_MAX) {
        return 3;
    }
    return hash_id(id);
}

static struct coord__seed_peer *find(const struct coord_compatible *c, const struct coord_value *id,
                                     uint32_t hash)
{
    struct coord__probe probe = coord__index_begin(&c->index, hash);
    for (;;) {
        uint32_t ref = coord__index_next(&c->index, &probe);
        if (ref == COORD__NO_REF) {
            return NULL;
        }
        if (coord_view_equal(&c->by_ref[ref]->id, id)) {
            return c->by_ref[ref];
        }
    }
}

static bool take_ref(struct coord_compatible *c, uint32_t *out)
{
    if (c->free_refs > 0) {
        uint32_t ref = 0;
        while (c->by_ref[ref] != NULL) {
            ref++;
        }
        c->free_refs--;
        *out = ref;
        return true;
    }
    size_t room = c->refs == 0 ? 16 : (size_t)c->refs;
    if (c->refs == 0 || (c->refs >= 16 && (c->refs & (c->refs - 1)) == 0)) {
        struct coord__seed_peer **grown = realloc(c->by_ref, room * 2 * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        c->by_ref = grown;
    }
    *out = c->refs++;
    return true;
}

static void free_peer(struct coord__seed_peer *peer)
{
    coord__drop(&peer->heartbeat);
    coord__drop(&peer->notice);
    free(peer->id_bytes);
    free(peer);
}

static void sweep(struct coord_compatible *c)
{
    if (c->callbacks.dispatching > 0) {
        return;
    }
    while (c->removed != NULL) {
        struct coord__seed_peer *next = c->removed->next;
        free_peer(c->removed);
        c->removed = next;
    }
}

/* A copy of the id as a value of its own. */
static bool copy_id(struct coord__seed_peer *peer, const struct coord_value *id)
{
    size_t room = id->bytes + 16;
    struct coord_writer writer;
    size_t bytes = 0;
    peer->id_bytes = malloc(room);
    if (peer->id_bytes == NULL) {
        return false;
    }
    if (id->kind == COORD_KIND_LONG) {
        memcpy(peer->id_bytes, id->at, id->bytes);
        peer->id = *id;
        peer->id.at = peer->id_bytes;
        return true;
    }
    coord_writer_begin(&writer, COORD_FORM_MSGPACK, peer->id_bytes, room);
    coord_write_value(&writer, id);
    return coord_writer_finish(&writer, &bytes) == COORD_OK &&
           coord__view_scalar(peer->id_bytes, bytes, &peer->id);
}

static struct coord__seed_peer *add_peer(struct coord_compatible *c, const struct coord_value *id,
                                         uint32_t hash)
{
    struct coord__seed_peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL) {
        return NULL;
    }
    if (!copy_id(peer, id) || !take_ref(c, &peer->ref)) {
        free_peer(peer);
        return NULL;
    }
    if (!coord__index_add(&c->index, hash, peer->ref)) {
        c->by_ref[peer->ref] = NULL;
        c->free_refs++;
        free_peer(peer);
        return NULL;
    }
    c->by_ref[peer->ref] = peer;
    peer->hash = hash;
    peer->previous = c->last;
    if (c->last != NULL) {
        c->last->next = peer;
    } else {
        c->first = peer;
    }
    c->last = peer;
    c->peers++;
    return peer;
}

static void unlink_peer(struct coord_compatible *c, struct coord__seed_peer *peer)
{
    coord__index_remove(&c->index, peer->hash, peer->ref);
    c->by_ref[peer->ref] = NULL;
    c->free_refs++;
    *(peer->previous != NULL ? &peer->previous->next : &c->first) = peer->next;
    *(peer->next != NULL ? &peer->next->previous : &c->last) = peer->previous;
    c->peers--;
    c->bytes -= peer->heartbeat.count + peer->notice.count;
    peer->next = c->removed;
    c->removed = peer;
}

bool coord_compatible_remove_peer(struct coord_compatible *coordinator,
                                  const struct coord_value *id)
{
    sweep(coordinator);
    struct coord__seed_peer *peer = find(coordinator, id, hash_of(id));
    if (peer == NULL) {
        return false;
    }
    unlink_peer(coordinator, peer);
    return true;
}

/* ---- construction ---- */

enum coord_err coord_compatible_new(const struct coord_compatible_config *config,
                                    struct coord_compatible **out)
{
    if (config->size != sizeof *config || config->instance_id == NULL ||
        config->instance_id_bytes > COORD_MESSAGE_MAX / 2 || config->peers_max > UINT32_MAX / 4) {
        return COORD_E_BAD_ARGUMENT;
    }
    struct coord_compatible *c = calloc(1, sizeof *c);
    char *id = malloc(config->instance_id_bytes + 1);
    if (c == NULL || id == NULL) {
        free(c);
        free(id);
        return COORD_E_NO_MEMORY;
    }
    memcpy(id, config->instance_id, config->instance_id_bytes);
    id[config->instance_id_bytes] = '\0';
    c->config = *config;
    c->instance_id = id;
    c->config.instance_id = id;
    c->self = coord_text(id, config->instance_id_bytes);
    *out = c;
    return COORD_OK;
}

void coord_compatible_free(struct coord_compatible *coordinator)
{
    if (coordinator == NULL) {
        return;
    }
    COORD_ASSERT(coordinator->callbacks.dispatching == 0);
    sweep(coordinator);
    while (coordinator->first != NULL) {
        struct coord__seed_peer *next = coordinator->first->next;
        free_peer(coordinator->first);
        coordinator->first = next;
    }
    coord__drop(&coordinator->notice);
    coord__index_fini(&coordinator->index);
    free(coordinator->by_ref);
    free(coordinator->instance_id);
    free(coordinator);
}

/* ---- callbacks ---- */

enum coord_err coord_compatible_on(struct coord_compatible *coordinator,
                                   enum coord_compatible_kind kind, coord_compatible_fn fn,
                                   void *ctx)
{
    bool added =
        coord__callbacks_add(&coordinator->callbacks, (int)kind, (coord__callback_fn)fn, ctx);
    return added ? COORD_OK : COORD_E_LIMIT;
}

bool coord_compatible_remove_callback(struct coord_compatible *coordinator,
                                      enum coord_compatible_kind kind, coord_compatible_fn fn,
                                      void *ctx)
{
    return coord__callbacks_remove(&coordinator->callbacks, (int)kind, (coord__callback_fn)fn, ctx);
}

static void dispatch(struct coord_compatible *c, enum coord_compatible_kind kind,
                     const struct coord_record *message, const struct coord_value *id)
{
    struct coord_compatible_event event = {kind, message, id};
    unsigned bound = coord__callbacks_begin(&c->callbacks);
    unsigned at = 0;
    void *ctx = NULL;
    coord__callback_fn fn;
    while ((fn = coord__callbacks_next(&c->callbacks, (int)kind, bound, &at, &ctx)) != NULL) {
        ((coord_compatible_fn)fn)(ctx, &event);
    }
    coord__callbacks_end(&c->callbacks);
}

/* ---- what comes in ---- */

static enum coord_err read(struct coord_compatible *c, enum coord_message_type type,
                           const void *bytes, size_t count, struct coord_record *out)
{
    enum coord_message_fault fault = coord_record_read(type, bytes, count, out);
    if (fault == COORD_FAULT_NONE) {
        fault = coord_record_check(out);
    }
    /* The seed library keeps peers in a map, whose keys cannot be lists or maps. */
    if (fault == COORD_FAULT_NONE && type != COORD_MESSAGE_WORK_ASSIGNMENT &&
        (out->field[0].kind == COORD_KIND_ARRAY || out->field[0].kind == COORD_KIND_MAP ||
         out->field[0].kind == COORD_KIND_OTHER)) {
        fault = COORD_FAULT_WRONG_TYPE;
    }
    if (fault != COORD_FAULT_NONE) {
        c->counts.fault[fault]++;
        return COORD_E_BAD_MESSAGE;
    }
    return COORD_OK;
}

static enum coord_err store(struct coord_compatible *c, enum coord_message_type type,
                            const struct coord_value *id, const void *bytes, size_t count,
                            struct coord__seed_peer **out)
{
    uint32_t hash = hash_of(id);
    struct coord__seed_peer *peer = find(c, id, hash);
    bool known = peer != NULL;
    if (!known && c->peers >= c->config.peers_max) {
        c->counts.peers_full++;
        return COORD_E_LIMIT;
    }
    bool beat = type == COORD_MESSAGE_HEARTBEAT;
    size_t before = !known ? 0 : beat ? peer->heartbeat.count : peer->notice.count;
    if (c->bytes - before + count > c->config.bytes_max) {
        c->counts.bytes_full++;
        return COORD_E_LIMIT;
    }
    if (!known) {
        peer = add_peer(c, id, hash);
    }
    if (peer == NULL) {
        return COORD_E_NO_MEMORY;
    }
    enum coord_err err = coord__keep(beat ? &peer->heartbeat : &peer->notice, type, bytes, count);
    if (err == COORD_OK) {
        c->bytes += count - before;
        *out = peer;
    } else if (!known) {
        unlink_peer(c, peer);
    }
    return err;
}

/* The record of the caller's bytes is what is told, so that a callback may remove the peer. */
static enum coord_err handle(struct coord_compatible *c, enum coord_message_type type,
                             const void *bytes, size_t count, int64_t wall)
{
    struct coord_record record;
    struct coord__seed_peer *peer = NULL;
    sweep(c);
    enum coord_err err = read(c, type, bytes, count, &record);
    if (err != COORD_OK || coord_view_equal(&record.field[0], &c->self)) {
        return err;
    }
    err = store(c, type, &record.field[0], bytes, count, &peer);
    double left = 0;
    if (err == COORD_OK && type == COORD_MESSAGE_SHUTDOWN) {
        err = coord_notice_remaining(&record, wall, &left);
    }
    if (err == COORD_OK) {
        dispatch(c,
                 type == COORD_MESSAGE_HEARTBEAT ? COORD_COMPATIBLE_HEARTBEAT
                                                 : COORD_COMPATIBLE_PEER_SHUTDOWN,
                 &record, &record.field[0]);
    }
    return err;
}

enum coord_err coord_compatible_handle_heartbeat(struct coord_compatible *coordinator,
                                                 const void *bytes, size_t count, int64_t wall)
{
    return handle(coordinator, COORD_MESSAGE_HEARTBEAT, bytes, count, wall);
}

enum coord_err coord_compatible_handle_peer_shutdown(struct coord_compatible *coordinator,
                                                     const void *bytes, size_t count, int64_t wall)
{
    return handle(coordinator, COORD_MESSAGE_SHUTDOWN, bytes, count, wall);
}

enum coord_err coord_compatible_handle_work_assignment(struct coord_compatible *coordinator,
                                                       const void *bytes, size_t count,
                                                       int64_t wall)
{
    struct coord_record record;
    (void)wall;
    sweep(coordinator);
    enum coord_err err = read(coordinator, COORD_MESSAGE_WORK_ASSIGNMENT, bytes, count, &record);
    if (err == COORD_OK && coord_view_equal(&record.field[0], &coordinator->self)) {
        dispatch(coordinator, COORD_COMPATIBLE_WORK_ASSIGNMENT, &record, &record.field[0]);
    }
    return err;
}

/* All that are overdue, before anybody is told. */
static enum coord_err overdue(const struct coord_compatible *c, int64_t wall,
                              const struct coord__seed_peer **out, size_t *count)
{
    *count = 0;
    for (const struct coord__seed_peer *peer = c->first; peer; peer = peer->next) {
        bool stale = false;
        if (peer->notice.bytes != NULL || peer->heartbeat.bytes == NULL) {
            continue;
        }
        enum coord_err err =
            coord_heartbeat_stale(&peer->heartbeat.record, c->config.timeout_s, wall, &stale);
        if (err != COORD_OK) {
            return err;
        }
        if (stale) {
            out[(*count)++] = peer;
        }
    }
    return COORD_OK;
}

enum coord_err coord_compatible_check_timeouts(struct coord_compatible *coordinator, int64_t wall,
                                               struct coord_value *ids, size_t room, size_t *count)
{
    struct coord_compatible *c = coordinator;
    sweep(c);
    const struct coord__seed_peer **late = malloc((c->peers + 1) * sizeof(*late));
    size_t found = 0;
    if (late == NULL) {
        return COORD_E_NO_MEMORY;
    }
    enum coord_err err = overdue(c, wall, late, &found);
    if (err == COORD_OK) {
        *count = found;
        /* A peer that a callback removes stays readable until the dispatch is over. */
        (void)coord__callbacks_begin(&c->callbacks);
        for (size_t i = 0; i < found; i++) {
            if (i < room) {
                ids[i] = late[i]->id;
            }
            dispatch(c, COORD_COMPATIBLE_PEER_TIMEOUT, NULL, &late[i]->id);
        }
        coord__callbacks_end(&c->callbacks);
    }
    free(late);
    return err;
}
