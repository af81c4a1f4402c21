/* SPDX-License-Identifier: MIT
 * coord/peer.c - the table of peers: by id, in the order of hearing, and by deadline.
 */
#include "coord/coordinator_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

void coord__list_add(struct coord__peers *peers, struct coord__list *list, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(peers, ref);
    peer->previous = list->last;
    peer->next = COORD__NO_REF;
    if (list->last != COORD__NO_REF) {
        coord__peer_at(peers, list->last)->next = ref;
    } else {
        list->first = ref;
    }
    list->last = ref;
}

void coord__list_remove(struct coord__peers *peers, struct coord__list *list, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(peers, ref);
    if (peer->previous != COORD__NO_REF) {
        coord__peer_at(peers, peer->previous)->next = peer->next;
    } else {
        list->first = peer->next;
    }
    if (peer->next != COORD__NO_REF) {
        coord__peer_at(peers, peer->next)->previous = peer->previous;
    } else {
        list->last = peer->previous;
    }
}

/* ---- deadlines of leaving: a heap whose members know their places ---- */

static coord_ms deadline_at(const struct coord__peers *peers, uint32_t at)
{
    return coord__peer_at(peers, peers->heap[at])->extra->deadline;
}

static void place(struct coord__peers *peers, uint32_t at, uint32_t ref)
{
    peers->heap[at] = ref;
    coord__peer_at(peers, ref)->extra->heap_at = at;
}

static void settle(struct coord__peers *peers, uint32_t at)
{
    uint32_t ref = peers->heap[at];
    coord_ms deadline = deadline_at(peers, at);
    while (at > 0 && deadline < deadline_at(peers, (at - 1) / 2)) {
        place(peers, at, peers->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
        peers->heap[at] = ref;
    }
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= peers->heap_count) {
            break;
        }
        if (child + 1 < peers->heap_count &&
            deadline_at(peers, child + 1) < deadline_at(peers, child)) {
            child++;
        }
        if (deadline <= deadline_at(peers, child)) {
            break;
        }
        place(peers, at, peers->heap[child]);
        at = child;
        peers->heap[at] = ref;
    }
    place(peers, at, ref);
}

bool coord__heap_set(struct coord__peers *peers, uint32_t ref, coord_ms deadline)
{
    struct coord__peer_extra *extra = coord__peer_at(peers, ref)->extra;
    if (extra->heap_at == COORD__NO_REF) {
        if (peers->heap_count == peers->heap_room) {
            uint32_t room = peers->heap_room == 0 ? 16 : peers->heap_room * 2;
            uint32_t *grown = realloc(peers->heap, room * sizeof(uint32_t));
            if (grown == NULL) {
                return false;
            }
            peers->heap = grown;
            peers->heap_room = room;
        }
        extra->heap_at = peers->heap_count;
        peers->heap[peers->heap_count++] = ref;
    }
    extra->deadline = deadline;
    settle(peers, extra->heap_at);
    return true;
}

void coord__heap_remove(struct coord__peers *peers, uint32_t ref)
{
    struct coord__peer_extra *extra = coord__peer_at(peers, ref)->extra;
    if (extra == NULL || extra->heap_at == COORD__NO_REF) {
        return;
    }
    uint32_t at = extra->heap_at;
    uint32_t last = peers->heap[--peers->heap_count];
    extra->heap_at = COORD__NO_REF;
    if (last != ref) {
        place(peers, at, last);
        settle(peers, at);
    }
}

/* ---- records ---- */

static bool same_id(const struct coord__peer *peer, const char *id, size_t id_bytes)
{
    return peer->id_bytes == id_bytes && memcmp(coord__peer_id(peer), id, id_bytes) == 0;
}

static bool same_incarnation(const struct coord__peer *peer, const unsigned char *incarnation)
{
    bool has = (peer->flags & COORD__PEER_INCARNATION) != 0;
    if (incarnation == NULL) {
        return !has;
    }
    return has && memcmp(peer->incarnation, incarnation, COORD_OWNER_BYTES) == 0;
}

/* The index has it; in the record it would be a tenth of what a peer takes. */
uint32_t coord__peer_hash(const struct coord_coordinator *c, const struct coord__peer *peer)
{
    return coord__hash(c->config.seed, coord__peer_id(peer), peer->id_bytes);
}

/* Without an incarnation: the one that was heard last. */
static uint32_t find(const struct coord_coordinator *c, uint32_t hash, const char *id,
                     size_t id_bytes, const unsigned char *incarnation)
{
    struct coord__probe probe = coord__index_begin(&c->peers.by_id, hash);
    uint32_t best = COORD__NO_REF;
    coord_ms heard = 0;
    for (;;) {
        uint32_t ref = coord__index_next(&c->peers.by_id, &probe);
        if (ref == COORD__NO_REF) {
            return best;
        }
        const struct coord__peer *peer = coord__peer_at(&c->peers, ref);
        if (!same_id(peer, id, id_bytes)) {
            continue;
        }
        if (incarnation != NULL && same_incarnation(peer, incarnation)) {
            return ref;
        }
        if (incarnation == NULL && (best == COORD__NO_REF || peer->last_heard >= heard)) {
            best = ref;
            heard = peer->last_heard;
        }
    }
}

uint32_t coord__peer_find(const struct coord_coordinator *c, const char *id, size_t id_bytes,
                          const unsigned char *incarnation)
{
    return find(c, coord__hash(c->config.seed, id, id_bytes), id, id_bytes, incarnation);
}

/* Whatever is read here is checked later: it says where to look, and nothing else. */
void coord__peer_expect(struct coord_coordinator *c, const void *bytes, size_t count)
{
    static const char key[] = "\xabinstance_id"; /* the first one, as everybody writes it */
    const unsigned char *at = (const unsigned char *)bytes + sizeof key;
    struct coord__peers *peers = &c->peers;
    peers->expected = NULL;
    if (count < sizeof key + 2 || memcmp(at - sizeof key + 1, key, sizeof key - 1) != 0) {
        return;
    }
    size_t head = *at == 0xd9 ? 2 : 1;
    size_t id_bytes = *at == 0xd9 ? at[1] : *at & 0x1f;
    if (id_bytes > count - sizeof key - head) {
        return;
    }
    peers->expected = (const char *)at + head;
    peers->expected_bytes = id_bytes;
    peers->expected_hash = coord__hash(c->config.seed, peers->expected, id_bytes);
    coord__index_fetch(&peers->by_id, peers->expected_hash);
}

uint32_t coord__peer_find_expected(const struct coord_coordinator *c, const char *id,
                                   size_t id_bytes, const unsigned char *incarnation)
{
    if (id != c->peers.expected || id_bytes != c->peers.expected_bytes) {
        return coord__peer_find(c, id, id_bytes, incarnation);
    }
    return find(c, c->peers.expected_hash, id, id_bytes, incarnation);
}

static uint32_t take_record(struct coord__peers *peers)
{
    if (peers->free_ != COORD__NO_REF) {
        uint32_t ref = peers->free_;
        peers->free_ = coord__peer_at(peers, ref)->next;
        return ref;
    }
    if (peers->made == peers->chunks * COORD__CHUNK) {
        /* The list of chunks doubles, the chunks themselves never move. */
        if ((peers->chunks & (peers->chunks - 1)) == 0) {
            size_t room = peers->chunks == 0 ? 1 : (size_t)peers->chunks * 2;
            struct coord__peer **grown = realloc(peers->chunk, room * sizeof(*grown));
            if (grown == NULL) {
                return COORD__NO_REF;
            }
            peers->chunk = grown;
        }
        struct coord__peer *chunk = malloc(COORD__CHUNK * sizeof *chunk);
        if (chunk == NULL) {
            return COORD__NO_REF;
        }
        peers->chunk[peers->chunks++] = chunk;
    }
    return peers->made++;
}

static void give_record(struct coord__peers *peers, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(peers, ref);
    peer->flags = 0;
    peer->next = peers->free_;
    peers->free_ = ref;
}

/* All incarnations of one id know that they are not alone. */
static uint32_t mark_shared(struct coord_coordinator *c, const char *id, size_t id_bytes,
                            uint32_t hash)
{
    struct coord__probe probe = coord__index_begin(&c->peers.by_id, hash);
    uint32_t count = 0;
    uint32_t ref = coord__index_next(&c->peers.by_id, &probe);
    while (ref != COORD__NO_REF) {
        struct coord__peer *peer = coord__peer_at(&c->peers, ref);
        if (same_id(peer, id, id_bytes)) {
            peer->flags |= COORD__PEER_SHARED;
            count++;
        }
        ref = coord__index_next(&c->peers.by_id, &probe);
    }
    return count;
}

/* The incarnation of an id that died first makes way for a new one; its reports stay. A living one
 * never does. false: all live. */
static bool make_way(struct coord_coordinator *c, const char *id, size_t id_bytes, uint32_t hash)
{
    const unsigned dead = COORD__PEER_SILENT | COORD__PEER_FINISHED;
    struct coord__probe probe = coord__index_begin(&c->peers.by_id, hash);
    uint32_t oldest = COORD__NO_REF;
    uint32_t ref;
    while ((ref = coord__index_next(&c->peers.by_id, &probe)) != COORD__NO_REF) {
        const struct coord__peer *peer = coord__peer_at(&c->peers, ref);
        if (same_id(peer, id, id_bytes) && (peer->flags & dead) != 0 &&
            (oldest == COORD__NO_REF ||
             peer->last_heard < coord__peer_at(&c->peers, oldest)->last_heard)) {
            oldest = ref;
        }
    }
    if (oldest != COORD__NO_REF) {
        coord__peer_retire(c, oldest);
    }
    return oldest != COORD__NO_REF;
}

static bool set_id(struct coord__peer *peer, const char *id, size_t id_bytes)
{
    peer->id_bytes = (uint8_t)id_bytes;
    if (id_bytes > COORD__ID_INLINE) {
        peer->id.far_ = malloc(id_bytes);
        if (peer->id.far_ == NULL) {
            peer->id_bytes = 0;
            return false;
        }
        memcpy(peer->id.far_, id, id_bytes);
    } else {
        memcpy(peer->id.near_, id, id_bytes);
    }
    return true;
}

static void free_id(struct coord__peer *peer)
{
    if (peer->id_bytes > COORD__ID_INLINE) {
        free(peer->id.far_);
    }
}

uint32_t coord__peer_add(struct coord_coordinator *c, const char *id, size_t id_bytes,
                         const unsigned char *incarnation, enum coord_refusal *why)
{
    uint32_t hash = coord__hash(c->config.seed, id, id_bytes);
    if (c->peers.count >= c->config.peers_max) {
        if (c->peers.dead.first == COORD__NO_REF) {
            *why = COORD_REFUSED_PEERS_FULL;
            return COORD__NO_REF;
        }
        coord__peer_retire(c, c->peers.dead.first); /* its reports stay */
    }
    uint32_t others = mark_shared(c, id, id_bytes, hash);
    if (others >= c->config.incarnations_max && !make_way(c, id, id_bytes, hash)) {
        *why = COORD_REFUSED_INCARNATIONS_FULL;
        return COORD__NO_REF;
    }
    *why = COORD_REFUSED_NO_MEMORY;
    uint32_t ref = take_record(&c->peers);
    if (ref == COORD__NO_REF) {
        return ref;
    }
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    memset(peer, 0, sizeof *peer);
    if (!set_id(peer, id, id_bytes) || !coord__index_add(&c->peers.by_id, hash, ref)) {
        free_id(peer);
        give_record(&c->peers, ref);
        return COORD__NO_REF;
    }
    peer->set = COORD__NO_REF;
    peer->flags = (uint16_t)(COORD__PEER_USED | (others > 0 ? COORD__PEER_SHARED : 0) |
                             (incarnation != NULL ? COORD__PEER_INCARNATION : 0));
    if (incarnation != NULL) {
        memcpy(peer->incarnation, incarnation, COORD_OWNER_BYTES);
    }
    peer->last_heard = c->now;
    coord__list_add(&c->peers, &c->peers.alive, ref);
    c->peers.count++;
    return ref;
}

struct coord__peer_extra *coord__peer_extra(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    if (peer->extra == NULL) {
        peer->extra = calloc(1, sizeof *peer->extra);
        if (peer->extra != NULL) {
            peer->extra->deadline = COORD_NEVER;
            peer->extra->heap_at = COORD__NO_REF;
            peer->extra->first_heard = c->now;
        }
    }
    return peer->extra;
}

/* It is in no list any more and counts nowhere. */
void coord__peer_free(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    COORD_ASSERT((peer->flags & COORD__PEER_COUNTED) == 0);
    coord__heap_remove(&c->peers, ref);
    coord__index_remove(&c->peers.by_id, coord__peer_hash(c, peer), ref);
    coord__set_drop(&c->names, peer->set);
    free_id(peer);
    free(peer->extra);
    give_record(&c->peers, ref);
    c->peers.count--;
}

void coord__peers_fini(struct coord_coordinator *c)
{
    for (uint32_t i = 0; i < c->peers.made; i++) {
        struct coord__peer *peer = coord__peer_at(&c->peers, i);
        if ((peer->flags & COORD__PEER_USED) != 0) {
            free_id(peer);
            free(peer->extra);
        }
    }
    for (uint32_t i = 0; i < c->peers.chunks; i++) {
        free(c->peers.chunk[i]);
    }
    free(c->peers.chunk);
    free(c->peers.heap);
    coord__index_fini(&c->peers.by_id);
}
