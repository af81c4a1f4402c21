/* SPDX-License-Identifier: MIT
 * tests/sim/agents/shipped_coordinator_peers.c - coord/coordinator_peers.c as it ships,
 * with room for planted faults.
 */
#include <string.h>

#include "coord/coordinator_inside.h"
#include "tests/sim/agents/plant_rules.h"

/* Whoever is heard takes the place of all other starts of its id. */
static coord_ms retire_others(struct coord_coordinator *c, uint32_t ref)
{
    const struct coord__peer *peer = coord__peer_at(&c->peers, ref);
    for (uint32_t i = 0; i < c->peers.made; i++) {
        const struct coord__peer *other = coord__peer_at(&c->peers, i);
        if (i != ref && i != c->self && (other->flags & COORD__PEER_USED) != 0 &&
            other->id_bytes == peer->id_bytes &&
            memcmp(coord__peer_id(other), coord__peer_id(peer), peer->id_bytes) == 0) {
            coord__peer_retire(c, i);
        }
    }
    return c->now;
}

#include "coord/coordinator_peers.c"
