/* SPDX-License-Identifier: MIT
 * coord/coordinator_silence.c - what time does to peers: silence, overrun, oblivion.
 */
#include "coord/coordinator_inside.h"
#include "coord/rule.h"

/* Out of every list and count, whatever it was. Events that would show it are gone with it. */
void coord__peer_retire(struct coord_coordinator *c, uint32_t ref)
{
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    bool dead = (peer->flags & (COORD__PEER_SILENT | COORD__PEER_FINISHED)) != 0;
    unsigned kept = 0;
    for (unsigned i = 0; i < c->event_count; i++) {
        struct coord__event event = c->events[(c->event_first + i) % COORD__EVENTS];
        if (event.peer != ref) {
            c->events[(c->event_first + kept++) % COORD__EVENTS] = event;
        }
    }
    c->event_count = kept;
    coord__list_remove(&c->peers, dead ? &c->peers.dead : &c->peers.alive, ref);
    peer->flags |= COORD__PEER_FINISHED; /* healthy no more */
    coord__count_health(c, ref);
    coord__peer_free(c, ref);
}

/* One death, if one is due. */
bool coord__pass_silence(struct coord_coordinator *c)
{
    uint32_t ref = c->peers.alive.first;
    if (ref == c->self && ref != COORD__NO_REF) {
        ref = coord__peer_at(&c->peers, ref)->next; /* our own silence is no death */
    }
    if (ref == COORD__NO_REF || !coord__judging(c)) {
        return false;
    }
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    const coord_ms due = coord_ms_add(coord_ms_max(peer->last_heard, c->anew), c->config.timeout);
    if (COORD__RULE(the_leaving_die_too, c->now < due)) {
        return false;
    }
    coord__list_remove(&c->peers, &c->peers.alive, ref);
    coord__list_add(&c->peers, &c->peers.dead, ref);
    coord__heap_remove(&c->peers, ref);
    peer->flags |= COORD__PEER_SILENT;
    coord__count_health(c, ref);
    coord__event(c, COORD_EVENT_PEER_SILENT, ref, COORD_NEVER, false);
    coord__offer(c, ref, COORD_CAUSE_SILENT);
    return true;
}

/* One overrun, if one is due. */
bool coord__pass_deadlines(struct coord_coordinator *c)
{
    if (c->peers.heap_count == 0) {
        return false;
    }
    uint32_t ref = c->peers.heap[0];
    struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    if (c->now < peer->extra->deadline) {
        return false;
    }
    coord__heap_remove(&c->peers, ref);
    peer->flags |= COORD__PEER_OVERRUN;
    if (ref != c->self) {
        coord__event(c, COORD_EVENT_PEER_OVERRUN, ref, peer->extra->deadline, false);
    }
    coord__offer(c, ref, COORD_CAUSE_OVERRUN);
    return true;
}

/* The dead with nothing open, a few at a time. One whose report is open goes to the end of the
 * line. true: more may be over. */
bool coord__forget(struct coord_coordinator *c)
{
    coord_ms keep = c->config.timeout * COORD__FORGET;
    bool any = false;
    for (unsigned turns = 0; turns < 64 && c->peers.dead.first != COORD__NO_REF; turns++) {
        uint32_t ref = c->peers.dead.first;
        struct coord__peer *peer = coord__peer_at(&c->peers, ref);
        if (c->now < coord_ms_add(peer->last_heard, keep)) {
            return false;
        }
        coord__list_remove(&c->peers, &c->peers.dead, ref);
        if (coord__peer_has_report(c, ref)) {
            coord__list_add(&c->peers, &c->peers.dead, ref);
        } else {
            coord__peer_free(c, ref);
            any = true;
        }
    }
    return any && c->peers.dead.first != COORD__NO_REF;
}
