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

/** Everybody is there, and one leads. */
void fleet_scene_begin(struct fleet_scene *scene, const struct fleet_store *store);
/** Also after a test that failed. */
void fleet_scene_end(struct fleet_scene *scene);

/** Hostile bytes on every topic: counted by all of them, and nothing else. With `table` also one of
 * a former leader. */
void fleet_scene_hostile(struct fleet_scene *scene, bool table);

/** The doomed are stopped or killed, and the server is killed, for longer than T. */
void fleet_scene_outage(struct fleet_scene *scene);

/** The server is back: everybody is heard again, by everybody. */
void fleet_scene_return(struct fleet_scene *scene);

/** The doomed are reported, each once, and stand on the leader's table. */
void fleet_scene_reports(struct fleet_scene *scene);

/** The stopped go on, the work of the killed is taken: every report is resolved. */
void fleet_scene_resolution(struct fleet_scene *scene);

/** Some leave in order: their work is reported as finished. */
void fleet_scene_departure(struct fleet_scene *scene);

/** Nobody who lived was ever called dead, by anybody. */
void fleet_scene_verdict(struct fleet_scene *scene);

#endif /* TEST_FLEET_SCENE_H */
