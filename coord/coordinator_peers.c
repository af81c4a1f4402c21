/* SPDX-License-Identifier: MIT
 * coord/coordinator_peers.c - life, leaving and death of peers, by what was heard and by time.
 */
#include "coord/coordinator_inside.h"
#include "coord/rule.h"

#include <float.h>
#include <string.h>

/* ---- who speaks ---- */

/* NULL: the message has none. */
static const unsigned char *incarnation_of(const struct coord_value *value, unsigned char *out)
{
    char text[COORD_INCARNATION_MAX];
    if (value->kind != COORD_KIND_TEXT) {
        return NULL;
    }
    if (!value->escaped) {
        coord__incarnation(value->of.text, value->count, out);
    } else {
        coord__incarnation(text, coord_view_text(value, text, sizeof text), out);
    }
    return out;
}

/* The id without escapes; `room` holds it when there are some. */
static const char *id_of(const struct coord_value *value, char *room, size_t *bytes)
{
    if (!value->escaped) {
        *bytes = value->count;
        return value->of.text;
    }
    *bytes = coord_view_text(value, room, COORD_NAME_MAX);
    return room;
}

bool coord__is_self(const struct coord_coordinator *c, const struct coord_message *message,
                    bool *same_incarnation)
{
    bool self = coord_view_is(&message->instance_id, c->id, c->id_bytes);
    *same_incarnation =
        self && coord_view_is(&message->incarnation, c->incarnation, COORD_OWNER_HEX - 1);
    return self;
}

/* ---- health, and what is counted by it ---- */

static bool healthy(const struct coord_coordinator *c, uint32_t ref)
{
    const struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    if ((peer->flags & (COORD__PEER_SILENT | COORD__PEER_FINISHED)) != 0 ||
        COORD__RULE(leaves_its_work, coord__peer_leaving(peer))) {
        return false;
    }
    /* What we list counts only once it came back, as nobody else may have heard it. */
    return ref != c->self || coord__judging(c);
}

/* A healthy peer more or less has the list; the first and the last one count for its names. */
static void count_in_set(struct coord_coordinator *c, uint32_t ref, bool more)
{
    if (ref == COORD__NO_REF) {
        return;
    }
    struct coord__set *set = c->names.set[ref];
    bool changes = set->healthy == (more ? 0 : 1);
    set->healthy += more ? 1U : UINT32_MAX;
    for (uint32_t i = 0; changes && i < set->count; i++) {
        c->names.name[set->names[i]]->healthy += more ? 1U : UINT32_MAX;
        if (more) {
            coord__name_healthy(c, set->names[i]);
        }
    }
}

/* Bring the count of its set, and the reports of its names, up to date. */
void coord__count_health(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    bool counted = (peer->flags & COORD__PEER_COUNTED) != 0;
    bool is = healthy(c, ref);
    if (is == counted) {
        return;
    }
    peer->flags ^= COORD__PEER_COUNTED;
    if (ref != c->self) {
        c->peers.healthy += is ? 1U : UINT32_MAX;
    }
    count_in_set(c, peer->set, is);
}

static bool same_list(const struct coord__set *set, const struct coord_value *subscriptions)
{
    if (subscriptions->count != set->count) {
        return false;
    }
    struct coord_walk walk;
    struct coord_value name;
    const unsigned char *at = set->packed;
    coord_walk_begin(subscriptions, &walk);
    if (subscriptions->form == COORD_FORM_MSGPACK &&
        (size_t)(walk.end - walk.at) == set->packed_bytes &&
        memcmp(walk.at, set->packed, set->packed_bytes) == 0) {
        return true; /* written as we write it */
    }
    while (coord_walk_next(&walk, NULL, &name)) {
        uint32_t bytes = coord__packed_next(&at);
        if (!coord_view_is(&name, (const char *)at, bytes)) {
            return false;
        }
        at += bytes;
    }
    return true;
}

/* false: it could not be kept; the old list stays. */
static bool set_list(struct coord_coordinator *c, uint32_t ref,
                     const struct coord_value *subscriptions)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    uint32_t bytes = 0;
    uint32_t count = 0;
    enum coord_refusal why = COORD_REFUSED_NO_MEMORY;
    uint32_t set = COORD__NO_REF;
    if (subscriptions->kind == COORD_KIND_ARRAY && subscriptions->count > 0) {
        if (peer->set != COORD__NO_REF && same_list(c->names.set[peer->set], subscriptions)) {
            return true;
        }
        if (!coord__pack_list(subscriptions, c->packed, sizeof c->packed, &bytes, &count)) {
            return false;
        }
        set = coord__set_take(&c->names, c->packed, bytes, count, &why);
        if (set == COORD__NO_REF) {
            coord__refuse(c, why);
            return false;
        }
    }
    uint32_t before = peer->set;
    peer->set = set;
    if ((peer->flags & COORD__PEER_COUNTED) != 0) {
        count_in_set(c, before, false);
        count_in_set(c, set, true);
    }
    coord__set_drop(&c->names, before);
    return true;
}

/* ---- life ---- */

/* A peer without seq: a timestamp that is none of the last eight is life, as its clock may have
 * been set back; it is content if it is newer, or nothing newer came for one T. */
static bool fresh_time(struct coord_coordinator *c, uint32_t ref, int64_t timestamp, bool *content)
{
    struct coord__peer_extra *extra = coord__peer_extra(c, ref);
    if (extra == NULL) {
        coord__refuse(c, COORD_REFUSED_NO_MEMORY);
        return false;
    }
    for (uint32_t i = 0; i < COORD__RULE(times_remembered, extra->ring_count); i++) {
        if (COORD__RULE(is_a_known_time, extra->ring[i] == timestamp)) {
            coord__refuse(c, COORD_REFUSED_OLD_TIME);
            return false;
        }
    }
    *content = extra->ring_count == 0 || timestamp > extra->newest ||
               c->now >= coord_ms_add(extra->newest_at, c->config.timeout);
    extra->ring[extra->ring_at++ % COORD__RING] = timestamp;
    extra->ring_count += extra->ring_count < COORD__RING ? 1 : 0;
    if (*content) {
        extra->newest = timestamp;
        extra->newest_at = c->now;
    }
    return true;
}

static bool fresh(struct coord_coordinator *c, uint32_t ref, const struct coord_message *message,
                  bool *content)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    if ((peer->flags & COORD__PEER_FINISHED) != 0) {
        coord__refuse(c, COORD_REFUSED_AFTER_FINISHED);
        return false;
    }
    if (message->seq == 0 && peer->seq == 0) {
        return fresh_time(c, ref, message->at_us, content);
    }
    if (COORD__RULE(is_no_news, message->seq <= peer->seq)) {
        coord__refuse(c, COORD_REFUSED_OLD_SEQ);
        return false;
    }
    peer->seq = message->seq;
    *content = true;
    return true;
}

/* Do two incarnations of one id both go on, a T after the later one began? */
static void look_for_twin(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    struct coord__peer_extra *extra = coord__peer_extra(c, ref);
    struct coord__probe probe = coord__index_begin(&c->peers.by_id, coord__peer_hash(c, peer));
    uint32_t other_ref = COORD__NO_REF;
    while (extra != NULL && (peer->flags & COORD__PEER_TWIN) == 0 &&
           (other_ref = coord__index_next(&c->peers.by_id, &probe)) != COORD__NO_REF) {
        struct coord__peer *other = coord__peer_at(&c->peers, other_ref);
        if (other_ref == ref || other->extra == NULL ||
            (other->flags & COORD__PEER_FINISHED) != 0 || other->id_bytes != peer->id_bytes ||
            memcmp(coord__peer_id(other), coord__peer_id(peer), peer->id_bytes) != 0) {
            continue;
        }
        coord_ms later = coord_ms_max(extra->first_heard, other->extra->first_heard);
        coord_ms both = coord_ms_add(later, COORD__RULE(twins_both_go_on, c->config.timeout));
        if (other->last_heard > both && c->now > both) {
            peer->flags |= COORD__PEER_TWIN;
            other->flags |= COORD__PEER_TWIN;
            /* Of ourselves nothing is told, but of another one that says our id. */
            coord__event(c, COORD_EVENT_DUPLICATE_IDENTITY, ref == c->self ? other_ref : ref,
                         COORD_NEVER, false);
        }
    }
}

static void heard(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    bool silent = (peer->flags & COORD__PEER_SILENT) != 0;
    coord__list_remove(&c->peers, silent ? &c->peers.dead : &c->peers.alive, ref);
    coord__list_add(&c->peers, &c->peers.alive, ref);
    peer->last_heard = COORD__RULE(each_start_has_its_own_silence, c->now);
    if (silent) {
        peer->flags = (uint16_t)(peer->flags & ~(unsigned)COORD__PEER_SILENT);
        coord__event(c, COORD_EVENT_PEER_RECOVERED, ref, COORD_NEVER, false);
        if (coord__peer_leaving(peer) && !coord__heap_set(&c->peers, ref, peer->extra->deadline)) {
            coord__refuse(c, COORD_REFUSED_NO_MEMORY);
        }
    }
    if ((peer->flags & COORD__PEER_SHARED) != 0) {
        look_for_twin(c, ref);
    }
}

/* Who was told to leave before it was heard has no incarnation yet: it gets that of the one who
 * lives. @return its peer, or COORD__NO_REF. */
static uint32_t meet(struct coord_coordinator *c, const char *id, size_t id_bytes,
                     const unsigned char *incarnation)
{
    uint32_t ref = coord__peer_find_expected(c, id, id_bytes, NULL);
    struct coord__peer *peer = ref != COORD__NO_REF ? coord__peer_at(&c->peers, ref) : NULL;
    if (incarnation == NULL || peer == NULL || (peer->flags & COORD__PEER_UNHEARD) == 0) {
        return COORD__NO_REF;
    }
    memcpy(peer->incarnation, incarnation, COORD_OWNER_BYTES);
    peer->flags =
        (uint16_t)((peer->flags & ~(unsigned)COORD__PEER_UNHEARD) | COORD__PEER_INCARNATION);
    return ref;
}

/* The peer that a message is from, made if it is new. */
static uint32_t sender(struct coord_coordinator *c, const struct coord_message *message, bool *new)
{
    char room[COORD_NAME_MAX];
    unsigned char bytes[COORD_OWNER_BYTES];
    size_t id_bytes = 0;
    const char *id = id_of(&message->instance_id, room, &id_bytes);
    const unsigned char *incarnation = incarnation_of(&message->incarnation, bytes);
    uint32_t ref = coord__peer_find_expected(c, id, id_bytes, incarnation);
    enum coord_refusal why = COORD_REFUSED_NO_MEMORY;
    if (ref == COORD__NO_REF) {
        ref = meet(c, id, id_bytes, incarnation);
    }
    *new = ref == COORD__NO_REF;
    if (*new) {
        ref = coord__peer_add(c, id, id_bytes, incarnation, &why);
        if (ref == COORD__NO_REF) {
            coord__refuse(c, why);
            return ref;
        }
        if ((coord__peer_at(&c->peers, ref)->flags & COORD__PEER_SHARED) != 0) {
            (void)coord__peer_extra(c, ref); /* remembers when it was first heard */
        }
    }
    return ref;
}

/* ---- leaving ---- */

static void begin_leaving(struct coord_coordinator *c, uint32_t ref, enum coord_intent intent,
                          coord_ms deadline)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    struct coord__peer_extra *extra = coord__peer_extra(c, ref);
    if (extra == NULL) {
        coord__refuse(c, COORD_REFUSED_NO_MEMORY);
        return;
    }
    bool leaves = extra->deadline != COORD_NEVER;
    /* Each heartbeat repeats the notice; the way to us is not always equally long. */
    coord_ms apart = leaves && extra->deadline > deadline ? extra->deadline - deadline
                                                          : deadline - extra->deadline;
    bool over = extra->deadline <= c->now && deadline <= c->now;
    if (leaves && extra->intent == intent && (over || apart < c->config.timeout / 2)) {
        return;
    }
    extra->intent = intent;
    extra->notice_at = c->now;
    peer->flags = (uint16_t)(peer->flags & ~(unsigned)COORD__PEER_OVERRUN);
    deadline = coord_ms_min(deadline, COORD_ENDLESS);
    if ((peer->flags & COORD__PEER_SILENT) != 0) {
        extra->deadline = deadline; /* nothing comes of it unless the peer is heard again */
    } else if (!coord__heap_set(&c->peers, ref, deadline)) {
        coord__refuse(c, COORD_REFUSED_NO_MEMORY);
        return;
    }
    coord__count_health(c, ref);
    coord__event(c, COORD_EVENT_PEER_LEAVING, ref, deadline, false);
}

static void end_leaving(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    if (!coord__peer_leaving(peer)) {
        return;
    }
    coord__heap_remove(&c->peers, ref);
    peer->extra->deadline = COORD_NEVER;
    peer->flags = (uint16_t)(peer->flags & ~(unsigned)COORD__PEER_OVERRUN);
    coord__event(c, COORD_EVENT_PEER_WITHDREW, ref, COORD_NEVER, false);
}

/* Each beat repeats how much time is left: of endless time that must not make a new deadline. */
static coord_ms deadline_in(const struct coord_coordinator *c, coord_ms left)
{
    return left >= COORD__ENDLESS ? COORD_ENDLESS : coord_ms_add(c->now, left);
}

static uint32_t whole_number(int64_t value)
{
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Finite, as it came. */
static float load_of(double value)
{
    const double most = (double)FLT_MAX;
    return (float)(value < -most ? -most : value > most ? most : value);
}

static void take_content(struct coord_coordinator *c, uint32_t ref,
                         const struct coord_message *message)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    peer->in_flight = whole_number(message->in_flight_count);
    peer->load = load_of(message->load_factor);
    unsigned flags = peer->flags & ~(unsigned)COORD__PEER_LEADER;
    peer->flags = (uint16_t)(flags | (message->is_leader ? COORD__PEER_LEADER : 0));
    if (message->leaving) {
        /* Before its list, so that what it lists anew is not taken for looked after. */
        begin_leaving(c, ref, message->intent, deadline_in(c, message->remaining));
    } else if (COORD__RULE(a_beat_withdraws, message->seq != 0)) {
        end_leaving(c, ref);
    } else if (coord__peer_leaving(peer) &&
               c->now >= coord_ms_add(peer->extra->deadline, c->config.timeout)) {
        end_leaving(c, ref); /* a peer of the seed library came back under its id */
    }
    (void)set_list(c, ref, &message->subscriptions);
}

void coord__heartbeat(struct coord_coordinator *c, const struct coord_message *message)
{
    bool new = false;
    bool content = false;
    uint32_t ref = sender(c, message, &new);
    if (ref == COORD__NO_REF) {
        return;
    }
    bool silent = (coord__peer_at(&c->peers, ref)->flags & COORD__PEER_SILENT) != 0;
    if (!fresh(c, ref, message, &content)) {
        return;
    }
    if (new &&ref != c->self) {
        coord__event(c, COORD_EVENT_PEER_APPEARED, ref, COORD_NEVER, false);
    }
    coord__peer_at(&c->peers, ref)->flags &= (uint16_t)~COORD__PEER_UNHEARD;
    heard(c, ref);
    if (content) {
        take_content(c, ref, message);
    }
    coord__count_health(c, ref);
    if (coord__peer_leaving(coord__peer_at(&c->peers, ref)) && (content || silent)) {
        coord__offer(c, ref,
                     (coord__peer_at(&c->peers, ref)->flags & COORD__PEER_OVERRUN) != 0
                         ? COORD_CAUSE_OVERRUN
                         : COORD_CAUSE_DRAINING);
    }
    if (c->config.heartbeat_events && ref != c->self) {
        coord__event(c, COORD_EVENT_PEER_HEARTBEAT, ref, COORD_NEVER, true);
    }
}

/* A peer without seq says its notice once. One that a newer heartbeat overtook holds all the same
 * until its deadline, by the peer's own clock; past that it is of an earlier life. */
static bool was_overtaken(const struct coord__peer *peer, const struct coord_message *message)
{
    return message->seq == 0 && peer->seq == 0 && peer->extra != NULL &&
           peer->extra->newest > message->at_us && peer->extra->newest < message->completion_us;
}

/* When the time is over that is left by the sender's own clock, from now on. */
static coord_ms time_up(const struct coord_coordinator *c, const struct coord__peer *peer,
                        const struct coord_message *message)
{
    int64_t from = message->has_sent_at ? message->sent_at_us : message->at_us;
    if (was_overtaken(peer, message)) {
        from = peer->extra->newest;
    }
    int64_t left = message->completion_us - from;
    return deadline_in(c, left > 0 ? (coord_ms)(left / 1000) : 0);
}

void coord__notice(struct coord_coordinator *c, const struct coord_message *message)
{
    bool new = false;
    bool content = false;
    uint32_t ref = sender(c, message, &new);
    if (ref == COORD__NO_REF) {
        return;
    }
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    if ((peer->flags & COORD__PEER_FINISHED) != 0) {
        coord__refuse(c, COORD_REFUSED_AFTER_FINISHED);
        return;
    }
    /* From somebody else it says what the peer was told, and not that the peer lives. */
    bool own = message->seq != 0 || peer->seq == 0;
    if (own && (!fresh(c, ref, message, &content) || (!content && !was_overtaken(peer, message)))) {
        return;
    }
    if (new) {
        coord__event(c, COORD_EVENT_PEER_APPEARED, ref, COORD_NEVER, false);
        if ((peer->flags & COORD__PEER_INCARNATION) == 0) {
            peer->flags |= COORD__PEER_UNHEARD;
        }
    }
    if (own) {
        heard(c, ref);
    }
    begin_leaving(c, ref, message->intent, time_up(c, peer, message));
    if (message->subscriptions.kind == COORD_KIND_ARRAY && message->subscriptions.count > 0) {
        (void)set_list(c, ref, &message->subscriptions);
    }
    if ((peer->flags & COORD__PEER_SILENT) == 0) {
        coord__offer(c, ref, COORD_CAUSE_DRAINING);
    }
}

void coord__finished(struct coord_coordinator *c, const struct coord_message *message)
{
    bool new = false;
    bool content = false;
    uint32_t ref = sender(c, message, &new);
    if (ref == COORD__NO_REF) {
        return;
    }
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    if (!fresh(c, ref, message, &content)) {
        return;
    }
    bool silent = (peer->flags & COORD__PEER_SILENT) != 0;
    coord__heap_remove(&c->peers, ref);
    coord__list_remove(&c->peers, silent ? &c->peers.dead : &c->peers.alive, ref);
    coord__list_add(&c->peers, &c->peers.dead, ref);
    peer->last_heard = c->now;
    peer->flags = (uint16_t)((peer->flags & ~(unsigned)COORD__PEER_SILENT) | COORD__PEER_FINISHED);
    coord__count_health(c, ref); /* before its list, as above */
    (void)set_list(c, ref, &message->subscriptions);
    coord__event(c, COORD_EVENT_PEER_FINISHED, ref, COORD_NEVER, false);
    coord__offer(c, ref, COORD_CAUSE_FINISHED);
}
