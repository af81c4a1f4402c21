/* SPDX-License-Identifier: MIT
 * tests/support/fleet_scene.h - what befalls a fleet over a real server: an outage, processes that
 * are stopped and killed, hostile bytes; one act after the other, the same on every server.
 */
#ifndef TEST_FLEET_SCENE_H
#define TEST_FLEET_SCENE_H

#include "tests/support/fleet_agents.h"

struct fleet_scene {
    struct fleet_agents all;
    struct fleet_process doomed[FLEET_DOOMED];
    struct fleet_process steady; /* in a process of its own, and lives */
    void (*kill)(void);          /* the server */
    void (*again)(void);
};

/**
 * From the beginning to the verdict: hostile bytes; the server is killed, for longer than T, and
 * some processes are stopped or killed; all come back, the dead are reported, each once, and
 * resolved; some leave in order. Nobody who lived was ever called dead.
 */
void fleet_scene_play(struct fleet_scene *scene, const struct fleet_store *store);
/** Also after a test that failed. */
void fleet_scene_end(struct fleet_scene *scene);

#endif /* TEST_FLEET_SCENE_H */
